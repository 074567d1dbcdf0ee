//go:build unix

package filesystem

import (
	"io/fs"
	"syscall"
)

// Names returns how many names, or hard links, the file of info has, or 1 if that is not known.
func Names(info fs.FileInfo) uint64 {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 1
	}
	return uint64(st.Nlink) //nolint:unconvert // its width depends on the system
}

// An Identity distinguishes a file from all others that exist, whatever their names.
type Identity struct{ device, inode uint64 }

// IdentityOf returns the identity of the file of info, and whether the system has one.
func IdentityOf(info fs.FileInfo) (id Identity, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return Identity{}, false
	}
	return Identity{uint64(st.Dev), uint64(st.Ino)}, true //nolint:unconvert // their widths depend on the system
}
