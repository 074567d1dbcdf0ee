package servers

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
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

// silentStores are stores on one pool, and what calls need that began while the server
// still answered.
type silentStores struct {
	t        *testing.T
	db       *sql.DB
	tag      string // of the cell alone
	leases   *sqllease.Store
	claim    leasestore.Claim
	holder   leasestore.Claim // of another worker, and its reply
	held     leasestore.Reply
	segments *sqlsegment.Store
	taken    segment.Range
	serials  *sqlserial.Store
	series   serial.Series
}

// silentStores returns the stores of one cell, whose tables and rows are there.
func (g leaseTarget) silentStores(t *testing.T, db *sql.DB, tag string) silentStores {
	t.Helper()
	s := silentStores{
		t: t, db: db, tag: tag, series: serial.Series{Name: tag, Scope: tag, Digits: 6}, leases: g.store(t, db), segments: g.segments(t, db, ""),
		claim: leasestore.Claim{
			Space: leasestore.Space{Namespace: tag, Workers: 4, Layout: "l"}, Owner: "o", Nonce: "n", Window: 60_000,
			Now: leasestore.MillisOf(time.Now()), Skew: 60_000,
		},
	}
	var err error
	s.serials, err = sqlserial.New(db, g.config(sqlserial.DefaultTable))
	must(t, err)
	must(t, errors.Join(s.segments.CreateTables(t.Context()), s.serials.CreateTables(t.Context()), s.serials.Define(t.Context(), s.series),
		s.segments.Create(t.Context(), segment.Row{Tag: tag, Next: 1, Step: 10, Stride: 1})))
	s.holder, s.held = s.claim, mustClaim(t, s.leases, s.claim)
	s.taken, err = s.segments.Take(t.Context(), segment.Take{Tag: tag})
	must(t, err)
	// The next holder is the word that the proxy waits for, because a statement that commits by itself has no other, once
	// it is prepared.
	s.claim.Owner, s.claim.Nonce, s.claim.Holder = "another", "another", "COMMIT"
	return s
}

func (s silentStores) leaseConfig() lease.Config {
	return lease.Config{Namespace: s.tag + "-lease", Layout: core.Default(), Logger: quiet, AcquireWait: time.Hour}
}

func (s silentStores) column() sqlsegment.Column {
	return sqlsegment.Column{Table: "leaf_alloc", Name: "max_id"}
}

func (s silentStores) allocator() *segment.Allocator {
	a, err := segment.New(s.segments, segment.Config{Tag: s.tag, MaxWait: -1, Logger: slog.New(slog.DiscardHandler)})
	must(s.t, err)
	return a
}

func (s silentStores) counter() *serial.Counter {
	c, err := serial.NewCounter(s.serials, s.series, 10)
	must(s.t, err)
	return c
}

// failing is the error of a call that returns something more.
func failing[T any](_ T, err error) error { return err }

// A silentCall is made while the server is silent.
type silentCall func(ctx context.Context, s silentStores) error

// silentReads send no COMMIT.
var silentReads = map[string]silentCall{
	"sqllease.Rows": func(ctx context.Context, s silentStores) error {
		_, _, err := s.leases.Rows(ctx, s.claim.Space)
		return err
	},
	"sqlsegment.Rows": func(ctx context.Context, s silentStores) error { return failing(s.segments.Rows(ctx)) },
	"sqlsegment.RaiseAboveMax": func(ctx context.Context, s silentStores) error {
		return failing(s.segments.RaiseAboveMax(ctx, s.tag, s.column()))
	},
	"sqlsegment.Floor": func(ctx context.Context, s silentStores) error { return failing(s.segments.Floor(s.column())(ctx)) },
	"sqlserial.Gaps": func(ctx context.Context, s silentStores) error {
		return failing(s.serials.Gaps(ctx, s.series.Name, "", func(func(int64) bool) {}))
	},
}

