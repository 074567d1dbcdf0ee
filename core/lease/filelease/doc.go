// Package filelease keeps leases in files, for the processes of one host, without a
// server. It also makes a fixed worker number safe across restarts; see the example.
//
//	store, err := filelease.New("/var/lib/orders", filelease.Config{})
//	…
//	l, err := lease.Acquire(ctx, store, lease.Config{Namespace: "orders", Window: 4 * time.Second})
//
// # Guarantees
//
//   - A [Store] keeps the contract of [leasestore.Store]. An operation that has returned nil
//     is on disk and survives a kill of the process and a power failure. A kill or a
//     power failure during an operation leaves the row either as it was before or as it
//     is after, and the slot usable.
//   - A slot file that is truncated, has no valid record, or was copied from elsewhere is
//     refused with [ErrDamaged]. After a failed write or sync no process uses the slot
//     again, see [ErrPoisoned]. A full disk that takes nothing of a write is a temporary
//     error.
//   - An operation returns soon after its context ends, even if the disk hangs. Its error
//     then leaves the outcome open, like every error that is not one of package lease's
//     refusals.
//   - The row of a killed process is free as soon as its limit is no further ahead than
//     the permitted skew (5 s by default), which is at once if the Window is shorter than
//     that. No ID repeats, because the next range begins at the limit.
//
// # Conditions
//
//   - The directory is used by one host, which means one kernel: containers of a host may
//     share it by a bind mount, but virtual machines may not, because they do not see each
//     other's locks. If several hosts share it, IDs may repeat. On Linux, [New] refuses
//     network and cluster file systems, and FUSE unless Config.AllowFUSE is set; other
//     systems offer no way to tell.
//   - The directory lasts, and no older copy of it is ever restored. An empty directory is
//     a store in which nothing was reserved. If it was emptied, is in memory, or belongs to
//     the layer of a container that is created anew, IDs may repeat when the clock has
//     stepped back meanwhile or processes still run. New warns of tmpfs and overlay. A
//     process whose directory is replaced while it runs loses its lease with [ErrReplaced].
//   - A single slot file or space that goes missing is made again with a limit later than
//     all that it may have reserved, under the three conditions that [Store.Claim] lists.
//     If one of them fails, IDs may repeat.
//   - The disk keeps what it has synced, and a power failure damages no blocks other than
//     those being written.
//   - No process is killed between a failed sync and the mark that records it, with a power
//     failure to follow: the next process could take for written what is not.
//   - The system has flock, as Linux, macOS, the BSDs and illumos do. Elsewhere New returns
//     an error that matches [errors.ErrUnsupported].
//
// The store's clock is the host's, so there is hardly any skew. Only the nearness of IDs to
// the time depends on it.
//
// # Files
//
// Each row has a slot, a file of 8 KiB that is never renamed or removed once it can be
// claimed. It holds two records, written in turn, each with a number, a checksum and the
// names of its space and worker; the newest valid one counts. An operation locks the file
// (flock), reads it, syncs to make sure that the previous record is on disk, writes one
// record and syncs again. Processes therefore contend only for the same row, and one that
// is stopped during an operation blocks no other row.
//
// The first claim of a row makes its file, which takes 6 syncs, or 8 if it makes the space
// as well; with a window of 4 s a disk may take 100 ms for each. An attempt that was
// abandoned leaves what it has made, and the next one continues from there. The umask and
// the mode of the directory decide who may read and write the files, so processes of
// several users need a umask that lets all of them write.
//
// The empty file "7.claimed" beside a slot records that row 7 was claimed, which tells a
// missing slot from a new one. A file "made-…" in the Store's directory does the same for
// each space. The loss goes unnoticed if such a file is removed together with its slot or
// space, or if the whole directory is emptied.
//
// The file "7.past" has a line for each of the last hundred claims of row 7. It is written before a
// claim returns, but not synced: after a power failure the last line may be missing, and the slot
// itself tells who had the row.
//
// To start a worker number anew, stop what uses the directory and use another one. For a
// single file, see [Store.Claim] and Config.AllowFreshState.
package filelease
