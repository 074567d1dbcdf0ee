// Package sqllease keeps the leases of worker numbers in a SQL database: SQLite,
// PostgreSQL, MySQL or MariaDB. It uses the *sql.DB that a program has already.
//
//	store, err := sqllease.New(db, sqlstore.Config{Dialect: sqlstore.PostgreSQL})
//	…
//	err = store.CreateTables(ctx) // or run store.Statements() as a migration
//
// # What is guaranteed
//
// A [Store] keeps the contract of [lease.Store]. In particular:
//
//   - Each operation is one short transaction of its own, on a connection that it
//     borrows from the pool and gives back. It cannot be put into a transaction of the
//     caller's: a rollback of that would take back a reservation after IDs were issued
//     under it.
//   - A row is changed only if it still is what was read: the UPDATE compares every
//     column. So no isolation level, and no statement sent twice, can lose a write.
//   - What is acknowledged is on disk, as far as one connection can see to that. The
//     Store raises synchronous_commit on PostgreSQL and synchronous on SQLite, for the
//     operation alone. What was changed on the connection is set back. If that fails
//     the connection is closed and not given back.
//   - A call gives up when ctx ends, even if the driver hangs, as lib/pq does for a
//     server that does not answer. A call that hangs keeps its connection. After 16
//     such calls no other is tried until one of them ends. If the outcome of a COMMIT
//     is not known, the error is none of the four that mean "not done".
//   - A claim whose COMMIT fails looks for its row, as long as ctx allows. If the row
//     is there the claim has succeeded. If that cannot be found out, as when ctx has
//     ended, the row may be reserved for a window, for nobody.
//
// # Under which conditions
//
//   - The database keeps what it has acknowledged. With fsync=off on PostgreSQL, or
//     innodb_flush_log_at_trx_commit other than 1 on MySQL, a crash of the machine
//     loses writes. The Store logs a warning. An asynchronous replica that is promoted,
//     or a backup that is restored, has lost writes too: turn on the loss guard if that
//     can happen. A synchronous standby of PostgreSQL has lost none. If the driver hides
//     warnings, as lib/pq does, and the user is no member of pg_monitor, it has to answer
//     within 100 ms.
//   - The tables are changed by this package only, and rows are never deleted.
//   - The handle leads to the primary. A server that says it is read-only is refused
//     with [sqlstore.ErrReadOnly]. A replica that does not say so cannot be told from a primary.
//   - On SQLite: the database is a file on a local disk, with a journal. A database in
//     memory, or with journal_mode OFF or MEMORY, is refused. On Linux a file on a
//     network file system is refused too, and one on FUSE unless sqlstore.Config.AllowFUSE is
//     set. So is a file with several hard links and, on Linux, one that is itself
//     mounted: SQLite keeps a log beside each path of a file, and processes with two
//     logs would hold the same number. Mount the folder. All processes are on one
//     machine. Its clock is the store's clock: SQLite has no other. On macOS, PRAGMA
//     fullfsync is the program's choice. Do not use cache=shared. The connections of a
//     process then share one setting of synchronous, so another may lower it in the
//     middle of an operation. A Store cannot see that.
//   - On SQLite: the file stays where it is, and nobody puts back an older copy of it.
//     Each operation compares the file with that of the first one, and its write-ahead
//     log with the one that the connection had before. If one was removed or replaced
//     the lease is lost, and [sqlstore.ErrReplaced] is the error from then on: restart the
//     process. What was reserved is in the file itself, so that a log that is removed
//     takes nothing with it, unless a long read was in the way. A copy that is written
//     into the file itself takes the row back to a nonce that the holder does not know.
//     The next renewal then loses the row. In both cases what the copy has forgotten
//     may repeat: at most what was reserved up to the next renewal, a window.
//   - Three such changes go unnoticed. The file or its log is replaced after the pool
//     has opened it and before the first operation on the connection. A symbolic link
//     is changed while no new connection is opened. A process is started on the old
//     copy when no other lives.
//
// # The pool
//
// An operation needs one connection for some round trips, a few times a minute. It
// waits for one no longer than ctx allows. A pool of one connection works, and a Store
// warns of it. Every transaction of the program that is longer than the reserved window
// stops the IDs. Give the Store a pool of its own. On SQLite give it a file of its own
// too: SQLite has one writer at a time in each file.
package sqllease
