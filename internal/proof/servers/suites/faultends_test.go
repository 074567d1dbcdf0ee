package servers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/lease/sqllease"
	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/core/segment/sqlsegment"
	"github.com/snowkey/snowkey/core/serial"
	"github.com/snowkey/snowkey/core/serial/sqlserial"
	"github.com/snowkey/snowkey/internal/proof/cases/sqlxcases"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

// A server that accepts connections and never answers is what a cut cable and a stopped host look like. No driver of
// the three returns from each of its calls then. All calls of faultCalls end with their contexts,
// and so do those here; no more is claimed of them.

// endingCalls are kinds of calls. Each is prepared while the server answers.
func endingCalls() (all []faultCall) {
	of := func(name string, prepare func(s endingStores) (func(context.Context) error, error)) {
		all = append(all, faultCall{name: name, ends: true, tables: endingTables, make: func(ctx context.Context, g *faultGroup, cell int64, db *sqlx.DB) (*faultRun, error) {
			s, err := g.endingStores(ctx, cell, db)
			if err != nil {
				return nil, err
			}
			call, err := prepare(s)
			return &faultRun{do: func(ctx context.Context, _ *sqlx.DB) error { return call(ctx) }, within: true}, err
		}})
	}
	for name, call := range endingAtOnce {
		of(name, func(s endingStores) (func(context.Context) error, error) {
			return func(ctx context.Context) error { return call(ctx, s) }, nil
		})
	}
	for name, prepare := range endingPrepared {
		of(name, prepare)
	}
	return all
}

// endingAtOnce need nothing but the stores.
var endingAtOnce = map[string]func(ctx context.Context, s endingStores) error{
	"sqllease.CreateTables": func(ctx context.Context, s endingStores) error { return s.leases.CreateTables(ctx) },
	"sqllease.Rows": func(ctx context.Context, s endingStores) error {
		_, _, err := s.leases.Rows(ctx, s.claim.Space)
		return err
	},
	"lease.Acquire": func(ctx context.Context, s endingStores) error {
		return failing(lease.Acquire(ctx, s.leases, s.leaseConfig()))
	},
	"lease.Fence": func(ctx context.Context, s endingStores) error {
		return lease.Fence(ctx, s.leases, s.leaseConfig(), time.Now())
	},
	"sqlsegment.CreateTables": func(ctx context.Context, s endingStores) error { return s.segments.CreateTables(ctx) },
	"sqlsegment.Create": func(ctx context.Context, s endingStores) error {
		return s.segments.Create(ctx, segment.Row{Tag: s.tag + "-new", Next: 1, Step: 10, Stride: 1})
	},
	"sqlsegment.Rows":  func(ctx context.Context, s endingStores) error { return failing(s.segments.Rows(ctx)) },
	"sqlsegment.Floor": func(ctx context.Context, s endingStores) error { return failing(s.segments.Floor(s.column)(ctx)) },
	"sqlsegment.RaiseAboveMax": func(ctx context.Context, s endingStores) error {
		return failing(s.segments.RaiseAboveMax(ctx, s.tag, s.column))
	},
	"sqlsegment.Raise": func(ctx context.Context, s endingStores) error { return failing(s.segments.Raise(ctx, s.tag, 1000)) },
	"sqlsegment.RaiseAbove": func(ctx context.Context, s endingStores) error {
		return failing(s.segments.RaiseAbove(ctx, s.tag, 1000))
	},
	"sqlsegment.Freeze": func(ctx context.Context, s endingStores) error { return failing(s.segments.Freeze(ctx, s.tag)) },
	"segment.Restride":  func(ctx context.Context, s endingStores) error { return segment.Restride(ctx, s.tag, 2, s.segments) },
	"segment.Spread": func(ctx context.Context, s endingStores) error {
		spread, err := segment.Spread(s.segments)
		if err != nil {
			return err
		}
		return failing(spread.Take(ctx, segment.Take{Tag: s.tag}))
	},
	"sqlserial.CreateTables": func(ctx context.Context, s endingStores) error { return s.serials.CreateTables(ctx) },
	"sqlserial.Define": func(ctx context.Context, s endingStores) error {
		s.series.Name += "-new"
		s.series.Scope += "-new"
		return s.serials.Define(ctx, s.series)
	},
	"sqlserial.Gaps": func(ctx context.Context, s endingStores) error {
		return failing(s.serials.Gaps(ctx, s.series.Name, "", func(func(int64) bool) {}))
	},
	"sqlserial.ClosePeriod": func(ctx context.Context, s endingStores) error {
		return s.serials.ClosePeriod(ctx, s.series.Name, time.Now())
	},
}

