package servers

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/lease/sqllease"
	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/core/segment/sqlsegment"
	"github.com/snowkey/snowkey/core/serial"
	"github.com/snowkey/snowkey/core/serial/sqlserial"
	"github.com/snowkey/snowkey/internal/proof/servers/faultproxy"
	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
	"github.com/snowkey/snowkey/types"
)

// A muffledConnector makes connections that do not answer while the server is silent, and
// know nothing of contexts: the worst driver that there can be.
type muffledConnector struct {
	driver.Connector
	p        *faultproxy.Proxy
	atCommit *atomic.Bool    // it falls silent with the next COMMIT
	ends     <-chan struct{} // the test
}

func (c muffledConnector) hear() error {
	select {
	case <-c.p.Silent():
		<-c.ends
		return driver.ErrBadConn
	default:
		return nil
	}
}

func (c muffledConnector) Connect(ctx context.Context) (driver.Conn, error) {
	if err := c.hear(); err != nil {
		return nil, err
	}
	conn, err := c.Connector.Connect(context.WithoutCancel(ctx))
	if err != nil {
		return nil, err
	}
	return muffledConn{losingConn{conn, func() bool { return false }}, c}, nil
}

type muffledConn struct {
	losingConn
	c muffledConnector
}

func (c muffledConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	if err := c.c.hear(); err != nil {
		return nil, err
	}
	tx, err := c.losingConn.BeginTx(context.WithoutCancel(ctx), opts)
	return muffledTx{tx, c.c}, err
}

func (c muffledConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if err := c.c.hear(); err != nil {
		return nil, err
	}
	return c.losingConn.ExecContext(context.WithoutCancel(ctx), query, args)
}

func (c muffledConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if err := c.c.hear(); err != nil {
		return nil, err
	}
	return c.losingConn.QueryContext(context.WithoutCancel(ctx), query, args)
}

type muffledTx struct {
	driver.Tx
	c muffledConnector
}

func (t muffledTx) Commit() error {
	if t.c.atCommit.Load() {
		t.c.p.Silence()
	}
	if err := t.c.hear(); err != nil {
		return err
	}
	return t.Tx.Commit()
}

func (t muffledTx) Rollback() error {
	if err := t.c.hear(); err != nil {
		return err
	}
	return t.Tx.Rollback()
}

// muffled returns a pool behind a proxy, and what makes that silent with the next COMMIT, which the
// server still gets.
func (g leaseTarget) muffled(t *testing.T, deaf bool) (db *sql.DB, p *faultproxy.Proxy, atCommit func()) {
	t.Helper()
	g, p = g.through(t)
	connector, err := g.connect(g.dsn)
	if err != nil {
		t.Fatalf("no connector for %s", g.driver)
	}
	armed := new(atomic.Bool)
	if deaf {
		connector = muffledConnector{connector, p, armed, t.Context().Done()}
	}
	// It is not closed: with drivers that hang, that does not end either.
	return sql.OpenDB(connector), p, func() {
		armed.Store(true)
		p.Arm(faultproxy.Fault{On: faultproxy.Sending(faultproxy.Client, "COMMIT"), Do: faultproxy.Silence})
	}
}

// silentStores are stores on one pool, and what calls need that began while the server
// still answered.
type silentStores struct {
	db       *sql.DB
	tag      string // of the cell alone
	leases   *sqllease.Store
	segments *sqlsegment.Store
	serials  *sqlserial.Store
	series   serial.Series
}

func (s silentStores) space() leasestore.Space {
	return leasestore.Space{Namespace: s.tag, Workers: 4, Layout: "l"}
}

func (s silentStores) claim() leasestore.Claim {
	// The holder is the word that the proxy waits for, because a statement that commits by itself
	// has no other, once it is prepared.
	return leasestore.Claim{Space: s.space(), Owner: "o", Nonce: "n", Holder: "COMMIT", Window: 60_000, Now: leasestore.MillisOf(time.Now()), Skew: 60_000}
}

func (s silentStores) leaseConfig() lease.Config {
	return lease.Config{Namespace: s.tag + "-lease", Layout: core.Default(), Logger: slog.New(slog.DiscardHandler), AcquireWait: time.Hour}
}

// A silentCall prepares a call while the server answers, and returns it.
type silentCall struct {
	name    string
	noWrite bool // it sends no COMMIT
	prepare func(t *testing.T, s silentStores) (call func(context.Context) error)
}

