package filesystem

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// IsMountPoint reports whether something is mounted at path itself, and not at a folder
// above it. Without /proc nothing tells.
//
// The number of the file system does not tell: that of a bind mount is its source's.
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

// mountedAt reports whether a table of mounts, as in proc(5), has the path. Its fifth
// column is the mount point.
func mountedAt(table, path string) bool {
	for line := range strings.Lines(table) {
		if columns := strings.Fields(line); len(columns) > 4 && unescape.Replace(columns[4]) == path {
			return true
		}
	}
	return false
}
