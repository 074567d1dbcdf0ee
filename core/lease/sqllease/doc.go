// Package sqllease keeps the leases of worker numbers in a SQL database, on the *sql.DB that a
// program has already: SQLite, PostgreSQL, MySQL or MariaDB.
//
//	store, err := sqllease.New(db, sqlstore.Config{Dialect: sqlstore.PostgreSQL})
//	…
//	err = store.CreateTables(ctx) // or run store.Statements() as a migration
//
// # What is guaranteed
//
// A [Store] keeps the contract of [leasestore.Store]. In particular:
//
//   - Each read and each write is a short transaction or a single statement of its own, on a
//     connection that is borrowed from the pool and given back. It cannot be part of a caller's
//     transaction, whose rollback would take back a reservation after IDs were issued under it.
//   - A row is changed only if it is still what was read: the UPDATE compares every column and
//     the layout. No isolation level, and no statement sent twice, can therefore lose a write.
//   - What is acknowledged is on disk, as far as one connection can see to that. The Store
//     raises synchronous_commit on PostgreSQL and synchronous on SQLite for its own writes.
//     What was changed on a connection is set back; if that fails, the connection is closed.
//   - A call gives up when ctx ends, even if the driver hangs, as lib/pq does when a server does
//     not answer. A call that hangs keeps its connection, and after 16 of them no other is tried
//     until one ends. If the outcome of a write is unknown, the error is none of the four that
//     mean "not done".
//   - A claim records its holder in its own write. If it may not, or the table for that is missing
//     or locked, it goes on without, after half of the time that ctx leaves in the last case.
//   - A claim whose write has an unknown outcome asks again, as long as ctx allows, and succeeds
//     if the row proves to be its own. Otherwise the row may stay reserved for a window without
//     a holder.
//
// # Under which conditions
//
//   - The database keeps what it has acknowledged. With fsync=off on PostgreSQL, or
//     innodb_flush_log_at_trx_commit other than 1 on MySQL, a crash of the machine loses writes,
//     and the Store logs a warning. A promoted asynchronous replica and a restored backup have
//     lost writes too: turn on the loss guard if that can happen. A synchronous standby of
//     PostgreSQL has lost none; if the driver hides warnings, as lib/pq does, and the user is no
//     member of pg_monitor, it has to answer within 100 ms.
//   - Only this package changes the tables, and rows are never deleted.
//   - The handle leads to the primary. A server that says it is read-only is refused with
//     [sqlstore.ErrReadOnly]. A replica that does not say so cannot be told from a primary.
//   - A SQLite database is a file with a journal on a local disk, and all processes are on one
//     machine, whose clock is the store's clock. A database in memory, or with journal_mode OFF
//     or MEMORY, is refused, and on Linux also a file on a network file system, or on FUSE unless
//     Config.AllowFUSE is set. Refused is a file with several hard links or, on Linux, one that
//     is itself a mount: SQLite keeps a log beside each path of a file, and processes with two
//     logs would hold the same number. Mount the folder. On macOS, PRAGMA fullfsync is the
//     program's choice. Do not use cache=shared, with which the connections of a process share
//     one setting of synchronous, so that another may lower it in the middle of a write.
//   - A SQLite file stays where it is, and no older copy of it is put back. Each operation
//     compares the file with that of the first one, and its write-ahead log with the one that the
//     connection had before. If one was removed or replaced, the lease is lost, and the error is
//     [sqlstore.ErrReplaced] from then on: restart the process. What was reserved is in the file
//     itself, unless a long read was in the way, so that a removed log takes nothing with it. A
//     copy that is written into the file itself takes the row back to a nonce that the holder
//     does not know, and the next renewal loses the row. In both cases, IDs may repeat as far as
//     the copy has forgotten what was reserved: up to the next renewal, a window at most.
//   - Three such changes go unnoticed: the file or its log is replaced after the pool has opened
//     it and before the first operation on the connection; a symbolic link is changed while no
//     new connection is opened; a process is started on the old copy when no other lives.
//
// # The pool
//
// An operation needs one connection for a few round trips, a few times a minute, and waits for
// one no longer than ctx allows. With a pool of one connection, every transaction of the program
// that is longer than the reserved window stops the IDs, and the Store logs a warning. Give the
// Store a pool of its own, and on SQLite a file of its own too, since SQLite has one writer at a
// time in each file.
//
// This package is stable.
package sqllease
