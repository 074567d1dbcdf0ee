package sqlxhelper_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

// forward has the methods of a DB and none that says what it is.
type forward struct{ db sqlxhelper.DB }

func (f forward) DriverName() string         { return f.db.DriverName() }
func (f forward) Rebind(query string) string { return f.db.Rebind(query) }

func (f forward) BindNamed(query string, arg any) (string, []any, error) {
	return f.db.BindNamed(query, arg)
}

func (f forward) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return f.db.QueryContext(ctx, query, args...)
}

func (f forward) QueryxContext(ctx context.Context, query string, args ...any) (*sqlx.Rows, error) {
	return f.db.QueryxContext(ctx, query, args...)
}

func (f forward) QueryRowxContext(ctx context.Context, query string, args ...any) *sqlx.Row {
	return f.db.QueryRowxContext(ctx, query, args...)
}

func (f forward) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return f.db.ExecContext(ctx, query, args...)
}

func (f forward) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	return f.db.PrepareContext(ctx, query)
}

// forwardPool adds what makes it a pool, and forwardTx what makes it a
// transaction.
type forwardPool struct {
	forward
	begin *sqlx.DB
}

func (f forwardPool) BeginTxx(ctx context.Context, opts *sql.TxOptions) (*sqlx.Tx, error) {
	return f.begin.BeginTxx(ctx, opts)
}

type forwardTx struct{ forward }

func (forwardTx) Commit() error   { return errors.New("not for the helper to call") }
func (forwardTx) Rollback() error { return errors.New("not for the helper to call") }

type loop struct{ sqlxhelper.DB }

func (l loop) Unwrap() sqlxhelper.DB { return l.DB }

// chained embeds itself and a Label. The value of the Label has the methods of a
// transaction without being one.
type chained struct {
	*chained
	*sqlx.DB
	Label
}

type Label interface{ label() }

type order struct{}

func (*order) label()          {}
func (*order) Commit() error   { return nil }
func (*order) Rollback() error { return nil }

func newChained(db *sqlx.DB) *chained {
	c := &chained{DB: db, Label: (*order)(nil)}
	c.chained = c
	return c
}

// poolAround is a pool that says that it is around a transaction.
type poolAround struct {
	*sqlx.DB
	tx *sqlx.Tx
}

func (p poolAround) Unwrap() sqlxhelper.DB { return p.tx }

// both is a pool to one part of a program and a transaction to another.
type both struct {
	*sqlx.DB
	tx *sqlx.Tx
}

func (b both) Commit() error   { return b.tx.Commit() }
func (b both) Rollback() error { return b.tx.Rollback() }

func TestHandlesThatCannotBeToldApartAreAnError(t *testing.T) {
	db, mock := newMock(t)
	tx := newTx(t, db, mock)
	h := newHelper(sqlxhelper.PostgreSQL)
	var nilDB *sqlx.DB
	var nilTx *sqlx.Tx
	itself := &loop{}
	itself.DB = itself
	for name, c := range map[string]struct {
		db  sqlxhelper.DB
		has string
	}{
		"Nil":                  {nil, "neither"},
		"NilPool":              {nilDB, "nil *sqlx.DB"},
		"NilTx":                {nilTx, "nil *sqlx.Tx"},
		"EmbeddedNilTx":        {struct{ *sqlx.Tx }{}, "embeds a nil pointer"},
		"EmbeddedNilPool":      {&struct{ *sqlx.DB }{}, "embeds a nil pointer"},
		"HeldNil":              {loop{nilTx}, "nil *sqlx.Tx"},
		"HoldsNothing":         {loop{}, "neither"},
		"HoldsWithoutSayingIt": {struct{ sqlxhelper.DB }{db}, "sqlxhelper.Within"},
		"NilWrapper":           {(*loop)(nil), "nil *sqlxhelper_test.loop"},
		"HoldsItself":          {itself, "neither"},
		"NilMapper":            {&sqlx.DB{DB: db.DB}, "Mapper"},
		"Neither":              {forward{db}, "neither a pool nor a transaction"},
		"Both":                 {both{db, tx}, "has BeginTxx like a pool, and Commit"},
		"PoolAndTx":            {poolAround{db, tx}, "has BeginTxx like a pool, and Commit"},
	} {
		t.Run(name, func(t *testing.T) {
			p := pair{}
			err := h.Insert(ctx, c.db, "t", &p)
			if !errors.Is(err, sqlxhelper.ErrDB) || !strings.Contains(err.Error(), c.has) {
				t.Errorf("Insert(%T) = %v; want ErrDB with %q", c.db, err, c.has)
			}
			if p.ID != 0 {
				t.Errorf("key = %d; want none", p.ID)
			}
		})
	}
}

