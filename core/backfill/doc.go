// Package backfill makes keys for rows that exist, from a [core.Layout] and the rows' own times, and
// without a generator. The keys sort as the rows do.
//
//	past, err := backfill.New(backfill.Config{Worker: 1000}) // a number that lease.Retire has retired
//	…
//	keys, err := backfill.Keys(past, rows) // rows ORDER BY created_at, id
//
// The same rows in the same order get the same keys, wherever and however often that is computed.
// A program that stopped goes on with [Backfill.Resume] from the last key that it has stored.
//
// # Which key a row gets
//
// A key has the tick of the row's time, or a later one if the rows before it have used that up, but
// one less than Config.Precision after the row's time. With core.Default() a column of whole seconds
// has room for 4,096,000 rows per second. Keys rise strictly from row to row. Other rows get none:
//
//   - More rows of one time than that: [ErrCrowded]. Raise Precision.
//   - A row before the layout's epoch: [ErrEarly]. In a new namespace, use a layout whose epoch is
//     before the first row. Otherwise set Config.EarlyAtEpoch: these rows then count as rows at the
//     epoch, so that they sort first and in order, but the time in their keys means nothing.
//   - A row at Config.Until or later: [ErrLate]. Its key would sort behind those of rows to come.
//     Correct its time, or use the time at which it was last changed.
//   - A row on the shard of a key that is none: [ErrNoShard].
//   - A row without a time, which is the zero time.Time: [ErrNoTime]. Choose one in the query, such
//     as that of the row before it in the order of the old keys.
//
// All of these are a [*RowError] with the old key of the row, and give none of its batch a key.
//
// # Why no key repeats
//
// Keys of one Backfill, over all calls of Resume, rise strictly. A key of another generator has
// another worker number, because a retired number was never leased and never will be. Were the
// retirement lost afterwards, as by a restore, leases of the number would still begin after all keys
// made here, because those are dated before Config.Until.
//
// This rests on what the caller does:
//
//   - The number is retired by lease.Retire, or no generator of the namespace ever had it.
//   - A number serves one series of rows, such as a table. For several tables retire a number for
//     each, or keys of different tables are equal.
//   - The rows come in the order of their times, and those of one time in the order of their old keys.
//     Keys refuses another order within a batch.
//   - Stored keys stay. Computing them anew gives the same keys only for the same rows, and while a
//     program still adds rows of the past, they are not.
//
// This package is experimental.
package backfill
