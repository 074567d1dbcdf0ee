// Package models finds the models of a program and their keys, by the conventions of GORM and by
// the tags db of sqlx. It looks at types, so that it also reads models of packages without source.
//
// A struct is a model if a field has a tag gorm, or the tag db:"id"; if it has a method TableName;
// if a model is embedded in it; if a call hands it to GORM, such as AutoMigrate, Create or Find,
// also as an any of a variable, a list, a parameter or a result; or if an association of a model leads to it. A key needs no tag.
package models

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"reflect"
	"regexp"
	"slices"
	"strings"
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
	byPos   map[token.Pos]*Model
}

// A Model is a struct with a table.
type Model struct {
	Name    *types.TypeName
	Columns []Column // those of embedded structs among them
	Key     *Column  // the key that the database counts if it is an integer, or nil
	SQLX    bool     // the key has a tag db
}

// A Column is a field that is stored, or an association.
type Column struct {
	Field  *types.Var
	Tag    reflect.StructTag
	Column string // as GORM or the tag db names it
	depth  int
	gorm   map[string]string
}

// Setting returns a setting of the tag gorm, such as "foreignKey", in any case.
func (c *Column) Setting(name string) string { return c.gorm[strings.ToUpper(name)] }

func (c *Column) has(name string) bool {
	value, ok := c.gorm[name]
	return ok && !strings.EqualFold(value, "false")
}

