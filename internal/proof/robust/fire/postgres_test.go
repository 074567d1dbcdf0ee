//go:build linux

package fire

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/lease/sqllease"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/proof/robust/chaos"
	"github.com/snowkey/snowkey/sqlxhelper"
)

const (
	asynchronous = "PostgreSQL, asynchronous standby"
	synchronous  = "PostgreSQL, synchronous standby"
	notRaised    = "PostgreSQL, synchronous standby, durability not raised"
)

func init() {
	stores[asynchronous], stores[synchronous] = openPostgres, openPostgres
	stores[notRaised] = func(dsn string) (lease.Store, error) {
		c, err := pgxConnector(dsn)
		return newSQLLease(c, err, func(c driver.Conn) driver.Conn { return altered{c.(*stdlib.Conn), withoutRaising} })
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

// An altered connection is a mutant: it asks something else than it should.
type altered struct {
	*stdlib.Conn
	alter func(text string) string
}

func (c altered) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	return c.Conn.QueryContext(ctx, c.alter(text), args)
}

// withoutRaising leaves synchronous_commit as the server has it, and nobody asks for the standby after the commit.
func withoutRaising(text string) string {
	return strings.ReplaceAll(withoutStandby(text), "set_config('synchronous_commit', 'on', true)", "'as it was'")
}

// fire returns what puts the cluster on fire: a standby that lags by least to most.
func (c *postgres) fire(least, most time.Duration) Fire {
	c.t.Helper()
	// The tables are there before the first claim, and so is the standby's copy of them.
	s, err := sqllease.New(c.admin(), sqlstore.Config{Dialect: sqlstore.PostgreSQL, Logger: quiet})
	if err == nil {
		err = s.CreateTables(c.t.Context())
	}
	if err == nil {
		err = c.caughtUp(c.t.Context())
	}
	must(c.t, err)
	f := c.cluster.fire()
	f.Strike = c.failover(least, most)
	return f
}

// lagging is so long that all rows have expired on the standby by then.
const lagging = 7 * time.Second

// laggingStandby returns a fire on an asynchronous standby that lags by least to most.
func laggingStandby(least, most time.Duration) func(t *testing.T) Fire {
	return func(t *testing.T) Fire { return newPostgres(t, asynchronous, false, "on").fire(least, most) }
}

// synchronousStandby returns a fire on a standby for which commits wait. A cluster with this
// setting must forget something that it has confirmed, or nothing.
func synchronousStandby(setting, store string, least, most time.Duration, forgets bool) func(t *testing.T) Fire {
	return func(t *testing.T) Fire {
		f := newPostgres(t, store, true, setting).fire(least, most)
		f.DirtyReads = true // see TestRowIsFoundLostInAStateThatAFailoverUndoes
		f.Check = func(t *testing.T, r chaos.Result) {
			if got := forgotten(r.Operations); len(r.Operations) == 0 || (got != "") != forgets {
				t.Errorf("of %d operations the cluster has forgotten %q; want something: %t", len(r.Operations), got, forgets)
			}
		}
		return f
	}
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

// PostgreSQL shows a row whose commit was cut off before the standby had it. pgx returns an
// error then, and lib/pq none.
func TestWhatNoStandbyHasIsNotConfirmed(t *testing.T) {
	c := newPostgres(t, synchronous, true, "local")
	claims := map[string]lease.Store{}
	for owner, d := range map[string]struct {
		connect func(dsn string) (driver.Connector, error)
		wrap    func(driver.Conn) driver.Conn
	}{
		"pgx":    {pgxConnector, nil},
		"pq":     {pqConnector, nil},
		"mutant": {pqConnector, func(c driver.Conn) driver.Conn { return hasty{c.(pqConn)} }},
	} {
		connector, err := d.connect(c.dsn)
		if claims[owner], err = newSQLLease(connector, err, d.wrap); err != nil {
			t.Fatal(err)
		}
	}
	c.firstClaim(claims["pgx"])
	must(t, c.exec(t.Context(), orderTables...))
	g, err := core.New(core.Config{Worker: core.StaticWorker(1)})
	must(t, err)
	rows := func() (owners string, orders int) {
		must(t, c.admin().QueryRowContext(t.Context(), "SELECT COALESCE((SELECT string_agg(owner, ' ' ORDER BY owner) FROM snowkey_leases WHERE owner <> ''), ''), (SELECT count(*) FROM fire_orders)").Scan(&owners, &orders))
		return owners, orders
	}
	before, _ := rows()
	must(t, c.caughtUp(t.Context()))
	c.detach()
	for owner, s := range claims {
		_, err := claim(t.Context(), s, owner)
		if mutant := owner == "mutant"; (err == nil) != mutant {
			t.Errorf("Claim that no standby has, by %s = %v; want it to succeed: %t", owner, err, mutant)
		}
	}
	for i, name := range []string{"pgx", "postgres"} {
		db, err := sqlx.Open(name, c.dsn+" options='-c synchronous_commit=on'")
		must(t, err)
		defer func() { _ = db.Close() }()
		o := &order{Number: name, LineCount: 1, Lines: []orderLine{{Quantity: 1}}}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		err = sqlxhelper.InTx(ctx, db, nil, func(tx *sqlx.Tx) error {
			return sqlxhelper.New(g).InsertGraph(ctx, tx, "fire_orders", o)
		})
		cancel()
		if !errors.Is(err, sqlxhelper.ErrCommitUnknown) {
			t.Errorf("by %s: InTx of what no standby has = %v; want %v", name, err, sqlxhelper.ErrCommitUnknown)
		}
		if _, orders := rows(); orders != i+1 {
			t.Errorf("by %s: the primary shows %d orders; want %d, or the test shows nothing", name, orders, i+1)
		}
	}
	must(t, c.fail(t.Context()))
	if got, orders := rows(); got != before || orders > 0 {
		t.Errorf("after the failover the rows have the owners %q, and there are %d orders; want %q and none, since no standby had more", got, orders, before)
	}
}

// firstClaim makes the tables, and claims a row.
func (c *postgres) firstClaim(s lease.Store) (held leasestore.Reply) {
	ctx, tries := c.t.Context(), 0
	Until(ctx, c.t, "the tables", func() error { return s.(*sqllease.Store).CreateTables(ctx) })
	Until(ctx, c.t, "a claim", func() (err error) {
		tries++
		held, err = claim(ctx, s, fmt.Sprint("before", tries))
		return err
	})
	return held
}

// PostgreSQL shows a write whose wait for the standby was cancelled. Here it is a release.
// Its holder is told that the outcome is unknown, and asks again. It finds the row lost.
// The standby, once promoted, has the row as it was.
//
// It does no harm: the holder draws no ID, and others wait for the row a little longer.
// That is why the histories of such clusters are checked with Fire.DirtyReads.
func TestRowIsFoundLostInAStateThatAFailoverUndoes(t *testing.T) {
	c := newPostgres(t, synchronous, true, "local")
	connector, err := pgxConnector(c.dsn)
	s, err := newSQLLease(connector, err, nil)
	must(t, err)
	held := c.firstClaim(s)
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
	must(t, c.fail(t.Context()))
	if err := renew(); err != nil {
		t.Errorf("Renew after the failover = %v; want nil, since the standby has not had the release", err)
	}
}

// What it must find is TestOrdersThatNoStandbyHasAreMissed.
func TestOrdersOnASynchronousStandbyAreWholeOrAbsent(t *testing.T) {
	c := newPostgres(t, "", true, "on")
	Orders{Shop: "PostgreSQL", On: c.cluster, Strike: c.failover(0, 3*time.Second)}.Run(t).Whole(t)
}

// The run that shows that orders which are lost would be found: commits do not wait.
func TestOrdersThatNoStandbyHasAreMissed(t *testing.T) {
	Nightly(t)
	c := newPostgres(t, "", true, "local")
	r := Orders{Shop: "PostgreSQL", On: c.cluster, Strike: c.failover(2*time.Second, 3*time.Second), Once: true}.Run(t)
	if len(r.Problems) == 0 {
		t.Errorf("no problem with %d orders; want some that were lost, or the check finds nothing", r.Orders)
	}
}
