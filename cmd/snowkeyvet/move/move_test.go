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

const accounts = `// Package accounts has models whose key sqlx finds by the name of its field.
package accounts

import "time"

type Account struct {
	ID        int
	Name      string
	CreatedAt time.Time ` + "`" + `db:"created_at"` + "`" + `
}

type Store interface {
	Find(id int) (*Account, error)
	Lock(id int, minutes int) error
}

func locked(s Store, a *Account) error { return s.Lock(a.ID, 5) }

// A Reply is no row.
type Reply struct {
	ID   int ` + "`" + `json:"id"` + "`" + `
	Code int
}
`

// sqlx finds the column of a field without a tag by its name.
func TestMoveFindsModelsOfSQLXWhoseKeyHasNoTag(t *testing.T) {
	t.Setenv("GOWORK", "off")
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module example.com/accounts\n\ngo 1.25.0\n", "accounts.go": accounts} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p, err := move.Load(dir, "./...")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, f := range p.Findings() {
		fmt.Fprintf(&all, "%d: %s: %s\n", p.Fset.Position(f.Pos).Line, f.Category, f.Message)
	}
	golden(t, "accounts", all.String())
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
