package publicid_test

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	gotypes "go/types"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// compiler returns a function that type-checks statements about the IDs of two models. It gets the
// types of this package and of what it imports from the compiler.
func compiler(t *testing.T) func(statements string) error {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-f", "{{.ImportPath}}={{.Export}}", ".")
	list.Stderr = os.Stderr
	lines, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	exports := map[string]string{}
	for line := range strings.Lines(string(lines)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "=")
		exports[path] = file
	}
	files := token.NewFileSet()
	config := gotypes.Config{Importer: importer.ForCompiler(files, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})}
	return func(statements string) error {
		file, err := parser.ParseFile(files, "shop.go", `package shop

import (
	"github.com/snowkey/snowkey/core/publicid"
	"github.com/snowkey/snowkey/types"
)

type (
	Customer struct { ID types.ID[Customer]; Shown publicid.ID[Customer] }
	Order    struct { ID types.ID[Order]; Shown publicid.ID[Order] }
	Hidden   struct { ID types.ID[Hidden] }
)

func (Customer) PublicIDs() *publicid.Codec { return nil }
func (Order) PublicIDs() *publicid.Codec    { return nil }

func find(types.ID[Order]) {}
func show(publicid.ID[Order]) {}

func _(order Order, customer Customer, hidden Hidden) {
	`+statements+`
}
`, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = config.Check("example.com/shop", files, []*ast.File{file}, nil)
		return err
	}
}

func TestTheIDOfAnotherModelDoesNotCompile(t *testing.T) {
	compile := compiler(t)
	for _, statements := range []string{
		"show(publicid.Of(order.ID))",
		"find(order.Shown.Key())",
		"order.Shown = publicid.Of(order.ID)",
		"_ = order.Shown == publicid.Of(order.ID)",
		"_ = map[publicid.ID[Order]]int{order.Shown: 1}",
	} {
		if err := compile(statements); err != nil {
			t.Errorf("compile(%s) = %v; want nil", statements, err)
		}
	}
	for statements, want := range map[string]string{
		"show(publicid.Of(customer.ID))":            "cannot use",
		"show(customer.Shown)":                      "cannot use",
		"show(order.ID)":                            "cannot use",
		"show(7)":                                   "cannot use",
		"find(customer.Shown.Key())":                "cannot use",
		"find(order.Shown)":                         "cannot use",
		"order.Shown = customer.Shown":              "cannot use",
		"_ = order.Shown == customer.Shown":         "mismatched types",
		"_ = publicid.ID[Order](customer.Shown)":    "cannot convert", // types.ID[Order](customer.ID) does compile
		"_ = publicid.ID[Order](order.ID)":          "cannot convert",
		"_ = types.ID[Order](order.Shown)":          "cannot convert",
		"_ = int64(order.Shown)":                    "cannot convert",
		"_ = publicid.Of(hidden.ID)":                "does not satisfy publicid.Kind",
		"var _ publicid.ID[Hidden]":                 "does not satisfy publicid.Kind",
		"_, _ = publicid.Parse[Hidden](\"hidden\")": "does not satisfy publicid.Kind",
	} {
		if err := compile(statements); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("compile(%s) = %v; want an error with %q", statements, err, want)
		}
	}
}
