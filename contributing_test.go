package snowkey_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A new database needs a change in every file that decides by the name of one. The doc comment of
// package dialect lists those of the packages that users get, and of what they import, except for
// its own files and for files that a database gives its name.
func TestTheListOfADialectHasEveryFileThatBranchesByOne(t *testing.T) {
	const home = "internal/base/dialect/"
	text, err := os.ReadFile(home + "doc.go")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, path := range regexp.MustCompile(`[a-z][a-z_/]*/\w+\.go`).FindAllString(string(text), -1) {
		listed[path] = true
	}
	list := goOutput(t, "list", "-deps", "-f", `{{with .Module}}{{if .Main}}{{range $.GoFiles}}{{$.Dir}}/{{.}}{{"\n"}}{{end}}{{end}}{{end}}`,
		"./types/...", "./core/...", "./gormplugin/...", "./sqlxhelper/...")
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	names, branching := map[string]bool{}, 0
	for path := range strings.Lines(list) {
		path, err := filepath.Rel(here, strings.TrimSpace(path))
		if err != nil {
			t.Fatal(err)
		}
		path = filepath.ToSlash(path)
		named, branches := databasesIn(t, path)
		names[path] = named
		if branches {
			branching++
			if !listed[path] && !strings.HasPrefix(path, home) && !database.MatchString(filepath.Base(path)) {
				t.Errorf("%s branches by the name of a database, and is not listed in %sdoc.go", path, home)
			}
		}
	}
	for path := range listed {
		if named, ok := names[path]; !ok || !named {
			t.Errorf("%sdoc.go lists %s, which is not there or names no database", home, path)
		}
	}
	if branching < 20 {
		t.Errorf("%d files branch by the name of a database; want more, or the search has missed some", branching)
	}
}

var database = regexp.MustCompile(`(?i)sqlite|postgres|pgx|mysql|mariadb|mssql|sqlserver`)

// databasesIn reports whether the code of a file names a database, and whether it branches
// by such a name: in a comparison, a case, an index, or as the key of a map.
func databasesIn(t *testing.T, path string) (named, branches bool) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	by := func(list ...ast.Expr) {
		for _, e := range list {
			if selector, ok := e.(*ast.SelectorExpr); ok {
				e = selector.Sel
			}
			switch e := e.(type) {
			case *ast.Ident:
				branches = branches || database.MatchString(e.Name)
			case *ast.BasicLit: // a name has no spaces, as a regular text has
				branches = branches || database.MatchString(e.Value) && !strings.ContainsAny(e.Value, " \t\n")
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Ident:
			named = named || database.MatchString(n.Name)
		case *ast.BasicLit:
			named = named || database.MatchString(n.Value)
		case *ast.BinaryExpr:
			if n.Op == token.EQL || n.Op == token.NEQ {
				by(n.X, n.Y)
			}
		case *ast.CaseClause:
			by(n.List...)
		case *ast.KeyValueExpr:
			by(n.Key)
		case *ast.IndexExpr:
			by(n.Index)
		}
		return true
	})
	return named, branches
}
