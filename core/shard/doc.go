// Package shard says in which of several databases a row is, by its key, and reads them as one. It
// needs the [core.Layout] of the keys, which has ShardBits, and no generator.
//
//	databases, err := shard.Spread(layout, a, b, c, d) // 256 shards, 64 in each *sql.DB
//	…
//	db, err := databases.Of(customer.ID)
//
// A [Map] holds handles of any type: *sql.DB, *sqlx.DB, *gorm.DB, or the names of databases. All rows of
// one shard are in one database, so a transaction on an order, whose lines are on the order's shard, needs
// one database. Nothing here spans databases by a transaction.
//
// [Split] divides rows that have their keys, for one InsertMany in each database, and [ReadPage] merges
// a page of the newest rows of all databases.
//
// # Moving a shard
//
// A Map does not change. [Map.Move] returns another one, which a program puts in the place of the first,
// in an [sync/atomic.Pointer]. Not all processes do so in the same moment, so the databases have to refuse
// writes to a shard that has left them; docs/sharding.md has the procedure. Copies of rows that the Map has
// elsewhere, as there are in the course of a move, are not part of a page.
//
// # What is not promised
//
// A page is read from each database at another moment. A row that was being written then can have a key
// within a page that was read; [github.com/snowkey/snowkey/core/feed] reads each database without missing
// one. A Map that is out of date leads to the rows as the old database has them.
//
// This package is experimental.
package shard
