package sqlxcases

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

// A faulty row can violate each kind of constraint, and has a value that can fail.
type faulty struct {
	types.Model
	Code    string              `db:"code"`
	N       int                 `db:"n"`
	Name    *string             `db:"name"`
	OwnerID types.NullSnowflake `db:"owner_id"`
	Big     uint64              `db:"big"`
	Value   effect              `db:"v"`
	Parts   []faultyPart        `db:"-" snowkey:"faulty_parts,fk=faulty_id"`
	Yielded error               `db:"-"` // by a sequence, beside the row
}

type faultyPart struct {
	types.Model
	FaultyID types.Snowflake `db:"faulty_id"`
	N        int             `db:"n"`
}

// An effect is a number whose Value method does something.
type effect func() (driver.Value, error)

func (e effect) Value() (driver.Value, error) {
	if e == nil {
		return int64(0), nil
	}
	return e()
}

var faultyTables = []string{
	"CREATE TABLE owners (id BIGINT PRIMARY KEY)",
	"CREATE TABLE faulty (id BIGINT PRIMARY KEY, code VARCHAR(20) NOT NULL UNIQUE, n BIGINT NOT NULL CHECK (n >= 0), " +
		"name VARCHAR(20) NOT NULL, owner_id BIGINT, big BIGINT, v BIGINT, FOREIGN KEY (owner_id) REFERENCES owners (id))",
	"CREATE TABLE faulty_parts (id BIGINT PRIMARY KEY, faulty_id BIGINT NOT NULL, n BIGINT NOT NULL CHECK (n >= 0), FOREIGN KEY (faulty_id) REFERENCES faulty (id))",
}

// A fault makes a call fail, by one of its rows or by what the call reports.
type fault struct {
	name   string
	spoil  func(rows []faulty, bad int)
	report func(cancel func()) // after the first statement
	source func(cancel func()) // when it has given keys

	is    error  // what the error matches
	field string // which the error names on every database, with the row
	call  string // the only one that meets it
	gone  bool   // the call does not return
}

var errTrouble = errors.New("trouble")

func alike(rows []faulty, bad int) {
	if rows[bad].Code = "five"; bad > 0 {
		rows[bad].Code = rows[0].Code
	}
}

func valueOf(e effect) func([]faulty, int) {
	return func(rows []faulty, bad int) { rows[bad].Value = e }
}

var faults = []fault{
	{name: "a stored key", spoil: func(rows []faulty, bad int) { rows[bad].ID = 5 }, is: sqlxhelper.ErrDuplicateKey},
	{name: "a stored code", spoil: func(rows []faulty, bad int) { rows[bad].Code = "five" }, is: sqlxhelper.ErrDuplicateKey},
	{name: "the code of another row", spoil: alike, is: sqlxhelper.ErrDuplicateKey},
	{name: "a number that the CHECK refuses", spoil: func(rows []faulty, bad int) { rows[bad].N = -1 }},
	{name: "a NULL", spoil: func(rows []faulty, bad int) { rows[bad].Name = nil }},
	{name: "a foreign key of no row", spoil: func(rows []faulty, bad int) { rows[bad].OwnerID = types.NullSnowflake{Snowflake: 77, Valid: true} }},
	{name: "a number above the column", spoil: func(rows []faulty, bad int) { rows[bad].Big = 1 << 63 }},
	{name: "a value that returns an error", spoil: valueOf(func() (driver.Value, error) { return nil, errTrouble }), is: errTrouble, field: "Value"},
	{name: "a value that panics", spoil: valueOf(func() (driver.Value, error) { panic("trouble") }), field: "Value"},
	{name: "a value without its pointer", spoil: valueOf((*point)(nil).Value), field: "Value"},
	{name: "a value that ends the goroutine", spoil: valueOf(func() (driver.Value, error) { runtime.Goexit(); return nil, nil }), gone: true},
	{name: "a child", spoil: func(rows []faulty, bad int) { rows[bad].Parts = []faultyPart{{}, {N: -1}} }, call: "InsertGraph"},
	{name: "an error of the sequence", spoil: func(rows []faulty, bad int) { rows[bad].Yielded = errTrouble }, is: errTrouble, call: "InsertSeq"},
	{name: "a report that ends the goroutine", report: func(func()) { runtime.Goexit() }, gone: true},
	{name: "a report that ends the context", report: func(cancel func()) { cancel() }, is: context.Canceled},
	{name: "a source that ends the context", source: func(cancel func()) { cancel() }, is: context.Canceled},
}

