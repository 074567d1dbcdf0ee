package sqlxhelper

import (
	"errors"
	"testing"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/types"
)

// A transaction is identified once, and a server without IDs is asked once.
func TestTransactionIsIdentifiedByItsFirstInsert(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		asks []bool // in each of two transactions
	}{
		"PostgreSQL":               {nil, []bool{true, true}},
		"a server without IDs":     {postgres("42883"), []bool{true, false}},
		"a user without the right": {postgres("42501"), []bool{true, false}},
	} {
		db, mock, err := sqlmock.New()
		if err != nil {
			t.Fatal(err)
		}
		mock.MatchExpectationsInOrder(true)
		h := New(nil, WithDialect(PostgreSQL))
		for _, asks := range c.asks {
			mock.ExpectBegin()
			for i := range 2 {
				mock.ExpectExec("^SAVEPOINT").WillReturnResult(sqlmock.NewResult(0, 0))
				switch {
				case i > 0 || !asks:
				case c.err != nil:
					mock.ExpectQuery("txid_current").WillReturnError(c.err)
					mock.ExpectExec("^ROLLBACK TO").WillReturnResult(sqlmock.NewResult(0, 0))
				default:
					mock.ExpectQuery("txid_current").WillReturnRows(sqlmock.NewRows([]string{"id", "run"}).AddRow(730, "1 "))
				}
				mock.ExpectExec("^INSERT").WillReturnResult(sqlmock.NewResult(0, 1))
				mock.ExpectExec("^RELEASE").WillReturnResult(sqlmock.NewResult(0, 0))
			}
			mock.ExpectCommit()
			err := h.InTx(t.Context(), sqlx.NewDb(db, "sqlmock"), nil, func(tx *sqlx.Tx) error {
				return errors.Join(h.Insert(t.Context(), tx, "t", &types.Model{ID: 7}), h.Insert(t.Context(), tx, "t", &types.Model{ID: 8}))
			})
			if err != nil {
				t.Errorf("InTx() on %s = %v; want nil", name, err)
			}
		}
		mock.ExpectClose()
		if err := errors.Join(db.Close(), mock.ExpectationsWereMet()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
