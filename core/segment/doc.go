// Package segment hands out numbers from ranges that it takes from a store: the other way to
// know a key before the INSERT. The numbers are small and dense, and depend neither on a clock
// nor on a worker number. The store is a table with one row per sequence.
//
//	numbers, err := segment.New(store, segment.Config{Tag: "orders"})
//	id, err := numbers.Next(ctx)
//
// An Allocator takes a range from the row in one transaction, and then returns its numbers at
// the cost of one atomic addition each. It fetches the next range ahead of time, so that calls
// wait for the store at the start and seldom afterwards. It is a source of keys for gormplugin
// and sqlxhelper, as core.Generator is.
//
// # Guarantees
//
//   - No two calls return the same number, in any process.
//   - Within a process, a call that begins after another has returned gets a larger number.
//   - A number is returned only from a range that the store has acknowledged. A range whose
//     request failed is never used and never read back.
//   - A call that fails takes no number of a later range and returns 0.
//   - Close gives the unused end back unless another process has taken a range since, so that
//     a clean restart leaves no gap.
//   - An Allocator that meets a row which went back returns [ErrWentBack] and no number from
//     then on, not even those that it holds.
//
// # Conditions
//
//   - The store keeps what it acknowledges. Redis, which may forget, is not offered. After a
//     failover to a replica that lags behind, or from a backup, numbers are given a second
//     time. Processes that have seen larger numbers notice, others do not, so stop all of them
//     first. With [Config.Floor] set to the greatest key in use, a new process notices too.
//   - Other writers to the row only raise max_id.
//   - Programs that insert numbers of their own use other numbers. See docs/segments.md.
//
// # Gaps, order and disclosure
//
// The numbers that an Allocator holds when the process crashes become a gap. [Stats] reports
// how many there are, and [Config.Hold] and [Config.MaxStep] bound them. Numbers of different
// processes are not in the order of time. Anyone who sees two numbers can estimate how many
// were assigned in between; if that matters, use package core.
//
// # Several databases
//
// [Spread] takes ranges from several databases that share a stride and have an offset each, so
// that the failure of one leaves the others working. [Restride] changes the stride while
// programs run.
//
// This package is stable.
package segment
