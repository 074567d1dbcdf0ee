package servers

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/snowkey/snowkey/internal/proof/cases/sqlxcases"
	"github.com/snowkey/snowkey/internal/proof/servers/faultproxy"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

// A loss is what becomes of the first statement of a text.
type loss int

const (
	answerLost  loss = iota // it arrives, and the connection breaks before the answer
	requestLost             // the connection breaks before it arrives
)

// losing returns a pool through a proxy that loses a statement, or the answer to it.
func (p place) losing(t *testing.T, what loss, text string) *sqlx.DB {
	t.Helper()
	through, proxy := p.through(t)
	f := faultproxy.Fault{On: faultproxy.Running(text), Do: faultproxy.CutBefore}
	if what == answerLost {
		f.On = faultproxy.AnswerTo(f.On)
	}
	proxy.Arm(f)
	return through.open(t)
}

// An inTxOutcome is what comes of InTx when its COMMIT is lost.
type inTxOutcome struct {
	unknown    bool
	runs, rows int
}

// of runs fn in a transaction of a plugin, with keys after last, and fails the test unless the outcome is o.
func (o inTxOutcome) of(t *testing.T, p txPlugin, db *sqlx.DB, last types.Snowflake, rows func() int, fn func(tx pluginTx) error) {
	t.Helper()
	runs := 0
	err := p.on(t, db, last)(t.Context(), func(tx pluginTx) error { runs++; return fn(tx) })
	if n := rows(); runs != o.runs || n != o.rows || errors.Is(err, sqlxhelper.ErrCommitUnknown) != o.unknown || !o.unknown && err != nil {
		t.Errorf("InTx() = %v after %d runs with %d rows; want ErrCommitUnknown: %v, after %d with %d", err, runs, n, o.unknown, o.runs, o.rows)
	}
}

// counting returns a function that counts rows.
func counting(t *testing.T, db *sqlx.DB, from string) func() int {
	return func() (n int) {
		t.Helper()
		must(t, db.Get(&n, "SELECT COUNT(*) FROM "+from))
		return n
	}
}

// After a deadlock the server commits by itself whatever a function sends that has
// not noticed it.
func TestInTxDoesNotGoOnWithATransactionThatTheServerEndedOnMariaDBAndMySQL(t *testing.T) {
	onMariaDBAndMySQL(t, func(t *testing.T, w way) {
		for name, end := range map[string]func(err error) error{
			"swallowed":  func(error) error { return nil },
			"deadlocked": func(err error) error { return errors.Join(&mysql.MySQLError{Number: 1213}, err) },
		} {
			d := w.place(t).sqlx(t)
			execSqlx(t, d.DB, "CREATE TABLE suppressed (id BIGINT PRIMARY KEY, n BIGINT)")
			h := sqlxhelper.New(sqlxcases.NewCounter(0))
			runs := 0
			err := sqlxhelper.InTx(t.Context(), d.DB, nil, func(tx *sqlx.Tx) error {
				runs++
				must(t, h.Insert(t.Context(), tx, "suppressed", &suppressed{}))
				err := h.Insert(t.Context(), endingTx{tx}, "suppressed", &suppressed{})
				if late := h.Insert(t.Context(), tx, "suppressed", &suppressed{}); !errors.Is(late, sqlxhelper.ErrTxBroken) {
					t.Errorf("Insert(after that) = %v; want ErrTxBroken", late)
				}
				return end(err)
			})
			if !errors.Is(err, sqlxhelper.ErrTxBroken) || runs != 1 {
				t.Errorf("%s: InTx() = %v after %d runs; want ErrTxBroken after 1", name, err, runs)
			}
			var stored []int
			if err := d.DB.Select(&stored, "SELECT id FROM suppressed"); err != nil || len(stored) != 1 || stored[0] != 2 {
				t.Errorf("%s: rows = %v, %v; want 2 alone, which the server has committed by itself", name, stored, err)
			}
			twice := endingTx{d.DB.MustBegin()}
			defer func() { _ = twice.Rollback() }()
			err = h.Insert(t.Context(), twice, "suppressed", &suppressed{Model: types.Model{ID: 2}})
			var number *mysql.MySQLError
			if !errors.Is(err, sqlxhelper.ErrTxBroken) || !errors.As(err, &number) || number.Number != 1062 {
				t.Errorf("Insert(duplicate, transaction ended) = %v; want ErrTxBroken and error 1062 in it", err)
			}
		}
	})
}

// endingTx ends the transaction in the server before each insert, as a deadlock does.
type endingTx struct{ *sqlx.Tx }

func (e endingTx) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if len(args) > 0 {
		if _, err := e.Tx.ExecContext(ctx, "ROLLBACK"); err != nil {
			return nil, err
		}
	}
	return e.Tx.ExecContext(ctx, query, args...)
}
