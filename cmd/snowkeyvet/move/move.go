// Package move turns a program whose keys the database counts into one whose keys are
// types.Snowflake, as far as the source says which integers are keys.
//
// It starts at the keys of models and the fields that refer to them, which package models finds.
// From there it follows assignments, calls, comparisons, composite values and the methods of
// interfaces through all packages at once: whatever such an integer flows into is a key as well.
// Integers of other modules end the way, with a conversion. A conversion between integers of the
// program ends it too, unless all names on the other side are those of keys.
//
// Struct fields of a generic type's type argument are not followed. What the edits leave there
// does not compile, which is how one finds it.
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

	"github.com/snowkey/snowkey/cmd/snowkeyvet/models"
)

// A Program is a loaded program with what is known about its integers.
type Program struct {
	Fset *token.FileSet

	packages []*packages.Package
	roots    map[string]bool // paths of the packages of the program
	files    map[string]*file
	decls    map[token.Pos]decl   // where an object has its type written
	owners   map[token.Pos]string // the struct of a field
	slots    map[token.Pos]*slot  // integers with a type in the source
	vars     map[token.Pos]*shape // variables whose type is inferred
	models   *models.Set
	columns  map[string]bool // of keys
	bounds   []bound
	at       token.Pos // of the value that flows
	defaults map[token.Pos]constantVar
	convs    map[token.Pos]*conv
	parses   map[token.Pos]*parse
	formats  map[token.Pos]*ast.CallExpr // calls of strconv that write an integer, by their argument
	gormID   *slot
	opens    map[token.Pos]bool
	counters map[token.Pos]bool // calls of LastInsertId
	asserted map[token.Pos]*slot
}

type file struct {
	*ast.File
	pkg       *packages.Package
	generated bool
}

// A decl is where an object or a type is declared.
type decl struct {
	expr ast.Expr
	pkg  *packages.Package
	spec *ast.TypeSpec // of a defined type
}

// A bound is a place where an integer of the program meets one of another module.
type bound struct {
	dst, src         *slot
	dstExpr, srcExpr ast.Expr
	at               token.Pos // of the value that they are part of
}

// A constantVar is a constant that gives a variable its type, or is compared with one as any.
type constantVar struct {
	value ast.Expr
	shape *shape
}

// A conv is a conversion between integers.
type conv struct {
	call *ast.CallExpr
	to   *slot // nil for other types
	from *slot
	kind types.BasicKind
	pkg  *packages.Package
}

// A parse is a call of strconv that reads an integer.
type parse struct {
	call *ast.CallExpr
	slot *slot
}

// ErrNoModels is returned for a program in which no struct is a model.
var ErrNoModels = errors.New("move: no struct of these packages is a model: none has a tag gorm, the tag db:\"id\", a method TableName, or a call that hands it to GORM; name all packages of the program, as ./... does")

// Load loads the packages of a program with their tests and finds its keys.
func Load(dir string, patterns ...string) (*Program, error) {
	config := &packages.Config{
		Dir: dir, Tests: true, Mode: packages.LoadSyntax | packages.NeedModule,
		// With it, cgo's copy of a file may come from the build cache and name another checkout,
		// which Fix would edit.
		BuildFlags: []string{"-trimpath=false"},
	}
	pkgs, err := packages.Load(config, patterns...)
	if err != nil {
		return nil, fmt.Errorf("move: %w", err)
	}
	p := &Program{
		roots: map[string]bool{}, files: map[string]*file{}, decls: map[token.Pos]decl{}, owners: map[token.Pos]string{},
		slots: map[token.Pos]*slot{}, vars: map[token.Pos]*shape{}, columns: map[string]bool{}, defaults: map[token.Pos]constantVar{},
		convs: map[token.Pos]*conv{}, parses: map[token.Pos]*parse{}, formats: map[token.Pos]*ast.CallExpr{},
		gormID: &slot{names: []string{"ID"}}, opens: map[token.Pos]bool{}, counters: map[token.Pos]bool{}, asserted: map[token.Pos]*slot{},
	}
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
	}
	for _, pkg := range p.packages {
		for _, f := range pkg.Syntax {
			p.declare(pkg, f)
		}
	}
	p.seed()
	if len(p.models.All) == 0 {
		return nil, ErrNoModels
	}
	for _, pkg := range p.packages {
		w := &walker{Program: p, pkg: pkg, info: pkg.TypesInfo, shapes: map[ast.Expr]*shape{}}
		for _, f := range pkg.Syntax {
			w.walk(f, nil)
		}
	}
	p.implement()
	p.settle()
	return p, nil
}

