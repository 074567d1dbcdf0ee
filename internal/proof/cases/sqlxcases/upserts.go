package sqlxcases

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

// sale has two unique columns besides its key.
type sale[K any] struct {
	ID     K         `db:"id"`
	Number *string   `db:"number"`
	Code   *string   `db:"code"`
	Status string    `db:"status"`
	Lines  []line[K] `db:"-" snowkey:"sale_lines,fk=sale_id"`
}

type line[K any] struct {
	types.Model
	SaleID K      `db:"sale_id"`
	SKU    string `db:"sku"`
}

// saleTables makes the tables, in which a number is the same in any case. The database counts the
// keys that it is not given. On MySQL they may be unsigned.
func (d Database) saleTables(t *testing.T, unsigned string) {
	key, counted, ignoringCase := "BIGINT", "INTEGER PRIMARY KEY AUTOINCREMENT", "NOCASE"
	switch d.Dialect {
	case sqlxhelper.PostgreSQL:
		counted, ignoringCase = "BIGSERIAL PRIMARY KEY", "ignore_case"
	case sqlxhelper.MySQL:
		key += unsigned
		counted, ignoringCase = key+" AUTO_INCREMENT PRIMARY KEY", "utf8mb4_general_ci"
	}
	d.tables(t,
		"CREATE TABLE sales (id "+counted+", number VARCHAR(20) COLLATE "+ignoringCase+" UNIQUE, code VARCHAR(20) UNIQUE, status VARCHAR(20) NOT NULL)",
		"CREATE TABLE sale_lines (id BIGINT PRIMARY KEY, sale_id "+key+" NOT NULL, sku VARCHAR(20) NOT NULL UNIQUE, FOREIGN KEY (sale_id) REFERENCES sales (id))")
}

