package filesystem

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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

// IsMountPoint reports whether path itself is a mount point, rather than a folder above it. Without
// /proc it returns false.
//
// Comparing device numbers would not do, because a bind mount has the number of its source.
func IsMountPoint(path string) (bool, error) {
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return false, err
	}
	table, err := os.ReadFile("/proc/self/mountinfo")
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return false, nil
	}
	return mountedAt(string(table), resolved), err
}

// unescape undoes how the kernel writes a path in a column.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\043`, "#", `\134`, `\`)

// mountedAt reports whether path is a mount point in a table as described in proc(5), whose fifth
// column is the mount point.
func mountedAt(table, path string) bool {
	for line := range strings.Lines(table) {
		if columns := strings.Fields(line); len(columns) > 4 && unescape.Replace(columns[4]) == path {
			return true
		}
	}
	return false
}