// A call stores rows.
type call struct {
	name string
	run  func(ctx context.Context, h *sqlxhelper.Helper, db sqlxhelper.DB, rows []faulty) error
}

var calls = []call{
	{"InsertMany", func(ctx context.Context, h *sqlxhelper.Helper, db sqlxhelper.DB, rows []faulty) error {
		return h.InsertMany(ctx, db, "faulty", rows)
	}},
	{"Insert, or InsertMany of pointers", func(ctx context.Context, h *sqlxhelper.Helper, db sqlxhelper.DB, rows []faulty) error {
		if len(rows) == 1 {
			return h.Insert(ctx, db, "faulty", &rows[0])
		}
		pointers := make([]*faulty, len(rows))
		for i := range rows {
			pointers[i] = &rows[i]
		}
		return h.InsertMany(ctx, db, "faulty", pointers)
	}},
	{"InsertGraph", func(ctx context.Context, h *sqlxhelper.Helper, db sqlxhelper.DB, rows []faulty) error {
		return h.InsertGraph(ctx, db, "faulty", rows)
	}},
	{"upsert", func(ctx context.Context, h *sqlxhelper.Helper, db sqlxhelper.DB, rows []faulty) error {
		return h.With(sqlxhelper.OnConflictDoNothing("id")).InsertMany(ctx, db, "faulty", rows)
	}},
	{"InTx", func(ctx context.Context, h *sqlxhelper.Helper, db sqlxhelper.DB, rows []faulty) error {
		pool, ok := db.(*sqlx.DB)
		if !ok {
			return h.InsertMany(ctx, db, "faulty", rows)
		}
		return sqlxhelper.InTx(ctx, pool, nil, func(tx *sqlx.Tx) error { return h.InsertMany(ctx, tx, "faulty", rows) })
	}},
	{"InsertSeq of pointers", func(ctx context.Context, h *sqlxhelper.Helper, db sqlxhelper.DB, rows []faulty) error {
		return whole(rows)(sqlxhelper.InsertSeq(ctx, h, db, "faulty", yielding(rows, func(f *faulty) *faulty { return f })))
	}},
	{"InsertSeq", func(ctx context.Context, h *sqlxhelper.Helper, db sqlxhelper.DB, rows []faulty) error {
		return whole(rows)(sqlxhelper.InsertSeq(ctx, h, db, "faulty", yielding(rows, func(f *faulty) faulty { return *f })))
	}},
}

func yielding[T any](rows []faulty, as func(*faulty) T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for i := range rows {
			if !yield(as(&rows[i]), rows[i].Yielded) {
				return
			}
		}
	}
}

// whole returns the error of InsertSeq, or one about the number that it returned.
func whole(rows []faulty) func(n int64, err error) error {
	return func(n int64, err error) error {
		switch {
		case err == nil && n != int64(len(rows)):
			return fmt.Errorf("InsertSeq of %d rows = %d, nil", len(rows), n)
		case err != nil && n != 0:
			return fmt.Errorf("InsertSeq = %d, %w; want 0 with an error", n, err)
		}
		return err
	}
}

