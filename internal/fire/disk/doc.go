// Package disk is a file system in memory whose power can be cut. It keeps apart what
// programs read and what was synced. A power cut leaves what was synced, and at random
// some of the rest.
//
// # What a power cut may do
//
//   - A file has changes since its last fsync. Each sector, of 512 or 4,096 bytes, is as
//     it was after any one of them, or as it was synced. So a write may be lost, torn,
//     or on the disk before an older one. A sector that was being written may hold
//     garbage.
//   - The length of a file is as it was after any one of those changes. Sectors that
//     were not written then read as zeros. A truncation that is lost leaves the sectors
//     that it had freed as they were.
//   - A directory has creations, removals and renames since its last fsync. Any of them
//     may be lost. A rename is lost as a whole, or not at all. What is lost takes with it
//     the later operations on the same names and files, as in every journal.
//   - An fsync of a file says nothing of its name. An fsync of a directory says nothing
//     of the files in it.
//   - An fsync counts once it has returned, and for what was written before it began.
//
// This is what POSIX permits, and more than ext4 or XFS do. Owners, modes and times are
// not kept. There are no links.
//
// A [Mount] is served by FUSE, so programs lose nothing that the kernel still has: it
// passes each write on at once, but those to mapped memory. Locks are the kernel's own.
package disk
