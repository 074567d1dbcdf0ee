package compat

import (
	"bytes"
	"database/sql/driver"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"entgo.io/ent/entc"
	"entgo.io/ent/entc/gen"
	"entgo.io/ent/schema/field"

	"github.com/snowkey/snowkey/internal/markdown"
	"github.com/snowkey/snowkey/types"
)

const sqlc = "github.com/sqlc-dev/sqlc/cmd/sqlc@v1.30.0"

// The code that ent and sqlc generate is of a user's module in a temporary folder, so nothing of
// it is committed. The module is in a workspace with those of this repository, from where it has
// its requirements, in the versions that are compiled already.
func userModule(t *testing.T, testdata string) {
	t.Helper()
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS(filepath.Join("testdata", testdata))); err != nil {
		t.Fatal(err)
	}
	tree, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	work := regexp.MustCompile(`(?m)^\t\.(.*)$`).ReplaceAll(readFile(t, filepath.Join(tree, "go.work")), []byte("\t"+tree+"$1"))
	writeFile(t, filepath.Join(folder, "go.work"), append(work, "\nuse .\n"...))
	writeFile(t, filepath.Join(folder, "go.work.sum"), readFile(t, filepath.Join(tree, "go.work.sum")))
	writeFile(t, filepath.Join(folder, "go.mod"), []byte("module example.com/shop\n\ngo 1.25.0\n"))
	t.Setenv("GOWORK", filepath.Join(folder, "go.work"))
	t.Chdir(folder)
}

// block returns the block of docs/types.md that begins with the text.
func block(t *testing.T, begins string) []byte {
	t.Helper()
	blocks, err := markdown.Blocks(string(readFile(t, filepath.Join("..", "..", "docs", "types.md"))))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range blocks {
		if text := []byte(b.Text); bytes.HasPrefix(text, []byte(begins)) {
			return text
		}
	}
	t.Fatalf("docs/types.md has no block that begins with %q", begins)
	return nil
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func writeFile(t *testing.T, name string, text []byte) {
	t.Helper()
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// prints runs the module's program and compares what it prints with its file output.txt.
func prints(t *testing.T) {
	t.Helper()
	got, err := goCommand(t, "run", ".").Output()
	if want := readFile(t, "output.txt"); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the program prints, %v:\n%s\nwant:\n%s", err, got, want)
	}
}

func goCommand(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), "go", args...)
	c.Stderr = t.Output()
	return c
}

// The mixin of docs/types.md, in testdata/ent: keys are assigned before the insert, single and in
// bulk, edges have them, JSON has strings, and without a key nothing is stored.
func TestEntStoresKeysByTheMixinOfThePage(t *testing.T) {
	mixin := block(t, "// bigint is")
	userModule(t, "ent")
	header := readFile(t, "key.txt") // package and imports
	writeFile(t, filepath.Join("ent", "schema", "key.go"), append(header, mixin...))
	if err := entc.Generate("./ent/schema", &gen.Config{}); err != nil {
		t.Fatal(err)
	}
	prints(t)
}

// ent writes the name of a type as reflect has it, with the path of the mark in brackets.
func TestEntTakesNoTypedKeys(t *testing.T) {
	for _, c := range []struct {
		key driver.Valuer
		ok  bool
	}{{types.Snowflake(0), true}, {types.ID[typedOrder](0), false}} {
		name := field.Other("id", c.key).Descriptor().Info.Ident
		if valid := !strings.Contains(name, "/"); valid != c.ok {
			t.Errorf("ent writes the type %s; want valid Go: %v", name, c.ok)
		}
	}
}

// The configuration of docs/types.md, with the tables and queries of testdata/sqlc, on SQLite.
func TestSqlcGeneratesKeysByTheOverridesOfThePage(t *testing.T) {
	config := block(t, "version: \"2\"")
	userModule(t, "sqlc")
	writeFile(t, "sqlc.yaml", bytes.Replace(config, []byte("engine: postgresql"), []byte("engine: sqlite"), 1))
	// A program of its own module. Its parser of PostgreSQL is C, which takes minutes to compile.
	generate := goCommand(t, "run", sqlc, "generate")
	generate.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	if out, err := generate.Output(); err != nil {
		t.Fatalf("sqlc generate: %v\n%s", err, out)
	}
	prints(t)
}