var silentCalls = []silentCall{
	{"sqllease.CreateTables", false, func(_ *testing.T, s silentStores) func(context.Context) error { return s.leases.CreateTables }},
	{"sqllease.Claim", false, func(_ *testing.T, s silentStores) func(context.Context) error {
		return func(ctx context.Context) error { _, err := s.leases.Claim(ctx, s.claim()); return err }
	}},
	{"sqllease.Renew", false, func(t *testing.T, s silentStores) func(context.Context) error {
		c := s.claim()
		r := mustClaim(t, s.leases, c)
		return func(ctx context.Context) error { _, err := s.leases.Renew(ctx, leaseRenewal(c, r)); return err }
	}},
	{"sqllease.Release", false, func(t *testing.T, s silentStores) func(context.Context) error {
		c := s.claim()
		r := mustClaim(t, s.leases, c)
		return func(ctx context.Context) error {
			return s.leases.Release(ctx, leasestore.Release{Space: c.Space, Worker: r.Row.Worker, Epoch: r.Row.Epoch, Owner: c.Owner,
				Known: []string{r.Row.Nonce}, Nonce: "released", End: r.Row.Until})
		}
	}},
	{"sqllease.Fence", false, func(_ *testing.T, s silentStores) func(context.Context) error {
		return func(ctx context.Context) error {
			return s.leases.Fence(ctx, leasestore.Fencing{Space: s.space(), Nonce: "f", Until: leasestore.MillisOf(time.Now())})
		}
	}},
	{"sqllease.Rows", true, func(_ *testing.T, s silentStores) func(context.Context) error {
		return func(ctx context.Context) error { _, _, err := s.leases.Rows(ctx, s.space()); return err }
	}},
	{"lease.Acquire", false, func(_ *testing.T, s silentStores) func(context.Context) error {
		return func(ctx context.Context) error { _, err := lease.Acquire(ctx, s.leases, s.leaseConfig()); return err }
	}},
	{"lease.Close", false, func(t *testing.T, s silentStores) func(context.Context) error {
		l, err := lease.Acquire(t.Context(), s.leases, s.leaseConfig())
		if err != nil {
			t.Fatal(err)
		}
		return l.Close
	}},
	{"lease.Fence", false, func(_ *testing.T, s silentStores) func(context.Context) error {
		return func(ctx context.Context) error { return lease.Fence(ctx, s.leases, s.leaseConfig(), time.Now()) }
	}},

	{"sqlsegment.CreateTables", false, func(_ *testing.T, s silentStores) func(context.Context) error { return s.segments.CreateTables }},
	{"sqlsegment.Create", false, func(_ *testing.T, s silentStores) func(context.Context) error {
		return func(ctx context.Context) error {
			return s.segments.Create(ctx, segment.Row{Tag: s.tag + "-new", Next: 1, Step: 10, Stride: 1})
		}
	}},
	{"sqlsegment.Take", false, func(_ *testing.T, s silentStores) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := s.segments.Take(ctx, segment.Take{Tag: s.tag})
			return err
		}
	}},
	{"sqlsegment.GiveBack", false, func(t *testing.T, s silentStores) func(context.Context) error {
		r, err := s.segments.Take(t.Context(), segment.Take{Tag: s.tag})
		if err != nil {
			t.Fatal(err)
		}
		return func(ctx context.Context) error {
			return s.segments.GiveBack(ctx, segment.GiveBack{Tag: s.tag, First: r.First, End: r.Last + 1, Version: r.Version})
		}
	}},
	{"sqlsegment.Raise", false, func(_ *testing.T, s silentStores) func(context.Context) error {
		return func(ctx context.Context) error { _, err := s.segments.Raise(ctx, s.tag, 1000); return err }
	}},
	{"sqlsegment.RaiseAbove", false, func(_ *testing.T, s silentStores) func(context.Context) error {
		return func(ctx context.Context) error { _, err := s.segments.RaiseAbove(ctx, s.tag, 1000); return err }
	}},
	{"sqlsegment.RaiseAboveMax", true, func(_ *testing.T, s silentStores) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := s.segments.RaiseAboveMax(ctx, s.tag, sqlsegment.Column{Table: "leaf_alloc", Name: "max_id"})
			return err
		}
	}},
	{"sqlsegment.Floor", true, func(_ *testing.T, s silentStores) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := s.segments.Floor(sqlsegment.Column{Table: "leaf_alloc", Name: "max_id"})(ctx)
			return err
		}
	}},
	{"sqlsegment.Freeze", false, func(_ *testing.T, s silentStores) func(context.Context) error {
		return func(ctx context.Context) error { _, err := s.segments.Freeze(ctx, s.tag); return err }
	}},
	{"sqlsegment.Thaw", false, func(t *testing.T, s silentStores) func(context.Context) error {
		r, err := s.segments.Freeze(t.Context(), s.tag)
		if err != nil {
			t.Fatal(err)
		}
		r.Next += 100
		return func(ctx context.Context) error { return s.segments.Thaw(ctx, r) }
	}},
	{"sqlsegment.Rows", true, func(_ *testing.T, s silentStores) func(context.Context) error {
		return func(ctx context.Context) error { _, err := s.segments.Rows(ctx); return err }
	}},
	{"segment.Restride", false, func(_ *testing.T, s silentStores) func(context.Context) error {
		return func(ctx context.Context) error { return segment.Restride(ctx, s.tag, 2, s.segments) }
	}},
	{"segment.Next", false, func(t *testing.T, s silentStores) func(context.Context) error {
		a := s.allocator(t, s.segments)
		return func(ctx context.Context) error { _, err := a.Next(ctx); return err }
	}},
	{"segment.Fill", false, func(t *testing.T, s silentStores) func(context.Context) error {
		a := s.allocator(t, s.segments)
		return func(ctx context.Context) error { return a.Fill(ctx, make([]types.Snowflake, 3)) }
	}},
	{"segment.Close, giving back", false, func(t *testing.T, s silentStores) func(context.Context) error {
		a := s.allocator(t, s.segments)
		if _, err := a.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		return a.Close
	}},
	{"segment.Close, fetching", false, func(t *testing.T, s silentStores) func(context.Context) error {
		a := s.allocator(t, s.segments)
		return func(ctx context.Context) error {
			if _, err := a.Next(ctx); err == nil {
				return errors.New("a number from a silent server")
			}
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), silentFor)
			defer cancel()
			if err := a.Close(ctx); err != nil {
				return err
			}
			return context.DeadlineExceeded // nothing was held
		}
	}},
	{"segment.Set.Close", false, func(t *testing.T, s silentStores) func(context.Context) error {
		set, err := segment.NewSet(s.segments, segment.Config{})
		if err == nil {
			_, err = set.Next(t.Context(), s.tag)
		}
		if err != nil {
			t.Fatal(err)
		}
		return set.Close
	}},
	{"segment.Spread", false, func(t *testing.T, s silentStores) func(context.Context) error {
		spread, err := segment.Spread(s.segments)
		if err != nil {
			t.Fatal(err)
		}
		return func(ctx context.Context) error {
			_, err := spread.Take(ctx, segment.Take{Tag: s.tag})
			return err
		}
	}},

	{"sqlserial.CreateTables", false, func(_ *testing.T, s silentStores) func(context.Context) error { return s.serials.CreateTables }},
	{"sqlserial.Define", false, func(_ *testing.T, s silentStores) func(context.Context) error {
		series := s.series
		series.Name += "-new"
		return func(ctx context.Context) error { return s.serials.Define(ctx, series) }
	}},
	{"sqlserial.Take", false, func(_ *testing.T, s silentStores) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := s.serials.Take(ctx, s.series.Name, "", time.Now(), 1)
			return err
		}
	}},
	{"sqlserial.ClosePeriod", false, func(_ *testing.T, s silentStores) func(context.Context) error {
		return func(ctx context.Context) error { return s.serials.ClosePeriod(ctx, s.series.Name, time.Now()) }
	}},
	{"sqlserial.Gaps", true, func(_ *testing.T, s silentStores) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := s.serials.Gaps(ctx, s.series.Name, "", func(func(int64) bool) {})
			return err
		}
	}},
	{"sqlserial.NextIn", true, func(t *testing.T, s silentStores) func(context.Context) error {
		tx, err := s.db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return func(ctx context.Context) error {
			_, err := s.serials.NextIn(ctx, tx, s.series, time.Now())
			return err
		}
	}},
	{"serial.Counter.Next", false, func(t *testing.T, s silentStores) func(context.Context) error {
		c := s.counter(t)
		return func(ctx context.Context) error { _, err := c.Next(ctx, time.Now()); return err }
	}},
	{"serial.Counter.Close", false, func(t *testing.T, s silentStores) func(context.Context) error {
		c := s.counter(t)
		return func(ctx context.Context) error {
			long, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
			t.Cleanup(cancel)
			taking := make(chan struct{})
			go func() {
				close(taking)
				_, _ = c.Next(long, time.Now())
			}()
			<-taking
			time.Sleep(silentFor / 2) // it is at it
			return c.Close(ctx)
		}
	}},
}

