// Package filesystemtest puts files on other paths and file systems, for tests.
package filesystemtest

import (
	"strings"
	"testing"

	"github.com/snowkey/snowkey/internal/base/filesystem"
)

// On takes a folder for one on a file system of a kind, until the test ends. It must not run
// beside other tests.
func On(t testing.TB, kind uint32, folder string) {
	before := filesystem.Kind
	t.Cleanup(func() { filesystem.Kind = before })
	filesystem.Kind = func(path string) (uint32, error) {
		if strings.HasPrefix(path, folder) {
			return kind, nil
		}
		return before(path)
	}
}
