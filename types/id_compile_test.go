package types_test

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

// A checker type-checks small sources that import this package.
type checker struct {
	files *token.FileSet
	conf  gotypes.Config
}

// newChecker gets the types of this package and of what it imports from the compiler.
func newChecker(t *testing.T) *checker {
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
	c := &checker{files: token.NewFileSet()}
	c.conf.Importer = importer.ForCompiler(c.files, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})
	return c
}

// compile returns the error of the compiler for statements about the keys of two tables.
func (c *checker) compile(t *testing.T, statements string) error {
	t.Helper()
	source := `package shop

import "github.com/snowkey/snowkey/types"

type (
	Customer struct{ ID types.ID[Customer] }
	Order    struct {
		ID         types.ID[Order]
		CustomerID types.ID[Customer]
		ParentID   types.NullID[Order]
	}
)

func find(types.ID[Order]) {}

func _(order Order, customer Customer, s types.Snowflake, n int64, null types.NullID[Customer]) {
	` + statements + `
}
`
	file, err := parser.ParseFile(c.files, "shop.go", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.conf.Check("example.com/shop", c.files, []*ast.File{file}, nil)
	return err
}

func TestTheKeyOfAnotherTableDoesNotCompile(t *testing.T) {
	c := newChecker(t)
	for _, statements := range []string{
		"find(customer.ID)",
		"find(order.CustomerID)",
		"find(s)",
		"find(n)",
		"order.ID = customer.ID",
		"order.CustomerID = order.ID",
		"order.ID = s",
		"s = order.ID",
		"_ = order.ID == customer.ID",
		"_ = order.ID == s",
		"_ = order.ID.Compare(customer.ID)",
		"_ = order.ID.Add(customer.ID)",
		"_ = []types.ID[Order]{customer.ID}",
		"_ = map[types.ID[Order]]int{}[customer.ID]",
		"_ = Order{ID: 1, CustomerID: order.ID}",
		"order.ParentID = null",
		"order.ParentID.ID = null.ID",
		"_ = types.NullID[Order](null)", // though a conversion of their IDs does
		"_ = types.NullSnowflake(null)",
	} {
		err := c.compile(t, statements)
		if err == nil || !strings.Contains(err.Error(), "cannot use") && !strings.Contains(err.Error(), "cannot convert") &&
			!strings.Contains(err.Error(), "mismatched types") {
			t.Errorf("compile(%s) = %v; want an error that the types differ", statements, err)
		}
	}
}

// The limits of the mark, and the ways in and out of it.
func TestConversionsAndUntypedConstantsCompile(t *testing.T) {
	c := newChecker(t)
	for _, statements := range []string{
		"find(order.ID)",
		"find(types.ID[Order](s))",
		"find(types.ID[Order](n))",
		"find(types.ID[Order](customer.ID))",
		"find(7)",
		"const one = 1; find(one)",
		"_ = order.ID == 0",
		"s = order.ID.Snowflake()",
		"s = types.Snowflake(order.ID)",
		"n = order.ID.Int64()",
		"order.ParentID = types.NullID[Order]{ID: order.ID, Valid: true}",
		"var _ types.NullSnowflake = order.ParentID.NullSnowflake()",
	} {
		if err := c.compile(t, statements); err != nil {
			t.Errorf("compile(%s) = %v; want nil", statements, err)
		}
	}
}
