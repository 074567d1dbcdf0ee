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
// The conditions: tables are transactional and their keys unique; sql_mode is strict on MySQL and
// MariaDB; no SQLite constraint is ON CONFLICT REPLACE; calls on one transaction do not overlap;
// and the program does not modify the rows during a call. If the connection of a transaction
// breaks, or MySQL ends it by a deadlock, the error matches [ErrTxBroken]: roll back then.
//
// If the keys of the source name a shard, all rows of a graph are on the shard of their root; see
// [Helper.InsertGraph].
//
// The driver name identifies SQLite, PostgreSQL, MySQL and MariaDB; [RegisterDriver] adds names.
// Names of tables and columns are quoted and therefore exact: on PostgreSQL, "Orders" is not the
// table orders. docs/sqlx.md has recipes, limits, and what happens when a condition does not hold.
//
// This package is stable.
package sqlxhelper
