package move

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"regexp"
	"strings"

	"golang.org/x/tools/go/packages"
)

// A walker reads one package.
type walker struct {
	*Program
	pkg    *packages.Package
	info   *types.Info
	shapes map[ast.Expr]*shape
}

// walk reads everything below a node. results belong to the function around it.
func (w *walker) walk(root ast.Node, results []*shape) {
	ast.Inspect(root, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Body != nil {
				w.walk(n.Body, w.written(w.info, n.Type).results)
			}
			return false
		case *ast.FuncLit:
			w.walk(n.Body, w.expr(n).results)
			return false
		case *ast.StructType, *ast.InterfaceType, *ast.FuncType:
			return false
		case *ast.AssignStmt:
			w.assign(n.Lhs, n.Rhs, n.Tok)
		case *ast.ValueSpec:
			var names []ast.Expr
			for _, name := range n.Names {
				names = append(names, name)
			}
			w.assign(names, n.Values, token.ASSIGN)
		case *ast.ReturnStmt:
			w.values(results, n.Results)
		case *ast.SendStmt:
			if ch := w.expr(n.Chan); ch != nil {
				w.flow(ch.elem, w.expr(n.Value), nil, n.Value)
			}
		case *ast.RangeStmt:
			w.ranges(n)
		case *ast.SwitchStmt:
			if n.Tag != nil {
				for _, clause := range n.Body.List {
					for _, e := range clause.(*ast.CaseClause).List {
						w.flow(w.expr(n.Tag), w.expr(e), nil, e)
					}
				}
			}
		case ast.Expr:
			w.expr(n)
		}
		return true
	})
}

// values lets several expressions, or the results of one call, flow into variables.
func (w *walker) values(to []*shape, from []ast.Expr) {
	if len(from) == 1 && len(to) > 1 {
		if s := w.expr(from[0]); s != nil {
			for i := range min(len(to), len(s.results)) {
				w.at = from[0].Pos()
				w.flow(to[i], s.results[i], nil, nil)
			}
		}
		return
	}
	for i := range min(len(to), len(from)) {
		w.flow(to[i], w.expr(from[i]), nil, from[i])
	}
}

func (w *walker) assign(lhs, rhs []ast.Expr, op token.Token) {
	if op == token.SHL_ASSIGN || op == token.SHR_ASSIGN || len(rhs) == 0 {
		return
	}
	sources := make([]*shape, len(lhs))
	if len(rhs) == 1 && len(lhs) > 1 {
		if s := w.expr(rhs[0]); s != nil {
			if len(s.results) == 0 { // v, ok
				sources[0] = s
			}
			copy(sources, s.results)
		}
	} else {
		for i := range rhs {
			sources[i] = w.expr(rhs[i])
		}
	}
	for i, e := range lhs {
		// A new variable of a foreign integer is one too.
		if id, ok := e.(*ast.Ident); ok {
			obj := w.info.Defs[id]
			if src := sources[i].resolve(); obj != nil && src != nil && src.slot != nil && src.slot.fixed {
				if _, typed := w.decls[obj.Pos()]; !typed {
					w.vars[obj.Pos()] = src
					continue
				}
			}
		}
		var from ast.Expr
		if len(rhs) == len(lhs) {
			from = rhs[i]
			if id, ok := e.(*ast.Ident); ok && w.info.Defs[id] != nil && w.info.Types[from].Value != nil && sources[i] == nil {
				if _, typed := w.decls[id.Pos()]; !typed {
					w.defaults[from.Pos()] = constantVar{from, w.expr(e)}
				}
			}
		}
		to := w.expr(e)
		w.at = rhs[min(i, len(rhs)-1)].Pos()
		w.flow(to, sources[i], nil, from)
	}
}

func (w *walker) ranges(n *ast.RangeStmt) {
	x := w.expr(n.X).resolve()
	if x == nil {
		return
	}
	if x.slot == nil && x.elem != nil && x.elem.elem != nil && x.key == nil && n.Value != nil {
		if _, pointer := w.info.TypeOf(n.X).Underlying().(*types.Pointer); pointer {
			x = x.elem
		}
	}
	_, channel := w.info.TypeOf(n.X).Underlying().(*types.Chan)
	if n.Key != nil && channel {
		w.flow(w.expr(n.Key), x.elem, nil, nil)
	} else if n.Key != nil && x.key != nil {
		w.flow(w.expr(n.Key), x.key, nil, nil)
	}
	if n.Value != nil && !channel {
		w.flow(w.expr(n.Value), x.elem, nil, nil)
	}
}

