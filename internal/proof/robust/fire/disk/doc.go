// Package disk is a file system in memory whose power can be cut. It keeps what programs read
// apart from what was synced. A power cut leaves what was synced and, at random, some of the
// rest.
//
// # What a power cut may do
//
//   - Each sector of a file, of 512 or 4,096 bytes, is as it was when the file was last synced,
//     or as any one of the changes since has left it. A write may therefore be lost, torn, or
//     on the disk before an older one, and a sector that was being written may hold garbage.
//   - The length of a file is the length after any one of those changes. Sectors that were not
//     written then read as zeros. A truncation that is lost leaves the sectors that it had
//     freed unchanged.
//   - Any creation, removal or rename in a directory since its last fsync may be lost, a rename
//     either as a whole or not at all. A lost operation takes the later ones on the same names
//     and files with it, as in every journal.
//   - An fsync of a file does not cover its name, and an fsync of a directory does not cover
//     the files in it.
//   - An fsync counts once it has returned, and covers what was written before it began.
//
// This is what POSIX permits, and more than ext4 or XFS do. Owners, modes and times are not
// kept, and there are no links.
//
// A [Mount] is served by FUSE, so programs lose nothing that the kernel still has: it passes
// each write on at once, except writes to mapped memory. Locks are the kernel's own.
package disk
