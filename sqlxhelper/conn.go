package sqlxhelper

import (
	"context"
	"database/sql"
	"fmt"
	"reflect"

	"github.com/jmoiron/sqlx"
	"github.com/jmoiron/sqlx/reflectx"
	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/outcome"
	"github.com/snowkey/snowkey/internal/base/supply"
)

// DB is the handle for an insert: a *sqlx.DB, a *sqlx.Tx, or a type of the program's own around
// one of them.
//
// It is either a pool or a transaction, which decides how a call is undone:
//
//   - A type with the method BeginTxx of *sqlx.DB is a pool. One with the methods Commit and
//     Rollback of *sqlx.Tx is a transaction. Embedding *sqlx.DB or *sqlx.Tx provides them. A
//     type with the methods of both, or of neither, is refused with [ErrDB].
//   - A type that holds another DB in an interface needs a method Unwrap() sqlxhelper.DB that
//     returns it.
//   - The mapper is the field Mapper, which embedding provides. A type without it uses the
//     mapper of package sqlx, as sqlx's own functions do.
//   - Statements go through the type's own methods or, in a transaction that a call begins on a
//     pool, through the *sqlx.Tx that BeginTxx returned. On PostgreSQL a call also begins one
//     for a single statement if its rows have keys already and the pool is not sqlx's own:
//     *sql.DB may send the statement twice, and a duplicate key could be its own.
//   - [Within] makes a transaction of any handle that is inside one, whatever its methods are.
type DB interface {
	sqlx.ExtContext
	sqlx.PreparerContext
}

// A beginner begins transactions, which makes a [DB] a pool.
type beginner interface {
	BeginTxx(ctx context.Context, opts *sql.TxOptions) (*sqlx.Tx, error)
}

// An ender ends a transaction, which makes a [DB] one.
type ender interface {
	Commit() error
	Rollback() error
}

// A wrapper is a [DB] around another one.
type wrapper interface {
	Unwrap() DB
}

// A conn is a [DB] as a call uses it.
type conn struct {
	db      DB
	pool    beginner // nil where db is a transaction
	one     bool     // the pool is an onConn
	mapper  *reflectx.Mapper
	dialect *traits // nil in an InTx where it is not known
	cancels outcome.Cancels
	// hidesPooler: the driver keeps to itself what a pooler says when it refuses a BEGIN.
	hidesPooler bool
}

// newConn returns the conn of db, without what depends on the dialect and the driver.
func newConn(db DB) (conn, error) {
	switch db := db.(type) { // of which most need no search
	case within:
		return db.connect()
	case *sqlx.DB:
		if db != nil && db.Mapper != nil {
			return conn{db: db, pool: db, mapper: db.Mapper}, nil
		}
	case *sqlx.Tx:
		if db != nil && db.Mapper != nil {
			return conn{db: db, mapper: db.Mapper}, nil
		}
	}
	c := conn{db: db}
	var tx bool
	for _, layer := range layers(db) {
		if supply.IsNil(layer) {
			return conn{}, fmt.Errorf("%w: nil %T", ErrDB, layer)
		}
		if b, ok := layer.(beginner); ok && c.pool == nil {
			c.pool = b
		}
		if _, ok := layer.(ender); ok {
			tx = true
		}
		if _, ok := layer.(onConn); ok {
			c.one = true
		}
		m, err := mapperField(reflect.ValueOf(layer))
		if err != nil {
			return conn{}, err
		}
		if m != nil && c.mapper == nil {
			c.mapper = m
		}
	}
	switch {
	case c.pool != nil && tx:
		return conn{}, fmt.Errorf("%w: %T has BeginTxx like a pool, and Commit and Rollback like a transaction", ErrDB, db)
	case c.pool == nil && !tx:
		return conn{}, fmt.Errorf("%w: %T is neither a pool nor a transaction; embed *sqlx.DB or *sqlx.Tx, or add the method BeginTxx, or Commit and Rollback; if it is always inside a transaction, pass sqlxhelper.Within(db)", ErrDB, db)
	}
	c.mapper = mapperOr(c.mapper)
	return c, nil
}

