package gormcases

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/snowkey/snowkey/gormplugin"
)

// A stored row has its columns as text. One that is NULL is not there.
type storedRow map[string]string

// A snapshot is all rows, by table.
type snapshot map[string][]storedRow

func (w *world) snapshot() (snapshot, error) {
	tables := slices.Clone(w.joins)
	for _, s := range w.schemas {
		tables = append(tables, s.Table)
	}
	all := snapshot{}
	for _, table := range tables {
		list, err := rowsOf(w.db, "SELECT * FROM "+table)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", table, err)
		}
		all[table] = list
	}
	return all, nil
}

// rowsOf returns the rows of a query, in order.
func rowsOf(db *gorm.DB, query string) (list []storedRow, err error) {
	found, err := db.Raw(query).Rows()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	names, err := found.Columns()
	if err != nil {
		return nil, err
	}
	texts, into := make([]sql.NullString, len(names)), make([]any, len(names))
	for i := range texts {
		into[i] = &texts[i]
	}
	for found.Next() {
		if err = found.Scan(into...); err != nil {
			return nil, err
		}
		row := storedRow{}
		for i, text := range texts {
			if text.Valid {
				row[names[i]] = text.String
			}
		}
		list = append(list, row)
	}
	slices.SortFunc(list, func(a, b storedRow) int {
		order := 0
		for i := 0; order == 0 && i < len(names); i++ {
			order = strings.Compare(a[names[i]], b[names[i]])
		}
		return order
	})
	return list, found.Err()
}

// A node is one struct of what an operation is given.
type node struct {
	schema  *schema.Schema
	value   reflect.Value
	preset  string // the key that it came with
	partial bool   // not all columns are written
}

// text returns what the node has in f, or nothing where that is zero or NULL.
func (n *node) text(f *schema.Field) string {
	v, _ := f.ValueOf(context.Background(), n.value)
	for r := reflect.ValueOf(v); r.Kind() == reflect.Pointer; r = reflect.ValueOf(v) {
		if r.IsNil() {
			return ""
		}
		v = r.Elem().Interface()
	}
	if valuer, ok := v.(driver.Valuer); ok {
		v, _ = valuer.Value()
	}
	if v == nil || reflect.ValueOf(v).IsZero() {
		return ""
	}
	return fmt.Sprint(v)
}

// row returns what memory has, as it would be stored.
func (n *node) row() storedRow {
	r := storedRow{}
	for _, f := range n.schema.Fields {
		if text := n.text(f); f.DBName != "" && text != "" {
			r[f.DBName] = text
		}
	}
	return r
}

// key returns the primary key of the node as [keyOf] does, and whether it is whole.
func (n *node) key() (key string, whole bool) {
	r := n.row()
	return keyOf(n.schema, r), !slices.ContainsFunc(n.schema.PrimaryFieldDBNames, func(name string) bool { return r[name] == "" })
}

func (n *node) String() string { return fmt.Sprintf("%+v", n.value.Interface()) }

func keyOf(s *schema.Schema, row storedRow) string {
	var parts []string
	for _, name := range s.PrimaryFieldDBNames {
		parts = append(parts, row[name])
	}
	return strings.Join(parts, "/")
}

// alike reports whether two rows of s are equal in a unique index.
func alike(s *schema.Schema, a, b storedRow) bool {
	return slices.ContainsFunc(uniques(s), func(columns []string) bool {
		return !slices.ContainsFunc(columns, func(name string) bool { return a[name] == "" || a[name] != b[name] })
	})
}

// uniques returns the columns of the unique indexes of s.
func uniques(s *schema.Schema) (list [][]string) {
	for _, index := range s.ParseIndexes() {
		if index.Class == "UNIQUE" {
			var columns []string
			for _, option := range index.Fields {
				columns = append(columns, option.DBName)
			}
			list = append(list, columns)
		}
	}
	return list
}