// Every fault meets every kind of handle, in calls and numbers of rows that change. Nothing of the
// call is stored, no connection is kept, and a transaction goes on. The error blames no other row.
// The same rows, mended, are stored with the same keys.
func (d Database) faults(t *testing.T) {
	d.tables(t, faultyTables...)
	d.exec(t, "INSERT INTO faulty (id, code, n, name) VALUES (5, 'five', 0, '')")
	// A call that took a second connection would wait for it for ever.
	d.DB.SetMaxOpenConns(1)
	defer d.DB.SetMaxOpenConns(0)
	sizes := []struct{ rows, bad int }{{1, 0}, {2, 1}, {9, 0}, {9, 4}, {60, 59}, {1200, 1}, {1200, 777}, {2000, 1900}, {5300, 5200}}
	r := rand.New(rand.NewPCG(1, 2))
	for _, f := range faults {
		for _, h := range handles {
			size := sizes[r.IntN(len(sizes))]
			if f.report != nil {
				size = sizes[7] // several statements on every database
			}
			c := calls[r.IntN(len(calls))]
			for !strings.HasPrefix(c.name, f.call) || c.name == "upsert" && f.is == sqlxhelper.ErrDuplicateKey {
				c = calls[r.IntN(len(calls))]
			}
			t.Run(fmt.Sprintf("%s/row %d of %d/%s/%s", f.name, size.bad, size.rows, c.name, h.name), func(t *testing.T) {
				d.fails(t, f, h, c, size.rows, size.bad)
			})
		}
	}
}

func (d Database) fails(t *testing.T, f fault, h handle, c call, n, bad int) {
	rows, name := make([]faulty, n), ""
	for i := range rows {
		rows[i] = faulty{Code: fmt.Sprint("c", i), Name: &name}
	}
	good := rows[bad]
	if f.spoil != nil {
		f.spoil(rows, bad)
	}
	ending, cancel := context.WithCancel(ctx)
	defer cancel()
	src := NewCounter(1000)
	if f.source != nil {
		src.after = func() { f.source(cancel) }
	}
	helper := sqlxhelper.New(src)
	failing := helper
	if f.report != nil {
		failing = helper.With(sqlxhelper.OnProgress(func(int, int) { f.report(cancel) }))
	}
	err := d.through(t, h, func(db sqlxhelper.DB) error {
		if !f.gone {
			return c.run(ending, failing, db, rows)
		}
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			defer func() { _ = recover() }()
			t.Errorf("the call has returned %v", c.run(ending, failing, db, rows))
		}()
		<-gone
		return nil
	})
	if !f.gone {
		d.wantFault(t, f, c, rows, bad, err)
		if h.tx != nil && errors.Is(err, sqlxhelper.ErrTxBroken) {
			t.Errorf("the call = %v; want the transaction to go on", err)
		}
	}
	if used := d.DB.Stats().InUse; used != 0 && f.is != context.Canceled { // which database/sql returns later
		t.Errorf("connections in use = %d; want 0", used)
	}
	d.wantCount(t, "faulty", 1)
	d.wantCount(t, "faulty_parts", 0)

	id := rows[bad].ID
	if rows[bad] = good; id != 5 {
		rows[bad].ID = id
	}
	keys := make([]types.Snowflake, n)
	for i := range rows {
		if keys[i] = rows[i].ID; keys[i] == 0 && i != bad && !strings.HasPrefix(c.name, "InsertSeq") {
			t.Fatalf("key of row %d after the failure = 0; want it set", i)
		}
	}
	src.after = nil
	if err := d.through(t, h, func(db sqlxhelper.DB) error { return c.run(ctx, helper, db, rows) }); err != nil {
		t.Errorf("the same rows, mended = %v; want nil", err)
	}
	for i := range rows {
		if keys[i] != 0 && rows[i].ID != keys[i] {
			t.Fatalf("key of row %d = %d, then %d; want the same", i, keys[i], rows[i].ID)
		}
	}
	d.wantCount(t, "faulty", n+1)
	d.exec(t, "DELETE FROM faulty WHERE id <> 5")
}

