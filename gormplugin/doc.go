// Package gormplugin gives GORM models their keys before the insert, from any
// [Source] of 64-bit keys.
//
//	err := db.Use(gormplugin.New(gen)) // gen: a core.Generator, or anything with its Next method
//
//	type Order struct {
//		gormplugin.Model        // or types.Model, or any field ID types.Snowflake
//		Number string           `gorm:"uniqueIndex"`
//		Items  []Item
//	}
//
// # What is guaranteed
//
//   - Every row that GORM creates for a model gets a key if it has none: structs,
//     slices, arrays and maps, in batches, by Save, FirstOrCreate, Updates and
//     Association, generics included, and every association down the graph. A
//     key that is set is kept. A struct to which several rows of the graph point is
//     one row with one key, and is saved once, with its associations.
//   - All missing keys of one statement come from the source before the statement
//     takes a connection of its own, in one call of Fill where the source has
//     one. They are assigned all or none. If the source fails, or ctx ends, the
//     statement and the associations that it would have saved run no SQL, no row
//     of it has a new key, and the error wraps that of the source. For an
//     association this rolls back the statement that it belongs to, whose rows
//     may keep their keys in memory.
//   - After a create that returns no error, the key in memory is that of the
//     stored row, or zero. This holds for upserts too: ON CONFLICT DO NOTHING and
//     DO UPDATE, with a condition or without, INSERT IGNORE, the DO NOTHING with
//     which GORM saves associations, and maps. Children are stored under the row
//     that is really there. It is zero if the row was not inserted and the row
//     that it met cannot be told; if rows of associations need the key, that is
//     [ErrUnresolved] instead, and the transaction is rolled back.
//   - After a failure the keys stay in memory, so that a retry writes the same
//     rows.
//
// [Plugin.Assign] does the first two for a whole graph before any SQL, foreign keys
// included, for those who insert table by table.
//
// # Which columns
//
// The prioritized primary key of a model, which is the field ID or the only
// primary key, if its type is types.Snowflake or a pointer to it. Of a composite
// key (TenantID, ID) that is ID alone. Further columns, and keys of type int64,
// uint64, string, types.NullSnowflake and sql.Null[types.Snowflake], by tag:
//
//	Public types.Snowflake `gorm:"snowflake;uniqueIndex;<-:create"`
//
// A string receives the decimal form. A nullable column without the tag is a
// reference that may be absent, and is never filled; with it, NULL is filled and
// a present zero is kept. Without <-:create an upsert with UpdateAll writes the
// new value of such a column over the stored one. Add autoIncrement:false to an
// int64 or uint64 key, or the database counts as well (see below).
//
// Never filled: a column that is a foreign key of a relation, that the database
// fills (default:, autoIncrement), that GORM does not create (->, <-:update), or
// that has the tag snowflake:-. GORM learns that the key of a has-one child is a
// foreign key when it parses the parent. A program that creates such children
// first needs snowflake:- on them, and so does a child of a relation that is
// polymorphic or declared in an embedded struct.
//
// Select without the key still writes the key. Omit of the key is obeyed, and
// leaves it zero in memory. Other tagged columns are filled only if they are
// written.
//
// A primary key of a type of your own, such as type OrderID types.Snowflake, is a
// [ModelError] until its tag says who gives it. To Go and to GORM it is any int64, which
// the database may count. Say snowflake;autoIncrement:false for keys of the plugin,
// autoIncrement for those of the database, snowflake:- for your own.
//
// A foreign key that cannot hold 64 bits is a [ModelError] at first use, and so
// is a string that refers to a number: GORM would silently truncate the key in
// the first case, and store a single character in the second.
//
// # Under which conditions
//
//   - The plugin is installed; see [Installed]. Without it GORM stores the key as
//     it is, zero. GORM's own create callbacks are there, and nobody removes them
//     later.
//   - The source never gives a key twice, and needs no connection of the pool
//     that it serves. A nested create holds one while it asks: with
//     SetMaxOpenConns(1) such a source waits until ctx ends.
//   - For upserts, the plugin may read the catalog of the database: which unique
//     keys a table has, and of which type their columns are. It reads that once per
//     table, when an upsert first meets a stored row. Only columns that the plugin
//     fills are read back: of (TenantID, ID), the TenantID stays as it was sent.
//   - A BEFORE INSERT trigger does not change what the row is unique by.
//
// What cannot be told apart is unresolved, never guessed. A row that conflicts with two
// stored rows, on different unique keys, is resolved to neither. Nothing is resolved
// behind a conflict target that is an expression. The same holds for a table with a
// unique index on an expression, unless the statement names other columns as its target.
// MySQL does not go by the target. A stored row is found by what its column made of
// the value: a time without its last digits, the beginning of a text.
//
// Looking up what an upsert met takes RETURNING in the same statement, for DO
// UPDATE without condition on PostgreSQL, SQLite and MariaDB; else one or more
// SELECTs after it, on the same connection, for the rows that RowsAffected or the
// target leave in doubt. On MySQL the rows that were met are read FOR UPDATE (LOCK IN
// SHARE MODE after INSERT IGNORE), because a transaction may not see what it
// collided with; the insert has locked them already.
//
// It is tested with gorm 1.30.2 and 1.31.2 on SQLite, PostgreSQL and MariaDB, the
// latter also without RETURNING, which stands for MySQL. Older ones of gorm may end
// the program when two goroutines are the first to use models that refer to one
// another. On other dialects the re-read is a plain SELECT after every upsert but one
// on the key.
//
// # The key as index of time
//
// Where the source is a [Layout], as core.Generator is, or [WithLayout] gives one,
// the primary key also tells when a row was created: [CreatedBetween],
// [CreatedBefore] and [CreatedAfter] are conditions for Where, in both APIs, that
// need no other index. [NewerThan] and [OlderThan] compare keys, and [PageAfter]
// and [PageBefore] read page by page:
//
//	db.Where(gormplugin.CreatedBetween(from, to)).Find(&orders)
//	gorm.G[Order](db, gormplugin.PageBefore(last, 50)).Find(ctx)
//
// # Before it hurts
//
// [Check] compares models with the tables that are there: columns that keys do not
// fit, a database that still counts, models that nobody gives a key. It needs
// PostgreSQL 12 or later. AutoMigrate makes the right columns everywhere; on SQLite,
// [UseRowIDs] makes better ones.
//
// # What fails, and how
//
//   - A struct, or an array of structs, passed by value without a key, or to an
//     upsert: gorm.ErrInvalidValue. So does a nil map.
//   - A struct of another type than the model: gorm.ErrInvalidData, where GORM
//     would panic. Nil elements, empty slices and interfaces: GORM's own errors.
//   - DoUpdates of the primary key from the row that is sent, unless the key is the
//     conflict target: [ErrKeyRewrite]. References to the stored row would break.
//   - A source that gives a key below one: [ErrBadKey].
//
// # What the plugin cannot do
//
//   - It sees no raw SQL, no Exec, and no Table("orders").Create(map) without a
//     Model: there is no model to tell the key.
//   - Save of a new struct with a preset key and children runs an UPDATE first and
//     saves the children before the parent: a foreign key error, on every
//     database. Use Clauses(clause.OnConflict{UpdateAll: true}).Create, or save
//     with Omit(clause.Associations).
//   - A reference that may be absent, such as the ParentID of a root, is a
//     types.NullSnowflake. A plain types.Snowflake is stored as 0. A pointer works as
//     well, but GORM does not empty a pointer to a Scanner, of which *types.Snowflake is
//     one: after Association.Delete it stays, and the next Save writes it back. And
//     Preload panics at a nil one in a key of several columns.
//   - Where NULL is read into a struct that holds a reference already, GORM keeps the old
//     one. It does so to every Scanner, types.NullSnowflake and sql.NullInt64 included.
//     Read into a new struct.
//   - A join table with a key of its own needs a unique index on its two foreign
//     keys, or appending an association again adds a row.
//   - Each row binds one parameter more than with a counting database, and a
//     statement takes 32,766 of them on SQLite and 65,535 elsewhere: set
//     CreateBatchSize.
//   - One pointer twice in the slice that Create is given is a duplicate key, and
//     one unique value twice in an upsert is an error on PostgreSQL. Cyclic graphs
//     fail in GORM itself, as do nil elements in a slice of children, and generic
//     types in many2many.
//   - If an upsert has found two structs of one graph to be the same row, they have
//     the same key. When that is rolled back and tried again, GORM takes them for one
//     and saves only the first, without the children of the second.
//   - CreateInBatches and CreateBatchSize panic in GORM for a pointer to an array.
//   - Keys that are set raise the counter of an AUTO_INCREMENT or AUTOINCREMENT
//     column: let a table get its keys from one side only. GORM takes an int64 key
//     for counted and reads it back by RETURNING, which breaks a create from a
//     slice of maps.
//   - Negative keys are stored, but types.Snowflake does not read them back.
//   - DryRun and ToSQL take keys and assign them.
//   - gorm.io/sharding decodes keys by a layout of its own and wants int64.
package gormplugin
