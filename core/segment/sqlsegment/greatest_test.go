//go:build cgo

package sqlsegment_test

import (
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/core/segment/sqlsegment"
	"github.com/snowkey/snowkey/internal/proof/servers/sqlitetest"
)

// shop returns a database with tables of a program, in a file of its own.
func shop(t *testing.T, texts ...string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite3", filepath.Join(sqlitetest.Folder(t), "shop.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	for _, text := range texts {
		if _, err := db.Exec(text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	return db
}

func TestARowIsRaisedAboveTheGreatestKeyAndNeverLowered(t *testing.T) {
	db := shop(t,
		"CREATE TABLE orders (id INTEGER PRIMARY KEY)", "INSERT INTO orders VALUES (7), (1000), (-3)",
		`CREATE TABLE "order" ("select" INTEGER PRIMARY KEY)`, `INSERT INTO "order" VALUES (2000)`,
		"CREATE TABLE empty (id INTEGER PRIMARY KEY)")
	s := open(t, filepath.Join(sqlitetest.Folder(t), "segments.db"))
	for _, tag := range []string{"orders", "spread"} {
		row := segment.Row{Tag: tag, Next: 1, Step: 10, Stride: 1}
		if tag == "spread" {
			row.Stride, row.Offset = 3, 2
		}
		if err := s.Create(t.Context(), row); err != nil {
			t.Fatal(err)
		}
	}
	orders, keyword, empty := sqlsegment.Column{Table: "orders", Name: "id", DB: db},
		sqlsegment.Column{Table: "order", Name: "select", DB: db}, sqlsegment.Column{Table: "empty", Name: "id", DB: db}
	for _, c := range []struct {
		tag     string
		columns []sqlsegment.Column
		floor   int64
		want    int64
	}{
		{"orders", []sqlsegment.Column{empty}, 0, 1},
		{"orders", []sqlsegment.Column{orders}, 1000, 1001},
		{"orders", []sqlsegment.Column{orders, keyword, empty}, 2000, 2001},
		{"orders", []sqlsegment.Column{orders}, 1000, 2001}, // it never lowers
		{"spread", []sqlsegment.Column{orders}, 1000, 333},  // 333·3+2 is 1001
		{"orders", []sqlsegment.Column{{Table: "snowkey_segments", Name: "max_id"}}, 2001, 2002},
	} {
		if n, err := s.Floor(c.columns...)(t.Context()); n != c.floor || err != nil {
			t.Errorf("Floor(%v) = %d, %v; want %d", c.columns, n, err, c.floor)
		}
		if row, err := s.RaiseAboveMax(t.Context(), c.tag, c.columns...); err != nil || row.Next != c.want {
			t.Errorf("RaiseAboveMax(%s, %v) = %+v, %v; want next = %d", c.tag, c.columns, row, err, c.want)
		}
	}
	if _, err := s.RaiseAboveMax(t.Context(), "nobody", orders); !errors.Is(err, segment.ErrNoTag) {
		t.Errorf("RaiseAboveMax of a tag without a row = %v; want %v", err, segment.ErrNoTag)
	}
}

// A backup of the table of segments is older than the orders.
func TestWithAFloorAnAllocatorRefusesToStartBelowTheKeysInUse(t *testing.T) {
	db := shop(t, "CREATE TABLE orders (id INTEGER PRIMARY KEY)", "INSERT INTO orders VALUES (1000)")
	s := open(t, filepath.Join(sqlitetest.Folder(t), "segments.db"))
	if err := s.Create(t.Context(), segment.Row{Tag: "orders", Next: 500, Step: 10, Stride: 1}); err != nil {
		t.Fatal(err)
	}
	ids := sqlsegment.Column{Table: "orders", Name: "id", DB: db}
	next := func() (int64, error) {
		a, err := segment.New(s, segment.Config{Tag: "orders", Floor: s.Floor(ids)})
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close(t.Context())
		id, err := a.Next(t.Context())
		return int64(id), err
	}
	if id, err := next(); !errors.Is(err, segment.ErrWentBack) || id != 0 {
		t.Errorf("Next = %d, %v; want %v", id, err, segment.ErrWentBack)
	}
	if _, err := s.RaiseAboveMax(t.Context(), "orders", ids); err != nil {
		t.Fatal(err)
	}
	if id, err := next(); id != 1001 || err != nil {
		t.Errorf("Next after RaiseAboveMax = %d, %v; want 1001", id, err)
	}
}

func TestColumnsWithoutIntegersAndBadNamesAreRefused(t *testing.T) {
	db := shop(t, "CREATE TABLE orders (id, price)", "INSERT INTO orders VALUES ('x', 1.5)")
	s := open(t, filepath.Join(sqlitetest.Folder(t), "segments.db"))
	for _, c := range []struct {
		columns     []sqlsegment.Column
		name, value string
	}{
		{nil, "columns", "none"},
		{[]sqlsegment.Column{{Table: "orders", Name: "id", DB: db}}, "column id", "x"},
		{[]sqlsegment.Column{{Table: "orders", Name: "price", DB: db}}, "column price", "1.5"},
		{[]sqlsegment.Column{{Table: `orders"; DROP TABLE orders; --`, Name: "id", DB: db}}, "Column.Table", "DROP"},
		{[]sqlsegment.Column{{Table: "", Name: "id", DB: db}}, "Column.Table", `""`},
		{[]sqlsegment.Column{{Table: "orders", Name: "id) FROM orders; --", DB: db}}, "Column.Name", "id)"},
		{[]sqlsegment.Column{{Table: "orders", Name: "orders.id", DB: db}}, "Column.Name", "orders.id"},
		{[]sqlsegment.Column{{Table: "orders", Name: strings.Repeat("x", 64), DB: db}}, "Column.Name", "xxx"},
	} {
		var value *core.ValueError
		n, err := s.Floor(c.columns...)(t.Context())
		if n != 0 || !errors.As(err, &value) || value.Name != c.name || !strings.Contains(err.Error(), c.value) || value.Want == "" {
			t.Errorf("Floor(%v) = %d, %v; want a *ValueError of %s with %s", c.columns, n, err, c.name, c.value)
		}
		if _, err := s.RaiseAboveMax(t.Context(), "orders", c.columns...); !errors.As(err, new(*core.ValueError)) {
			t.Errorf("RaiseAboveMax(%v) = %v; want a *ValueError", c.columns, err)
		}
	}
	if _, err := s.Floor(sqlsegment.Column{Table: "nowhere", Name: "id", DB: db})(t.Context()); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("Floor of a table that is missing = %v; want an error that names it", err)
	}
}
