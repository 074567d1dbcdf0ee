// Package sqlrow runs short transactions of its own on a few rows: leases, segments and
// counters. What a caller was told about such a row must survive a crash. So these
// transactions are not the program's, and are more durable than the program's.
//
//	first, err := sqlrow.Do(ctx, rows, func(t *sqlrow.Tx) (first int64, err error) {
//		err = t.Returning(ctx, []any{&first}, "UPDATE … RETURNING …", count)
//		return first, err
//	})
//
// # What Do guarantees
//
//   - Each transaction has a connection of its own. It is borrowed from the pool and
//     given back. Nothing that the program rolls back can take it back.
//   - The result is returned only after COMMIT has returned nil and ctx had not ended.
//     PostgreSQL sends the row of RETURNING before it commits, so a row that was read is
//     not yet a row that is stored.
//   - A transaction begins anew only while its COMMIT has not been sent. It does so after
//     a deadlock, a busy lock, a broken connection or [ErrConflict].
//   - [ErrCommit] and [wait.ErrNoAnswer] mean that the outcome is unknown. After any
//     other error nothing is stored. (MySQL commits a CREATE TABLE at once.)
//   - What is acknowledged is on disk, as far as one connection can see to that. On
//     PostgreSQL synchronous_commit is raised to on, on SQLite synchronous to EXTRA.
//     PostgreSQL's synchronous standby has it too, even if somebody cancels the wait for
//     it: see package standby.
//   - With a deadline, a wait for a lock ends on the server too, on MySQL up to a second
//     later. On PostgreSQL a statement and an idle transaction end there as well, so a
//     process that was stopped keeps no lock.
//   - All that was changed on the connection is set back. If that fails, or the
//     connection is in doubt, it is closed and not given back.
//   - A call ends [wait.Grace] after ctx, even if the driver hangs. If 16 calls hang, no
//     other is tried until one of them ends.
//   - No error holds a password.
//
// # Under which conditions
//
//   - The database keeps what it has acknowledged. A server that says it may not is
//     warned of: fsync on PostgreSQL, innodb_flush_log_at_trx_commit on MySQL.
//   - The server locks the rows that it updates. Dolt does not, and is [ErrDolt].
//   - The pool leads to the primary. A server that says it is read-only is [ErrReadOnly].
//   - A SQLite database is a file with a journal, on a file system of this host alone.
//     Its folder may be mounted under several paths; the file itself must have one.
//     Otherwise it is [ErrNotDurable]. Once the file at its path is another one, or its
//     write-ahead log is not the one that a connection has open, every transaction is
//     [ErrReplaced]. What was committed is then in the file, unless a reader of an older
//     state has kept it in the log.
//   - A body uses the context of Do, and nothing of the pool: with one connection it
//     would wait for itself. It may run several times. It writes only to its own
//     variables, since Do may have left it behind.
package sqlrow
