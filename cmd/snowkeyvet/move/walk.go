package move

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/types/typeutil"

	"github.com/snowkey/snowkey/cmd/snowkeyvet/flow"
)

// A walker reads one package.
type walker struct {
	*Program
	info  *types.Info
	known map[ast.Expr]shape
}

// visit reads the expressions that go nowhere, too.
func (w *walker) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.StructType, *ast.InterfaceType, *ast.FuncType:
		return false
	case ast.Expr:
		w.expr(n)
	}
	return true
}

// follow lets a value and the place where it goes agree.
func (w *walker) follow(to, from flow.Place) {
	src, value := w.place(from), w.info.Types[from.Expr].Value
	id, _ := to.Expr.(*ast.Ident)
	if obj := w.info.Defs[id]; id != nil && obj != nil && to.Part == flow.Whole && w.decls[obj.Pos()].expr == nil {
		switch {
		case src.elem != nil && src.elem.fixed: // a new variable of a foreign integer is one too
			w.shapes[obj.Pos()] = src
			return
		case value != nil && src.elem == nil:
			w.constant(from.Expr, w.expr(id).elem)
		}
	}
	w.flow(w.place(to), src, from.Expr, w.info)
}

// place returns the shape of a place.
func (w *walker) place(p flow.Place) shape {
	if p.Expr == nil || p.Part == flow.Field {
		return w.object(p.Object)
	}
	s := w.expr(p.Expr)
	switch p.Part {
	case flow.Key:
		return shape{elem: s.key}
	case flow.Param:
		if s = w.expr(p.Expr.(*ast.CallExpr).Fun); len(s.params) > 0 {
			return s.params[min(p.Index, len(s.params)-1)]
		}
		return shape{}
	case flow.Result:
		if p.Index < len(s.results) {
			return s.results[p.Index]
		}
		return shape{}
	}
	return s
}

// constant gives its type to a constant that a variable has it from, or that is compared as any.
func (w *walker) constant(e ast.Expr, s *slot) {
	w.later = append(w.later, func(f *edits) {
		if s.isKey() {
			f.around(e, e, f.name(e.Pos(), "Snowflake")+"(", ")", "a constant beside keys gets their type")
		}
	})
}

// expr returns the shape of an expression, after it has read it once.
func (w *walker) expr(e ast.Expr) shape {
	s, ok := w.known[e]
	if !ok {
		w.known[e] = shape{} // of a recursive function literal
		s = w.read(e)
		w.known[e] = s
	}
	return s
}

func (w *walker) read(e ast.Expr) shape {
	tv := w.info.Types[e]
	if tv.IsType() {
		return w.typed(tv.Type, e, false, nil)
	}
	switch e := e.(type) {
	case *ast.ParenExpr:
		return w.expr(e.X)
	case *ast.Ident:
		return w.reference(w.info.ObjectOf(e))
	case *ast.SelectorExpr:
		if sel := w.info.Selections[e]; sel == nil || sel.Kind() != types.MethodExpr {
			return w.reference(w.info.Uses[e.Sel])
		}
	case *ast.FuncLit:
		return w.typed(tv.Type, nil, false, nil)
	case *ast.StarExpr:
		return w.expr(e.X)
	case *ast.SliceExpr:
		return w.expr(e.X)
	case *ast.UnaryExpr:
		return w.adapted(e, w.expr(e.X))
	case *ast.BinaryExpr:
		return w.adapted(e, w.binary(e))
	case *ast.IndexExpr:
		return w.index(e)
	case *ast.IndexListExpr:
		return w.instance(e, e.Indices...)
	case *ast.TypeAssertExpr:
		if e.Type != nil {
			s := w.expr(e.Type)
			w.later = append(w.later, func(f *edits) {
				if s.elem.isKey() {
					f.left(e.Pos(), "the interface must hold a types.Snowflake here: look where its value comes from")
				}
			})
			return s
		}
	case *ast.CompositeLit:
		s := w.known[e] // of the literal around it
		if e.Type != nil {
			s = w.typed(tv.Type, e.Type, false, nil)
		}
		flow.Literal(w.info, e, func(_, from flow.Place) {
			if lit, ok := from.Expr.(*ast.CompositeLit); ok && lit.Type == nil {
				w.known[lit] = s
				w.known[lit] = w.read(lit)
			}
		})
		return s
	case *ast.CallExpr:
		return w.call(e)
	}
	return shape{}
}

// adapted drops the type of a constant expression, which adapts itself unless it is converted.
func (w *walker) adapted(e ast.Expr, s shape) shape {
	if w.info.Types[e].Value != nil && s.elem != nil && s.elem.fixed {
		return shape{}
	}
	return s
}

func (w *walker) reference(obj types.Object) shape {
	if f, ok := obj.(*types.Func); ok && f.Signature().TypeParams().Len() > 0 {
		return w.generic(f)
	}
	return w.object(obj)
}

func (w *walker) binary(e *ast.BinaryExpr) shape {
	x, y := w.expr(e.X), w.expr(e.Y)
	switch e.Op {
	case token.SHL, token.SHR:
		return x
	}
	w.flow(x, y, e.Y, w.info)
	switch e.Op {
	case token.ADD, token.SUB, token.MUL, token.QUO, token.REM, token.AND, token.OR, token.XOR, token.AND_NOT:
		if x.elem == nil || x.elem.fixed && y.elem != nil {
			return y
		}
		return x
	}
	return shape{}
}

func (w *walker) index(e *ast.IndexExpr) shape {
	t := w.info.TypeOf(e.X)
	if t == nil || w.info.Types[e.X].IsType() {
		return shape{}
	} else if _, function := t.Underlying().(*types.Signature); function {
		return w.instance(e, e.Index)
	}
	x := w.expr(e.X)
	if _, ok := t.Underlying().(*types.Map); ok {
		w.flow(shape{elem: x.key}, w.expr(e.Index), e.Index, w.info)
	}
	return x
}

