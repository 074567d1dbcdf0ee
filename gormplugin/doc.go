// Package gormplugin gives GORM models their keys before the insert, from any [Source] of
// 64-bit keys.
//
//	err := db.Use(gormplugin.New(gen)) // gen: a core.Generator, or anything with its Next method
//
//	type Order struct {
//		gormplugin.Model        // or types.Model, or any field ID types.Snowflake
//		Number string           `gorm:"uniqueIndex"`
//		Items  []Item
//	}
//
// [Filled] says which columns get keys, and docs/gorm.md has recipes.
//
// # What is guaranteed
//
//   - Every row that GORM creates for a model gets a key, unless it has one: structs, slices,
//     arrays and maps, associations, batches, Save, FirstOrCreate, Updates and generics. A
//     key that is set is kept. Several pointers to one struct are one row.
//   - After a create that returns no error, the key in memory is the key of the stored row,
//     in every form of upsert too, and children refer to the stored row. If the stored row
//     cannot be identified, the key is zero; if associations need it, the call fails with
//     [ErrUnresolved] and is rolled back.
//   - No row is stored under the key 0 or NULL ([ErrNoKey]), not even if Omit leaves the key
//     out or the key is a foreign key to no row. Exempt are SQL in maps, Updates of a key,
//     Table without Model, and keys with default:, -> or snowflake:-.
//   - A key or foreign key that types.Snowflake would not read back, such as -5, is an error
//     that matches types.ErrRange and names the row, before the row's statement runs. So is
//     the key of a stored row that an upsert meets, after it. An int64 may be below zero.
//   - A statement gets all its missing keys or none, in one call of Fill if the source has
//     one, before it takes a connection. If the source fails or ctx ends, the statement and
//     its associations run no SQL, and the source's error is returned, wrapped. For an
//     association this rolls back the outer statement, whose rows may keep their keys.
//   - The keys stay in memory after a failure, so a retry writes the same rows.
//
// # Under which conditions
//
//   - The plugin is installed, and no one removes its callbacks or GORM's own create
//     callbacks, see [Installed]. Without it GORM stores the key zero.
//   - The source never returns a key twice. It does not need a connection of the pool that it
//     serves, because a nested create asks it while holding one.
//   - The plugin may read the unique keys and column types of a table from the catalog: once
//     for an upsert with a row that is not found by its key or by the very values of the
//     target, and with [WithUnnest] for creates of many rows.
//   - No BEFORE INSERT trigger changes the values of unique keys.
//
// # Shards
//
// If keys name a shard in their low bits, as those of a core.Generator with Layout.ShardBits do,
// a graph follows its root, and no word is needed for it. A new key takes its shard from the
// first of these that there is:
//
//  1. The key in the field of the row that has the tag snowkey:"shard", such as an order's
//     CustomerID, unless it is NULL. If the graph is going to set that field, the row that it
//     will refer to counts: a row that the field belongs to, or else the parent.
//  2. Its parent, the row in whose has-one or has-many it is, at any depth. It is the last
//     parent if there are several, as for the foreign key.
//  3. The row from which it was first reached by a belongs-to or a many-to-many. A join row with
//     a key of its own follows the row that has the association.
//  4. The context, by core.OnShard or core.OnShardOf. Without it, rows are spread evenly.
//
// Rows that follow each other in a circle, as an order and its new customer do by 1 and 3, are on
// one shard: that of a parent of one of them by 2, or else that which 3 and 4 say for the row that
// was reached first.
//
// Keys that are set are kept and followed, whatever their shards are. A field with the tag that
// is 0, a row whose field and parent differ, and a root whose field and context differ, are
// [ErrShard] before any SQL of the statement.
//
// A row follows what is stored. The children of an upsert are on the shard of the stored row. If
// a new row that the tagged field refers to turns out to be stored, or a hook sets the field, the
// row's own key is moved to that shard just before its insert, or the insert is [ErrShard] if its
// parent or the context is on another. Hooks have seen it on the other, and so have rows that it
// belongs to and that were stored before. A map has its own field and the context only, also in
// Association.Append.
//
// # Beyond creates
//
// [InTx] runs a transaction again after a deadlock, and finds out by the keys whether a commit took
// place whose answer was lost.
//
// [Plugin.Assign] sets the keys and foreign keys of a whole graph before any SQL runs. If the
// source has a [Layout], as core.Generator does, the key also tells when its row was created:
// [CreatedBetween], [NewerThan] and their siblings select rows by the primary
// key alone. Package schemacheck compares models with stored tables, and [UseRowIDs] makes
// the tables of SQLite faster.
//
// # Limits
//
//   - The plugin does not see raw SQL, Table without Model, and plain integers in the map of an
//     Updates, such as {"customer_id": -5}.
//   - A struct or an array of structs by value, without a key or in an upsert, and a nil map, are
//     gorm.ErrInvalidValue; a struct of another type than the model, where GORM would panic, is
//     gorm.ErrInvalidData.
//   - One pointer twice in a slice is a duplicate key. One unique value twice in an upsert is an
//     error on PostgreSQL.
//   - Cyclic graphs, nil elements in a slice of children, and generic types in many2many fail in
//     GORM, and CreateInBatches and CreateBatchSize panic there for a pointer to an array.
//   - Two structs of one graph may turn out to be one stored row. Both then have its key. After a
//     rollback and a retry, GORM stores only the children of the first.
//   - GORM takes an int64 key for a counted one, and reads it back by RETURNING, which breaks a
//     create from a slice of maps.
//   - InTx does not see what the function does around GORM, as on tx.Statement.ConnPool.
//   - WithUnnest sends an INSERT that proxies and plugins may not read, such as gorm.io/sharding,
//     which also decodes keys by its own layout and wants int64.
//
// This package is stable.
package gormplugin
