package sqllease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/snowkey/snowkey/core/internal/tables"
	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/sqlrow"
)

// A register keeps each row of a space in a row of a table, and compares all its columns.
type register struct {
	db  *tables.DB[texts]
	now func() time.Time // the clock of SQLite
}

// texts are the statements of one Store. None depends on anything but dialect and table, so that
// drivers that keep prepared statements keep a dozen.
type texts struct {
	table, meta string // quoted

	space         string // the columns of a view that are about the space; its rows follow
	insertMeta    string
	update, alone string // in a transaction, not bound; by itself, see sqlrow.DB.Write
	history       history
	fence         string // all rows of a space
	spaces        string // joins one row per space
}

type tx = tables.Tx[texts]

func newRegister() *register { return &register{now: time.Now} }

// clock returns the time of SQLite, which has no clock of its own.
func (r *register) clock() time.Time { return r.now() }

func textsOf(d sqlstore.Dialect, names []string) texts {
	r := texts{table: names[0], meta: names[1]}
	whole := " FROM " + r.meta + " WHERE namespace = ? AND datacenter = " + strconv.Itoa(wholeNamespace)
	r.space = "(SELECT layout" + whole + "), (SELECT schema_version" + whole + ")," +
		" (SELECT schema_version FROM " + r.meta + " WHERE namespace = ? AND datacenter = ?)"
	// With a LIMIT, as See asks for, of any number that no database reaches.
	r.spaces = fmt.Sprintf("LEFT JOIN (SELECT namespace, datacenter, layout, schema_version,"+
		" (SELECT COALESCE(MAX(worker) + 1, 0) FROM %s r WHERE r.namespace = m.namespace AND r.datacenter = m.datacenter) AS workers"+
		" FROM %s m WHERE datacenter <> %d LIMIT %d) m ON 1 = 1", r.table, r.meta, wholeNamespace, math.MaxInt32)
	r.insertMeta = d.Bind(fmt.Sprintf("INSERT INTO %s (namespace, datacenter, layout, schema_version) VALUES (?, ?, ?, %d)", r.meta, schemaVersion))
	// The values are computed here: MySQL assigns from left to right, so that an expression
	// would see the new values of the columns before it.
	set := "UPDATE " + r.table + " SET epoch = ?, owner = ?, nonce = ?, reserved_until = ?, renewals = ?, holder = ?"
	where := " WHERE namespace = ? AND datacenter = ? AND worker = ? AND epoch = ? AND owner = ? AND nonce = ? AND reserved_until = ? AND renewals = ?" +
		" AND EXISTS (SELECT 1 FROM " + r.meta + " m WHERE m.namespace = ? AND m.datacenter = ? AND m.layout = ?)"
	r.update = set + where
	alone := set + " FROM " + sqlrow.AloneFrom + where + " AND " + sqlrow.AloneIf
	r.alone = sqlrow.AloneBegin + alone
	r.history = newHistory(d, names[2], r.update, alone)
	// What leasestore.Fencing.Apply does, to all rows that are not retired. GREATEST is MAX on SQLite; CASE is the
	// same everywhere.
	r.fence = d.Bind("UPDATE " + r.table + " SET epoch = epoch + 1, owner = '', nonce = ?, holder = '', renewals = renewals + 1," +
		" reserved_until = CASE WHEN reserved_until < ? THEN ? ELSE reserved_until END WHERE namespace = ? AND datacenter = ?" +
		fmt.Sprintf(" AND reserved_until < %d", leasestore.Retired))
	return r
}

// LosesWrites returns false, because what a SQL database has acknowledged is durable under the
// conditions of the package comment. If yours may forget it, turn on the loss guard.
func (r *register) LosesWrites() bool { return false }