func (s silentStores) allocator(t *testing.T, store segment.Store) *segment.Allocator {
	t.Helper()
	a, err := segment.New(store, segment.Config{Tag: s.tag, MaxWait: -1, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (s silentStores) counter(t *testing.T) *serial.Counter {
	t.Helper()
	c, err := serial.NewCounter(s.serials, s.series, 10)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// silentFor is how long a call may wait for the silent server.
const silentFor = 500 * time.Millisecond

// A server that accepts connections and never answers is what a cut cable and a stopped
// host look like. No driver of the three returns from each of its calls then.
func TestEveryCallEndsWithItsContextThoughTheServerIsSilent(t *testing.T) {
	deaf := func(t *testing.T) leaseTarget { return leasePostgres(t, pgxConnector) }
	servers := newCrowd(t, 5)
	defer servers.wait()
	for name, make := range map[string]func(t *testing.T) leaseTarget{
		"pgx":     func(t *testing.T) leaseTarget { return leasePostgres(t, pgxConnector) },
		"pq":      func(t *testing.T) leaseTarget { return leasePostgres(t, pqConnector) },
		"MariaDB": func(t *testing.T) leaseTarget { return leaseMariaDB(t, func(*mysql.Config) {}) },
		"MySQL":   func(t *testing.T) leaseTarget { return leaseMySQL(t, servertest.MySQL(t), func(*mysql.Config) {}) },
		"deaf":    deaf,
	} {
		servers.run(name, func(t *testing.T) { make(t).callSilent(t, name == "deaf") })
	}
}

// callSilent makes each call against a server that is silent from before the call on, and
// each that writes against one that is silent from its COMMIT on.
func (g leaseTarget) callSilent(t *testing.T, deaf bool) {
	cells := newCrowd(t, 6) // each has two connections, of the hundred that a server takes
	defer cells.wait()
	n := 0
	for _, when := range []string{"before it begins", "at COMMIT"} {
		for _, c := range silentCalls {
			if c.noWrite && when == "at COMMIT" {
				continue
			}
			n++
			tag := fmt.Sprint("cell-", n)
			cells.run(c.name+" "+when, func(t *testing.T) {
				db, p, atCommit := g.muffled(t, deaf)
				call := c.prepare(t, g.silentStores(t, db, tag))
				ctx, cancel := context.WithTimeout(t.Context(), silentFor)
				defer cancel()
				if when == "at COMMIT" {
					atCommit()
					ctx = expiring{t.Context(), p.Silent()}
				} else {
					p.Silence()
				}
				ended := make(chan error, 1)
				go func() { ended <- call(ctx) }()
				select {
				case err := <-ended:
					if !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("%s = %v; want the end of its context", c.name, err)
					}
				case <-time.After(hangs):
					t.Errorf("%s has not returned after %v; want it to end with its context", c.name, hangs)
				}
			})
		}
	}
}

// silentStores returns the stores of one cell, whose tables and rows are there.
func (g leaseTarget) silentStores(t *testing.T, db *sql.DB, tag string) silentStores {
	t.Helper()
	s := silentStores{db: db, tag: tag, series: serial.Series{Name: tag, Scope: tag, Digits: 6}}
	s.leases = g.store(t, db)
	s.segments = g.segments(t, db, "")
	var err error
	if s.serials, err = sqlserial.New(db, g.config(sqlserial.DefaultTable)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.segments.CreateTables(t.Context()), s.serials.CreateTables(t.Context()), s.serials.Define(t.Context(), s.series),
		s.segments.Create(t.Context(), segment.Row{Tag: tag, Next: 1, Step: 10, Stride: 1})); err != nil {
		t.Fatal(err)
	}
	mustClaim(t, s.leases, leasestore.Claim{Space: s.space(), Owner: "makes the rows", Nonce: "n", Window: 60_000, Now: leasestore.MillisOf(time.Now()), Skew: 60_000})
	return s
}
