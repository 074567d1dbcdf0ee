// Package core makes the IDs: 64-bit numbers that carry their time of birth,
// unique without asking anyone, known before the row is inserted.
//
//	gen, err := core.New(core.Config{Worker: core.StaticWorker(7)})
//	…
//	id, err := gen.Next(ctx)
//
// A [Layout] says what the bits mean, a [Generator] counts within it, a [Worker]
// keeps the processes apart: a fixed number, or a lease of package lease, which
// gets one from a store that all processes share. [Generator.Fill] numbers a whole
// slice at once.
//
// # What is guaranteed
//
// For one Generator, and for generators that follow each other in one process
// with the same layout, datacenter and worker:
//
//   - No two IDs are equal, whatever the clocks do. Uniqueness comes from one
//     word of memory that only grows; the clock only moves it forward.
//   - An ID is greater than every ID that was returned before its call began.
//   - The time in an ID is not before its call, and at most Config.RunAhead
//     (20 ms unless set) after it, as long as the wall clock does not step. It
//     can be before its call by as long as the machine was suspended, or a
//     goroutine kept from running between the two clock readings of one time.Now,
//     just before.
//   - With a lease that cannot be renewed, once the clock has passed the reserved
//     time, it is at most Config.MaxBehind (1 s unless set) before the last reading
//     of the clock in its call. Then there is an error. A goroutine that is stopped
//     after that reading returns its ID as late as it goes on.
//   - After a step back IDs go on from where they were, at up to the full rate, until
//     the wall clock catches up: no error, no pause. Three other policies trade
//     that for times near the wall clock; see [Rollback]. Under one of them,
//     [Backfill], IDs are not in order.
//   - Where this cannot be kept there is an error and the ID is 0: [ErrClosed]
//     after Close, [ErrTimeExhausted] when the layout's time bits run out,
//     [ErrReservationExhausted] while a lease has no time left, a
//     [*ClockBackError] under a policy that refuses, and the context's error.
//   - Next and Fill take no lock, allocate nothing unless they wait or fail, and
//     wait only for the clock or the lease, asleep, until the context ends.
//
// # Under which conditions
//
//   - Across processes, with leases: what package lease says, instead of the next
//     two.
//   - Across processes with static workers: no two live processes have the same
//     datacenter and worker. New refuses a second generator in its own process, be its
//     number fixed or leased, with [ErrWorkerInUse]; it cannot see other processes. If two processes share a
//     number they return the same IDs, and nothing notices but the database.
//   - Across a restart with the same static worker: the wall clock of the new
//     process has passed the time in the last ID of the old one, less the
//     run-ahead, and both have the same run-ahead. It has, unless it stepped back
//     between the two by more than has since gone by, or stepped back before and
//     the old process ended while it was still ahead (Stats.Ahead above the
//     run-ahead): catching up takes as long as the step when idle, and longer
//     under load. If it has not, the new process repeats IDs of the old one.
//     Nothing in memory can know; take a lease, if need be of one fixed number
//     from a file beside the process (package filelease), or stop the clock from
//     stepping back (slew it).
//   - Across all writers of one table: the same Layout, for good.
//
// # Rates
//
// A layout has 1<<SequenceBits IDs per tick and worker: 4,096,000 per second for
// [Default]. Callers beyond that rate wait, asleep, for the next tick. A new
// generator with a static worker leaves the present tick and the run-ahead to
// whoever had its worker before, so its first ID may take up to one tick.
//
// At less than one ID per tick all IDs are the first of their tick, and with the
// sequence at zero they are multiples of 1<<SequenceBits. Where rows are sharded
// by id % n, choose a [SequenceStart] that spreads them.
//
// The package imports the standard library and package types, does no I/O,
// starts no goroutine, and keeps one package variable: the list of this process's
// generators.
package core
