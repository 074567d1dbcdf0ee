package sqlxhelper

import (
	"context"
	"database/sql"
	"errors"

	"github.com/jmoiron/sqlx"
)

// A writer writes the rows of one call.
type writer struct {
	dialect  Dialect
	config   *config
	rows     *walk
	loads    []load
	replaced []replacedKey           // by settle
	readings []reading               // of Returning
	memory   *memory                 // of the Helper, nil for none
	tables   map[string]*description // what describe has found
	done     int                     // rows that were sent
	failed   *load                   // the one of the statement that failed, or nil
}

// A load is a group on its way into its table.
type load struct {
	group
	columns  []column // those that are written
	head     string   // INSERT INTO table (columns)
	tail     string   // what follows the values: ON CONFLICT …, or nothing
	upsert   *upsert  // what tail says, or nil
	fresh    []bool   // of an upsert, by row: the call assigns the key
	affected int64    // of all statements together
	read     []destination
}

// newWriter puts together what can fail without a database.
func newWriter(d Dialect, c *config, rows *walk, s *selection) (*writer, error) {
	w := &writer{dialect: d, config: c, rows: rows}
	for _, g := range rows.groups() {
		l := load{group: g, columns: s.written(target{g.table, g.plan})}
		var err error
		if l.head, err = d.insertHead(l.table, l.columns); err != nil {
			return nil, err
		}
		w.loads = append(w.loads, l)
	}
	return w, s.apply(w)
}

// errSeveral says that the rows need more than one statement, where only one was
// allowed. Nothing was sent.
var errSeveral = errors.New("several statements")

// write sends all rows, or leaves none. What it has changed in memory by then,
// it changes back.
func (w *writer) write(ctx context.Context, c conn) error {
	written := false
	defer func() {
		if !written { // also by a panic
			w.restoreKeys()
		}
	}()
	if err := w.transact(ctx, c); err != nil {
		return err
	}
	written = true
	w.fill()
	return nil
}

// transact sends all rows under a savepoint or in a transaction.
func (w *writer) transact(ctx context.Context, c conn) error {
	if c.pool == nil {
		return w.prove(ctx, c, inSavepoint(ctx, c.db, func() error {
			w.describe(ctx, c)
			return w.insertAll(ctx, session{c.db, true})
		}))
	}
	w.describe(ctx, c)
	// One statement is a transaction by itself, and a transaction around it
	// would cost two more round trips. SQLite has no round trips, and a
	// statement there is not always all or nothing: a constraint that is declared
	// ON CONFLICT FAIL keeps the rows before, and RAISE(FAIL) in a trigger that
	// runs after the insert keeps the row itself. And what looks for stored rows
	// has to see them as the statement left them.
	if len(w.loads) == 1 && !w.looks() && w.dialect != SQLite {
		if err := w.insertAll(ctx, session{c.db, false}); !errors.Is(err, errSeveral) {
			return w.prove(ctx, c, w.narrowAlone(ctx, c.pool, err))
		}
	}
	return w.prove(ctx, c, inTx(ctx, c.pool, nil, func(tx *sqlx.Tx) error { return w.insertAll(ctx, session{tx, true}) }))
}

// A statementer is the part of a [DB] that a writer needs.
type statementer interface {
	sqlx.ExecerContext
	sqlx.PreparerContext
	sqlx.QueryerContext
}

// A session is where statements go. Outside of a transaction there is room for
// one, and a second would be errSeveral.
type session struct {
	db   statementer
	inTx bool
}

// insertAll writes load by load.
func (w *writer) insertAll(ctx context.Context, s session) error {
	w.done = 0
	for i := range w.loads {
		l := &w.loads[i]
		first, err := w.insertBulk(ctx, s, l)
		if err == nil && first < len(l.rows) {
			err = w.insertValues(ctx, s, l, first)
		}
		if err = l.upsert.explained(err); err == nil {
			err = w.settle(ctx, s, l)
		}
		if err != nil {
			return err
		}
	}
	return w.readAll(ctx, s)
}

// sent checks and counts what a statement has done with n rows of l, the first
// of which is l.rows[first].
func (w *writer) sent(l *load, first, n int, result sql.Result, err error) error {
	var affected int64
	if err == nil {
		affected, err = result.RowsAffected()
	}
	if err != nil {
		return w.located(l, first, n, err)
	}
	l.affected += affected
	if l.upsert == nil && affected != int64(n) {
		return &CountError{Table: l.table, Rows: int64(n), Affected: affected}
	}
	w.done += n
	if w.config.progress != nil {
		w.config.progress(w.done, len(w.rows.structs))
	}
	return nil
}
