package move_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/snowkey/snowkey/cmd/snowkeyvet/move"
)

var update = flag.Bool("update", false, "write testdata/*.golden")

// copyShop returns a folder with the program of testdata.
func copyShop(t *testing.T) string {
	t.Helper()
	t.Setenv("GOWORK", "off")
	t.Setenv("GOFLAGS", "-mod=mod")
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/shop")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// golden compares a text with a file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	name = filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s = %s\nwant %s", name, got, want)
	}
}

func TestMoveTurnsKeysInAllPackagesAndNoOtherNumber(t *testing.T) {
	dir := copyShop(t)
	p, err := move.Load(dir, "./...")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Fix(p.Findings()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"model/model.go", "api/api.go", "api/api_test.go"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		golden(t, filepath.Base(name), string(text))
	}
}

func TestMovePrintsWhatItLeaves(t *testing.T) {
	dir := copyShop(t)
	p, err := move.Load(dir, "./...")
	if err != nil {
		t.Fatal(err)
	}
	var left strings.Builder
	for _, f := range p.Findings() {
		if f.Category == "left" {
			at := p.Fset.Position(f.Pos)
			fmt.Fprintf(&left, "%s:%d: %s\n", filepath.Base(at.Filename), at.Line, f.Message)
		}
	}
	golden(t, "left", left.String())
}

func TestProgramThatDoesNotCompileIsAnError(t *testing.T) {
	dir := copyShop(t)
	if err := os.WriteFile(filepath.Join(dir, "model", "wrong.go"), []byte("package model\n\nvar x uint = \"\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := move.Load(dir, "./..."); err == nil || !strings.Contains(err.Error(), "does not compile") {
		t.Errorf("Load() = %v; want an error that says that it does not compile", err)
	}
}
