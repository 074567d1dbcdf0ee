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
	"github.com/99designs/gqlgen/api"
	"github.com/99designs/gqlgen/codegen/config"

	// Generated code and its tests import these, which go.mod would not have.
	_ "github.com/99designs/gqlgen/graphql/handler/transport"
	_ "github.com/99designs/gqlgen/graphql/introspection"
	_ "github.com/oapi-codegen/runtime"

	"github.com/snowkey/snowkey/internal/proof/release/markdown"
	"github.com/snowkey/snowkey/types"
)

const sqlc = "github.com/sqlc-dev/sqlc/cmd/sqlc@v1.30.0"

// The code that generators make is of a user's module in a temporary folder, so nothing of it is
// committed. The module is in a workspace with those of this repository, from where it has its
// requirements, in the versions that are compiled already. By its path it may import what the tests
// of this repository share.
func userModule(t *testing.T, testdata, path string) {
	t.Helper()
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS(filepath.Join("testdata", testdata))); err != nil {
		t.Fatal(err)
	}
	tree, err := filepath.Abs(filepath.Join("..", "..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	work := regexp.MustCompile(`(?m)^\t\.(.*)$`).ReplaceAll(readFile(t, filepath.Join(tree, "go.work")), []byte("\t"+tree+"$1"))
	writeFile(t, filepath.Join(folder, "go.work"), append(work, "\nuse .\n"...))
	writeFile(t, filepath.Join(folder, "go.work.sum"), readFile(t, filepath.Join(tree, "go.work.sum")))
	writeFile(t, filepath.Join(folder, "go.mod"), []byte("module "+path+"\n\ngo 1.25.0\n"))
	t.Setenv("GOWORK", filepath.Join(folder, "go.work"))
	t.Chdir(folder)
}

// block returns the block of docs/types.md that begins with the text.
func block(t *testing.T, begins string) []byte {
	t.Helper()
	blocks, err := markdown.Blocks(string(readFile(t, filepath.Join("..", "..", "..", "..", "docs", "types.md"))))
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

// tests runs the module's tests.
func tests(t *testing.T) {
	t.Helper()
	if out, err := goCommand(t, "test", ".").Output(); err != nil {
		t.Errorf("the module's tests: %v\n%s", err, out)
	}
}

// shop is a path below that of this package, for a module whose tests use the repository's.
const shop = "github.com/snowkey/snowkey/internal/proof/lab/compat/shop"

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
	userModule(t, "ent", "example.com/shop")
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
	userModule(t, "sqlc", "example.com/shop")
	writeFile(t, "sqlc.yaml", bytes.Replace(config, []byte("engine: postgresql"), []byte("engine: sqlite"), 1))
	// A program of its own module. Its parser of PostgreSQL is C, which takes minutes to compile.
	generate := goCommand(t, "run", sqlc, "generate")
	generate.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	if out, err := generate.Output(); err != nil {
		t.Fatalf("sqlc generate: %v\n%s", err, out)
	}
	prints(t)
}

// The server of testdata/graphql is generated by the configuration of docs/types.md.
func TestGqlgenGeneratesAServerThatKeepsKeys(t *testing.T) {
	models := strings.ReplaceAll(string(block(t, "models:")), "example.com/shop/graph.", shop+".")
	userModule(t, "graphql", shop)
	if config := readFile(t, "gqlgen.yml"); !bytes.HasSuffix(config, []byte(models)) {
		t.Errorf("gqlgen.yml ends otherwise than the page:\n%s\nwant\n%s", config, models)
	}
	c, err := config.LoadConfig("gqlgen.yml")
	if err != nil {
		t.Fatal(err)
	}
	if err := api.Generate(c); err != nil {
		t.Fatal(err)
	}
	tests(t)
}

// The clients and the server of testdata/openapi are generated from a document with the schemas of
// docs/types.md: in Go by oapi-codegen, in TypeScript by openapi-typescript.
func TestClientsAndServersOfAnOpenAPIDocumentKeepKeys(t *testing.T) {
	schemas := block(t, "components:")
	userModule(t, "openapi", shop)
	if document := readFile(t, "openapi.yaml"); !bytes.Contains(document, schemas) {
		t.Errorf("openapi.yaml lacks the schemas of the page:\n%s", schemas)
	}
	if err := os.Mkdir("generated", 0o700); err != nil {
		t.Fatal(err)
	}
	generate := goCommand(t, "tool", "oapi-codegen", "-config", "oapi-codegen.yaml", "-o", "generated/generated.go", "openapi.yaml")
	if out, err := generate.Output(); err != nil {
		t.Fatalf("oapi-codegen: %v\n%s", err, out)
	}
	tests(t)
}
