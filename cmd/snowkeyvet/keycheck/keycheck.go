// Package keycheck finds mistakes that programs make with the keys of package types and that
// the compiler cannot see.
//
// A key is a types.Snowflake or a types.ID of any table, and for the first rule also an integer that
// is the key of a model or refers to one, as package models finds them. Each diagnostic has one of
// these categories:
//
//   - narrow: a key is converted to an integer type that has 32 bits, on 32-bit platforms at
//     least. A part of a key, such as id % 16, may be converted. If the key is an integer, only
//     types that have 32 bits everywhere are reported.
//   - number: a key reaches JSON as a number, which JavaScript rounds above 2^53. It is
//     converted to an integer that becomes a field with a json tag, an element of gin.H, or an
//     argument of json.Marshal and of functions named ...JSON; it is formatted by "id": %d; or a
//     type is defined on a key type, which loses the methods that write a string.
//   - float: a key is converted to or from a float, which holds 53 bits.
//   - query: a key is compared with the elements of a JSON column, which holds strings: it finds no
//     row, and no error says so.
//   - atoi: a key is read by package strconv, which accepts what types.Parse refuses.
//   - autoincrement: a key field has the tag autoIncrement, with which every create of
//     gormplugin is a ModelError.
//   - err: a key is used although the error beside it is not nil, not looked at yet, or dropped.
//     The key is then 0.
//
// An integer of another package's model is known as a key only if a tag gorm, the tag db:"id" or
// TableName says that the struct is a model. A call such as AutoMigrate shows only the models of
// its package, because vet tools tell packages of those that they import, and not of their siblings.
// For structs without a tag, give the key the tag gorm:"primaryKey", or run snowkeyvet -move, which
// reads all packages at once.
//
// The rules are local to a function, and prefer silence to a false alarm: a key that is passed to
// another function as an integer is followed no further. A generated file has one diagnostic, with
// the number of its places.
package keycheck

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/buildssa"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
	"golang.org/x/tools/go/ssa"

	"github.com/snowkey/snowkey/cmd/snowkeyvet/models"
)

// TypesPath is the package of the key types.
const TypesPath = "github.com/snowkey/snowkey/types"

// Narrow is the category of places that cut keys.
const Narrow = "narrow"

// Analyzer has all the rules of this package. It is safe for concurrent use.
var Analyzer = &analysis.Analyzer{
	Name:     "snowkey",
	Doc:      "find snowkey keys that lose digits or are used beside an error",
	Requires: []*analysis.Analyzer{inspect.Analyzer, buildssa.Analyzer},
	Run:      run,
}

// A checker checks one package.
type checker struct {
	*analysis.Pass
	calls  map[token.Pos]*ast.CallExpr // by Lparen, the position of their SSA instructions
	seen   map[token.Pos]bool          // where something was reported
	models *models.Set
	keys   map[token.Pos]bool // fields of models that hold integers that are keys

	found     []analysis.Diagnostic
	generated map[*token.File][]analysis.Diagnostic // of each generated file
}

func run(pass *analysis.Pass) (any, error) {
	if pass.Pkg.Path() == TypesPath {
		return nil, nil
	}
	c := &checker{Pass: pass, calls: map[token.Pos]*ast.CallExpr{}, seen: map[token.Pos]bool{}, generated: map[*token.File][]analysis.Diagnostic{}}
	for _, f := range pass.Files {
		if models.Generated(f) {
			c.generated[pass.Fset.File(f.FileStart)] = nil
		}
	}
	c.findModels()
	nodes := []ast.Node{(*ast.CallExpr)(nil), (*ast.StructType)(nil), (*ast.TypeSpec)(nil)}
	pass.ResultOf[inspect.Analyzer].(*inspector.Inspector).Preorder(nodes, func(n ast.Node) {
		switch n := n.(type) {
		case *ast.CallExpr:
			c.calls[n.Lparen] = n
			c.checkFormat(n)
			c.checkQuery(n)
		case *ast.StructType:
			c.checkTags(n)
		case *ast.TypeSpec:
			c.checkDefinition(n)
		}
	})
	for _, f := range pass.ResultOf[buildssa.Analyzer].(*buildssa.SSA).SrcFuncs {
		for _, block := range f.Blocks {
			for _, instr := range block.Instrs {
				c.checkConversion(instr)
				if call, ok := instr.(*ssa.Call); ok {
					c.checkError(call)
				}
			}
		}
	}
	c.reportAll()
	return nil, nil
}

