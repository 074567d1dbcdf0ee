//go:build linux

package fire

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/lib/pq"

	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/lease/sqllease"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/proof/robust/chaos"
)

const (
	asynchronous = "PostgreSQL, asynchronous standby"
	synchronous  = "PostgreSQL, synchronous standby"
	notRaised    = "PostgreSQL, synchronous standby, durability not raised"
)

func init() {
	stores[asynchronous] = openPostgres
	stores[synchronous] = openPostgres
	stores[notRaised] = func(dsn string) (lease.Store, error) {
		c, err := pgxConnector(dsn)
		return newSQLLease(c, err, func(c driver.Conn) driver.Conn { return notRaising{c.(*stdlib.Conn)} })
	}
}

// openPostgres takes pgx in half of the processes, and lib/pq in the others.
func openPostgres(dsn string) (lease.Store, error) {
	connector := pgxConnector
	if os.Getpid()%2 == 0 {
		connector = pqConnector
	}
	c, err := connector(dsn)
	return newSQLLease(c, err, nil)
}

// patience is how long a server may take to accept a connection. A renewal has three
// quarters of a second at least, and there may be a server first that does not answer. A
// host far away needs longer, and can only claim.
func patience() time.Duration {
	if os.Getpid()/2%2 == 0 {
		return 300 * time.Millisecond
	}
	return 2 * time.Second
}

func pgxConnector(dsn string) (driver.Connector, error) {
	c, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	c.ConnectTimeout = patience()
	return stdlib.GetConnector(*c), nil
}

func pqConnector(dsn string) (driver.Connector, error) { return pq.NewConnector(dsn) }

// newSQLLease returns a store whose connections are wrapped, unless wrap is nil.
func newSQLLease(c driver.Connector, err error, wrap func(driver.Conn) driver.Conn) (lease.Store, error) {
	if err != nil {
		return nil, err
	}
	if wrap != nil {
		c = wrapper{c, wrap}
	}
	db := sql.OpenDB(c)
	db.SetMaxIdleConns(1)
	return sqllease.New(db, sqlstore.Config{Dialect: sqlstore.PostgreSQL, Logger: quiet})
}

type wrapper struct {
	driver.Connector
	wrap func(driver.Conn) driver.Conn
}

func (w wrapper) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := w.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return w.wrap(c), nil
}

// A notRaising connection is a mutant: synchronous_commit stays as the server has it.
type notRaising struct{ *stdlib.Conn }

func (c notRaising) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	return c.Conn.QueryContext(ctx, strings.ReplaceAll(text, "set_config('synchronous_commit', 'on', true)", "'as it was'"), args)
}

// failover returns a strike: the primary is cut off, the standby is promoted, and the old
// primary comes back as its standby. Before that the standby lags by lag, if that is
// not zero: what the primary acknowledges meanwhile is lost, if it does not wait.
//
// With an asynchronous standby nobody reaches the old primary any more when the new one
// begins. The loss guard needs that: a store whose halves both take writes does not go
// back to an earlier state, it has two. And one half of the holders reaches neither for a
// while, so that they go on with what they have reserved. A synchronous standby needs
// nothing: one half of the holders reaches the old primary alone, the other the new one.
func (c *postgres) failover(least, most time.Duration) func(ctx context.Context, strike int) error {
	return func(ctx context.Context, strike int) error {
		defer c.network.Heal()
		old, next := c.primary.host, c.standby().host
		say := func(what string) { c.t.Logf("%s: %s: %s", time.Now().Format("15:04:05.000"), old.Name, what) }
		one, other := c.halves(strike)
		c.detach()
		c.network.Cut([]*Host{next}, one) // which is of no use to anybody yet
		say("detached")
		Rest(ctx, least, most)
		ctx = context.WithoutCancel(ctx) // a cluster in the middle of a failover is of no use
		if strike%2 == 1 {
			c.network.Cut([]*Host{old}, one)
			Rest(ctx, 0, time.Second)
		}
		if c.synchronous {
			c.network.Cut([]*Host{old}, other)
		} else {
			c.network.Isolate(old)
		}
		say("cut off")
		if err := c.promote(ctx); err != nil {
			return err
		}
		say("followed by the promoted standby")
		Rest(ctx, 2*time.Second, 4*time.Second)
		if err := c.standby().end(ctx); err != nil {
			return err
		}
		c.network.Heal()
		say("ended, healed")
		err := c.rejoin(ctx)
		say("standby")
		return err
	}
}

// halves returns two halves of the hosts that are not servers.
func (c *postgres) halves(strike int) (one, other []*Host) {
	all := c.network.Others(c.nodes[0].host, c.nodes[1].host)
	one, other = all[:len(all)/2], all[len(all)/2:]
	if strike/2%2 == 1 {
		one, other = other, one
	}
	return one, other
}

