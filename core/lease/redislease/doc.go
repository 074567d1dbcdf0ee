// Package redislease keeps the leases of worker numbers in Redis 5 or later, or in a server that
// runs its scripts, such as Valkey.
//
//	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
//	store, err := redislease.New(client, redislease.Config{})
//	…
//	l, err := lease.Acquire(ctx, store, lease.Config{Namespace: "shop"})
//
// Use it where the processes share Redis anyway. With a SQL database prefer package sqllease,
// which loses no writes and depends on no clock.
//
// # Guarantee
//
// A [Store] keeps the contract of [leasestore.Store], except that Redis may forget a write that it
// has acknowledged. [Store.LosesWrites] says so, which turns the loss guard on.
//
//   - An operation takes two round trips, each a Lua script: one reads rows and the server's
//     clock, the other swaps a row if the whole row and the layout are still what was read.
//   - Each script begins with a write that changes nothing, so that a replica, or a primary that
//     may not write, fails with [ErrReadOnly] instead of answering from old rows.
//   - Rows have no time to live, because the limit in a row is what keeps IDs unique.
//   - A call returns when ctx ends, whatever the client's timeouts are. Its command may still be
//     under way in a goroutine that ends with these timeouts, so do not disable them.
//   - No error contains a password.
//
// # Conditions
//
// FLUSHALL, a restart without the end of the log, and a failover to a replica that lags take the
// rows back to an earlier state. The loss guard of package lease covers that, unless two servers
// accept writes for a namespace at the same time, for longer than the disagreement of the clocks
// leaves of lease.Config.LossGuard.
//
// That condition needs attention: a primary that is cut off from its replicas, but not from
// all clients, goes on renewing leases while the new primary gives their numbers away, and IDs
// repeat in spite of the guard. It must refuse writes, as the settings below make it do. A primary
// that was paused, like a virtual machine, still executes the commands that waited for it before
// it looks at its replicas; a failover during the pause is not covered. Nor is active-active
// replication, and [New] refuses a [redis.Ring] of several servers, because each process would
// decide for itself which of them are up. WAIT does not help: it counts the replicas that have a
// write, not whether one of them is promoted, and the write stays if there are too few.
//
// # Settings
//
//   - Two replicas, with min-replicas-to-write 1 and min-replicas-max-lag 1. With three or more,
//     set the former to half of them, rounded up, or to all of them if Sentinels elsewhere could
//     promote one while the primary keeps the others.
//   - down-after-milliseconds or cluster-node-timeout of 5000 or more, because a primary notices
//     only up to 3 s after the lag that it is alone.
//   - A Sentinel beside each server, a quorum of more than half, and go-redis 9.18 or later, since
//     earlier versions ask no other Sentinel when one does not answer. An old primary that comes
//     back must not be promoted before it has everything that the new one has; Sentinel makes it a
//     replica after about 10 s.
//   - No CLUSTER FAILOVER TAKEOVER while the old primary may be alive.
//   - maxmemory-policy noeviction, or a volatile policy, which spares keys without a time to live.
//     Each claim checks it by INFO and fails with [ErrEvicts] under any other policy; where INFO is
//     forbidden, the Store logs a warning once.
//   - appendonly yes, with appendfsync everysec or always. The guard does not need it, but every
//     loss ends all leases.
//   - For the client's user: EVAL, EVALSHA, HDEL, HEXISTS, HGET, HGETALL, HMGET, HSET, EXISTS, TIME
//     and INFO, on the keys that begin with the prefix, and for records of who had a number LPUSH,
//     LTRIM and LRANGE.
//
// # Requests that are sent again
//
// go-redis sends a command up to three more times when no reply comes. A swap that is marked as
// sent again and finds its own row is answered as the first time. One that was sent only once and
// finds its own row is refused, because a copy of the process must have drawn the same nonce. One
// that was sent again and is refused may have been done, which its error says.
//
// # Keys
//
// The hash snowkey:{shop} has the layout of the namespace shop and the number of rows per
// datacenter, and the hash snowkey:{shop}:3 has the rows of datacenter 3, one field per worker:
// epoch,owner,nonce,until,renewals,before,holder, as in [leasestore.Row], where before is the limit
// that the last write found. The list snowkey:{shop}:3:7 has the records of the last hundred claims
// of worker 7, which the claims' own scripts write. The prefix snowkey is configurable, and the braces keep a namespace
// on one server of a cluster. Numbers of 2^51 or more are refused, and nothing that is written is
// computed in Lua, whose numbers are doubles. Rows that make no sense are refused with
// [ErrDamaged] and left unchanged; a renewal of such a row is a *leasestore.LostError as well.
//
// A claim looks at 32 random rows, and at all of them if none is free, which blocks the server for
// about 2 ms with 1,024 rows and 150 ms with 65,536; give a large space more rows than it needs.
// To remove a namespace, stop its processes, wait until every limit has passed, and delete its
// keys together.
//
// This package is stable.
package redislease
