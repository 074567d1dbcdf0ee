// Package sqlxhelper inserts structs through sqlx: one row, many rows, or rows with
// their children. The primary keys are known before the insert.
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
// Use [Helper.InsertGraph] for rows with children, [Helper.InsertMany] for a slice,
// [InsertSeq] for more rows than fit into memory, and [Helper.Insert] for one row. They take
// a *sqlx.DB, a *sqlx.Tx, or a *sqlx.Conn through [OnConn]. [InTx] runs several calls in one
// transaction and retries it after a serialization failure or a deadlock.
//
// # Guarantees
//
//   - All or nothing. After an error nothing of the call is stored, and the transaction in
//     which it was made can go on. On a pool, several statements run in a transaction of
//     their own; in a transaction, every call runs under a savepoint.
//   - Every row is inserted, or there is an error: the database's row count is checked.
//   - Keys first. All missing keys are taken from the source at once and set in the structs,
//     with the foreign keys, before any SQL. They stay set when the insert fails, so that a
//     retry writes the same rows.
//   - Three outcomes. nil means that all is stored, and an error that nothing is. If the
//     database's answer is lost, the call uses the keys to find out what became of the rows;
//     if that cannot be known, the error matches [ErrCommitUnknown] and has the keys.
//   - No zero key is ever sent, no zero foreign key of a relation, and no negative key, which
//     [types.Snowflake] would not read back.
//   - Impossible input is refused before keys are assigned and before any SQL, with an error
//     that names the type, the index and the field.
//
// # Conditions
//
//   - Tables are transactional, unlike those of MyISAM and Aria.
//   - On MySQL and MariaDB sql_mode is strict, as it is by default.
//   - Calls on one transaction do not overlap. A Helper and a pool may be used by many
//     goroutines.
//   - The program does not modify the rows during the call.
//   - The connection of a transaction survives. If it breaks, the server rolls the
//     transaction back and the error matches [ErrTxBroken], as it does after a deadlock on
//     MySQL. Roll back then, and do not go on.
//   - The key is the primary key in the database too, or unique.
//   - No SQLite constraint is ON CONFLICT REPLACE, which deletes stored rows.
//
// docs/sqlx.md has recipes, and says what happens when a condition does not hold.
//
// # Fields, columns and keys
//
// The columns are those that sqlx would scan into the struct, embedded structs included.
// Their names come from db tags or from the Mapper of the handle. Every field is written,
// zero or not.
//
// A field is a column if it is a value: a basic type, time.Time, a driver.Valuer, []byte, or
// a pointer to one of these. The driver decides about slices and maps of other types. Other
// structs are refused unless they are embedded. The tag snowkey:"-" excludes a field from the
// insert, while sqlx still reads it.
//
// The primary key is the field for column id, or the one with the tag snowkey:"pk". Every row
// type has one, of type [types.Snowflake].
//
// Names are quoted and therefore exact: on PostgreSQL, "Orders" is not the table orders.
//
// # Relations
//
// The tag snowkey:"table,fk=column" on a field of type []T, []*T or *T makes its rows
// children, which go into table and whose foreign key is column. A nil *T and an empty slice
// have no children.
//
// The tag snowkey:"table,belongs_to=column" on a field of type *T makes it the row to which
// this one belongs. That row goes into table, and the foreign key is column, in the row with
// the field. A nil field leaves the foreign key alone.
//
//	type Order struct {
//		types.Model
//		CustomerID types.Snowflake `db:"customer_id"`
//		Customer   *Customer       `db:"-" snowkey:"customers,belongs_to=customer_id"`
//		Items      []Item          `db:"-" snowkey:"order_items,fk=order_id"`
//	}
//
// A foreign key is a [types.Snowflake], a *types.Snowflake or a [types.NullSnowflake]. It
// must be unset, or already equal to the key that it will get; any other value is
// [ErrForeignKey]. Relations nest, and a type may contain itself.
//
// Every row has one place, in the call or in one field that makes it a child, and a second
// place is refused. Any number of belongs_to fields may lead to it by the same pointer.
//
// A row behind a pointer is always inserted. To refer to a stored customer, set CustomerID
// and leave Customer nil.
//
// Each table is written once, after the tables to which it refers. Tables that refer to each
// other in a circle are written once per level, and rows in a circle are refused, because
// none of them can be the first.
//
// # How rows are sent
//
// Rows are sent in chunks. PostgreSQL receives many rows by unnest, or by COPY with
// [WithCopy]. docs/sqlx.md has the limits.
//
// # Upserts and options
//
// [New] sets options for all calls, [Helper.With] for some:
//
//	err := h.With(sqlxhelper.OnConflictDoNothing("number")).InsertGraph(ctx, db, "orders", orders)
//
// [OnConflictDoNothing] and [OnConflictUpdate] accept rows that are already stored. They set
// the stored row's key in the struct and store children under it. If the stored row cannot be
// identified, the call fails with [ErrUnresolved] and is undone. [Columns] and [Omit] leave
// columns to the database.
//
// # Errors
//
// Before any SQL, an error in a type is a [*PlanError], an error in a row a [*RowError], and
// an error in the call a sentinel such as [ErrArgument]. Errors of the database, its driver,
// the context or a Value method are an [*InsertError], with the table, the rows of the
// statement, and the row at fault where that is certain. A duplicate key matches
// [ErrDuplicateKey] on every database.
//
// # Databases
//
// The driver name identifies SQLite, PostgreSQL, MySQL and MariaDB. Another name is
// [ErrDriver]; use [RegisterDriver] or [WithDialect].
package sqlxhelper