// fire returns what puts the cluster on fire.
func (c *postgres) fire(store string, least, most time.Duration) Fire {
	c.t.Helper()
	// The tables are there before the first claim, and so is the standby's copy of them.
	s, err := sqllease.New(c.primary.admin, sqlstore.Config{Dialect: sqlstore.PostgreSQL, Logger: quiet})
	if err == nil {
		err = s.CreateTables(c.t.Context())
	}
	if err == nil {
		err = c.caughtUp(c.t.Context())
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return Fire{Leases: chaos.Leases{Store: store, DSN: c.dsn()}, Network: c.network, Strike: c.failover(least, most)}
}

// lagging is so long that all rows have expired on the standby by then.
const lagging = 7 * time.Second

// laggingStandby returns a fire on an asynchronous standby that lags by least to most.
func laggingStandby(least, most time.Duration) func(t *testing.T) Fire {
	return func(t *testing.T) Fire {
		needPostgres(t)
		f := newPostgres(t, NewNetwork(t), false, "on").fire(asynchronous, least, most)
		f.Weather = true
		return f
	}
}

func TestStandbyThatLagsRepeatsNoIDWithTheLossGuard(t *testing.T) {
	Burn(t, laggingStandby(0, lagging), chaos.Guard,
		Mutant{Rules: chaos.NoGuard, Light: laggingStandby(lagging, lagging+time.Second)})
}

// synchronousStandby returns a fire on a standby for which commits wait. A cluster with this
// setting must forget something that it has confirmed, or nothing.
func synchronousStandby(setting, store string, least, most time.Duration, forgets bool) func(t *testing.T) Fire {
	return func(t *testing.T) Fire {
		needPostgres(t)
		f := newPostgres(t, NewNetwork(t), true, setting).fire(store, least, most)
		f.Weather = true
		f.May.DirtyReads = true // see TestRowIsFoundLostInAStateThatAFailoverUndoes
		f.History = t.TempDir()
		f.Check = func(t *testing.T) {
			if got := f.forgotten(t); (got != "") != forgets {
				t.Errorf("the cluster has forgotten %q; want something: %t", got, forgets)
			}
		}
		return f
	}
}

// The server's default would not wait for the standby, and the store does.
func TestSynchronousStandbyRepeatsNoID(t *testing.T) {
	Burn(t, synchronousStandby("local", synchronous, 0, 4*time.Second, false), chaos.Fence,
		Mutant{Rules: chaos.NoGuard, Light: synchronousStandby("local", notRaised, lagging, lagging+time.Second, true)})
}

// The holders are left alone, so that the longest pause is the failover's. It says
// something on a machine that is idle otherwise.
func TestLongestPauseOfAFailoverOfPostgreSQL(t *testing.T) {
	Nightly(t)
	f := synchronousStandby("on", synchronous, 0, 0, false)(t)
	f.Weather, f.Calm = false, true
	f.Run(t, chaos.Fence)
}

// A hasty connection is a mutant: transactions that do not see that their context has
// ended, and do not know that there is a standby to ask for. The context ends earlier for
// the driver, so that nothing is to be seen after COMMIT.
type hasty struct{ pqConn }

func (c hasty) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	return c.pqConn.QueryContext(ctx, withoutStandby(text), args)
}

// A pqConn is what database/sql knows of a connection of lib/pq.
type pqConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.QueryerContext
	driver.ExecerContext
	driver.SessionResetter
	driver.Validator
}

func (c hasty) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	deadline, _ := ctx.Deadline()
	ctx, cancel := context.WithDeadline(ctx, deadline.Add(-time.Second))
	tx, err := c.pqConn.BeginTx(ctx, options)
	return hastyTx{tx, cancel}, err
}

type hastyTx struct {
	driver.Tx
	cancel context.CancelFunc
}

func (t hastyTx) Commit() error {
	defer t.cancel()
	return t.Tx.Commit()
}

func (t hastyTx) Rollback() error {
	defer t.cancel()
	return t.Tx.Rollback()
}

// claim asks for a row, for three seconds at most.
func claim(ctx context.Context, s lease.Store, owner string) (leasestore.Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	return s.Claim(ctx, leasestore.Claim{
		Space: leasestore.Space{Namespace: "n", Workers: 4, Layout: "l"}, Owner: owner, Nonce: owner,
		Window: 60_000, Now: leasestore.MillisOf(time.Now()), Skew: 5000,
	})
}

