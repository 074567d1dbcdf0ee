// Package pgxcopy sends the rows of sqlxhelper to PostgreSQL by COPY, through pgx.
// It is a module of its own, so programs with another driver do not require pgx.
//
//	h := sqlxhelper.New(generator, sqlxhelper.WithCopy(pgxcopy.Copier{}, 0))
//	err := h.InsertMany(ctx, tx, "orders", orders) // tx is a *sqlx.Tx, or a *sqlx.DB
//
// # What is guaranteed
//
// Nothing else changes. Calls with few rows go as before. Those with many are one
// COPY per table, inside the transaction of the call, with the same rows, keys and
// errors. Package sqlxhelper says which rows go which way.
//
// # Under which conditions
//
// The pool is one of database/sql with the driver pgx of
// github.com/jackc/pgx/v5/stdlib. A wrapper around it, for tracing for instance,
// has to hand arguments through unchanged. With any other driver the calls that
// need COPY fail with [ErrDriver], and nothing was sent.
//
// # How
//
// database/sql has no COPY. The usual ways around that do not work in a
// transaction. sql.Conn.Raw needs the *sql.Conn that a *sql.Tx hides. It deadlocks
// if its function panics while a transaction is open. But pgx looks for a
// pgx.QueryRewriter among the arguments of a query. It gives the rewriter the
// *pgx.Conn of the transaction, which is about to run the query. The rewriter
// copies, and returns a query that does nothing.
package pgxcopy