func (d Database) withCollation(t *testing.T) {
	t.Helper()
	if d.Dialect == sqlxhelper.PostgreSQL {
		d.exec(t, "CREATE COLLATION ignore_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
		t.Cleanup(func() { d.exec(t, "DROP COLLATION ignore_case") })
	}
}

// A ledger is what the table of sales has to have.
type ledger[K ~int64 | ~uint64] struct {
	*rand.Rand
	rows   []sale[K] // without lines
	lines  map[types.Snowflake]K
	made   int // so many texts and keys were made
	source *Counter
}

// upserts makes random upserts, of sales and of graphs, through handles of every kind. Each gives
// the rows the keys of the stored ones, and stores what it has to, or nothing.
func (d Database) upserts(t *testing.T) {
	d.withCollation(t)
	t.Run("Snowflake", upsertsWith[types.Snowflake](d, ""))
	t.Run("ID", upsertsWith[types.ID[row]](d, ""))
	t.Run("int64", upsertsWith[int64](d, ""))
	t.Run("uint64", upsertsWith[uint64](d, " UNSIGNED"))
}

func upsertsWith[K ~int64 | ~uint64](d Database, unsigned string) func(t *testing.T) {
	return func(t *testing.T) {
		d.saleTables(t, unsigned)
		l := &ledger[K]{Rand: rand.New(rand.NewPCG(5, 6)), lines: map[types.Snowflake]K{}, source: NewCounter(1000)}
		for n := range 20 {
			h := handles[l.IntN(len(handles))]
			_ = d.through(t, h, func(db sqlxhelper.DB) error {
				for range 1 + l.IntN(3) {
					l.upsert(t, d, db, fmt.Sprintf("upsert %d, by %s", n, h.name))
				}
				return nil
			})
			if t.Failed() {
				return
			}
		}
		d.wantCount(t, "sale_lines", len(l.lines))
	}
}

// some returns rows to upsert. Some have keys, be they new or those of stored rows.
func (l *ledger[K]) some(target string) []sale[K] {
	rows := make([]sale[K], []int{1, 1, 2, 3, 4, 5, 60, 700}[l.IntN(8)])
	fresh := target == "id" && l.IntN(4) > 0 // numbers, or most calls would be refused
	for i := range rows {
		r := &rows[i]
		l.made++
		r.Status = fmt.Sprint("s", l.made)
		number := fmt.Sprint([]string{"n", "N"}[l.IntN(2)], l.IntN(2*len(rows)+4))
		if fresh {
			number = fmt.Sprint("u", l.made)
		}
		if l.IntN(6) > 0 {
			r.Number = &number
		}
		if l.IntN(8*len(rows)) == 0 {
			code := fmt.Sprint("c", l.IntN(4))
			r.Code = &code
		}
		switch l.IntN(6) {
		case 0:
			r.ID = K(1<<40 + int64(l.made))
			if _, plain := any(r.ID).(int64); plain && l.IntN(2) == 0 {
				r.ID = -r.ID
			}
		case 1:
			if len(l.rows) > 0 && (target == "id" || l.IntN(len(rows)) == 0) {
				s := l.rows[l.IntN(len(l.rows))]
				if r.ID = s.ID; l.IntN(2) == 0 {
					r.Number = s.Number
				}
			}
		}
	}
	return rows
}

// store does in the ledger what an upsert of the rows has to do, of which some were given keys. It
// returns where each row is. refused says that the database has to refuse the rows, and doubtful
// that it may.
func (l *ledger[K]) store(dialect sqlxhelper.Dialect, rows []sale[K], given []K, target string, updates bool) (at []int, refused, doubtful bool) {
	same := func(a, b *string) bool { return a != nil && b != nil && strings.EqualFold(*a, *b) }
	before, touched := len(l.rows), map[int]bool{}
	for i, r := range rows {
		met, others := -1, 0
		for j, s := range l.rows {
			number, key := same(r.Number, s.Number), given[i] == s.ID
			if number && target == "number" || key && target == "id" {
				met = j
			} else if number || key || same(r.Code, s.Code) {
				others++
			}
		}
		switch {
		case met < 0 && others > 0:
			refused = true
		case met < 0:
			met = len(l.rows)
			l.rows = append(l.rows, sale[K]{ID: cmp.Or(given[i], r.ID), Number: r.Number, Code: r.Code, Status: r.Status})
		default:
			// A server may look at the other index first, and PostgreSQL updates no row twice.
			doubtful = doubtful || others > 0 || updates && dialect == sqlxhelper.PostgreSQL && (met >= before || touched[met])
			if updates {
				l.rows[met].Status = r.Status
			}
		}
		touched[met] = true
		at = append(at, met)
	}
	return at, refused, doubtful
}

// upsert makes one call and compares the keys in memory and the table with the ledger.
func (l *ledger[K]) upsert(t *testing.T, d Database, db sqlxhelper.DB, about string) {
	t.Helper()
	target, updates, reads := []string{"number", "number", "id"}[l.IntN(3)], l.IntN(2) == 0, l.IntN(2) == 0
	options := []sqlxhelper.Option{sqlxhelper.WithIntegerKeys(), sqlxhelper.OnConflictDoNothing(target)}
	if updates {
		options = append(options, sqlxhelper.OnConflictUpdate("status"), sqlxhelper.ConflictTarget(target))
	}
	if reads {
		options = append(options, sqlxhelper.Returning("status"))
	}
	h, rows := sqlxhelper.New(l.source, options...), l.some(target)
	given, stored := make([]K, len(rows)), slices.Clone(l.rows)
	for i := range rows {
		given[i] = rows[i].ID
	}
	graph, twice := l.IntN(3) == 0, false
	var err error
	switch {
	case graph:
		for i := range rows {
			l.made++
			rows[i].Lines = []line[K]{{SKU: fmt.Sprint(l.made, "a")}, {SKU: fmt.Sprint(l.made, "b")}}
		}
		if twice = l.IntN(3) == 0; twice { // after all the sales
			rows[len(rows)-1].Lines[1].SKU = rows[0].Lines[0].SKU
		}
		err = h.InsertGraph(ctx, db, "sales", rows)
	case len(rows) == 1:
		err = h.Insert(ctx, db, "sales", &rows[0])
	default:
		err = h.InsertMany(ctx, db, "sales", rows)
	}
	at, refused, doubtful := l.store(d.Dialect, rows, given, target, updates)
	about += fmt.Sprintf(", %d rows by %s, updates: %v, with lines: %v", len(rows), target, updates, graph)
	switch {
	case err == nil && (refused || twice):
		t.Fatalf("%s = nil; want an error", about)
	case err != nil && !refused && !doubtful && !twice || errors.Is(err, sqlxhelper.ErrTxBroken):
		t.Fatalf("%s = %v; want nil", about, err)
	case err != nil && !doubtful && !errors.Is(err, sqlxhelper.ErrDuplicateKey) && !(d.Dialect == sqlxhelper.MySQL && refused && errors.Is(err, sqlxhelper.ErrUnresolved)):
		t.Errorf("%s = %v; want ErrDuplicateKey", about, err)
	}
	if err != nil {
		l.rows = stored
	}
	fresh := map[K]bool{}
	for i, r := range rows {
		switch { // after an error the keys are those that were sent
		case err == nil && r.ID != l.rows[at[i]].ID:
			t.Errorf("%s: key %d = %d; want %d", about, i, r.ID, l.rows[at[i]].ID)
		case err == nil && reads && r.Status != l.rows[at[i]].Status:
			t.Errorf("%s: status %d = %q; want %q", about, i, r.Status, l.rows[at[i]].Status)
		case err != nil && (given[i] == 0 && (r.ID == 0 || fresh[r.ID]) || given[i] != 0 && r.ID != given[i]):
			t.Errorf("%s: key %d after the error = %d, and was %d", about, i, r.ID, given[i])
		}
		fresh[r.ID] = true
		for _, line := range r.Lines {
			if line.SaleID != r.ID {
				t.Errorf("%s: the sale of a line = %d; want %d", about, line.SaleID, r.ID)
			}
			if err == nil {
				l.lines[line.ID] = r.ID
			}
		}
	}
	var got []sale[K]
	must(t, sqlx.SelectContext(ctx, db, &got, "SELECT * FROM sales ORDER BY id"))
	want := slices.SortedFunc(slices.Values(l.rows), func(a, b sale[K]) int { return cmp.Compare(a.ID, b.ID) })
	if len(got) != len(want) {
		t.Fatalf("%s: %d rows are stored; want %d", about, len(got), len(want))
	}
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("%s: stored is %+v; want %+v", about, got[i], want[i])
		}
	}
}

