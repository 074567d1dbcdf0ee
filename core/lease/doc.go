// Package lease gives each process a worker number of its own. The numbers come from a
// store that all processes share: a database, Redis, etcd, ZooKeeper, or files on one
// host.
//
//	l, err := lease.Acquire(ctx, store, lease.Config{Namespace: "shop"})
//	…
//	gen, err := core.New(core.Config{Worker: l})
//	…
//	err = gen.Close(ctx) // closes the lease as well
//
// [Acquire] and Close do I/O. Next and Fill of the generator do not.
//
// # What is guaranteed
//
// No two IDs of a namespace are equal, if the store never loses a write that it has
// acknowledged. Clocks, pauses, crashes, networks and takeovers do not matter.
//
// If the store may lose such writes, the same holds with the loss guard. Its
// condition is that all clocks agree within Config.LossGuard.
//
// This is not mutual exclusion. A process that was stopped may return an ID while
// another has its worker number already. The two use it for different times.
//
// # Under which conditions
//
// The guarantee does not cover:
//
//   - A store that loses acknowledged writes without the guard: Redis without it, a
//     failover to a replica that lags, a restored backup. Stop all processes then,
//     and call [Fence].
//   - A store that two servers keep at the same time, each without the other's writes.
//   - Rows that are lowered or deleted by hand while leases live. A lowered row is
//     set right at the next renewal. A claim before that goes by what it finds.
//   - Memory that is copied while it runs, as by a snapshot of a virtual machine that is
//     started twice. Both copies use what was reserved when the copy was made, and no
//     more. That holds also if they draw the same random numbers, unless they draw them in
//     the same nanosecond by both of their clocks.
//   - Worker numbers used without a lease beside leased ones, unless Config.Workers
//     keeps them apart. Two namespaces, or two stores, for one set of IDs.
//
// # How it works
//
// For each worker number the store keeps a row with a reserved limit R. No ID of
// this worker has this time or a later one, yet. The window W is Config.Window.
//
//   - Claim: the row must have R at or before the store's clock, or be given back. Its
//     epoch grows by one, its owner becomes a fresh random token, and R becomes
//     max(R, clock) + W. The lease may use the times to the new R. They begin at the
//     old R, or at the clock if that is later.
//   - Renew: after a quarter of W. The row must still have the lease's epoch and
//     token, and the nonce of one of the lease's writes. R is raised to W beyond the
//     clock and the next ID. The lease raises its own limit when the store has confirmed
//     that.
//   - Issue: the generator returns IDs from the beginning of the lease to its limit.
//     It checks each ID itself, so a clock beyond the limit is not followed.
//   - Release: the generator is sealed first. Then R is set to just after the last
//     ID, and the row has no owner.
//
// The Claim, Renewal and Release of package leasestore define these steps. A store does each atomically.
// The ranges of two leases never overlap, since each begins at or after the R that it
// found. See docs/leases.md for the argument, the loss guard's included.
//
// # The loss guard
//
// The guard, D for short, is on by default if the [Store] says that it LosesWrites. A lease then begins
// beyond all that another can have reserved: the clock, 10 s, and D. So every window is
// 10 s under the guard. The first ID comes a little more than D after the claim, and is
// 10 s and D ahead of the clock.
//
// # When the store is away
//
// IDs go on until the limit: for at least three quarters of W. It is D less under the
// guard, and less still in the first seconds after a claim. Then Next and Fill wait,
// for core.Config.MaxLeaseWait at most. After that they return an error that matches
// [core.ErrReservationExhausted]. [Lease.Status] and the log have the store's error.
//
// The lease retries about every W/16, at most 20 s, and more often near the limit. When
// the store is back, IDs go on by themselves, and increase.
//
// A lease that loses its row seals the generator, logs an error and calls
// Config.OnLost. It claims another row at once. If none is free it tries again, with
// pauses of up to W/8 and at most 20 s, for as long as it lives.
//
// # Clocks
//
// Clocks decide who may take which row, and keep IDs near the real time. A claim is
// refused if the clocks of store and claimant are further apart than
// Config.MaxClockSkew. R is never raised more than an hour and W beyond the clock.
//
// On SQLite and with files both are one clock. If that goes back by more than an hour,
// IDs end with the window: see [AheadError]. If it steps ahead, R follows. Never lower R
// by hand.
//
// # Costs
//
// A lease writes one small row per W/4. A process
// that crashes keeps its row for up to W, so it needs a spare number. Released rows are
// free at once.
//
// # Shutting down
//
// Close the generator, which closes the lease. Use a context that is still live, not
// the one that told the program to stop: context.WithoutCancel and a timeout of 5 s, say.
// Without that, or if the store cannot be reached, the number is free after W.
package lease
