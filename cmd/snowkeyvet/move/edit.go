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
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ast/astutil"

	"github.com/snowkey/snowkey/cmd/snowkeyvet/keycheck"
	"github.com/snowkey/snowkey/cmd/snowkeyvet/models"
)

const (
	typesPath  = keycheck.TypesPath
	pluginPath = "github.com/snowkey/snowkey/gormplugin"
)

// The categories of findings, in the order in which they come.
const (
	narrow = keycheck.Narrow // 32 bits of a key are kept, on every platform
	moves  = "move"          // has an edit
	left   = "left"          // for somebody to look at
)

// Findings returns what has to change: first the places that cut keys, then all others, each in the
// order of the source. A finding of category "move" has an edit; the others are for somebody to
// look at.
func (p *Program) Findings() []analysis.Diagnostic {
	f := &findings{Program: p, seen: map[token.Pos]bool{}, stale: map[*file]*generated{}}
	f.types()
	f.columns()
	f.conversions()
	f.bounds()
	f.constants()
	f.remarks()
	f.generatedFiles()
	f.configurations()
	keycheck.Sort(p.Fset, f.all)
	return f.all
}

type findings struct {
	*Program
	all   []analysis.Diagnostic
	seen  map[token.Pos]bool
	stale map[*file]*generated
}

// generated is what was found in a generated file.
type generated struct {
	places []token.Pos
	cut    int // places that cut keys
}

func (f *findings) generated(file *file) *generated {
	if f.stale[file] == nil {
		f.stale[file] = &generated{}
	}
	return f.stale[file]
}

func (f *findings) file(pos token.Pos) *file { return f.files[f.Fset.Position(pos).Filename] }

func (f *findings) move(pos, end token.Pos, text, message string) {
	if f.seen[pos] || f.file(pos) == nil {
		return
	}
	f.seen[pos] = true
	if file := f.file(pos); file.generated {
		g := f.generated(file)
		g.places = append(g.places, pos)
		return
	}
	edit := analysis.TextEdit{Pos: pos, End: end, NewText: []byte(text)}
	f.all = append(f.all, analysis.Diagnostic{Pos: pos, End: end, Category: moves, Message: message,
		SuggestedFixes: []analysis.SuggestedFix{{Message: message, TextEdits: []analysis.TextEdit{edit}}}})
}

func (f *findings) left(pos token.Pos, message string) { f.report(left, pos, message) }

func (f *findings) report(category string, pos token.Pos, message string) {
	if file := f.file(pos); file != nil && file.generated {
		g := f.generated(file)
		g.places = append(g.places, pos)
		if category == narrow {
			g.cut++
		}
		return
	}
	f.all = append(f.all, analysis.Diagnostic{Pos: pos, Category: category, Message: message})
}

// generatedFiles reports each generated file once.
func (f *findings) generatedFiles() {
	for _, g := range f.stale {
		d := analysis.Diagnostic{Pos: slices.Min(g.places), Category: left,
			Message: fmt.Sprintf("a generated file has keys in %d places, of which this is the first: generate it again", len(g.places))}
		if g.cut > 0 {
			d.Category = narrow
			d.Message += fmt.Sprintf(" with 64 bits, because %d of them lose digits", g.cut)
		}
		f.all = append(f.all, d)
	}
}

// name returns how a file writes Snowflake or a function of its package.
func (f *findings) name(pos token.Pos, name string) string {
	file := f.file(pos)
	for _, spec := range file.Imports {
		if spec.Path.Value == `"`+typesPath+`"` && spec.Name != nil {
			return spec.Name.Name + "." + name
		}
	}
	if f.shadowed(file) {
		return "snowkeytypes." + name
	}
	return "types." + name
}

// shadowed reports whether "types" is something else in a file.
func (f *findings) shadowed(file *file) (found bool) {
	if file == nil {
		return false
	}
	for id, obj := range file.pkg.TypesInfo.Defs {
		found = found || id.Name == "types" && obj != nil && id.Pos() >= file.FileStart && id.Pos() < file.FileEnd
	}
	for _, spec := range file.Imports {
		path := strings.Trim(spec.Path.Value, `"`)
		found = found || spec.Name == nil && path != typesPath && strings.HasSuffix(path, "/types") || spec.Name != nil && spec.Name.Name == "types"
	}
	return found || file.pkg.Types.Scope().Lookup("types") != nil
}

