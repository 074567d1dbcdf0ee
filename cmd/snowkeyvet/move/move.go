// Package move turns a program whose keys the database counts into one whose keys are
// types.Snowflake, as far as the source says which integers are keys.
//
// It starts at the keys of models and the fields that refer to them, which package models finds.
// From there it follows assignments, calls, comparisons, composite values and the methods of
// interfaces through all packages at once: whatever such an integer flows into is a key as well.
// Integers of other modules end the way, with a conversion. A conversion between integers of the
// program ends it too, unless all names on the other side are names of keys.
//
// Of a type that has several integers, one is followed, and the keys of its maps as another. Struct
// fields of a generic type's type argument are not followed. What the edits leave there does not
// compile, which is how one finds it.
package move

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/snowkey/snowkey/cmd/snowkeyvet/flow"
	"github.com/snowkey/snowkey/cmd/snowkeyvet/models"
)

// A Program is a loaded program with what is known about its integers.
type Program struct {
	Fset *token.FileSet

	packages []*packages.Package
	roots    map[string]bool // paths of the packages of the program
	files    map[string]file
	decls    map[token.Pos]decl   // where an object has its type written
	owners   map[token.Pos]string // the struct of a field
	slots    map[token.Pos]*slot  // integers with a type in the source, and what strconv reads
	shapes   map[token.Pos]shape  // of variables, fields and functions
	models   *models.Set
	columns  map[string]bool // of keys
	convs    map[token.Pos]conv
	formats  map[token.Pos]*ast.CallExpr // calls of strconv that write an integer, by their argument
	later    []func(*edits)              // what there is to say when all keys are known
}

type file struct {
	*ast.File
	pkg *packages.Package
}

// A decl is where an object or a type is declared.
type decl struct {
	expr ast.Expr
	info *types.Info
	spec *ast.TypeSpec // of a defined type
}

// A conv is a conversion to a basic type.
type conv struct {
	call     *ast.CallExpr
	to, from *slot // nil for other types
	info     *types.Info
}

// ErrNoModels is returned for a program in which no struct is a model.
var ErrNoModels = errors.New("move: no struct of these packages is a model: none has a tag gorm, the tag db:\"id\", a field ID beside fields with tags db, a method TableName, or a call that hands it to GORM; name all packages of the program, as ./... does")

// Load loads the packages of a program with their tests and finds its keys.
func Load(dir string, patterns ...string) (*Program, error) {
	pkgs, err := packages.Load(&packages.Config{
		Dir: dir, Tests: true, Mode: packages.LoadSyntax | packages.NeedModule,
		// With it, cgo's copy of a file may come from the build cache and name another checkout,
		// which Fix would edit.
		BuildFlags: []string{"-trimpath=false"},
	}, patterns...)
	if err != nil {
		return nil, fmt.Errorf("move: %w", err)
	}
	p := &Program{
		roots: map[string]bool{}, files: map[string]file{}, decls: map[token.Pos]decl{}, owners: map[token.Pos]string{},
		slots: map[token.Pos]*slot{}, shapes: map[token.Pos]shape{}, columns: map[string]bool{},
		convs: map[token.Pos]conv{}, formats: map[token.Pos]*ast.CallExpr{},
	}
	var sources []models.Package
	for _, pkg := range pkgs {
		if len(pkg.Errors) > 0 {
			return nil, fmt.Errorf("move: %s does not compile: %w", pkg.PkgPath, pkg.Errors[0])
		}
		if strings.HasSuffix(pkg.PkgPath, ".test") || len(pkg.Syntax) == 0 {
			continue
		}
		p.Fset = pkg.Fset
		pkg.Syntax = slices.DeleteFunc(pkg.Syntax, func(f *ast.File) bool { // declares the types of C
			return filepath.Base(p.Fset.Position(f.Package).Filename) == "_cgo_gotypes.go"
		})
		p.packages = append(p.packages, pkg)
		p.roots[pkg.Types.Path()] = true
		sources = append(sources, models.Package{Info: pkg.TypesInfo, Files: pkg.Syntax})
		for _, f := range pkg.Syntax {
			p.declare(pkg, f)
		}
	}
	p.models = models.Find(sources...)
	if len(p.models.All) == 0 {
		return nil, ErrNoModels
	}
	for _, m := range p.models.All {
		p.models.Keys(m, p.owns, p.mark)
	}
	for _, pkg := range p.packages {
		w := &walker{Program: p, info: pkg.TypesInfo, known: map[ast.Expr]shape{}}
		for _, f := range pkg.Syntax {
			flow.Each(w.info, f, w.follow)
			ast.Inspect(f, w.visit)
		}
	}
	p.implement()
	p.settle()
	return p, nil
}

