package sqlxhelper_test

import (
	"context"
	"database/sql"
	"slices"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/sqlxhelper"
)

// recording notes the statements that go through it.
type recording struct {
	*sqlx.Tx
	texts *[]string
}

func (r recording) ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error) {
	*r.texts = append(*r.texts, text)
	return r.Tx.ExecContext(ctx, text, args...)
}

// On MySQL a deadlock ends the transaction. What is sent after it would be stored
// at once.
func TestNothingIsSentAgainAfterADeadlock(t *testing.T) {
	deadlock, duplicate := &MySQLError{1213}, &MySQLError{1062}
	four, two := "INSERT INTO `t` (`id`, `n`) VALUES (?, ?), (?, ?), (?, ?), (?, ?)", "INSERT INTO `t` (`id`, `n`) VALUES (?, ?), (?, ?)"
	for _, failing := range [][]string{{four}, {four, two}} {
		db, mock := newMock(t)
		tx := newTx(t, db, mock)
		mock.ExpectExec("SAVEPOINT snowkey_insert").WillReturnResult(done(0))
		for i, text := range failing {
			err := duplicate
			if i == len(failing)-1 {
				err = deadlock
			}
			mock.ExpectExec(text).WillReturnError(err)
		}
		mock.ExpectExec("ROLLBACK TO SAVEPOINT snowkey_insert").WillReturnError(&MySQLError{1305})
		want := slices.Concat([]string{"SAVEPOINT snowkey_insert"}, failing, []string{"ROLLBACK TO SAVEPOINT snowkey_insert"})
		var sent []string
		err := newHelper(sqlxhelper.MySQL).InsertMany(ctx, recording{tx, &sent}, "t", make([]pair, 4))
		if err == nil || !slices.Equal(sent, want) {
			t.Errorf("InsertMany() = %v, sent %q; want an error, %q", err, sent, want)
		}
	}
}
