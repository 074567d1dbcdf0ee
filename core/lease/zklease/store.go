package zklease

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// A Store keeps the rows of leases in ZooKeeper. It is a [leasestore.Store], a [leasestore.Lister], a
// [leasestore.Fencer] and a [leasestore.History]; make it with [New], since the zero Store is not usable. It is safe for
// concurrent use. It holds nothing but the connection, and its goroutines end with the calls
// of that connection.
//
// Besides the errors of leasestore.Store, its methods return those that match [ErrDamaged], those
// of the connection, and the error of ctx.
type Store struct{ *leasestore.RegisterStore }

var _ leasestore.Catalog = (*Store)(nil) // beside what a RegisterStore is

// New returns a Store on a connection, usually a [*zk.Conn]. It sends nothing. The caller
// keeps the connection and closes it after the last lease.
//
// The error is a [*core.ValueError].
func New(conn Conn, c Config) (*Store, error) {
	// A program that ignores the error of zk.Connect has a nil *zk.Conn. Every call of it
	// would panic, in a goroutine where no caller can recover.
	if v := reflect.ValueOf(conn); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, invalid("conn", "nil", "a connection, as zk.Connect returns")
	}
	c, err := c.complete()
	if err != nil {
		return nil, err
	}
	return &Store{leasestore.FromRegister(&register{conn: conn, acl: c.ACL, prefix: c.Prefix, clock: c.Prefix + "/" + clockName})}, nil
}

// Spaces implements [leasestore.Catalog]. A server that lags may not show the latest ones.
func (s *Store) Spaces(ctx context.Context) (spaces []leasestore.Space, err error) {
	r := s.Register().(*register)
	names, err := r.children(ctx, r.prefix)
	for _, name := range names {
		if name == clockName {
			continue
		}
		namespace, err := r.get(ctx, r.prefix+"/"+name).wait(ctx)
		if err != nil {
			return nil, err
		}
		layout, ok := decodeLayout(namespace.data)
		if !ok {
			return nil, damage(r.prefix+"/"+name, namespace.data, layoutForm)
		}
		at := leasestore.Space{Namespace: strings.ReplaceAll(name, "%2E", "."), Layout: layout}
		datacenters, err := r.children(ctx, r.prefix+"/"+name)
		if err != nil {
			return nil, err
		}
		for _, datacenter := range datacenters {
			path := r.prefix + "/" + name + "/" + datacenter
			d, err := r.get(ctx, path).wait(ctx)
			if err != nil {
				return nil, err
			}
			m, ok := decodeMeta(d.data)
			if _, err := fmt.Sscan(datacenter, &at.Datacenter); err != nil || !ok {
				return nil, damage(path, d.data, metaForm)
			}
			if at.Workers = m.workers; m.state == complete {
				spaces = append(spaces, at)
			}
		}
	}
	return spaces, err
}