// owns reports whether a column has an integer that the program may change.
func (p *Program) owns(c *models.Column) bool {
	s := p.object(c.Field).elem
	return s != nil && !s.fixed
}

// mark makes a key of the integer that a column is, or points to.
func (p *Program) mark(c *models.Column) {
	if s := p.object(c.Field).elem; p.owns(c) && c.Integer() {
		s.root().key = true
		p.columns[strings.ToLower(c.Column)] = true
	}
}

// declare notes where the objects of a file have their types.
func (p *Program) declare(pkg *packages.Package, f *ast.File) {
	name := p.Fset.Position(f.Pos()).Filename
	if _, ok := p.files[name]; !ok {
		p.files[name] = file{f, pkg}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			p.decls[n.Type.Pos()] = decl{expr: n.Type, info: pkg.TypesInfo} // without a name
			for _, name := range n.Names {
				p.decls[name.Pos()] = decl{expr: n.Type, info: pkg.TypesInfo}
			}
		case *ast.ValueSpec:
			for _, name := range n.Names {
				if n.Type != nil {
					p.decls[name.Pos()] = decl{expr: n.Type, info: pkg.TypesInfo}
				}
			}
		case *ast.TypeSpec:
			p.decls[n.Name.Pos()] = decl{n.Type, pkg.TypesInfo, n}
			if s, ok := n.Type.(*ast.StructType); ok {
				for _, field := range s.Fields.List {
					for _, name := range field.Names {
						p.owners[name.Pos()] = n.Name.Name
					}
				}
			}
		}
		return true
	})
}

// implement lets the methods of types and of the interfaces that they implement agree.
func (p *Program) implement() {
	var interfaces []*types.Interface
	var concrete []types.Type
	for _, pkg := range p.packages {
		for _, obj := range pkg.TypesInfo.Defs {
			name, ok := obj.(*types.TypeName)
			if !ok || name.IsAlias() {
				continue
			}
			if i, ok := name.Type().Underlying().(*types.Interface); ok && i.NumMethods() > 0 {
				interfaces = append(interfaces, i)
			} else if !ok {
				concrete = append(concrete, types.NewPointer(name.Type()))
			}
		}
	}
	for _, t := range concrete {
		methods := types.NewMethodSet(t)
		for _, i := range interfaces {
			if methods.Len() < i.NumMethods() || !types.Implements(t, i) {
				continue
			}
			for m := range i.Methods() {
				if by := methods.Lookup(m.Pkg(), m.Name()); by != nil {
					p.flow(p.object(m), p.object(by.Obj()), nil, nil)
				}
			}
		}
	}
}

var keyName = regexp.MustCompile(`(?:^|_)ids?$|^(?:ID|Id)s?$|I[Dd]s?$|^[ugp]id$`)

// settle lets keys pass conversions until nothing changes: between integers whose names say that
// they are keys, and from what strconv has read.
func (p *Program) settle() {
	for changed := true; changed; {
		changed = false
		for _, c := range p.convs {
			if c.to == nil || c.from == nil || c.to.fixed || c.from.fixed || c.to.root() == c.from.root() {
				continue
			}
			to, from := c.to.root(), c.from.root()
			if to.key && (from.named() || from.parsed) || from.key && to.named() {
				to.union(from)
				changed = true
			}
		}
	}
}

