package pgxcopy_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/coretest"
	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/sqlxhelper/pgxcopy"
	"github.com/snowkey/snowkey/types"
)

var errMine = errors.New("mine")

// A row is what most tests copy.
type row struct {
	ID types.Snowflake `db:"id"`
	N  number          `db:"n"`
}

// A number is a Valuer that can fail.
type number struct {
	n  int64
	do func()
}

func (n number) Value() (driver.Value, error) {
	if n.do != nil {
		n.do()
	}
	return n.n, nil
}

func numbered(n int) []row {
	rows := make([]row, n)
	for i := range rows {
		rows[i] = row{ID: types.Snowflake(i + 1), N: number{n: int64(i)}}
	}
	return rows
}

// table opens a pool with the driver, and creates a table for rows, and returns its name.
func table(t *testing.T, driver string) (*sqlx.DB, string) {
	t.Helper()
	dsn := servertest.PostgreSQL(t)
	db, err := sqlx.Connect(driver, dsn)
	if err != nil {
		t.Fatalf("Connect(%q) = %v", driver, err)
	}
	name := "pgxcopy_" + strings.ToLower(rand.Text())
	db.MustExec("CREATE TABLE " + name + " (id bigint PRIMARY KEY, n bigint NOT NULL CHECK (n >= 0))")
	t.Cleanup(func() {
		if _, err := db.Exec("DROP TABLE " + name); err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return db, name
}

// limited is a context that ends a test which hangs.
func limited(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func helper() *sqlxhelper.Helper {
	return sqlxhelper.New(nil, sqlxhelper.WithCopy(counting{}, 20))
}

// counting is Copier, and counts.
type counting struct{ copies *int }

func (c counting) Copy(ctx context.Context, db sqlx.ExecerContext, statement string, rows io.Reader) (int64, error) {
	if c.copies != nil {
		*c.copies++
	}
	return pgxcopy.Copier{}.Copy(ctx, db, statement, rows)
}

func wantRows(t *testing.T, db sqlx.Queryer, table string, want int) {
	t.Helper()
	var got int
	if err := sqlx.Get(db, &got, "SELECT count(*) FROM "+table); err != nil || got != want {
		t.Errorf("rows of %s = %d, %v; want %d", table, got, err, want)
	}
}

func TestCopyIsPartOfTheCallersTransaction(t *testing.T) {
	db, name := table(t, "pgx")
	copies := 0
	h := helper().With(sqlxhelper.WithCopy(counting{&copies}, 20))
	for _, end := range []func(*sqlx.Tx) error{(*sqlx.Tx).Rollback, (*sqlx.Tx).Commit} {
		tx := db.MustBegin()
		if err := h.InsertMany(limited(t), tx, name, numbered(3000)); err != nil {
			t.Fatalf("InsertMany() = %v; want nil", err)
		}
		wantRows(t, tx, name, 3000)
		wantRows(t, db, name, 0)
		if err := end(tx); err != nil {
			t.Fatal(err)
		}
	}
	wantRows(t, db, name, 3000)
	if copies != 2 {
		t.Errorf("COPY statements = %d; want 2", copies)
	}
}

// copiedOrder is on the shard of its customer.
type copiedOrder struct {
	types.Model
	CustomerID types.Snowflake `db:"customer_id" snowkey:"shard"`
	Lines      []copiedLine    `db:"-" snowkey:"copied_lines,fk=order_id"`
}

type copiedLine struct {
	types.Model
	OrderID types.Snowflake `db:"order_id"`
}

func TestCopiedGraphIsOnTheShardsOfItsTags(t *testing.T) {
	db, _ := table(t, "pgx")
	tx := db.MustBegin()
	defer func() { _ = tx.Rollback() }()
	tx.MustExec("CREATE TEMP TABLE copied_orders (id bigint PRIMARY KEY, customer_id bigint NOT NULL)")
	tx.MustExec("CREATE TEMP TABLE copied_lines (id bigint PRIMARY KEY, order_id bigint NOT NULL REFERENCES copied_orders)")
	layout := core.Default()
	layout.ShardBits = 4
	copies := 0
	h := sqlxhelper.New(coretest.NewGenerator(coretest.Config{Layout: layout}), sqlxhelper.WithCopy(counting{&copies}, 20))
	orders := make([]copiedOrder, 100)
	for i := range orders {
		orders[i] = copiedOrder{CustomerID: types.Snowflake(1<<40 + i), Lines: make([]copiedLine, 3)}
	}
	if err := h.InsertGraph(limited(t), tx, "copied_orders", orders); err != nil {
		t.Fatalf("InsertGraph() = %v; want nil", err)
	}
	if copies != 2 {
		t.Errorf("COPY statements = %d; want 2", copies)
	}
	of := "copied_lines l JOIN copied_orders o ON o.id = l.order_id"
	wantRows(t, tx, of, 300)
	wantRows(t, tx, of+" WHERE (l.id & 15) <> (o.id & 15) OR (o.id & 15) <> (o.customer_id & 15)", 0)
	n, err := sqlxhelper.InsertSeq(limited(t), h, tx, "copied_orders", func(yield func(copiedOrder, error) bool) {
		for i := range 3000 {
			if !yield(copiedOrder{CustomerID: types.Snowflake(1<<40 + i*i%16)}, nil) {
				return
			}
		}
	})
	if err != nil || n != 3000 || copies != 3 {
		t.Errorf("InsertSeq() = %d, %v after %d copies; want 3000, nil after 3", n, err, copies)
	}
	wantRows(t, tx, "copied_orders WHERE (id & 15) <> (customer_id & 15)", 0)
}

func TestPoolWithOneConnectionSuffices(t *testing.T) {
	db, name := table(t, "pgx")
	db.SetMaxOpenConns(1)
	if err := helper().InsertMany(limited(t), db, name, numbered(100)); err != nil {
		t.Fatalf("InsertMany() = %v; want nil", err)
	}
	wantRows(t, db, name, 100)
}

func TestDuplicateKeyOfCopyNamesItsRowAndTheTransactionGoesOn(t *testing.T) {
	db, name := table(t, "pgx")
	tx := db.MustBegin()
	defer func() { _ = tx.Rollback() }()
	rows := numbered(3000)
	rows[1234].ID = 7
	err := helper().InsertMany(limited(t), tx, name, rows)
	var insert *sqlxhelper.InsertError
	var pg *pgconn.PgError
	if !errors.Is(err, sqlxhelper.ErrDuplicateKey) || !errors.As(err, &insert) || insert.Row != 1234 || !errors.As(err, &pg) || pg.Code != "23505" {
		t.Errorf("InsertMany(two rows with key 7) = %v; want ErrDuplicateKey of row 1234, 23505", err)
	}
	wantRows(t, tx, name, 0)
}

// A Value method that panics would do so in a goroutine of pgx, and end the
// process; in sql.Conn.Raw it would wait forever.
func TestPanicWhileCopyingIsAnError(t *testing.T) {
	db, name := table(t, "pgx")
	tx := db.MustBegin()
	defer func() { _ = tx.Rollback() }()
	rows := numbered(5000)
	rows[4000].N.do = func() { panic("no") }
	err := helper().InsertMany(limited(t), tx, name, rows)
	var insert *sqlxhelper.InsertError
	if !errors.As(err, &insert) || insert.Row != 4000 || insert.Field != "N" {
		t.Errorf("InsertMany(a Value panics) = %v; want an InsertError of N in row 4000", err)
	}
	wantRows(t, tx, name, 0)
	tx.MustExec("SAVEPOINT before")
	_, err = pgxcopy.Copier{}.Copy(limited(t), tx, "COPY "+name+" FROM STDIN", readerFunc(func([]byte) (int, error) { panic("never") }))
	if err == nil || !strings.Contains(err.Error(), "panic: never") {
		t.Errorf("Copy(reader that panics) = %v; want the panic", err)
	}
	tx.MustExec("ROLLBACK TO before")
	wantRows(t, tx, name, 0)
}

// A Value method that ends its goroutine, as testing's FailNow does, ends one of
// pgx, which the COPY would wait for.
func TestGoroutineThatEndsWhileCopyingIsAnError(t *testing.T) {
	db, name := table(t, "pgx")
	tx := db.MustBegin()
	defer func() { _ = tx.Rollback() }()
	rows := numbered(60000)
	rows[59000].N.do = runtime.Goexit
	for range 2 { // the transaction goes on
		err := helper().InsertMany(limited(t), tx, name, rows)
		var insert *sqlxhelper.InsertError
		if !errors.As(err, &insert) || insert.Last < 59000 || errors.Is(err, sqlxhelper.ErrTxBroken) || !strings.Contains(err.Error(), "Goexit") {
			t.Fatalf("InsertMany(a Value ends its goroutine) = %v; want an InsertError that says so", err)
		}
		wantRows(t, tx, name, 0)
	}
	if err := helper().InsertMany(limited(t), db, name, rows); err == nil {
		t.Error("InsertMany(a Value ends its goroutine, on a pool) = nil; want an error")
	}
	if used := db.Stats().InUse; used != 1 {
		t.Errorf("connections in use = %d; want 1, of the transaction", used)
	}
	rows[59000].N.do = nil
	if err := helper().InsertMany(limited(t), db, name, rows); err != nil {
		t.Errorf("InsertMany(the same keys) = %v; want nil", err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// The server says 57014, query_canceled, which it is not.
func TestErrorOfTheRowsIsReportedAndNotThatOfTheServer(t *testing.T) {
	db, name := table(t, "pgx")
	tx := db.MustBegin()
	defer func() { _ = tx.Rollback() }()
	tx.MustExec("SAVEPOINT before")
	n, err := pgxcopy.Copier{}.Copy(limited(t), tx, "COPY "+name+" FROM STDIN", io.MultiReader(strings.NewReader("1\t1\n"), readerFunc(func([]byte) (int, error) { return 0, errMine })))
	if n != 0 || !errors.Is(err, errMine) || strings.Contains(err.Error(), "57014") {
		t.Errorf("Copy(reader that fails) = %d, %v; want 0, %v", n, err, errMine)
	}
	tx.MustExec("ROLLBACK TO before")
	wantRows(t, tx, name, 0)
}

// Neither what pgx says around it, nor what database/sql does.
func TestErrorOfTheServerIsReportedAsItIs(t *testing.T) {
	db, name := table(t, "pgx")
	_, err := pgxcopy.Copier{}.Copy(limited(t), db, "COPY "+name+" FROM STDIN", strings.NewReader("1\t-1\n"))
	if err == nil || !strings.HasPrefix(err.Error(), "pgxcopy: ERROR: ") {
		t.Errorf("Copy(a row that is refused) = %v; want the error of the server", err)
	}
}

// keeping is a database that keeps what it is to run, and runs nothing.
type keeping struct {
	sqlx.ExecerContext
	kept *pgx.QueryRewriter
	do   func()
}

func (k keeping) ExecContext(_ context.Context, _ string, args ...any) (sql.Result, error) {
	*k.kept = args[0].(pgx.QueryRewriter)
	k.do()
	return nil, errMine
}

// The rows are the caller's again then, whatever the database has left running.
func TestRowsAreNotReadAfterCopyHasReturned(t *testing.T) {
	db, name := table(t, "pgx")
	conn, err := db.Connx(limited(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	for how, do := range map[string]func(){"error": func() {}, "panic": func() { panic(errMine) }} {
		var late pgx.QueryRewriter
		func() {
			defer func() { _ = recover() }()
			_, _ = pgxcopy.Copier{}.Copy(limited(t), keeping{nil, &late, do}, "COPY "+name+" FROM STDIN", readerFunc(func([]byte) (int, error) {
				t.Errorf("%s: the rows are read after Copy has returned", how)
				return 0, io.EOF
			}))
		}()
		if err := conn.Raw(func(c any) error {
			_, _, err := late.RewriteQuery(limited(t), c.(*stdlib.Conn).Conn(), "", nil)
			return err
		}); err == nil || !strings.Contains(err.Error(), io.ErrClosedPipe.Error()) {
			t.Errorf("%s: RewriteQuery(after Copy has returned) = %v; want %v", how, err, io.ErrClosedPipe)
		}
	}
}

// It would leave through the locks of database/sql.
func TestPanicOfTheDriverIsAnError(t *testing.T) {
	var late pgx.QueryRewriter
	if _, err := (pgxcopy.Copier{}).Copy(limited(t), keeping{nil, &late, func() {}}, "", strings.NewReader("")); !errors.Is(err, errMine) {
		t.Errorf("Copy() = %v; want %v", err, errMine)
	}
	if _, _, err := late.RewriteQuery(limited(t), nil, "", nil); err == nil || !strings.Contains(err.Error(), "panic: ") {
		t.Errorf("RewriteQuery(no connection) = %v; want the panic", err)
	}
}

func TestContextThatEndsWhileCopyingLeavesNothing(t *testing.T) {
	db, name := table(t, "pgx")
	ctx, cancel := context.WithCancel(limited(t))
	defer cancel()
	rows := numbered(60000)
	rows[30000].N.do = cancel
	if err := helper().InsertMany(ctx, db, name, rows); !errors.Is(err, context.Canceled) {
		t.Errorf("InsertMany(context that ends) = %v; want context.Canceled", err)
	}
	wantRows(t, db, name, 0)
}

// Tracing wraps drivers. A wrapper hands arguments through unchanged if it
// implements driver.NamedValueChecker for the driver within.
type wrapped struct{ driver.Driver }

func (w wrapped) Open(name string) (driver.Conn, error) {
	c, err := w.Driver.Open(name)
	if err != nil {
		return nil, err
	}
	return wrappedConn{c.(*stdlib.Conn)}, nil
}

type wrappedConn struct{ *stdlib.Conn }

func init() {
	sql.Register("pgxcopy-wrapped", wrapped{stdlib.GetDefaultDriver()})
	sqlxhelper.RegisterDriver("pgxcopy-wrapped", sqlxhelper.PostgreSQL)
	for name, conn := range map[string]driver.Conn{"pgxcopy-strict": foreign{}, "pgxcopy-lax": lax{}} {
		sql.Register(name, opener{conn})
		sqlxhelper.RegisterDriver(name, sqlxhelper.PostgreSQL)
	}
}

func TestCopyGoesThroughADriverAroundPgx(t *testing.T) {
	db, name := table(t, "pgxcopy-wrapped")
	tx := db.MustBegin()
	if err := helper().InsertMany(limited(t), tx, name, numbered(100)); err != nil {
		t.Fatalf("InsertMany() = %v; want nil", err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	wantRows(t, db, name, 100)
}

// forgetful opens connections to PostgreSQL, and the first one reports that what it has run was not sent.
type forgetful struct {
	dsn  string
	said bool
}

func (f *forgetful) Driver() driver.Driver { return stdlib.GetDefaultDriver() }

func (f *forgetful) Connect(context.Context) (driver.Conn, error) {
	c, err := f.Driver().Open(f.dsn)
	if err != nil {
		return nil, err
	}
	return forgetfulConn{c.(*stdlib.Conn), f}, nil
}

type forgetfulConn struct {
	*stdlib.Conn
	from *forgetful
}

func (c forgetfulConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	result, err := c.Conn.ExecContext(ctx, query, args)
	if err == nil && !c.from.said {
		c.from.said = true
		return nil, driver.ErrBadConn
	}
	return result, err
}

// database/sql runs a statement on a pool again for that. Of the rows there is
// nothing left by then, and none copied would be no error.
func TestCopyIsNotRunTwice(t *testing.T) {
	db, name := table(t, "pgx")
	pool := sqlx.NewDb(sql.OpenDB(&forgetful{dsn: servertest.PostgreSQL(t)}), "pgx")
	t.Cleanup(func() { _ = pool.Close() })
	n, err := pgxcopy.Copier{}.Copy(limited(t), pool, "COPY "+name+" FROM STDIN", strings.NewReader("1\t1\n"))
	if n != 0 || err == nil || !strings.Contains(err.Error(), "rows may be stored") {
		t.Errorf("Copy(connection breaks afterwards) = %d, %v; want an error that says so", n, err)
	}
	wantRows(t, db, name, 1)
}

// opener is a driver with one connection.
type opener struct{ conn driver.Conn }

func (o opener) Open(string) (driver.Conn, error) { return o.conn, nil }

// foreign is a driver that is not pgx. It fails the process if it is sent
// anything.
type foreign struct{}

func (foreign) Prepare(string) (driver.Stmt, error) { return nil, errors.New("prepare was called") }
func (foreign) Close() error                        { return nil }
func (foreign) Begin() (driver.Tx, error)           { return foreign{}, nil }
func (foreign) Commit() error                       { return nil }
func (foreign) Rollback() error                     { return nil }
func (foreign) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	return nil, errors.New("exec was called")
}

// lax takes any argument for any statement.
type lax struct{ foreign }

func (lax) CheckNamedValue(*driver.NamedValue) error { return nil }
func (lax) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	return driver.RowsAffected(1), nil
}

func TestOtherDriversAreRefused(t *testing.T) {
	for _, name := range []string{"pgxcopy-strict", "pgxcopy-lax"} {
		db, err := sqlx.Open(name, "")
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		n, err := pgxcopy.Copier{}.Copy(limited(t), db.MustBegin(), "COPY t FROM STDIN", readerFunc(func([]byte) (int, error) {
			t.Errorf("%s: the rows are read", name)
			return 0, io.EOF
		}))
		if n != 0 || !errors.Is(err, pgxcopy.ErrDriver) {
			t.Errorf("%s: Copy() = %d, %v; want ErrDriver", name, n, err)
		}
	}
}

func TestTransactionThatHasEndedIsNotTakenForAnotherDriver(t *testing.T) {
	db, name := table(t, "pgx")
	tx := db.MustBegin()
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if _, err := (pgxcopy.Copier{}).Copy(limited(t), tx, "COPY "+name+" FROM STDIN", strings.NewReader("")); !errors.Is(err, sql.ErrTxDone) {
		t.Errorf("Copy(ended transaction) = %v; want ErrTxDone", err)
	}
}
