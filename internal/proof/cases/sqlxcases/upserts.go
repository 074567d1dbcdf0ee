package sqlxcases

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

// sale has two unique columns besides its key.
type sale struct {
	types.Model
	Number *string `db:"number"`
	Code   *string `db:"code"`
	Status string  `db:"status"`
	Lines  []line  `db:"-" snowkey:"sale_lines,fk=sale_id"`
}

type line struct {
	types.Model
	SaleID types.Snowflake `db:"sale_id"`
	SKU    string          `db:"sku"`
}

var saleTables = []string{
	"CREATE TABLE sales (id BIGINT PRIMARY KEY, number VARCHAR(20) UNIQUE, code VARCHAR(20) UNIQUE, status VARCHAR(20) NOT NULL)",
	"CREATE TABLE sale_lines (id BIGINT PRIMARY KEY, sale_id BIGINT NOT NULL, sku VARCHAR(20) NOT NULL UNIQUE, FOREIGN KEY (sale_id) REFERENCES sales (id))",
}

func newSale(number string) sale { return sale{Number: &number, Status: "sent"} }

func withKey(id types.Snowflake, s sale) sale {
	s.ID = id
	return s
}

// stored inserts sales that are there before the call, with the keys from 1 on.
func (d Database) stored(t *testing.T, numbers ...string) {
	t.Helper()
	d.tables(t, saleTables...)
	rows := make([]sale, len(numbers))
	for i := range rows {
		rows[i] = newSale(numbers[i])
		rows[i].Status = "stored"
	}
	if err := sqlxhelper.New(NewCounter(0)).InsertMany(ctx, d.DB, "sales", rows); err != nil {
		t.Fatal(err)
	}
}

// wantSale expects a stored sale with this number, key and status.
func (d Database) wantSale(t *testing.T, number string, id types.Snowflake, status string) {
	t.Helper()
	var got struct {
		ID     types.Snowflake
		Status string
	}
	if err := d.DB.Get(&got, fmt.Sprintf("SELECT id, status FROM sales WHERE number = '%s'", number)); err != nil {
		t.Errorf("sale %s: %v; want one", number, err)
	} else if got.ID != id || got.Status != status {
		t.Errorf("sale %s = %d, %s; want %d, %s", number, got.ID, got.Status, id, status)
	}
}

func keysOf(rows []sale) []types.Snowflake {
	keys := make([]types.Snowflake, len(rows))
	for i := range rows {
		keys[i] = rows[i].ID
	}
	return keys
}

var (
	ignoring = []sqlxhelper.Option{sqlxhelper.OnConflictDoNothing("number")}
	updating = []sqlxhelper.Option{sqlxhelper.OnConflictUpdate("status"), sqlxhelper.ConflictTarget("number")}
)

func upserter(options ...sqlxhelper.Option) *sqlxhelper.Helper {
	return sqlxhelper.New(NewCounter(1000), options...)
}

func (d Database) upsertMix(t *testing.T) {
	for name, options := range map[string][]sqlxhelper.Option{"DoNothing": ignoring, "Update": updating} {
		t.Run(name, func(t *testing.T) {
			d.stored(t, "a", "b", "c")
			met := "sent"
			if name == "DoNothing" {
				met = "stored"
			}
			// New and stored, each with a key of the caller's and without.
			rows := []sale{newSale("x"), newSale("b"), withKey(70, newSale("c")), withKey(71, newSale("y")), withKey(1, newSale("a"))}
			h := upserter(options...)
			if err := h.InsertMany(ctx, d.DB, "sales", rows); err != nil {
				t.Fatalf("InsertMany() = %v; want nil", err)
			}
			if got, want := keysOf(rows), []types.Snowflake{1001, 2, 3, 71, 1}; !slices.Equal(got, want) {
				t.Errorf("keys = %v; want %v", got, want)
			}
			for number, id := range map[string]types.Snowflake{"a": 1, "b": 2, "c": 3} {
				d.wantSale(t, number, id, met)
			}
			d.wantSale(t, "x", 1001, "sent")
			d.wantSale(t, "y", 71, "sent")
			d.wantCount(t, "sales", 5)
			one := newSale("b")
			if err := h.Insert(ctx, d.DB, "sales", &one); err != nil || one.ID != 2 {
				t.Errorf("Insert(stored) = %v, key %d; want nil, 2", err, one.ID)
			}
			one = newSale("z")
			if err := h.Insert(ctx, d.DB, "sales", &one); err != nil || one.ID != 1004 {
				t.Errorf("Insert(new) = %v, key %d; want nil, 1004", err, one.ID)
			}
			d.wantSale(t, "z", 1004, "sent")
		})
	}
}