// expr returns the type of an expression, after it has read it once.
func (w *walker) expr(e ast.Expr) *shape {
	s, ok := w.shapes[e]
	if !ok {
		w.shapes[e] = nil // of a recursive function literal
		s = w.read(e)
		w.shapes[e] = s
	}
	return s
}

func (w *walker) read(e ast.Expr) *shape {
	if tv, ok := w.info.Types[e]; ok && tv.IsType() {
		return w.written(w.info, e)
	}
	switch e := e.(type) {
	case *ast.ParenExpr:
		return w.expr(e.X)
	case *ast.Ident:
		if obj := w.info.ObjectOf(e); obj != nil {
			return w.reference(obj, e)
		}
	case *ast.SelectorExpr:
		if sel := w.info.Selections[e]; sel != nil {
			if sel.Kind() == types.MethodExpr {
				return nil
			}
			return w.object(sel.Obj())
		}
		return w.reference(w.info.Uses[e.Sel], e.Sel)
	case *ast.FuncLit:
		return w.written(w.info, e.Type)
	case *ast.StarExpr:
		return elem(w.expr(e.X))
	case *ast.UnaryExpr:
		switch e.Op {
		case token.AND:
			return &shape{elem: w.expr(e.X)}
		case token.ARROW:
			return elem(w.expr(e.X))
		}
		return w.constant(e, w.expr(e.X))
	case *ast.BinaryExpr:
		return w.constant(e, w.binary(e))
	case *ast.IndexExpr:
		return w.index(e)
	case *ast.IndexListExpr:
		return w.instance(e.X, e.Indices...)
	case *ast.SliceExpr:
		return w.expr(e.X)
	case *ast.TypeAssertExpr:
		if e.Type != nil {
			s := w.written(w.info, e.Type)
			if s != nil && s.slot != nil {
				w.asserted[e.Pos()] = s.slot
			}
			return s
		}
	case *ast.CompositeLit:
		return w.composite(e, nil)
	case *ast.CallExpr:
		return w.call(e)
	}
	return nil
}

// constant drops the type of a constant expression, which adapts itself unless it is converted.
func (w *walker) constant(e ast.Expr, s *shape) *shape {
	if tv := w.info.Types[e]; tv.Value != nil && s != nil && s.slot != nil && s.slot.fixed {
		return nil
	}
	return s
}

func elem(s *shape) *shape {
	if s = s.resolve(); s != nil {
		return s.elem
	}
	return nil
}

func (w *walker) reference(obj types.Object, id *ast.Ident) *shape {
	if f, ok := obj.(*types.Func); ok && f.Signature().TypeParams().Len() > 0 {
		return w.generic(f)
	}
	return w.object(obj)
}

func (w *walker) binary(e *ast.BinaryExpr) *shape {
	x, y := w.expr(e.X).resolve(), w.expr(e.Y).resolve()
	switch e.Op {
	case token.SHL, token.SHR:
		return x
	case token.LAND, token.LOR:
		return nil
	}
	w.flow(x, y, e.X, e.Y)
	switch e.Op {
	case token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ:
		return nil
	}
	if x == nil || x.slot != nil && x.slot.fixed && y != nil {
		return y
	}
	return x
}

func (w *walker) index(e *ast.IndexExpr) *shape {
	if tv := w.info.Types[e.X]; tv.Type == nil || tv.IsType() {
		return nil
	} else if _, generic := tv.Type.Underlying().(*types.Signature); generic {
		return w.instance(e.X, e.Index)
	}
	x := w.expr(e.X).resolve()
	if x == nil {
		return nil
	}
	if x.key != nil {
		w.flow(x.key, w.expr(e.Index), nil, e.Index)
	}
	if _, pointer := w.info.TypeOf(e.X).Underlying().(*types.Pointer); pointer {
		x = elem(x)
	}
	return elem(x)
}

