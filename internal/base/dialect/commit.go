package dialect

import "strings"

// NotCommitted reports whether the error of a COMMIT proves that the transaction was rolled back.
// False does not prove the contrary: the connection may have broken, or was closed because a
// context ended, or the server returned an error that it can also return after it has written
// the commit record.
func NotCommitted(err error) bool {
	for e := range Tree(err) {
		// pgx and lib/pq have errors of their own for a COMMIT that the server answered with
		// ROLLBACK, because a statement before it had failed and its error was ignored.
		// They are recognized by their texts, because their values cannot be imported here.
		// Should a text change, the outcome counts as unknown, which is safe.
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

// EndedBefore reports whether the error of a COMMIT is SQLite's that no transaction is active: an
// error has ended it before, as ON CONFLICT ROLLBACK, RAISE(ROLLBACK) and a full disk do, and each
// statement after that was committed by itself.
func EndedBefore(err error) bool {
	return saidIn(err, func(a Answer, e error) bool {
		return a.Code == sqliteError && containsAny(e, "no transaction is active")
	})
}

// NotStored reports whether the error of a statement outside a transaction proves that nothing of
// it was stored. False does not prove the contrary: the error may come from the implied COMMIT,
// from the connection, or from a proxy.
func NotStored(err error) bool {
	for e := range Tree(err) {
		switch a := Of(e); {
		case a == (Answer{}):
		case a.notCommitted(), a.primary() == sqliteError, strings.HasPrefix(a.State, "53"): // insufficient resources, in a statement
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

// notCommitted reports whether a, the answer to a COMMIT, proves that it was rolled back.
func (a Answer) notCommitted() bool {
	switch {
	case a.State != "":
		return a.postgresRolledBack()
	case a.Number != 0:
		// MySQL writes the binary log before the engine commits, and can fail in between.
		// Errors such as 1180 (error during commit), 1317 (interrupted), 1053 and 1927
		// (shutdown, killed) therefore prove nothing. Neither does 3100 (a hook has failed),
		// which a member of a MySQL group returns when it loses the others, although these
		// may have received and committed the transaction. The following are returned only
		// after a rollback:
		//   - deadlock, by which Galera reports a failed certification too;
		//   - a conflict in the group replication, or in TiDB;
		//   - lock wait timeout, on the global read lock of a backup;
		//   - a record that has changed;
		//   - a read-only server or transaction.
		switch a.Number {
		case deadlock, lockWaitTimeout, recordHasChanged,
			serverReadOnly, transactionReadOnly, readOnlyMode:
			return true
		}
		return a.lost()
	default:
		// A COMMIT that is busy or violates a deferred constraint leaves the transaction
		// open. database/sql sends no ROLLBACK after it, but mattn/go-sqlite3 and
		// modernc.org/sqlite do. Older versions of the latter leave their connection inside
		// the transaction, which is not committed later either, because database/sql sends
		// COMMIT only after a BEGIN, and BEGIN fails there. A full disk is found before the
		// commit point. An I/O error is not in the list, because it may have hit the very write
		// that commits; see also EndedBefore.
		switch a.primary() {
		case sqliteBusy, sqliteFull, sqliteConstraint:
			return true
		}
		return a.Code == sqliteLockedShared
	}
}

// postgresRolledBack is notCommitted for SQLSTATEs. An ERROR of PostgreSQL at COMMIT precedes the
// commit record; after that record only the end of the connection or of the server is reported
// (FATAL, PANIC). The classes for these prove nothing, even though some of them have other uses,
// and neither does 40003, "statement completion unknown", which CockroachDB means literally.
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
	// 57P01 to 57P05: the server shuts down, has crashed, does not accept connections yet, or
	// has ended an idle session. A COMMIT that waits for a synchronous standby gets 57P01
	// although it is committed on this server.
	return !strings.HasPrefix(a.State, "57P")
}
