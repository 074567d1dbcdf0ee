//go:build cgo

package move_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/snowkey/snowkey/cmd/snowkeyvet/move"
)

func TestMoveEditsFilesThatCallC(t *testing.T) {
	dir := copyOf(t, "thumb")
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