// mapperOr returns m or, if it is nil, the default mapper of package sqlx, which is not accessible
// otherwise. It is made anew after a change of sqlx.NameMapper.
func mapperOr(m *reflectx.Mapper) *reflectx.Mapper {
	if m == nil {
		m = sqlx.NewDb(nil, "").Mapper
	}
	return m
}

// maxLayers bounds how many layers of a handle are unwrapped, because a handle may wrap itself.
const maxLayers = 10

// layers returns db and the handles that it wraps, from the outside in.
func layers(db DB) []DB {
	var found []DB
	for db != nil && len(found) < maxLayers {
		found = append(found, db)
		w, ok := db.(wrapper)
		if !ok || supply.IsNil(db) {
			break
		}
		db = w.Unwrap()
	}
	return found
}

// mapperField returns the field Mapper as Go's selector v.Mapper would, or nil without it.
func mapperField(v reflect.Value) (*reflectx.Mapper, error) {
	v = reflect.Indirect(v)
	if v.Kind() != reflect.Struct {
		return nil, nil
	}
	f, ok := v.Type().FieldByName("Mapper")
	if !ok || f.Type != reflect.TypeFor[*reflectx.Mapper]() {
		return nil, nil
	}
	field, err := v.FieldByIndexErr(f.Index)
	if err != nil {
		return nil, fmt.Errorf("%w: %v embeds a nil pointer", ErrDB, v.Type())
	}
	if field.IsNil() {
		return nil, fmt.Errorf("%w: the Mapper of %v is nil; sqlx.Open and sqlx.NewDb set it", ErrDB, v.Type())
	}
	return field.Interface().(*reflectx.Mapper), nil
}

// OnConn makes a [DB] of one connection of a pool, for temporary tables, session settings and
// locks that belong to it. driverName is the pool's db.DriverName(), which *sqlx.Conn does not
// expose.
//
// The DB is a pool of one connection. Several statements run in a transaction that the call
// begins on it, after up to two short queries that ask whether one is open. A call that finds
// one open, such as that of a raw BEGIN, fails with [ErrDB] and leaves it open; begin it by
// BeginTxx and use the *sqlx.Tx instead. No query on c may have
// unread rows, for which database/sql with pgx would wait forever. The DB is as safe for
// concurrent use as c, and c remains the caller's to close. [InTx] takes no connection, because
// it needs another one after a lost commit.
func OnConn(c *sqlx.Conn, driverName string) DB {
	return onConn{Conn: c, driver: driverName, dialect: driverNamed(driverName).dialect}
}

type onConn struct {
	*sqlx.Conn
	driver  string
	dialect Dialect // by the driver, or of the Helper in a call
}

// DriverName implements [DB].
func (c onConn) DriverName() string { return c.driver }

// BindNamed implements [DB].
func (c onConn) BindNamed(query string, arg any) (string, []any, error) {
	return sqlx.BindNamed(sqlx.BindType(c.driver), query, arg)
}

// BeginTxx begins a transaction, or returns ErrDB if one is open, which MySQL's START
// TRANSACTION would commit; PostgreSQL would only warn, and COMMIT both.
func (c onConn) BeginTxx(ctx context.Context, opts *sql.TxOptions) (*sqlx.Tx, error) {
	open, err := outcome.InTransaction(ctx, c.dialect, c)
	if err != nil {
		return nil, err
	}
	var tx *sqlx.Tx
	if !open {
		tx, err = c.Conn.BeginTxx(ctx, opts)
		open = dialect.InTransaction(err)
	}
	if open {
		return nil, fmt.Errorf("%w: the connection of OnConn is inside of a transaction, which a second BEGIN could commit; begin it by BeginTxx and pass the *sqlx.Tx", ErrDB)
	}
	return tx, err
}
