package sqlxhelper

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/outcome"
	"github.com/snowkey/snowkey/internal/base/pgtext"
	"github.com/snowkey/snowkey/types"
)

// A writer writes the rows of one call.
type writer struct {
	dialect  *traits
	cancels  outcome.Cancels
	config   *config
	all      *rows
	loads    []load
	replaced []replacedKey // by resolve
	readings []reading     // of Returning
	memory   *memory       // of the Helper; nil: none
	// fullChunk is shared by the chunks of one InsertSeq; nil in other calls.
	fullChunk *fullChunk
	tables    map[string]*pgtext.Table // read by describe
	done      int                      // rows that were sent
	stale     bool                     // a look-up failed on a stale plan, see write
}

// A load is a group on its way into its table.
type load struct {
	group
	head     string // INSERT INTO table (columns)
	tail     string // what follows the values: ON CONFLICT …, or nothing
	assigned int    // a row whose key the call assigns, or -1
	fresh    []bool // of an upsert, by row: the call assigns the key, and no stored row has another
	affected int64  // of all statements together
}

// newWriter prepares everything that can fail without a database, before keys are assigned.
func newWriter(d *traits, c *config, r *rows) (*writer, error) {
	w := &writer{dialect: d, config: c, all: r}
	for _, l := range r.links {
		if r.table(l.from).upsert != nil && r.table(l.to).upsert != nil {
			return nil, refuse(r.path(l.from), nil, "it refers to %s in the same table, and so would have to be sent before it is known which stored row that is", r.path(l.to))
		}
	}
	for _, g := range r.groups() {
		l := load{group: g, assigned: len(g.rows) - 1}
		for l.assigned >= 0 && *l.plan.id(l.rows[l.assigned]) != 0 {
			l.assigned--
		}
		var err error
		if l.head, err = d.insertHead(l.name, l.columns); err != nil {
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

// errSeveral says that the rows need more than one statement where only one was allowed.
// Nothing was sent.
var errSeveral = errors.New("several statements")

// write sends all rows. After an error nothing is stored, and keys that an upsert has changed
// in memory are restored.
func (w *writer) write(ctx context.Context, c conn) error {
	written := false
	defer func() {
		if !written { // also after a panic
			w.restoreKeys()
		}
	}()
	if err := w.retryStale(ctx, func() error { return w.transact(ctx, c) }); err != nil {
		return dialect.ExplainPooler(outcome.WithCause(ctx, err))
	}
	written = true
	if w.readings != nil {
		w.fill()
	}
	return nil
}

// transact sends all rows under a savepoint or in a transaction.
func (w *writer) transact(ctx context.Context, c conn) error {
	err := w.send(ctx, c)
	if pgtext.Altered(err) {
		w.stale = true
		return fmt.Errorf("%w: %w", ErrTableChanged, err)
	}
	return err
}

func (w *writer) send(ctx context.Context, c conn) error {
	describe := w.dialect.Arrays
	if c.pool == nil {
		return inSavepoint(ctx, c.db, c.cancels, savepointName, func() error {
			if describe {
				w.describe(ctx, c)
			}
			if err := w.identify(ctx, c); err != nil {
				return err
			}
			return w.insertAll(ctx, session{c.db, true, w.cancels})
		})
	}
	if describe {
		w.describe(ctx, c)
	}
	if w.sendsAlone(c) {
		if err := w.insertAll(ctx, session{&single{w, c}, false, outcome.CancelsAll}); !errors.Is(err, errSeveral) {
			return err
		}
	}
	t := outcome.Transaction{Database: w.database(c), Note: w.note}
	_, err := t.Run(ctx, withTx(func(tx *sqlx.Tx) error { return w.insertAll(ctx, session{tx, true, w.cancels}) }))
	if l := &w.loads[0]; outcome.AtCommit(err) {
		return &InsertError{Table: l.name, Last: len(l.rows) - 1, Rows: len(l.rows), Row: -1, Err: err}
	}
	return err
}

// database returns the pool of c as package outcome uses it.
func (w *writer) database(c conn) *outcome.Database {
	return database(c.pool, w.dialect, c.cancels, w.config.partial)
}

// identify notes the ID of the transaction of an InTx or InsertSeq before a Helper writes in it
// for the first time, see [outcome.Identify]. That costs a round trip, and another one on a server
// without IDs, where it rolls back to the savepoint of the call.
//
// A transaction that a call of a Helper begins for itself is not identified: it is never run
// again, so that rows which may be hidden cost an ErrCommitUnknown and nothing else.
func (w *writer) identify(ctx context.Context, c conn) error {
	r := recordOf(c.db)
	if !w.dialect.Identifies || w.memory == nil || w.memory.anonymous.Load() || !r.Unidentified() {
		return nil
	}
	x, err := outcome.Call(ctx, c.cancels, func() (outcome.Xact, error) { return outcome.Identify(ctx, c.db) }, nil)
	switch {
	case err == nil:
		r.Identify(x)
	case dialect.NoFunction(err), dialect.Denied(err):
		w.memory.anonymous.Store(true)
		_, err = outcome.Exec(ctx, c.cancels, c.db, "ROLLBACK TO SAVEPOINT "+savepointName)
	}
	if err != nil {
		return fmt.Errorf("sqlxhelper: ID of the transaction: %w", err)
	}
	return nil
}

// sendsAlone reports whether the rows may be sent without a transaction, which would cost two
// more round trips. They may not
//
//   - on SQLite, which has no round trips, and whose statements are not always all or nothing,
//     see traits.partial;
//   - if stored rows are read afterwards, which have to be as the statement left them;
//   - if a COMMIT proves nothing, because its errors must be told from the statement's;
//   - if the caller has set the key of each row and a pool of the program's own may send the
//     statement twice: a duplicate key could then be the row's own, see single.
func (w *writer) sendsAlone(c conn) bool {
	looks := func(l load) bool { return l.upsert != nil || l.read != nil }
	if len(w.loads) != 1 || looks(w.loads[0]) || w.dialect.partial || w.config.partial {
		return false
	}
	return w.loads[0].assigned >= 0 || w.dialect.badIsUnsent || sendsOnce(c.db)
}

// A statementer is the part of a [DB] that a writer needs.
type statementer interface {
	sqlx.ExecerContext
	sqlx.PreparerContext
	outcome.Queryer
}

// A session says where statements go. Outside of a transaction only one is allowed, and a
// second one is errSeveral.
type session struct {
	db      statementer
	inTx    bool
	cancels outcome.Cancels
}

// insertAll writes load by load.
func (w *writer) insertAll(ctx context.Context, s session) error {
	w.done = 0
	for i := range w.loads {
		l := &w.loads[i]
		err := w.insertLoad(ctx, s, l)
		if l.upsert != nil {
			err = w.resolve(ctx, s, l, err)
		}
		if err != nil {
			return err
		}
	}
	// Last, because triggers on one table may change another.
	for i := range w.loads {
		if l := &w.loads[i]; l.read != nil {
			if err := w.read(ctx, s, l); err != nil {
				return err
			}
		}
	}
	return nil
}

// A way is how rows of a load get to the database. All ways store the same: package pgtext
// writes a value only if its text is stored as its argument would be.
type way interface {
	// take collects the rows of the next statement, from first on. It returns their number, or
	// 0 if this way cannot carry the first of them.
	take(first int) (int, error)
	// send sends the rows that were taken, and returns their number.
	send(ctx context.Context, s session) (int, driver.Result, error)
	// check returns the error of a statement, which may be nil, with the row that is to blame
	// if it can be found.
	check(ctx context.Context, s session, err error) error
}

// insertLoad writes the rows of a load. It checks ctx before every statement.
func (w *writer) insertLoad(ctx context.Context, s session, l *load) error {
	var ways []way
	if w.dialect.Arrays && len(l.rows) >= pgtext.ManyRows {
		var err error
		if ways, err = w.bulk(s, l); err != nil {
			return err
		}
	}
	byValues := &values{writer: w, load: l, fullChunk: w.fullChunk}
	if byValues.fullChunk == nil {
		byValues.fullChunk = &fullChunk{}
		defer byValues.close()
	}
	ways = append(ways, byValues)
	for first := 0; first < len(l.rows); {
		if err := ctx.Err(); err != nil {
			return w.sent(l, first, len(l.rows)-first, nil, err)
		}
		n, err := ways[0].take(first)
		if err != nil {
			return err
		}
		if n == 0 || !s.inTx && n < len(l.rows) {
			if ways = ways[1:]; len(ways) == 0 {
				return errSeveral
			}
			continue
		}
		n, result, err := ways[0].send(ctx, s)
		if err := ways[0].check(ctx, s, w.sent(l, first, n, result, err)); err != nil {
			return err
		}
		first += n
	}
	return nil
}

// sent checks and counts what a statement has done with n rows of l, from first on.
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
		return &CountError{Table: l.name, Rows: int64(n), Affected: affected}
	}
	w.done += n
	if w.config.progress != nil {
		w.config.progress(w.done, len(w.all.structs))
	}
	return nil
}

// note adds what a successful call has stored to the record of a transaction.
func (w *writer) note(r *outcome.Record) {
	for i := range w.loads {
		if l := &w.loads[i]; len(l.rows) > 0 {
			r.Add(l.place(w.dialect), l.inserted())
		}
	}
}

// place returns where the keys of l are stored.
func (l *load) place(d *traits) outcome.Place {
	return outcome.Place{Dialect: d.Dialect, Table: l.name, Column: l.plan.columns[l.plan.key].name}
}

// inserted returns the key of the last row that was not stored before the call, or 0. After an
// upsert that is a row which still has the key that the call has assigned.
func (l *load) inserted() types.Snowflake {
	for i, row := range slices.Backward(l.rows) {
		if l.upsert == nil || l.fresh[i] {
			return *l.plan.id(row)
		}
	}
	return 0
}