// instance returns a generic function with type arguments that the source writes.
func (w *walker) instance(fun ast.Expr, arguments ...ast.Expr) *shape {
	name, ok := ast.Unparen(fun).(*ast.Ident)
	if sel, selected := fun.(*ast.SelectorExpr); selected {
		name, ok = sel.Sel, true
	}
	if !ok {
		return nil
	}
	f, ok := w.info.Uses[name].(*types.Func)
	if !ok {
		return nil
	}
	var shapes []*shape
	for _, argument := range arguments {
		shapes = append(shapes, w.written(w.info, argument))
	}
	return w.generic(f, shapes...)
}

// composite reads a literal, whose type may be left out within another one.
func (w *walker) composite(e *ast.CompositeLit, outer *shape) *shape {
	s := outer.resolve()
	if e.Type != nil {
		s = w.written(w.info, e.Type)
	}
	t := w.info.TypeOf(e).Underlying()
	if pointer, ok := t.(*types.Pointer); ok { // &T left out
		t, s = pointer.Elem().Underlying(), elem(s)
	}
	w.shapes[e] = s
	for i, element := range e.Elts {
		var to *shape
		kv, keyed := element.(*ast.KeyValueExpr)
		value := element
		if keyed {
			value = kv.Value
		}
		if t, ok := t.(*types.Struct); ok {
			if keyed {
				to = w.object(w.info.Uses[kv.Key.(*ast.Ident)])
			} else {
				to = w.object(t.Field(i))
			}
		} else if s != nil {
			to = s.elem
			if keyed && s.key != nil {
				w.element(s.key, kv.Key)
			}
		}
		w.element(to, value)
	}
	return s
}

func (w *walker) element(to *shape, value ast.Expr) {
	if lit, ok := value.(*ast.CompositeLit); ok && lit.Type == nil {
		w.composite(lit, to)
		return
	}
	w.flow(to, w.expr(value), nil, value)
}

func (w *walker) call(e *ast.CallExpr) *shape {
	if tv := w.info.Types[e.Fun]; tv.IsType() {
		return w.convert(e)
	} else if tv.IsBuiltin() {
		return w.builtin(e)
	}
	var f *types.Func
	switch fun := ast.Unparen(e.Fun).(type) {
	case *ast.Ident:
		f, _ = w.info.Uses[fun].(*types.Func)
	case *ast.SelectorExpr:
		f, _ = w.info.Uses[fun.Sel].(*types.Func)
	}
	s := w.expr(e.Fun).resolve()
	if f != nil && f.Pkg() != nil {
		switch path := f.Pkg().Path(); {
		case path == "strconv":
			return w.strconv(e, f.Name(), s)
		case path == "gorm.io/gorm" && f.Name() == "Open":
			w.opens[e.Pos()] = true
		case path == "database/sql" && f.Name() == "LastInsertId":
			w.counters[e.Pos()] = true
		case path == "gorm.io/gorm" || path == "database/sql" || strings.HasSuffix(path, "/sqlx"):
			w.placeholders(e.Args)
		case strings.Contains(path, "testify/") || path == "reflect" || strings.Contains(path, "go-cmp/"):
			if strings.Contains(f.Name(), "Contains") {
				w.contained(e.Args)
			}
			w.alike(e.Args)
		}
	}
	if s == nil {
		return nil
	}
	params := s.params
	if s.variadic && !e.Ellipsis.IsValid() {
		params = append([]*shape{}, params[:len(params)-1]...)
		for range max(0, len(e.Args)-len(params)) {
			params = append(params, elem(s.params[len(s.params)-1]))
		}
	}
	w.values(params, e.Args)
	if len(s.results) == 1 {
		return s.results[0]
	}
	return &shape{results: s.results}
}

// alike joins the two arguments of functions that compare values of one type as any. Others of the
// type are a message. A constant has the type of the value beside it.
func (w *walker) alike(args []ast.Expr) {
	for i := range len(args) - 1 {
		x, y := args[i], args[i+1]
		if !types.Identical(w.info.TypeOf(x), w.info.TypeOf(y)) {
			continue
		}
		w.flow(w.expr(x), w.expr(y), x, y)
		if w.info.Types[x].Value == nil {
			x, y = y, x
		}
		if w.info.Types[x].Value != nil && w.expr(x) == nil {
			w.defaults[x.Pos()] = constantVar{x, w.expr(y)}
		}
		return
	}
}

