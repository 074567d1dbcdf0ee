package keycheck

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"
)

const stringKind = constant.String

func constantString(v constant.Value) string { return constant.StringVal(v) }

// conversion returns the operand of a conversion.
func conversion(v any) ssa.Value {
	switch v := v.(type) {
	case *ssa.Convert:
		return v.X
	case *ssa.ChangeType:
		return v.X
	}
	return nil
}

// origin returns what v was before conversions.
func origin(v ssa.Value) ssa.Value {
	for x := conversion(v); x != nil; x = conversion(v) {
		v = x
	}
	return v
}

// whole reports whether v is all of a key, and not a part or a difference.
func whole(v ssa.Value) bool {
	switch v := v.(type) {
	case *ssa.BinOp, *ssa.Const:
		return false
	case *ssa.Phi:
		for _, edge := range v.Edges {
			if _, phi := edge.(*ssa.Phi); !phi && !whole(edge) {
				return false
			}
		}
	}
	return true
}

// checkConversion reports conversions between keys and numbers that lose digits, and those whose
// result reaches JSON.
func (c *checker) checkConversion(instr ssa.Instruction) {
	result, ok := instr.(ssa.Value)
	if !ok {
		return
	}
	if call, ok := instr.(*ssa.Call); ok {
		if f := call.Call.StaticCallee(); f != nil && f.Name() == "Int64" && len(call.Call.Args) == 1 &&
			keyType(call.Call.Args[0].Type()) && whole(call.Call.Args[0]) {
			c.checkJSON(call.Call.Args[0].Type(), result)
		}
		return
	}
	from := conversion(instr)
	if from == nil {
		return
	}
	if keyType(result.Type()) {
		c.checkOrigin(result, from)
		return
	}
	to, ok := result.Type().Underlying().(*types.Basic)
	if ok && narrow(to) {
		from = origin(from) // the steps between may be wide
	}
	if ok && !keyType(from.Type()) && narrow(to) && instr.Pos().IsValid() && c.integerKey(from) {
		at := c.at(instr)
		c.report(Narrow, at, fmt.Sprintf("%s is too small for %s, the key of a model, which needs up to 63 bits; use int64", c.name(result.Type()), c.operand(at, from)))
		return
	}
	if !ok || !keyType(from.Type()) || !whole(from) || !instr.Pos().IsValid() || hasMethod(result.Type(), "MarshalJSON", "MarshalText") {
		return
	}
	at, key := c.at(instr), c.name(from.Type())
	switch {
	case to.Info()&types.IsFloat != 0:
		c.report("float", at, fmt.Sprintf("%s holds 53 bits or fewer, and %s is a %s of 63; keep it as it is, or as text", to, c.operand(at, from), key))
	case to.Kind() == types.Int || to.Kind() == types.Uint:
		if !c.checkJSON(from.Type(), result) {
			c.report(Narrow, at, fmt.Sprintf("%s has 32 bits on some platforms, and %s is a %s of 63; use int64", to, c.operand(at, from), key))
		}
	case to.Info()&types.IsInteger != 0 && to.Kind() != types.Int64 && to.Kind() != types.Uint64 && to.Kind() != types.Uintptr:
		c.report(Narrow, at, fmt.Sprintf("%s is too small for %s, a %s of 63 bits; use int64", to, c.operand(at, from), key))
	default:
		c.checkJSON(from.Type(), result)
	}
}

// narrow reports whether an integer type has less than 64 bits on every platform.
func narrow(b *types.Basic) bool {
	switch b.Kind() {
	case types.Int8, types.Int16, types.Int32, types.Uint8, types.Uint16, types.Uint32:
		return true
	}
	return false
}

// at returns the call or conversion of an instruction, or its position alone.
func (c *checker) at(instr ssa.Instruction) analysis.Range {
	if call, ok := c.calls[instr.Pos()]; ok {
		return call
	}
	return analysis.Range(span(instr.Pos()))
}

type span token.Pos

func (s span) Pos() token.Pos { return token.Pos(s) }
func (s span) End() token.Pos { return token.Pos(s) }

// operand returns the source of what a conversion converts.
func (c *checker) operand(at analysis.Range, from ssa.Value) string {
	if call, ok := at.(*ast.CallExpr); ok && len(call.Args) == 1 {
		return types.ExprString(call.Args[0])
	}
	return from.Name()
}