func (d Database) upsertMany(t *testing.T) {
	for name, options := range map[string][]sqlxhelper.Option{"DoNothing": ignoring, "Update": updating} {
		t.Run(name, func(t *testing.T) {
			var numbers []string
			for i := range 700 {
				numbers = append(numbers, fmt.Sprint("n", 2*i))
			}
			d.stored(t, numbers...)
			rows := make([]sale, 1401)
			for i := range rows {
				rows[i] = newSale(fmt.Sprint("n", i))
			}
			if err := upserter(options...).InsertMany(ctx, d.DB, "sales", rows); err != nil {
				t.Fatalf("InsertMany() = %v; want nil", err)
			}
			for i := range rows {
				want := types.Snowflake(i/2 + 1)
				if i%2 == 1 || i == 1400 {
					want = types.Snowflake(1001 + i)
				}
				if rows[i].ID != want {
					t.Fatalf("key of row %d = %d; want %d", i, rows[i].ID, want)
				}
			}
			d.wantCount(t, "sales", 1401)
		})
	}
}

func (d Database) upsertTwice(t *testing.T) {
	d.stored(t)
	rows := []sale{newSale("a"), newSale("b"), newSale("a"), withKey(7, newSale("b"))}
	if err := upserter(ignoring...).InsertMany(ctx, d.DB, "sales", rows); err != nil {
		t.Fatalf("InsertMany() = %v; want nil", err)
	}
	if got, want := keysOf(rows), []types.Snowflake{1001, 1002, 1001, 1002}; !slices.Equal(got, want) {
		t.Errorf("keys = %v; want %v", got, want)
	}
	d.wantCount(t, "sales", 2)
	rows = []sale{newSale("c"), newSale("c")}
	rows[1].Status = "later"
	err := sqlxhelper.New(NewCounter(2000), updating...).InsertMany(ctx, d.DB, "sales", rows)
	if d.Dialect == sqlxhelper.PostgreSQL {
		if err == nil || rows[0].ID != 2001 || rows[1].ID != 2002 {
			t.Errorf("InsertMany(update twice) = %v, keys %v; want an error, and 2001, 2002", err, keysOf(rows))
		}
		d.wantCount(t, "sales", 2)
		return
	}
	if err != nil || rows[0].ID != 2001 || rows[1].ID != 2001 {
		t.Errorf("InsertMany(update twice) = %v, keys %v; want nil, and 2001 twice", err, keysOf(rows))
	}
	d.wantSale(t, "c", 2001, "later")
}

func (d Database) upsertCollation(t *testing.T) {
	collate := map[sqlxhelper.Dialect]string{sqlxhelper.SQLite: "COLLATE NOCASE", sqlxhelper.MySQL: "COLLATE utf8mb4_general_ci"}[d.Dialect]
	d.tables(t, "CREATE TABLE sales (id BIGINT PRIMARY KEY, number VARCHAR(20) "+collate+" UNIQUE, code VARCHAR(20), status VARCHAR(20))")
	d.exec(t, "INSERT INTO sales (id, number, status) VALUES (1, 'abc', 'stored')")
	want := []types.Snowflake{1, 1}
	if collate == "" {
		want = []types.Snowflake{1001, 1002}
	}
	for _, options := range [][]sqlxhelper.Option{ignoring, updating} {
		rows := []sale{newSale("ABC"), newSale("aBc")}
		if err := upserter(options...).InsertMany(ctx, d.DB, "sales", rows); err != nil || !slices.Equal(keysOf(rows), want) {
			t.Errorf("InsertMany() = %v, keys %v; want nil, %v", err, keysOf(rows), want)
		}
		if collate == "" {
			return
		}
	}
	d.wantCount(t, "sales", 1)
}

