// Package sqlitetest is for tests that write rows to SQLite: a folder where that is fast,
// and connections that are watched and fail when told.
package sqlitetest

import (
	"os"
	"testing"
)

// Folder returns a folder that is removed at the end of the test. On Linux it is in
// memory. A sync costs nothing there, and these tests are about what is sent.
func Folder(t testing.TB) string {
	dir, err := os.MkdirTemp("/dev/shm", "snowkey-*") //nolint:usetesting // that is where memory is
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}
