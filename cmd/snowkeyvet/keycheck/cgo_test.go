//go:build cgo

package keycheck_test

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/snowkey/snowkey/cmd/snowkeyvet/keycheck"
)

func TestFilesThatCallCAreNotTakenForGenerated(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), keycheck.Analyzer, "./thumb")
}

// With -trimpath, the second checkout gets cgo's copy of the first from the build cache. It names a
// file that is gone.
func TestFilesThatCallCAreNotTakenForGeneratedInASecondCheckout(t *testing.T) {
	t.Setenv("GOWORK", "off")
	t.Setenv("GOFLAGS", "-trimpath")
	for range 2 {
		dir := t.TempDir()
		if err := os.CopyFS(filepath.Join(dir, "thumb"), os.DirFS("testdata/thumb")); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module checkout\n\ngo 1.25.0\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		analysistest.Run(t, dir, keycheck.Analyzer, "./thumb")
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
}
