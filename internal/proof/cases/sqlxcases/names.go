package sqlxcases

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

// delivery has a key whose column is named after the table, and columns that the INSERT leaves out.
type delivery struct {
	DeliveryID types.Snowflake `db:"delivery_id" snowkey:"pk"`
	OrderNo    string          `db:"order_no"`
	State      string          `db:"state"`
	Boxes      []box           `db:"-" snowkey:"boxes,fk=delivery_id"`
}

type box struct {
	BoxID      types.Snowflake `db:"box_id" snowkey:"pk"`
	DeliveryID types.Snowflake `db:"delivery_id"`
	SKU        string          `db:"sku"`
	Kind       string          `db:"kind"`
}

var deliveryTables = []string{
	"CREATE TABLE deliveries (delivery_id BIGINT PRIMARY KEY, order_no VARCHAR(20) NOT NULL UNIQUE, state VARCHAR(20) NOT NULL DEFAULT 'new')",
	"CREATE TABLE boxes (box_id BIGINT PRIMARY KEY, delivery_id BIGINT NOT NULL, sku VARCHAR(20) NOT NULL, kind VARCHAR(20) NOT NULL DEFAULT 'carton', FOREIGN KEY (delivery_id) REFERENCES deliveries (delivery_id))",
}

func (d Database) namedKey(t *testing.T) {
	d.tables(t, deliveryTables...)
	h := sqlxhelper.New(NewCounter(1000), sqlxhelper.Omit("state", "boxes.kind"), sqlxhelper.Returning("state", "boxes.kind"))
	graph := []delivery{{OrderNo: "a", Boxes: []box{{SKU: "x"}, {SKU: "y"}}}}
	if err := h.InsertGraph(ctx, d.DB, "deliveries", graph); err != nil {
		t.Fatalf("InsertGraph() = %v; want nil", err)
	}
	if g := graph[0]; g.DeliveryID != 1001 || g.State != "new" || g.Boxes[1].BoxID != 1003 || g.Boxes[1].DeliveryID != 1001 || g.Boxes[1].Kind != "carton" {
		t.Errorf("InsertGraph() leaves %+v; want the keys 1001 to 1003 and the defaults", g)
	}
	h = sqlxhelper.New(NewCounter(2000), sqlxhelper.Omit("state"), sqlxhelper.Returning("state"))
	many := []delivery{{OrderNo: "b"}, {OrderNo: "c", DeliveryID: 7}}
	if err := h.InsertMany(ctx, d.DB, "deliveries", many); err != nil || many[0].DeliveryID != 2001 || many[1].State != "new" {
		t.Errorf("InsertMany() = %v, %+v; want nil, the key 2001 and the default", err, many)
	}
	d.exec(t, "UPDATE deliveries SET state = 'sent'")
	again := []delivery{{OrderNo: "a", Boxes: []box{{SKU: "z", Kind: "bag"}}}, {OrderNo: "c"}, {OrderNo: "d"}}
	if err := h.With(sqlxhelper.OnConflictDoNothing("order_no")).InsertGraph(ctx, d.DB, "deliveries", again); err != nil {
		t.Fatalf("InsertGraph(upsert) = %v; want nil", err)
	}
	var states []string
	for _, a := range again {
		states = append(states, a.State)
	}
	if again[0].DeliveryID != 1001 || again[0].Boxes[0].DeliveryID != 1001 || again[1].DeliveryID != 7 || !slices.Equal(states, []string{"sent", "sent", "new"}) {
		t.Errorf("InsertGraph(upsert) leaves %+v; want the stored keys 1001 and 7, and the stored states", again)
	}
	d.wantCount(t, "deliveries", 4)
	d.wantCount(t, "boxes", 3)
}

// seat has a primary key of two columns, of which the source fills one.
type seat struct {
	TenantID int64 `db:"tenant_id"`
	types.Model
	Code string `db:"code"`
}

