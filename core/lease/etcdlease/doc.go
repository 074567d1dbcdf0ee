// Package etcdlease keeps the leases of worker numbers in etcd 3.4 or later.
//
//	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, TLS: tlsConfig})
//	…
//	store, err := etcdlease.New(client, etcdlease.Config{TLS: tlsConfig})
//	…
//	l, err := lease.Acquire(ctx, store, lease.Config{Namespace: "shop"})
//
// Use it where all processes share etcd anyway. With a SQL database use package sqllease,
// which needs no further server.
//
// # Guarantees
//
// A [Store] keeps the contract of [leasestore.Store].
//
//   - Each operation reads a row and writes it in a transaction that requires the key to
//     have the revision and value that were read, and the namespace to have the layout. A
//     write that arrives late therefore overwrites nothing newer.
//   - Reads are linearizable, so a lease is reported lost only if the whole cluster has
//     the row so.
//   - etcd acknowledges a write once a majority has it on disk, so this store loses no
//     writes and needs no loss guard.
//   - The row alone says who holds it and until when. etcd's own leases, with their time
//     to live, and its watches and locks are not used.
//   - A write that reaches the servers twice takes effect once. The second is refused, or
//     its outcome is reported as unknown, because a copy of the process may have sent it.
//   - A call returns when ctx ends, and leaves nothing behind. No error contains a
//     password.
//
// # Conditions
//
//   - A majority of the servers is up. Without one operations fail, while leases continue
//     with what they have reserved.
//   - Servers sync their writes. With --unsafe-no-fsync, or on a disk in memory, etcd
//     forgets writes when machines lose power; turn on lease.Config.LossGuard. After a
//     snapshot is restored, call [lease.Fence].
//   - No one deletes or changes keys below the prefix. A deleted row is never made again,
//     and its holder is told. Deleting all keys of a namespace is equivalent to restoring
//     the snapshot of an empty cluster.
//   - Space is left. etcd keeps the old value of each write until it is compacted, so
//     without --auto-compaction-retention it eventually reaches its quota, and all
//     operations that write fail with [ErrReadOnly].
//   - --max-txn-ops is 128, its default, or more.
//
// # The clock
//
// Takeovers go by the servers' clock, which is read to the second from the Date header of
// their HTTP answers. A process whose own clock is wrong cannot claim. The request for
// /version goes to all endpoints of the client, directly and without a password. Set
// Config.TLS if the servers use TLS, and Config.Clock if the endpoints do not serve HTTP,
// as with --listen-client-http-urls, a proxy or a socket. Uniqueness does not depend on
// any clock.
//
// # Keys
//
//	snowkey/shop/layout       "epoch 2025-01-01…"
//	snowkey/shop/3/space      {"workers":1024}
//	snowkey/shop/3/07/fresh   [71,135,199]
//	snowkey/shop/3/07/7       {"worker":7,"epoch":3,"owner":"…","nonce":"…","until":1735689600000,…}
//	snowkey/shop/past/3/7/0000000000000000003   the record of the claim with epoch 3
//
// Worker 7 of datacenter 3 is in block 7, with all workers whose number modulo 64 is 7. The
// key fresh lists the workers of the block that have no key of their own yet, since no claim has
// taken them, so one transaction of at most 66 keys makes all rows of a space. The
// client's user needs to read and write the keys that begin with the prefix and a slash.
//
// A claim takes two round trips: it reads about 64 rows while it asks for the time, and
// writes one, with its record; those of more than 300 epochs ago are deleted. If none of these
// is free it reads all. The first claim in a block makes keys for up to 63 more rows. A renewal
// and a release take two round trips as well.
//
// This package is experimental.
package etcdlease