// A row with NULL in the target is like no other. It is inserted.
func (d Database) upsertNull(t *testing.T) {
	for _, options := range [][]sqlxhelper.Option{ignoring, updating} {
		t.Run("", func(t *testing.T) {
			d.stored(t, "a")
			rows := []sale{{Status: "x"}, newSale("a"), {Status: "y"}, withKey(7, sale{Status: "z"})}
			if err := upserter(options...).InsertMany(ctx, d.DB, "sales", rows); err != nil {
				t.Fatalf("InsertMany() = %v; want nil", err)
			}
			if got, want := keysOf(rows), []types.Snowflake{1001, 1, 1003, 7}; !slices.Equal(got, want) {
				t.Errorf("keys = %v; want %v", got, want)
			}
			d.wantCount(t, "sales", 4)
		})
	}
}

// The target may be the primary key, alone or with another column.
func (d Database) upsertByKey(t *testing.T) {
	d.stored(t, "a", "b")
	rows := []sale{withKey(2, newSale("b2")), newSale("c"), withKey(9, newSale("d"))}
	h := upserter(sqlxhelper.OnConflictUpdate("number", "status"), sqlxhelper.ConflictTarget("id"))
	if err := h.InsertMany(ctx, d.DB, "sales", rows); err != nil {
		t.Fatalf("InsertMany() = %v; want nil", err)
	}
	if got, want := keysOf(rows), []types.Snowflake{2, 1001, 9}; !slices.Equal(got, want) {
		t.Errorf("keys = %v; want %v", got, want)
	}
	d.wantSale(t, "b2", 2, "sent")
	if err := upserter(sqlxhelper.OnConflictDoNothing("id")).InsertMany(ctx, d.DB, "sales", []sale{withKey(9, newSale("e"))}); err != nil {
		t.Errorf("InsertMany(stored key, do nothing) = %v; want nil", err)
	}
	d.wantSale(t, "d", 9, "sent")
	d.wantCount(t, "sales", 4)
}

func (d Database) upsertGraph(t *testing.T) {
	for name, options := range map[string][]sqlxhelper.Option{"DoNothing": ignoring, "Update": updating} {
		t.Run(name, func(t *testing.T) {
			d.stored(t, "a", "b")
			rows := []sale{newSale("x"), newSale("b"), withKey(70, newSale("a"))}
			for i := range rows {
				rows[i].Lines = []line{{SKU: fmt.Sprint(i, "-0")}, {SKU: fmt.Sprint(i, "-1")}}
			}
			if err := upserter(options...).InsertGraph(ctx, d.DB, "sales", rows); err != nil {
				t.Fatalf("InsertGraph() = %v; want nil", err)
			}
			for i, want := range []types.Snowflake{1001, 2, 1} {
				if rows[i].ID != want || rows[i].Lines[0].SaleID != want || rows[i].Lines[1].SaleID != want {
					t.Errorf("keys of sale %d and in its lines = %d, %d, %d; want %d", i, rows[i].ID, rows[i].Lines[0].SaleID, rows[i].Lines[1].SaleID, want)
				}
				d.wantCount(t, fmt.Sprintf("sale_lines WHERE sale_id = %d", want), 2)
			}
		})
	}
}

