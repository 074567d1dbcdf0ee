//go:build unix && !aix && (!solaris || illumos)

package filesystem

import (
	"os"
	"path/filepath"
	"testing"
)

func TestAFolderIsLockedByOneCallerAtATime(t *testing.T) {
	folder := t.TempDir()
	for range 2 {
		unlock, err := TryLock(folder)
		if unlock == nil || err != nil {
			t.Fatalf("TryLock() = locked by another %v, error %v; want the lock", unlock == nil, err)
		}
		if second, err := TryLock(folder); second != nil || err != nil {
			t.Errorf("TryLock() of what is locked = the lock %v, error %v; want neither", second != nil, err)
		}
		unlock()
	}
	if unlock, err := TryLock(filepath.Join(folder, "none")); unlock != nil || err == nil {
		t.Errorf("TryLock() of what is not there = the lock %v, error %v; want an error", unlock != nil, err)
	}
}

func TestAFileIsOpenUntilItIsClosed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	id, ok := IdentityOf(info)
	if !ok || !IsOpen(id) {
		t.Errorf("IdentityOf() = %v, %v, open %v; want an open file", id, ok, IsOpen(id))
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if IsOpen(id) {
		t.Error("IsOpen() of a closed file = true; want false")
	}
}
