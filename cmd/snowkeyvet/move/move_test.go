package move_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/snowkey/snowkey/cmd/snowkeyvet/move"
)

var update = flag.Bool("update", false, "write testdata/*.golden")

// copyOf returns a folder with a program of testdata.
func copyOf(t *testing.T, program string) string {
	t.Helper()
	t.Setenv("GOWORK", "off")
	t.Setenv("GOFLAGS", "-mod=mod")
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata")); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, program)
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
	dir := copyOf(t, "shop")
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
	dir := copyOf(t, "shop")
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

// The models of this program have no tag for GORM, and the key of none has one.
func TestMoveFindsModelsThatOnlyCallsOfGORMShow(t *testing.T) {
	dir := copyOf(t, "chat")
	p, err := move.Load(dir, "./...")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, f := range p.Findings() {
		at := p.Fset.Position(f.Pos)
		fmt.Fprintf(&all, "%s:%d: %s: %s\n", filepath.Base(at.Filename), at.Line, f.Category, f.Message)
	}
	golden(t, "chat", all.String())
}

func TestProgramWithoutModelsIsAnErrorOfItsOwn(t *testing.T) {
	if _, err := move.Load(copyOf(t, "chat"), "./gen"); !errors.Is(err, move.ErrNoModels) {
		t.Errorf("Load() = %v; want ErrNoModels", err)
	}
}

func TestProgramThatDoesNotCompileIsAnError(t *testing.T) {
	dir := copyOf(t, "shop")
	if err := os.WriteFile(filepath.Join(dir, "model", "wrong.go"), []byte("package model\n\nvar x uint = \"\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := move.Load(dir, "./..."); err == nil || !strings.Contains(err.Error(), "does not compile") {
		t.Errorf("Load() = %v; want an error that says that it does not compile", err)
	}
}
