// Package zklease keeps the rows of worker leases in ZooKeeper: a [lease.Store] for
// programs that run a ZooKeeper ensemble already.
//
//	conn, _, err := zk.Connect(servers, 5*time.Second)
//	// ...
//	store, err := zklease.New(conn, zklease.Config{Base: "/snowkey"})
//
// The timeout of the session should be at most a tenth of lease.Config.Window. The client
// waits up to 6.7 times as long for a server that takes a connection and then is silent.
//
// # What is guaranteed
//
//   - A row is one persistent znode, and every write names the version of the znode
//     that was read. ZooKeeper refuses a write when that version is not the current
//     one. So of two writers that have read the same row one loses. A write that
//     arrives late, even minutes late, changes nothing that has been written since.
//   - No ephemeral znode, no session and no watch has a part in it: the row says who
//     has it. A session that expires costs nothing but the connection.
//   - What was acknowledged is on the disks of a majority of the servers, so this store
//     does not lose writes, and needs no loss guard.
//   - The refusals of package lease are certain. A row is called lost only after
//     ZooKeeper has confirmed, by a transaction, that the row as it was read is the
//     current one.
//   - Any other error says nothing about the outcome: a connection that is lost, a
//     session that has expired, a context that has ended. The write may have been done.
//     A request that waits in the client for a new connection may yet be sent. The
//     errors match those of package zk and of package context.
//
// # Under which conditions, and what happens without
//
//   - A majority of the servers is up and connected. Without one, calls wait until
//     their context ends or the client gives up; leases go on with what they have
//     reserved.
//   - Servers keep their disks, and write them through (forceSync, ZooKeeper's
//     default). One of three may lose its disk, if it is started anew when the others
//     serve. Before that it could form a majority with one that is behind. An ensemble that is restored from a backup, or started anew on empty
//     disks, has forgotten what was reserved. IDs may then repeat unless the loss guard
//     of package lease is on.
//   - Nobody deletes or changes znodes below Base. A row that is missing is lost for
//     good, and reported as such to its holder; it is never made again. If a whole
//     datacenter or namespace is deleted, that is as an ensemble on empty disks.
//     Config.ACL keeps strangers away.
//   - The clock of the leading server is right to within the permitted skew. Uniqueness
//     does not depend on it.
//
// # In ZooKeeper
//
//	<Base>/@clock                              set for the sake of its time
//	<Base>/<namespace>                         v1 layout="…"
//	<Base>/<namespace>/<datacenter>            v1 workers=1024 state=complete
//	<Base>/<namespace>/<datacenter>/<worker>   v1 worker=7 epoch=3 owner="…" nonce="…" until=1735689600000 renewals=12
//
// A datacenter has as many rows as its first claim has asked for. A later claim in a
// space with more workers finds those.
//
// The namespaces "." and "..", which ZooKeeper would not take, become "%2E" and
// "%2E%2E".
//
// A claim takes two round trips if one of the eight rows that it looks at first is
// free. Else it reads further, 256 in a round trip, until one is. A renewal takes two,
// and a release two. Claim and renewal write twice, the row and the clock. The first claims in a
// datacenter make its znodes, 128 in each transaction.
package zklease