// What a row belongs to is written before it, plainly.
func (d Database) upsertBelonging(t *testing.T) {
	type shop struct {
		types.Model
		Name string `db:"name"`
	}
	type sold struct {
		types.Model
		Number string          `db:"number"`
		ShopID types.Snowflake `db:"shop_id"`
		Shop   *shop           `db:"-" snowkey:"shops,belongs_to=shop_id"`
		Lines  []line          `db:"-" snowkey:"sale_lines,fk=sale_id"`
	}
	d.tables(t,
		"CREATE TABLE shops (id BIGINT PRIMARY KEY, name VARCHAR(20) NOT NULL)",
		"CREATE TABLE sales (id BIGINT PRIMARY KEY, number VARCHAR(20) NOT NULL UNIQUE, shop_id BIGINT NOT NULL, FOREIGN KEY (shop_id) REFERENCES shops (id))",
		saleTables[1])
	d.exec(t, "INSERT INTO shops (id, name) VALUES (1, 'stored')")
	d.exec(t, "INSERT INTO sales (id, number, shop_id) VALUES (2, 'a', 1)")
	at := &shop{Name: "new"}
	rows := []sold{{Number: "a", Shop: at, Lines: []line{{SKU: "x"}}}, {Number: "b", Shop: at}}
	h := upserter(sqlxhelper.ConflictTarget("number"), sqlxhelper.OnConflictUpdate("shop_id"), sqlxhelper.Returning("shop_id"))
	if err := h.InsertGraph(ctx, d.DB, "sales", rows); err != nil {
		t.Fatalf("InsertGraph() = %v; want nil", err)
	}
	if rows[0].ID != 2 || rows[0].Lines[0].SaleID != 2 || rows[0].ShopID != at.ID || rows[1].ShopID != at.ID || at.ID < 1001 {
		t.Errorf("rows = %+v, shop %d; want both in the new shop, the first with key 2", rows, at.ID)
	}
	d.wantCount(t, fmt.Sprintf("sales WHERE shop_id = %d", at.ID), 2)
	d.wantCount(t, "shops", 2)
}

// After a failure the keys are the ones before the call, because the insert is undone and the
// stored row may be gone at the next attempt.
func (d Database) upsertFailure(t *testing.T) {
	for name, options := range map[string][]sqlxhelper.Option{"DoNothing": ignoring, "Update": updating} {
		t.Run(name, func(t *testing.T) {
			d.stored(t, "a", "b")
			rows := []sale{newSale("x"), newSale("b"), withKey(70, newSale("a"))}
			for i := range rows {
				rows[i].Lines = []line{{SKU: "the same"}}
			}
			check := func(err error) {
				t.Helper()
				if !errors.Is(err, sqlxhelper.ErrDuplicateKey) {
					t.Fatalf("InsertGraph(line twice) = %v; want ErrDuplicateKey", err)
				}
				for i, want := range []types.Snowflake{1001, 1002, 70} {
					if rows[i].ID != want || rows[i].Lines[0].SaleID != want {
						t.Errorf("keys of sale %d and in its line = %d, %d; want %d", i, rows[i].ID, rows[i].Lines[0].SaleID, want)
					}
				}
			}
			h := upserter(options...)
			check(h.InsertGraph(ctx, d.DB, "sales", rows))
			d.wantSale(t, "b", 2, "stored")
			d.wantCount(t, "sales", 2)
			tx := d.begin(t)
			check(h.InsertGraph(ctx, tx, "sales", rows))
			for i := range rows {
				rows[i].Lines[0].SKU = fmt.Sprint(i)
			}
			if err := errors.Join(h.InsertGraph(ctx, tx, "sales", rows), tx.Commit()); err != nil {
				t.Errorf("InsertGraph(mended) = %v; want nil", err)
			}
			if got, want := keysOf(rows), []types.Snowflake{1001, 2, 1}; !slices.Equal(got, want) {
				t.Errorf("keys = %v; want %v", got, want)
			}
		})
	}
}

// A row may be like a stored one in another unique index. That is not what the
// caller has named, on any database.
func (d Database) upsertOtherIndex(t *testing.T) {
	want := sqlxhelper.ErrDuplicateKey
	if d.Dialect == sqlxhelper.MySQL {
		want = sqlxhelper.ErrUnresolved
	}
	for name, options := range map[string][]sqlxhelper.Option{"DoNothing": ignoring, "Update": updating} {
		t.Run(name, func(t *testing.T) {
			d.stored(t, "a", "b")
			d.exec(t, "UPDATE sales SET code = 'k' WHERE id = 1")
			code := "k"
			rows := []sale{newSale("b"), newSale("x")}
			rows[1].Code = &code
			err := upserter(options...).InsertMany(ctx, d.DB, "sales", rows)
			if !errors.Is(err, want) {
				t.Errorf("InsertMany(code of another) = %v; want %v", err, want)
			}
			var at *sqlxhelper.InsertError
			if !errors.As(err, &at) || at.Row != 1 && (at.Row != -1 || d.Dialect == sqlxhelper.SQLite) {
				t.Errorf("InsertMany(code of another) = %+v; want an InsertError for row 1, or on a server for none", at)
			}
			if got, want := keysOf(rows), []types.Snowflake{1001, 1002}; !slices.Equal(got, want) {
				t.Errorf("keys = %v; want %v", got, want)
			}
			for _, row := range []sale{withKey(1, newSale("x")), withKey(1, sale{Status: "sent"})} { // NULL is like no target
				if err := upserter(options...).InsertMany(ctx, d.DB, "sales", []sale{row}); !errors.Is(err, want) {
					t.Errorf("InsertMany(key of another) = %v; want %v", err, want)
				}
			}
			d.wantSale(t, "a", 1, "stored")
			d.wantSale(t, "b", 2, "stored")
			d.wantCount(t, "sales", 2)
		})
	}
}

