// Package pgxcopy sends the rows of sqlxhelper to PostgreSQL by COPY, through pgx. It is a module
// of its own, so that programs with another driver do not require pgx.
//
//	h := sqlxhelper.New(generator, sqlxhelper.WithCopy(pgxcopy.Copier{}, 0))
//	err := h.InsertMany(ctx, tx, "orders", orders) // tx is a *sqlx.Tx, or a *sqlx.DB
//
// Calls with many rows are then one COPY per table, inside the transaction of the call, with the
// same rows, keys and errors as before; calls with few rows do not change. Package sqlxhelper
// says which rows go by COPY.
//
// The pool is one of database/sql with the driver pgx of github.com/jackc/pgx/v5/stdlib. A
// wrapper around it, such as one for tracing, has to pass arguments through unchanged. With any
// other driver the calls that need COPY fail with [ErrDriver], and nothing is sent.
//
// # How it works
//
// database/sql has no COPY, and the usual ways around that fail in a transaction: sql.Conn.Raw
// needs the *sql.Conn that a *sql.Tx hides, and deadlocks if its function panics while a
// transaction is open. But pgx looks for a pgx.QueryRewriter among the arguments of a query, and
// passes it the *pgx.Conn of the transaction, which is about to run the query. The rewriter
// copies, and returns a query that does nothing.
//
// This package is stable.
package pgxcopy
