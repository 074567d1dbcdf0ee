// Package flow says which values of a program go where: into variables, fields, parameters,
// results, and the elements of lists, maps and channels. Package models follows models by it that
// a program hands over as any, the rules of keycheck follow keys to JSON, and move follows them
// everywhere.
package flow

import (
	"go/ast"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/types/typeutil"
)

// A Part is what a Place is of its expression.
type Part int

// The parts of an expression.
const (
	Whole   Part = iota
	Elem         // an element of a list, map or channel
	Key          // a key of a map
	Field        // the field Index of a composite literal
	Param        // the parameter Index of the function that a call calls
	Result       // the result Index of a call, or of the function around a return
	Operand      // what the value is computed with
)

// A Place is where a value comes from or goes to.
type Place struct {
	Expr   ast.Expr     // nil for the result of a function that returns
	Object types.Object // the parameter, result or field, if the value goes to one
	Part   Part
	Index  int
}

// Each calls found for all values in a part of the source that go somewhere, and what a value is part
// of before the value.
func Each(info *types.Info, root ast.Node, found func(to, from Place)) {
	reader{info, found}.read(root, nil)
}

type reader struct {
	info  *types.Info
	found func(to, from Place)
}

// read reads what is in a function that has results.
func (r reader) read(root ast.Node, results *types.Tuple) {
	ast.Inspect(root, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Body != nil {
				r.read(n.Body, r.info.Defs[n.Name].(*types.Func).Signature().Results())
			}
			return false
		case *ast.FuncLit:
			r.read(n.Body, r.info.TypeOf(n).(*types.Signature).Results())
			return false
		case *ast.AssignStmt:
			r.assign(n)
		case *ast.ValueSpec:
			r.values(n.Values, len(n.Names), func(i int) Place { return Place{Expr: n.Names[i]} })
		case *ast.ReturnStmt:
			if results != nil {
				r.values(n.Results, results.Len(), func(i int) Place { return Place{Object: results.At(i), Part: Result, Index: i} })
			}
		case *ast.SendStmt:
			r.found(Place{Expr: n.Chan, Part: Elem}, Place{Expr: n.Value})
		case *ast.RangeStmt:
			r.ranges(n)
		case *ast.CallExpr:
			r.call(n)
		case *ast.CompositeLit:
			Literal(r.info, n, r.found)
		}
		return true
	})
}

// values reports expressions, or the results of one call, that go to n places.
func (r reader) values(from []ast.Expr, n int, to func(int) Place) {
	for i := range n {
		switch {
		case len(from) == n:
			r.found(to(i), Place{Expr: from[i]})
		case len(from) == 1:
			if _, call := ast.Unparen(from[0]).(*ast.CallExpr); call {
				r.found(to(i), Place{Expr: from[0], Part: Result, Index: i})
			} else if i == 0 { // v, ok
				r.found(to(i), Place{Expr: from[0]})
			}
		}
	}
}

func (r reader) assign(n *ast.AssignStmt) {
	switch n.Tok {
	case token.ASSIGN, token.DEFINE:
		r.values(n.Rhs, len(n.Lhs), func(i int) Place { return Place{Expr: n.Lhs[i]} })
	case token.SHL_ASSIGN, token.SHR_ASSIGN:
		r.found(Place{Expr: n.Lhs[0]}, Place{Part: Operand})
	default:
		r.found(Place{Expr: n.Lhs[0]}, Place{Expr: n.Rhs[0], Part: Operand})
	}
}

func (r reader) ranges(n *ast.RangeStmt) {
	key, value := n.Key, n.Value
	switch r.info.TypeOf(n.X).Underlying().(type) {
	case *types.Map:
		if key != nil {
			r.found(Place{Expr: key}, Place{Expr: n.X, Part: Key})
		}
	case *types.Chan:
		value = key
	}
	if value != nil {
		r.found(Place{Expr: value}, Place{Expr: n.X, Part: Elem})
	}
}

func (r reader) call(n *ast.CallExpr) {
	sig, ok := r.info.TypeOf(n.Fun).(*types.Signature)
	if tv := r.info.Types[n.Fun]; !ok || tv.IsType() || tv.IsBuiltin() {
		return
	}
	if f, static := typeutil.Callee(r.info, n).(*types.Func); static {
		sig = f.Origin().Signature() // with its type parameters
	}
	count, params := len(n.Args), sig.Params()
	if count == 1 && params.Len() > 1 {
		count = params.Len() // f(g())
	}
	if params.Len() > 0 {
		r.values(n.Args, count, func(i int) Place {
			return Place{Expr: n, Object: params.At(min(i, params.Len()-1)), Part: Param, Index: i}
		})
	}
}

// Literal calls found for the values in a composite literal.
func Literal(info *types.Info, n *ast.CompositeLit, found func(to, from Place)) {
	t := info.TypeOf(n).Underlying()
	if pointer, ok := t.(*types.Pointer); ok { // &T left out
		t = pointer.Elem().Underlying()
	}
	s, isStruct := t.(*types.Struct)
	_, isMap := t.(*types.Map)
	for i, value := range n.Elts {
		kv, keyed := value.(*ast.KeyValueExpr)
		if keyed {
			value = kv.Value
		}
		switch {
		case isStruct && keyed:
			field := info.Uses[kv.Key.(*ast.Ident)]
			for i = range s.NumFields() {
				if s.Field(i) == field {
					break
				}
			}
			fallthrough
		case isStruct:
			found(Place{Expr: n, Object: s.Field(i), Part: Field, Index: i}, Place{Expr: value})
		default:
			if isMap && keyed {
				found(Place{Expr: n, Part: Key}, Place{Expr: kv.Key})
			}
			found(Place{Expr: n, Part: Elem}, Place{Expr: value})
		}
	}
}

// A Value is what a variable may hold.
type Value struct {
	Place
	Info *types.Info
}

// Values are what variables, parameters and results may hold, or have an element of, by where these
// are declared.
type Values map[token.Pos][]Value

// Read adds the values of a part of the source.
func (v Values) Read(info *types.Info, root ast.Node) {
	Each(info, root, func(to, from Place) {
		if to.Object == nil && to.Part == Whole {
			to.Object = Root(info, to.Expr)
		}
		if to, ok := to.Object.(*types.Var); ok && !to.IsField() {
			v[to.Pos()] = append(v[to.Pos()], Value{from, info})
		}
	})
}

// Root returns the variable that an expression is, or is an element of, or nil.
func Root(info *types.Info, e ast.Expr) types.Object {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		return info.ObjectOf(e)
	case *ast.SelectorExpr:
		return info.Uses[e.Sel]
	case *ast.IndexExpr:
		return Root(info, e.X)
	}
	return nil
}