// types changes the integers that are keys.
func (f *findings) types() {
	drop := map[token.Pos]bool{} // conversions between keys
	for _, c := range f.convs {
		if c.to.isKey() && c.from.isKey() {
			drop[c.call.Fun.Pos()] = true
		}
	}
	for pos, s := range f.slots {
		if !s.isKey() || drop[pos] {
			continue
		}
		text := f.name(pos, "Snowflake")
		what := "key"
		if len(s.own) > 0 {
			what += " (" + strings.Join(s.own, ", ") + ")"
		}
		if s.spec != nil && s.expr == s.spec.Type {
			if hasMethods(f.decls[s.spec.Name.Pos()], s.spec) {
				f.left(pos, "type "+s.spec.Name.Name+" is a key and has methods: make it a types.ID, and its methods functions")
				continue
			}
			text = "= " + text
		}
		f.move(pos, s.expr.End(), text, types.ExprString(s.expr)+" is a "+what+" and becomes types.Snowflake")
	}
	for _, parse := range f.parses {
		if parse.slot.isKey() {
			arg := parse.call.Args[0]
			f.move(parse.call.Pos(), arg.Pos(), f.name(parse.call.Pos(), "Parse")+"(", types.ExprString(parse.call.Fun)+" reads a key and becomes types.Parse")
			f.move(arg.End(), parse.call.Rparen, "", "types.Parse has one argument")
		}
	}
}

func hasMethods(d decl, spec *ast.TypeSpec) bool {
	named, ok := d.pkg.TypesInfo.Defs[spec.Name].Type().(*types.Named)
	return ok && named.NumMethods() > 0
}

// columns changes what is not an integer: gorm.Model and tags. It reports the calls that may show
// more of them.
func (f *findings) columns() {
	for pos := range f.models.Unknown {
		f.left(pos, "GORM gets a model here that the source does not show: if it has no tag, give its key the tag gorm:\"primaryKey\"")
	}
	for _, file := range f.files {
		info := file.pkg.TypesInfo
		ast.Inspect(file.File, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if obj, ok := info.Uses[n.Sel].(*types.TypeName); ok && obj.Pkg() != nil && obj.Pkg().Path() == "gorm.io/gorm" && obj.Name() == "Model" {
					f.move(n.Pos(), n.End(), "gormplugin.Model", "gorm.Model becomes gormplugin.Model")
				}
			case *ast.Field:
				if n.Tag == nil || len(n.Names) != 1 {
					break
				}
				s := f.object(info.Defs[n.Names[0]])
				if s != nil && s.slot == nil {
					s = s.elem
				}
				if s == nil || !s.slot.isKey() {
					break
				}
				if without, ok := keycheck.WithoutAutoIncrement(n.Tag.Value); ok {
					f.move(n.Tag.Pos(), n.Tag.End(), without, "field "+n.Names[0].Name+" loses autoIncrement, with which every create is a ModelError")
				}
				text, _ := tag(n, "gorm")
				settings := models.Settings(text)
				typ := strings.ToLower(settings["TYPE"])
				bits, _ := strconv.Atoi(settings["SIZE"])
				if typ != "" && !strings.Contains(typ, "bigint") || bits > 0 && bits < 64 {
					f.left(n.Tag.Pos(), "field "+n.Names[0].Name+" is a key; its column must have 64 bits, see the tag")
				}
			}
			return true
		})
	}
}

// conversions removes conversions between keys, and reports those that cut them.
func (f *findings) conversions() {
	for _, c := range f.convs {
		arg := c.call.Args[0]
		value := c.pkg.TypesInfo.Types[arg].Value
		switch {
		case c.to.isKey() && c.from.isKey():
			f.move(c.call.Pos(), arg.Pos(), "", "a key needs no conversion")
			f.move(arg.End(), c.call.End(), "", "a key needs no conversion")
		case c.to.isKey() && value != nil && constant.Compare(value, token.GTR, constant.MakeUint64(1<<63-1)):
			if strings.HasPrefix(types.ExprString(arg), "math.MaxUint") {
				f.move(arg.Pos(), arg.End(), "math.MaxInt64", "the largest key is math.MaxInt64")
			} else {
				f.left(arg.Pos(), "a key is at most math.MaxInt64")
			}
		case c.from.isKey() && f.formatted(c.call, arg):
		case c.from.isKey() && (c.kind == types.Float64 || c.kind == types.Float32):
			f.left(c.call.Pos(), "float of a key: a float holds 53 bits, a key 63")
		case c.from.isKey():
			f.cut(c.call.Pos(), models.CName(types.ExprString(ast.Unparen(c.call.Fun))), c.kind, "")
		}
	}
}