// contained joins a value with the elements of a list, or the keys of a map, that is to contain it.
func (w *walker) contained(args []ast.Expr) {
	for i := range len(args) - 1 {
		list, value := w.expr(args[i]).resolve(), args[i+1]
		if list == nil {
			continue
		}
		switch t := w.info.TypeOf(args[i]).Underlying().(type) {
		case *types.Map:
			if types.Identical(t.Key(), w.info.TypeOf(value)) {
				w.flow(list.key, w.expr(value), nil, value)
			}
		case *types.Slice:
			if types.Identical(t.Elem(), w.info.TypeOf(value)) {
				w.flow(list.elem, w.expr(value), nil, value)
			}
		}
	}
}

var compared = regexp.MustCompile(`(?i)\b((?:\w+_)?id)\b["\x60]?\s*(?:[=<>]|<>|!=|<=|>=|\bin)\s*\(?\s*$`)

// placeholders marks what SQL compares with the column of a key, as in "user_id = ?".
func (w *walker) placeholders(args []ast.Expr) {
	for i, arg := range args {
		value := w.info.Types[arg].Value
		if value == nil || value.Kind() != constant.String {
			continue
		}
		parts := strings.Split(constant.StringVal(value), "?")
		for n, before := range parts[:len(parts)-1] {
			m := compared.FindStringSubmatch(before)
			if m == nil || !w.columns[strings.ToLower(m[1])] || i+1+n >= len(args) {
				continue
			}
			s := w.expr(args[i+1+n]).resolve()
			if s != nil && s.slot == nil && s.key == nil {
				s = s.elem.resolve()
			}
			if s != nil && s.slot != nil && !s.slot.fixed {
				s.slot.root().key = true
			}
		}
		return
	}
}

func (w *walker) convert(e *ast.CallExpr) *shape {
	to := w.written(w.info, e.Fun)
	from := w.expr(e.Args[0]).resolve()
	c := &conv{call: e, pkg: w.pkg}
	if to != nil {
		c.to = to.slot
	}
	if from != nil {
		c.from = from.slot
	}
	if b, ok := w.info.TypeOf(e.Fun).Underlying().(*types.Basic); ok {
		c.kind = b.Kind()
		w.convs[e.Lparen] = c
	} else if to != nil {
		w.flow(to, from, nil, nil)
	}
	return to
}

func (w *walker) builtin(e *ast.CallExpr) *shape {
	name := types.ExprString(e.Fun)
	switch name {
	case "make":
		return w.written(w.info, e.Args[0])
	case "new":
		return &shape{elem: w.expr(e.Args[0])}
	case "len", "cap", "copy":
		return &shape{slot: &slot{fixed: true, typ: "int"}}
	}
	if len(e.Args) == 0 {
		return nil
	}
	first := w.expr(e.Args[0]).resolve()
	for _, arg := range e.Args[1:] {
		switch {
		case name == "append" && !e.Ellipsis.IsValid():
			w.flow(elem(first), w.expr(arg), nil, arg)
		case name == "append":
			w.flow(first, w.expr(arg), nil, nil)
		case name == "delete" && first != nil:
			w.flow(first.key, w.expr(arg), nil, arg)
		case name == "min" || name == "max":
			w.flow(first, w.expr(arg), e.Args[0], arg)
		}
	}
	return first
}

// strconv notes calls that read and write integers in decimal.
func (w *walker) strconv(e *ast.CallExpr, name string, s *shape) *shape {
	decimal := len(e.Args) == 1 || types.ExprString(e.Args[1]) == "10"
	switch {
	case (name == "Atoi" || name == "ParseInt" || name == "ParseUint") && decimal:
		known := w.parses[e.Pos()]
		if known == nil {
			known = &parse{e, &slot{parsed: true}}
			w.parses[e.Pos()] = known
		}
		return &shape{results: []*shape{{slot: known.slot}, nil}}
	case (name == "Itoa" || name == "FormatInt" || name == "FormatUint") && decimal:
		w.formats[e.Args[0].Pos()] = e
	}
	w.values(s.params, e.Args)
	return &shape{results: s.results}
}
