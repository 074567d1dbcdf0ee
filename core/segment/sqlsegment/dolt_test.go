package sqlsegment_test

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/DATA-DOG/go-sqlmock"

	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/core/segment/sqlsegment"
	"github.com/snowkey/snowkey/core/sqlstore"
)

// The server is a mock that says what Dolt says of itself; nothing is written to it.
func TestDoltIsRefused(t *testing.T) {
	db, mock, err := sqlmock.New()
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s, err := sqlsegment.New(db, sqlstore.Config{Dialect: sqlstore.MySQL, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	for name, call := range map[string]func() error{
		"CreateTables": func() error { return s.CreateTables(t.Context()) },
		"Create":       func() error { return s.Create(t.Context(), segment.Row{Tag: "a", Next: 1, Step: 1, Stride: 1}) },
		"Take":         func() error { _, err := s.Take(t.Context(), segment.Take{Tag: "a"}); return err },
	} {
		mock.ExpectBegin()
		mock.ExpectQuery("LOWER.CONCAT.@@version, ' ', @@version_comment.. LIKE '%dolt%'").
			WillReturnRows(sqlmock.NewRows([]string{"lock", "read_only", "flush", "dolt", "tidb", "now"}).AddRow(50, 0, 1, 1, 0, 1_000_010))
		mock.ExpectRollback()
		if err := call(); !errors.Is(err, sqlstore.ErrDolt) {
			t.Errorf("%s on Dolt = %v; want %v", name, err, sqlstore.ErrDolt)
		}
		if err := mock.ExpectationsWereMet(); err != nil {
			t.Errorf("%s on Dolt: %v", name, err)
		}
	}
}