// cut reports a conversion of a key to an integer that has fewer than 64 bits.
func (f *findings) cut(pos token.Pos, name string, to types.BasicKind, purpose string) {
	switch to {
	case types.Int, types.Uint:
		f.left(pos, name+" of a key"+purpose+": it has 32 bits on some platforms")
	case types.Int32, types.Uint32, types.Int16, types.Uint16, types.Int8, types.Uint8:
		f.report(narrow, pos, name+" of a key"+purpose+" loses digits: keys need 48 to 63 bits; make it 64 bits wide")
	}
}

// formatted changes a call of strconv whose argument writes the key into its method String.
func (f *findings) formatted(argument, key ast.Expr) bool {
	call := f.formats[argument.Pos()]
	if call == nil || call.Args[0] != argument {
		return false
	}
	open, end := "", ".String()"
	switch key.(type) {
	case *ast.StarExpr, *ast.BinaryExpr, *ast.UnaryExpr:
		open, end = "(", ").String()"
	}
	f.move(call.Pos(), key.Pos(), open, types.ExprString(call.Fun)+" of a key becomes String")
	f.move(key.End(), call.End(), end, "String writes the key")
	return true
}

// bounds converts where keys meet integers of other modules.
func (f *findings) bounds() {
	for _, b := range f.Program.bounds {
		own, foreign, expr := b.dst, b.src, b.srcExpr
		if own.fixed {
			own, foreign = foreign, own
		}
		if !own.isKey() {
			continue
		}
		to := f.typeAt(expr, own == b.dst, foreign)
		if expr == nil {
			expr = b.dstExpr
			to = f.typeAt(expr, own == b.src, foreign)
		}
		if expr == nil {
			if f.file(b.at) != nil && !f.seen[b.at] {
				f.seen[b.at] = true
				if f.counters[b.at] {
					f.left(b.at, "LastInsertId is a number of the database: insert with sqlxhelper, which sets the key, or set it from the generator before")
				} else {
					f.left(b.at, "a list, map or function of keys meets one of "+foreign.typ+" of another module")
				}
			}
			continue
		}
		if own == b.src && b.srcExpr != nil && f.formatted(b.srcExpr, b.srcExpr) {
			continue
		}
		if f.file(expr.Pos()) != nil && !f.seen[expr.Pos()] {
			f.move(expr.Pos(), expr.Pos(), to+"(", "a key meets an "+foreign.typ+" of another module and is converted")
			f.move(expr.End(), expr.End(), ")", "end of the conversion")
			if basic, ok := types.Universe.Lookup(to).(*types.TypeName); ok {
				f.cut(expr.Pos(), to, basic.Type().(*types.Basic).Kind(), " for another module")
			}
		}
	}
}

// constants gives their type to constants that variables have it from, or that are compared as any.
func (f *findings) constants() {
	for pos, v := range f.defaults {
		if s := v.shape.resolve(); s != nil && s.slot.isKey() && !f.seen[pos] {
			f.move(pos, v.value.End(), f.name(pos, "Snowflake")+"("+types.ExprString(v.value)+")", "a constant beside keys gets their type")
		}
	}
}

// typeAt returns the type that an expression is converted to.
func (f *findings) typeAt(expr ast.Expr, toKey bool, foreign *slot) string {
	if expr != nil && toKey {
		return f.name(expr.Pos(), "Snowflake")
	}
	return foreign.typ
}

var (
	yamlName  = regexp.MustCompile(`^(\s*(?://)?\s*)- name: (\w+)\s*$`)
	yamlType  = regexp.MustCompile(`^\s*(?://)?\s*type: integer\s*$`)
	swagParam = regexp.MustCompile(`@Param\s+(\w+)\s+(?:path|query)\s+(u?int(?:64)?|integer)\b`)
)

