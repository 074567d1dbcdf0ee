// Package feed reads the rows of a table in the order of their keys, as they come, and misses none.
// It needs the database and the [core.Layout] of the keys, and no generator.
//
//	orders, err := feed.New(feed.Config{DB: db, Dialect: feed.PostgreSQL, Table: "public.orders", Reader: "mail"})
//	…
//	err = orders.Install(ctx) // once, or orders.Statements() in a migration
//	…
//	keys, err := orders.Keys(ctx, last, 1000) // again and again
//
// A program that polls id > last misses rows, because a row becomes visible when its transaction
// commits, and rows with larger keys may be visible by then. How long that takes is not bounded by the
// age of the oldest transaction either: a program may have drawn the key before it began.
//
// # Why no row is missed
//
// The database has a fence, a key below which a trigger refuses new rows. [Feed.Horizon] moves it up to
// the time of now less Config.Slack, and then finds out when all transactions have ended that may not
// have seen it there. From then on no row with a smaller key can come, and those that came are visible.
// The comments of the types postgreSQL, innoDB and sqlite have the proof for each database. It needs no
// clock: a wrong one makes the lag longer, or the database refuse rows.
//
// An INSERT of a key that is older than Config.Slack therefore may fail, by an error of the database
// that says so; draw a new key and run the transaction again. A writer may hold its transaction open after
// the INSERT for as long as it likes: it delays the feed, and blocks no other writer.
//
// # Conditions
//
//   - Keys of the table are never changed or inserted a second time after a DELETE.
//   - Rows come by INSERT, COPY or LOAD DATA. ATTACH PARTITION, EXCHANGE PARTITION, IMPORT TABLESPACE
//     and ON UPDATE CASCADE pass by triggers.
//   - Nobody removes the fence and puts it back between two calls of Horizon; while it is missing, Horizon
//     returns [ErrUnknownHorizon].
//   - The database keeps what it has committed. With synchronous_commit off, or
//     innodb_flush_log_at_trx_commit other than 1, a row may be read that a crash undoes.
//   - A SELECT of your own with id < horizon begins after Horizon has returned, and not in a
//     transaction that has read before, whose snapshot may be older.
//
// # After a restore
//
// The database notes for each reader how far it has read, after all rows up to there were committed and
// before the reader gets them. A reader that comes with a position beyond its note has read rows that the
// database has lost, by a restore, also one during which no program ran, or by a failover to a standby that
// lagged. It gets [ErrWentBack], and so does every reader from then on, until [Feed.Acknowledge]. Which reader
// comes first does not matter.
//
// A reader whose position is not beyond its note has lost nothing: the database has all rows that it has
// read up to its position, and it reads on from there. It gets the error once another reader, or a Feed that
// was running all the time, has noticed. Not noticed are:
//
//   - Rows that a reader has processed beyond the position that it passes. That is so if it passes 0, if it was
//     killed before it stored the position, and if it stores the position in the database that goes back.
//   - Rows that are lost while orders_feed and orders_feed_readers are not, or are of another time, as when
//     orders alone is restored.
//   - What a reader has read that shares its name with another, which has come before it.
//   - Rows of transactions that were open when somebody acknowledged an earlier restore, for a reader that had
//     been given nothing since when the backup was made.
//
// A reader that is new since the backup has no note. If other readers have come before it, or the backup
// has no feed, it alone gets the error, which names it.
//
// # Databases
//
//   - PostgreSQL 14 or newer. The user needs USAGE, SELECT and UPDATE on the sequence orders_feed, and
//     SELECT, INSERT, UPDATE and DELETE on the table orders_feed_readers; writers need nothing. Transactions of all databases of the server count, and prepared ones. A standby
//     serves as Config.Replica.
//   - MySQL 8.0.29 and MariaDB 10.6 or newer, with InnoDB and autocommit, on the primary of a setup with a
//     single one: Galera, other multi-primary clusters and replicas, also stopped ones, give
//     [ErrUnknownHorizon]. The user needs PROCESS and REPLICATION CLIENT, which is REPLICA MONITOR on
//     MariaDB, and TRIGGER on the table. A prepared transaction of XA whose connection is gone holds the
//     horizon until it ends. So does an open SERIALIZABLE one, and with a binary log
//     any other, unless binlog_format is ROW. A call of Horizon takes 0.1 s if the one before was just
//     now, and Feeds that call it at once take turns.
//   - SQLite 3.35 or newer.
//
// Databases that only speak one of these protocols are not supported.
//
// This package is experimental.
package feed
