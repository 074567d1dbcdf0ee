package sqlxhelper

import (
	"context"
	"database/sql"
	"fmt"
	"reflect"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/internal/base/supply"
)

// Within makes a [DB] of any handle of a transaction that the program has begun, such as the one
// that a repository takes from its context. All statements of a call go through it, under a
// savepoint; its other methods, such as BeginTxx, do not matter. The type's own methods keep
// their meaning: locks, logs and metrics of the program see every statement.
//
// The program vouches for the transaction, so do not use Within to get past [ErrDB]: a *sqlx.DB is
// refused, but a handle that passes statements on to one is not known. Outside of a transaction
// PostgreSQL refuses the call. MySQL stores each statement by itself, and the call returns an
// error because the savepoint is missing. On SQLite the savepoint begins a transaction on whichever
// connection the pool gives, which may not be that of the next statement.
//
// A call uses the field Mapper of the handle, if it has one, and prepares statements only if the
// handle has the method PrepareContext. [InTx] counts the rows if the handle is its *sqlx.Tx, or a
// type that embeds it.
func Within(tx sqlx.ExtContext) DB { return within{tx} }

type within struct{ sqlx.ExtContext }

// PrepareContext is not called if the handle has no such method, see writer.prepares.
func (w within) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	if p, ok := w.ExtContext.(sqlx.PreparerContext); ok {
		return p.PrepareContext(ctx, query)
	}
	return nil, fmt.Errorf("%w: %T prepares no statements", ErrDB, w.ExtContext)
}

// cannotPrepare reports whether db has no way to prepare statements.
func cannotPrepare(db any) bool {
	w, ok := db.(within)
	if !ok {
		return false
	}
	_, ok = w.ExtContext.(sqlx.PreparerContext)
	return !ok
}

// connect returns the conn of the handle.
func (w within) connect() (conn, error) {
	if supply.IsNil(w.ExtContext) {
		return conn{}, fmt.Errorf("%w: Within got a nil %T", ErrDB, w.ExtContext)
	}
	if _, ok := w.ExtContext.(*sqlx.DB); ok {
		return conn{}, fmt.Errorf("%w: Within got a *sqlx.DB, which is a pool and no transaction", ErrDB)
	}
	m, err := mapperField(reflect.ValueOf(w.ExtContext))
	if err != nil {
		return conn{}, err
	}
	return conn{db: w, mapper: mapperOr(m)}, nil
}

// Check returns why calls of a Helper would refuse the handle db, whatever their rows are, or nil.
// It sends nothing. A program that chooses its handle at run time, for example the transaction of a
// context or else a pool, checks each kind when it starts.
func (h *Helper) Check(db DB) error {
	if db == nil {
		return fmt.Errorf("%w: nil", ErrDB)
	}
	_, err := h.connect(db)
	return err
}
