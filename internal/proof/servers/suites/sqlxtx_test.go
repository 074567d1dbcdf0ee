package servers

import (
	"errors"
	"testing"

	"github.com/jmoiron/sqlx"

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
