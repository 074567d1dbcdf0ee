package main

import (
	"context"
	"database/sql"
	"io"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// importedFile returns a database that holds the sample once, through both stores.
// It is made once; every test works on a copy.
var importedFile = sync.OnceValues(func() ([]byte, error) {
	folder, err := os.MkdirTemp("", "orders-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	file := filepath.Join(folder, "orders.db")
	if err := run(context.Background(), []string{"-db", file}, io.Discard, io.Discard); err != nil {
		return nil, err
	}
	return os.ReadFile(file)
})

// imported opens a database that holds the sample, with the writers that wrote it.
func imported(t *testing.T) (*sql.DB, []*writer, *dataset) {
	t.Helper()
	content, err := importedFile()
	if err != nil {
		t.Fatal(err)
	}
	file := dbFile(t)
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := openDatabase(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	writers := openStores(t, db)
	for _, w := range writers {
		follow(t, db, w)
	}
	return db, writers, sampleData(t)
}

// Each way to spoil what is stored, with P for the prefix of a store, and a part
// of the error that must say so. One of the checks has to see it.
var spoiled = []struct {
	name, sql, want string
}{
	{"customer lost", "DELETE FROM Pcustomers WHERE code = 'AALTO'", "11 customers are stored, the input has 12"},
	{"customer changed", "UPDATE Pcustomers SET company = 'Egger' WHERE code = 'EGGER'", "customer EGGER is stored as"},
	{"customer's NULL lost", "UPDATE Pcustomers SET city = NULL WHERE code = 'EGGER'", "customer EGGER is stored as"},
	{"customer recoded", "UPDATE Pcustomers SET code = 'X' WHERE code = 'EGGER'", "customer EGGER is stored as"},
	{"product lost", "DELETE FROM Pproducts WHERE number = 3", "14 products are stored, the input has 15"},
	{"product changed", "UPDATE Pproducts SET unit_price = unit_price + 1 WHERE number = 3", "product 3 is stored as"},
	{"order lost with its lines", "DELETE FROM Porder_items WHERE order_id IN (SELECT id FROM Porders WHERE number = 5003); DELETE FROM Porders WHERE number = 5003", "24 orders are stored, the input has 25"},
	{"line lost", "DELETE FROM Porder_items WHERE id = (SELECT max(id) FROM Porder_items)", "order 5025 is stored as"},
	{"line of nobody", "INSERT INTO Porder_items SELECT 5, 6, product_id, unit_price, quantity, discount_percent, total FROM Porder_items LIMIT 1", "1 rows point at a row that is not there"},
	{"line in the wrong order", "UPDATE Porder_items SET order_id = (SELECT id FROM Porders WHERE number = 5009) WHERE id = (SELECT min(id) FROM Porder_items)", "order 5001 is stored as"},
	{"line with another product", "UPDATE Porder_items SET product_id = (SELECT id FROM Pproducts WHERE number = 2) WHERE id = (SELECT min(id) FROM Porder_items)", "order 5001 is stored as"},
	{"line with no product", "UPDATE Porder_items SET product_id = 9 WHERE id = (SELECT min(id) FROM Porder_items)", `"product_id":"9"`},
	{"order with another customer", "UPDATE Porders SET customer_id = (SELECT id FROM Pcustomers WHERE code = 'AALTO') WHERE number = 5001", "order 5001 is stored as"},
	{"order with no customer", "UPDATE Porders SET customer_id = 9 WHERE number = 5001", `"customer_id":"9"`},
	{"quantity changed", "UPDATE Porder_items SET quantity = quantity + 1 WHERE id = (SELECT min(id) FROM Porder_items)", "order 5001 is stored as"},
	{"total off by 1/100 cent", "UPDATE Porders SET total = total + 1 WHERE number = 5001", "order 5001 is stored as"},
	{"date changed", "UPDATE Porders SET ordered_at = '2024-02-20 00:00:00+00:00' WHERE number = 5001", "order 5001 is stored as"},
	{"shipped after all", "UPDATE Porders SET shipped_at = '2024-05-20 00:00:00+00:00' WHERE number = 5025", "order 5025 is stored as"},
	{"city lost its accents", "UPDATE Porders SET ship_city = 'Cordoba' WHERE number = 5004", "order 5004 is stored as"},
	{"key there twice", "UPDATE Pimports SET id = (SELECT min(id) FROM Porder_items); UPDATE Pcustomers SET import_id = (SELECT id FROM Pimports); UPDATE Pproducts SET import_id = (SELECT id FROM Pimports); UPDATE Porders SET import_id = (SELECT id FROM Pimports)", "the file holds 226 rows, but 225 distinct keys"},
	{"totals of the import changed", "UPDATE Pimports SET total = total + 1", "1 of 1 finished imports no longer have the orders, lines and total that they ended with"},
}

func TestVerificationSeesWhatIsSpoiled(t *testing.T) {
	for _, tt := range spoiled {
		for i, prefix := range []string{"gorm_", "sqlx_"} {
			t.Run(prefix+" "+tt.name, func(t *testing.T) {
				db, stores, d := imported(t)
				if _, err := verifyAll(t.Context(), db, stores, d); err != nil {
					t.Fatalf("before: %v; want nil", err)
				}
				spoil(t, db, strings.NewReplacer("Pi", prefix+"i", "Pc", prefix+"c", "Pp", prefix+"p", "Po", prefix+"o").Replace(tt.sql))
				want := strings.ReplaceAll(tt.want, "Porders", prefix+"orders")
				if tt.name == "key there twice" {
					follow(t, db, stores[i])
				}
				if _, err := verifyAll(t.Context(), db, stores, d); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s: verification = %v; want %s", stores[i].name(), err, want)
				}
			})
		}
	}
}

// spoil runs SQL that the foreign keys would refuse.
func spoil(t *testing.T, db *sql.DB, query string) {
	t.Helper()
	for _, q := range []string{"PRAGMA foreign_keys = off", query} {
		if _, err := db.ExecContext(t.Context(), q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
}

// follow tells a writer the key of the only import in its tables.
func follow(t *testing.T, db *sql.DB, w *writer) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), "SELECT id FROM "+w.prefix()+"imports").Scan(&w.imp.ID); err != nil {
		t.Fatal(err)
	}
}

func TestASpoiledEarlierImportIsSeen(t *testing.T) {
	for name, tt := range map[string]struct{ sql, want string }{
		"order lost":        {"DELETE FROM Porder_items WHERE order_id = (SELECT min(id) FROM Porders); DELETE FROM Porders WHERE id = (SELECT min(id) FROM Porders)", "1 of 2 finished imports"},
		"line lost":         {"DELETE FROM Porder_items WHERE id = (SELECT min(id) FROM Porder_items)", "1 of 2 finished imports"},
		"line changed":      {"UPDATE Porder_items SET total = total + 1 WHERE id = (SELECT min(id) FROM Porder_items)", "1 of 2 finished imports"},
		"order changed":     {"UPDATE Porders SET total = total + 1 WHERE id = (SELECT min(id) FROM Porders)", "1 of 2 finished imports"},
		"order moved":       {"UPDATE Porders SET import_id = (SELECT max(id) FROM Pimports), number = 1 WHERE id = (SELECT min(id) FROM Porders)", "2 of 2 finished imports"},
		"an end never come": {"UPDATE Pimports SET finished_at = NULL", ""},
	} {
		for i, prefix := range []string{"gorm_", "sqlx_"} {
			t.Run(prefix+" "+name, func(t *testing.T) {
				db, stores, d := imported(t)
				var stderr strings.Builder
				if err := importAll(t.Context(), d, stores, &stderr, &stderr); err != nil {
					t.Fatal(err)
				}
				if got, err := countFinished(t.Context(), db, stores[i]); got != 2 || err != nil {
					t.Fatalf("countFinished before = %d, %v; want 2", got, err)
				}
				spoil(t, db, strings.ReplaceAll(strings.ReplaceAll(tt.sql, "Porder", prefix+"order"), "Pimport", prefix+"import"))
				got, err := countFinished(t.Context(), db, stores[i])
				if tt.want == "" && (got != 0 || err != nil) {
					t.Errorf("countFinished = %d, %v; want 0", got, err)
				}
				if tt.want != "" && (got != 0 || err == nil || !strings.Contains(err.Error(), tt.want)) {
					t.Errorf("countFinished = %d, %v; want 0 and %s", got, err, tt.want)
				}
			})
		}
	}
}

func TestTheExactTotalComesFromTheTextOfTheInput(t *testing.T) {
	if got := sampleData(t).exact.FloatString(4); got != "28760.7370" {
		t.Errorf("exact total = %s; want 28760.7370", got)
	}
	if got := exactTotal("118.7500001", "12", "0.05"); got.Cmp(big.NewRat(1187500001*12*95, 1000000000)) != 0 {
		t.Errorf("exactTotal(118.7500001, 12, 0.05) = %v; want nothing rounded", got)
	}
}

func TestATotalThatIsOffBy1Of100CentIsSeen(t *testing.T) {
	_, writers, d := imported(t)
	stored, err := writers[0].read(t.Context(), writers[0].imp.ID)
	if err != nil {
		t.Fatal(err)
	}
	// The same mistake on both sides: only the exact total can show it.
	stored.orders[0].Total++
	d.orders[0].Total++
	want := "the orders add up to 28760.7371, the input to 28760.7370"
	if err := verifyImport(d, writers[0].imp.ID, stored); err == nil || err.Error() != want {
		t.Errorf("verifyImport = %v; want %s", err, want)
	}
}

func TestALineThatWasNeverReadIsMissed(t *testing.T) {
	_, stores, d := imported(t)
	stored, err := stores[0].read(t.Context(), stores[0].imp.ID)
	if err != nil {
		t.Fatal(err)
	}
	d.totals.lines++
	want := "60 order lines are stored, the input has 61"
	if err := verifyImport(d, stores[0].imp.ID, stored); err == nil || err.Error() != want {
		t.Errorf("verifyImport = %v; want %s", err, want)
	}
}

func TestMissingKeysAreCounted(t *testing.T) {
	db, stores, _ := imported(t)
	// A bigint primary key may be NULL in SQLite.
	spoil(t, db, "INSERT INTO gorm_imports (id, source, orders, lines, total) VALUES (NULL, '', 0, 0, 0)")
	want := "the file holds 227 rows, but 226 distinct keys"
	if _, err := countKeys(t.Context(), db, stores); err == nil || err.Error() != want {
		t.Errorf("countKeys = %v; want %s", err, want)
	}
}

func TestAKeyInTheWrongOrderIsSeen(t *testing.T) {
	_, stores, d := imported(t)
	for _, s := range stores {
		stored, err := s.read(t.Context(), s.imp.ID)
		if err != nil {
			t.Fatal(err)
		}
		stored.orders[0].Items[1].OrderID = 7
		err = verifyImport(d, s.imp.ID, stored)
		if want := `"order_id":"7"`; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: verifyImport = %v; want %s", s.name(), err, want)
		}
	}
}
