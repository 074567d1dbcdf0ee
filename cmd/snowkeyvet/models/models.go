// Package models finds the models of a program and their keys, by the conventions of GORM and by
// the tags db of sqlx. It looks at types, so that it also reads models of packages without source.
//
// A struct is a model if a column has a tag gorm, or the tag db:"id"; if it has an integer ID without
// a tag db, and another field has one; if it has a method TableName;
// if a model is embedded in it; if a call hands it to GORM, such as AutoMigrate, Create or Find,
// also as an any of a variable, a list, a parameter or a result; or if an association of a model leads to it. A key needs no tag.
package models

import (
	"go/ast"
	"go/token"
	"go/types"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/snowkey/snowkey/cmd/snowkeyvet/flow"
)

// A Package is the source in which Find looks for calls and types.
type Package struct {
	Info  *types.Info
	Files []*ast.File
}

// A Set is the models of some packages. It is not safe for concurrent use.
type Set struct {
	All     []*Model           // in the order in which they were found
	Unknown map[token.Pos]bool // where GORM gets a model that the source does not show
	Values  flow.Values        // what variables may hold

	byPos    map[token.Pos]*Model
	followed map[token.Pos]bool // variables whose values were shown
}

// A Model is a struct with a table.
type Model struct {
	Name    *types.TypeName
	Columns []Column // those of embedded structs among them
	Key     *Column  // the key that the database counts if it is an integer, or nil
}

// SQLX reports whether the key has a tag db, or other columns have one and none has a tag gorm.
func (m *Model) SQLX() bool {
	has := func(tag string) bool {
		return slices.ContainsFunc(m.Columns, func(c Column) bool { return c.Tag.Get(tag) != "" })
	}
	return m.Key != nil && m.Key.Tag.Get("db") != "" || has("db") && !has("gorm")
}

// A Column is a field that is stored, or an association.
type Column struct {
	Field  *types.Var
	Tag    reflect.StructTag
	Column string // as GORM or the tag db names it
	depth  int
	gorm   map[string]string
}

// Integer reports whether the column is an integer, or points to one.
func (c *Column) Integer() bool {
	t := c.Field.Type()
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsInteger != 0
}

func (c *Column) has(name string) bool {
	value, ok := c.gorm[name]
	return ok && !strings.EqualFold(value, "false")
}

// Find finds the models in the source of packages. Types of one declaration that were checked
// more than once, as those of a package and of its test are, count as one.
func Find(pkgs ...Package) *Set {
	s := &Set{Unknown: map[token.Pos]bool{}, Values: flow.Values{}, byPos: map[token.Pos]*Model{}, followed: map[token.Pos]bool{}}
	for _, p := range pkgs {
		for _, f := range p.Files {
			s.Values.Read(p.Info, f)
		}
	}
	for _, p := range pkgs {
		for _, f := range p.Files {
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.TypeSpec:
					if name, ok := p.Info.Defs[n.Name].(*types.TypeName); ok && evident(name) {
						s.add(name)
					}
				case *ast.CallExpr:
					for _, e := range shown(p.Info, n) {
						s.show(flow.Value{Place: flow.Place{Expr: e}, Info: p.Info})
					}
				}
				return true
			})
		}
	}
	for i := 0; i < len(s.All); i++ { // grows
		for _, c := range s.All[i].Columns {
			// An association leads to rows of another model.
			name := StructOf(c.Field.Type())
			if name != nil && !c.has("SERIALIZER") && !c.has("TYPE") && !isValue(name) && key(columns(name.Type())) != nil {
				s.add(name)
			}
		}
	}
	return s
}

// Of returns the model of the struct that t is, points to or is a list of, or nil if it is none.
// It may be of a package that Find has not seen.
func (s *Set) Of(t types.Type) *Model {
	name := StructOf(t)
	if name == nil {
		return nil
	}
	if m := s.byPos[name.Pos()]; m != nil || !evident(name) {
		return m
	}
	return s.add(name)
}

func (s *Set) add(name *types.TypeName) *Model {
	if name == nil || s.byPos[name.Pos()] != nil {
		return nil
	}
	m := &Model{Name: name, Columns: columns(name.Type())}
	m.Key = key(m.Columns)
	s.byPos[name.Pos()] = m
	s.All = append(s.All, m)
	return m
}

