package sqlxcases

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

// bill has a column with a default and one that the database computes.
type bill struct {
	types.Model
	Net    int64          `db:"net"`
	Status string         `db:"status"`
	Note   sql.NullString `db:"note"`
	Gross  int64          `db:"gross" snowkey:"-"`
	Parts  []part         `db:"-" snowkey:"bill_parts,fk=bill_id"`
	Joined joined         `db:"joined" snowkey:"-"`
}

type part struct {
	types.Model
	BillID types.Snowflake `db:"bill_id"`
	Kind   string          `db:"kind"`
}

var billTables = []string{
	"CREATE TABLE bills (id BIGINT PRIMARY KEY, net BIGINT NOT NULL UNIQUE, status VARCHAR(20) DEFAULT 'new', note VARCHAR(20), " +
		"gross BIGINT GENERATED ALWAYS AS (net * 2) STORED)",
	"CREATE TABLE bill_parts (id BIGINT PRIMARY KEY, bill_id BIGINT NOT NULL, kind VARCHAR(20) NOT NULL DEFAULT 'plain', FOREIGN KEY (bill_id) REFERENCES bills (id))",
}

func newBills(n int) []bill {
	rows := make([]bill, n)
	for i := range rows {
		rows[i] = bill{Net: int64(i + 1), Status: "mine", Parts: []part{{Kind: "mine"}, {Kind: "mine"}}}
	}
	return rows
}

func (d Database) omitAndReturn(t *testing.T) {
	for _, n := range []int{1, 3, 1100} {
		for name, options := range map[string][]sqlxhelper.Option{
			"Omit":    {sqlxhelper.Omit("status", "bill_parts.kind"), sqlxhelper.Returning("status", "gross", "bill_parts.kind", "bill_parts.bill_id")},
			"Columns": {sqlxhelper.Columns("net", "note", "bill_parts.bill_id"), sqlxhelper.Returning("bills.status", "gross", "bill_parts.kind")},
		} {
			t.Run(fmt.Sprint(name, n), func(t *testing.T) {
				d.tables(t, billTables...)
				rows := newBills(n)
				if err := upserter(options...).InsertGraph(ctx, d.DB, "bills", rows); err != nil {
					t.Fatalf("InsertGraph() = %v; want nil", err)
				}
				for i, r := range rows {
					if r.Net != int64(i+1) || r.Status != "new" || r.Gross != 2*r.Net || r.Parts[0].Kind != "plain" || r.Parts[1].Kind != "plain" || r.Parts[1].BillID != r.ID {
						t.Fatalf("row %d = %+v; want status new, gross %d, and plain parts", i, r, 2*r.Net)
					}
				}
				d.wantCount(t, "bills", n)
			})
		}
	}
}

// All columns means the table's columns, not those of a join or of sqlx's mapping of a struct.
func (d Database) returnAll(t *testing.T) {
	d.tables(t, billTables...)
	rows := newBills(3)
	rows[1].Note = sql.NullString{String: "n", Valid: true}
	want := slices.Clone(rows)
	if err := upserter(sqlxhelper.Returning()).InsertMany(ctx, d.DB, "bills", rows); err != nil {
		t.Fatalf("InsertMany() = %v; want nil", err)
	}
	for i, r := range rows {
		if r.Net != want[i].Net || r.Status != "mine" || r.Gross != 2*r.Net || r.Note != want[i].Note || r.ID == 0 || len(r.Parts) != 2 {
			t.Errorf("row %d = %+v; want it as it was, and gross %d", i, r, 2*r.Net)
		}
	}
}

func (d Database) returnUpserted(t *testing.T) {
	d.tables(t, billTables...)
	d.exec(t, "INSERT INTO bills (id, net, status, note) VALUES (1, 2, 'stored', 'there')")
	rows := append(newBills(3), newBills(2)...)
	h := upserter(sqlxhelper.OnConflictDoNothing("net"), sqlxhelper.Returning())
	if err := h.InsertMany(ctx, d.DB, "bills", rows); err != nil {
		t.Fatalf("InsertMany() = %v; want nil", err)
	}
	for i, want := range []string{"mine", "stored", "mine", "mine", "stored"} {
		if rows[i].Status != want || rows[i].Gross != 2*rows[i].Net || (rows[i].Note.String == "there") != (want == "stored") {
			t.Errorf("row %d = %+v; want status %s", i, rows[i], want)
		}
	}
	if rows[0].ID != rows[3].ID || rows[1].ID != 1 || rows[4].ID != 1 {
		t.Errorf("keys = %d, %d, %d, %d, %d; want the first twice, and 1 twice", rows[0].ID, rows[1].ID, rows[2].ID, rows[3].ID, rows[4].ID)
	}
}

func (d Database) returnNull(t *testing.T) {
	type plain struct {
		types.Model
		Net  int64  `db:"net"`
		Note string `db:"note" snowkey:"-"`
	}
	d.tables(t, billTables...)
	rows := []plain{{Net: 1, Note: "mine"}, {Net: 2}}
	err := upserter(sqlxhelper.Returning()).InsertMany(ctx, d.DB, "bills", rows)
	if err == nil || !strings.Contains(err.Error(), `"note"`) || !strings.Contains(err.Error(), "1001") {
		t.Errorf("InsertMany(NULL into a string) = %v; want an error with the key and the column", err)
	}
	if rows[0].Note != "mine" {
		t.Errorf("the field was changed to %q", rows[0].Note)
	}
	d.wantCount(t, "bills", 0)
	if err := upserter(sqlxhelper.Returning("net")).InsertMany(ctx, d.DB, "bills", rows); err != nil {
		t.Errorf("InsertMany(without the note) = %v; want nil", err)
	}
}

func (d Database) progress(t *testing.T) {
	d.tables(t, billTables...)
	rows := newBills(1700)
	var reports []int
	h := sqlxhelper.New(NewCounter(0), sqlxhelper.OnProgress(func(done, total int) {
		if total != 3*1700 {
			t.Fatalf("total = %d; want %d, children included", total, 3*1700)
		}
		reports = append(reports, done)
	}))
	for _, last := range []error{nil, errors.New("fails")} {
		reports = nil
		if err := h.InsertGraph(ctx, d.DB, "bills", rows); (err == nil) != (last == nil) {
			t.Fatalf("InsertGraph() = %v; want %v", err, last)
		}
		for i, done := range reports {
			if done <= 0 || done > 3*1700 || i > 0 && done <= reports[i-1] {
				t.Fatalf("reports = %v; want them to rise to %d", reports, 3*1700)
			}
		}
		if last == nil && (len(reports) < 2 || reports[len(reports)-1] != 3*1700) {
			t.Errorf("reports = %v; want several, the last %d", reports, 3*1700)
		}
		if last != nil && len(reports) > 0 {
			t.Errorf("reports = %v; want none of a first statement that failed", reports)
		}
	}
}
