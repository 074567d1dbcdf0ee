package move

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/constant"
	"go/format"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ast/astutil"
	"golang.org/x/tools/go/types/typeutil"

	"github.com/snowkey/snowkey/cmd/snowkeyvet/keycheck"
	"github.com/snowkey/snowkey/cmd/snowkeyvet/models"
)

const (
	typesPath  = keycheck.TypesPath
	pluginPath = "github.com/snowkey/snowkey/gormplugin"
)

// The categories of findings, beside keycheck.Narrow: 32 bits of a key are kept, on every platform.
const (
	moves = "move" // has an edit
	left  = "left" // for somebody to look at
)

// Findings returns what has to change: first the places that cut keys, then all others, each in the
// order of the source. A finding of category "move" has an edit; the others are for somebody to
// look at.
func (p *Program) Findings() []analysis.Diagnostic {
	var files []*ast.File
	for _, file := range p.files {
		files = append(files, file.File)
	}
	f := &edits{p, keycheck.NewFindings(p.Fset, files...)}
	for _, say := range p.later {
		say(f)
	}
	f.types()
	f.models()
	f.fields()
	all := f.All()
	for i := range all {
		if all[i].Category == moves && len(all[i].SuggestedFixes) == 0 { // of a generated file
			all[i].Category = left
		}
	}
	return all
}

// edits are what Findings finds.
type edits struct {
	*Program
	*keycheck.Findings
}

// around writes other text around an expression, or what it is part of.
func (f *edits) around(outer, inner ast.Node, before, after, message string) {
	f.edit(message, analysis.TextEdit{Pos: outer.Pos(), End: inner.Pos(), NewText: []byte(before)},
		analysis.TextEdit{Pos: inner.End(), End: outer.End(), NewText: []byte(after)})
}

// replace writes other text for a part of the source.
func (f *edits) replace(n ast.Node, text, message string) {
	f.edit(message, analysis.TextEdit{Pos: n.Pos(), End: n.End(), NewText: []byte(text)})
}

func (f *edits) edit(message string, all ...analysis.TextEdit) {
	f.Add(analysis.Diagnostic{Pos: all[0].Pos, Category: moves, Message: message,
		SuggestedFixes: []analysis.SuggestedFix{{Message: message, TextEdits: all}}})
}

func (f *edits) left(pos token.Pos, message string) {
	f.Add(analysis.Diagnostic{Pos: pos, Category: left, Message: message})
}

// name returns how a place in a file writes Snowflake or a function of its package.
func (f *edits) name(pos token.Pos, name string) string {
	file := f.files[f.Fset.Position(pos).Filename]
	for _, spec := range file.Imports {
		if spec.Path.Value == strconv.Quote(typesPath) && spec.Name != nil {
			return spec.Name.Name + "." + name
		}
	}
	if scope := file.pkg.Types.Scope().Innermost(pos); scope != nil {
		_, obj := scope.LookupParent("types", token.NoPos)
		if pkg, ok := obj.(*types.PkgName); obj != nil && (!ok || pkg.Imported().Path() != typesPath) {
			return "snowkeytypes." + name // types is something else here
		}
	}
	return "types." + name
}

// types changes the integers that are keys.
func (f *edits) types() {
	for _, s := range f.slots {
		if !s.isKey() || s.expr == nil {
			continue
		}
		text, what := f.name(s.expr.Pos(), "Snowflake"), "key"
		if len(s.own) > 0 {
			what += " (" + strings.Join(s.own, ", ") + ")"
		}
		if s.spec != nil && s.expr == s.spec.Type {
			named, ok := f.decls[s.spec.Name.Pos()].info.Defs[s.spec.Name].Type().(*types.Named)
			if ok && named.NumMethods() > 0 {
				f.left(s.expr.Pos(), "type "+s.spec.Name.Name+" is a key and has methods: make it a types.ID, and its methods functions")
				continue
			}
			text = "= " + text
		}
		f.replace(s.expr, text, types.ExprString(s.expr)+" is a "+what+" and becomes types.Snowflake")
	}
}

