// Package sqlsegment keeps the rows of package segment in a table of the user's own
// database: SQLite, PostgreSQL, MySQL or MariaDB.
//
//	store, err := sqlsegment.New(db, sqlsegment.Config{Dialect: sqlsegment.PostgreSQL})
//	err = store.CreateTables(ctx)
//	err = store.Create(ctx, segment.Row{Tag: "orders", Next: 1, Step: 1000, Stride: 1})
//	numbers, err := segment.New(store, segment.Config{Tag: "orders"})
//
// # What is guaranteed
//
// A range belongs to the caller once Take has returned nil, and to nobody else. Each
// operation is a transaction of its own on a connection that it borrows. It locks the
// row, and reports success only after COMMIT has. What is acknowledged is on disk, as
// far as one connection can see to that. A rollback of the program takes nothing back.
//
// # Under which conditions
//
//   - The pool leads to the primary, and the database keeps what it has acknowledged. A
//     backup that was restored is segment.ErrWentBack.
//   - The pool has a second connection while the program holds one in a transaction
//     that needs numbers. With one connection the call gets an error after a wait, or
//     at once if prefetch is off. Best is a pool of its own.
//   - On SQLite the table is in a file of its own. A program that holds the write lock of
//     a shared file would wait for itself. It gets an error after Config.MaxWait of the
//     Allocator, which says so.
//   - Programs that write to the table themselves lock the row, and only raise max_id.
//   - Nobody inserts numbers of another source. [Store.RaiseAboveMax] goes above those that
//     are there. docs/segments.md has the order of steps.
//
// # The table
//
// The columns are those of Meituan's Leaf, with their meaning, and three more. So an
// existing leaf_alloc serves after the statements of [Store.AlterLeaf], beside servers of
// Leaf that still run.
package sqlsegment