// met returns the keys of the rows that n is like, in a unique index or in the key that it came with.
func (n *node) met(all snapshot) map[string]bool {
	keys, memory := map[string]bool{}, n.row()
	for _, row := range all[n.schema.Table] {
		if key := keyOf(n.schema, row); n.preset != "" && key == n.preset || alike(n.schema, memory, row) {
			keys[key] = true
		}
	}
	return keys
}

// A link is a relation of one node with another.
type link struct {
	rel          *schema.Relationship
	owner, child *node
}

// A graph is what an operation is given.
type graph struct {
	nodes []*node
	links []link
	seen  map[any]*node
}

// schemaOf returns the schema of a random model, or of another one as the plugin has it.
func (w *world) schemaOf(t reflect.Type) *schema.Schema {
	for _, s := range w.schemas {
		if s.ModelType == t {
			return s
		}
	}
	stmt := &gorm.Statement{DB: w.db}
	if err := stmt.Parse(reflect.New(t).Interface()); err != nil {
		panic(err)
	}
	w.schemas = append(w.schemas, stmt.Schema)
	return stmt.Schema
}

// graph collects the structs of a value to create, and what is below. follow decides about the
// associations of a root.
func (w *world) graph(follow func(name string) bool, values ...any) *graph {
	g := &graph{seen: map[any]*node{}}
	for _, value := range values {
		list := reflect.Indirect(reflect.ValueOf(value))
		if list.Kind() == reflect.Struct {
			g.add(w, list, follow)
			continue
		}
		for i := range list.Len() {
			g.add(w, reflect.Indirect(list.Index(i)), follow)
		}
	}
	return g
}

func everywhere(string) bool { return true }

func only(names ...string) func(string) bool {
	return func(name string) bool { return slices.Contains(names, name) }
}

// relations returns the relations whose rows a struct of s holds, in order.
func relations(s *schema.Schema) (list []*schema.Relationship) {
	for _, name := range slices.Sorted(maps.Keys(s.Relationships.Relations)) {
		if rel := s.Relationships.Relations[name]; rel.Field != nil && rel.Field.Name == name {
			list = append(list, rel)
		}
	}
	return list
}

func (g *graph) add(w *world, v reflect.Value, follow func(string) bool) *node {
	s := w.schemaOf(v.Type())
	place := v.Addr().Interface()
	if n := g.seen[place]; n != nil {
		return n
	}
	n := &node{schema: s, value: v}
	g.seen[place] = n
	if key, whole := n.key(); whole {
		n.preset = key
	}
	g.nodes = append(g.nodes, n)
	for _, rel := range relations(s) {
		if !follow(rel.Name) {
			continue
		}
		field := v.FieldByName(rel.Name)
		for field.Kind() == reflect.Pointer && !field.IsNil() {
			field = field.Elem()
		}
		switch field.Kind() {
		case reflect.Struct:
			g.links = append(g.links, link{rel, n, g.add(w, field, everywhere)})
		case reflect.Slice:
			for i := range field.Len() {
				g.links = append(g.links, link{rel, n, g.add(w, reflect.Indirect(field.Index(i)), everywhere)})
			}
		}
	}
	return n
}

// conflicts returns the most rows that one node of the graph is like, stored or of
// the graph itself. inside says whether any two of the graph are alike.
func (g *graph) conflicts(before snapshot) (most int, inside bool) {
	for _, n := range g.nodes {
		count := len(n.met(before))
		for _, other := range g.nodes {
			if other != n && other.schema == n.schema && alike(n.schema, n.row(), other.row()) {
				count++
				inside = true
			}
		}
		most = max(most, count)
	}
	return most, inside
}

