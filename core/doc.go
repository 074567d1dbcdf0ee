// Package core generates 64-bit IDs that are time-ordered, unique without coordination
// between calls, and known before the insert.
//
//	gen, err := core.New(core.Config{Worker: core.StaticWorker(7)})
//	…
//	id, err := gen.Next(ctx)
//
// A [Layout] gives the bits of an ID their meaning, and a [Generator] returns IDs of one
// layout, one at a time or a slice at once ([Generator.Fill]). A [Worker] keeps processes
// apart: it is either a fixed number or a lease that package lease obtains from a store
// that all processes share. Package coretest supports tests, and keysql takes keys apart
// in SQL.
//
// # Guarantees
//
// The following holds for one Generator, and for generators that follow each other in one
// process with the same layout, datacenter and worker:
//
//   - No two IDs are equal, whatever the clocks do, because uniqueness rests on a word of
//     memory that only grows.
//   - An ID is greater than every ID that was returned before its call began, except under
//     [Backfill].
//   - While the wall clock does not step, the time in an ID is neither before its call nor
//     more than Config.RunAhead (20 ms by default) after it. It is early only by a pause
//     that no program can see: the machine was suspended just before, or the goroutine
//     stopped between the two clock readings of one time.Now.
//   - When a lease cannot be renewed, the time in an ID falls at most Config.MaxBehind (1 s
//     by default) behind the clock as the call last read it; then calls fail. A goroutine
//     that is stopped after that reading returns its ID later.
//   - After the wall clock steps back, IDs continue from the last one, without an error or a
//     pause. The other policies of [Rollback] keep times near the wall clock instead.
//   - Where the promise cannot be kept, the call returns an error and the ID 0: [ErrClosed]
//     after Close, [ErrTimeExhausted] when the layout's time bits run out,
//     [ErrReservationExhausted] while a lease has no time left, a [*ClockBackError] under a
//     policy that refuses, or the error of the context.
//   - Next and Fill take no lock. They wait only for the clock or the lease, asleep, until
//     the context ends, and they allocate only if they wait or fail.
//
// # Conditions
//
//   - All writers of one table use the same Layout, for good.
//   - Processes that run at the same time have different workers. Leases ensure this; see
//     package lease, whose guarantees replace the next two conditions.
//   - Static workers: no two live processes have the same datacenter and worker. New refuses
//     a second generator in its own process with [ErrWorkerInUse], but it cannot see other
//     processes. Two processes that share a number return the same IDs, and only the
//     database notices.
//   - A restart with the same static worker: both processes have the same run-ahead, and the
//     clock has passed the time in the last ID, less the run-ahead. Otherwise the new process
//     repeats IDs. This happens if the clock steps back between the two by more than the time
//     that passes, or if the old process ends before it has caught up with an earlier step
//     (Stats.Ahead is above the run-ahead until then). A lease avoids it, for example of one
//     fixed number in a file beside the process (package filelease), and so does a clock that
//     is slewed and never stepped back.
//
// # Rates
//
// A layout has 1<<SequenceBits IDs per tick and worker, which is 4,096,000 per second for
// [Default]. Callers beyond that rate sleep until the next tick. A new generator with a
// static worker leaves the present tick and the run-ahead to earlier processes, and its
// first ID may therefore take up to one tick.
//
// Below one ID per tick, every ID is the first of its tick, and by default a multiple of
// 1<<SequenceBits. Choose a [SequenceStart] that spreads them if rows are sharded by
// id % n.
//
// The package imports only the standard library and package types. It does no I/O and
// starts no goroutine. Its only package variable is the list of this process's generators.
package core
