//go:build unix

package filesystem

import (
	"io/fs"
	"syscall"
)

// Names returns how many names the file of info has, by hard links. It is 1 where the
// system does not say.
func Names(info fs.FileInfo) uint64 {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 1
	}
	return uint64(st.Nlink) //nolint:unconvert // its width depends on the system
}
