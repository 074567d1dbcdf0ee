// Package core generates 64-bit IDs that are time-ordered, unique without coordination between
// calls, and known before the insert.
//
//	gen, err := core.New(core.Config{Worker: core.StaticWorker(7)})
//	…
//	id, err := gen.Next(ctx)
//
// A [Layout] gives the bits of an ID their meaning. A [Generator] returns IDs of one layout, one
// at a time ([Generator.Next]) or a slice at once ([Generator.Fill]). A [Worker] keeps processes
// apart: it is either a fixed number, or a lease that package lease obtains from a store that all
// processes share.
//
// The files show these two halves. Those named layout say what a key is, and packages that only
// read keys need no more; those named generator say who makes keys.
//
// # Guarantees
//
// For one Generator, and for generators that follow each other in one process with the same
// layout, datacenter and worker:
//
//   - No two IDs are equal, whatever the clocks do.
//   - An ID is greater than every ID that was returned before its call began, except under
//     [Backfill].
//   - While the wall clock does not step, the time in an ID is not before its call, and at most
//     Config.RunAhead (20 ms by default) after it. It can be earlier only by a pause that no
//     program can detect, of the machine just before the call, or of the goroutine between the
//     two clock readings of one time.Now.
//   - If a lease cannot be renewed, the time in an ID falls at most Config.MaxBehind (1 s by
//     default) behind the clock as the call last read it; then calls fail.
//   - After the wall clock has stepped back, IDs continue from the last one, without an error or
//     a pause. The other policies of [Rollback] keep times near the wall clock instead.
//   - Where this cannot be kept, a call returns the ID 0 and an error: [ErrClosed],
//     [ErrTimeExhausted] when the layout's time bits run out, [ErrReservationExhausted] while a
//     lease has no time left, a [*ClockBackError] under a policy that refuses, or the error of
//     the context.
//   - Next and Fill take no lock, wait only for the clock or the lease, asleep and until the
//     context ends, and allocate only if they wait or fail.
//
// # Conditions
//
//   - All writers of one table use the same Layout, for good.
//   - Processes that run at the same time have different workers. Leases ensure this, and
//     package lease replaces the next two conditions by guarantees of its own.
//   - No two live processes have the same datacenter and static worker. [New] refuses a second
//     generator in its own process ([ErrWorkerInUse]), but cannot see other processes. If two
//     share a number, they return the same IDs, and only the database notices.
//   - When a process restarts with the same static worker, it has the same run-ahead as before,
//     and the clock has passed the time in the last ID, less the run-ahead. It has not if the
//     clock steps back between the two processes by more than the time that passes, or if the
//     first one ends while Stats.Ahead exceeds the run-ahead, after an earlier step. To be safe
//     from both, slew the clock instead of stepping it, or use a lease of one fixed number, for
//     example in a SQLite file (package sqllease).
//
// # Rates
//
// A layout has 1<<SequenceBits IDs per tick and worker, which is 4,096,000 per second for
// [Default]. Callers beyond that rate sleep until the next tick. Below one ID per tick, every ID
// is the first of its tick and, by default, a multiple of 1<<SequenceBits; choose a
// [SequenceStart] that spreads them if rows are sharded by id % n, or Layout.ShardBits, with which the
// program chooses the shard, at the price of as many bits of the rate ([OnShard]). A new generator with a static
// worker leaves the present tick and the run-ahead to earlier processes, so its first ID may take
// up to one tick.
//
// The package imports only the standard library and package types, does no I/O and starts no
// goroutine. Its only package variable is the list of this process's generators.
//
// This package is stable.
package core