// StructOf returns the named struct that t is, points to or is a list of, or nil.
func StructOf(t types.Type) *types.TypeName {
	for t != nil {
		switch u := types.Unalias(t).(type) {
		case *types.Named:
			if _, ok := u.Underlying().(*types.Struct); ok {
				return u.Origin().Obj()
			}
			t = u.Underlying()
		case interface{ Elem() types.Type }:
			t = u.Elem()
		default:
			return nil
		}
	}
	return nil
}

// Generated reports whether a program has written a file. cgo's copy of a file that imports "C" says
// so in its first line, whoever wrote the original, whose own comments follow. The original itself
// may be gone: with -trimpath, a copy from the build cache may name another checkout.
func Generated(f *ast.File) bool {
	own := *f
	if len(f.Comments) > 0 && f.Comments[0].Text() == "Code generated by cmd/cgo; DO NOT EDIT.\n" {
		own.Comments = f.Comments[1:]
	}
	return ast.IsGenerated(&own)
}

// CName returns a text of cgo's copy as the original has it: C.int for _Ctype_int.
func CName(text string) string { return strings.ReplaceAll(text, "_Ctype_", "C.") }

// maxDepth bounds how deep structs are embedded, because one may embed a pointer to itself.
const maxDepth = 8

// evident reports whether a type says by itself that it is a model.
func evident(name *types.TypeName) bool {
	if _, ok := name.Type().Underlying().(*types.Struct); !ok || name.IsAlias() {
		return false
	}
	all := flatten(name.Type(), "", 0)
	// sqlx gives a field without a tag its name in lower case, so an ID beside fields with tags db needs none.
	other := slices.ContainsFunc(all, func(c Column) bool { return c.Tag.Get("db") != "" })
	return HasMethod(name.Type(), "TableName") || slices.ContainsFunc(all, func(c Column) bool {
		_, tagged := c.Tag.Lookup("gorm")
		db, named := c.Tag.Lookup("db")
		return tagged || db == "id" || other && !named && c.Column == "id" && c.Integer()
	})
}

// columns returns the fields of a struct as GORM flattens them, where one that is embedded less deep hides
// those of its column.
func columns(t types.Type) []Column {
	all, least := flatten(t, "", 0), map[string]int{}
	for i := range all {
		c := &all[i]
		if depth, ok := least[c.Column]; !ok || c.depth < depth {
			least[c.Column] = c.depth
		}
	}
	return slices.DeleteFunc(all, func(c Column) bool { return c.depth > least[c.Column] })
}

func flatten(t types.Type, prefix string, depth int) (all []Column) {
	s := t.Underlying().(*types.Struct)
	for i := range s.NumFields() {
		c := Column{Field: s.Field(i), Tag: reflect.StructTag(s.Tag(i)), depth: depth}
		c.gorm = Settings(c.Tag.Get("gorm"))
		if ignored, ok := c.gorm["-"]; !c.Field.Exported() || ok && (ignored == "" || strings.EqualFold(ignored, "all")) {
			continue
		}
		if name := StructOf(c.Field.Type()); name != nil && depth < maxDepth && !isSlice(c.Field.Type()) &&
			(c.has("EMBEDDED") || c.Field.Embedded() && !isValue(name)) {
			all = append(all, flatten(name.Type(), prefix+c.gorm["EMBEDDEDPREFIX"], depth+1)...)
			continue
		}
		c.Column = c.gorm["COLUMN"]
		if db, _, _ := strings.Cut(c.Tag.Get("db"), ","); c.Column == "" && db != "-" {
			c.Column = db
		}
		if c.Column == "" {
			c.Column = strings.ToLower(capital.ReplaceAllString(c.Field.Name(), "${1}_$2"))
		}
		c.Column = prefix + c.Column
		all = append(all, c)
	}
	return all
}

func isSlice(t types.Type) bool {
	switch t.Underlying().(type) {
	case *types.Slice, *types.Array, *types.Map:
		return true
	}
	return false
}

