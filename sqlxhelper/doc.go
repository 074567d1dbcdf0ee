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
// [InTx] to put several of them into one transaction, which is run again if it
// has lost against another one.
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
//   - A zero key is never sent, nor a zero foreign key of a relation.
//   - What cannot work is refused before keys are assigned and before any SQL,
//     with the type, the index and the field in the error: nil elements, nil
//     embedded pointers, one struct twice, a key or foreign key of another type,
//     two fields for one column, tags that would lose a column.
//
// # Under which conditions, and what happens without
//
//   - The tables are transactional. MyISAM and Aria keep what was inserted
//     before an error.
//   - On MySQL and MariaDB sql_mode is strict, as it is by default. Without
//     STRICT_TRANS_TABLES the server cuts a value that does not fit, or stores 0
//     for it, and reports no error.
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
//   - The key is the primary key in the database too, or unique: nothing else
//     keeps a row from being stored twice.
//   - No constraint of an SQLite table is declared ON CONFLICT REPLACE. Such a
//     one deletes every row that is like the new one, also of the same call and
//     also the parent of rows in it, and SQLite does not count what it deletes:
//     the call succeeds. With ON CONFLICT IGNORE it does not; what was left out
//     is a [*CountError], or [ErrUnresolved] in an upsert.
//   - A lost connection while a commit is on its way leaves open whether the
//     rows are stored. [InTx] finds it out by a key, or runs again with the same
//     keys, or says that it cannot with [ErrCommitUnknown]. After a call on a
//     pool, or on a transaction that InTx has not begun, the keys tell: they are
//     in the structs.
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
// # Relations
//
// The tag snowkey:"table,fk=column" on a field of type []T, []*T or *T makes it
// child rows: they go into table, and column is their foreign key to the row
// with the field. A nil *T and an empty slice are no children.
//
// The tag snowkey:"table,belongs_to=column" on a field of type *T makes it the
// row to which the row with the field belongs: it goes into table, and column,
// which is one of the row with the field, is the foreign key to it. With nil the
// column stays as it is.
//
//	type Order struct {
//		types.Model
//		CustomerID types.Snowflake `db:"customer_id"`
//		Customer   *Customer       `db:"-" snowkey:"customers,belongs_to=customer_id"`
//		Items      []Item          `db:"-" snowkey:"order_items,fk=order_id"`
//	}
//
// The field for a foreign key is a [types.Snowflake], a *types.Snowflake or a
// [types.NullSnowflake]. It must be unset or already the key that it is going to
// be; any other is [ErrForeignKey]. The rows in these fields may have such fields
// in turn, and a type may contain itself, as a tree does.
//
// Every row is inserted once, and has one place: in the call, or in one field
// that makes it a child. In a second such place it is refused. But belongs_to may
// lead to it from anywhere and as often as one likes, if the pointers are the
// same: orders share a customer, an item points back to the order that holds it,
// and a list of tree nodes has the parents in it, in any order.
//
// A row to which a pointer leads is always inserted, whether it has a key or not:
// after an insert that failed rows keep their keys, so that a key does not mean
// that the row is stored. To refer to a stored customer, set CustomerID and leave
// Customer nil.
//
// Tables are written in the order in which they refer to each other, each once,
// and rows that refer to rows of their own table after these. Where tables refer
// to each other in a circle, each is written once per level: a club, then its
// members, then the clubs that one of them leads. Rows that refer to each other
// in a circle, or to themselves, are refused, for none of them can be the first.
//
// # How rows are sent
//
// Statements are cut into chunks by their values and bytes, and there are few
// different texts, because drivers and servers keep texts. Which way rows go is
// not seen in what is stored.
//
// On PostgreSQL up to 10 rows of a table go by VALUES, and more by unnest, with
// an array for each column and one text whatever the number of rows. It works
// with pgx in all its modes and with lib/pq. [WithCopy] replaces it by COPY from
// some number of rows on; package
// github.com/snowkey/snowkey/sqlxhelper/pgxcopy has that for pgx. Both need the
// types of the columns, which the first call with many rows for a table reads,
// or [Helper.Describe] before. A COPY that met a table which was altered since is
// undone with [ErrTableChanged].
//
// A row goes by VALUES all the same, with those after it, if drivers differ in
// what they make of one of its values: then it is theirs to say what it becomes,
// or that it is refused. That is so for integers in text and float columns,
// bytes in json and text columns, times outside of UTC in columns without time
// zone, values out of range, types that pgx asks by a method what they are (as
// String, and all types of its package pgtype), and whatever is not a basic type,
// a time, []byte, a pointer to one, a driver.Valuer that returns one, or any. All
// rows do for arrays, ranges, domains, composite types, box, types with a length
// other than the character types', numeric's and timestamps' (as bit(3)),
// generated columns, and tables with rules, views and foreign tables. A table
// with row level security gets no COPY, nor does a session whose client_encoding
// is not UTF8; one with array_nulls off gets VALUES alone.
//
// PostgreSQL stores microseconds. Of a time what is below is cut off, with every
// driver; pgx does so anyway, and lib/pq by itself would have it rounded.
//
// On SQLite a statement has about 300 values, 50 rows of six columns, and on
// MySQL and MariaDB about 3,000, 500 such rows. A statement that comes more than
// once is prepared, unless the driver writes values into the text, as MySQL's
// does with interpolateParams: then all go so. No statement of several rows is larger than 1 MiB of values,
// so that it stays under max_allowed_packet. A single row above that limit is the
// server's error, or the loss of the connection.
//
// # Upserts and options
//
// [Helper.With] gives options to some calls and [New] to all:
//
//	err := h.With(sqlxhelper.OnConflictDoNothing("number")).InsertGraph(ctx, db, "orders", orders)
//
// [OnConflictDoNothing] and [OnConflictUpdate] meet rows that are stored already,
// and leave the stored row's key in the struct: what is related to it, as its
// children in a graph, is stored under that key. If it cannot be told which row
// was met, the call fails with [ErrUnresolved] and is undone. [Columns] and
// [Omit] leave columns to the database, [Returning] reads columns back into the
// same structs, in the same transaction, and [OnProgress] tells how far a long
// call has come.
//
// # Errors
//
// What is wrong with a type is a [*PlanError], with the rows a [*RowError], with
// the call a sentinel such as [ErrArgument]: all before keys are assigned and
// before any SQL. What the database, its driver, the context or the Value method
// of a field says is in an [*InsertError], with the table, the rows of the
// statement, and the one row that is to blame where that can be found out:
//
//	sqlxhelper: insert into order_items, shop.Order[17].Items[1] (id 175939308748828672): UNIQUE constraint failed: order_items.sku
//
// A duplicate key matches [ErrDuplicateKey] on every database. A Value method
// that panics is such an error too. A row is named only where it is proved to be
// the one. On SQLite and MySQL it is found by sending parts of the statement
// again, about twice the logarithm of its rows. On PostgreSQL the row whose values
// the server names is sent again by itself; if that is not refused in the same
// words, no row is named. Of a COPY the server says the line.
//
// A Value method, [OnProgress], or the function of [InTx] may end its goroutine,
// as testing's FailNow does: the call is undone. Under package pgxcopy a Value
// method runs in another goroutine, and the call returns an error instead.
//
// # Databases
//
// SQLite, PostgreSQL, MySQL and MariaDB. Which one it is follows from the driver
// name, and a name that could mean anything is refused with [ErrDriver]:
// [RegisterDriver] or [WithDialect] says what it is.
package sqlxhelper
