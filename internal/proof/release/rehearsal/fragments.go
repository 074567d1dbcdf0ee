package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/snowkey/snowkey/internal/proof/release/markdown"
)

// A setting is the surroundings of a page's fragments: a file of Go in a comment of the page,
// whose imports the fragments share.
type setting struct {
	text    string // without the imports that only fragments use
	imports []*ast.ImportSpec
}

// newSetting reads a setting. The text keeps its lines, so that errors name the lines of
// the page.
func newSetting(text string) (setting, error) {
	file, err := parser.ParseFile(token.NewFileSet(), "", text, 0)
	if err != nil {
		return setting{}, err
	}
	cut := []byte(text)
	used := unresolved(file)
	for _, declaration := range file.Decls {
		imports, ok := declaration.(*ast.GenDecl)
		if !ok || imports.Tok != token.IMPORT {
			continue
		}
		for _, spec := range imports.Specs {
			var unused ast.Node = spec
			if name := importName(spec.(*ast.ImportSpec)); name == "_" || used[name] {
				continue
			}
			if !imports.Lparen.IsValid() {
				unused = imports
			}
			for i := unused.Pos() - 1; i < unused.End()-1; i++ { // positions count from 1
				cut[i] = ' '
			}
		}
	}
	return setting{string(cut), file.Imports}, nil
}

// unresolved returns the names that a file uses and does not declare: packages,
// predeclared names, and what other files of the package declare.
func unresolved(file *ast.File) map[string]bool {
	names := map[string]bool{}
	for _, name := range file.Unresolved {
		names[name.Name] = true
	}
	return names
}

var majorVersion = regexp.MustCompile(`^v[0-9]+$`)

// importName returns the name by which a file uses an import. Without one in the file it
// is guessed from the path, by the rule of goimports.
func importName(spec *ast.ImportSpec) string {
	if spec.Name != nil {
		return spec.Name.Name
	}
	importPath, _ := strconv.Unquote(spec.Path.Value) // the parser has accepted it
	name := path.Base(importPath)
	if majorVersion.MatchString(name) {
		name = path.Base(path.Dir(importPath))
	}
	name = strings.TrimPrefix(name, "go-")
	if end := strings.IndexFunc(name, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }); end >= 0 {
		name = name[:end]
	}
	return name
}

// file returns the fragment as a file of Go. Errors in it name the page and its line.
// A fragment that begins with a declaration stands at file level. Any other is the body
// of a function. It may return an error, and need not use the variables it declares.
func (s setting) file(page string, fragment markdown.Block) (text []byte, test bool, err error) {
	marked := fmt.Sprintf("\n//line %s:%d\n%s", page, fragment.Line, fragment.Text)
	if !isDeclaration(fragment.Text) {
		if marked, err = function(marked); err != nil {
			return nil, false, err
		}
	}
	file, err := parser.ParseFile(token.NewFileSet(), "", "package main\n"+marked, 0)
	if err != nil {
		return nil, false, err
	}
	used := unresolved(file)
	for _, spec := range file.Imports { // of the fragment itself
		delete(used, importName(spec))
	}
	var out bytes.Buffer
	out.WriteString("package main\n")
	for _, spec := range s.imports {
		if name := importName(spec); name != "_" && used[name] {
			_, _ = fmt.Fprintf(&out, "import %s %s\n", name, spec.Path.Value)
		}
	}
	out.WriteString(marked)
	return out.Bytes(), hasTest(file), nil
}

// isDeclaration reports whether a fragment begins with a declaration, after comments.
func isDeclaration(text string) bool {
	for line := range strings.Lines(text) {
		word, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if word == "" || strings.HasPrefix(word, "//") {
			continue
		}
		return slices.Contains([]string{"import", "type", "func", "var", "const"}, word)
	}
	return true // nothing but comments
}

// function makes statements the body of a function.
func function(statements string) (string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), "", "package main\nfunc _() {"+statements+"\n}", 0)
	if err != nil {
		return "", err
	}
	body := file.Decls[0].(*ast.FuncDecl).Body
	uses := ""
	for _, statement := range body.List {
		for _, name := range declared(statement) {
			uses += "_ = " + name + "\n"
		}
	}
	if returnsAValue(body) {
		return "func _() error {" + statements + "\n" + uses + "return nil\n}\n", nil
	}
	return "func _() {" + statements + "\n" + uses + "}\n", nil
}

// declared returns the variables that a statement declares for those after it.
func declared(statement ast.Stmt) (names []string) {
	add := func(name ast.Expr) {
		if name, ok := name.(*ast.Ident); ok && name.Name != "_" {
			names = append(names, name.Name)
		}
	}
	switch s := statement.(type) {
	case *ast.AssignStmt:
		if s.Tok == token.DEFINE {
			for _, name := range s.Lhs {
				add(name)
			}
		}
	case *ast.DeclStmt:
		for _, spec := range s.Decl.(*ast.GenDecl).Specs {
			if value, ok := spec.(*ast.ValueSpec); ok && s.Decl.(*ast.GenDecl).Tok == token.VAR {
				for _, name := range value.Names {
					add(name)
				}
			}
		}
	}
	return names
}

// returnsAValue reports whether a body has a return with a value, not counting those of
// functions within it.
func returnsAValue(body *ast.BlockStmt) (found bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		if r, ok := n.(*ast.ReturnStmt); ok && len(r.Results) > 0 {
			found = true
		}
		_, inner := n.(*ast.FuncLit)
		return !inner
	})
	return found
}

// hasTest reports whether a file declares a test, a benchmark, a fuzz target or an example.
func hasTest(file *ast.File) bool {
	return slices.ContainsFunc(file.Decls, func(d ast.Decl) bool {
		f, ok := d.(*ast.FuncDecl)
		return ok && f.Recv == nil && testName.MatchString(f.Name.Name)
	})
}

var testName = regexp.MustCompile(`^(Test|Benchmark|Fuzz|Example)($|[^a-z])`)
