// Package gormplugin assigns keys to GORM models before the insert. The keys come from
// any [Source] of 64-bit keys.
//
//	err := db.Use(gormplugin.New(gen)) // gen: a core.Generator, or anything with its Next method
//
//	type Order struct {
//		gormplugin.Model        // or types.Model, or any field ID types.Snowflake
//		Number string           `gorm:"uniqueIndex"`
//		Items  []Item
//	}
//
// The examples below show each way to create. docs/gorm.md has recipes, and under
// "Limits" what fails how.
//
// # What is guaranteed
//
//   - Every row that GORM creates for a model gets a key if it has none: structs,
//     slices, arrays and maps, associations, batches, Save, FirstOrCreate, Updates and
//     generics. A key that is set is kept. Several pointers to one struct are one row.
//   - No row is stored with the key 0 or NULL: [ErrNoKey]. That covers keys that Omit
//     leaves out, and keys that are foreign keys to no row. It does not cover SQL in maps,
//     Updates of a key, Table without Model, and keys with default:, -> or snowflake:-.
//   - A key or foreign key that types.Snowflake would not read back, such as -5, is an
//     error that matches types.ErrRange and names the row, before the row's statement.
//   - All missing keys of a statement come from the source in one call of Fill, where
//     the source has one, before the statement takes a connection. All or none.
//   - If the source fails or ctx ends, the statement and its associations run no SQL and
//     none of its rows gets a key. The error wraps that of the source. For an
//     association it rolls back the outer statement, whose rows may keep their keys.
//   - After a create that returns no error, the key in memory is that of the stored row,
//     or zero, in every form of upsert. Children refer to the stored row.
//   - If the conflicting row cannot be identified, the key becomes zero. If associations
//     need it, the call fails with [ErrUnresolved] and is rolled back.
//   - After a failure the keys stay in memory, so a retry writes the same rows.
//
// # Under which conditions
//
//   - The plugin is installed, and nobody removes its callbacks or GORM's own create
//     callbacks. See [Installed]. Without it GORM stores the key zero.
//   - The source never gives a key twice. It needs no connection of the pool that it
//     serves, because a nested create asks while it holds one.
//   - For upserts, the plugin may read the unique keys and column types of a table from
//     the catalog. It does so when an upsert first meets a stored row of a table, and
//     once more for a statement with a row that is not found.
//     With [WithUnnest] it reads column types for creates of many rows.
//   - A BEFORE INSERT trigger does not change the values of unique keys.
//
// # Which columns
//
// [Plugin.Assign] assigns keys and foreign keys to a whole graph before any SQL.
//
// The plugin fills the prioritized primary key, if its type is types.Snowflake or a
// pointer to it. That is the field ID, or the only primary key. Of a composite key
// (TenantID, ID) it is ID alone. It fills other columns, and keys of type int64, uint64,
// string, types.NullSnowflake and sql.Null[types.Snowflake], if they have the tag:
//
//	Public types.Snowflake `gorm:"snowflake;uniqueIndex;<-:create"`
//
// A string receives the decimal form. A nullable column with the tag is filled if it is
// NULL; a present zero is kept, except in a primary key. Without <-:create, an upsert with UpdateAll overwrites
// the stored value of such a column. Add autoIncrement:false to an int64 or uint64 key,
// or the database counts as well.
//
// The plugin never fills
//   - a foreign key of a relation;
//   - a column that the database fills (default:);
//   - a column that GORM does not create (->, <-:update);
//   - a column with the tag snowflake:-.
//
// GORM learns that the key of a has-one child is a foreign key when it parses the
// parent. Tag that key snowflake:- if the program creates such children first, or if the
// relation is polymorphic or declared in an embedded struct.
//
// A key of type types.Snowflake or with the tag snowflake is a [ModelError] with
// autoIncrement beside it, because the database would give the key, or none. Add
// snowflake:- if it should.
//
// Select without the key still writes the key. Omit of the key is [ErrNoKey]. Other tagged columns are filled only if they are written.
//
// A primary key of your own type, such as type OrderID types.Snowflake, is a
// [ModelError] until its tag says who gives the key. To GORM it is an int64 that the
// database may count. Use snowflake;autoIncrement:false for keys of the plugin,
// autoIncrement for keys of the database, and snowflake:- for your own.
//
// A foreign key that cannot hold the key is a [ModelError] at first use. It has fewer
// than 64 bits, or is a string that refers to a number.
//
// # How upserts are resolved
//
// DO UPDATE without condition uses RETURNING on PostgreSQL and SQLite. Other upserts run
// SELECTs on the same connection, for the rows that RowsAffected and the target leave in
// doubt. As a rule one finds all rows that are stored in a unique key. On MySQL and MariaDB
// these SELECTs lock the rows, as the insert has done.
//
// RowsAffected is what it is without the plugin. GORM counts the rows that RETURNING gives,
// and MariaDB counts otherwise. There the plugin uses RETURNING only for associations, of
// which callers do not see the count, and where the statement returns rows in any case.
//
// A stored row is found by what its column stores of the value, such as a time without
// its last digits. Only the columns that the plugin fills are read back, and those of
// the unique keys if rows are many.
//
// The plugin never guesses. These rows are not resolved, unless RETURNING tells:
//   - A row that conflicts with two stored rows, on different unique keys.
//   - A row behind a conflict target that is an expression.
//   - A row in a table with a unique index on an expression, or with an exclusion
//     constraint, unless the statement names other columns as its target. MySQL ignores
//     the target.
//   - A row with a unique value that its column compares otherwise than it stores it, such
//     as a SET of MySQL.
//
// [UnresolvedError] has the reason.
//
// # The key as index of time
//
// If the source is a [Layout], as core.Generator is, or [WithLayout] gives one, the key
// tells when a row was created. [CreatedBetween], [CreatedBefore] and [CreatedAfter] are
// conditions for Where in both APIs, and need no other index. [NewerThan] and
// [OlderThan] compare keys. [PageAfter] and [PageBefore] read page by page:
//
//	db.Where(gormplugin.CreatedBetween(from, to)).Find(&orders)
//	gorm.G[Order](db, gormplugin.PageBefore(last, 50)).Find(ctx)
//
// # Checking the schema
//
// Package schemacheck checks stored tables. On SQLite, [UseRowIDs] makes faster tables.
package gormplugin
