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
	return identityOf(st), true
}

func identityOf(st *syscall.Stat_t) Identity {
	return Identity{uint64(st.Dev), uint64(st.Ino)} //nolint:unconvert // their widths depend on the system
}

// IsOpen reports whether this process has the file of an identity open, by whatever package. It asks
// the kernel for each descriptor in turn, up to the one of the file.
func IsOpen(id Identity) bool {
	const most = 1 << 20 // a limit may be infinite; more than these need another limit of the kernel
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		limit.Cur = most
	}
	for fd := range int(min(uint64(limit.Cur), most)) { //nolint:unconvert // its type depends on the system
		var st syscall.Stat_t
		if syscall.Fstat(fd, &st) == nil && id == identityOf(&st) {
			return true
		}
	}
	return false
}