// Read reads one row, as renewals do, in the fastest way, and more rows in the way of Find.
func (r *register) Read(ctx context.Context, s leasestore.Space, workers []int64) (v leasestore.View, err error) {
	if len(workers) == 1 {
		v, err = tables.LookAt(ctx, r.db, func(t *tx) (leasestore.View, error) {
			return r.see(ctx, t, s, "LEFT JOIN "+t.Text.table+" r ON r.namespace = ? AND r.datacenter = ? AND r.worker = ?", workers[0])
		})
	}
	if len(workers) != 1 || dialect.RowLogging(err) {
		v, err = tables.Look(ctx, r.db, func(t *tx) (leasestore.View, error) {
			if workers == nil {
				return r.see(ctx, t, s, t.Text.some("", allRows))
			}
			return r.see(ctx, t, s, t.Text.some("AND worker IN ("+list(workers)+")", len(workers)))
		})
	}
	return v, explain("read", err)
}

// allRows is how many rows a space has at most.
const allRows = 1 << 16

const (
	// candidates is how many free rows a claim chooses from. With one, all claimants that begin
	// among held rows would meet at the row behind them.
	candidates = 16

	// near is how many rows a claim looks at before it looks at all. Some of these are free
	// unless nearly all rows are held.
	near = 1024
)

// Find returns the first few free rows behind a random place. To choose at random among all
// rows, up to 65,536, the database has to read and sort them, which it does if none of those
// behind the place is free. An index of what is free would spare that, but every renewal would have
// to change it, where on PostgreSQL a renewal does not touch the only index. The rows are read
// without a lock, so that claimants of different rows do not wait for each other.
func (r *register) Find(ctx context.Context, s leasestore.Space, h leasestore.Hint) (leasestore.View, error) {
	r.db.WarnOfPool(ctx)
	v, err := tables.Look(ctx, r.db, func(t *tx) (leasestore.View, error) {
		if h.Only != nil {
			return r.see(ctx, t, s, t.Text.some("AND worker IN ("+list(h.Only)+")", len(h.Only)))
		}
		// Hint.Free in SQL, to choose what is read.
		now := t.Clock()
		free := "(owner = '' AND reserved_until <= " + now + " + ? OR owner <> '' AND reserved_until <= " + now + " - ? OR owner = ?)"
		at := h.Random().Int64N(s.Workers)
		// In the order of the key, so that the database stops at the last row that it needs.
		v, err := r.see(ctx, t, s, t.Text.some("AND worker >= ? AND worker < ? AND "+free+" ORDER BY worker", candidates),
			at, min(at+near, s.Workers), int64(h.Released), int64(h.Held), h.Owner)
		if err != nil || !v.Made || len(v.Rows) > 0 {
			return v, err
		}
		random := "RANDOM()"
		if r.db.Dialect == sqlstore.MySQL {
			random = "RAND()"
		}
		return r.see(ctx, t, s, t.Text.some("AND worker < ? AND "+free+" ORDER BY CASE WHEN owner = ? THEN 0 ELSE 1 END, "+random, candidates),
			s.Workers, int64(h.Released), int64(h.Held), h.Owner, h.Owner)
	})
	return v, explain("find", err)
}

// some joins the rows of a space that meet a condition.
func (r texts) some(condition string, limit int) string {
	return "LEFT JOIN (SELECT " + rowColumns + " FROM " + r.table + " WHERE namespace = ? AND datacenter = ? " + condition +
		" LIMIT " + strconv.Itoa(limit) + ") r ON 1 = 1"
}

