// Package filelease keeps leases in files, for the processes of one host, without a
// server. It also makes a fixed worker number safe across restarts; see the example.
//
//	store, err := filelease.New("/var/lib/orders", filelease.Config{})
//	…
//	l, err := lease.Acquire(ctx, store, lease.Config{Namespace: "orders", Window: 4 * time.Second})
//
// # What is guaranteed
//
//   - All that [leasestore.Store] asks for. An operation that has returned nil is on the
//     disk. It survives any kill of the process, and any failure of the power.
//   - A power failure during an operation leaves the row as it was before or as it is
//     after, and the slot in use. So does a kill.
//   - What is not known is refused. A slot file that is cut off, has no valid record,
//     or was copied from another place is an error that matches [ErrDamaged]. After a
//     write or a sync has failed no process uses the slot any more: [ErrPoisoned]. A
//     disk that is full, and takes nothing of a write, is an error that passes.
//   - An operation ends soon after its context has, even if the disk hangs. It then
//     says nothing about the outcome, like every error that is not one of the refusals
//     of package lease.
//   - The row of a process that was killed is free at once if its limit is no further
//     ahead than the permitted skew (5 s unless set). With a Window shorter than that
//     it always is. Otherwise it is free as soon as the limit has come that near. No ID
//     repeats: the next range begins at the limit.
//
// # Under which conditions
//
//   - One host, one kernel. Containers of one host may share a directory by a bind
//     mount. On Linux a network or cluster file system is refused. So is FUSE, which
//     may be one, unless Config.AllowFUSE is set. Elsewhere nothing tells. Virtual
//     machines that share a directory of their host are several hosts: what they lock,
//     others do not see. If hosts share a directory nonetheless, IDs may repeat.
//   - The directory lasts, and nobody puts back an older copy of it. An empty directory
//     is a store in which nothing was ever reserved. It may become empty because it is
//     emptied, is in memory, or is in the layer of a container that is made anew. IDs
//     may then repeat if the clock has stepped back meanwhile, or processes still run.
//     New warns of tmpfs and overlay. If the directory itself is replaced while a
//     process runs, its lease is lost: [ErrReplaced].
//   - A slot file, or a whole space, that is missing though it was claimed does less
//     harm. It is made again with a limit of now + window + the permitted skew, or the
//     guard. That is later than all that was forgotten, on three conditions. No window
//     was longer. No clock has stepped back by more than the skew. No generator ran
//     ahead of its clock by more than the skew. If one of these fails, IDs may repeat.
//     See [Store.Claim].
//   - The disk keeps what it has said it has written (fsync). A power failure spoils no
//     other block than those that were being written.
//   - A process is not killed between a sync that has failed and the note of that, with
//     a power failure to follow. If it is, the next process may take for written what
//     is not.
//   - The file system has flock: Linux, macOS, the BSDs and illumos. On others New
//     returns an error that matches [errors.ErrUnsupported].
//
// The store's clock is the clock of the host, so there is hardly any skew. Only
// nearness to the time depends on it.
//
// # Files
//
// Each row has a file of its own, of 8 KiB: a slot. It is never renamed or removed once
// it can be claimed. An operation locks it (flock), reads it, syncs, writes one record
// and syncs again. The first sync makes sure that the record before is on the disk.
// There are two records, each with a number, a checksum and the names of its space and
// worker. They are written in turn; the newest valid one counts. So processes are in
// each other's way only at the same row. One that is stopped in the middle of an
// operation blocks no other's row.
//
// The first claim of a row makes its file. So a first start takes 8 syncs, and each
// later claim of a row that was never claimed 6. With a window of 4 s a disk may take
// 100 ms for each. An attempt that was given up leaves what it has made, and the next
// goes on from there. The umask and the mode of the directory decide who may read and
// write the files. Processes of several users need a umask that lets all of them write.
//
// An empty file beside the slot, "7.claimed", says that row 7 was claimed. If the slot
// is gone it is missing, and not new. Another, "made-…" in the directory of the Store,
// says the same of each space. If such a file is removed together with its slot or
// space, or the whole directory is emptied, nothing can tell.
//
// To have a worker number start anew, stop what uses the directory and use another one.
// For a single file, see [Store.Claim] and Config.AllowFreshState.
package filelease
