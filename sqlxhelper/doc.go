// Package sqlxhelper inserts structs through sqlx with primary keys that are
// known before the insert: one row, many rows, or rows with their children.
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
// Use [Helper.InsertGraph] for rows with children, [Helper.InsertMany] for a
// slice, [Helper.Insert] for one row, each on a *sqlx.DB or a *sqlx.Tx, and
// [InTx] to put several of them into one transaction.
//
// # What is guaranteed
//
//   - All or nothing. After an error nothing of the call is stored, and a
//     transaction in which it was made can go on. On a pool, several statements
//     run in a transaction of their own; in a transaction every call runs under
//     a savepoint, even a single statement.
//   - Every row that was given is inserted, or there is an error: what the
//     database says it has inserted is compared with what it was given.
//   - Keys first. All missing keys are taken from the source at once, all or
//     none, and set in the structs together with the foreign keys, before any
//     SQL. Keys that are set already are kept. They stay set when the insert
//     fails, so a retry writes the same rows; and if it was only the answer of
//     the database that got lost, the retry is a duplicate key and not a
//     duplicate order.
//   - A zero key is never sent, nor a zero foreign key of a child.
//   - What cannot work is refused before keys are assigned and before any SQL,
//     with the type, the index and the field in the error: nil elements, nil
//     embedded pointers, one struct twice, a key or foreign key of another type,
//     two fields for one column, tags that would lose a column.
//
// # Under which conditions, and what happens without
//
//   - The tables are transactional. MyISAM and Aria keep what was inserted
//     before an error.
//   - Calls on one transaction do not overlap, because savepoints nest and
//     overlapping ones undo each other. A Helper and a pool are free to be used
//     by many goroutines.
//   - The rows are not touched by others during the call.
//   - The connection survives. If it breaks, or if ctx ends during a statement
//     on PostgreSQL or MySQL, whose drivers then close it, the server rolls the
//     transaction back, and the error matches [ErrTxBroken] where the
//     transaction is the caller's. It does too after a deadlock on MySQL, which
//     ends the whole transaction. Roll back then; do not go on. SQLite is not
//     interrupted inside a transaction: ctx is looked at between its statements,
//     and a wait for a lock lasts as long as busy_timeout says.
//   - On a pool, a call that needs one statement sends it without a transaction
//     of its own. Only a trigger or a rule that suppresses some of its rows
//     shows the difference: the [*CountError] comes when the others are stored.
//     SQLite has the transaction in that case as well.
//   - A lost connection while a commit is on its way leaves open whether the
//     rows are stored. The keys tell: they are in the structs.
//
// # Fields, columns and keys
//
// The columns are those that sqlx would scan into the struct: db tags, or the
// names that the Mapper of the *sqlx.DB or *sqlx.Tx makes (lower case, if it was
// not replaced), and the fields of embedded structs. Every field is written,
// zero or not.
//
// A field is a column if it is a value: a basic type, time.Time, a
// driver.Valuer, []byte, pointers to these; slices and maps of other types are
// left to the driver to accept. A struct of another kind that is not embedded,
// or a slice of such, is refused. The tag snowkey:"-" excludes a field from the
// insert and leaves it to sqlx for reading: generated columns, joined structs.
//
// The primary key is the field for column id, or the one with the tag
// snowkey:"pk". Its type is [types.Snowflake], and every row type has one.
//
// Names of tables and columns are quoted and therefore exact: "Orders" is not
// the table orders on PostgreSQL.
//
// # Children
//
// The tag snowkey:"table,fk=column" on a field of type []T, []*T or *T makes it
// child rows: they go into table, and column is their foreign key. The field of
// T for that column is a [types.Snowflake], a *types.Snowflake or a
// [types.NullSnowflake]. A nil *T and an empty slice are no children. Children
// may have children, and a type may contain itself, as a tree does. One struct
// that is reached twice, which includes data that runs in a circle, is refused.
//
// # Databases
//
// SQLite, PostgreSQL, MySQL and MariaDB. Which one it is follows from the driver
// name, and a name that could mean anything is refused with [ErrDriver]:
// [RegisterDriver] or [WithDialect] says what it is.
package sqlxhelper