// The transaction has looked at the table before another one stored the row.
func (d Database) upsertAfterSnapshot(t *testing.T) {
	for name, options := range map[string][]sqlxhelper.Option{"DoNothing": ignoring, "Update": updating} {
		t.Run(name, func(t *testing.T) {
			d.stored(t)
			tx := d.begin(t)
			var n int
			if err := tx.Get(&n, "SELECT COUNT(*) FROM sales"); err != nil {
				t.Fatal(err)
			}
			d.exec(t, "INSERT INTO sales (id, number, status) VALUES (1, 'a', 'stored')")
			d.exec(t, "INSERT INTO sales (id, number, status) VALUES (5, 'b', 'stored')")
			rows := []sale{newSale("a"), withKey(5, newSale("b")), newSale("c")}
			h := upserter(append(options, sqlxhelper.Returning("status"))...)
			if err := errors.Join(h.InsertMany(ctx, tx, "sales", rows), tx.Commit()); err != nil {
				t.Fatalf("InsertMany() = %v; want nil", err)
			}
			if got, want := keysOf(rows), []types.Snowflake{1, 5, 1002}; !slices.Equal(got, want) {
				t.Errorf("keys = %v; want %v", got, want)
			}
			want := "sent"
			if name == "DoNothing" {
				want = "stored"
			}
			if rows[0].Status != want || rows[2].Status != "sent" {
				t.Errorf("status = %q, %q; want %q, sent", rows[0].Status, rows[2].Status, want)
			}
		})
	}
}

// A call in the caller's transaction needs no second connection. It sees what the
// transaction did itself.
func (d Database) upsertInTx(t *testing.T) {
	d.stored(t, "a")
	err := sqlxhelper.InTx(ctx, d.DB, nil, func(tx *sqlx.Tx) error {
		h := upserter(ignoring...)
		first, again := newSale("x"), newSale("x")
		if err := errors.Join(h.Insert(ctx, tx, "sales", &first), h.Insert(ctx, tx, "sales", &again)); err != nil {
			return err
		}
		if first.ID != again.ID || first.ID == 0 {
			t.Errorf("keys = %d, %d; want the same", first.ID, again.ID)
		}
		return nil
	})
	if err != nil {
		t.Errorf("InTx() = %v; want nil", err)
	}
	d.wantCount(t, "sales", 2)
}

// Nanoseconds are more than the columns keep. The drivers differ in what they do
// with them.
func (d Database) upsertByTime(t *testing.T) {
	type tick struct {
		types.Model
		At time.Time `db:"at"`
	}
	d.tables(t, "CREATE TABLE ticks (id BIGINT PRIMARY KEY, at moment NOT NULL UNIQUE)")
	at := time.Date(2024, 2, 29, 12, 30, 45, 123456789, time.UTC)
	h := upserter(sqlxhelper.OnConflictDoNothing("at"))
	for i := range 2 {
		rows := []tick{{At: at}, {At: at.Add(time.Hour)}}
		if err := h.InsertMany(ctx, d.DB, "ticks", rows); err != nil {
			t.Fatalf("InsertMany(%d) = %v; want nil", i, err)
		}
		if rows[0].ID != 1001 || rows[1].ID != 1002 {
			t.Errorf("keys of %d = %d, %d; want 1001, 1002", i, rows[0].ID, rows[1].ID)
		}
		if d.Dialect != sqlxhelper.SQLite { // which compares the text that the driver makes of it
			at = at.In(time.FixedZone("", 3600))
		}
	}
}
