package keycheck

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"reflect"
	"strings"

	"golang.org/x/tools/go/types/typeutil"

	"github.com/snowkey/snowkey/cmd/snowkeyvet/flow"
	"github.com/snowkey/snowkey/cmd/snowkeyvet/models"
)

// held returns what is assigned to a local variable, and nil for other expressions.
func (c *checker) held(e ast.Expr) []flow.Value {
	id, ok := ast.Unparen(e).(*ast.Ident)
	if !ok {
		return nil
	}
	v, ok := c.TypesInfo.ObjectOf(id).(*types.Var)
	if !ok || v.Kind() != types.LocalVar {
		return nil
	}
	return c.models.Values[v.Pos()]
}

// conversion returns the operand of a conversion.
func (c *checker) conversion(e ast.Expr) (operand ast.Expr, ok bool) {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok || !c.TypesInfo.Types[call.Fun].IsType() || len(call.Args) != 1 {
		return nil, false
	}
	return call.Args[0], true
}

// origin returns what a value was before conversions, and before variables that hold nothing else.
func (c *checker) origin(e ast.Expr) ast.Expr {
	for range 32 { // a variable may hold itself
		if x, ok := c.conversion(e); ok {
			e = x
			continue
		}
		all := c.held(e)
		if len(all) != 1 || all[0].Part != flow.Whole || c.isKey(e) {
			break
		}
		e = all[0].Expr
	}
	return ast.Unparen(e)
}

// whole reports whether a value is all of a key, and not a part or a difference.
func (c *checker) whole(e ast.Expr, depth int) bool {
	if _, part := ast.Unparen(e).(*ast.BinaryExpr); part || c.TypesInfo.Types[e].Value != nil {
		return false
	}
	for _, v := range c.held(e) {
		if v.Part == flow.Operand || v.Part == flow.Whole && depth < 8 && !c.whole(v.Expr, depth+1) {
			return false
		}
	}
	return true
}

func (c *checker) isKey(e ast.Expr) bool { return keyType(c.TypesInfo.TypeOf(e)) }

// checkConversion reports conversions between keys and numbers that lose digits.
func (c *checker) checkConversion(call *ast.CallExpr) {
	arg, ok := c.conversion(call)
	if !ok {
		return
	}
	if c.isKey(call) {
		c.checkOrigin(call, arg)
		return
	}
	to, ok := c.TypesInfo.TypeOf(call).Underlying().(*types.Basic)
	if !ok || models.HasMethod(c.TypesInfo.TypeOf(call), marshal...) {
		return
	}
	from, name := arg, c.name(c.TypesInfo.TypeOf(call))
	if Small(to) { // the steps between may be wide
		from = c.origin(arg)
	}
	if !c.isKey(from) {
		if Small(to) && c.integerKey(from) {
			c.report(Narrow, call, fmt.Sprintf("%s is too small for %s, the key of a model, which needs up to 63 bits; use int64", name, types.ExprString(arg)))
		}
		return
	}
	if !c.whole(from, 0) {
		return
	}
	is := fmt.Sprintf("%s is a %s of 63", types.ExprString(arg), c.name(c.TypesInfo.TypeOf(from)))
	switch {
	case to.Info()&types.IsFloat != 0:
		c.report("float", call, to.String()+" holds 53 bits or fewer, and "+is+"; keep it as it is, or as text")
	case c.seen[place{call.Pos(), "number"}]:
	case to.Kind() == types.Int || to.Kind() == types.Uint:
		c.report(Narrow, call, to.String()+" has 32 bits on some platforms, and "+is+"; use int64")
	case Small(to):
		c.report(Narrow, call, fmt.Sprintf("%s is too small for %s, a %s of 63 bits; use int64", name, types.ExprString(arg), c.name(c.TypesInfo.TypeOf(from))))
	}
}

// Small reports whether an integer type has less than 64 bits on every platform.
func Small(b *types.Basic) bool {
	switch b.Kind() {
	case types.Int8, types.Int16, types.Int32, types.Uint8, types.Uint16, types.Uint32:
		return true
	}
	return false
}

// checkOrigin reports a key that was a float.
func (c *checker) checkOrigin(key *ast.CallExpr, arg ast.Expr) {
	from := c.TypesInfo.Types[arg]
	if basic, ok := from.Type.Underlying().(*types.Basic); ok && basic.Info()&types.IsFloat != 0 && from.Value == nil {
		c.report("float", key, "a "+c.name(c.TypesInfo.TypeOf(key))+" made of a "+basic.String()+
			" has lost what is above 53 bits; decode into a key, or into json.Number")
	}
}

var marshal = []string{"MarshalJSON", "MarshalText"}