// models reports what GORM and sqlx need of somebody.
func (f *edits) models() {
	for pos := range f.Program.models.Unknown {
		f.left(pos, "GORM gets a model here that the source does not show: if it has no tag, give its key the tag gorm:\"primaryKey\"")
	}
	for _, m := range f.Program.models.All {
		if m.Key != nil && f.object(m.Key.Field).elem.isKey() && m.SQLX() {
			f.left(m.Key.Field.Pos(), "rows of "+m.Name.Name()+" need a key before the insert: use sqlxhelper, or set it from the generator")
		}
	}
}

// fields changes gorm.Model and tags. It reports integers that JSON gives the name of a key, which no
// value of the program shows to be one: they refuse its string.
func (f *edits) fields() {
	keys, integers := map[string]bool{}, map[string][]*ast.Field{}
	for _, file := range f.files {
		info := file.pkg.TypesInfo
		ast.Inspect(file.File, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if obj, ok := info.Uses[n.Sel].(*types.TypeName); ok && obj.Pkg() != nil && obj.Pkg().Path() == "gorm.io/gorm" && obj.Name() == "Model" {
					f.replace(n, "gormplugin.Model", "gorm.Model becomes gormplugin.Model")
				}
			case *ast.Field:
				if n.Tag == nil || len(n.Names) != 1 {
					break
				}
				s := f.object(info.Defs[n.Names[0]]).elem
				text, _ := strconv.Unquote(n.Tag.Value)
				tag := reflect.StructTag(text)
				name, _, _ := strings.Cut(tag.Get("json"), ",")
				if s.isKey() {
					keys[name] = true
					f.column(n, models.Settings(tag.Get("gorm")))
				} else if s != nil && name != "" && name != "-" {
					integers[name] = append(integers[name], n)
				}
			}
			return true
		})
	}
	for name := range keys {
		for _, field := range integers[name] {
			f.left(field.Pos(), "JSON calls the integer "+field.Names[0].Name+" "+name+", as it does keys, which are strings: is it one?")
		}
	}
}

// column changes the tag of a key.
func (f *edits) column(n *ast.Field, settings map[string]string) {
	if without, ok := keycheck.WithoutAutoIncrement(n.Tag.Value); ok {
		f.replace(n.Tag, without, "field "+n.Names[0].Name+" loses autoIncrement, with which every create is a ModelError")
	}
	typ := strings.ToLower(settings["TYPE"])
	bits, _ := strconv.Atoi(settings["SIZE"])
	if typ != "" && !strings.Contains(typ, "bigint") || bits > 0 && bits < 64 {
		f.left(n.Tag.Pos(), "field "+n.Names[0].Name+" is a key; its column must have 64 bits, see the tag")
	}
}

// conversion removes a conversion between keys, and reports one that cuts a key.
func (f *edits) conversion(c conv) {
	arg := c.call.Args[0]
	value := c.info.Types[arg].Value
	switch {
	case c.to.isKey() && c.from.isKey():
		f.around(c.call, arg, "", "", "a key needs no conversion")
	case c.to.isKey() && value != nil && constant.Compare(value, token.GTR, constant.MakeUint64(1<<63-1)):
		if strings.HasPrefix(types.ExprString(arg), "math.MaxUint") {
			f.replace(arg, "math.MaxInt64", "the largest key is math.MaxInt64")
		} else {
			f.left(arg.Pos(), "a key is at most math.MaxInt64")
		}
	case c.from.isKey() && !f.formatted(c.call, arg):
		f.cut(c.call.Pos(), models.CName(types.ExprString(ast.Unparen(c.call.Fun))), c.info.TypeOf(c.call.Fun), "")
	}
}

// cut reports a conversion of a key to a number that has fewer than 64 bits.
func (f *edits) cut(pos token.Pos, name string, to types.Type, purpose string) {
	basic, ok := to.Underlying().(*types.Basic)
	switch {
	case !ok:
	case basic.Info()&types.IsFloat != 0:
		f.left(pos, "float of a key: a float holds 53 bits, a key 63")
	case basic.Kind() == types.Int || basic.Kind() == types.Uint:
		f.left(pos, name+" of a key"+purpose+": it has 32 bits on some platforms")
	case keycheck.Small(basic):
		f.Add(analysis.Diagnostic{Pos: pos, Category: keycheck.Narrow,
			Message: name + " of a key" + purpose + " loses digits: keys need 48 to 63 bits; make it 64 bits wide"})
	}
}

