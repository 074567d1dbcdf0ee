package sqlxhelper

import (
	"context"
	"database/sql"
	"fmt"
	"reflect"

	"github.com/jmoiron/sqlx"
	"github.com/jmoiron/sqlx/reflectx"
)

// DB is what rows are inserted through: a *sqlx.DB, a *sqlx.Tx, or a type of
// the program's own around one of them.
//
// Which of the two it is decides how a call is undone after an error, so a type
// for which it cannot be told is refused with [ErrDB]:
//
//   - A type with the method BeginTxx of *sqlx.DB is a pool, and one with the
//     methods Commit and Rollback of *sqlx.Tx is a transaction. Embedding
//     *sqlx.DB or *sqlx.Tx gives them, and so does embedding an interface, as
//     in struct{ sqlxhelper.DB }, that holds one. A type with the methods of
//     both, or of neither, is refused.
//   - The mapper is the field Mapper that embedding brings along. A type without
//     it uses the mapper of package sqlx, as sqlx's own functions do.
//   - Statements go through the type's own methods, except in a transaction that
//     a call begins on a pool: BeginTxx returns a *sqlx.Tx, and that is used.
type DB interface {
	sqlx.ExtContext
	sqlx.PreparerContext
}

// A beginner is what makes a [DB] a pool.
type beginner interface {
	BeginTxx(ctx context.Context, opts *sql.TxOptions) (*sqlx.Tx, error)
}

// An ender is what makes a [DB] a transaction.
type ender interface {
	Commit() error
	Rollback() error
}

// A conn is a [DB] of which all is known that a call needs.
type conn struct {
	db     DB
	pool   beginner // nil where db is a transaction
	mapper *reflectx.Mapper
}

// connect finds out what db is.
func connect(db DB) (conn, error) {
	c := conn{db: db}
	var tx bool
	for _, layer := range layers(db) {
		v := reflect.ValueOf(layer)
		if v.Kind() == reflect.Pointer && v.IsNil() {
			return conn{}, fmt.Errorf("%w: nil %T", ErrDB, layer)
		}
		if b, ok := layer.(beginner); ok && c.pool == nil {
			c.pool = b
		}
		if _, ok := layer.(ender); ok {
			tx = true
		}
		m, err := mapperField(v)
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
		return conn{}, fmt.Errorf("%w: %T is neither a pool nor a transaction; embed *sqlx.DB or *sqlx.Tx, or add the method BeginTxx, or Commit and Rollback", ErrDB, db)
	}
	if c.mapper == nil {
		// The default of package sqlx, which has no other door. It is made anew
		// when somebody has set sqlx.NameMapper.
		c.mapper = sqlx.NewDb(nil, "").Mapper
	}
	return c, nil
}

// maxDepth bounds how far a handle is looked into. Nothing keeps a struct from
// embedding itself, and nobody wraps a handle ten times on purpose.
const maxDepth = 10

// layers returns db and, where it embeds interfaces, the handles that they hold.
func layers(db DB) []any {
	if db == nil {
		return nil
	}
	found := []any{db}
	for i := 0; i < len(found) && i < maxDepth; i++ {
		found = appendEmbedded(found, reflect.ValueOf(found[i]), 0)
	}
	return found
}

// appendEmbedded appends the handles in the interfaces that a struct embeds,
// itself or by way of other structs that it embeds. What cannot execute or
// prepare a statement is no handle, and may be nil or have a Commit as it likes.
func appendEmbedded(found []any, v reflect.Value, depth int) []any {
	if v = reflect.Indirect(v); v.Kind() != reflect.Struct || depth == maxDepth {
		return found
	}
	for i := range v.NumField() {
		field := v.Field(i)
		switch {
		case !v.Type().Field(i).Anonymous:
		case field.Kind() != reflect.Interface:
			found = appendEmbedded(found, field, depth+1)
		case !field.IsNil() && field.CanInterface():
			switch held := field.Interface().(type) {
			case sqlx.ExecerContext, sqlx.PreparerContext:
				found = append(found, held)
			}
		}
	}
	return found
}

// mapperField returns the field Mapper as Go's selector v.Mapper would, or nil
// if there is none.
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
