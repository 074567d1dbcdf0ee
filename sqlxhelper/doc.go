// Package sqlxhelper inserts structs through sqlx: one row, many rows, or rows with their
// children. The primary keys are known before the insert.
//
//	type Item struct {
//		types.Model
//		OrderID types.Snowflake `db:"order_id"`
//		SKU     string          `db:"sku"`
//	}
//	type Order struct {
//		types.Model
//		Number string `db:"number"`
//		Items  []Item `db:"-" snowkey:"order_items,fk=order_id"`
//	}
//
//	h := sqlxhelper.New(generator)
//	err := h.InsertGraph(ctx, db, "orders", orders) // []Order, with their Items
//
// [Helper.InsertGraph] inserts rows with children, [Helper.InsertMany] a slice, [InsertSeq] more
// rows than fit into memory, and [Helper.Insert] one row. They take a *sqlx.DB, a *sqlx.Tx, or a
// *sqlx.Conn through [OnConn]. [InTx] runs several calls in one transaction, and retries it
// after a serialization failure or a deadlock.
//
// Every call guarantees:
//
//   - All or nothing. After an error nothing of the call is stored, and the transaction in which
//     it was made can go on.
//   - Keys first. Missing keys and foreign keys are set in the structs before any SQL, and stay
//     set if the insert fails, so that a retry writes the same rows. A zero key is never sent.
//   - Every row is inserted, or there is an error: the database's row count is checked. Impossible
//     input is refused before keys are set, with an error that names type, index and field.
//   - Three outcomes. nil means that all is stored, and an error that nothing is. If the
//     database's answer is lost, the call finds out by its keys what became of the rows; if it
//     cannot, the error matches [ErrCommitUnknown] and has the keys.
//
// # Conditions
//
// Each is followed by what happens if it does not hold.
//
//   - Tables are transactional: MyISAM and Aria keep what was inserted before an error.
//   - sql_mode has STRICT_TRANS_TABLES on MySQL and MariaDB: the server cuts a value that does not
//     fit, or stores 0, without an error.
//   - Calls on one transaction do not overlap: savepoints nest, and overlapping ones undo each
//     other. The program does not modify the rows during a call.
//   - The key is unique in the database: a retry can store a row twice.
//   - The connection of a transaction survives, and on MySQL there is no deadlock: the server rolls
//     the transaction back, and the error matches [ErrTxBroken]. Roll back then.
//   - ctx does not end during a statement: the drivers of PostgreSQL and MySQL close the connection.
//     In a transaction on SQLite ctx is checked between statements only, and a wait for a lock lasts
//     up to busy_timeout. Every call returns at most a second after the end of ctx; lib/pq, and
//     MySQL's driver in COMMIT, may keep the connection of a silent server until TCP gives up.
//   - No trigger or rule suppresses rows: the call fails with a [*CountError].
//   - No SQLite constraint is ON CONFLICT REPLACE or IGNORE: REPLACE deletes every row that conflicts
//     with the new one, even the parent of rows in the call, and the call succeeds. With IGNORE,
//     omitted rows are a [*CountError], or [ErrUnresolved] in an upsert.
//
// A Value method may run in another goroutine while the server works, if rows go by unnest or COPY,
// also for rows that are never sent, and must not wait for the progress of the call; in [InsertSeq]
// it runs while the row is yielded. All have ended when the call returns. If a callback (Value, Scan,
// the report of [OnProgress], the function of [InTx]) panics or ends its goroutine, as testing's
// FailNow does, the call is undone; under package pgxcopy it returns an error.
//
// # Names
//
// If the keys of the source name a shard, all rows of a graph are on the shard of their root; see
// [Helper.InsertGraph].
//
// The driver name identifies SQLite, PostgreSQL, MySQL and MariaDB; [RegisterDriver] adds names.
// Names of tables and columns are quoted and therefore exact: on PostgreSQL, "Orders" is not the
// table orders. docs/sqlx.md has recipes and limits.
//
// This package is stable.
package sqlxhelper
