//go:build cgo

package move_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/snowkey/snowkey/cmd/snowkeyvet/move"
)

// With -trimpath, the second checkout would get cgo's copy of the first from the build cache.
func TestMoveEditsFilesThatCallC(t *testing.T) {
	for range 2 {
		dir := copyOf(t, "thumb")
		t.Setenv("GOFLAGS", "-mod=mod -trimpath")
		p, err := move.Load(dir, "./...")
		if err != nil {
			t.Fatal(err)
		}
		all := p.Findings()
		if len(all) == 0 || all[0].Message != "C.int of a key loses digits: keys need 48 to 63 bits; make it 64 bits wide" {
			t.Errorf("Findings() = %v; want C.int of a key first", all)
		}
		if _, err := p.Fix(all); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, "thumb.go"))
		if err != nil {
			t.Fatal(err)
		}
		golden(t, "thumb.go", string(text))
	}
}