// findModels finds the integers that are keys of models of the package.
func (c *checker) findModels() {
	c.models, c.keys = models.Find(models.Package{Info: c.TypesInfo, Files: c.Files}), map[token.Pos]bool{}
	for i := 0; i < len(c.models.All); i++ { // grows
		c.keysOf(c.models.All[i])
	}
}

func (c *checker) keysOf(m *models.Model) {
	if m.Key != nil && integer(m.Key.Field.Type()) {
		c.keys[m.Key.Field.Pos()] = true
	}
	counts := func(m *models.Model) bool { return m.Key != nil && integer(m.Key.Field.Type()) }
	c.models.References(m, counts, func(column *models.Column) { c.keys[column.Field.Pos()] = true })
}

// integerKey reports whether v is read from a field that holds the key of a model as an integer.
func (c *checker) integerKey(v ssa.Value) bool {
	if load, ok := v.(*ssa.UnOp); ok && load.Op == token.MUL {
		v = load.X
	}
	if load, ok := v.(*ssa.UnOp); ok && load.Op == token.MUL { // of a pointer to a key
		v = load.X
	}
	var owner types.Type
	var field int
	switch v := v.(type) {
	case *ssa.FieldAddr:
		owner, field = v.X.Type().Underlying().(*types.Pointer).Elem(), v.Field
	case *ssa.Field:
		owner, field = v.X.Type(), v.Field
	default:
		return false
	}
	f := owner.Underlying().(*types.Struct).Field(field).Origin()
	if known := len(c.models.All); !c.keys[f.Pos()] {
		if m := c.models.Of(owner); m != nil && len(c.models.All) > known { // of another package
			c.keysOf(m)
		}
	}
	return c.keys[f.Pos()]
}

func integer(t types.Type) bool {
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsInteger != 0
}

func (c *checker) report(category string, at analysis.Range, message string, fixes ...analysis.SuggestedFix) {
	if c.seen[at.Pos()] {
		return
	}
	c.seen[at.Pos()] = true
	d := analysis.Diagnostic{Pos: at.Pos(), End: at.End(), Category: category, Message: message, SuggestedFixes: fixes}
	file := c.Fset.File(at.Pos())
	if _, generated := c.generated[file]; generated {
		c.generated[file] = append(c.generated[file], d)
		return
	}
	c.found = append(c.found, d)
}

// reportAll reports what was found, and each generated file once.
func (c *checker) reportAll() {
	for _, places := range c.generated {
		if len(places) > 0 {
			Sort(c.Fset, places)
			first := places[0]
			first.SuggestedFixes = nil
			first.Message += fmt.Sprintf(" (the first of %d places in a generated file: mend what it is generated from)", len(places))
			c.found = append(c.found, first)
		}
	}
	Sort(c.Fset, c.found)
	for _, d := range c.found {
		c.Report(d)
	}
}

// Sort puts the places that cut keys first, because each is a wrong result everywhere, and all
// others in the order of the source.
func Sort(fset *token.FileSet, all []analysis.Diagnostic) {
	slices.SortFunc(all, func(a, b analysis.Diagnostic) int {
		if cut := a.Category == Narrow; cut != (b.Category == Narrow) {
			if cut {
				return -1
			}
			return 1
		}
		x, y := fset.Position(a.Pos), fset.Position(b.Pos)
		return cmp.Or(strings.Compare(x.Filename, y.Filename), x.Offset-y.Offset, strings.Compare(a.Message, b.Message))
	})
}

// keyType reports whether t is types.Snowflake or types.ID[T].
func keyType(t types.Type) bool {
	named, ok := types.Unalias(t).(*types.Named)
	if !ok || named.Obj().Pkg() == nil || named.Obj().Pkg().Path() != TypesPath {
		return false
	}
	return named.Obj().Name() == "Snowflake" || named.Obj().Name() == "ID"
}

// name returns a type as the package writes it.
func (c *checker) name(t types.Type) string {
	return models.CName(types.TypeString(t, func(p *types.Package) string {
		if p == c.Pkg {
			return ""
		}
		return p.Name()
	}))
}

// checkDefinition reports a type that is defined on a key type and so has none of its methods.
func (c *checker) checkDefinition(spec *ast.TypeSpec) {
	key := c.TypesInfo.TypeOf(spec.Type)
	if spec.Assign.IsValid() || key == nil || !keyType(key) {
		return
	}
	defined := c.TypesInfo.Defs[spec.Name].Type()
	if !hasMethod(defined, "MarshalJSON", "MarshalText", "AppendText") {
		c.report("number", spec.Name, "type "+spec.Name.Name+" does not have the methods of "+c.name(key)+
			", so JSON gets a number; declare it as an alias, or use types.ID")
	}
}

