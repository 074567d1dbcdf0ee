package filesystem

import (
	"os"
	"syscall"
)

// kind returns the kind of the file system of path, as statfs(2) numbers them.
func kind(path string) (uint32, error) {
	var st syscall.Statfs_t
	for {
		err := syscall.Statfs(path, &st)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return 0, &os.PathError{Op: "statfs", Path: path, Err: err}
		}
		return uint32(st.Type), nil
	}
}
