package sqlxhelper_test

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/internal/proof/servers/drivererrors"
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

// Triggers would fire twice, and after a deadlock of MySQL, which ends the transaction, what is sent
// would be stored at once.
func TestNothingIsSentToAServerAgain(t *testing.T) {
	const mysql, postgres = "INSERT INTO `t` (`id`, `n`) VALUES (?, ?), (?, ?), (?, ?), (?, ?)", `INSERT INTO "t" ("id", "n") VALUES ($1, $2), ($3, $4), ($5, $6), ($7, $8)`
	for _, c := range []struct {
		dialect sqlxhelper.Dialect
		text    string
		err     error
		ended   bool
	}{
		{sqlxhelper.MySQL, mysql, &MySQLError{1213}, true},
		{sqlxhelper.MySQL, mysql, &MySQLError{1062}, false},
		{sqlxhelper.PostgreSQL, postgres, drivererrors.Postgres("23505"), false},
	} {
		db, mock := newMock(t)
		tx := newTx(t, db, mock)
		mock.ExpectExec("SAVEPOINT snowkey_insert").WillReturnResult(done(0))
		mock.ExpectExec(c.text).WillReturnError(c.err)
		undone := mock.ExpectExec("ROLLBACK TO SAVEPOINT snowkey_insert")
		want := []string{"SAVEPOINT snowkey_insert", c.text, "ROLLBACK TO SAVEPOINT snowkey_insert"}
		if undone.WillReturnResult(done(0)); c.ended {
			undone.WillReturnError(&MySQLError{1305})
		} else {
			mock.ExpectExec("RELEASE SAVEPOINT snowkey_insert").WillReturnResult(done(0))
			want = append(want, "RELEASE SAVEPOINT snowkey_insert")
		}
		var sent []string
		err := newHelper(c.dialect).InsertMany(ctx, recording{tx, &sent}, "t", make([]pair, 4))
		if !errors.Is(err, c.err) || !slices.Equal(sent, want) {
			t.Errorf("InsertMany() = %v, sent %q; want %v, %q", err, sent, c.err, want)
		}
	}
}
