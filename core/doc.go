// Package core generates 64-bit IDs: time-ordered, unique without coordination, and
// known before the insert.
//
//	gen, err := core.New(core.Config{Worker: core.StaticWorker(7)})
//	…
//	id, err := gen.Next(ctx)
//
// A [Layout] says what the bits mean. A [Generator] returns IDs of one layout;
// [Generator.Fill] fills a whole slice at once. A [Worker] keeps processes apart:
// it is a fixed number, or a lease of package lease from a store that all processes
// share. Package coretest is for tests, and keysql takes keys apart in SQL.
//
// # What is guaranteed
//
// For one Generator, and for generators that follow each other in one process
// with the same layout, datacenter and worker:
//
//   - No two IDs are equal, whatever the clocks do. Uniqueness comes from a word of
//     memory that only grows.
//   - An ID is greater than every ID that was returned before its call began.
//   - As long as the wall clock does not step, the time in an ID is not before its
//     call, and at most Config.RunAhead (20 ms by default) after it. It can be early
//     by a pause: the machine was suspended just before, or the goroutine stopped
//     between the two clock readings of one time.Now.
//   - If a lease cannot be renewed and its time is over, the time in an ID is at
//     most Config.MaxBehind (1 s by default) before the call's last reading of the
//     clock. After that, calls fail. A goroutine that is stopped after that reading
//     returns its ID later.
//   - After a step back IDs go on from the last one, without an error or a pause.
//     Other policies keep times near the wall clock instead; see [Rollback]. Under
//     [Backfill] IDs are not in order.
//   - If this cannot be kept, there is an error and the ID is 0: [ErrClosed] after
//     Close, [ErrTimeExhausted] when the layout's time bits run out,
//     [ErrReservationExhausted] while a lease has no time left, a [*ClockBackError]
//     under a policy that refuses, and the context's error.
//   - Next and Fill take no lock, and wait only for the clock or the lease, asleep,
//     until the context ends. They allocate nothing unless they wait or fail.
//
// # Under which conditions
//
//   - Across processes, with leases: see package lease. The next two do not apply.
//   - Across processes with static workers: no two live processes have the same
//     datacenter and worker. New refuses a second generator of its own process with
//     [ErrWorkerInUse], but cannot see other processes. If two processes share a
//     number, they return the same IDs, and only the database notices.
//   - Across a restart with the same static worker: both processes have the same
//     run-ahead, and the clock has passed the time in the last ID, less the
//     run-ahead. Otherwise the new process repeats IDs. That happens if the clock
//     steps back between the two by more than the time that passes. It also happens
//     if the old process ends before it has caught up with an earlier step:
//     Stats.Ahead is then above the run-ahead. Catching up takes as long as the
//     step, and longer under load. A lease avoids this, for example of one fixed
//     number in a file beside the process (package filelease). So does a clock that
//     never steps back (slewing).
//   - Across all writers of one table: the same Layout, for good.
//
// # Rates
//
// A layout has 1<<SequenceBits IDs per tick and worker: 4,096,000 per second for
// [Default]. Callers beyond that rate wait, asleep, for the next tick. A new
// generator with a static worker leaves the present tick and the run-ahead to
// earlier processes. So its first ID may take up to one tick.
//
// Below one ID per tick, all IDs are the first of their tick. By default they are
// then multiples of 1<<SequenceBits. If rows are sharded by id % n, choose a
// [SequenceStart] that spreads them.
//
// The package imports the standard library and package types. It does no I/O and
// starts no goroutine. It has one package variable, the list of this process's
// generators.
package core
