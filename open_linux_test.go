//go:build cgo

package snowkey_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/snowkey/snowkey"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/proof/servers/filesystemtest"
)

// As by docker run -v shop.db:/data/shop.db. A folder that is mounted is one folder.
func TestOpenRefusesAFileThatIsMountedItself(t *testing.T) {
	dir := t.TempDir()
	source, target, folder := filepath.Join(dir, "shop.db"), filepath.Join(dir, "mounted.db"), filepath.Join(dir, "folder")
	db := openSQLite(t, source)
	if err := errors.Join(os.WriteFile(target, nil, 0o666), os.Mkdir(folder, 0o777)); err != nil {
		t.Fatal(err)
	}
	filesystemtest.Bind(t, source, target)
	filesystemtest.Bind(t, dir, folder)
	if err := refused(t, openSQLite(t, target), snowkey.Config{}, target, "the file itself is mounted"); !errors.Is(err, sqlstore.ErrNotDurable) {
		t.Errorf("Open error = %v; want sqlstore.ErrNotDurable", err)
	}
	a, b := open(t, db, snowkey.Config{}), open(t, openSQLite(t, filepath.Join(folder, "shop.db")), snowkey.Config{})
	if workerOf(t, a) == workerOf(t, b) {
		t.Errorf("two generators of one database have the worker number %d", workerOf(t, a))
	}
}