var silentWrites = map[string]silentCall{
	"sqllease.CreateTables": func(ctx context.Context, s silentStores) error { return s.leases.CreateTables(ctx) },
	"sqllease.Claim":        func(ctx context.Context, s silentStores) error { return failing(s.leases.Claim(ctx, s.claim)) },
	"sqllease.Renew": func(ctx context.Context, s silentStores) error {
		r := leaseRenewal(s.holder, s.held)
		return failing(s.leases.Renew(ctx, r))
	},
	"sqllease.Release": func(ctx context.Context, s silentStores) error {
		return s.leases.Release(ctx, leasestore.Release{Space: s.claim.Space, Worker: s.held.Row.Worker, Epoch: s.held.Row.Epoch, Owner: s.holder.Owner,
			Known: []string{s.held.Row.Nonce}, Nonce: "released", End: s.held.Row.Until})
	},
	"sqllease.Fence": func(ctx context.Context, s silentStores) error {
		return s.leases.Fence(ctx, leasestore.Fencing{Space: s.claim.Space, Nonce: "f", Until: s.claim.Now})
	},
	"lease.Acquire": func(ctx context.Context, s silentStores) error {
		return failing(lease.Acquire(ctx, s.leases, s.leaseConfig()))
	},
	"lease.Fence": func(ctx context.Context, s silentStores) error {
		return lease.Fence(ctx, s.leases, s.leaseConfig(), time.Now())
	},
	"sqlsegment.CreateTables": func(ctx context.Context, s silentStores) error { return s.segments.CreateTables(ctx) },
	"sqlsegment.Create": func(ctx context.Context, s silentStores) error {
		return s.segments.Create(ctx, segment.Row{Tag: s.tag + "-new", Next: 1, Step: 10, Stride: 1})
	},
	"sqlsegment.Take": func(ctx context.Context, s silentStores) error {
		return failing(s.segments.Take(ctx, segment.Take{Tag: s.tag}))
	},
	"sqlsegment.GiveBack": func(ctx context.Context, s silentStores) error {
		return s.segments.GiveBack(ctx, segment.GiveBack{Tag: s.tag, First: s.taken.First, End: s.taken.Last + 1, Version: s.taken.Version})
	},
	"sqlsegment.Raise": func(ctx context.Context, s silentStores) error { return failing(s.segments.Raise(ctx, s.tag, 1000)) },
	"sqlsegment.RaiseAbove": func(ctx context.Context, s silentStores) error {
		return failing(s.segments.RaiseAbove(ctx, s.tag, 1000))
	},
	"sqlsegment.Freeze": func(ctx context.Context, s silentStores) error { return failing(s.segments.Freeze(ctx, s.tag)) },
	"segment.Restride":  func(ctx context.Context, s silentStores) error { return segment.Restride(ctx, s.tag, 2, s.segments) },
	"segment.Next":      func(ctx context.Context, s silentStores) error { return failing(s.allocator().Next(ctx)) },
	"segment.Fill": func(ctx context.Context, s silentStores) error {
		return s.allocator().Fill(ctx, make([]types.Snowflake, 3))
	},
	"segment.Close, fetching": func(ctx context.Context, s silentStores) error {
		a := s.allocator()
		if err := failing(a.Next(ctx)); err == nil {
			return errors.New("a number from a silent server")
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), silentFor)
		defer cancel()
		return errors.Join(a.Close(ctx), context.DeadlineExceeded) // nothing was held
	},
	"segment.Spread": func(ctx context.Context, s silentStores) error {
		spread, err := segment.Spread(s.segments)
		must(s.t, err)
		return failing(spread.Take(ctx, segment.Take{Tag: s.tag}))
	},
	"sqlserial.CreateTables": func(ctx context.Context, s silentStores) error { return s.serials.CreateTables(ctx) },
	"sqlserial.Define": func(ctx context.Context, s silentStores) error {
		s.series.Name += "-new"
		return s.serials.Define(ctx, s.series)
	},
	"sqlserial.Take": func(ctx context.Context, s silentStores) error {
		return failing(s.serials.Take(ctx, s.series.Name, "", time.Now(), 1))
	},
	"sqlserial.ClosePeriod": func(ctx context.Context, s silentStores) error {
		return s.serials.ClosePeriod(ctx, s.series.Name, time.Now())
	},
	"serial.Counter.Next": func(ctx context.Context, s silentStores) error { return failing(s.counter().Next(ctx, time.Now())) },
	"serial.Counter.Close": func(ctx context.Context, s silentStores) error {
		c := s.counter()
		long, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		s.t.Cleanup(cancel)
		taking := make(chan struct{})
		go func() {
			close(taking)
			_, _ = c.Next(long, time.Now())
		}()
		<-taking
		time.Sleep(silentFor / 2) // it is at it
		return c.Close(ctx)
	},
}