// remarks changes comments for swagger, and what tests expect of JSON.
func (f *findings) remarks() {
	names := f.wireNames()
	moved := false
	for _, d := range f.all {
		moved = moved || d.Category == moves
	}
	if !moved {
		return
	}
	for name, file := range f.files {
		for _, group := range file.Comments {
			f.swagger(group, names)
		}
		ast.Inspect(file.File, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ImportSpec:
				return false
			case *ast.BasicLit:
				if n.Kind == token.STRING && strings.HasSuffix(name, "_test.go") {
					f.quote(n, names)
				}
			}
			return true
		})
	}
	for pos, s := range f.asserted {
		if s.isKey() {
			f.left(pos, "the interface must hold a types.Snowflake here: look where its value comes from")
		}
	}
	for _, m := range f.models.All {
		if m.SQLX && f.counted(m) {
			f.left(m.Key.Field.Pos(), "rows of "+m.Name.Name()+" need a key before the insert: use sqlxhelper, or set it from the generator")
		}
	}
	for pos := range f.opens {
		f.left(pos, "install the plugin after gorm.Open: db.Use(gormplugin.New(gen))")
	}
}

func tag(f *ast.Field, key string) (string, bool) {
	if f.Tag == nil {
		return "", false
	}
	text, err := strconv.Unquote(f.Tag.Value)
	if err != nil {
		return "", false
	}
	return reflect.StructTag(text).Lookup(key)
}

// wireNames returns the names under which clients see keys, and no other value. It reports integers
// that JSON gives the name of a key, which no value of the program shows to be one: they refuse its
// string.
func (f *findings) wireNames() map[string]bool {
	names := map[string]bool{}
	keys, integers := map[string]bool{}, map[string][]*ast.Field{}
	for _, file := range f.files {
		info := file.pkg.TypesInfo
		ast.Inspect(file.File, func(n ast.Node) bool {
			field, ok := n.(*ast.Field)
			if !ok || field.Tag == nil || len(field.Names) != 1 {
				return true
			}
			s := f.object(info.Defs[field.Names[0]])
			for s != nil && s.slot == nil && s.elem != nil {
				s = s.elem
			}
			for _, key := range []string{"json", "form", "query", "uri", "param"} {
				text, _ := tag(field, key)
				if text, _, _ = strings.Cut(text, ","); text != "" && text != "-" {
					isKey := s != nil && s.slot.isKey()
					if key == "json" && isKey {
						keys[text] = true
					} else if key == "json" && s != nil && s.slot != nil {
						integers[text] = append(integers[text], field)
					}
					if known, ok := names[text]; ok {
						isKey = isKey && known
					}
					names[text] = isKey
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
	if _, ok := names["id"]; !ok {
		names["id"] = true
	}
	return names
}

// swagger changes the type of parameters that are keys, of swag and of go-swagger.
func (f *findings) swagger(group *ast.CommentGroup, names map[string]bool) {
	for i, c := range group.List {
		if m := swagParam.FindStringSubmatchIndex(c.Text); m != nil && names[c.Text[m[2]:m[3]]] {
			f.move(c.Pos()+token.Pos(m[4]), c.Pos()+token.Pos(m[5]), "string", "parameter "+c.Text[m[2]:m[3]]+" is a key, and a string for clients")
		}
		m := yamlName.FindStringSubmatch(c.Text)
		if m == nil || !names[m[2]] {
			continue
		}
		for _, next := range group.List[i+1:] {
			if !strings.HasPrefix(next.Text, m[1]+"  ") {
				break
			}
			if yamlType.MatchString(next.Text) {
				at := next.Pos() + token.Pos(strings.Index(next.Text, "integer"))
				f.move(at, at+token.Pos(len("integer")), "string", "parameter "+m[2]+" is a key, and a string for clients")
			} else if text := strings.TrimSpace(strings.TrimPrefix(next.Text, "//")); text == "format: int64" || strings.HasPrefix(text, "minimum:") {
				f.move(next.Pos()-1, next.End(), "", "a string has no "+text) // with the tab or newline before it
			}
		}
	}
}

var number = regexp.MustCompile(`\\?"(\w+)\\?":\s*(\d+)\b`)

// quote makes strings of the keys in JSON that a test has as text.
func (f *findings) quote(lit *ast.BasicLit, names map[string]bool) {
	for _, m := range number.FindAllStringSubmatchIndex(lit.Value, -1) {
		if !names[lit.Value[m[2]:m[3]]] {
			continue
		}
		quote := `"`
		if lit.Value[0] == '"' {
			quote = `\"`
		}
		f.move(lit.Pos()+token.Pos(m[4]), lit.Pos()+token.Pos(m[5]), quote+lit.Value[m[4]:m[5]]+quote, "the key "+lit.Value[m[2]:m[3]]+" is a string in JSON")
	}
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
