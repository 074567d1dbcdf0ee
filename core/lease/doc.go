// Package lease gives each process a worker number that no other process of its namespace uses
// for the same time. The numbers are kept in a store that the processes share: a database,
// Redis, etcd, ZooKeeper, or a SQLite file of one host.
//
//	l, err := lease.Acquire(ctx, store, lease.Config{Namespace: "shop"})
//	…
//	gen, err := core.New(core.Config{Worker: l})
//	…
//	err = gen.Close(ctx) // closes the lease as well
//
// Acquire and Close talk to the store; Next and Fill of the generator never do. Programs whose
// leases are in their own database call snowkey.Open instead, which does all of this.
//
// # Guarantee
//
// No two IDs of a namespace are equal while the store keeps the writes that it has acknowledged,
// whatever happens to clocks, processes and networks. For a store that may lose acknowledged
// writes the same holds with the loss guard, provided that all clocks agree within
// Config.LossGuard. A lease is not mutual exclusion: a process that was stopped may still return
// an ID after another one has taken over its number, because the two use different times.
//
// IDs may repeat in these cases:
//   - A store has lost acknowledged writes without the guard, as after a failover to a replica
//     that lags or a restored backup. Stop all processes and call [Fence] before they start.
//   - Two servers keep the store at the same time, each without the writes of the other.
//   - Rows are lowered or deleted by hand while leases are held. A renewal repairs a lowered row;
//     a claim before that goes by what it finds.
//   - A running process is copied, as by a snapshot of a virtual machine that is started twice.
//     Both copies use the rest of what was reserved, and no more, unless both draw the same
//     random numbers in the same nanosecond of both their clocks.
//   - Regions with a store each have one datacenter number, which [Region] excludes.
//   - Worker numbers are used without a lease beside leased ones, and Config.Workers does not
//     separate them; or one set of IDs has two namespaces or two stores.
//
// # How it works
//
// Each worker number has a row with a limit R: no ID with the time R or later exists yet. A claim
// takes a row whose R has passed, or that was released, and raises R to Config.Window beyond
// the store's clock; a renewal does so every quarter of a window. Only when the store has
// confirmed the new R does the generator issue IDs before it, and it checks each ID itself. Since
// every lease begins at or after the R that it found, the ranges of two leases never overlap.
// docs/evidence.md has the proof, and package leasestore the steps.
//
// With the loss guard a lease begins 10 s and Config.LossGuard ahead of the clock, beyond
// everything that a lost write can have reserved, and its first ID waits for a little more than
// Config.LossGuard.
//
// # When the store is away
//
// IDs go on until the limit, for at least three quarters of a window (less by Config.LossGuard
// under the guard, and less in the first seconds after a claim). Then Next and Fill wait for at
// most core.Config.MaxLeaseWait and return an error that matches [core.ErrReservationExhausted].
// The lease retries every sixteenth of a window, at most 20 s, and IDs go on as soon as the store
// is back. A lease that has lost its row seals the generator, logs an error, calls Config.OnLost
// and claims another row, again and again if none is free. [Lease.Status] and the log have the
// store's error.
//
// # Clocks
//
// Uniqueness never depends on a clock, except under the guard. Clocks decide which rows are free
// and keep IDs near the time, so a claim is refused while the clocks of store and process differ
// by more than Config.MaxClockSkew. Where both are one clock, on SQLite and with files, IDs end
// with the window if it goes back by more than an hour: see [AheadError].
//
// # Shutting down
//
// Close the generator with a context that is still live, such as context.WithoutCancel with a
// timeout of 5 s. A released number is free at once; that of a process that crashed, or that
// could not reach the store, is busy for up to a window, so there must be spare numbers.
//
// This package is stable.
package lease
