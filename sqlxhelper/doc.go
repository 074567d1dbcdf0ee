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
// [InsertSeq] for more rows than fit into memory, and [Helper.Insert] for one row. They
// take a *sqlx.DB, a *sqlx.Tx, or a *sqlx.Conn by [OnConn]. [InTx] runs several calls in
// one transaction, and retries it if it lost against another.
//
// # What is guaranteed
//
//   - All or nothing. After an error nothing of the call is stored, and its
//     transaction can go on. On a pool, several statements run in a transaction of
//     their own. In a transaction, every call runs under a savepoint.
//   - Every row is inserted, or there is an error. The
//     count of the database is checked.
//   - Keys first. All missing keys are taken from the source at once. They are set
//     in the structs, with the foreign keys, before any SQL. They stay set when the
//     insert fails, so a retry writes the same rows.
//   - Three outcomes. nil means that all is stored, and an error that nothing is. If
//     the answer of the database is lost, the call finds out by its keys what has
//     become of it. If that cannot be known, the error matches [ErrCommitUnknown] and
//     has the keys.
//   - A zero key is never sent, nor a zero foreign key of a relation, nor any key below
//     zero, which [types.Snowflake] would not read back.
//   - What cannot work is refused before keys are assigned and before any SQL. The
//     error has the type, the index and the field.
//
// # Under which conditions
//
//   - Tables are transactional: not MyISAM or Aria.
//   - On MySQL and MariaDB sql_mode is strict, as it is by default.
//   - Calls on one transaction do not overlap. Many goroutines may use a Helper and
//     a pool.
//   - Nobody else changes the rows during the call.
//   - The connection of a transaction survives. If it breaks, the server rolls the
//     transaction back and the error matches [ErrTxBroken]. So does a deadlock on MySQL. Roll back
//     then, and do not go on.
//   - The key is the primary key in the database too, or unique.
//   - No SQLite constraint is ON CONFLICT REPLACE, which deletes stored rows.
//
// docs/sqlx.md has recipes, and says what happens without each condition.
//
// # Fields, columns and keys
//
// The columns are those that sqlx would scan into the struct, embedded structs
// included. Names are from db tags or the Mapper of the handle. Every field is
// written, zero or not.
//
// A field is a column if it is a value: a basic type, time.Time, a driver.Valuer,
// []byte, or a pointer to one of these. The driver decides about slices and maps of
// other types. Other structs are refused, unless embedded. The tag snowkey:"-"
// excludes a field from the insert, and sqlx still reads it.
//
// The primary key is the field for column id, or the one with the tag
// snowkey:"pk". Its type is [types.Snowflake], and every row type has one.
//
// Names are quoted and so exact: "Orders" is not the table orders on PostgreSQL.
//
// # Relations
//
// The tag snowkey:"table,fk=column" on a field of type []T, []*T or *T makes its
// rows children. They go into table, and column is their foreign key. A nil *T and
// an empty slice are no children.
//
// The tag snowkey:"table,belongs_to=column" on a field of type *T makes it the row
// to which this one belongs. That row goes into table. The foreign key is column,
// in the row with the field. With nil it stays as it is.
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
// Every row has one place: in the call, or in one field that makes it a child. A
// second is refused. Any number of belongs_to fields may lead to it, by the
// same pointer.
//
// A row behind a pointer is always inserted. To refer to a stored customer, set
// CustomerID and leave Customer nil.
//
// Each table is written once, after those to which it refers. Tables in a circle are
// written once per level. Rows in a circle are refused, because none of them can be
// the first.
//
// # How rows are sent
//
// Rows go in chunks. On PostgreSQL many rows go by unnest, or by COPY with
// [WithCopy]. docs/sqlx.md has the limits.
//
// # Upserts and options
//
// [Helper.With] gives options to some calls, and [New] to all:
//
//	err := h.With(sqlxhelper.OnConflictDoNothing("number")).InsertGraph(ctx, db, "orders", orders)
//
// [OnConflictDoNothing] and [OnConflictUpdate] accept rows that are stored already.
// They set the stored row's key in the struct, and children are stored under it. If
// it cannot be identified, the call fails with [ErrUnresolved] and is undone.
// [Columns] and [Omit] leave columns to the database.
//
// # Errors
//
// An error in a type is a [*PlanError], in a row a [*RowError], in the call a
// sentinel such as [ErrArgument]. These come before any SQL. What the database,
// its driver, the context or a Value method says is an [*InsertError]. It has the
// table, the rows of the statement, and the row to blame if that is proved.
//
// A duplicate key matches [ErrDuplicateKey] on every database.
//
// # Databases
//
// SQLite, PostgreSQL, MySQL and MariaDB are known by the driver name. Another name is
// [ErrDriver]: use [RegisterDriver] or [WithDialect].
package sqlxhelper
