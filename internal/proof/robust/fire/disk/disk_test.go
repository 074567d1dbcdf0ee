//go:build linux

package disk

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// newDisk mounts a disk. The test reads and writes it by the package os, in the process
// that serves it. That is well as long as nothing is done at the same time.
func newDisk(t *testing.T, c Config) (d *Disk, dir string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: only root may mount")
	}
	if _, err := os.Stat("/dev/fuse"); err != nil {
		t.Skip("SKIPPED: ", err)
	}
	dir = t.TempDir()
	d, err := New(dir, c)
	must(t, err)
	t.Cleanup(func() {
		if err := d.Unmount(); err != nil {
			t.Error(err)
		}
	})
	return d, dir
}

func cutPower(t *testing.T, d *Disk) {
	t.Helper()
	d.Off(0, 0)
	d.Fail()
	if _, err := d.On(); err != nil {
		t.Fatal(err)
	}
}

// put writes a file, and syncs it and its directory if that is wanted.
func put(t *testing.T, path, text string, syncFile, syncDir bool) {
	t.Helper()
	f, err := os.Create(path)
	must(t, err)
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if syncFile {
		must(t, f.Sync())
	}
	must(t, f.Close())
	if !syncDir {
		return
	}
	dir, err := os.Open(filepath.Dir(path))
	must(t, err)
	must(t, dir.Sync())
	must(t, dir.Close())
}

func TestAPowerCutLosesWhatWasNotSyncedThroughTheKernel(t *testing.T) {
	for _, test := range []struct {
		name           string
		config         Config
		file, dir      bool
		there, content bool // afterwards
	}{
		{"synced", Config{LoseAll: true}, true, true, true, true},
		{"file not synced", Config{LoseAll: true}, false, true, true, false},
		{"directory not synced", Config{LoseAll: true}, true, false, false, false},
		{"lies of files", Config{LoseAll: true, LieOfFiles: true}, true, true, true, false},
		{"lies of directories", Config{LoseAll: true, LieOfDirs: true}, true, true, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			d, dir := newDisk(t, test.config)
			path := filepath.Join(dir, "f")
			put(t, path, "hello", test.file, test.dir)
			if got, err := os.ReadFile(path); err != nil || string(got) != "hello" {
				t.Fatalf("ReadFile before the cut = %q, %v; want hello", got, err)
			}
			cutPower(t, d)
			got, err := os.ReadFile(path)
			if there := err == nil; there != test.there || bytes.Equal(got, []byte("hello")) != test.content {
				t.Errorf("ReadFile after the cut = %q, %v; want it there %t, with its content %t", got, err, test.there, test.content)
			}
		})
	}
}
