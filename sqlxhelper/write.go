package sqlxhelper

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/outcome"
	"github.com/snowkey/snowkey/internal/base/pgtext"
	"github.com/snowkey/snowkey/types"
)

// A writer writes the rows of one call, whose keys are set. It does not change.
type writer struct {
	*rows
	conn   conn
	loads  []load // at least one
	config *config
	memory *memory
	// fullChunk is shared by the chunks of one InsertSeq; nil in other calls.
	fullChunk *fullChunk
}

// An attempt is one attempt to write all rows.
type attempt struct {
	*writer
	described map[string]*pgtext.Table  // by the name of the table
	done      int                       // rows that were sent
	replaced  []replacedKey             // by resolve
	inserted  map[*load]types.Snowflake // what note needs to know of resolve
	readings  []reading                 // of Returning
	stale     bool                      // a look-up failed on a stale plan, or a table was altered
}

// errSeveral says that the rows need more than one statement where only one was allowed, and
// nothing was sent.
var errSeveral = errors.New("several statements")

// stalePlans is how many attempts a call makes per load, which has three or four texts of look-ups
// as a rule.
const stalePlans = 8

// write sends all rows. After an error nothing is stored, and keys that an upsert has changed
// in memory are restored.
//
// It sends them again after a table was altered: an INSERT of arrays was refused by its guard, or a
// look-up failed because pgx had prepared it on this connection before. pgx then prepares that
// look-up anew; others that were prepared before, here and on other connections, fail once each.
func (w *writer) write(ctx context.Context) error {
	for n := 1; ; n++ {
		a := &attempt{writer: w}
		err := a.run(ctx)
		if err == nil {
			return nil
		}
		if !a.stale || n > stalePlans*len(w.loads) || errors.Is(err, ErrTxBroken) || ctx.Err() != nil {
			return dialect.ExplainPooler(outcome.WithCause(ctx, err))
		}
	}
}

// run makes the attempt.
func (a *attempt) run(ctx context.Context) error {
	written := false
	defer func() {
		if !written { // also after a panic
			a.restoreKeys()
		}
	}()
	err := a.send(ctx)
	for name, t := range a.described {
		a.memory.learn(name, t, err)
	}
	if err != nil {
		if pgtext.Altered(err) {
			a.stale = true
			err = fmt.Errorf("%w: %w", ErrTableChanged, err)
		}
		return err
	}
	written = true
	if a.readings != nil {
		a.fill()
	}
	if a.conn.pool == nil {
		if r := recordOf(a.conn.db); r != nil {
			a.note(r)
		}
	}
	return nil
}

// send sends all rows under a savepoint or in a transaction, or as a statement that needs neither.
func (a *attempt) send(ctx context.Context) error {
	c := &a.conn
	if c.pool == nil {
		return inSavepoint(ctx, c.db, c.cancels, savepointName, func() error {
			a.describe(ctx)
			if err := a.identify(ctx); err != nil {
				return err
			}
			return a.insertAll(ctx, session{c.db, true, c.cancels})
		})
	}
	a.describe(ctx)
	if a.sendsAlone() {
		if err := a.insertAll(ctx, session{&single{a.writer}, false, outcome.CancelsAll}); !errors.Is(err, errSeveral) {
			return err
		}
	}
	t := outcome.Transaction{Database: c.database(a.config.partial), Note: a.note}
	_, err := t.Run(ctx, withTx(func(tx *sqlx.Tx) error { return a.insertAll(ctx, session{tx, true, c.cancels}) }))
	if l := &a.loads[0]; err != nil && outcome.AtCommit(err) {
		return &InsertError{Table: l.name, Last: len(l.rows) - 1, Rows: len(l.rows), Row: -1, Err: err}
	}
	return err
}