// reject describes what is wrong with an operation that returned err, or returns nil.
//
// The database must be unchanged, and the error must be caused by a conflict, never by a
// foreign key, which would mean that a child was stored under a key that no row has. PostgreSQL
// refuses to update a row twice in one statement (21000), but only if the operation was given
// that row twice.
func (w *world) reject(g *graph, err error, before, after snapshot) error {
	switch most, inside := g.conflicts(before); {
	case !reflect.DeepEqual(before, after):
		return fmt.Errorf("after %w the database has changed", err)
	case most == 0:
		return fmt.Errorf("error without a conflict: %w", err)
	case errors.Is(err, gormplugin.ErrUnresolved):
		if most < 2 && !w.moves() {
			return fmt.Errorf("no row is like two others: %w", err)
		}
	default:
		for _, text := range []string{"UNIQUE constraint failed", "duplicate key", "Duplicate entry", "SQLSTATE 21000"} {
			if strings.Contains(err.Error(), text) && (inside || text != "SQLSTATE 21000") {
				return nil
			}
		}
		return fmt.Errorf("unexpected error: %w", err)
	}
	return nil
}

// moves reports whether rows of the operation may have changed unique columns of a row that
// an earlier one has met, which the plugin then does not identify.
func (w *world) moves() bool {
	return w.mysql() && (strings.Contains(w.doing, "Save") || strings.Contains(w.doing, "UpdateAll"))
}

// accept describes what is wrong after an operation that returned no error, or returns nil.
//
// The key of a row in memory must be the key of a stored row with an equal unique column, and may
// be zero only if two stored rows are equal to it; which of two it is, [oracle] knows. No rows may have been made but those in memory, none may have lost its key, and what is
// related in memory must be related in the database.
func (w *world) accept(g *graph, before, after snapshot) error {
	made := map[string]bool{}
	for _, n := range g.nodes {
		if err := w.acceptNode(n, after); err != nil {
			return err
		}
		key, _ := n.key()
		made[n.schema.Table+key] = true
	}
	for _, s := range w.schemas {
		if s.Name == "DocTeam" {
			continue // nobody has its rows in memory
		}
		was, is := keysOf(s, before), keysOf(s, after)
		for key := range was {
			if !is[key] {
				return fmt.Errorf("%s %s is gone", s.Name, key)
			}
		}
		for key := range is {
			if !was[key] && !made[s.Table+key] {
				return fmt.Errorf("%s %s was made, and is not in memory", s.Name, key)
			}
		}
	}
	return g.related(before, after)
}

// acceptNode compares the key of n with the stored rows, and the other columns that
// the plugin fills.
func (w *world) acceptNode(n *node, after snapshot) error {
	key, whole := n.key()
	if n.schema.LookUpField("ID") == nil {
		n.preset = key // the key of another
	}
	met := n.met(after)
	switch {
	case len(met) == 0:
		return fmt.Errorf("%v is not stored", n)
	case !whole && len(met) < 2 && !w.moves():
		return fmt.Errorf("%v has no key; it is stored as %v", n, met)
	case !whole:
		return nil
	case !met[key]:
		return fmt.Errorf("%v has the key %s; it is stored as %v", n, key, met)
	}
	row := n.find(after)
	for _, f := range n.schema.Fields {
		if _, tagged := f.TagSettings["SNOWFLAKE"]; tagged && !n.partial && n.text(f) != row[f.DBName] {
			return fmt.Errorf("%v has %s %s; stored is %s", n, f.Name, n.text(f), row[f.DBName])
		}
	}
	return nil
}

func keysOf(s *schema.Schema, all snapshot) map[string]bool {
	keys := map[string]bool{}
	for _, row := range all[s.Table] {
		keys[keyOf(s, row)] = true
	}
	return keys
}