func TestWriteThatNoStandbyHasIsNotConfirmed(t *testing.T) {
	needPostgres(t)
	c := newPostgres(t, NewNetwork(t), true, "local")
	byPGX, err := pgxConnector(c.dsn())
	if err != nil {
		t.Fatal(err)
	}
	byPQ, err := pqConnector(c.dsn())
	if err != nil {
		t.Fatal(err)
	}
	claims := map[string]lease.Store{}
	open := func(owner string, d driver.Connector, wrap func(driver.Conn) driver.Conn) {
		if claims[owner], err = newSQLLease(d, nil, wrap); err != nil {
			t.Fatal(err)
		}
	}
	open("pgx", byPGX, nil)
	open("pq", byPQ, nil)
	open("mutant", byPQ, func(c driver.Conn) driver.Conn { return hasty{c.(pqConn)} })
	Until(t.Context(), t, "the tables", func() error { return claims["pgx"].(*sqllease.Store).CreateTables(t.Context()) })
	tries := 0
	Until(t.Context(), t, "a claim", func() error {
		tries++
		_, err := claim(t.Context(), claims["pgx"], fmt.Sprint("before", tries))
		return err
	})
	before := c.owners()
	c.detach()
	for owner, s := range claims {
		_, err := claim(t.Context(), s, owner)
		if mutant := owner == "mutant"; (err == nil) != mutant {
			t.Errorf("Claim that no standby has, by %s = %v; want it to succeed: %t", owner, err, mutant)
		}
	}
	if err := errors.Join(c.primary.end(t.Context()), c.promote(t.Context())); err != nil {
		t.Fatal(err)
	}
	if got := c.owners(); !slices.Equal(got, before) {
		t.Errorf("after the failover the rows have the owners %q; want %q, since no standby had more", got, before)
	}
}

// PostgreSQL shows a write whose wait for the standby was cancelled. Here it is a release.
// Its holder is told that nobody knows the outcome, and asks again. It finds the row lost.
// The standby, once promoted, has the row as it was.
//
// It does no harm: the holder draws no ID, and others wait for the row a little longer.
// That is why the histories of such clusters are checked with Allowance.DirtyReads.
func TestRowIsFoundLostInAStateThatAFailoverUndoes(t *testing.T) {
	needPostgres(t)
	c := newPostgres(t, NewNetwork(t), true, "local")
	connector, err := pgxConnector(c.dsn())
	if err != nil {
		t.Fatal(err)
	}
	s, err := newSQLLease(connector, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	Until(t.Context(), t, "the tables", func() error { return s.(*sqllease.Store).CreateTables(t.Context()) })
	var held leasestore.Reply
	tries := 0
	Until(t.Context(), t, "a claim", func() (err error) {
		tries++
		held, err = claim(t.Context(), s, fmt.Sprint(tries))
		return err
	})
	space, row := leasestore.Space{Namespace: "n", Workers: 4, Layout: "l"}, held.Row
	renew := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		now := leasestore.MillisOf(time.Now())
		_, err := s.Renew(ctx, leasestore.Renewal{Space: space, Worker: row.Worker, Epoch: row.Epoch, Owner: row.Owner,
			Known: []string{row.Nonce}, Nonce: "renewed", Next: now, Until: row.Until, Window: 60_000, Now: now, Skew: 5000})
		return err
	}
	c.detach()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	err = s.Release(ctx, leasestore.Release{Space: space, Worker: row.Worker, Epoch: row.Epoch, Owner: row.Owner,
		Known: []string{row.Nonce}, Nonce: "released", End: row.Until})
	if lost := (*lease.LostError)(nil); err == nil || errors.As(err, &lost) {
		t.Fatalf("Release that no standby has = %v; want an error that says no outcome", err)
	}
	Until(t.Context(), t, "the row is found lost", func() error {
		err := renew()
		if lost := (*lease.LostError)(nil); errors.As(err, &lost) {
			return nil
		}
		return fmt.Errorf("Renew after it = %w; want a *lease.LostError", err)
	})
	if err := errors.Join(c.primary.end(t.Context()), c.promote(t.Context())); err != nil {
		t.Fatal(err)
	}
	if err := renew(); err != nil {
		t.Errorf("Renew after the failover = %v; want nil, since the standby has not had the release", err)
	}
}

// owners returns the owners of rows that the primary knows.
func (c *postgres) owners() (owners []string) {
	c.t.Helper()
	rows, err := c.primary.admin.QueryContext(c.t.Context(), "SELECT owner FROM snowkey_leases WHERE owner <> '' ORDER BY owner")
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var owner string
		if err := rows.Scan(&owner); err != nil {
			c.t.Fatal(err)
		}
		owners = append(owners, owner)
	}
	if err := rows.Err(); err != nil {
		c.t.Fatal(err)
	}
	return owners
}