// identify notes the ID of the transaction of an InTx or InsertSeq before a Helper writes in it
// for the first time, see [outcome.Identify]. A server without IDs ends the transaction up to the
// savepoint of the call.
//
// The transaction of a single call is not identified: it is never run again, so that rows which
// may be hidden cost an ErrCommitUnknown and nothing else.
func (w *writer) identify(ctx context.Context) error {
	c, r := w.conn, recordOf(w.conn.db)
	if !w.dialect.Identifies || w.memory.anonymous.Load() || !r.Unidentified() {
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
//     see KeepsRows;
//   - if stored rows are read afterwards, which have to be as the statement left them;
//   - if a COMMIT proves nothing, because its errors must be told from the statement's;
//   - if the caller has set the key of each row and a pool of the program's own may send the
//     statement twice: a duplicate key could then be the row's own, see single.
func (w *writer) sendsAlone() bool {
	l := &w.loads[0]
	if len(w.loads) > 1 || l.upsert != nil || l.read != nil || w.dialect.KeepsRows || w.config.partial {
		return false
	}
	return l.assigned >= 0 || w.dialect.BadIsUnsent || sendsOnce(w.conn.db)
}

// A statementer is the part of a [DB] that a writer needs.
type statementer interface {
	sqlx.ExecerContext
	sqlx.PreparerContext
	dialect.Queryer
}

// A session says where statements go. Outside of a transaction only one is allowed, and a
// second one is errSeveral.
type session struct {
	db      statementer
	inTx    bool
	cancels outcome.Cancels
}

func (a *attempt) insertAll(ctx context.Context, s session) error {
	a.done = 0
	for i := range a.loads {
		l := &a.loads[i]
		affected, err := a.insertLoad(ctx, s, l)
		if err != nil {
			return l.upsert.explained(err)
		}
		if l.upsert != nil {
			if err := a.resolve(ctx, s, l, affected); err != nil {
				return err
			}
		}
	}
	// Last, because triggers on one table may change another.
	for i := range a.loads {
		if l := &a.loads[i]; l.read != nil {
			if err := a.read(ctx, s, l); err != nil {
				return err
			}
		}
	}
	return nil
}

// A sender sends rows of a load in one of several forms, which all store the same, see pgtext.
type sender interface {
	// take collects the rows of the next statement, from first on. It returns their number, or
	// 0 if this sender cannot carry the first of them.
	take(first int) (int, error)
	// send sends the rows that were taken, and returns their number.
	send(ctx context.Context, s session) (int, driver.Result, error)
	// check returns the error of a statement, which may be nil, with the row that is to blame
	// if it can be found.
	check(ctx context.Context, s session, err error) error
}

// insertLoad writes the rows of a load, and returns the count of the database.
func (a *attempt) insertLoad(ctx context.Context, s session, l *load) (affected int64, err error) {
	var senders []sender
	if a.dialect.Arrays && len(l.rows) >= pgtext.ManyRows {
		if senders, err = a.bulk(s, l); err != nil {
			return 0, err
		}
	}
	byValues := &values{attempt: a, load: l, fullChunk: a.fullChunk}
	if byValues.fullChunk == nil {
		byValues.fullChunk = &fullChunk{}
		defer byValues.close()
	}
	senders = append(senders, byValues)
	for first := 0; first < len(l.rows); {
		if err := ctx.Err(); err != nil {
			return 0, a.located(l, first, len(l.rows)-first, err)
		}
		n, err := senders[0].take(first)
		if err != nil {
			return 0, err
		}
		if n == 0 || !s.inTx && n < len(l.rows) {
			if senders = senders[1:]; len(senders) == 0 {
				return 0, errSeveral
			}
			continue
		}
		n, result, err := senders[0].send(ctx, s)
		count, err := a.sent(l, first, n, result, err)
		if err := senders[0].check(ctx, s, err); err != nil {
			return 0, err
		}
		affected += count
		first += n
	}
	return affected, nil
}

// sent checks and counts what a statement has done with n rows of l, from first on.
func (a *attempt) sent(l *load, first, n int, result driver.Result, err error) (affected int64, _ error) {
	if err == nil {
		affected, err = result.RowsAffected()
	}
	if err != nil {
		return 0, a.located(l, first, n, err)
	}
	if l.upsert == nil && affected != int64(n) {
		return 0, &CountError{Table: l.name, Rows: int64(n), Affected: affected}
	}
	a.done += n
	if a.config.progress != nil {
		a.config.progress(a.done, len(a.structs))
	}
	return affected, nil
}

// note adds to the record of a transaction, for each load, the key of the last row that was not
// stored before: after an upsert, one that still has the key which the call has assigned.
func (a *attempt) note(r *outcome.Record) {
	for i := range a.loads {
		l := &a.loads[i]
		last, resolved := a.inserted[l]
		for j := len(l.rows) - 1; j >= 0 && last == 0 && !resolved; j-- {
			if l.upsert == nil || l.fresh[j] {
				last = *l.plan.id(l.rows[j])
			}
		}
		r.Add(l.keyColumn(a.dialect), last)
	}
}

// keyColumn returns where the keys of l are stored.
func (l *load) keyColumn(d *traits) outcome.KeyColumn {
	return outcome.KeyColumn{Dialect: d.Dialect, Table: l.name, Column: l.key.name}
}
