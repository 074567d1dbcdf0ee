package filesystem_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/snowkey/snowkey/internal/base/filesystem"
	"github.com/snowkey/snowkey/internal/proof/servers/filesystemtest"
)

// The kernel escapes some characters of a path.
func TestAFileThatIsMountedIsToldFromOneInAMountedFolder(t *testing.T) {
	for _, name := range []string{"plain.db", "with space.db", `back\slash.db`, `\040.db`, "new\nline.db", "tab\t.db", "#.db", "ä.db"} {
		dir := t.TempDir()
		source, folder := filepath.Join(dir, "source"), filepath.Join(dir, "folder")
		for _, f := range []string{source, folder} {
			if err := os.Mkdir(f, 0o777); err != nil {
				t.Fatal(err)
			}
		}
		for _, f := range []string{filepath.Join(source, name), filepath.Join(dir, name)} {
			if err := os.WriteFile(f, nil, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		filesystemtest.Bind(t, source, folder)
		filesystemtest.Bind(t, filepath.Join(source, name), filepath.Join(dir, name))
		link := filepath.Join(dir, "link")
		if err := os.Symlink(name, link); err != nil {
			t.Fatal(err)
		}
		for path, want := range map[string]bool{
			filepath.Join(source, name): false,
			filepath.Join(folder, name): false,
			filepath.Join(dir, name):    true,
			link:                        true,
			folder:                      true,
		} {
			if got, err := filesystem.IsMountPoint(path); got != want || err != nil {
				t.Errorf("IsMountPoint(%q) = %v, %v; want %v", path, got, err, want)
			}
		}
	}
	if _, err := filesystem.IsMountPoint(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("IsMountPoint of what is not there = nil; want an error")
	}
}