// A slot is one integer of the program: a type in the source, or the type of a variable that is
// inferred. Slots that must have one type are joined into a class, which one of them stands for.
type slot struct {
	parent *slot
	expr   ast.Expr // nil if inferred
	fixed  bool     // of another module, or always an int
	typ    string   // of a fixed one
	key    bool     // of the class
	parsed bool     // of the class: strconv has read it
	own    []string // what it is the type of
	names  []string // of the class
	spec   *ast.TypeSpec
}

func (s *slot) root() *slot {
	for s.parent != nil {
		s = s.parent
	}
	return s
}

func (s *slot) union(o *slot) {
	s, o = s.root(), o.root()
	if s == o {
		return
	}
	o.parent = s
	s.key = s.key || o.key
	s.parsed = s.parsed || o.parsed
	s.names = append(s.names, o.names...)
}

func (s *slot) isKey() bool { return s != nil && !s.fixed && s.root().key }

// named reports whether the class has names, all of them names of keys.
func (s *slot) named() bool {
	names := s.root().names
	return len(names) > 0 && !slices.ContainsFunc(names, func(n string) bool { return !keyName.MatchString(n) })
}

// A shape has the integers of a type: its own or that of what it points to or is a list of, and
// that of the keys of its maps; or those of the parameters and results of a function.
type shape struct {
	elem, key       *slot
	params, results []shape
}

// flow makes two types agree. The value src has one of them.
func (p *Program) flow(to, from shape, src ast.Expr, info *types.Info) {
	p.join(to.elem, from.elem, src, info)
	p.join(to.key, from.key, src, nil)
	for i := range min(len(to.params), len(from.params)) {
		p.flow(to.params[i], from.params[i], src, nil)
	}
	for i := range min(len(to.results), len(from.results)) {
		p.flow(to.results[i], from.results[i], src, nil)
	}
}

// join makes two integers agree. One of another module is converted, which info is for.
func (p *Program) join(to, from *slot, src ast.Expr, info *types.Info) {
	switch {
	case to == nil || from == nil || to == from || to.fixed && from.fixed:
	case to.fixed:
		p.later = append(p.later, func(f *edits) { f.bound(from, to, src, to.typ, info) })
	case from.fixed:
		p.later = append(p.later, func(f *edits) { f.bound(to, from, src, "", info) })
	default:
		to.union(from)
	}
}

func integer(t types.Type) bool {
	b, ok := t.(*types.Basic)
	if !ok || b.Name() == "rune" {
		return false
	}
	switch b.Kind() {
	case types.Int, types.Int64, types.Uint, types.Uint64, types.Int32, types.Uint32:
		return true
	}
	return false
}

// object returns the shape of a variable, field, function or method.
func (p *Program) object(obj types.Object) shape {
	switch o := obj.(type) {
	case *types.Var:
		obj = o.Origin()
	case *types.Func:
		obj = o.Origin()
	default:
		return shape{}
	}
	own := obj.Pkg() != nil && (p.roots[obj.Pkg().Path()] || obj.Pkg().Path() == "gorm.io/gorm" && obj.Name() == "ID")
	s, ok := p.shapes[obj.Pos()]
	if !ok || !own {
		s = p.typed(obj.Type(), p.decls[obj.Pos()].expr, !own, nil)
	}
	if own && !ok {
		p.shapes[obj.Pos()] = s
		p.name(s.elem, obj)
	}
	return s
}

// name notes the name of a variable of an integer.
func (p *Program) name(s *slot, obj types.Object) {
	if s == nil || obj.Name() == "_" || obj.Name() == "" {
		return
	}
	s.root().names = append(s.root().names, obj.Name())
	name := obj.Name()
	if owner := p.owners[obj.Pos()]; owner != "" {
		name = owner + "." + name
	}
	if !slices.Contains(s.own, name) {
		s.own = append(s.own, name)
	}
}

