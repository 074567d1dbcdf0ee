// Package sqlserial keeps the counters of package serial in tables of the user's own database:
// SQLite, PostgreSQL, MySQL or MariaDB.
//
//	store, err := sqlserial.New(db, sqlstore.Config{Dialect: sqlstore.PostgreSQL})
//	err = store.CreateTables(ctx)
//	err = store.Define(ctx, invoices)
//
//	tx, err := db.BeginTx(ctx, nil)
//	number, err := store.NextIn(ctx, tx, invoices, time.Now()) // INV2026000042
//	_, err = tx.ExecContext(ctx, "INSERT INTO invoices …", number.Text)
//	err = tx.Commit()
//
// # Guarantees
//
// Without gaps: a number of [Store.NextIn] exists if and only if the caller's transaction is
// committed, and the committed numbers of a period run from the first to the last without a gap.
// After a rollback, also to a savepoint, and after the end of a connection or a process, the next
// caller gets the number.
//
// Fast: a [github.com/snowkey/snowkey/core/serial.Counter] takes blocks of numbers by
// [Store.Take], in transactions of their own. Numbers that it does not use become a gap. No
// number is given twice.
//
// # Conditions
//
//   - The row of an invoice is inserted in the transaction that has taken its number, and is
//     never deleted. To cancel an invoice, keep the row and record why.
//   - From NextIn until COMMIT the transaction holds a lock on its series and period, or on the
//     whole series on MySQL, on MariaDB and for Chronological series. Other transactions that
//     number the series wait for it, so take the number last.
//   - Transactions that number more than one series or period do so in the same order, or two
//     of them can deadlock.
//   - Under REPEATABLE READ and SERIALIZABLE, PostgreSQL aborts one of two concurrent
//     transactions with a serialization failure, which NextIn returns unwrapped; retry the
//     transaction, as sqlxhelper.InTx does. On SQLite a transaction that reads before NextIn
//     needs _txlock=immediate in the DSN. Without it, the transaction fails with "database is
//     locked" once another one has written, whatever _busy_timeout is.
//   - After a COMMIT whose answer was lost, the program does not use the number in memory until
//     it knows the outcome. sqlxhelper.InTx finds out, and returns nil only if the number in
//     memory is the one that is stored.
//   - The database keeps what it has acknowledged. After a backup is restored, numbers are
//     given again; Store.Raise leaves out those that are on paper.
//   - On SQLite the tables are in the same file as the rows, and Define and ClosePeriod run
//     outside of the caller's transactions, whose lock they would wait for.
//
// This package is experimental.
package sqlserial
