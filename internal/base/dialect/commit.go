package dialect

import "strings"

// NotCommitted reports whether an error of a COMMIT that was sent says that the
// transaction is rolled back. False is no proof of the contrary. The connection may
// have broken, or was closed because ctx ended. Or the server said something that it
// can also say after the commit record was written.
func NotCommitted(err error) bool {
	for e := range Tree(err) {
		// pgx and lib/pq have errors of their own for a COMMIT that the server answered
		// with ROLLBACK. A statement before it had failed and nobody looked. Their
		// values are out of reach, and their texts are as old as the drivers. If such a
		// text changes one day the outcome becomes unknown, which is the careful error.
		switch e.Error() {
		case "commit unexpectedly resulted in rollback",
			"pq: could not complete operation in a failed transaction",
			"pq: Could not complete operation in a failed transaction":
			return true
		}
		if Of(e).notCommitted() {
			return true
		}
	}
	return false
}

// NotStored reports whether an error of a statement outside of a transaction says that
// nothing of it is stored. False is no proof of the contrary: the error may be of a COMMIT
// that the statement implies, of the connection, or of a proxy.
func NotStored(err error) bool {
	for e := range Tree(err) {
		switch a := Of(e); {
		case a == (Answer{}):
		case a.notCommitted(), strings.HasPrefix(a.State, "53"): // insufficient resources, in a statement
			return true
		case a.Number >= 2000 && a.Number < 3000 || a.Number >= 8000: // of clients in proxies; of TiDB and proxies
		case a.Number != 0:
			switch a.Number {
			case tooGeneral, notPrepared, serverShutdown, errorDuringCommit, queryInterrupted, connectionKilled,
				1158, 1159, 1160, 1161: // reading and writing packets
			default:
				return true
			}
		}
	}
	return false
}

// LostAtCommit reports whether a COMMIT says that the transaction has lost against one of
// another node, and is rolled back. Galera and the group replication find that out when
// they commit. It may succeed if all of it is run again.
//
// A Galera node that loses its cluster during a COMMIT says 1180 instead. The others may
// then have the transaction or not.
func LostAtCommit(err error) bool {
	return said(err, func(a Answer) bool { return a.Number == deadlock || a.lost() })
}

// lost reports whether MySQL's group replication or TiDB has rolled a transaction back for
// the sake of another one.
func (a Answer) lost() bool {
	switch a.Number {
	case transactionRollback, tidbForUpdateConflict, tidbCommitFailed, tidbSchemaChanged, tidbWriteConflict:
		return true
	}
	return false
}

// notCommitted reports whether a, said to a COMMIT, means that it was rolled back.
func (a Answer) notCommitted() bool {
	switch {
	case a.State != "":
		return a.postgresRolledBack()
	case a.Number != 0:
		// MySQL writes the binary log before the engine commits, and has errors from in
		// between. So nothing can be said about errors in general, such as 1180 (error
		// during commit), 1317 (interrupted), 1053 and 1927 (shutdown, killed). Nor about
		// 3100 (a hook has failed), which a member of a MySQL group says when it loses the
		// others: these may have got the transaction, and committed it. These are said
		// after a rollback:
		//   - deadlock, which is how Galera reports a lost certification too;
		//   - a conflict in the group replication, or in TiDB;
		//   - lock wait timeout, on the global read lock of a backup;
		//   - a record that has changed;
		//   - a server or a transaction that is read only.
		switch a.Number {
		case deadlock, lockWaitTimeout, recordHasChanged,
			serverReadOnly, transactionReadOnly, readOnlyMode:
			return true
		}
		return a.lost()
	default:
		// A COMMIT that is busy or violates a deferred constraint leaves the
		// transaction open. As database/sql sends no ROLLBACK after it,
		// mattn/go-sqlite3 and modernc.org/sqlite do. Older versions of the latter
		// leave their connection inside the transaction. That one is not committed
		// later either: database/sql sends COMMIT only after a BEGIN, and BEGIN fails
		// there. A full disk is found before the commit point. Code 1 is "no
		// transaction is active". An I/O error is not here: it may have hit the very
		// write that commits.
		switch a.primary() {
		case sqliteError, sqliteBusy, sqliteFull, sqliteConstraint:
			return true
		}
		return a.Code == sqliteLockedShared
	}
}

// postgresRolledBack is notCommitted for SQLSTATEs. An ERROR of PostgreSQL at COMMIT
// comes from before the commit record. What can be said after it is that the connection
// or the server ends (FATAL, PANIC). The classes for that are left out, though some of
// them have other uses. So is 40003 in the class of rollbacks, "statement completion
// unknown", which CockroachDB means literally.
func (a Answer) postgresRolledBack() bool {
	if len(a.State) != 5 || a.State == "40003" {
		return false
	}
	switch a.State[:2] {
	case "08", // connection exception, also of poolers whose server is gone
		"53", // insufficient resources: no space for the log is a PANIC
		"58", // system error, of poolers as well
		"XX": // internal error
		return false
	}
	// 57P01 to 57P05: the server shuts down, has crashed, does not accept connections
	// yet, or has ended an idle session. Those who wait for a synchronous standby are
	// told the first too, when all is committed here.
	return !strings.HasPrefix(a.State, "57P")
}