// silentEnds are prepared while the server answers.
var silentEnds = map[string]func(s silentStores) func(context.Context) error{
	"lease.Close": func(s silentStores) func(context.Context) error {
		l, err := lease.Acquire(s.t.Context(), s.leases, s.leaseConfig())
		must(s.t, err)
		return l.Close
	},
	"sqlsegment.Thaw": func(s silentStores) func(context.Context) error {
		r, err := s.segments.Freeze(s.t.Context(), s.tag)
		must(s.t, err)
		r.Next += 100
		return func(ctx context.Context) error { return s.segments.Thaw(ctx, r) }
	},
	"segment.Close, giving back": func(s silentStores) func(context.Context) error {
		a := s.allocator()
		must(s.t, failing(a.Next(s.t.Context())))
		return a.Close
	},
	"segment.Set.Close": func(s silentStores) func(context.Context) error {
		set, err := segment.NewSet(s.segments, segment.Config{})
		must(s.t, err)
		must(s.t, failing(set.Next(s.t.Context(), s.tag)))
		return set.Close
	},
	"sqlserial.NextIn": func(s silentStores) func(context.Context) error {
		tx, err := s.db.BeginTx(s.t.Context(), nil)
		must(s.t, err)
		return func(ctx context.Context) error { return failing(s.serials.NextIn(ctx, tx, s.series, time.Now())) }
	},
}

// silentFor is how long a call may wait for the silent server.
const silentFor = 500 * time.Millisecond

// A server that accepts connections and never answers is what a cut cable and a stopped host look like. No driver of
// the three returns from each of its calls then.
func TestEveryCallEndsWithItsContextThoughTheServerIsSilent(t *testing.T) {
	servers := newCrowd(t, 5)
	defer servers.wait()
	for name, make := range map[string]func(t *testing.T) leaseTarget{
		"pgx":     func(t *testing.T) leaseTarget { return leasePostgres(t, pgxConnector) },
		"pq":      func(t *testing.T) leaseTarget { return leasePostgres(t, pqConnector) },
		"MariaDB": func(t *testing.T) leaseTarget { return leaseMariaDB(t, func(*mysql.Config) {}) },
		"MySQL":   func(t *testing.T) leaseTarget { return leaseMySQL(t, servertest.MySQL(t), func(*mysql.Config) {}) },
	} {
		servers.run(name, func(t *testing.T) { make(t).callSilent(t) })
	}
}

// callSilent makes each call against a server that is silent from before the call on, and each that writes against one
// that is silent from its COMMIT on.
func (g leaseTarget) callSilent(t *testing.T) {
	cells := newCrowd(t, 6) // each has two connections, of the hundred that a server takes
	defer cells.wait()
	n := 0
	cell := func(name string, atCommit bool, prepare func(s silentStores) func(context.Context) error) {
		n++
		tag := fmt.Sprint("cell-", n)
		cells.run(fmt.Sprintf("%s, at COMMIT %v", name, atCommit), func(t *testing.T) {
			g, p := g.through(t)
			connector, err := g.connect(g.dsn)
			must(t, err)
			db := sql.OpenDB(connector) // not closed: with drivers that hang, that does not end either
			call := prepare(g.silentStores(t, db, tag))
			ctx, cancel := context.WithTimeout(t.Context(), silentFor)
			defer cancel()
			if atCommit { // which the server still gets
				p.Arm(faultproxy.Fault{On: faultproxy.Sending(faultproxy.Client, "COMMIT"), Do: faultproxy.Silence})
				ctx = expiring{t.Context(), p.Silent()}
			} else {
				p.Silence()
			}
			ended := make(chan error, 1)
			go func() { ended <- call(ctx) }()
			select {
			case err := <-ended:
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%s = %v; want the end of its context", name, err)
				}
			case <-time.After(hangs):
				t.Errorf("%s has not returned after %v; want it to end with its context", name, hangs)
			}
		})
	}
	of := func(c silentCall) func(s silentStores) func(context.Context) error {
		return func(s silentStores) func(context.Context) error {
			return func(ctx context.Context) error { return c(ctx, s) }
		}
	}
	for name, c := range silentReads {
		cell(name, false, of(c))
	}
	for name, c := range silentWrites {
		cell(name, false, of(c))
		cell(name, true, of(c))
	}
	for name, prepare := range silentEnds {
		cell(name, false, prepare)
		if name != "sqlserial.NextIn" { // whose transaction is the caller's
			cell(name, true, prepare)
		}
	}
}
