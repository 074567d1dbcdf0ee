package models

import (
	"go/ast"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/types/typeutil"

	"github.com/snowkey/snowkey/cmd/snowkeyvet/flow"
)

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
	if !ok || f.Pkg() == nil || f.Pkg().Path() != "gorm.io/gorm" {
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

// opaque reports whether t, or what it points to or is a list of, is an interface or a type parameter.
func opaque(t types.Type) bool {
	switch u := types.Unalias(t).(type) {
	case nil, *types.Map: // a map of columns
		return false
	case *types.Tuple: // of a call, whose results are followed
		return true
	case interface{ Elem() types.Type }:
		return opaque(u.Elem())
	}
	return types.IsInterface(t)
}

// show adds the models that a value is or may hold.
func (s *Set) show(v flow.Value) {
	if t := v.Info.TypeOf(v.Expr); !opaque(t) {
		s.add(StructOf(t))
		return
	}
	all := func(parts ...ast.Expr) {
		for _, part := range parts {
			s.show(flow.Value{Place: flow.Place{Expr: part}, Info: v.Info})
		}
	}
	var declared types.Object
	switch e := ast.Unparen(v.Expr).(type) {
	case *ast.CompositeLit:
		all(e.Elts...)
		return
	case *ast.UnaryExpr:
		if e.Op == token.AND {
			all(e.X)
			return
		}
	case *ast.CallExpr:
		switch fun := v.Info.Types[e.Fun]; {
		case fun.IsType(), fun.IsBuiltin() && types.ExprString(e.Fun) == "append":
			all(e.Args...)
			return
		case fun.IsBuiltin(): // make
			return
		}
		if sig, ok := v.Info.TypeOf(e.Fun).(*types.Signature); ok {
			declared = sig.Results().At(v.Index)
		}
	case *ast.Ident, *ast.SelectorExpr:
		declared = flow.Root(v.Info, v.Expr)
	}
	if declared == nil || s.Values[declared.Pos()] == nil {
		s.Unknown[v.Expr.Pos()] = true
	} else if pos := declared.Pos(); !s.followed[pos] {
		s.followed[pos] = true
		for _, each := range s.Values[pos] {
			s.show(each)
		}
	}
}