// declare notes where the objects of a file have their types.
func (p *Program) declare(pkg *packages.Package, f *ast.File) {
	name := p.Fset.Position(f.Pos()).Filename
	if p.files[name] == nil {
		p.files[name] = &file{File: f, pkg: pkg, generated: models.Generated(f)}
	}
	put := func(names []*ast.Ident, expr ast.Expr) {
		for _, name := range names {
			p.decls[name.Pos()] = decl{expr: expr, pkg: pkg}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			put(n.Names, n.Type)
		case *ast.ValueSpec:
			if n.Type != nil {
				put(n.Names, n.Type)
			}
		case *ast.FuncDecl:
			put([]*ast.Ident{n.Name}, n.Type)
		case *ast.TypeSpec:
			p.decls[n.Name.Pos()] = decl{expr: n.Type, pkg: pkg, spec: n}
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
		for expr, tv := range pkg.TypesInfo.Types {
			if i, ok := tv.Type.(*types.Interface); ok && tv.IsType() && i.NumMethods() > 0 {
				if _, literal := expr.(*ast.InterfaceType); literal {
					interfaces = append(interfaces, i)
				}
			}
		}
		for _, obj := range pkg.TypesInfo.Defs {
			if name, ok := obj.(*types.TypeName); ok && !name.IsAlias() && !types.IsInterface(name.Type()) {
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
	for _, name := range o.names {
		s.label(name)
	}
}

func (s *slot) isKey() bool { return s != nil && !s.fixed && s.root().key }

// named reports whether the class has names, all of them names of keys.
func (s *slot) named() bool {
	names := s.root().names
	return len(names) > 0 && !slices.ContainsFunc(names, func(n string) bool { return !keyName.MatchString(n) })
}

// A shape is a type with its integers as slots: an integer itself, or an unnamed type that is
// made of others.
type shape struct {
	slot            *slot
	key, elem       *shape
	params, results []*shape // of a function, or results alone of a call
	variadic        bool
	bound           *shape // what a type parameter of a called function stands for
	parameter       bool
}

func (s *shape) resolve() *shape {
	for s != nil && s.parameter && s.bound != nil {
		s = s.bound
	}
	return s
}

// flow makes two types agree. The expressions, if there are any, may be converted instead.
func (p *Program) flow(dst, src *shape, dstExpr, srcExpr ast.Expr) {
	dst, src = dst.resolve(), src.resolve()
	if dst == nil || src == nil || dst == src {
		return
	}
	if srcExpr != nil {
		p.at = srcExpr.Pos()
	}
	if dst.parameter {
		dst.bound = src
		return
	}
	if src.parameter {
		src.bound = dst
		return
	}
	if dst.slot != nil && src.slot != nil {
		switch {
		case dst.slot.fixed && src.slot.fixed:
		case dst.slot.fixed || src.slot.fixed:
			p.bounds = append(p.bounds, bound{dst.slot, src.slot, dstExpr, srcExpr, p.at})
		default:
			dst.slot.union(src.slot)
		}
		return
	}
	p.flow(dst.key, src.key, nil, nil)
	p.flow(dst.elem, src.elem, nil, nil)
	for i := range min(len(dst.params), len(src.params)) {
		p.flow(dst.params[i], src.params[i], nil, nil)
	}
	for i := range min(len(dst.results), len(src.results)) {
		p.flow(dst.results[i], src.results[i], nil, nil)
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

// object returns the type of a variable, field, function or method.
func (p *Program) object(obj types.Object) *shape {
	switch o := obj.(type) {
	case nil, *types.Const:
		return nil
	case *types.Var:
		obj = o.Origin()
		if o.IsField() && o.Pkg() != nil && o.Pkg().Path() == "gorm.io/gorm" && o.Name() == "ID" {
			return &shape{slot: p.gormID}
		}
	case *types.Func:
		obj = o.Origin()
	}
	if d, ok := p.decls[obj.Pos()]; ok && d.spec == nil {
		s := p.written(d.pkg.TypesInfo, d.expr)
		p.name(s, obj)
		return s
	}
	if obj.Pkg() == nil || !p.roots[obj.Pkg().Path()] {
		return p.typed(obj.Type(), true, nil)
	}
	s, ok := p.vars[obj.Pos()]
	if !ok {
		s = p.typed(obj.Type(), false, nil)
		p.vars[obj.Pos()] = s
		p.name(s, obj)
	}
	return s
}

func (p *Program) name(s *shape, obj types.Object) {
	for s != nil && s.slot == nil && s.elem != nil {
		s = s.elem
	}
	if _, ok := obj.(*types.Var); !ok || s == nil || s.slot == nil || obj.Name() == "_" || obj.Name() == "" {
		return
	}
	own := obj.Name()
	if owner := p.owners[obj.Pos()]; owner != "" {
		own = owner + "." + own
	}
	if !slices.Contains(s.slot.own, own) {
		s.slot.own = append(s.slot.own, own)
	}
	s.slot.label(obj.Name())
}

func (s *slot) label(name string) {
	if root := s.root(); !slices.Contains(root.names, name) {
		root.names = append(root.names, name)
	}
}

// written returns the type of an expression that is a type.
func (p *Program) written(info *types.Info, expr ast.Expr) *shape {
	switch e := expr.(type) {
	case *ast.ParenExpr:
		return p.written(info, e.X)
	case *ast.StarExpr:
		return &shape{elem: p.written(info, e.X)}
	case *ast.ArrayType:
		return &shape{elem: p.written(info, e.Elt)}
	case *ast.Ellipsis:
		return &shape{elem: p.written(info, e.Elt)}
	case *ast.ChanType:
		return &shape{elem: p.written(info, e.Value)}
	case *ast.MapType:
		return &shape{key: p.written(info, e.Key), elem: p.written(info, e.Value)}
	case *ast.FuncType:
		s := &shape{params: p.fields(info, e.Params), results: p.fields(info, e.Results)}
		if n := e.Params.NumFields(); n > 0 {
			_, s.variadic = e.Params.List[len(e.Params.List)-1].Type.(*ast.Ellipsis)
		}
		return s
	case *ast.SelectorExpr:
		return p.defined(info.Uses[e.Sel], expr)
	case *ast.Ident:
		return p.defined(info.Uses[e], expr)
	}
	return nil
}

func (p *Program) fields(info *types.Info, list *ast.FieldList) (all []*shape) {
	if list == nil {
		return nil
	}
	for _, field := range list.List {
		for range max(1, len(field.Names)) {
			all = append(all, p.written(info, field.Type))
		}
	}
	return all
}

// defined returns the type that a name in the source stands for.
func (p *Program) defined(obj types.Object, expr ast.Expr) *shape {
	name, ok := obj.(*types.TypeName)
	if !ok {
		return nil
	}
	if obj.Pkg() == nil && integer(obj.Type()) {
		s := p.slots[expr.Pos()]
		if s == nil {
			s = &slot{expr: expr}
			p.slots[expr.Pos()] = s
		}
		return &shape{slot: s}
	}
	d, ok := p.decls[name.Pos()]
	if !ok || d.spec == nil {
		return nil
	}
	switch d.expr.(type) {
	case *ast.StructType, *ast.InterfaceType:
		return nil
	}
	s := p.written(d.pkg.TypesInfo, d.expr)
	if s != nil && s.slot != nil && s.slot.spec == nil && !d.spec.Assign.IsValid() {
		s.slot.spec = d.spec
	}
	return s
}

// typed returns a type without source: new slots, or those of the program's named types.
func (p *Program) typed(t types.Type, fixed bool, parameters map[*types.TypeParam]*shape) *shape {
	all := func(tuple *types.Tuple) (shapes []*shape) {
		for v := range tuple.Variables() {
			shapes = append(shapes, p.typed(v.Type(), fixed, parameters))
		}
		return shapes
	}
	switch t := types.Unalias(t).(type) {
	case *types.Basic:
		if integer(t) {
			return &shape{slot: &slot{fixed: fixed, typ: t.Name()}}
		}
	case *types.Pointer:
		return &shape{elem: p.typed(t.Elem(), fixed, parameters)}
	case *types.Slice:
		return &shape{elem: p.typed(t.Elem(), fixed, parameters)}
	case *types.Array:
		return &shape{elem: p.typed(t.Elem(), fixed, parameters)}
	case *types.Chan:
		return &shape{elem: p.typed(t.Elem(), fixed, parameters)}
	case *types.Map:
		return &shape{key: p.typed(t.Key(), fixed, parameters), elem: p.typed(t.Elem(), fixed, parameters)}
	case *types.Signature:
		return &shape{params: all(t.Params()), results: all(t.Results()), variadic: t.Variadic()}
	case *types.Named:
		return p.defined(t.Obj(), nil)
	case *types.TypeParam:
		return parameters[t]
	}
	return nil
}

// generic returns a function with fresh type parameters, for one call of it.
func (p *Program) generic(f *types.Func, arguments ...*shape) *shape {
	parameters := map[*types.TypeParam]*shape{}
	sig := f.Origin().Signature()
	for t := range sig.TypeParams().TypeParams() {
		parameters[t] = &shape{parameter: true}
		if t.Index() < len(arguments) {
			parameters[t].bound = arguments[t.Index()]
		}
	}
	for t := range sig.TypeParams().TypeParams() { // S ~[]E
		if union, ok := t.Constraint().Underlying().(*types.Interface); ok && union.NumEmbeddeds() == 1 {
			if u, ok := union.EmbeddedType(0).(*types.Union); ok && u.Len() == 1 && u.Term(0).Tilde() {
				constraint := p.typed(u.Term(0).Type(), true, parameters)
				if parameters[t].bound == nil {
					parameters[t].bound = constraint
				}
				p.flow(parameters[t].bound, constraint, nil, nil)
			}
		}
	}
	return p.typed(sig, true, parameters)
}