// isValue reports whether a struct is stored in one column, as time.Time and sql.NullInt64 are.
func isValue(name *types.TypeName) bool {
	return name.Pkg() != nil && name.Pkg().Path() == "time" || HasMethod(name.Type(), "Value", "Scan", "GormDataType")
}

// HasMethod reports whether a type, or a pointer to it, has a method of one of the names.
func HasMethod(t types.Type, names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		m, _, _ := types.LookupFieldOrMethod(t, true, nil, name)
		_, ok := m.(*types.Func)
		return ok
	})
}

// Settings returns the settings of a tag gorm by their names in capitals.
func Settings(tag string) map[string]string {
	all := map[string]string{}
	for part := range strings.SplitSeq(tag, ";") {
		name, value, _ := strings.Cut(part, ":")
		if name = strings.ToUpper(strings.TrimSpace(name)); name != "" {
			all[name] = strings.TrimSpace(value)
		}
	}
	return all
}

// key returns the key that GORM lets the database count: the column id, or the field ID, unless
// the tag primaryKey names others; or the only one with the tag; or of several the one with
// autoIncrement. This is what Schema.PrioritizedPrimaryField is in GORM.
func key(all []Column) *Column {
	var primary []*Column
	var id *Column
	for i := range all {
		c := &all[i]
		if c.has("PRIMARYKEY") || c.has("PRIMARY_KEY") {
			primary = append(primary, c)
		}
		if c.Column == "id" && (id == nil || id.Column != "id") || c.Field.Name() == "ID" && id == nil {
			id = c
		}
	}
	switch {
	case id != nil && (len(primary) == 0 || slices.Contains(primary, id)):
	case len(primary) == 1:
		id = primary[0]
	default:
		primary = slices.DeleteFunc(primary, func(c *Column) bool { return !c.has("AUTOINCREMENT") })
		if id = nil; len(primary) > 0 {
			id = primary[0]
		}
	}
	if id == nil || strings.EqualFold(id.gorm["AUTOINCREMENT"], "false") {
		return nil
	}
	return id
}

var capital = regexp.MustCompile(`([a-z0-9])([A-Z])`)

var reference = regexp.MustCompile(`^(\w+)I[Dd]$`)

// Keys calls found for the key of m if it is an integer, and for each field of m, or of a model that
// an association of m leads to, that refers to one: it is named after a model or an association with
// the word ID behind it, or a tag names it. matters reports whether a key is one to look for.
func (s *Set) Keys(m *Model, matters func(*Column) bool, found func(*Column)) {
	counts := func(m *Model) bool { return m.Key != nil && m.Key.Integer() && matters(m.Key) }
	if counts(m) {
		found(m.Key)
	}
	mark := func(m *Model, name string) {
		for i := range m.Columns {
			if m.Columns[i].Field.Name() == name {
				found(&m.Columns[i])
			}
		}
	}
	named := func(word string) bool { // a model that counts has the name, or one that ends with the word
		return slices.ContainsFunc(s.All, func(m *Model) bool {
			name := m.Name.Name()
			return (name == word || len(word) >= 4 && strings.HasSuffix(name, word)) && counts(m)
		})
	}
	leads := func(name string) bool { // m has an association of that name to a model that counts
		return slices.ContainsFunc(m.Columns, func(c Column) bool {
			other := s.Of(c.Field.Type())
			return c.Field.Name() == name && other != nil && counts(other)
		})
	}
	for i := range m.Columns {
		c := &m.Columns[i]
		other := s.Of(c.Field.Type())
		if match := reference.FindStringSubmatch(c.Field.Name()); match != nil &&
			(named(match[1]) || match[1] == "Parent" && counts(m) || leads(match[1])) {
			found(c)
		}
		if keys := c.gorm["FOREIGNKEY"]; keys != "" && c.gorm["REFERENCES"] == "" {
			for name := range strings.SplitSeq(keys, ",") {
				mark(m, strings.TrimSpace(name))
				if other != nil && counts(other) {
					mark(other, strings.TrimSpace(name))
				}
			}
		}
		if name := c.gorm["POLYMORPHIC"]; name != "" && other != nil && counts(m) {
			mark(other, name+"ID")
			mark(other, name+"Id")
		}
	}
}
