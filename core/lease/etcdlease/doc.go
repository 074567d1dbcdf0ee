// Package etcdlease keeps the leases of worker numbers in etcd 3.4 or later.
//
//	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, TLS: tlsConfig})
//	…
//	store, err := etcdlease.New(client, etcdlease.Config{TLS: tlsConfig})
//	…
//	l, err := lease.Acquire(ctx, store, lease.Config{Namespace: "shop"})
//
// Use it where all processes share etcd anyway. With a SQL database use package sqllease:
// it needs no further server.
//
// # What is guaranteed
//
// A [Store] keeps the contract of [leasestore.Store].
//
//   - Each operation reads a row, and writes it in a transaction that requires the key to
//     have the revision and the value that were read, and the namespace to have the layout.
//     So a write that arrives late changes nothing that was written since.
//   - Reads are linearizable. A lease is called lost only if the row is so for the whole
//     cluster.
//   - etcd answers a write when a majority has it on disk, so this store loses no writes
//     and needs no loss guard.
//   - Leases of etcd, their time to live, watches and locks have no part in it. The row
//     says who has it and until when.
//   - A write that reaches the servers twice is done once. The second is refused, or its
//     outcome is unknown, since a copy of the process may have sent it.
//   - A call gives up when ctx ends, and leaves nothing behind. No error contains a
//     password.
//
// # Under which conditions, and what happens without
//
//   - A majority of the servers is up. Without one, operations fail. Leases go on with
//     what they have reserved.
//   - Servers write to their disks. With --unsafe-no-fsync, or on a disk in memory, etcd
//     forgets writes when machines lose power: turn lease.Config.LossGuard on. After a
//     snapshot was restored, call [lease.Fence].
//   - Nobody deletes or changes keys below the prefix. A row that was deleted is never made
//     again, and its holder is told. If all keys of a namespace are deleted, that is as a
//     snapshot of an empty cluster.
//   - Space is left. etcd keeps the old value of each write until it is told to compact.
//     Set --auto-compaction-retention. Without it the quota is used up some day, and all
//     operations that write fail with [ErrReadOnly].
//   - --max-txn-ops is 128, its default, or more.
//
// # The clock
//
// Takeovers go by the clock of the servers, as the Date of their HTTP shows it, to the
// second. A process whose own clock is wrong cannot claim. The request goes to /version of
// all endpoints of the client, directly and without a password. If the servers use TLS,
// give Config.TLS. If the endpoints do not serve HTTP, as with --listen-client-http-urls,
// a proxy or a socket, give Config.Clock. Uniqueness does not depend on any clock.
//
// # Keys
//
//	snowkey/shop/layout       "epoch 2025-01-01…"
//	snowkey/shop/3/space      {"workers":1024}
//	snowkey/shop/3/07/fresh   [71,135,199]
//	snowkey/shop/3/07/7       {"worker":7,"epoch":3,"owner":"…","nonce":"…","until":1735689600000,…}
//
// Worker 7 of datacenter 3 is in block 7, as are all whose numbers leave this rest when
// divided by 64. The list has the workers of the block that were never claimed. Their
// rows have no key yet. So the rows of a space are made in one transaction, of at most 66
// keys. A user needs to read and write the keys that begin with the prefix and a slash.
//
// A claim reads about 64 rows, asks for the time meanwhile, and writes one: two round trips.
// If none of these is free it reads all. A renewal and a release take two as well.
package etcdlease
