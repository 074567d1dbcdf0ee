package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/keysql"
	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/etcdlease"
	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/lease/redislease"
	"github.com/snowkey/snowkey/core/lease/sqllease"
	"github.com/snowkey/snowkey/core/lease/zklease"
	"github.com/snowkey/snowkey/core/sqlstore"
)

const wantLeases = wantURL + ", redis://host, etcd://host or zookeeper://host"

var errNoLeases = errors.New("no leases are there")

// leases is an open store of leases, with its spaces, at least one.
type leases struct {
	leaseStore
	location
	spaces []leasestore.Space // sorted
	close  func() error
}

type leaseStore interface {
	lease.Store
	leasestore.Lister
	leasestore.Catalog
	leasestore.History
}

// quiet discards what clients log: their errors say the same.
type quiet struct{}

func (quiet) Printf(string, ...any) {}

type quietRedis struct{}

func (quietRedis) Printf(context.Context, string, ...any) {}

var silent = slog.New(slog.DiscardHandler)

// openLeases opens the store that -db and -table name. It makes nothing, and a place without
// leases is an error.
func (o *options) openLeases(ctx context.Context) (*leases, error) {
	at, err := o.locate()
	if err != nil {
		return nil, err
	}
	if file, ok := at.beside(); ok && o.table == "" {
		o, at = &options{db: file.URL.String()}, file
	}
	l := &leases{location: at, close: func() error { return nil }}
	reach, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err = l.connect(reach, o); err == nil {
		l.spaces, err = l.Spaces(reach)
	}
	switch {
	case errors.Is(err, sqlstore.ErrNoTable) && at.Scheme == "sqlite":
		err = fmt.Errorf("%s: %w: no program keeps them in this file, nor beside it in one with -leases after its name; with Config.LeaseFile they are in the file that it names, and so is -db then; -table says another name of the table", at, errNoLeases)
	case errors.Is(err, sqlstore.ErrNoTable):
		err = fmt.Errorf("%s: %w: no program keeps them in this database, or their tables have another name, which -table says", at, errNoLeases)
	case err == nil && len(l.spaces) == 0:
		err = fmt.Errorf("%s: %w: no program has taken one yet, or they are elsewhere, which -table says", at, errNoLeases)
	case err != nil && !errors.As(err, new(hidden)) && !errors.As(err, new(usageError)):
		err = l.hide(err)
	}
	if err != nil {
		_ = l.close()
		return nil, err
	}
	slices.SortFunc(l.spaces, func(a, b leasestore.Space) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Datacenter, b.Datacenter))
	})
	return l, nil
}

