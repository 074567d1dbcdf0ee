// Package lease gives each process a worker number of its own, from a store that
// all of them share: a database, Redis, ZooKeeper, or files on one host.
//
//	l, err := lease.Acquire(ctx, store, lease.Config{Namespace: "shop"})
//	…
//	gen, err := core.New(core.Config{Worker: l})
//	…
//	err = gen.Close(ctx) // closes the lease as well
//
// [Acquire] and Close do I/O. Next and Fill of the generator do not: a goroutine
// of the lease talks to the store in the background.
//
// # The promise
//
// If the store never loses a write that it has acknowledged, no two IDs of a
// namespace are equal, whatever clocks, pauses, crashes, networks and takeovers
// do. If it may lose such writes, the same holds with the loss guard, as long as
// the clocks agree within Config.LossGuard.
//
// This is not mutual exclusion. A process that was stopped for a minute may return
// an ID while another already has its worker number: nothing can rule that out,
// since a process may be stopped between its last check and its return. Here it
// does no harm, because the two use the number for different times.
//
// # The row
//
// For each worker number the store keeps a row. Its epoch grows with each claim and
// release. Its owner is a random token of 128 bits, made for each attempt to claim.
// Its nonce is that of the last write, another such token. R is the reserved limit: no
// ID of this worker has this time or a later one, yet. W is the window
// (Config.Window). The holder's name is for people.
//
//   - Claim: of a row that has R at or before the store's clock, or has been given
//     back: epoch + 1, own token, R := max(R, clock) + W. The lease may use the
//     times from max(R before, clock) to R, and nothing before.
//   - Renew: after a quarter of W. If the row still has the lease's epoch and token,
//     and a nonce that the lease knows: R := max(R, max(clock, next ID) + W). When the store has
//     confirmed that, and only then, the lease raises its own limit to this R.
//   - Issue: the generator returns IDs with times from where the lease begins up to
//     its own limit, checked on each ID itself. A clock beyond the limit is not
//     followed.
//   - Release: first the generator is sealed, so that no ID can follow. Then R is
//     set to just after the last ID, with epoch + 1 and no owner.
//
// A store does each of these atomically, or not at all. [Claim], [Renewal] and
// [Release] have them in code.
//
// # Why it holds
//
// Take one worker number, and its claims in the order in which the store did them.
// Call the times between the beginning of a lease and its last confirmed limit its
// range; all its IDs are in there. The ranges of two leases never overlap, because
// each begins at or after the end of all before it:
//
//   - While an owner has the row, R does not fall, and each limit that the owner
//     ever learns of has been R. After the next claim, its renewals find another
//     epoch and token and do nothing. So at that claim R is at or after every limit
//     that the owner has and ever will have, even in a reply that is still on its
//     way. The next lease begins at R or later.
//   - Only a release lowers R, to a time that is after all IDs of its lease, which
//     get no more because it was sealed before, and not before that lease began,
//     hence after all IDs of those before. It changes the epoch, so that a renewal
//     that arrives late does nothing.
//   - The beginning of a lease is at or after R, so it is after the ranges of all
//     earlier leases and not only of the last.
//
// Requests that arrive late or twice change nothing in this. A renewal or release
// counts only while its lease has the row. A claim that nobody knows to have
// succeeded belongs to a token that nobody uses; its row is free again after W. A
// request without an answer may have been done or may be done later. The lease
// counts on neither: it keeps its limit, and remembers the nonce.
//
// The clocks appear in none of these arguments. They decide who may take which row,
// and keep the times in the IDs near the real time. A claim is refused where the
// clocks of store and claimant are further apart than Config.MaxClockSkew. R is never
// pushed more than an hour and W beyond the clock. That is the later one of store and
// holder; if they are too far apart, the one nearer to where R was set last.
//
// On SQLite and with files both are one clock. If it goes back by more than an hour,
// IDs end with the window, and [Lease.Check] and Status say why: see [AheadError]. If
// it steps ahead by a year, R follows, and the worker number is of no use until then.
// Never lower R by hand: that gives times away again that IDs may have.
//
// The nonce is for memory that is copied while it runs (a snapshot of a virtual
// machine, CRIU). Both copies have the same token. As soon as one has renewed, the
// row has a nonce that the other does not know, and the other loses the row. Up to
// then both use the same times: at most what was reserved when the copy was made,
// by a request then under way included. Those IDs do repeat.
//
// # The loss guard
//
// A store that forgets writes may forget a claim, and give a range away twice. The
// loss guard, Config.LossGuard or D for short, is on by default for stores that are
// [Lossy]. It has two conditions. No clock of the processes and of the store ever
// shows a time more than D before one that any of them has shown earlier. And what is
// lost must be the latest writes: the store goes back to an earlier state of its own.
// What it has forgotten it does not remember again, as it would if a failover to a
// replica were followed by a return to the old server with its old data. Then:
//
//   - Every window W is C, 10 s. C is a constant, and is stored nowhere: a store that
//     forgets rows would forget it with them.
//   - No claim and no renewal raises R beyond the clocks of store and holder, plus C.
//     (A release may: to where its lease began, without an ID there.)
//   - A lease begins at max(R, both clocks + C + D), which is at or beyond the R of
//     its own claim. Its IDs begin once a renewal has raised R further, a little more
//     than D after the claim. They are ahead of the clock by C + D at first.
//   - A row with an owner is taken over only at R + D.
//   - No claim is done later than the permitted skew after it was asked for, since
//     the store compares the clocks; so an old one does not come true after a loss.
//   - The lapse rule: a holder does not renew when either clock has passed its
//     limit less D. It claims anew.
//   - The store keeps whether the guard is on, and refuses who disagrees.
//
// Take a claim at a moment when the store's clock shows T, and an ID of an earlier
// holder. The renewal that made room for the ID was done before the claim, or after
// it. If before, it was at a clock of at most T + D, by the first condition. The ID is
// before T + D + C, where the new lease begins, whether or not the store still knew
// of the renewal. If after, the store must have forgotten the claim and gone back to a
// state in which the row had the earlier holder's token and a nonce that it knew.
// Take the first claim after that state which the store did then and has forgotten.
// It found the holder's token, and an R that was at least the holder's limit, since
// the nonce was of the confirmed write or of a later one. It also found R + D at or
// before its clock. The renewal was done later, so at a clock that was not more than D
// before that one. That is at or beyond the holder's limit, and the lapse rule forbids
// it.
//
// No step compares the D of two processes. So it may differ, and change in a rolling
// deployment, as long as each D is at least as much as clocks are apart.
//
// With less than C + D, with a W of its own for each lease in place of C, or without the lapse rule, there are
// schedules with duplicates; the models in the folder model find them.
//
// # What is not covered
//
//   - A store that loses acknowledged writes without the guard: Redis without it, a
//     database that fails over to a replica that lags, one restored from a backup.
//     After that, stop all processes and call [Fence].
//   - A store that two servers keep at the same time, each taking writes and neither
//     hearing of the other's. Each gives the same numbers away, and goes on doing so,
//     which no guard can make up for.
//   - Rows lowered or deleted by hand while leases live. A lowered row is noticed at
//     the next renewal, logged as an error and set right, but a claim in between
//     goes by what it finds. Deleted rows are not made again.
//   - Copies of running memory, as above.
//   - Worker numbers used without a lease beside leased ones, unless Config.Workers
//     keeps them apart; two namespaces, or two stores, for one set of IDs.
//
// # When the store is away
//
// IDs go on until the limit: for three quarters of W to a whole W. Under the guard it
// is D less, and less still in the first seconds after a claim, and under a load that
// keeps IDs ahead of the clock.
// A program that takes few goes on for longer, with what is left under the limit and
// times that stay just before it. Then Next and
// Fill wait, for core.Config.MaxLeaseWait at most, and return an error that matches
// [core.ErrReservationExhausted]; [Lease.Status] has the store's error, [Lease.Check]
// is for readiness probes, and the log says it again each minute. The lease
// keeps trying, about every W/16 and more often near the limit. When the store is back IDs go on by themselves, with
// the same worker number or, if that was lost meanwhile, with a new one. IDs of one
// generator increase across that.
//
// A lease that loses its row seals the generator, logs an error, calls
// Config.OnLost, and claims another at once. If none is free it tries again, with
// growing pauses of up to W/8, for as long as it lives.
//
// # Costs
//
// One small write per W/4 and process; and one call of the store to claim, without
// further delay if a row is free. (For a few seconds after a start under the guard, and when
// the clock has stepped forward, one per W/16.) A process that crashes keeps its
// row for up to W, so there must be as many numbers as processes, and as crash
// within W, rolling deployments included. Released rows are free at once. IDs are
// not ahead of the clock because of W, only R is; without the guard the first IDs
// of a lease may be, by up to Config.MaxClockSkew, where the holder before was.
//
// # Shutting down
//
// Close the generator, and not the lease, which it closes: with a context that is
// still live, and not the one whose end has told the program to stop.
//
//	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
//	defer cancel()
//	err := gen.Close(ctx)
//
// Without that, or if the store cannot be reached, the number is free after at most
// W.
//
// # Prior art
//
// Reserving time durably before it is used is an old idea. RFC 9562, section 6.3,
// lets a UUID generator write a time ahead to stable storage. PostgreSQL logs sequence
// values ahead of handing them out. The timestamp oracle of TiDB saves the end of a
// window before it allocates from it. New here is only the use for worker numbers:
// what a fencing token is to a lock, the time in the ID is to the number.
package lease
