package dialect

import (
	"context"
	"database/sql"
)

// An Execer is a pool, a connection or a transaction.
type Execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// A Queryer is a pool, a connection or a transaction.
type Queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// An Executor is both, such as a *sql.Tx, a *sql.Conn on which a transaction was begun by hand, or
// another library's transaction.
type Executor interface {
	Execer
	Queryer
}

// Each calls scan for each row of a query. It reads to the end of the rows because MySQL's
// driver honors ctx while it reads rows, but not while it closes them and skips the rest.
func Each(ctx context.Context, db Queryer, scan func(*sql.Rows) error, text string, args ...any) error {
	rows, err := db.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // if scan fails; Err has every other error
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// One reads the single row of a query into dest. Without a row the error is sql.ErrNoRows.
func One(ctx context.Context, db Queryer, dest []any, text string, args ...any) error {
	found := false
	err := Each(ctx, db, func(rows *sql.Rows) error {
		found = true
		return rows.Scan(dest...)
	}, text, args...)
	if err == nil && !found {
		err = sql.ErrNoRows
	}
	return err
}