func (d Database) compositeKey(t *testing.T) {
	d.tables(t, "CREATE TABLE seats (tenant_id BIGINT NOT NULL, id BIGINT NOT NULL, code VARCHAR(20) NOT NULL, PRIMARY KEY (tenant_id, id), UNIQUE (tenant_id, code))")
	rows := []seat{{TenantID: 1, Code: "a"}, {TenantID: 2, Code: "a"}}
	if err := sqlxhelper.New(NewCounter(1000)).InsertMany(ctx, d.DB, "seats", rows); err != nil {
		t.Fatalf("InsertMany() = %v; want nil", err)
	}
	again := []seat{{TenantID: 2, Code: "a"}, {TenantID: 3, Code: "a"}}
	h := sqlxhelper.New(NewCounter(2000), sqlxhelper.OnConflictDoNothing("tenant_id", "code"))
	if err := h.InsertMany(ctx, d.DB, "seats", again); err != nil || again[0].ID != 1002 || again[1].ID != 2002 {
		t.Errorf("InsertMany(upsert) = %v, keys %d and %d; want nil, 1002 of the stored row, and 2002", err, again[0].ID, again[1].ID)
	}
	d.wantCount(t, "seats", 3)
}

// mailbox is found by its e-mail, whatever its case.
type mailbox struct {
	types.Model
	Email string  `db:"email"`
	Gone  *string `db:"gone"`
}

func (d Database) upsertIgnoringCase(t *testing.T) {
	email := map[sqlxhelper.Dialect]string{
		sqlxhelper.SQLite:     "email VARCHAR(50) COLLATE NOCASE",
		sqlxhelper.PostgreSQL: "email VARCHAR(50) COLLATE ignore_case",
		sqlxhelper.MySQL:      "email VARCHAR(50) COLLATE utf8mb4_general_ci",
	}
	if d.Dialect == sqlxhelper.PostgreSQL {
		d.exec(t, "CREATE COLLATION ignore_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
		t.Cleanup(func() { d.exec(t, "DROP COLLATION ignore_case") }) // after the table
	}
	d.tables(t, "CREATE TABLE mailboxes (id BIGINT PRIMARY KEY, "+email[d.Dialect]+" NOT NULL UNIQUE, gone VARCHAR(20))")
	rows := []mailbox{{Email: "Ada@example.com"}}
	if err := upserter(sqlxhelper.OnConflictDoNothing("email")).InsertMany(ctx, d.DB, "mailboxes", rows); err != nil {
		t.Fatalf("InsertMany() = %v; want nil", err)
	}
	again := []mailbox{{Email: "ada@EXAMPLE.com"}, {Email: "bob@example.com"}}
	err := sqlxhelper.New(NewCounter(2000), sqlxhelper.OnConflictDoNothing("email")).InsertMany(ctx, d.DB, "mailboxes", again)
	if err != nil || again[0].ID != 1001 || again[1].ID != 2002 {
		t.Errorf("InsertMany(in another case) = %v, keys %d and %d; want nil, 1001 and 2002", err, again[0].ID, again[1].ID)
	}
}

func (d Database) upsertOddIndex(t *testing.T) {
	for name, on := range map[string]string{"condition": "(email) WHERE gone IS NULL", "expression": "(LOWER(email))"} {
		t.Run(name, func(t *testing.T) {
			d.tables(t, "CREATE TABLE mailboxes (id BIGINT PRIMARY KEY, email VARCHAR(50) NOT NULL, gone VARCHAR(20))")
			d.exec(t, "CREATE UNIQUE INDEX mailboxes_odd ON mailboxes "+on)
			for call, n := range map[string]int{"VALUES": 2, "unnest": 20} {
				err := upserter(sqlxhelper.OnConflictDoNothing("email")).InsertMany(ctx, d.DB, "mailboxes", make([]mailbox, n))
				var at *sqlxhelper.InsertError
				if !errors.As(err, &at) || strings.Count(err.Error(), "sqlxhelper: ") != 1 ||
					!strings.Contains(err.Error(), "the conflict target is email; want a unique index on exactly these columns, without expressions and without WHERE: ") {
					t.Errorf("%s: InsertMany() = %v; want an InsertError that says what a target has to be", call, err)
				}
			}
			d.wantCount(t, "mailboxes", 0)
			twice := []mailbox{{Email: "ada@example.com"}, {Email: "ada@example.com"}}
			if err := upserter(sqlxhelper.OnConflictDoNothing("id")).InsertMany(ctx, d.DB, "mailboxes", twice); !errors.Is(err, sqlxhelper.ErrDuplicateKey) {
				t.Errorf("InsertMany(with another target) = %v; want ErrDuplicateKey", err)
			}
			d.wantCount(t, "mailboxes", 0)
		})
	}
}
