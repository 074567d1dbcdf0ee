package dialect

import (
	"context"
	"database/sql"
	"testing"
)

func memory(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite3", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// The rows of a query whose own context goes on end with the transaction, and database/sql does not
// say why.
func TestRowsOfATransactionThatAContextHasEndedAreInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	tx, err := memory(t).BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := tx.QueryContext(t.Context(), "SELECT 1")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	if !rows.Next() {
		t.Fatal(rows.Err())
	}
	cancel()
	var n int
	for err == nil { // until database/sql has rolled back
		err = rows.Scan(&n)
	}
	if !Interrupted(err) {
		t.Errorf("Interrupted(%v) = false; want true", err)
	}
}
