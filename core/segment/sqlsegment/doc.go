// Package sqlsegment keeps the rows of package segment in a table of the user's own database:
// SQLite, PostgreSQL, MySQL or MariaDB.
//
//	store, err := sqlsegment.New(db, sqlstore.Config{Dialect: sqlstore.PostgreSQL})
//	err = store.CreateTables(ctx)
//	err = store.Create(ctx, segment.Row{Tag: "orders", Next: 1, Step: 1000, Stride: 1})
//	numbers, err := segment.New(store, segment.Config{Tag: "orders"})
//
// # Guarantees
//
// Once Take has returned nil, its range belongs to that caller alone. Each operation is a
// transaction of its own on a connection that it borrows, locks the row, and reports success
// only after COMMIT has. What it acknowledges is on disk, as far as one connection can ensure
// that. A rollback of the program's own transaction takes nothing back.
//
// # Conditions
//
//   - The pool leads to the primary, and the database keeps what it has acknowledged. A
//     restored backup is segment.ErrWentBack.
//   - While the program holds a connection in a transaction that needs numbers, the pool has a
//     second one. With a single connection the call fails after a wait, or at once if prefetch
//     is off. A pool of its own is best.
//   - On SQLite the table is in a file of its own. A program that holds the write lock of a
//     shared file would wait for itself, and gets an error that says so after Config.MaxWait
//     of the Allocator.
//   - Programs that write to the table themselves lock the row, and only raise max_id.
//   - Numbers of other sources are not inserted. [Store.RaiseAboveMax] moves a row above those
//     that exist; docs/segments.md has the order of steps.
//
// # The table
//
// The table has the columns of Meituan's Leaf, with the same meaning, and three more. After the
// statements of [Store.AlterLeaf] an existing leaf_alloc can be used, also while servers of Leaf
// still run.
//
// This package is stable.
package sqlsegment