// matches fails the test unless each row below roots is stored under its key with the values in
// memory, with the foreign keys and join rows of its associations.
func (e *env) matches(roots ...any) {
	e.Helper()
	w := &world{env: e, db: e.db}
	g := w.graph(everywhere, roots...)
	for _, l := range g.links {
		if join := l.rel.JoinTable; join != nil && !slices.Contains(w.joins, join.Table) {
			w.joins = append(w.joins, join.Table)
		}
	}
	after, err := w.snapshot()
	if err == nil {
		err = g.related(nil, after)
	}
	if err != nil {
		e.Error(err)
	}
	for _, n := range g.nodes {
		row := n.find(after)
		if row == nil {
			e.Errorf("%v is not stored", n)
			continue
		}
		for _, f := range n.schema.Fields {
			text := !slices.Contains([]schema.DataType{schema.Time, schema.Bool, schema.Float, schema.Bytes}, f.DataType) // alike in Go and stored
			if got := row[f.DBName]; text && f.DBName != "" && got != n.text(f) && !(got == "0" && n.text(f) == "") {
				e.Errorf("%s of %v is stored as %q; want %q", f.Name, n, got, n.text(f))
			}
		}
	}
}

// find returns the stored row of n.
func (n *node) find(all snapshot) storedRow {
	key, _ := n.key()
	for _, row := range all[n.schema.Table] {
		if keyOf(n.schema, row) == key {
			return row
		}
	}
	return nil
}

// related compares the links with the foreign keys, in memory and stored.
func (g *graph) related(before, after snapshot) error {
	possible := map[string]map[string]bool{} // of a child, the foreign keys that one of its parents asks for
	stored := map[string]string{}
	for _, l := range g.links {
		if l.rel.Type == schema.Many2Many {
			if err := l.joined(after); err != nil {
				return err
			}
			continue
		}
		from, want, err := l.wanted()
		if err != nil {
			return err
		}
		row := from.find(after)
		if l.rel.Type == schema.BelongsTo && (row == nil || from.find(before) != nil || g.twice(from)) {
			continue // an upsert that met a row need not write it
		}
		key := from.schema.Table + " " + keyOf(from.schema, row) + " " + l.rel.Name
		if possible[key] == nil {
			possible[key] = map[string]bool{}
		}
		possible[key][fmt.Sprint(want)] = true
		got := storedRow{}
		for name := range want {
			got[name] = row[name]
		}
		stored[key] = fmt.Sprint(got)
	}
	for key, got := range stored {
		if !possible[key][got] {
			return fmt.Errorf("%s is stored with %s; want one of %v", key, got, slices.Collect(maps.Keys(possible[key])))
		}
	}
	return nil
}

// joined says what is wrong with the join row of a many-to-many.
func (l link) joined(after snapshot) error {
	want := storedRow{}
	for _, ref := range l.rel.References {
		from := l.child
		if ref.OwnPrimaryKey {
			from = l.owner
		}
		want[ref.ForeignKey.DBName] = from.text(ref.PrimaryKey)
	}
	if !slices.ContainsFunc(after[l.rel.JoinTable.Table], func(row storedRow) bool { return row.has(want) }) {
		return fmt.Errorf("no row of %s is %v", l.rel.JoinTable.Table, want)
	}
	return nil
}

// wanted returns the node that refers to the other and the foreign keys that it must
// have. The error says that it has others in memory.
func (l link) wanted() (from *node, want storedRow, err error) {
	from, to := l.child, l.owner
	if l.rel.Type == schema.BelongsTo {
		from, to = l.owner, l.child
	}
	want = storedRow{}
	for _, ref := range l.rel.References {
		name := ref.ForeignKey.DBName
		if want[name] = ref.PrimaryValue; ref.PrimaryValue == "" {
			want[name] = to.text(ref.PrimaryKey)
		}
		if got := from.text(ref.ForeignKey); got != want[name] {
			return nil, nil, fmt.Errorf("%v has %s %s in memory; want %s", from, ref.ForeignKey.Name, got, want[name])
		}
	}
	return from, want, nil
}

// twice reports whether another node of g is the same row.
func (g *graph) twice(n *node) bool {
	key, _ := n.key()
	return slices.ContainsFunc(g.nodes, func(other *node) bool {
		same, _ := other.key()
		return other != n && other.schema == n.schema && same == key
	})
}

func (r storedRow) has(want storedRow) bool {
	for name, text := range want {
		if r[name] != text {
			return false
		}
	}
	return true
}
