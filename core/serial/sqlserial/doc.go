// Package sqlserial keeps the counters of package serial in tables of the user's own
// database: SQLite, PostgreSQL, MySQL or MariaDB.
//
//	store, err := sqlserial.New(db, sqlserial.Config{Dialect: sqlserial.PostgreSQL})
//	err = store.CreateTables(ctx)
//	err = store.Define(ctx, invoices)
//
//	tx, err := db.BeginTx(ctx, nil)
//	number, err := store.NextIn(ctx, tx, invoices, time.Now()) // INV2026000042
//	_, err = tx.ExecContext(ctx, "INSERT INTO invoices …", number.Text)
//	err = tx.Commit()
//
// # What is guaranteed
//
// Without gaps: a number of [Store.NextIn] is there if and only if the transaction of the
// caller is committed. The committed numbers of a period are all from the first to the
// last. After a rollback, the next caller gets the number. The same is true of a savepoint
// that is rolled back, and of a connection or a process that dies.
//
// Fast: a [github.com/snowkey/snowkey/core/serial.Counter] takes blocks by [Store.Take], in
// transactions of their own. What is not used is a gap. No number comes twice.
//
// # Under which conditions
//
//   - The row of an invoice is inserted in the transaction that has taken its number, and
//     is not deleted later. To cancel an invoice, keep the row and say why.
//   - One transaction per series and period runs at a time, from NextIn to COMMIT. Others
//     wait for it. On MySQL, on MariaDB, and if the series is Chronological, it is one per
//     series. Take the number last.
//   - A transaction that takes numbers of two series or periods takes them in the same
//     order as all others. If not, two of them may wait for each other.
//   - Above READ COMMITTED, PostgreSQL ends one of two transactions of a series and period
//     with an error. It comes as the driver's; begin the transaction anew, as
//     sqlxhelper.InTx does. On SQLite a transaction that reads before NextIn needs
//     _txlock=immediate in the DSN: it fails once another one has written.
//   - After a COMMIT whose answer was lost, the number in memory is not used until it is
//     known what became of the transaction. sqlxhelper.InTx finds out, and returns nil only
//     if the number in memory is the one stored.
//   - The database keeps what it has acknowledged. A backup that was restored gives out
//     numbers again.
//   - On SQLite the tables are in the file of the rows, and Define and ClosePeriod run
//     outside of the caller's transactions. They would wait for its lock.
package sqlserial
