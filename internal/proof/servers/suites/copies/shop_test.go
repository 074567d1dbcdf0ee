package copies

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/keysql"
	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/sqllease"
	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/core/segment/sqlsegment"
	"github.com/snowkey/snowkey/core/serial"
	"github.com/snowkey/snowkey/core/serial/sqlserial"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/types"
)

var quiet = slog.New(slog.DiscardHandler)

// keys are those around the greatest integer that a double has, those of a generator, and the
// greatest of all.
var keys = sync.OnceValue(func() []types.Snowflake {
	gen, err := core.New(core.Config{Worker: core.StaticWorker(1021)})
	if err != nil {
		panic(err)
	}
	ids := append(make([]types.Snowflake, 500), 1<<53-1, 1<<53, 1<<53+1, math.MaxInt64)
	if err := gen.Fill(context.Background(), ids[:500]); err != nil {
		panic(err)
	}
	if err := gen.Close(context.Background()); err != nil {
		panic(err)
	}
	slices.Sort(ids)
	return ids
})

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("error = %v; want none", err)
	}
}

func open(t testing.TB, driver, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	must(t, db.PingContext(t.Context()))
	return db
}

func statements(t testing.TB, db *sql.DB, list ...string) {
	t.Helper()
	for _, s := range list {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// texts returns the rows of a query as text, sorted.
func texts(t testing.TB, db *sql.DB, query string) (lines []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	must(t, err)
	for rows.Next() {
		row, to := make([]any, len(columns)), make([]any, len(columns))
		for i := range row {
			to[i] = &row[i]
		}
		must(t, rows.Scan(to...))
		for i, v := range row {
			if b, ok := v.([]byte); ok {
				row[i] = string(b)
			}
		}
		lines = append(lines, fmt.Sprintf("%q", row))
	}
	must(t, rows.Err())
	slices.Sort(lines)
	return lines
}

// A shop is a database that is copied: orders that refer to customers and to each other, with
// what keysql writes in a column, an index and a view, and all tables of snowkey.
type shop struct {
	*testing.T
	db      *sql.DB
	dialect sqlstore.Dialect
	name    string // of the database

	ungenerated bool // the table orders has no generated column
}

var invoices = serial.Series{Name: "invoices", Prefix: "INV", Period: serial.Yearly, Digits: 6}

// fill makes the tables and their rows.
func (s shop) fill() {
	s.Helper()
	column, err := keysql.New(s.dialect, core.Default(), "id")
	must(s, err)
	worker := "worker BIGINT GENERATED ALWAYS AS (" + column.Worker() + ") STORED"
	if s.ungenerated {
		worker = "worker BIGINT"
	}
	binary := map[sqlstore.Dialect]string{sqlstore.PostgreSQL: "bytea", sqlstore.MySQL: "VARBINARY(8)"}[s.dialect]
	statements(s, s.db,
		"CREATE TABLE customers (id BIGINT PRIMARY KEY)",
		`CREATE TABLE orders (id BIGINT PRIMARY KEY, customer_id BIGINT NOT NULL, parent_id BIGINT, raw `+binary+` NOT NULL, `+worker+`,
			CONSTRAINT customer FOREIGN KEY (customer_id) REFERENCES customers (id),
			CONSTRAINT parent FOREIGN KEY (parent_id) REFERENCES orders (id),
			CONSTRAINT positive CHECK (id > 0))`,
		"CREATE INDEX orders_worker ON orders (worker)",
		"CREATE VIEW order_times AS SELECT id, "+column.Time()+" AS made, "+column.UUID()+" AS uuid FROM orders WHERE id < 1152921504606846976")
	if s.dialect == sqlstore.PostgreSQL {
		statements(s, s.db, "CREATE INDEX orders_uuid ON orders (("+column.UUID()+"))")
	}
	tx, err := s.db.BeginTx(s.Context(), nil)
	must(s, err)
	defer func() { _ = tx.Rollback() }()
	customer, order := "INSERT INTO customers VALUES ($1)", "INSERT INTO orders (id, customer_id, parent_id, raw) VALUES ($1, $2, $3, $4)"
	if s.dialect == sqlstore.MySQL {
		customer, order = "INSERT INTO customers VALUES (?)", "INSERT INTO orders (id, customer_id, parent_id, raw) VALUES (?, ?, ?, ?)"
	}
	var parent types.NullSnowflake
	for _, id := range keys() {
		raw, err := id.MarshalBinary()
		must(s, err)
		_, err = tx.ExecContext(s.Context(), customer, id)
		must(s, err)
		_, err = tx.ExecContext(s.Context(), order, id, id, parent, raw)
		must(s, err)
		parent = types.NullSnowflake{Snowflake: id, Valid: true}
	}
	must(s, tx.Commit())

	s.lease(lease.Config{Namespace: "shop"})
	must(s, s.serials().CreateTables(s.Context()))
	if number := s.invoice(); number != "INV2026000001" {
		s.Fatalf("first invoice = %s; want INV2026000001", number)
	}
	segments := s.segments()
	must(s, segments.CreateTables(s.Context()))
	must(s, segments.Create(s.Context(), segment.Row{Tag: "orders", Next: 1<<53 + 1, Step: 100, Stride: 1}))
	_, err = segments.Take(s.Context(), segment.Take{Tag: "orders"})
	must(s, err)
}

// config names the database on MySQL, where other tests have tables of the same name in theirs.
func (s shop) config(table string) sqlstore.Config {
	if s.dialect == sqlstore.MySQL {
		table = s.name + "." + table
	}
	return sqlstore.Config{Dialect: s.dialect, Table: table, Logger: quiet}
}

func (s shop) leases() *sqllease.Store {
	s.Helper()
	store, err := sqllease.New(s.db, s.config(sqllease.DefaultTable))
	must(s, err)
	must(s, store.CreateTables(s.Context()))
	return store
}

func (s shop) serials() *sqlserial.Store {
	s.Helper()
	store, err := sqlserial.New(s.db, s.config(sqlserial.DefaultTable))
	must(s, err)
	return store
}

func (s shop) segments() *sqlsegment.Store {
	s.Helper()
	store, err := sqlsegment.New(s.db, s.config(sqlsegment.DefaultTable))
	must(s, err)
	return store
}

// lease claims a worker number and gives it back.
func (s shop) lease(c lease.Config) {
	s.Helper()
	c.Logger = quiet
	l, err := lease.Acquire(s.Context(), s.leases(), c)
	must(s, err)
	must(s, l.Close(s.Context()))
}

// invoice returns the next number of an invoice.
func (s shop) invoice() string {
	s.Helper()
	store := s.serials()
	must(s, store.Define(s.Context(), invoices))
	tx, err := s.db.BeginTx(s.Context(), nil)
	must(s, err)
	defer func() { _ = tx.Rollback() }()
	number, err := store.NextIn(s.Context(), tx, invoices, time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC))
	must(s, err)
	must(s, tx.Commit())
	return number.Text
}

// contents returns all rows and definitions, as text.
func (s shop) contents() string {
	s.Helper()
	all := new(strings.Builder)
	list := func(query string) {
		for _, line := range texts(s, s.db, query) {
			fmt.Fprintln(all, strings.ReplaceAll(line, s.name, "DATABASE"))
		}
	}
	tables := []string{"customers", "orders", "order_times", "snowkey_leases", "snowkey_leases_meta",
		"snowkey_counters", "snowkey_series", "snowkey_counter_events", "snowkey_segments"}
	for _, table := range tables {
		list("SELECT * FROM " + table)
	}
	if s.dialect == sqlstore.MySQL {
		list("SELECT table_name, view_definition FROM information_schema.views WHERE table_schema = database()")
		list(`SELECT table_name, ordinal_position, column_name, column_type, is_nullable, column_default, collation_name, generation_expression
			FROM information_schema.columns WHERE table_schema = database() AND table_name <> 'order_times'`)
		list(`SELECT table_name, constraint_name, column_name, referenced_table_name, referenced_column_name
			FROM information_schema.key_column_usage WHERE table_schema = database()`)
		list("SELECT constraint_name, check_clause FROM information_schema.check_constraints WHERE constraint_schema = database()")
		list("SELECT table_name, index_name, seq_in_index, column_name, non_unique FROM information_schema.statistics WHERE table_schema = database()")
		return all.String()
	}
	list("SELECT conrelid::regclass, conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = 'public'::regnamespace")
	list("SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'")
	list("SELECT viewname, definition FROM pg_views WHERE schemaname = 'public'")
	list("SELECT table_name, ordinal_position, column_name, data_type, is_nullable, generation_expression FROM information_schema.columns WHERE table_schema = 'public'")
	return all.String()
}

// checkCopy compares another database with the shop, and uses it.
func (s shop) checkCopy(other shop) {
	s.Helper()
	if want, got := s.contents(), other.contents(); got != want {
		s.Errorf("contents of the copy differ:\n%s", difference(got, want))
	}
	rows, err := other.db.QueryContext(s.Context(), "SELECT id, raw, parent_id FROM orders ORDER BY id")
	must(s, err)
	defer func() { _ = rows.Close() }()
	var parent types.NullSnowflake
	for _, want := range keys() {
		var id, fromRaw types.Snowflake
		var raw []byte
		var stored types.NullSnowflake
		if !rows.Next() {
			s.Fatalf("rows of the copy end before %d: %v", want, rows.Err())
		}
		must(s, rows.Scan(&id, &raw, &stored))
		if err := fromRaw.UnmarshalBinary(raw); err != nil || id != want || fromRaw != want || stored != parent {
			s.Errorf("a copied row has the key %d, in bytes %d, and the parent %v (error %v); want %d twice and %v", id, fromRaw, stored, err, want, parent)
		}
		parent = types.NullSnowflake{Snowflake: id, Valid: true}
	}
	if rows.Next() {
		s.Errorf("the copy has more than %d rows", len(keys()))
	}
	must(s, rows.Close())
	for constraint, statement := range map[string]string{
		"customer": "INSERT INTO orders (id, customer_id, raw) VALUES (5, 9007199254740995, 'x')",
		"parent":   "INSERT INTO orders (id, customer_id, parent_id, raw) VALUES (5, 9007199254740993, 9007199254740995, 'x')",
		"positive": "INSERT INTO orders (id, customer_id, raw) VALUES (-5, 9007199254740993, 'x')",
	} {
		if _, err := other.db.ExecContext(s.Context(), statement); err == nil || !strings.Contains(err.Error(), constraint) {
			s.Errorf("%s on the copy = %v; want an error of the constraint %s", statement, err, constraint)
		}
	}
	other.lease(lease.Config{Namespace: "shop"})
	if number := other.invoice(); number != "INV2026000002" {
		s.Errorf("next invoice of the copy = %s; want INV2026000002", number)
	}
	numbers, err := other.segments().Take(s.Context(), segment.Take{Tag: "orders"})
	if err != nil || numbers.First != 1<<53+101 {
		s.Errorf("Take of the copy = %+v, %v; want numbers from %d", numbers, err, 1<<53+101)
	}
}

// difference returns the lines of two texts that are not in both.
func difference(got, want string) string {
	var b bytes.Buffer
	for line := range strings.Lines(got) {
		if !strings.Contains(want, line) {
			fmt.Fprint(&b, "  got  ", line)
		}
	}
	for line := range strings.Lines(want) {
		if !strings.Contains(got, line) {
			fmt.Fprint(&b, "  want ", line)
		}
	}
	return b.String()[:min(b.Len(), 3000)]
}
