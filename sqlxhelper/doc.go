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
// slice, and [Helper.Insert] for one row. Each takes a *sqlx.DB or a *sqlx.Tx. Use
// [InTx] to put several calls into one transaction. It runs the transaction again
// if that has lost against another one.
//
// # What is guaranteed
//
//   - All or nothing. After an error nothing of the call is stored, and a
//     transaction in which it was made can go on. On a pool, several statements
//     run in a transaction of their own. In a transaction, every call runs under a
//     savepoint.
//   - Every row is inserted, or there is an error. The count that the database
//     reports is compared with the rows that it was given.
//   - Keys first. All missing keys are taken from the source at once, and set in
//     the structs with the foreign keys before any SQL. They stay set when the
//     insert fails, so a retry writes the same rows. If only the answer was lost,
//     the retry is a duplicate key.
//   - A zero key is never sent, nor a zero foreign key of a relation.
//   - What cannot work is refused before keys are assigned and before any SQL. The
//     error has the type, the index and the field.
//
// # Under which conditions
//
//   - The tables are transactional: not MyISAM or Aria.
//   - On MySQL and MariaDB sql_mode is strict, as it is by default.
//   - Calls on one transaction do not overlap. A Helper and a pool may be used by
//     many goroutines.
//   - Nobody else changes the rows during the call.
//   - The connection survives. If it breaks, the server rolls the transaction back
//     and the error matches [ErrTxBroken]. So does a deadlock on MySQL. Roll back
//     then, and do not go on.
//   - The key is the primary key in the database too, or unique.
//   - No constraint of an SQLite table is declared ON CONFLICT REPLACE, which
//     deletes stored rows.
//
// docs/sqlx.md says what happens without each condition.
//
// # Fields, columns and keys
//
// The columns are those that sqlx would scan into the struct: db tags, or names
// made by the Mapper of the handle, and the fields of embedded structs. Every
// field is written, zero or not.
//
// A field is a column if it is a value: a basic type, time.Time, a driver.Valuer,
// []byte, or a pointer to one of these. Slices and maps of other types are left to
// the driver. Other structs are refused, unless embedded. The tag snowkey:"-"
// excludes a field from the insert and leaves it to sqlx for reading.
//
// The primary key is the field for column id, or the one with the tag
// snowkey:"pk". Its type is [types.Snowflake], and every row type has one.
//
// Names are quoted and therefore exact: "Orders" is not the table orders on
// PostgreSQL.
//
// # Relations
//
// The tag snowkey:"table,fk=column" on a field of type []T, []*T or *T makes its
// rows children. They go into table, and column is their foreign key. A nil *T and
// an empty slice are no children.
//
// The tag snowkey:"table,belongs_to=column" on a field of type *T makes it the row
// to which this one belongs. That row goes into table. The column is one of the
// row with the field, and is the foreign key. With nil it stays as it is.
//
//	type Order struct {
//		types.Model
//		CustomerID types.Snowflake `db:"customer_id"`
//		Customer   *Customer       `db:"-" snowkey:"customers,belongs_to=customer_id"`
//		Items      []Item          `db:"-" snowkey:"order_items,fk=order_id"`
//	}
//
// A foreign key is a [types.Snowflake], a *types.Snowflake or a
// [types.NullSnowflake]. It must be unset, or already the key that it is going to
// be. Any other is [ErrForeignKey]. Relations nest, and a type may contain itself.
//
// Every row is inserted once and has one place: in the call, or in one field that
// makes it a child. A second such place is refused. A belongs_to field may lead to
// it from anywhere, any number of times, by the same pointer.
//
// A row to which a pointer leads is always inserted, whether it has a key or not.
// To refer to a stored customer, set CustomerID and leave Customer nil.
//
// Each table is written once, after those to which it refers. Tables that refer to
// each other in a circle are written once per level. Rows that refer to each other
// in a circle are refused, because none of them can be the first.
//
// # How rows are sent
//
// Rows go in chunks with few different texts. On PostgreSQL up to 10 rows of a
// table go by VALUES, and more by unnest or, with [WithCopy], by COPY. What is
// stored is the same. docs/sqlx.md has the limits.
//
// # Upserts and options
//
// [Helper.With] gives options to some calls, and [New] to all:
//
//	err := h.With(sqlxhelper.OnConflictDoNothing("number")).InsertGraph(ctx, db, "orders", orders)
//
// [OnConflictDoNothing] and [OnConflictUpdate] meet rows that are stored already,
// and set the stored row's key in the struct. Children are stored under that key.
// If the stored row cannot be identified, the call fails with [ErrUnresolved] and
// is undone. [Columns] and [Omit] leave columns to the database, [Returning] reads
// columns back, and [OnProgress] reports progress.
//
// # Errors
//
// An error in a type is a [*PlanError], in a row a [*RowError], in the call a
// sentinel such as [ErrArgument]. These come before any SQL. What the database,
// its driver, the context or a Value method says is an [*InsertError]. It has the
// table, the rows of the statement, and the row that is to blame if that is proved:
//
//	sqlxhelper: insert into order_items, shop.Order[17].Items[1] (id 175939308748828672): UNIQUE constraint failed: order_items.sku
//
// A duplicate key matches [ErrDuplicateKey] on every database.
//
// # Databases
//
// SQLite, PostgreSQL, MySQL and MariaDB, recognized by the driver name. An unknown
// name is refused with [ErrDriver]: use [RegisterDriver] or [WithDialect].
package sqlxhelper
