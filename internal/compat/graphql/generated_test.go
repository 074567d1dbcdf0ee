package graphql_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/api"
	"github.com/99designs/gqlgen/codegen/config"

	"github.com/snowkey/snowkey/internal/markdown"
)

func TestTheGeneratedCodeIsThatOfTheSchema(t *testing.T) {
	c, err := config.LoadConfig("gqlgen.yml")
	if err != nil {
		t.Fatal(err)
	}
	committed := c.Exec.Filename
	c.Exec.Filename = filepath.Join(t.TempDir(), "generated.go")
	c.SkipValidation = true // which would load the package of the temporary folder
	if err := api.Generate(c); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(c.Exec.Filename)
	if err != nil {
		t.Fatal(err)
	}
	// The code has the path from its folder to the schema.
	head, rest, _ := bytes.Cut(want, []byte(`{Name: "`))
	_, tail, found := bytes.Cut(rest, []byte(`schema.graphqls"`))
	got, err := os.ReadFile(committed)
	if err != nil || !found || string(got) != string(head)+`{Name: "../schema.graphqls"`+string(tail) {
		t.Errorf("%s is not what gqlgen makes of the schema (%v): run go generate", committed, err)
	}
}

func TestTheConfigurationIsThatOfThePage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/types.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := markdown.Blocks(string(page))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("gqlgen.yml")
	if err != nil {
		t.Fatal(err)
	}
	used := strings.ReplaceAll(string(text), "github.com/snowkey/snowkey/internal/compat/graphql.", "example.com/shop/graph.")
	if !slices.ContainsFunc(blocks, func(b markdown.Block) bool {
		return strings.HasPrefix(b.Text, "models:\n") && strings.HasSuffix(used, b.Text)
	}) {
		t.Errorf("docs/types.md has no block that begins with models: and ends gqlgen.yml")
	}
}
