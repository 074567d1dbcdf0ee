package servers

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/snowkey/snowkey/internal/proof/cases/sqlxcases"
	"github.com/snowkey/snowkey/sqlxhelper"
)

// A deferred constraint is checked at COMMIT, be that of a statement or of a transaction.
func TestDeferredConstraintIsADuplicateAtAnyNumberOfRows(t *testing.T) {
	t.Parallel()
	for _, driver := range []string{"pgx", "pq"} {
		d := sqlxOn(t, driver)
		execSqlx(t, d.DB, "CREATE TABLE suppressed (id BIGINT PRIMARY KEY, n BIGINT UNIQUE DEFERRABLE INITIALLY DEFERRED)")
		h := sqlxhelper.New(sqlxcases.NewCounter(0))
		for _, n := range []int{2, 40, 9000, 30000} {
			rows := make([]suppressed, n) // all of them have the same n
			calls := map[string]func() error{
				"InsertMany": func() error { return h.InsertMany(t.Context(), d.DB, "suppressed", rows) },
				"InTx": func() error {
					return sqlxhelper.InTx(t.Context(), d.DB, nil, func(tx *sqlx.Tx) error { return h.InsertMany(t.Context(), tx, "suppressed", rows) })
				},
			}
			for name, call := range calls {
				t.Run(fmt.Sprint(driver, name, n), func(t *testing.T) {
					err := call()
					if !errors.Is(err, sqlxhelper.ErrDuplicateKey) || errors.Is(err, sqlxhelper.ErrCommitUnknown) {
						t.Errorf("%s(%d rows) = %v; want ErrDuplicateKey", name, n, err)
					}
					var e *sqlxhelper.InsertError
					if name != "InTx" && (!errors.As(err, &e) || e.Row != -1 || e.Rows != n) {
						t.Errorf("%s(%d rows) = %v; want an InsertError that blames no row", name, n, err)
					}
				})
			}
		}
	}
}