// The transaction has looked at the table before another one stored the row.
func (d Database) upsertAfterSnapshot(t *testing.T) {
	d.withCollation(t)
	for name, option := range map[string]sqlxhelper.Option{"stored": sqlxhelper.OnConflictDoNothing("number"), "sent": sqlxhelper.OnConflictUpdate("status")} {
		t.Run(name, func(t *testing.T) {
			d.saleTables(t, "")
			tx := d.begin(t)
			var n int
			must(t, tx.Get(&n, "SELECT COUNT(*) FROM sales"))
			d.exec(t, "INSERT INTO sales (id, number, status) VALUES (1, 'a', 'stored')")
			d.exec(t, "INSERT INTO sales (id, number, status) VALUES (5, 'b', 'stored')")
			numbers := []string{"a", "b", "c"}
			rows := []sale[int64]{{Number: &numbers[0], Status: "sent"}, {ID: 5, Number: &numbers[1], Status: "sent"}, {Number: &numbers[2], Status: "sent"}}
			h := sqlxhelper.New(NewCounter(1000), sqlxhelper.WithIntegerKeys(), sqlxhelper.ConflictTarget("number"), option, sqlxhelper.Returning("status"))
			if err := errors.Join(h.InsertMany(ctx, tx, "sales", rows), tx.Commit()); err != nil {
				t.Fatalf("InsertMany() = %v; want nil", err)
			}
			for i, want := range []sale[int64]{{ID: 1, Status: name}, {ID: 5, Status: name}, {ID: 1002, Status: "sent"}} {
				if rows[i].ID != want.ID || rows[i].Status != want.Status {
					t.Errorf("row %d = %d, %q; want %d, %q", i, rows[i].ID, rows[i].Status, want.ID, want.Status)
				}
			}
		})
	}
}

