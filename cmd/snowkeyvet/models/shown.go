package models

import (
	"go/ast"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/types/typeutil"
)

const gormPath = "gorm.io/gorm"

// takes are GORM's functions whose first argument is a model, a list of them, or a pointer to one
// of these. All arguments of those of a Migrator are.
var takes = map[string]bool{
	"Create": true, "CreateInBatches": true, "Save": true, "First": true, "Take": true, "Last": true, "Find": true,
	"FindInBatches": true, "FirstOrInit": true, "FirstOrCreate": true, "Updates": true, "Delete": true, "Model": true,
	"AutoMigrate": true, "CreateTable": true, "DropTable": true, "HasTable": true,
}

// shown returns what a call hands to GORM as models.
func shown(info *types.Info, call *ast.CallExpr) []ast.Expr {
	f, ok := typeutil.Callee(info, call).(*types.Func)
	if !ok || f.Pkg() == nil || f.Pkg().Path() != gormPath {
		return nil
	}
	if index, ok := ast.Unparen(call.Fun).(*ast.IndexExpr); ok && f.Name() == "G" { // gorm.G[T](db)
		return []ast.Expr{index.Index}
	}
	switch {
	case !takes[f.Name()]:
		return nil
	case !f.Signature().Variadic() || f.Signature().Params().Len() > 1:
		return call.Args[:min(1, len(call.Args))]
	}
	return call.Args
}

// A value is an expression of a package.
type value struct {
	info *types.Info
	expr ast.Expr
}

// flows are what the variables and parameters of an interface type may hold, and what functions
// may return, by where these are declared.
type flows map[token.Pos][]value

// read notes what flows in a package.
func (f flows) read(p Package) {
	put := func(to types.Object, from ast.Expr) {
		if to != nil && opaque(to.Type()) {
			f[to.Pos()] = append(f[to.Pos()], value{p.Info, from})
		}
	}
	assign := func(to, from ast.Expr) {
		if id, ok := to.(*ast.Ident); ok {
			put(p.Info.ObjectOf(id), from)
		}
	}
	for _, file := range p.Files {
		var results *types.Tuple
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				results = p.Info.Defs[n.Name].(*types.Func).Signature().Results()
			case *ast.ReturnStmt:
				if results != nil && results.Len() == 1 && len(n.Results) == 1 {
					put(results.At(0), n.Results[0])
				}
			case *ast.AssignStmt:
				for i := range n.Rhs {
					if len(n.Lhs) == len(n.Rhs) {
						assign(n.Lhs[i], n.Rhs[i])
					}
				}
			case *ast.ValueSpec:
				for i := range n.Values {
					if len(n.Names) == len(n.Values) {
						assign(n.Names[i], n.Values[i])
					}
				}
			case *ast.RangeStmt:
				if opaque(p.Info.TypeOf(n.X)) {
					assign(n.Value, n.X)
				}
			case *ast.CallExpr:
				sig, ok := p.Info.TypeOf(n.Fun).(*types.Signature)
				if callee, static := typeutil.Callee(p.Info, n).(*types.Func); static {
					sig = callee.Origin().Signature() // with its type parameters
				}
				for i, arg := range n.Args {
					if ok && sig.Params().Len() > 0 {
						put(sig.Params().At(min(i, sig.Params().Len()-1)), arg)
					}
				}
			}
			return true
		})
	}
}

// opaque reports whether t, or what it points to or is a list of, is an interface or a type parameter.
func opaque(t types.Type) bool {
	switch u := types.Unalias(t).(type) {
	case nil:
		return false
	case *types.Pointer:
		return opaque(u.Elem())
	case *types.Array:
		return opaque(u.Elem())
	case *types.Slice:
		return opaque(u.Elem())
	}
	return types.IsInterface(t)
}

// show adds the models that a value is or may hold.
func (s *Set) show(f flows, v value) {
	t := v.info.TypeOf(v.expr)
	if !opaque(t) {
		s.add(StructOf(t))
		return
	}
	all := func(parts ...ast.Expr) {
		for _, part := range parts {
			s.show(f, value{v.info, part})
		}
	}
	var declared types.Object
	switch e := ast.Unparen(v.expr).(type) {
	case *ast.CompositeLit:
		all(e.Elts...)
		return
	case *ast.UnaryExpr:
		if e.Op == token.AND {
			all(e.X)
			return
		}
	case *ast.CallExpr:
		switch fun := v.info.Types[e.Fun]; {
		case fun.IsType(), fun.IsBuiltin() && types.ExprString(e.Fun) == "append":
			all(e.Args...)
			return
		case fun.IsBuiltin(): // make
			return
		}
		if sig, ok := v.info.TypeOf(e.Fun).(*types.Signature); ok {
			declared = sig.Results().At(0)
		}
	case *ast.Ident:
		declared = v.info.Uses[e]
	case *ast.SelectorExpr:
		declared = v.info.Uses[e.Sel]
	}
	if declared != nil && f[declared.Pos()] != nil {
		values := f[declared.Pos()]
		f[declared.Pos()] = values[:0] // it may hold itself
		for _, each := range values {
			s.show(f, each)
		}
		return
	}
	s.Unknown[v.expr.Pos()] = true
}
