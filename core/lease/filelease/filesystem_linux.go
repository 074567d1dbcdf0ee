package filelease

import (
	"os"
	"syscall"
)

// filesystem returns the kind of the file system that dir is on, as statfs(2)
// numbers them.
func filesystem(dir string) (uint32, error) {
	var st syscall.Statfs_t
	for {
		err := syscall.Statfs(dir, &st)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return 0, &os.PathError{Op: "statfs", Path: dir, Err: err}
		}
		return uint32(st.Type), nil
	}
}