// A seat has a primary key of two columns, of which the source fills one. What it belongs to is
// written before it, plainly.
type seat struct {
	TenantID types.Snowflake `db:"tenant_id"`
	types.Model
	Code   string  `db:"code"`
	Tenant *tenant `db:"-" snowkey:"tenants,belongs_to=tenant_id"`
}

type tenant struct {
	types.Model
	Name string `db:"name"`
}

func (d Database) upsertOfTenants(t *testing.T) {
	d.tables(t,
		"CREATE TABLE tenants (id BIGINT PRIMARY KEY, name VARCHAR(20) NOT NULL)",
		"CREATE TABLE seats (tenant_id BIGINT NOT NULL, id BIGINT NOT NULL, code VARCHAR(20) NOT NULL, PRIMARY KEY (tenant_id, id), UNIQUE (tenant_id, code), FOREIGN KEY (tenant_id) REFERENCES tenants (id))")
	rows := []seat{{Code: "a", Tenant: &tenant{}}, {Code: "a", Tenant: &tenant{}}}
	h := sqlxhelper.New(NewCounter(1000), sqlxhelper.OnConflictDoNothing("tenant_id", "code"))
	if err := h.InsertGraph(ctx, d.DB, "seats", rows); err != nil {
		t.Fatalf("InsertGraph() = %v; want nil", err)
	}
	at := &tenant{}
	again := []seat{{TenantID: rows[1].Tenant.ID, Code: "a"}, {Code: "a", Tenant: at}, {Code: "b", Tenant: at}}
	if err := h.InsertGraph(ctx, d.DB, "seats", again); err != nil || again[0].ID != rows[1].ID || again[1].ID == again[2].ID || again[1].TenantID != at.ID || at.ID == 0 {
		t.Errorf("InsertGraph(upsert) = %v, %+v; want the key %d of the stored seat, and two new ones in the tenant %d", err, again, rows[1].ID, at.ID)
	}
	d.wantCount(t, "seats s JOIN tenants t ON t.id = s.tenant_id", 4)
	d.wantCount(t, "tenants", 3)
}

// mailbox has no unique column.
type mailbox struct {
	types.Model
	Email string  `db:"email"`
	Gone  *string `db:"gone"`
}

func (d Database) upsertOddIndex(t *testing.T) {
	for name, on := range map[string]string{"condition": "(email) WHERE gone IS NULL", "expression": "(LOWER(email))"} {
		t.Run(name, func(t *testing.T) {
			d.tables(t, "CREATE TABLE mailboxes (id BIGINT PRIMARY KEY, email VARCHAR(50) NOT NULL, gone VARCHAR(20))")
			d.exec(t, "CREATE UNIQUE INDEX mailboxes_odd ON mailboxes "+on)
			h := sqlxhelper.New(NewCounter(0))
			for call, n := range map[string]int{"VALUES": 2, "unnest": 20} {
				err := h.With(sqlxhelper.OnConflictDoNothing("email")).InsertMany(ctx, d.DB, "mailboxes", make([]mailbox, n))
				if at := (*sqlxhelper.InsertError)(nil); !errors.As(err, &at) || strings.Count(err.Error(), "sqlxhelper: ") != 1 || !strings.Contains(err.Error(), "want a unique index on exactly these columns") {
					t.Errorf("%s: InsertMany() = %v; want an InsertError that says what a target has to be", call, err)
				}
			}
			if err := h.With(sqlxhelper.OnConflictDoNothing("id")).InsertMany(ctx, d.DB, "mailboxes", make([]mailbox, 2)); !errors.Is(err, sqlxhelper.ErrDuplicateKey) {
				t.Errorf("InsertMany(two alike, with another target) = %v; want ErrDuplicateKey", err)
			}
			d.wantCount(t, "mailboxes", 0)
		})
	}
}
