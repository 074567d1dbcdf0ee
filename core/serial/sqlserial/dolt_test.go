package sqlserial_test

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/DATA-DOG/go-sqlmock"

	"github.com/snowkey/snowkey/core/serial"
	"github.com/snowkey/snowkey/core/serial/sqlserial"
	"github.com/snowkey/snowkey/core/sqlstore"
)

// The server is a mock that says what Dolt says of itself; nothing is written to it.
func TestDoltIsRefused(t *testing.T) {
	db, mock, err := sqlmock.New()
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s, err := sqlserial.New(db, sqlstore.Config{Dialect: sqlstore.MySQL, Table: "shop." + sqlserial.DefaultTable, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	series := serial.Series{Name: "x", Digits: 3}
	const asks = "LOWER.CONCAT.@@version, ' ', @@version_comment.. LIKE '%dolt%'"
	for name, call := range map[string]func() error{
		"CreateTables": func() error { return s.CreateTables(t.Context()) },
		"Define":       func() error { return s.Define(t.Context(), series) },
	} {
		mock.ExpectBegin()
		mock.ExpectQuery(asks).WillReturnRows(sqlmock.NewRows([]string{"lock", "read_only", "flush", "dolt", "tidb", "now"}).AddRow(50, 0, 1, 1, 0, 1_000_010))
		mock.ExpectRollback()
		if err := call(); !errors.Is(err, sqlstore.ErrDolt) {
			t.Errorf("%s on Dolt = %v; want %v", name, err, sqlstore.ErrDolt)
		}
		if err := mock.ExpectationsWereMet(); err != nil {
			t.Errorf("%s on Dolt: %v", name, err)
		}
	}
	// NextIn in a transaction, without a call of Define.
	mock.ExpectBegin()
	mock.ExpectQuery(asks).WillReturnRows(sqlmock.NewRows([]string{"dolt"}).AddRow(1))
	mock.ExpectRollback()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := s.NextIn(t.Context(), tx, series, time.Now()); !errors.Is(err, sqlstore.ErrDolt) || n != (serial.Number{}) {
		t.Errorf("NextIn on Dolt = %v, %v; want %v", n, err, sqlstore.ErrDolt)
	}
	if err := errors.Join(tx.Rollback(), mock.ExpectationsWereMet()); err != nil {
		t.Errorf("NextIn on Dolt: %v", err)
	}
}