// instance returns a generic function with type arguments that the source writes.
func (w *walker) instance(e ast.Expr, arguments ...ast.Expr) shape {
	f, ok := typeutil.Callee(w.info, &ast.CallExpr{Fun: e}).(*types.Func)
	if !ok {
		return shape{}
	}
	var given []shape
	for _, argument := range arguments {
		given = append(given, w.expr(argument))
	}
	return w.generic(f, given...)
}

func (w *walker) call(e *ast.CallExpr) shape {
	switch tv := w.info.Types[e.Fun]; {
	case tv.IsType():
		return w.convert(e)
	case tv.IsBuiltin():
		return w.builtin(e)
	}
	s := w.expr(e.Fun)
	if f, ok := typeutil.Callee(w.info, e).(*types.Func); ok && f.Pkg() != nil {
		switch path, name := f.Pkg().Path(), f.Name(); {
		case path == "strconv" && (len(e.Args) == 1 || types.ExprString(e.Args[1]) == "10"):
			switch name {
			case "Atoi", "ParseInt", "ParseUint":
				return w.parsed(e)
			case "Itoa", "FormatInt", "FormatUint":
				w.formats[e.Args[0].Pos()] = e
			}
		case path == "gorm.io/gorm" && name == "Open":
			w.later = append(w.later, func(f *edits) {
				f.left(e.Pos(), "install the plugin after gorm.Open: db.Use(gormplugin.New(gen))")
			})
		case path == "gorm.io/gorm" || path == "database/sql" || strings.HasSuffix(path, "/sqlx"):
			w.placeholders(e.Args)
		case strings.Contains(path, "testify/") || path == "reflect" || strings.Contains(path, "go-cmp/"):
			w.alike(e.Args)
		}
	}
	if len(s.results) == 1 {
		return s.results[0]
	}
	return shape{results: s.results}
}

// parsed returns the integer that a call of strconv reads.
func (w *walker) parsed(e *ast.CallExpr) shape {
	s := w.slot(e.Pos(), nil)
	s.root().parsed = true
	w.later = append(w.later, func(f *edits) {
		if arg := e.Args[0]; s.isKey() {
			f.around(e, arg, f.name(e.Pos(), "Parse")+"(", ")", types.ExprString(e.Fun)+" reads a key and becomes types.Parse")
		}
	})
	return shape{results: []shape{{elem: s}, {}}}
}

// alike joins the two arguments of functions that compare values of one type as any, or look for a
// value in a list or in the keys of a map. Others of the type are a message. A constant has the type
// of the value beside it.
func (w *walker) alike(args []ast.Expr) {
	for i := range len(args) - 1 {
		x, y := args[i], args[i+1]
		list, t := w.expr(x), w.info.TypeOf(x)
		switch u := t.Underlying().(type) {
		case *types.Map:
			if t = u.Key(); !types.Identical(w.info.TypeOf(x), w.info.TypeOf(y)) {
				list = shape{elem: list.key}
			}
		case *types.Slice:
			t = u.Elem()
		}
		if !types.Identical(t, w.info.TypeOf(y)) && !types.Identical(w.info.TypeOf(x), w.info.TypeOf(y)) {
			continue
		}
		w.flow(list, w.expr(y), y, w.info)
		for _, pair := range [][2]ast.Expr{{x, y}, {y, x}} {
			if w.info.Types[pair[0]].Value != nil && w.expr(pair[0]).elem == nil {
				w.constant(pair[0], w.expr(pair[1]).elem)
			}
		}
		return
	}
}

var compared = regexp.MustCompile(`(?i)\b((?:\w+_)?id)\b["\x60]?\s*(?:[=<>]|<>|!=|<=|>=|\bin)\s*\(?\s*$`)

// placeholders marks what SQL compares with the column of a key, as in "user_id = ?".
func (w *walker) placeholders(args []ast.Expr) {
	at := slices.IndexFunc(args, func(arg ast.Expr) bool {
		value := w.info.Types[arg].Value
		return value != nil && value.Kind() == constant.String
	})
	if at < 0 {
		return
	}
	parts := strings.Split(constant.StringVal(w.info.Types[args[at]].Value), "?")
	for i, arg := range args[at+1:] {
		if i == len(parts)-1 {
			return
		}
		m := compared.FindStringSubmatch(parts[i])
		if s := w.expr(arg).elem; m != nil && w.columns[strings.ToLower(m[1])] && s != nil && !s.fixed {
			s.root().key = true
		}
	}
}

func (w *walker) convert(e *ast.CallExpr) shape {
	to, from := w.expr(e.Fun), w.expr(e.Args[0])
	if _, ok := w.info.TypeOf(e.Fun).Underlying().(*types.Basic); !ok {
		w.flow(to, from, e.Args[0], nil)
		return to
	}
	c := conv{e, to.elem, from.elem, w.info}
	w.convs[e.Lparen] = c
	w.later = append(w.later, func(f *edits) { f.conversion(c) })
	return to
}

func (w *walker) builtin(e *ast.CallExpr) shape {
	name := types.ExprString(e.Fun)
	switch name {
	case "len", "cap", "copy":
		return shape{elem: &slot{fixed: true, typ: "int"}}
	}
	if len(e.Args) == 0 {
		return shape{}
	}
	first := w.expr(e.Args[0])
	for _, arg := range e.Args[1:] {
		switch name {
		case "append", "min", "max":
			w.flow(first, w.expr(arg), arg, w.info)
		case "delete":
			w.flow(shape{elem: first.key}, w.expr(arg), arg, w.info)
		}
	}
	return first
}
