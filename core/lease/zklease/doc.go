// Package zklease keeps the rows of worker leases in ZooKeeper. It is a [leasestore.Store] for
// programs that run a ZooKeeper ensemble already.
//
//	conn, _, err := zk.Connect(servers, 5*time.Second)
//	// ...
//	store, err := zklease.New(conn, zklease.Config{Prefix: "/snowkey"})
//
// Choose a session timeout of at most a tenth of lease.Config.Window, because the client waits
// up to 6.7 times as long for a server that accepts a connection and then stays silent.
//
// # What is guaranteed
//
//   - A row is one persistent znode, and every write of it is a transaction that names the
//     version that was read. Of two writers that have read the same row one loses, and a write
//     that arrives late, even by minutes, changes nothing that was written since.
//   - A row says itself who holds it. Ephemeral znodes and watches have no part in it, and a
//     session that expires costs nothing but the connection.
//   - A majority of the servers has on disk what was acknowledged. The store does not lose
//     writes and needs no loss guard.
//   - The refusals of package lease are certain. Before a lease is called lost, the server on
//     the connection has caught up with the leader, and the row was read in the same session.
//   - Any other error leaves the outcome open: a connection that is lost, a session that has
//     expired, a context that has ended. The write may have been done, and a request that
//     waits in the client for a new connection may yet be sent. The errors match those of
//     package zk and of package context.
//
// # Under which conditions, and what happens without
//
//   - A majority of the servers is up and connected. Otherwise calls wait until their context
//     ends or the client gives up, and leases go on with the time that they have reserved.
//   - Servers keep their disks and write them through (forceSync, ZooKeeper's default). One of
//     three may lose its disk if it is started anew while the others serve; earlier it could
//     form a majority with one that lags. An ensemble that is restored from a backup, or
//     started anew on empty disks, has forgotten what was reserved, and IDs may repeat unless
//     the loss guard of package lease is on.
//   - Only this package changes znodes below the prefix, and nothing deletes them. A row that
//     is missing is never made again, and its holder is told that it is lost. Deleting a whole
//     datacenter or namespace has the effect of empty disks. Config.ACL keeps strangers out.
//   - The clock of the leading server is right to within the permitted skew. Uniqueness does
//     not depend on it.
//
// # In ZooKeeper
//
//	<Prefix>/@clock                              written for its time stamp
//	<Prefix>/<namespace>                         v1 layout="…"
//	<Prefix>/<namespace>/<datacenter>            v1 workers=1024 state=complete
//	<Prefix>/<namespace>/<datacenter>/<worker>   v1 worker=7 epoch=3 owner="…" nonce="…" until=1735689600000 renewals=12 holder="…"
//	<Prefix>/<namespace>/<datacenter>/<worker>/3 the record of the claim with epoch 3
//
// A datacenter has as many rows as its first claim asked for, and a later claim with more
// workers finds those. The namespaces "." and "..", which ZooKeeper refuses as names, become
// "%2E" and "%2E%2E".
//
// A claim takes two round trips if one of the eight rows that it reads first is free;
// otherwise it reads more, 256 in a round trip, until one is. A renewal and a release take
// three. Each of them writes twice, the clock and the row. A claim makes its record in the
// transaction that writes the row; one in 25 deletes the oldest of more than 125 records, for which
// no call waits. The first claims in a datacenter
// make its znodes, 128 in each transaction.
//
// This package is experimental.
package zklease
