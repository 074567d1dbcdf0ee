// Package redislease keeps the leases of worker numbers in Redis, version 5 or later,
// or a server that runs its scripts, such as Valkey.
//
//	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
//	store, err := redislease.New(client, redislease.Config{})
//	…
//	l, err := lease.Acquire(ctx, store, lease.Config{Namespace: "shop"})
//
// Use it where all processes share Redis anyway. With a SQL database use package
// sqllease: it loses nothing, and assumes nothing about clocks.
//
// # What is guaranteed
//
// A [Store] keeps the contract of [leasestore.Store] but for one point: Redis may forget a
// write that it has acknowledged. [Store.LosesWrites] says so, and the lease then has
// the loss guard on.
//
//   - Each operation reads a row, with the server's own clock, and swaps it for another: two
//     Lua scripts, and two round trips. The second compares the whole row and the layout, so
//     that nothing is overwritten that was not read. What the new row is, package lease says.
//   - Each script begins with a write that changes nothing. A replica fails there, with
//     [ErrReadOnly], and so does a primary that may not write. Neither ever says, from
//     old rows, that a lease is lost.
//   - Rows have no time to live. The limit in a row keeps IDs unique.
//   - A call gives up when ctx ends, whatever the timeouts of the client are. The
//     command may still be under way then, in a goroutine that ends with those
//     timeouts: do not turn them off.
//   - No error contains a password.
//
// # Under which conditions
//
// Three events take the rows back to what they were, or to nothing: FLUSHALL, a restart
// without the end of the log, and a failover to a replica that had not yet received
// everything. The loss guard of package lease is made for that. No two IDs are equal as long as
//
//   - the clocks of all processes and servers agree within D, which is lease.Config's
//     LossGuard, and
//   - no more than one server at a time accepts writes for a namespace, or two do for
//     no longer than what the clocks leave of D.
//
// The second needs attention. An old primary may be cut off from its replicas, but not
// from some of its clients. It renews their leases for as long as nobody stops it.
// Meanwhile the new primary gives their workers away, and IDs repeat in spite of the
// guard. So a primary that is cut off must refuse writes: see the settings below. For the
// same reason [New] refuses a [redis.Ring] of several servers. Each process would decide
// for itself which of them are up, and take a namespace elsewhere if its server is not. A
// server in active-active replication must not be used.
//
// A primary that was paused, as a virtual machine may be, does what has waited for it
// before it looks at its replicas. If another was promoted meanwhile, that is not covered.
//
// An old primary that comes back has what the new one has forgotten. It must not be
// promoted before it has all that the new one has. Sentinel makes it a replica after
// about 10 s. If the new primary fails before that, it takes another replica, if there is
// one.
//
// WAIT does not help. It tells how many replicas have received a write, not that one of
// these is promoted. If it tells of too few, the write stays.
//
// # Recommended settings
//
//   - With replicas: min-replicas-to-write 1 and min-replicas-max-lag 1. A primary
//     notices up to 3 s later than this says that it is alone. So set
//     down-after-milliseconds or cluster-node-timeout to 5000 or more.
//   - Two replicas. A new primary refuses writes as well until it has one.
//   - A Sentinel beside each server, and a quorum of more than half. With three replicas
//     or more, set min-replicas-to-write to half of them, rounded up. Sentinels elsewhere
//     may promote one while the primary keeps the others. Then set it to all replicas.
//   - With Sentinel: go-redis 9.18 or later. Earlier ones ask no other Sentinel if one
//     does not answer in time.
//   - No CLUSTER FAILOVER TAKEOVER while the old primary may be alive.
//   - maxmemory-policy noeviction, or volatile-…, which spares keys without a time to
//     live. Each claim reads it by INFO, and under any other fails with [ErrEvicts].
//     Where INFO is forbidden the Store logs a warning once.
//   - appendonly yes, with appendfsync everysec or always. The guard does not need it,
//     but each loss ends all leases, and costs every process a new claim.
//   - For the user of the client: EVAL, EVALSHA, HDEL, HEXISTS, HGET, HGETALL, HMGET,
//     HSET, EXISTS, TIME and INFO, on the keys that begin with the prefix.
//
// # Requests that are sent again
//
// go-redis sends a command up to three more times if no reply comes. A swap that says that
// it was sent before, and finds its own row, is answered as the first time. One that was sent
// once and finds it is refused, because then a copy of the process has drawn the same nonce.
//
// One that was sent more than once and refused at last may have been done before. The error
// then says this, and is none of those that mean "not done".
//
// # Keys
//
// The default prefix is snowkey. The hash snowkey:{shop} has the layout and, for each
// datacenter, the number of rows that were made. The hash snowkey:{shop}:3 has the rows
// of datacenter 3, one field per worker. The braces keep a namespace on one server of a
// cluster. A row is epoch,owner,nonce,until,renewals,before,holder: see [leasestore.Row];
// before is until as the last write found it. All numbers are below 2^51 in size. Other
// numbers are refused. Nothing that is written is computed in Lua, whose numbers are doubles. What does not fit together is refused with [ErrDamaged], and left as
// it is. A renewal of such a row is a *leasestore.LostError too, and the lease takes another.
//
// A claim looks at 32 random rows. If none of them is free it looks at all, in the same
// script. This takes about 2 ms for 1,024 rows and 150 ms for 65,536. The server does
// nothing else meanwhile. If all are held it reads them too, for the error that says when
// the first is free. Give a large space more rows than it will need.
//
// To remove a namespace, stop all its processes, wait until every limit has passed, and
// delete its keys together.
package redislease
