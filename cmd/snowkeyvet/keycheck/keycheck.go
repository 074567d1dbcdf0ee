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
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"regexp"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/buildssa"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
	"golang.org/x/tools/go/ssa"

	"github.com/snowkey/snowkey/cmd/snowkeyvet/flow"
	"github.com/snowkey/snowkey/cmd/snowkeyvet/models"
)

// TypesPath is the package of the key types.
const TypesPath = "github.com/snowkey/snowkey/types"

// Narrow is the category of places that cut keys.
const Narrow = "narrow"

// Analyzer has all the rules of this package. It is safe for concurrent use.
var Analyzer = &analysis.Analyzer{
	Name:     "snowkey",
	Doc:      "find snowkey keys that lose digits or are used beside an error\n\nsnowkeyvet -move [-fix] [package] turns keys that the database counts into types.Snowflake.",
	Requires: []*analysis.Analyzer{inspect.Analyzer, buildssa.Analyzer},
	Run:      run,
}

// A checker checks one package.
type checker struct {
	*analysis.Pass
	*Findings
	models *models.Set
	keys   map[token.Pos]bool // fields of models that hold integers that are keys
}

func run(pass *analysis.Pass) (any, error) {
	if pass.Pkg.Path() == TypesPath {
		return nil, nil
	}
	c := &checker{Pass: pass, Findings: NewFindings(pass.Fset, pass.Files...), keys: map[token.Pos]bool{}}
	c.models = models.Find(models.Package{Info: c.TypesInfo, Files: c.Files})
	for i := 0; i < len(c.models.All); i++ { // grows
		c.keysOf(c.models.All[i])
	}
	for _, f := range c.Files {
		flow.Each(c.TypesInfo, f, c.checkJSON)
	}
	nodes := []ast.Node{(*ast.CallExpr)(nil), (*ast.StructType)(nil), (*ast.TypeSpec)(nil)}
	pass.ResultOf[inspect.Analyzer].(*inspector.Inspector).Preorder(nodes, func(n ast.Node) {
		switch n := n.(type) {
		case *ast.CallExpr:
			c.checkConversion(n)
			c.checkFormat(n)
		case *ast.StructType:
			c.checkTags(n)
		case *ast.TypeSpec:
			c.checkDefinition(n)
		}
	})
	for _, f := range pass.ResultOf[buildssa.Analyzer].(*buildssa.SSA).SrcFuncs {
		for _, block := range f.Blocks {
			for _, instr := range block.Instrs {
				if call, ok := instr.(*ssa.Call); ok {
					c.checkError(call)
				}
			}
		}
	}
	for _, d := range c.All() {
		c.Report(d)
	}
	return nil, nil
}

// keysOf notes the integers that are keys of a model, or refer to one.
func (c *checker) keysOf(m *models.Model) {
	every := func(*models.Column) bool { return true }
	c.models.Keys(m, every, func(column *models.Column) { c.keys[column.Field.Pos()] = true })
}

// integerKey reports whether a value is read from a field that holds the key of a model as an integer.
func (c *checker) integerKey(e ast.Expr) bool {
	if star, ok := ast.Unparen(e).(*ast.StarExpr); ok {
		e = star.X
	}
	sel, _ := ast.Unparen(e).(*ast.SelectorExpr)
	s := c.TypesInfo.Selections[sel]
	if s == nil {
		return false
	}
	if m := c.models.Of(s.Recv()); m != nil { // of another package
		c.keysOf(m)
	}
	return c.keys[s.Obj().Pos()]
}

func (c *checker) report(category string, at analysis.Range, message string, fixes ...analysis.SuggestedFix) {
	c.Add(analysis.Diagnostic{Pos: at.Pos(), End: at.End(), Category: category, Message: message, SuggestedFixes: fixes})
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
	if !models.HasMethod(defined, "MarshalJSON", "MarshalText", "AppendText") {
		c.report("number", spec.Name, "type "+spec.Name.Name+" does not have the methods of "+c.name(key)+
			", so JSON gets a number; declare it as an alias, or use types.ID")
	}
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
		if value == nil || value.Kind() != constant.String {
			continue
		}
		format := strings.ReplaceAll(constant.StringVal(value), "%%", "  ")
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