func (l *leases) connect(ctx context.Context, o *options) (err error) {
	switch l.Scheme {
	case "redis", "rediss":
		redis.SetLogger(quietRedis{})
		client, failed := l.redis()
		if failed != nil {
			return usageError{l.hide(failed)}
		}
		l.close = client.Close
		l.leaseStore, err = redislease.New(client, redislease.Config{Prefix: o.table, Logger: silent})
	case "etcd", "etcds":
		config := clientv3.Config{Endpoints: l.hosts("2379"), Username: l.User.Username(), Password: l.password, DialTimeout: 10 * time.Second, Logger: zap.NewNop()}
		if l.Scheme == "etcds" {
			config.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		client, failed := clientv3.New(config)
		if failed != nil {
			return failed
		}
		l.close = client.Close
		l.leaseStore, err = etcdlease.New(client, etcdlease.Config{Prefix: o.table, TLS: config.TLS})
	case "zookeeper":
		conn, _, failed := zk.Connect(l.hosts("2181"), 10*time.Second, zk.WithLogger(quiet{}))
		if failed != nil {
			return failed
		}
		l.close = func() error { conn.Close(); return nil }
		if l.User != nil {
			answered := make(chan error, 1)
			go func() { answered <- conn.AddAuth("digest", []byte(l.User.Username()+":"+l.password)) }()
			select {
			case err = <-answered:
			case <-ctx.Done():
				err = ctx.Err()
			}
			if err != nil {
				return err
			}
		}
		l.leaseStore, err = zklease.New(conn, zklease.Config{Prefix: o.table})
	default:
		if _, err := l.sqlDialect(); err != nil {
			return usagef("-db %.20s: keeps no leases: %s", l.Scheme, wantLeases)
		}
		store, d, failed := openStore(ctx, o, sqllease.New)
		if failed != nil {
			return failed
		}
		l.close, l.leaseStore = d.Close, store
	}
	if errors.As(err, new(*core.ValueError)) {
		err = usageError{err}
	}
	return err
}

// beside returns the SQLite file in which snowkey.Open keeps the leases of another, if it is there.
func (l location) beside() (location, bool) {
	if l.Scheme != "sqlite" {
		return l, false
	}
	path, err := filepath.EvalSymlinks(cmp.Or(l.Opaque, l.Path)) // as SQLite does, whose path Open uses
	if err != nil {
		return l, false
	}
	path += "-leases"
	file := *l.URL
	if file.Opaque != "" {
		file.Opaque = path
	} else {
		file.Path, file.RawPath = path, ""
	}
	l.URL = &file
	info, err := os.Stat(path)
	return l, err == nil && info.Mode().IsRegular()
}

// redis returns a client of one server, or of a cluster if the URL has more servers, as addr.
func (l location) redis() (redis.UniversalClient, error) {
	if l.Query().Has("addr") {
		o, err := redis.ParseClusterURL(l.URL.String())
		if err != nil {
			return nil, err
		}
		return redis.NewClusterClient(o), nil
	}
	o, err := redis.ParseURL(l.URL.String())
	if err != nil {
		return nil, err
	}
	return redis.NewClient(o), nil
}

// hosts returns the servers of a URL such as etcd://a,b,c:2379, which share the port.
func (l location) hosts(port string) (all []string) {
	for host := range strings.SplitSeq(l.Hostname(), ",") {
		all = append(all, net.JoinHostPort(host, cmp.Or(l.Port(), port)))
	}
	return all
}

// store returns the settings of a store of leases, segments or counters in a database.
func (o *options) store(d keysql.Dialect) sqlstore.Config {
	dialects := map[keysql.Dialect]sqlstore.Dialect{keysql.PostgreSQL: sqlstore.PostgreSQL, keysql.MySQL: sqlstore.MySQL, keysql.SQLite: sqlstore.SQLite}
	return sqlstore.Config{Dialect: dialects[d], Table: o.table, Logger: silent}
}

// ofRegions reports whether a space has no leases, but the numbers of regions.
func ofRegions(s leasestore.Space) bool { return strings.HasSuffix(s.Layout, leasestore.RegionsMark) }

// config returns the settings of a lease that fit a space. The layout and the loss guard are read
// from the store, so that no flag has to repeat them.
func config(s leasestore.Space) (c lease.Config, err error) {
	text, guarded := strings.CutSuffix(strings.TrimSuffix(s.Layout, leasestore.RegionsMark), leasestore.GuardMark)
	c = lease.Config{Namespace: s.Namespace, Datacenter: s.Datacenter, LossGuard: -1, Logger: silent}
	if guarded {
		c.LossGuard = 500 * time.Millisecond
	}
	l, epoch, unit := &c.Layout, "", ""
	if _, err = fmt.Sscanf(strings.ReplaceAll(text, ",", ""), "epoch %s unit %s bits %d/%d/%d/%d", &epoch, &unit, &l.TimeBits, &l.DatacenterBits, &l.WorkerBits, &l.SequenceBits); err == nil {
		if l.Epoch, err = time.Parse(time.RFC3339Nano, epoch); err == nil {
			l.Unit, err = time.ParseDuration(unit)
		}
	}
	if err != nil || lease.Fingerprint(*l) != text {
		return c, fmt.Errorf("namespace %s has the layout %q: want one such as %q", s.Namespace, text, lease.Fingerprint(core.Default()))
	}
	return c, nil
}