// formatted changes a call of strconv whose argument writes the key into its method String.
func (f *edits) formatted(argument, key ast.Expr) bool {
	call := f.formats[argument.Pos()]
	if call == nil || call.Args[0] != argument {
		return false
	}
	before, after := "", ".String()"
	switch key.(type) {
	case *ast.StarExpr, *ast.BinaryExpr, *ast.UnaryExpr:
		before, after = "(", ").String()"
	}
	f.around(call, key, before, after, types.ExprString(call.Fun)+" of a key becomes String")
	return true
}

// bound converts a value where a key meets an integer of another module, which is of type to if the
// value is the key.
func (f *edits) bound(own, foreign *slot, value ast.Expr, to string, info *types.Info) {
	if !own.isKey() || value == nil || to != "" && f.formatted(value, value) {
		return
	}
	if info == nil || !integer(info.TypeOf(value).Underlying()) {
		message := "a list, map or function of keys meets one of " + foreign.typ + " of another module"
		if call, ok := value.(*ast.CallExpr); ok && info != nil {
			if callee := typeutil.Callee(info, call); callee != nil && callee.Name() == "LastInsertId" {
				message = "LastInsertId is a number of the database: insert with sqlxhelper, which sets the key, or set it from the generator before"
			}
		}
		f.left(value.Pos(), message)
		return
	}
	with := to
	if to == "" {
		with = f.name(value.Pos(), "Snowflake")
	} else {
		f.cut(value.Pos(), to, types.Universe.Lookup(to).Type(), " for another module")
	}
	f.around(value, value, with+"(", ")", "a key meets an "+foreign.typ+" of another module and is converted")
}

// Fix writes the edits of the findings into the files and returns how many files changed. It
// writes nothing if an edited file would not parse.
func (p *Program) Fix(all []analysis.Diagnostic) (changed int, err error) {
	edits := map[string][]analysis.TextEdit{}
	for _, finding := range all {
		for _, fix := range finding.SuggestedFixes {
			name := p.Fset.Position(finding.Pos).Filename
			edits[name] = append(edits[name], fix.TextEdits...)
		}
	}
	texts := map[string][]byte{}
	for name, list := range edits {
		text, err := os.ReadFile(name)
		if err != nil {
			return 0, fmt.Errorf("move: %w", err)
		}
		slices.SortStableFunc(list, func(a, b analysis.TextEdit) int { return cmp.Or(int(b.Pos-a.Pos), int(b.End-a.End)) })
		lines := token.NewFileSet().AddFile(name, -1, len(text))
		lines.SetLinesForContent(text)
		offset := func(pos token.Pos) int { // by line and column, as cgo's copy has them too
			at := p.Fset.Position(pos)
			return lines.Offset(lines.LineStart(at.Line)) + at.Column - 1
		}
		for _, e := range list {
			text = slices.Concat(text[:offset(e.Pos)], e.NewText, text[offset(e.End):])
		}
		if texts[name], err = imports(name, text); err != nil {
			return 0, err
		}
	}
	for name, text := range texts {
		if err := os.WriteFile(name, text, 0o644); err != nil {
			return changed, fmt.Errorf("move: %w", err)
		}
		changed++
	}
	return changed, nil
}

// imports adds the imports that the edits need and removes those that nothing uses any more.
func imports(name string, text []byte) ([]byte, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, text, parser.ParseComments)
	if err != nil {
		return nil, fmt.Errorf("move: edits of %s: %w", filepath.Base(name), err)
	}
	add := func(use, name, path string) {
		if bytes.Contains(text, []byte(use)) && !slices.ContainsFunc(f.Imports, func(s *ast.ImportSpec) bool { return s.Path.Value == `"`+path+`"` }) {
			astutil.AddNamedImport(fset, f, name, path)
		}
	}
	add("snowkeytypes.", "snowkeytypes", typesPath)
	add("types.Snowflake", "", typesPath)
	add("types.Parse(", "", typesPath)
	add("gormplugin.Model", "", pluginPath)
	for _, path := range []string{"gorm.io/gorm", "strconv", "math/bits", "math"} {
		if !astutil.UsesImport(f, path) {
			astutil.DeleteImport(fset, f, path)
		}
	}
	var out bytes.Buffer
	if err := format.Node(&out, fset, f); err != nil {
		return nil, fmt.Errorf("move: format %s: %w", filepath.Base(name), err)
	}
	return out.Bytes(), nil
}
