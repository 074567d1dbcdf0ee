//go:build cgo && linux

package sqlrow

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/snowkey/snowkey/internal/proof/servers/filesystemtest"
)

// As by "docker run -v ./app.db:/data/app.db". A folder that is mounted has one log, under
// any number of paths.
func TestAFileThatIsMountedItselfIsRefused(t *testing.T) {
	dir := t.TempDir()
	source, target := filepath.Join(dir, "counter.db"), filepath.Join(dir, "mounted file.db")
	folder := filepath.Join(dir, "folder")
	makeFile(t, source, "WAL")
	if err := errors.Join(os.WriteFile(target, nil, 0o666), os.Mkdir(folder, 0o777)); err != nil {
		t.Fatal(err)
	}
	filesystemtest.Bind(t, source, target)
	filesystemtest.Bind(t, dir, folder)
	for i, path := range []string{filepath.Join(folder, "counter.db"), target} { // a process has the index beside the first
		refused := i > 0
		n, err := bump(t.Context(), openCounter(t, path))
		if refused != errors.Is(err, ErrNotDurable) || refused == (err == nil) || refused && !strings.Contains(err.Error(), path+": the file itself is mounted") {
			t.Errorf("Do() in %s = %d, %v; want ErrNotDurable %v, with the file and the way out", path, n, err, refused)
		}
	}
}

// SQLite has one index of a file in a process, beside the path that was opened first. Other processes
// have theirs beside the other path, and so no lock in common with this one.
func TestAPathIsRefusedIfTheProcessHasTheIndexBesideAnother(t *testing.T) {
	dir := t.TempDir()
	path, mounted := filepath.Join(dir, "counter.db"), filepath.Join(dir, "mounted.db")
	makeFile(t, path, "WAL")
	if err := os.WriteFile(mounted, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	filesystemtest.Bind(t, path, mounted)
	if _, err := openSQLite(t, "file:"+mounted).ExecContext(t.Context(), "UPDATE t SET n = n"); err != nil {
		t.Fatal(err)
	}
	if n, err := bump(t.Context(), openCounter(t, path)); n != 0 || !errors.Is(err, ErrReplaced) {
		t.Errorf("Do() = %d, %v; want ErrReplaced", n, err)
	}
}
