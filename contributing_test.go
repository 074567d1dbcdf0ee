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

// Whoever adds a database changes every file that decides by the name of one. Those of the
// packages that users get, and of what they import, are named in CONTRIBUTING.md.
func TestTheListOfADialectHasEveryFileThatBranchesByOne(t *testing.T) {
	text, err := os.ReadFile("CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n### A dialect\n")
	section, _, _ = strings.Cut(section, "\n## ")
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
			if !strings.Contains(section, "`"+path+"`") {
				t.Errorf("%s branches by the name of a database, and is not listed under \"A dialect\" of CONTRIBUTING.md", path)
			}
		}
	}
	for _, match := range regexp.MustCompile("`([a-z][a-z_/]*/\\w+\\.go)`").FindAllStringSubmatch(section, -1) {
		if named, ok := names[match[1]]; ok && !named {
			t.Errorf("CONTRIBUTING.md lists %s under \"A dialect\", whose code names no database", match[1])
		} else if _, err := os.Stat(match[1]); err != nil {
			t.Errorf("CONTRIBUTING.md lists under \"A dialect\": %v", err)
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
