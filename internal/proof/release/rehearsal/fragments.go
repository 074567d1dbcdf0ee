package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"

	"github.com/snowkey/snowkey/internal/proof/release/markdown"
)

// A group is fragments of a page and their surroundings, the setting: a file of Go in a comment of
// the page, whose imports they share.
type group struct {
	setting   *markdown.Block
	fragments []markdown.Block
}

// files returns the group as files of Go by their names. The fragments follow the setting in one
// file, and each that imports something itself has its own. Errors in them name the page and its
// line.
func (g group) files(page string) (map[string]string, error) {
	together := fmt.Sprintf("//line %s:%d\n%s", page, g.setting.Line, g.setting.Text)
	files := map[string]string{}
	var bad []error
	for _, b := range g.fragments {
		text, imports, err := fragment(page, b)
		if err != nil {
			bad = append(bad, fmt.Errorf("%s:%d: not a fragment of Go: %w", page, b.Line, err))
		}
		if imports {
			files[fmt.Sprintf("line%d.go", b.Line)] = "package main\n" + text
		} else {
			together += text
		}
	}
	files["setting.go"] = together
	return files, errors.Join(bad...)
}

// fragment returns a fragment for a file of Go, and reports whether it imports something.
// Declarations stand at file level. Any other fragment is the body
// of a function. It may return an error, and need not use the variables it declares.
func fragment(page string, b markdown.Block) (text string, imports bool, err error) {
	text = fmt.Sprintf("\n//line %s:%d\n%s", page, b.Line, b.Text)
	file, err := parser.ParseFile(token.NewFileSet(), "", "package main\n"+text, 0)
	if err != nil {
		text, err = function(text)
		return text, false, err
	}
	return text, len(file.Imports) > 0, nil
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
