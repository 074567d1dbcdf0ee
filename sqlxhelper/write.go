package sqlxhelper

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/pgtext"
	"github.com/snowkey/snowkey/types"
)

// A writer writes the rows of one call.
type writer struct {
	dialect  *traits
	heeds    heeding
	config   *config
	walk     *walk
	loads    []load
	replaced []replacedKey // by settle
	readings []reading     // of Returning
	memory   *memory       // of the Helper, nil for none
	// fullChunk is that of a sequence, which outlives the writer, or nil.
	fullChunk *fullChunk
	tables    map[string]*pgtext.Table // what describe has found
	done      int                      // rows that were sent
	failed    *load                    // the one of the statement that failed, or nil
	stale     bool                     // a look-up has failed for its plan, see write
}

// A load is a group on its way into its table.
type load struct {
	group
	head     string // INSERT INTO table (columns)
	tail     string // what follows the values: ON CONFLICT …, or nothing
	assigned int    // a row whose key the call assigns, or -1
	fresh    []bool // of an upsert, by row: the call assigns the key, and no stored row has another
	affected int64  // of all statements together
	held     []held // of a sequence, row by row; else nil
	order    []int  // which each row was before orderRows, or nil
}

// argument returns what is bound for a column of a row.
func (l *load) argument(c *column, row int) (any, error) {
	if c.hold == byArgument && l.held != nil {
		h := l.held[row*l.plan.held+c.slot]
		return h.value, h.err
	}
	return c.argument(l.rows[row])
}

// newWriter puts together what can fail without a database, before keys are
// assigned.
func newWriter(d *traits, c *config, walk *walk) (*writer, error) {
	w := &writer{dialect: d, config: c, walk: walk}
	for _, l := range walk.links {
		from, to := &walk.nodes[l.from], &walk.nodes[l.to]
		if from.upsert != nil && to.upsert != nil {
			return nil, walk.fail(*from, nil, "it refers to %s in the same table, and so would have to be sent before it is known which stored row that is", walk.path(*to))
		}
	}
	for _, g := range walk.groups() {
		l := load{group: g, held: walk.held, assigned: len(g.rows) - 1}
		for l.assigned >= 0 && *l.plan.id(l.rows[l.assigned]) != 0 {
			l.assigned--
		}
		var err error
		if l.head, err = d.insertHead(l.table, l.columns); err != nil {
			return nil, err
		}
		if l.upsert != nil {
			l.tail = l.upsert.tail
			l.fresh = make([]bool, len(l.rows))
			for i, row := range l.rows {
				l.fresh[i] = *l.plan.id(row) == 0
			}
		}
		w.loads = append(w.loads, l)
	}
	return w, nil
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
	for try := 1; ; try++ {
		err := w.transact(ctx, c)
		if err == nil {
			break
		}
		// A table has changed since pgx prepared a look-up on this connection. All that
		// the call has written is undone, and pgx prepares that look-up anew. Others
		// that were prepared before, here and on other connections, fail once each.
		if !w.stale || try > stalePlans*len(w.loads) || errors.Is(err, ErrTxBroken) || ctx.Err() != nil {
			return dialect.ExplainPooler(withCause(ctx, err))
		}
		w.restart(err)
	}
	written = true
	w.fill()
	return nil
}

// stalePlans is how often the rows are sent again for each load. A load has three or four
// texts of look-ups, as a rule, and each may fail once on each connection.
const stalePlans = 8

// restart makes w as it was before transact, which failed with err.
func (w *writer) restart(err error) {
	w.restoreKeys()
	w.learn(err)
	w.stale, w.readings, w.failed, w.tables = false, nil, nil, nil
	for i := range w.loads {
		w.loads[i].affected = 0
	}
}

// transact sends all rows under a savepoint or in a transaction.
func (w *writer) transact(ctx context.Context, c conn) error {
	if c.pool == nil {
		return w.prove(ctx, c, inSavepoint(ctx, c.db, c.heeds, savepointName, func() error {
			w.describe(ctx, c)
			return w.insertAll(ctx, session{c.db, true, w.heeds})
		}))
	}
	w.describe(ctx, c)
	if w.sendsAlone(c) {
		if err := w.insertAll(ctx, session{&single{w, c}, false, heedsAll}); !errors.Is(err, errSeveral) {
			return w.prove(ctx, c, w.narrowAlone(ctx, c, err))
		}
	}
	t := transaction{db: c.pool, dialect: w.dialect, heeds: c.heeds, partial: w.config.partial, note: w.note}
	_, err := t.run(ctx, func(tx *sqlx.Tx) error { return w.insertAll(ctx, session{tx, true, w.heeds}) })
	if l := &w.loads[0]; atCommit(err) {
		return &InsertError{Table: l.table, Last: len(l.rows) - 1, Rows: len(l.rows), Row: -1, Err: err}
	}
	return w.prove(ctx, c, err)
}

// A statementer is the part of a [DB] that a writer needs.
type statementer interface {
	sqlx.ExecerContext
	sqlx.PreparerContext
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// A session is where statements go. Outside of a transaction there is room for
// one, and a second would be errSeveral.
type session struct {
	db    statementer
	inTx  bool
	heeds heeding
}

// insertAll writes load by load.
func (w *writer) insertAll(ctx context.Context, s session) error {
	w.done = 0
	for i := range w.loads {
		l := &w.loads[i]
		if err := w.insertLoad(ctx, s, l); err != nil {
			return l.upsert.explained(err)
		}
		if err := w.settle(ctx, s, l); err != nil {
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
		w.config.progress(w.done, len(w.walk.structs))
	}
	return nil
}

// note adds what a call that has succeeded has stored to the record of its InTx, which is
// nil if there is none.
func (w *writer) note(r *record) {
	if r == nil {
		return
	}
	for i := range w.loads {
		if l := &w.loads[i]; len(l.rows) > 0 {
			r.add(l.place(w.dialect), l.inserted())
		}
	}
}

// place is where the keys of l are.
func (l *load) place(d *traits) place {
	return place{d.Dialect, l.table, l.plan.columns[l.plan.key].name}
}

// inserted returns the key of the last row that was not there before the call, or 0. After
// an upsert that is one which still has the key that the call has assigned.
func (l *load) inserted() types.Snowflake {
	for i, row := range slices.Backward(l.rows) {
		if l.upsert == nil || l.fresh[i] {
			return *l.plan.id(row)
		}
	}
	return 0
}
