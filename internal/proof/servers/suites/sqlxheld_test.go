package servers

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/core/serial"
	"github.com/snowkey/snowkey/core/serial/sqlserial"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/proof/cases/sqlxcases"
	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

// onCommitProxies runs test for each server and driver, before which a proxy may lose a
// commit.
func onCommitProxies(t *testing.T, test func(t *testing.T, open behind)) {
	t.Helper()
	t.Run("PostgresByPgx", func(t *testing.T) { test(t, postgresBehind("pgx")) })
	t.Run("PostgresByPq", func(t *testing.T) { test(t, postgresBehind("postgres")) })
	onMariaDBAndMySQL(t, func(t *testing.T, dsn string) { test(t, mysqlBehind(dsn)) })
}

// An invoice has a number that its transaction takes from a counter without gaps.
type invoice struct {
	types.Model
	Number string `db:"number"`
}

var heldSeries = serial.Series{Name: "held", Prefix: "INV", Digits: 6}

// heldInvoices defines a series and the table of its invoices.
func heldInvoices(t *testing.T, around sqlxcases.Database) *sqlserial.Store {
	t.Helper()
	dialect := sqlstore.PostgreSQL
	if around.Dialect == sqlxhelper.MySQL {
		dialect = sqlstore.MySQL
	}
	table, err := servertest.Table(around.DB.DB, sqlserial.DefaultTable)
	if err != nil {
		t.Fatal(err)
	}
	numbers, err := sqlserial.New(around.DB.DB, sqlstore.Config{Dialect: dialect, Table: table})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(numbers.CreateTables(t.Context()), numbers.Define(t.Context(), heldSeries)); err != nil {
		t.Fatal(err)
	}
	execSqlx(t, around.DB, "CREATE TABLE invoices (id BIGINT PRIMARY KEY, number VARCHAR(40) NOT NULL UNIQUE)")
	return numbers
}

// write takes a number and stores it, in every run.
func write(ctx context.Context, db *sqlx.DB, h *sqlxhelper.Helper, numbers *sqlserial.Store, row *invoice) (runs int, err error) {
	err = sqlxhelper.InTx(ctx, db, nil, func(tx *sqlx.Tx) error {
		runs++
		n, err := numbers.NextIn(ctx, tx, heldSeries, time.Now())
		if err != nil {
			return err
		}
		row.Number = n.Text
		return h.Insert(ctx, tx, "invoices", row)
	})
	return runs, err
}

// A COMMIT may arrive long after its connection broke. Whatever InTx makes of it, nil
// means that memory is what is stored, and that the number is this customer's alone.
func TestNumberInMemoryIsTheOneStoredWhenTheCommitIsHeldBack(t *testing.T) {
	onCommitProxies(t, func(t *testing.T, open behind) {
		for _, hold := range []time.Duration{300 * time.Millisecond, 2 * time.Second} {
			for name, fresh := range map[string]bool{"RowMadeOutside": false, "RowMadeInside": true} {
				t.Run(hold.String()+name, func(t *testing.T) {
					t.Parallel()
					through, around := open(t, &losing{what: commitLate, hold: hold})
					numbers := heldInvoices(t, around)
					h := sqlxhelper.New(sqlxcases.NewCounter(0))
					first, second := &invoice{}, &invoice{}
					runs, err := 0, error(nil)
					if fresh {
						err = sqlxhelper.InTx(t.Context(), through.DB, nil, func(tx *sqlx.Tx) error {
							runs++
							*first = invoice{}
							n, err := numbers.NextIn(t.Context(), tx, heldSeries, time.Now())
							if err != nil {
								return err
							}
							first.Number = n.Text
							return h.Insert(t.Context(), tx, "invoices", first)
						})
					} else {
						runs, err = write(t.Context(), through.DB, h, numbers, first)
					}
					if err != nil || runs != 1 {
						t.Errorf("InTx(commit held back) = %v after %d runs; want nil after 1", err, runs)
					}
					if _, err := write(t.Context(), around.DB, h, numbers, second); err != nil {
						t.Fatalf("InTx() = %v; want nil", err)
					}
					var stored []invoice
					if err := around.DB.Select(&stored, "SELECT id, number FROM invoices ORDER BY number"); err != nil {
						t.Fatal(err)
					}
					if len(stored) != 2 || stored[0] != *first || stored[1] != *second {
						t.Errorf("memory has %v and %v, the table %v; want the same", *first, *second, stored)
					}
				})
			}
		}
	})
}

// A COMMIT that never arrives, on a connection that the server still believes in, is
// unknown when ctx ends.
func TestCommitThatNeverArrivesIsUnknownWhenTheContextEnds(t *testing.T) {
	onCommitProxies(t, func(t *testing.T, open behind) {
		proxy := &losing{what: commitLate, hold: time.Hour}
		through, around := open(t, proxy)
		numbers := heldInvoices(t, around)
		h := sqlxhelper.New(sqlxcases.NewCounter(0))
		row := &invoice{}
		runs, err := write(expiring{t.Context(), proxy.reached}, through.DB, h, numbers, row)
		if !errors.Is(err, sqlxhelper.ErrCommitUnknown) || !errors.Is(err, context.DeadlineExceeded) || runs != 1 {
			t.Errorf("InTx(commit that never arrives) = %v after %d runs; want ErrCommitUnknown and the deadline after 1", err, runs)
		}
	})
}
