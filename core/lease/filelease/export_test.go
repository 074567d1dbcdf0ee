package filelease

import (
	"os"
	"testing"

	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// SetUntil writes a limit into the slot file at path, by hand.
func SetUntil(t *testing.T, path string, until leasestore.Millis) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, slotSize)
	if _, err := f.ReadAt(b, 0); err != nil {
		t.Fatal(err)
	}
	r, ok := newest(b)
	if !ok {
		t.Fatalf("%s has no valid record", path)
	}
	r.row.Until = until
	one, err := r.encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(one, r.place()); err != nil {
		t.Fatal(err)
	}
}
