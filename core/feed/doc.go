// Package feed reads the rows of a table in the order of their keys, as they come, and misses none.
//
//	orders, err := feed.New(feed.Config{DB: db, Dialect: feed.PostgreSQL, Table: "public.orders"})
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
//   - After a restore, of which the fence and the table orders_feed_readers are a part, the first Feed to run
//     is one that was running before, or the one with the greatest position. One that has just started, and
//     has read nothing of what is lost, raises the fence, and hides from others that have just started that it
//     was lower.
//   - The database keeps what it has committed. With synchronous_commit off, or
//     innodb_flush_log_at_trx_commit other than 1, a row may be read that a crash undoes.
//   - A SELECT of your own with id < horizon begins after Horizon has returned, and not in a
//     transaction that has read before, whose snapshot may be older.
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
