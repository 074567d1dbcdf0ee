// Package sqlrow runs short transactions on the rows of leases, segments and counters. Because a
// caller relies on what it was told about such a row even after a crash, these transactions are not
// part of the program's own and are more durable.
//
//	first, err := sqlrow.Do(ctx, rows, func(t *sqlrow.Tx) (first int64, err error) {
//		err = t.Returning(ctx, []any{&first}, "UPDATE … RETURNING …", count)
//		return first, err
//	})
//
// # Guarantees of Do
//
//   - Each transaction runs on a connection that it borrows from the pool, so no rollback of the
//     program undoes it.
//   - The result is returned only after COMMIT has returned nil before the end of ctx. A row that
//     was read is not yet stored: PostgreSQL sends the row of RETURNING before it commits.
//   - A transaction begins anew after a deadlock, a busy lock, a broken connection or
//     [ErrConflict], but never after its COMMIT was sent.
//   - [ErrCommit] and [wait.ErrNoAnswer] mean that the outcome is unknown. After any other error
//     nothing is stored, except a CREATE TABLE on MySQL, which commits at once.
//   - What is acknowledged is on disk, as far as one connection can ensure that: synchronous_commit
//     is raised to on (PostgreSQL), synchronous to EXTRA (SQLite). A synchronous standby of
//     PostgreSQL has it too, even if the wait for it is cancelled, see package standby.
//   - If ctx has a deadline, a wait for a lock ends on the server too, on MySQL up to a second
//     later. On PostgreSQL a statement and an idle transaction also end, so that a process that was
//     stopped keeps no lock.
//   - Settings of the connection are restored. If that fails, or the state of the connection is in
//     doubt, it is closed instead of given back.
//   - A call ends [wait.Grace] after ctx, even if the driver hangs. While 16 calls hang, no further
//     one is tried.
//   - No error contains a password.
//
// # Conditions
//
//   - The database keeps what it has acknowledged. A warning says if the server may not: fsync on
//     PostgreSQL, innodb_flush_log_at_trx_commit on MySQL.
//   - The server locks the rows that it updates. Dolt does not, and is [ErrDolt].
//   - The pool leads to the primary. A server that says it is read-only is [ErrReadOnly].
//   - A SQLite database is a file with a journal, on a file system of this host alone, with a single
//     path: its folder may be mounted several times, the file itself may not. Any other one is
//     [ErrNotDurable]. Once the file, or the write-ahead log that a connection has open, was
//     replaced, every transaction is [ErrReplaced]. What was committed is then in the file, unless a
//     reader of an older state has kept it in the log. A transaction in WAL mode has the folder of
//     the file locked (flock), where the system has such locks, and waits while another program has.
//   - A body uses the context of Do and nothing of the pool, because with a single connection it
//     would wait for itself. It may run several times. It writes only to its own variables, because
//     Do may return before it ends.
package sqlrow