// checkOrigin reports a key that was a float, or that strconv has read.
func (c *checker) checkOrigin(key, from ssa.Value) {
	if basic, ok := from.Type().Underlying().(*types.Basic); ok && basic.Info()&types.IsFloat != 0 {
		if _, constant := from.(*ssa.Const); !constant {
			c.report("float", c.at(key.(ssa.Instruction)), "a "+c.name(key.Type())+" made of a "+basic.String()+
				" has lost what is above 53 bits; decode into a key, or into json.Number")
		}
		return
	}
	extract, ok := origin(from).(*ssa.Extract)
	if !ok || extract.Index != 0 {
		return
	}
	call, ok := extract.Tuple.(*ssa.Call)
	if !ok {
		return
	}
	f := call.Call.StaticCallee()
	if f == nil || f.Pkg == nil || f.Pkg.Pkg.Path() != "strconv" {
		return
	}
	switch f.Name() {
	case "Atoi", "ParseInt", "ParseUint":
		c.report("atoi", c.at(call), "strconv."+f.Name()+" reads a "+c.name(key.Type())+
			"; types.Parse refuses negative numbers, signs and leading zeros, and names the value in its error")
	}
}

// checkJSON reports a key of type key whose number reaches JSON.
func (c *checker) checkJSON(key types.Type, number ssa.Value) bool {
	where := jsonSink(number, map[ssa.Value]bool{})
	if where != "" {
		c.report("number", c.at(number.(ssa.Instruction)), "a "+c.name(key)+" reaches JSON as a number, "+where+
			"; JavaScript rounds numbers above 2^53; use the key itself, which is a string there")
	}
	return where != ""
}

// jsonSink says where in the function v becomes part of a JSON text, or returns "".
func jsonSink(v ssa.Value, seen map[ssa.Value]bool) string {
	if seen[v] || v.Referrers() == nil {
		return ""
	}
	seen[v] = true
	for _, r := range *v.Referrers() {
		if where := jsonUse(r, v, seen); where != "" {
			return where
		}
	}
	return ""
}

func jsonUse(r ssa.Instruction, v ssa.Value, seen map[ssa.Value]bool) string {
	switch r := r.(type) {
	case *ssa.Convert, *ssa.ChangeType:
		if to := r.(ssa.Value).Type(); !keyType(to) && !hasMethod(to, "MarshalJSON", "MarshalText") {
			return jsonSink(r.(ssa.Value), seen)
		}
	case *ssa.Phi, *ssa.MakeInterface, *ssa.ChangeInterface, *ssa.Slice:
		return jsonSink(r.(ssa.Value), seen)
	case *ssa.UnOp:
		if r.Op == token.MUL && r.X == v { // what a local variable holds
			if _, local := v.(*ssa.Alloc); local {
				return jsonSink(r, seen)
			}
		}
	case *ssa.MapUpdate:
		if r.Value == v {
			if named, ok := types.Unalias(r.Map.Type()).(*types.Named); ok && jsonMaps[named.Obj().Name()] && named.Obj().Pkg() != nil &&
				strings.Contains("/gin/echo/v4/v5/fiber/", "/"+named.Obj().Pkg().Name()+"/") {
				return "in " + named.Obj().Pkg().Name() + "." + named.Obj().Name()
			}
			return jsonSink(r.Map, seen)
		}
	case *ssa.Store:
		if r.Val == v {
			return jsonStore(r.Addr, seen)
		}
	case *ssa.Call:
		if types.IsInterface(v.Type()) {
			return jsonCall(r)
		}
	}
	return ""
}

var jsonMaps = map[string]bool{"H": true, "Map": true}

// jsonStore follows a number into a variable, an element or a field.
func jsonStore(addr ssa.Value, seen map[ssa.Value]bool) string {
	switch addr := addr.(type) {
	case *ssa.Alloc:
		return jsonSink(addr, seen)
	case *ssa.IndexAddr:
		return jsonSink(addr.X, seen)
	case *ssa.FieldAddr:
		t := addr.X.Type().Underlying().(*types.Pointer).Elem()
		s := t.Underlying().(*types.Struct)
		field := s.Field(addr.Field)
		if hasMethod(t, "MarshalJSON", "MarshalText") || hasMethod(field.Type(), "MarshalJSON", "MarshalText") {
			return ""
		}
		if name, ok := jsonName(s, addr.Field); ok {
			if named, ok := types.Unalias(t).(*types.Named); ok {
				return fmt.Sprintf("in field %s.%s (%q)", named.Obj().Name(), field.Name(), name)
			}
			return fmt.Sprintf("in field %s (%q)", field.Name(), name)
		}
		if s.Tag(addr.Field) == "" && field.Exported() {
			return jsonSink(addr.X, seen)
		}
	}
	return ""
}

// jsonCall names the function if it writes JSON.
func jsonCall(call *ssa.Call) string {
	name, path := "", ""
	if call.Call.IsInvoke() {
		name = call.Call.Method.Name()
	} else if f := call.Call.StaticCallee(); f != nil {
		name = f.Name()
		if f.Pkg != nil {
			path = f.Pkg.Pkg.Path()
		}
	}
	writer := strings.HasPrefix(path, "encoding/json") && (strings.HasPrefix(name, "Marshal") || name == "Encode")
	if strings.HasSuffix(name, "JSON") && !strings.HasPrefix(name, "Unmarshal") || writer {
		return "in the argument of " + name
	}
	return ""
}