// see reads the view of a space with some of its rows, by one statement. The first two
// parameters of rows are the space.
func (r *register) see(ctx context.Context, t *tx, s leasestore.Space, rows string, args ...any) (v leasestore.View, err error) {
	columns := t.Text.space + ", r.worker, r.epoch, r.owner, r.nonce, r.reserved_until, r.renewals, r.holder"
	args = append([]any{s.Namespace, s.Namespace, s.Namespace, s.Datacenter, s.Namespace, s.Datacenter}, args...)
	err = t.See(ctx, func(scan func(...any) error) error {
		var (
			layout, owner, nonce, holder   *string
			whole, made                    *int64 // versions
			worker, epoch, until, renewals *int64
		)
		if err := scan(&layout, &whole, &made, &worker, &epoch, &owner, &nonce, &until, &renewals, &holder); err != nil {
			return err
		}
		for _, version := range []*int64{whole, made} {
			if version != nil && *version != schemaVersion {
				return r.wrongVersion(*version)
			}
		}
		if layout != nil {
			v.Layout = *layout
		}
		v.Made = made != nil
		if worker != nil && v.Made {
			v.Rows = append(v.Rows, leasestore.Seen{
				Row: leasestore.Row{Worker: *worker, Epoch: *epoch, Owner: *owner, Nonce: *nonce, Until: leasestore.Millis(*until), Renewals: *renewals, Holder: *holder},
				Tag: t.Alone(),
			})
		}
		return nil
	}, columns, rows, args...)
	v.Now = leasestore.MillisOf(t.Now)
	slices.SortFunc(v.Rows, func(a, b leasestore.Seen) int { return cmp.Compare(a.Row.Worker, b.Row.Worker) })
	return v, err
}

// Swap compares the row in the UPDATE, and the layout of its space. On PostgreSQL the
// statement stands alone if it can, which takes one round trip; otherwise it has a transaction
// of its own. The record of a claim takes no further trip, except on MySQL for the first claim of a
// worker that has no row for it.
func (r *register) Swap(ctx context.Context, s leasestore.Space, from leasestore.Seen, to leasestore.Row) (bool, error) {
	found, err := r.db.Find(ctx)
	if err != nil {
		return false, explain("swap", err)
	}
	text := found.Text
	was, update, alone := from.Row, text.update, text.alone
	var line, joined []any
	if from.Record != "" {
		update, alone, line = text.history.update, text.history.alone, []any{from.Record + "\n"}
	}
	if r.db.Dialect == sqlstore.MySQL {
		joined = line
	}
	args := append([]any{to.Epoch, to.Owner, to.Nonce, int64(to.Until), to.Renewals, to.Holder}, joined...)
	args = append(args, s.Namespace, s.Datacenter, was.Worker, was.Epoch, was.Owner, was.Nonce, int64(was.Until), was.Renewals,
		s.Namespace, s.Datacenter, s.Layout)
	var unknown error
	if from.Tag == true {
		n, err := r.db.Write(ctx, alone, slices.Concat(args, line)...)
		switch {
		case err == nil && n == 1:
			return true, nil
		case ctx.Err() != nil:
			return false, explain("swap", r.db.Explain(err))
		case errors.Is(err, sqlrow.ErrCommit):
			unknown = err
		}
		// The row or the server has changed, or the outcome is unknown. A transaction finds out.
	}
	update, args, err = r.db.Bind(update, args...)
	if err != nil {
		return false, explain("swap", err)
	}
	done, err := tables.Do(ctx, r.db, func(t *tx) (bool, error) {
		result, err := t.Exec(ctx, update, args...)
		if err != nil {
			return false, err
		}
		// Renewals differs, so that the row changes: 1 also where the database counts
		// changed rows and not found ones, and 2 if the row of the history is changed with it.
		n, err := result.RowsAffected()
		switch {
		case err == nil && n == 1 && line != nil:
			text, args, err := r.db.Bind(t.Text.history.insert, s.Namespace, s.Datacenter, was.Worker, line[0])
			if err != nil {
				return false, err
			}
			if _, err := t.Exec(ctx, text, args...); err != nil {
				return false, err
			}
		case err == nil && n > int64(1+len(joined)):
			err = fmt.Errorf("the update of one row affected %d", n)
		}
		return n > 0, err
	})
	if unknown != nil && !done { // the row may be as it is because of the first write
		err = unknown
	}
	return done && err == nil, explain("swap", err)
}

// list returns numbers for the list of an IN.
func list(workers []int64) string {
	texts := make([]string, len(workers))
	for i, worker := range workers {
		texts[i] = strconv.FormatInt(worker, 10)
	}
	return strings.Join(texts, ", ")
}
