// Package segment gives out ranges of numbers from a store: the other way to know a key
// before the INSERT. The numbers are small and dense, and need no clock and no
// worker number. The store is a table of one row per sequence.
//
//	numbers, err := segment.New(store, segment.Config{Tag: "orders"})
//	id, err := numbers.Next(ctx)
//
// An Allocator takes a range from the row in one transaction, and then returns its
// numbers with one atomic addition each. It fetches the next range in time. So calls wait
// for the store at the start and seldom after it. It is a source for gormplugin and for
// sqlxhelper, as core.Generator is.
//
// # What is guaranteed
//
//   - No two calls return the same number, in any process.
//   - Within a process a call that begins after another has returned gets a larger one.
//   - A number is returned only from a range that the store has acknowledged. After an
//     error the range is never used, and never read back.
//   - A call that fails takes no number of a later range, and returns 0.
//   - Close gives the unused end back, if nobody has taken since. So a clean restart
//     leaves no gap.
//   - An Allocator that meets a row which went back returns [ErrWentBack], and no number
//     from then on, not even those that it holds.
//
// # Under which conditions
//
//   - The store keeps what it acknowledges. Redis may forget, and is not offered. A
//     failover to a replica that lags behind, or a backup, gives numbers a second time.
//     Processes that have seen larger numbers notice; others do not. So stop all of them
//     first. Set [Config.Floor] to the greatest key in use, and a new one notices too.
//   - Whoever else writes to the row only raises max_id.
//   - Programs that insert numbers of their own use others. See docs/segments.md.
//
// # Gaps, order and what a stranger learns
//
// What an Allocator holds when the process crashes is a gap. [Stats] says how much that
// is, and [Config.Hold] and [Config.MaxStep] bound it. Between processes the numbers are not
// in the order of time. A stranger who sees two numbers knows about how many there
// were between. If that matters, use package core.
//
// # Several databases
//
// [Spread] takes ranges from several databases with one stride and an offset each. One
// that is away costs no number. [Restride] changes the stride while programs run.
package segment