// slot returns the integer at a position in the source.
func (p *Program) slot(pos token.Pos, expr ast.Expr) *slot {
	if p.slots[pos] == nil {
		p.slots[pos] = &slot{expr: expr}
	}
	return p.slots[pos]
}

type arguments map[*types.TypeParam]shape

// typed returns the shape of a type. expr is how the source writes it, or nil.
func (p *Program) typed(t types.Type, expr ast.Expr, fixed bool, of arguments) shape {
	switch t := t.(type) {
	case *types.Basic:
		if id, ok := expr.(*ast.Ident); ok && integer(t) && id.Name == t.Name() {
			return shape{elem: p.slot(id.Pos(), id)}
		} else if integer(t) {
			return shape{elem: &slot{fixed: fixed, typ: t.Name()}}
		}
	case *types.Alias:
		if s, ok := p.defined(t.Obj()); ok {
			return s
		}
		return p.typed(types.Unalias(t), nil, fixed, of)
	case *types.Named:
		s, _ := p.defined(t.Obj())
		return s
	case *types.Map:
		var key ast.Expr
		if m, ok := expr.(*ast.MapType); ok {
			key = m.Key
		}
		keys, s := p.typed(t.Key(), key, fixed, of).elem, p.typed(t.Elem(), element(expr), fixed, of)
		if s.key == nil {
			s.key = keys
		}
		p.join(s.key, keys, nil, nil)
		return s
	case interface{ Elem() types.Type }:
		return p.typed(t.Elem(), element(expr), fixed, of)
	case *types.TypeParam:
		if union, ok := t.Constraint().Underlying().(*types.Interface); ok && union.NumEmbeddeds() == 1 && of != nil {
			if u, ok := union.EmbeddedType(0).(*types.Union); ok && u.Len() == 1 { // S ~[]E
				return p.typed(u.Term(0).Type(), nil, true, of)
			}
		}
		return of[t]
	case *types.Signature:
		all := func(tuple *types.Tuple) (shapes []shape) {
			for v := range tuple.Variables() {
				s := p.object(v)
				if of != nil {
					s = p.typed(v.Type(), p.decls[v.Pos()].expr, fixed, of)
				}
				shapes = append(shapes, s)
			}
			return shapes
		}
		return shape{params: all(t.Params()), results: all(t.Results())}
	}
	return shape{}
}

// element returns the type of elements in the source of a type.
func element(e ast.Expr) ast.Expr {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return element(e.X)
	case *ast.StarExpr:
		return e.X
	case *ast.ArrayType:
		return e.Elt
	case *ast.Ellipsis:
		return e.Elt
	case *ast.ChanType:
		return e.Value
	case *ast.MapType:
		return e.Value
	}
	return nil
}

// defined returns the shape of a type that the program defines.
func (p *Program) defined(name *types.TypeName) (shape, bool) {
	d, ok := p.decls[name.Pos()]
	if !ok || d.spec == nil {
		return shape{}, false
	}
	if t := name.Type().Underlying(); types.IsInterface(t) {
		return shape{}, true
	}
	s := p.typed(d.info.TypeOf(d.expr), d.expr, false, nil)
	if s.elem != nil && s.elem.spec == nil && !d.spec.Assign.IsValid() {
		s.elem.spec = d.spec
	}
	return s, true
}

// generic returns a function with type parameters of its own for one call of it.
func (p *Program) generic(f *types.Func, given ...shape) shape {
	f = f.Origin()
	of, fixed := arguments{}, !p.roots[f.Pkg().Path()]
	for t := range f.Signature().TypeParams().TypeParams() {
		of[t] = shape{elem: &slot{}, key: &slot{}}
	}
	for i, s := range given {
		p.flow(p.typed(f.Signature().TypeParams().At(i), nil, fixed, of), s, nil, nil)
	}
	return p.typed(f.Type(), nil, fixed, of)
}