func hasMethod(t types.Type, names ...string) bool {
	for _, name := range names {
		if m, _, _ := types.LookupFieldOrMethod(t, true, nil, name); m != nil {
			if _, ok := m.(*types.Func); ok {
				return true
			}
		}
	}
	return false
}

// checkTags reports key fields that the database should count.
func (c *checker) checkTags(s *ast.StructType) {
	for _, field := range s.Fields.List {
		if field.Tag == nil || len(field.Names) != 1 || !keyType(c.TypesInfo.TypeOf(field.Type)) {
			continue
		}
		if without, ok := WithoutAutoIncrement(field.Tag.Value); ok {
			c.report("autoincrement", field.Tag, "field "+field.Names[0].Name+" is a "+c.name(c.TypesInfo.TypeOf(field.Type))+
				", which gormplugin assigns: with autoIncrement every create is a ModelError",
				edit("Remove autoIncrement", field.Tag, without))
		}
	}
}

func edit(message string, at analysis.Range, text string) analysis.SuggestedFix {
	return analysis.SuggestedFix{Message: message,
		TextEdits: []analysis.TextEdit{{Pos: at.Pos(), End: at.End(), NewText: []byte(text)}}}
}

var autoIncrement = regexp.MustCompile(`(?i)(gorm:"[^"]*?)(;\s*autoIncrement(?::true)?\b|\bautoIncrement(?::true)?(?:;|\b))`)

// WithoutAutoIncrement returns a tag, as the source writes it, without gorm's autoIncrement, and
// whether it was there and not false.
func WithoutAutoIncrement(tag string) (string, bool) {
	at := autoIncrement.FindStringSubmatchIndex(tag)
	if at == nil || strings.HasPrefix(tag[at[1]:], ":") {
		return tag, false
	}
	without := tag[:at[4]] + tag[at[5]:]
	without = strings.ReplaceAll(without, `gorm:""`, "")
	return without, true
}

var (
	member = regexp.MustCompile(`"\s*:\s*%d`)
	verb   = regexp.MustCompile(`%[^%]`)
)

// checkFormat reports keys that a format writes as the number of a JSON object.
func (c *checker) checkFormat(call *ast.CallExpr) {
	for i, arg := range call.Args {
		value := c.TypesInfo.Types[arg].Value
		if value == nil || value.Kind() != stringKind {
			continue
		}
		format := strings.ReplaceAll(constantString(value), "%%", "  ")
		if strings.ContainsAny(format, "*") || strings.Contains(format, "%[") {
			continue
		}
		for _, at := range member.FindAllStringIndex(format, -1) {
			n := i + 1 + len(verb.FindAllString(format[:at[1]-2], -1))
			if n < len(call.Args) && keyType(c.TypesInfo.TypeOf(call.Args[n])) {
				c.report("number", call.Args[n], "%d writes a "+c.name(c.TypesInfo.TypeOf(call.Args[n]))+
					" into JSON as a number, which JavaScript rounds; use %q or encoding/json")
			}
		}
	}
}

// compares are the methods of package datatypes that compare a value with a JSON column.
var compares = map[string]bool{"Contains": true, "Equals": true, "Likes": true}

// checkQuery reports a key that package datatypes compares with what a JSON column holds.
func (c *checker) checkQuery(call *ast.CallExpr) {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !compares[sel.Sel.Name] || len(call.Args) == 0 {
		return
	}
	f, ok := c.TypesInfo.Uses[sel.Sel].(*types.Func)
	if key := c.TypesInfo.TypeOf(call.Args[0]); !ok || f.Pkg() == nil || f.Pkg().Path() != "gorm.io/datatypes" || key == nil || !keyType(key) {
		return
	}
	arg := call.Args[0]
	text := types.ExprString(arg) + ".String()"
	c.report("query", arg, sel.Sel.Name+" compares a number, and a JSON column holds a "+c.name(c.TypesInfo.TypeOf(arg))+
		" as a string: it finds no row on SQLite and MariaDB; use "+text, edit("Compare the text", arg, text))
}

// jsonName returns the name of a field with a json tag if a number there is one in JSON too.
func jsonName(s *types.Struct, i int) (name string, ok bool) {
	tag := reflect.StructTag(s.Tag(i))
	name, found := tag.Lookup("json")
	if _, proto := tag.Lookup("protobuf"); !found || proto { // protojson writes strings
		return "", false
	}
	name, options, _ := strings.Cut(name, ",")
	if name == "" {
		name = s.Field(i).Name()
	}
	return name, name != "-" && !strings.Contains(options, "string")
}
