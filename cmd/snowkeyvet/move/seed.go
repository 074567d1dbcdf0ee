package move

import (
	"go/ast"
	"go/token"
	"go/types"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/tools/go/packages"
)

// A model is a struct with a table.
type model struct {
	name   string
	fields []*ast.Field
	pkg    *packages.Package
	key    *ast.Field // nil if it is embedded
	moved  bool
}

var primary = regexp.MustCompile(`(?i)(^|;)\s*primary_?key\s*(;|:true|$)`)

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

// setting returns the value of a setting in a tag of GORM.
func setting(f *ast.Field, name string) string {
	text, _ := tag(f, "gorm")
	for part := range strings.SplitSeq(text, ";") {
		if key, value, _ := strings.Cut(part, ":"); strings.EqualFold(strings.TrimSpace(key), name) {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// seed marks the keys of the program's models.
func (p *Program) seed() {
	structs := map[*types.TypeName]*model{}
	migrated := map[token.Pos]bool{}
	for _, pkg := range p.packages {
		for _, f := range pkg.Syntax {
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.TypeSpec:
					if s, ok := n.Type.(*ast.StructType); ok {
						if name, ok := pkg.TypesInfo.Defs[n.Name].(*types.TypeName); ok {
							structs[name] = &model{name: n.Name.Name, fields: s.Fields.List, pkg: pkg}
						}
					}
				case *ast.CallExpr:
					if sel, ok := n.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "AutoMigrate" {
						for _, arg := range n.Args {
							if name := typeName(pkg.TypesInfo.TypeOf(arg)); name != nil {
								migrated[name.Pos()] = true
							}
						}
					}
				}
				return true
			})
		}
	}
	for range 4 { // embedded in embedded
		for name, m := range structs {
			if !m.moved {
				p.primaryKey(m, migrated[name.Pos()] || tableName(name))
			}
		}
	}
	for _, m := range structs {
		if m.moved || m.hasTag("gorm") || m.hasTag("db") {
			p.foreignKeys(m)
		}
	}
}

func tableName(name *types.TypeName) bool {
	obj, _, _ := types.LookupFieldOrMethod(name.Type(), true, name.Pkg(), "TableName")
	_, ok := obj.(*types.Func)
	return ok
}

// typeName returns the named type that t points to or is a list of.
func typeName(t types.Type) *types.TypeName {
	for t != nil {
		switch u := types.Unalias(t).(type) {
		case *types.Named:
			return u.Obj()
		case interface{ Elem() types.Type }:
			t = u.Elem()
		default:
			return nil
		}
	}
	return nil
}

func (m *model) hasTag(key string) bool {
	for _, f := range m.fields {
		if _, ok := tag(f, key); ok {
			return true
		}
	}
	return false
}

// slot returns the integer that a field, or what it points to, is.
func (p *Program) field(m *model, f *ast.Field) *slot {
	if len(f.Names) != 1 {
		return nil
	}
	s := p.object(m.pkg.TypesInfo.Defs[f.Names[0]])
	if s != nil && s.slot == nil && s.key == nil {
		if _, pointer := f.Type.(*ast.StarExpr); pointer {
			s = s.elem
		}
	}
	if s == nil {
		return nil
	}
	return s.slot
}

// primaryKey marks the key of a struct that has one.
func (p *Program) primaryKey(m *model, table bool) {
	var tagged []*ast.Field
	var id *ast.Field
	for _, f := range m.fields {
		text, isGorm := tag(f, "gorm")
		if len(f.Names) == 0 {
			name := typeName(m.pkg.TypesInfo.TypeOf(f.Type))
			if name == nil {
				continue
			}
			if name.Name() == "Model" && name.Pkg() != nil && name.Pkg().Path() == "gorm.io/gorm" {
				p.gormID.key = true
				p.columns["id"] = true
				p.moved(m, nil)
			} else if base := p.models[name.Name()]; base != nil {
				p.moved(m, nil)
			}
			continue
		}
		if isGorm && primary.MatchString(text) {
			tagged = append(tagged, f)
		}
		if db, _ := tag(f, "db"); f.Names[0].Name == "ID" && (isGorm || table || m.hasTag("gorm") || db == "id") {
			id = f
		}
	}
	if len(tagged) == 1 {
		id = tagged[0]
	} else if len(tagged) > 1 { // GORM counts only what is marked then
		id = nil
		for _, f := range tagged {
			if text, _ := tag(f, "gorm"); strings.Contains(strings.ToLower(text), "autoincrement") {
				id = f
			}
		}
	}
	if id == nil || strings.EqualFold(setting(id, "autoIncrement"), "false") {
		return
	}
	if s := p.field(m, id); s != nil && !s.fixed {
		s.root().key = true
		p.columns[column(id.Names[0].Name)] = true
		p.moved(m, id)
	}
}

func (p *Program) moved(m *model, key *ast.Field) {
	m.moved, m.key = true, key
	p.models[m.name] = m
}

var capital = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// column returns the name that GORM gives a column.
func column(field string) string {
	return strings.ToLower(capital.ReplaceAllString(field, "${1}_$2"))
}

var reference = regexp.MustCompile(`^(\w+)I[Dd]$`)

// foreignKeys marks fields that are named after a model, and those that a tag names.
func (p *Program) foreignKeys(m *model) {
	mark := func(m *model, name string) {
		for _, f := range m.fields {
			if len(f.Names) == 1 && f.Names[0].Name == name {
				if s := p.field(m, f); s != nil && !s.fixed {
					s.root().key = true
					p.columns[column(f.Names[0].Name)] = true
				}
			}
		}
	}
	for _, f := range m.fields {
		if len(f.Names) != 1 {
			continue
		}
		if match := reference.FindStringSubmatch(f.Names[0].Name); match != nil && (p.refersTo(m, match[1]) || match[1] == "Parent" && m.moved) {
			mark(m, f.Names[0].Name)
		}
		if keys := setting(f, "foreignKey"); keys != "" && setting(f, "references") == "" {
			for key := range strings.SplitSeq(keys, ",") {
				mark(m, strings.TrimSpace(key))
				if name := typeName(m.pkg.TypesInfo.TypeOf(f.Type)); name != nil && p.models[name.Name()] != nil {
					mark(p.models[name.Name()], strings.TrimSpace(key))
				}
			}
		}
	}
}

// refersTo reports whether a name is that of a model, or of a field of m that holds one.
func (p *Program) refersTo(m *model, name string) bool {
	for other := range p.models {
		if other == name || len(name) >= 4 && strings.HasSuffix(other, name) {
			return true
		}
	}
	for _, f := range m.fields {
		if len(f.Names) == 1 && f.Names[0].Name == name {
			if t := typeName(m.pkg.TypesInfo.TypeOf(f.Type)); t != nil && p.models[t.Name()] != nil {
				return true
			}
		}
	}
	return false
}