var endingPrepared = map[string]func(s endingStores) (func(context.Context) error, error){
	"lease.Close": func(s endingStores) (func(context.Context) error, error) {
		l, err := lease.Acquire(s.ctx, s.leases, s.leaseConfig())
		if err != nil {
			return nil, err
		}
		return l.Close, nil
	},
	"sqlsegment.Thaw": func(s endingStores) (func(context.Context) error, error) {
		r, err := s.segments.Freeze(s.ctx, s.tag)
		r.Next += 100
		return func(ctx context.Context) error { return s.segments.Thaw(ctx, r) }, err
	},
	"segment.Next": func(s endingStores) (func(context.Context) error, error) {
		a, err := s.allocator()
		return func(ctx context.Context) error { return failing(a.Next(ctx)) }, err
	},
	"segment.Fill": func(s endingStores) (func(context.Context) error, error) {
		a, err := s.allocator()
		return func(ctx context.Context) error { return a.Fill(ctx, make([]types.Snowflake, 3)) }, err
	},
	"segment.Close, giving back": func(s endingStores) (func(context.Context) error, error) {
		a, err := s.allocator()
		if err != nil {
			return nil, err
		}
		return a.Close, failing(a.Next(s.ctx))
	},
	"segment.Close, fetching": func(s endingStores) (func(context.Context) error, error) {
		a, err := s.allocator()
		return func(ctx context.Context) error {
			err := failing(a.Next(ctx))
			within, cancel := context.WithTimeout(s.ctx, faultHold)
			defer cancel()
			return errors.Join(a.Close(within), err) // nil of Close if nothing was held
		}, err
	},
	"segment.Set.Close": func(s endingStores) (func(context.Context) error, error) {
		set, err := segment.NewSet(s.segments, segment.Config{})
		if err != nil {
			return nil, err
		}
		return set.Close, failing(set.Next(s.ctx, s.tag))
	},
	"serial.Counter.Next": func(s endingStores) (func(context.Context) error, error) {
		c, err := serial.NewCounter(s.serials, s.series, 10)
		return func(ctx context.Context) error { return failing(c.Next(ctx, time.Now())) }, err
	},
	"serial.Counter.Close": func(s endingStores) (func(context.Context) error, error) {
		c, err := serial.NewCounter(s.serials, s.series, 10)
		return func(ctx context.Context) error {
			taken := make(chan struct{})
			go func() {
				defer close(taken)
				_, _ = c.Next(s.ctx, time.Now())
			}()
			select {
			case <-taken:
			case <-s.silent: // while Next waits for an answer
			}
			return c.Close(ctx)
		}, err
	},
	"InsertMany in the caller's transaction": endingWithin(func(ctx context.Context, h *sqlxhelper.Helper, tx *sqlx.Tx, rows []faultOrder) error {
		return h.InsertMany(ctx, tx, "orders", rows)
	}),
	"InsertSeq in the caller's transaction": endingWithin(func(ctx context.Context, h *sqlxhelper.Helper, tx *sqlx.Tx, rows []faultOrder) error {
		return failing(sqlxhelper.InsertSeq(ctx, h, tx, "orders", pointers(rows)))
	}),
}

func endingWithin(insert func(ctx context.Context, h *sqlxhelper.Helper, tx *sqlx.Tx, rows []faultOrder) error) func(s endingStores) (func(context.Context) error, error) {
	return func(s endingStores) (func(context.Context) error, error) {
		tx, err := s.db.BeginTxx(s.ctx, nil)
		return func(ctx context.Context) error {
			return insert(ctx, sqlxhelper.New(sqlxcases.NewCounter(0)), tx, faultRows(0, 3, 0))
		}, err
	}
}

func endingTables(ctx context.Context, g *faultGroup) error {
	return errors.Join(faultTables(ctx, g), leaseTables(ctx, g), segmentTables(ctx, g), counterTables(ctx, g))
}

// endingStores are stores on one pool, with tables and rows of a cell.
type endingStores struct {
	ctx      context.Context //nolint:containedctx // of the group
	db       *sqlx.DB
	tag      string
	silent   <-chan struct{} // closed when the server no longer answers
	leases   *sqllease.Store
	claim    leasestore.Claim // of a space that is there
	segments *sqlsegment.Store
	column   sqlsegment.Column
	serials  *sqlserial.Store
	series   serial.Series
}

func (g *faultGroup) endingStores(ctx context.Context, cell int64, db *sqlx.DB) (s endingStores, err error) {
	tag := fmt.Sprint("cell-", cell)
	s = endingStores{
		ctx: g.t.Context(), db: db, tag: tag, silent: g.proxy.Silent(), claim: faultClaim(cell), series: serial.Series{Name: tag, Scope: tag, Digits: 6},
		column: sqlsegment.Column{Table: g.table(sqlsegment.DefaultTable), Name: "max_id"},
	}
	var failed [3]error
	s.leases, failed[0] = g.leases(db)
	s.segments, failed[1] = g.segments(db)
	s.serials, failed[2] = g.counters(db)
	if err := errors.Join(failed[:]...); err != nil {
		return s, err
	}
	return s, errors.Join(failing(s.leases.Claim(ctx, s.claim)),
		s.segments.Create(ctx, segment.Row{Tag: tag, Next: 1, Step: 10, Stride: 1}), s.serials.Define(ctx, s.series))
}

func (s endingStores) leaseConfig() lease.Config {
	return lease.Config{Namespace: s.tag + "-lease", Layout: core.Default(), Logger: quiet, AcquireWait: time.Hour}
}

func (s endingStores) allocator() (*segment.Allocator, error) {
	return segment.New(s.segments, segment.Config{Tag: s.tag, MaxWait: -1, Logger: quiet})
}

// failing is the error of a call that returns something more.
func failing[T any](_ T, err error) error { return err }