// Find finds the models in the source of packages. Types of one declaration that were checked
// more than once, as those of a package and of its test are, count as one.
func Find(pkgs ...Package) *Set {
	s := &Set{Unknown: map[token.Pos]bool{}, byPos: map[token.Pos]*Model{}}
	all := flows{}
	for _, p := range pkgs {
		all.read(p)
	}
	for _, p := range pkgs {
		for _, f := range p.Files {
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.TypeSpec:
					if name, ok := p.Info.Defs[n.Name].(*types.TypeName); ok && evident(name, 0) {
						s.add(name)
					}
				case *ast.CallExpr:
					for _, e := range shown(p.Info, n) {
						s.show(all, value{p.Info, e})
					}
				}
				return true
			})
		}
	}
	for i := 0; i < len(s.All); i++ { // grows
		for _, c := range s.All[i].Columns {
			if name := StructOf(c.Field.Type()); name != nil && association(&c, name) {
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
	if m := s.byPos[name.Pos()]; m != nil || !evident(name, 0) {
		return m
	}
	return s.add(name)
}

// Named returns the models whose type has the name, or a name of which it is the last word.
func (s *Set) Named(word string) (found []*Model) {
	for _, m := range s.All {
		if name := m.Name.Name(); name == word || len(word) >= 4 && strings.HasSuffix(name, word) {
			found = append(found, m)
		}
	}
	return found
}

func (s *Set) add(name *types.TypeName) *Model {
	if name == nil || s.byPos[name.Pos()] != nil {
		return nil
	}
	m := &Model{Name: name, Columns: columns(name.Type(), "", 0)}
	m.Key = key(m.Columns)
	if m.Key != nil {
		_, m.SQLX = m.Key.Tag.Lookup("db")
	}
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

// Generated reports whether a program has written a file. cgo says so of its copy of every file that
// imports "C", of which only the original can tell.
func Generated(fset *token.FileSet, f *ast.File) bool {
	if name := fset.Position(f.Package).Filename; ast.IsGenerated(f) && name != fset.File(f.FileStart).Name() {
		original, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.PackageClauseOnly|parser.ParseComments)
		return err != nil || ast.IsGenerated(original)
	}
	return ast.IsGenerated(f)
}

// CName returns a text of cgo's copy as the original has it: C.int for _Ctype_int.
func CName(text string) string { return strings.ReplaceAll(text, "_Ctype_", "C.") }

// maxDepth bounds how deep structs are embedded, because one may embed a pointer to itself.
const maxDepth = 8

// evident reports whether a type, embedded in depth others, says by itself that it is a model.
func evident(name *types.TypeName, depth int) bool {
	s, ok := name.Type().Underlying().(*types.Struct)
	if !ok || name.IsAlias() || depth > maxDepth {
		return false
	}
	if m, _, _ := types.LookupFieldOrMethod(name.Type(), true, name.Pkg(), "TableName"); m != nil {
		if _, method := m.(*types.Func); method {
			return true
		}
	}
	for i := range s.NumFields() {
		tag := reflect.StructTag(s.Tag(i))
		if _, ok := tag.Lookup("gorm"); ok || tag.Get("db") == "id" {
			return true
		}
		if f := s.Field(i); f.Embedded() {
			if base := StructOf(f.Type()); base != nil && evident(base, depth+1) {
				return true
			}
		}
	}
	return false
}

// columns returns the fields of a struct as GORM flattens them.
func columns(t types.Type, prefix string, depth int) (all []Column) {
	s := t.Underlying().(*types.Struct)
	for i := range s.NumFields() {
		c := Column{Field: s.Field(i), Tag: reflect.StructTag(s.Tag(i)), depth: depth}
		c.gorm = Settings(c.Tag.Get("gorm"))
		if ignored, ok := c.gorm["-"]; !c.Field.Exported() || ok && (ignored == "" || strings.EqualFold(ignored, "all")) {
			continue
		}
		if name := StructOf(c.Field.Type()); name != nil && depth < maxDepth && !isSlice(c.Field.Type()) &&
			(c.has("EMBEDDED") || c.Field.Embedded() && !isValue(name)) {
			all = append(all, columns(name.Type(), prefix+c.gorm["EMBEDDEDPREFIX"], depth+1)...)
			continue
		}
		c.Column = c.gorm["COLUMN"]
		if db, _, _ := strings.Cut(c.Tag.Get("db"), ","); c.Column == "" && db != "-" {
			c.Column = db
		}
		if c.Column == "" {
			c.Column = ColumnName(c.Field.Name())
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
	if name.Pkg() != nil && name.Pkg().Path() == "time" {
		return true
	}
	for _, method := range []string{"Value", "Scan", "GormDataType"} {
		if m, _, _ := types.LookupFieldOrMethod(name.Type(), true, name.Pkg(), method); m != nil {
			if _, ok := m.(*types.Func); ok {
				return true
			}
		}
	}
	return false
}

// association reports whether a column leads to rows of another model.
func association(c *Column, to *types.TypeName) bool {
	if c.has("SERIALIZER") || c.has("TYPE") || isValue(to) {
		return false
	}
	return key(columns(to.Type(), "", 0)) != nil
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
	better := func(c *Column) bool { return id == nil || c.depth < id.depth }
	for i := range all {
		c := &all[i]
		if c.has("PRIMARYKEY") || c.has("PRIMARY_KEY") {
			primary = append(primary, c)
		}
		if c.Column == "id" && (better(c) || id.Column != "id") || c.Field.Name() == "ID" && id == nil {
			id = c
		}
	}
	switch {
	case id != nil && (len(primary) == 0 || slices.Contains(primary, id)):
	case len(primary) == 1:
		id = primary[0]
	default:
		id = nil
		for _, c := range primary {
			if c.has("AUTOINCREMENT") {
				id = c
				break
			}
		}
	}
	if id == nil || strings.EqualFold(id.gorm["AUTOINCREMENT"], "false") {
		return nil
	}
	return id
}

var capital = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// ColumnName returns the name that GORM gives the column of a field.
func ColumnName(field string) string {
	return strings.ToLower(capital.ReplaceAllString(field, "${1}_$2"))
}

var reference = regexp.MustCompile(`^(\w+)I[Dd]$`)

// References calls found for each field of m, or of a model that an association of m leads to,
// that refers to a key: it is named after a model or an association with the word ID behind it, or
// a tag names it. counts reports whether a model's key is one that matters.
func (s *Set) References(m *Model, counts func(*Model) bool, found func(*Column)) {
	mark := func(m *Model, name string) {
		for i := range m.Columns {
			if m.Columns[i].Field.Name() == name {
				found(&m.Columns[i])
			}
		}
	}
	for i := range m.Columns {
		c := &m.Columns[i]
		other := s.Of(c.Field.Type())
		if match := reference.FindStringSubmatch(c.Field.Name()); match != nil &&
			(slices.ContainsFunc(s.Named(match[1]), counts) || match[1] == "Parent" && counts(m) || s.leads(m, match[1], counts)) {
			found(c)
		}
		if keys := c.Setting("foreignKey"); keys != "" && c.Setting("references") == "" {
			for name := range strings.SplitSeq(keys, ",") {
				mark(m, strings.TrimSpace(name))
				if other != nil && counts(other) {
					mark(other, strings.TrimSpace(name))
				}
			}
		}
		if name := c.Setting("polymorphic"); name != "" && other != nil && counts(m) {
			mark(other, name+"ID")
			mark(other, name+"Id")
		}
	}
}

// leads reports whether m has an association of that name to a model that counts.
func (s *Set) leads(m *Model, name string, counts func(*Model) bool) bool {
	return slices.ContainsFunc(m.Columns, func(c Column) bool {
		other := s.Of(c.Field.Type())
		return c.Field.Name() == name && other != nil && counts(other)
	})
}