// checkJSON reports the keys whose numbers reach JSON where a value goes.
func (c *checker) checkJSON(to, from flow.Place) {
	where := ""
	switch to.Part {
	case flow.Field:
		where = jsonField(c.TypesInfo.TypeOf(to.Expr), to.Index)
	case flow.Elem:
		where = jsonMap(c.TypesInfo.TypeOf(to.Expr))
	case flow.Param:
		where = jsonCall(c.TypesInfo, to)
	case flow.Whole:
		switch e := ast.Unparen(to.Expr).(type) {
		case *ast.IndexExpr:
			where = jsonMap(c.TypesInfo.TypeOf(e.X))
		case *ast.SelectorExpr:
			if sel := c.TypesInfo.Selections[e]; sel != nil && sel.Kind() == types.FieldVal {
				owner, index := sel.Recv(), sel.Index()
				for _, i := range index[:len(index)-1] {
					owner = structOf(owner).Field(i).Type()
				}
				where = jsonField(owner, index[len(index)-1])
			}
		}
	}
	if where != "" && from.Part == flow.Whole {
		c.numbers(from.Expr, where, map[ast.Expr]bool{})
	}
}

// numbers reports the keys whose numbers a value holds that JSON gets.
func (c *checker) numbers(e ast.Expr, where string, seen map[ast.Expr]bool) {
	e = ast.Unparen(e)
	t := c.TypesInfo.TypeOf(e)
	if seen[e] || t == nil || keyType(t) || models.HasMethod(t, marshal...) || jsonMap(t) != "" {
		return
	}
	seen[e] = true
	switch e := e.(type) {
	case *ast.Ident:
		for _, v := range c.held(e) {
			if v.Part == flow.Whole {
				c.numbers(v.Expr, where, seen)
			}
		}
	case *ast.UnaryExpr:
		if e.Op == token.AND {
			c.numbers(e.X, where, seen)
		}
	case *ast.CompositeLit:
		flow.Literal(c.TypesInfo, e, func(to, from flow.Place) {
			if s := structOf(t); to.Part == flow.Elem || s != nil && s.Tag(to.Index) == "" && s.Field(to.Index).Exported() {
				c.numbers(from.Expr, where, seen)
			}
		})
	case *ast.CallExpr:
		key, converted := c.conversion(e)
		if sel, ok := ast.Unparen(e.Fun).(*ast.SelectorExpr); ok && sel.Sel.Name == "Int64" {
			key = sel.X
		}
		switch basic, _ := t.Underlying().(*types.Basic); {
		case key != nil && c.isKey(key):
			if basic != nil && basic.Info()&types.IsInteger != 0 && !Small(basic) && c.whole(key, 0) {
				c.report("number", e, "a "+c.name(c.TypesInfo.TypeOf(key))+" reaches JSON as a number, "+where+
					"; JavaScript rounds numbers above 2^53; use the key itself, which is a string there")
			}
		case converted:
			c.numbers(key, where, seen)
		case c.TypesInfo.Types[e.Fun].IsBuiltin() && types.ExprString(e.Fun) == "append":
			for _, arg := range e.Args {
				c.numbers(arg, where, seen)
			}
		}
	}
}

// structOf returns the struct that t is or points to, or nil.
func structOf(t types.Type) *types.Struct {
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	s, _ := t.Underlying().(*types.Struct)
	return s
}

// jsonField says which field is part of JSON, if a number is one there too.
func jsonField(owner types.Type, index int) string {
	s := structOf(owner)
	if s == nil || models.HasMethod(owner, marshal...) || models.HasMethod(s.Field(index).Type(), marshal...) {
		return ""
	}
	tag := reflect.StructTag(s.Tag(index))
	name, found := tag.Lookup("json")
	name, options, _ := strings.Cut(name, ",")
	if _, proto := tag.Lookup("protobuf"); !found || proto || name == "-" || strings.Contains(options, "string") { // protojson writes strings
		return ""
	}
	field := s.Field(index).Name()
	if name == "" {
		name = field
	}
	if of := models.StructOf(owner); of != nil {
		field = of.Name() + "." + field
	}
	return fmt.Sprintf("in field %s (%q)", field, name)
}

// jsonMap says which type of a framework for the body of a reply t is.
func jsonMap(t types.Type) string {
	named, ok := types.Unalias(t).(*types.Named)
	if !ok || named.Obj().Pkg() == nil {
		return ""
	}
	switch name := named.Obj().Pkg().Name() + "." + named.Obj().Name(); name {
	case "gin.H", "echo.Map", "fiber.Map":
		return "in " + name
	}
	return ""
}

// jsonCall names the function if it writes JSON of any value that it gets.
func jsonCall(info *types.Info, to flow.Place) string {
	t := to.Object.Type()
	if list, ok := t.(*types.Slice); ok {
		t = list.Elem()
	}
	f, ok := typeutil.Callee(info, to.Expr.(*ast.CallExpr)).(*types.Func)
	if !ok || !types.IsInterface(t) {
		return ""
	}
	name := f.Name()
	writer := f.Pkg() != nil && strings.HasPrefix(f.Pkg().Path(), "encoding/json") && (strings.HasPrefix(name, "Marshal") || name == "Encode")
	if strings.HasSuffix(name, "JSON") && !strings.HasPrefix(name, "Unmarshal") || writer {
		return "in the argument of " + name
	}
	return ""
}
