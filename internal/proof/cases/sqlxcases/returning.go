package sqlxcases

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

type joined struct{ Name string }

// bill has a key whose column is named after the table, a column with a default and one that the
// database computes.
type bill struct {
	BillID types.Snowflake `db:"bill_id" snowkey:"pk"`
	Net    int64           `db:"net"`
	Status string          `db:"status"`
	Note   sql.NullString  `db:"note"`
	Gross  int64           `db:"gross" snowkey:"-"`
	Parts  []part          `db:"-" snowkey:"bill_parts,fk=bill_id"`
	Joined joined          `db:"joined" snowkey:"-"`
}

type part struct {
	PartID types.Snowflake `db:"part_id" snowkey:"pk"`
	BillID types.Snowflake `db:"bill_id"`
	Kind   string          `db:"kind"`
}

var billTables = []string{
	"CREATE TABLE bills (bill_id BIGINT PRIMARY KEY, net BIGINT NOT NULL UNIQUE, status VARCHAR(20) DEFAULT 'new', note VARCHAR(20), " +
		"gross BIGINT GENERATED ALWAYS AS (net * 2) STORED)",
	"CREATE TABLE bill_parts (part_id BIGINT PRIMARY KEY, bill_id BIGINT NOT NULL, kind VARCHAR(20) NOT NULL DEFAULT 'plain', FOREIGN KEY (bill_id) REFERENCES bills (bill_id))",
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
				if err := sqlxhelper.New(NewCounter(1000), options...).InsertGraph(ctx, d.DB, "bills", rows); err != nil {
					t.Fatalf("InsertGraph() = %v; want nil", err)
				}
				for i, r := range rows {
					if r.Net != int64(i+1) || r.Status != "new" || r.Gross != 2*r.Net || r.Parts[0].Kind != "plain" || r.Parts[1].Kind != "plain" || r.Parts[1].BillID != r.BillID {
						t.Fatalf("row %d = %+v; want status new, gross %d, and plain parts", i, r, 2*r.Net)
					}
				}
				d.wantCount(t, "bills", n)
			})
		}
	}
}

// All columns means the table's columns, not those of a join or of sqlx's mapping of a struct.
func (d Database) returnUpserted(t *testing.T) {
	d.tables(t, billTables...)
	d.exec(t, "INSERT INTO bills (bill_id, net, status, note) VALUES (1, 2, 'stored', 'there')")
	rows := append(newBills(3), newBills(2)...)
	h := sqlxhelper.New(NewCounter(1000), sqlxhelper.OnConflictDoNothing("net"), sqlxhelper.Returning())
	if err := h.InsertMany(ctx, d.DB, "bills", rows); err != nil {
		t.Fatalf("InsertMany() = %v; want nil", err)
	}
	for i, want := range []string{"mine", "stored", "mine", "mine", "stored"} {
		if rows[i].Status != want || rows[i].Gross != 2*rows[i].Net || (rows[i].Note.String == "there") != (want == "stored") {
			t.Errorf("row %d = %+v; want status %s", i, rows[i], want)
		}
	}
	if rows[0].BillID != rows[3].BillID || rows[1].BillID != 1 || rows[4].BillID != 1 {
		t.Errorf("keys = %d, %d, %d, %d, %d; want the first twice, and 1 twice", rows[0].BillID, rows[1].BillID, rows[2].BillID, rows[3].BillID, rows[4].BillID)
	}
}

func (d Database) returnNull(t *testing.T) {
	type plain struct {
		BillID types.Snowflake `db:"bill_id" snowkey:"pk"`
		Net    int64           `db:"net"`
		Note   string          `db:"note" snowkey:"-"`
	}
	d.tables(t, billTables...)
	rows := []plain{{Net: 1, Note: "mine"}, {Net: 2}}
	err := sqlxhelper.New(NewCounter(1000), sqlxhelper.Returning()).InsertMany(ctx, d.DB, "bills", rows)
	if err == nil || !strings.Contains(err.Error(), `"note"`) || !strings.Contains(err.Error(), "1001") {
		t.Errorf("InsertMany(NULL into a string) = %v; want an error with the key and the column", err)
	}
	if rows[0].Note != "mine" {
		t.Errorf("the field was changed to %q", rows[0].Note)
	}
	d.wantCount(t, "bills", 0)
	if err := sqlxhelper.New(NewCounter(1000), sqlxhelper.Returning("net")).InsertMany(ctx, d.DB, "bills", rows); err != nil {
		t.Errorf("InsertMany(without the note) = %v; want nil", err)
	}
}