// A single statement on a pool goes through the wrapper. The transaction that a
// call begins is used directly.
func TestWrapperOfAPoolIsAPool(t *testing.T) {
	for name, wrap := range map[string]func(*sqlx.DB) sqlxhelper.DB{
		"Pool":        func(db *sqlx.DB) sqlxhelper.DB { return db },
		"Pointer":     func(db *sqlx.DB) sqlxhelper.DB { return &struct{ *sqlx.DB }{db} },
		"DeepPointer": func(db *sqlx.DB) sqlxhelper.DB { return struct{ *loop }{&loop{db}} },
		"Interface":   func(db *sqlx.DB) sqlxhelper.DB { return loop{loop{db}} },
		"Methods":     func(db *sqlx.DB) sqlxhelper.DB { return forwardPool{forward{db}, db} },
		"HeldMethods": func(db *sqlx.DB) sqlxhelper.DB { return loop{forwardPool{forward{db}, db}} },
		"Chained":     func(db *sqlx.DB) sqlxhelper.DB { return newChained(db) },
		"UnsafePool":  func(db *sqlx.DB) sqlxhelper.DB { return db.Unsafe() },
	} {
		t.Run(name, func(t *testing.T) {
			db, mock := newMock(t)
			h := newHelper(sqlxhelper.PostgreSQL)
			mock.ExpectExec(pairText).WillReturnResult(done(1))
			if err := h.Insert(ctx, wrap(db), "t", &pair{}); err != nil {
				t.Errorf("Insert() = %v; want nil", err)
			}
			mock.ExpectBegin()
			mock.ExpectExec(manyText(32)).WillReturnResult(done(32))
			mock.ExpectExec(pairText).WillReturnResult(done(1))
			mock.ExpectCommit()
			if err := h.InsertMany(ctx, wrap(db), "t", make([]pair, 33)); err != nil {
				t.Errorf("InsertMany() = %v; want nil", err)
			}
		})
	}
}

func TestWrapperOfATransactionIsATransaction(t *testing.T) {
	for name, wrap := range map[string]func(*sqlx.Tx) sqlxhelper.DB{
		"Tx":        func(tx *sqlx.Tx) sqlxhelper.DB { return tx },
		"Pointer":   func(tx *sqlx.Tx) sqlxhelper.DB { return struct{ *sqlx.Tx }{tx} },
		"Interface": func(tx *sqlx.Tx) sqlxhelper.DB { return loop{tx} },
		"Methods":   func(tx *sqlx.Tx) sqlxhelper.DB { return forwardTx{forward{tx}} },
	} {
		t.Run(name, func(t *testing.T) {
			db, mock := newMock(t)
			tx := newTx(t, db, mock)
			mock.ExpectExec("SAVEPOINT snowkey_insert").WillReturnResult(done(0))
			mock.ExpectExec(pairText).WillReturnResult(done(1))
			mock.ExpectExec("RELEASE SAVEPOINT snowkey_insert").WillReturnResult(done(0))
			if err := newHelper(sqlxhelper.PostgreSQL).Insert(ctx, wrap(tx), "t", &pair{}); err != nil {
				t.Errorf("Insert() = %v; want nil", err)
			}
		})
	}
}

// beginning is a pool that has its own way to begin, around another pool.
type beginning struct {
	sqlxhelper.DB
	begin func() (*sqlx.Tx, error)
}

func (b beginning) BeginTxx(context.Context, *sql.TxOptions) (*sqlx.Tx, error) { return b.begin() }

func TestOutermostHandleBegins(t *testing.T) {
	db, _ := newMock(t)
	outer := beginning{db, func() (*sqlx.Tx, error) { return nil, errMine }}
	if err := newHelper(sqlxhelper.PostgreSQL).InsertMany(ctx, outer, "t", make([]pair, 33)); !errors.Is(err, errMine) {
		t.Errorf("InsertMany() = %v; want %v of the outer BeginTxx", err, errMine)
	}
}

func TestHandleWithoutMapperUsesThatOfSqlx(t *testing.T) {
	db, mock := newMock(t)
	mock.ExpectExec(`INSERT INTO "t" ("id", "orderno") VALUES ($1, $2)`).WillReturnResult(done(1))
	type named struct {
		ID      types.Snowflake
		OrderNo int
	}
	if err := newHelper(sqlxhelper.PostgreSQL).Insert(ctx, forwardPool{forward{db}, db}, "t", &named{}); err != nil {
		t.Errorf("Insert() = %v; want nil", err)
	}
}

// connection is a *sqlx.Conn, with the three methods that keep it from being a
// DB.
type connection struct {
	*sqlx.Conn
	db *sqlx.DB
}

func (c connection) DriverName() string { return c.db.DriverName() }
func (c connection) BindNamed(query string, arg any) (string, []any, error) {
	return c.db.BindNamed(query, arg)
}

func TestConnectionBeginsItsTransactionOnItself(t *testing.T) {
	db := openSQLite(t)
	if _, err := db.Exec("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)"); err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1) // another connection would never come
	c, err := db.Connx(ctx)
	if err != nil {
		t.Fatal(err)
	}
	h := sqlxhelper.New(failAt(0, nil))
	if err := h.InsertMany(ctx, connection{c, db}, "t", make([]pair, 301)); err != nil {
		t.Errorf("InsertMany() = %v; want nil", err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	wantRows(t, db, "t", 301)
}