// wantFault wants an error that names the bad row, or on a server none.
func (d Database) wantFault(t *testing.T, f fault, c call, rows []faulty, bad int, err error) {
	t.Helper()
	if err == nil || f.is != nil && !errors.Is(err, f.is) || errors.Is(err, sqlxhelper.ErrDuplicateKey) != (f.is == sqlxhelper.ErrDuplicateKey) {
		t.Fatalf("the call = %v; want an error that matches %v", err, f.is)
	}
	var e *sqlxhelper.InsertError
	if f.source != nil || f.call == "InsertSeq" {
		return // nothing was sent
	}
	if !errors.As(err, &e) {
		t.Fatalf("the call = %v; want an InsertError", err)
	}
	if f.report != nil {
		if e.First == 0 || e.Row != -1 {
			t.Errorf("the call = %+v; want a later statement, and no row to blame", e)
		}
		return
	}
	got := *e
	got.Err = nil
	want := sqlxhelper.InsertError{Table: "faulty", First: e.First, Last: e.Last, Rows: len(rows), Row: bad, Path: fmt.Sprintf("sqlxcases.faulty[%d]", bad), Field: f.field, Key: rows[bad].ID}
	if f.call == "InsertGraph" {
		want.Table, want.Rows, want.Row, want.Path, want.Key = "faulty_parts", 2, 1, want.Path+".Parts[1]", rows[bad].Parts[1].ID
	}
	if len(rows) == 1 && strings.HasPrefix(c.name, "Insert, ") {
		want.Path = "sqlxcases.faulty"
	}
	if strings.HasPrefix(c.name, "InsertSeq") { // which has read so many, and keeps keys to itself
		want.Rows, want.Key = e.Rows, e.Key
	}
	if f.field == "" && e.Row >= 0 { // some drivers tell
		want.Field = e.Field
	}
	silent := want
	silent.Row, silent.Path, silent.Field, silent.Key = -1, "", "", 0
	told := got == want || got == silent && f.field == "" && d.Dialect != sqlxhelper.SQLite && want.Rows > 1
	if !told || e.First > want.Row || e.Last < want.Row {
		t.Errorf("the call = %+v; want %+v, or on a server no row", e, want)
	}
}

// wide has room for much.
type wide struct {
	types.Model
	N    int    `db:"n"`
	Text string `db:"body"`
	Data []byte `db:"data"`
}

// largeRows: together far above what the server takes in one statement.
func (d Database) largeRows(t *testing.T) {
	text, bytes := "TEXT", "bytes"
	if d.Dialect == sqlxhelper.MySQL {
		text, bytes = "LONGTEXT", "LONGBLOB"
	}
	d.tables(t, "CREATE TABLE wide (id BIGINT PRIMARY KEY, n BIGINT NOT NULL, body "+text+", data "+bytes+")")
	rows := make([]wide, 26)
	for i := range rows {
		if rows[i] = (wide{N: i}); i%3 > 0 {
			rows[i].Text, rows[i].Data = strings.Repeat("'\\x", 200_000), make([]byte, 500_000)
		}
	}
	if err := sqlxhelper.New(NewCounter(0)).InsertMany(ctx, d.DB, "wide", rows); err != nil {
		t.Fatalf("InsertMany(26 rows of 1.1 MB) = %v; want nil", err)
	}
	var got []struct{ N, Texts, Bytes int }
	if err := d.DB.Select(&got, "SELECT n, LENGTH(body) AS texts, COALESCE(LENGTH(data), 0) AS bytes FROM wide ORDER BY n"); err != nil || len(got) != len(rows) {
		t.Fatalf("rows = %d, %v; want %d", len(got), err, len(rows))
	}
	for i, g := range got {
		if g.N != i || g.Texts != len(rows[i].Text) || g.Bytes != len(rows[i].Data) {
			t.Errorf("row %d = %+v; want %d and %d bytes", i, g, len(rows[i].Text), len(rows[i].Data))
		}
	}
}
