package gormplugin

import (
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
)

// keysPerQuery is how many keys one statement asks for. Old versions of SQLite take 999
// parameters.
const keysPerQuery = 900

// A reread finds the stored rows of an upsert.
//
// It first looks for the keys that the statement assigned. Nobody else has them, so
// such a row is the one that was inserted. A key that the caller had set proves
// nothing yet. Its row may not be the one that was met, and part of a composite key
// may be in many rows.
//
// The other rows are looked up by what the statement recognizes a row by, or by all
// unique keys of the table. The database compares the values, because only it knows
// its collations and the precision of its columns.
type reread struct {
	*creation
	db       *gorm.DB
	upsert   upsert
	assigned []bool        // for each row, whether its key is fresh
	alone    bool          // no other table has rows that the insert meets, see standsAlone
	inserted map[cell]int  // of the stored rows with a fresh key, the rows of the statement
	shared   map[cell]bool // keys of the caller that rows bring which are not the same
	room     []cell        // for the next rows that are read
	asked    bool          // the catalog was read for this statement
	torn     map[int]bool  // the rows that equal two stored ones
}

func (r *reread) run() (err error) {
	if r.alone, err = r.standsAlone(); err != nil {
		return err
	}
	r.selected, r.restricted = r.stmt.SelectAndOmitColumns(true, false)
	r.assigned, r.inserted = r.freshRows(), map[cell]int{}
	r.shared = r.sharedKeys()
	byKey, others := r.split()
	unmet, err := r.byKey(byKey)
	if err != nil {
		return err
	}
	rest := append(unmet, others...)
	if len(rest) == 0 {
		return nil
	}
	uniques, err := r.storedUniques()
	if err != nil {
		return err
	}
	all := len(byKey) + len(others)
	lost, err := r.byUniques(rest, uniques, all)
	if err != nil {
		return err
	}
	if len(lost) > 0 && !r.asked { // the table may have got an index since
		r.forgetUniques()
		if uniques, err = r.storedUniques(); err != nil {
			return err
		}
		if lost, err = r.byUniques(lost, uniques, all-len(rest)+len(lost)); err != nil {
			return err
		}
	}
	for _, i := range lost {
		if unresolved := r.unresolved(i, uniques); unresolved != nil {
			err = unresolved
		}
	}
	return err
}

// byUniques looks rest up by what the statement goes by, and returns the rows that are not
// resolved. all is the number of rows whose key is known.
func (r *reread) byUniques(rest []int, uniques []unique, all int) (lost []int, err error) {
	r.torn = map[int]bool{}
	switch {
	case r.named():
		lost, err = r.byTarget(rest, uniques, all)
	case r.moves(uniques):
		lost = rest
	default:
		lost, err = r.byAny(rest, uniques)
	}
	if err != nil {
		return nil, err
	}
	// A trigger may have stored a row elsewhere, as in a partition, and left it out of
	// RowsAffected. It has its fresh key.
	var fresh []int
	lost = slices.DeleteFunc(lost, func(i int) bool {
		if r.assigned[i] {
			fresh = append(fresh, i)
		}
		return r.assigned[i]
	})
	fresh, err = r.byKey(fresh)
	return append(lost, fresh...), err
}

// moves reports whether a row of the statement can have changed the unique values by which
// an earlier one has met its row. Looked up by these after the statement, the earlier row
// would be taken for another one that has them by then.
//
// Only MySQL goes by several unique keys and updates. With a single one besides the primary
// key, and fresh keys only, a row meets another by that one alone, and an update by the
// values that it sends leaves them equal.
func (r *reread) moves(uniques []unique) bool {
	if r.rows.len() == 1 || r.upsert.ignores {
		return false
	}
	primary := r.stmt.Schema.PrimaryFields
	others := slices.DeleteFunc(slices.Clone(uniques), func(u unique) bool { return u.covers(primary) })
	alone := len(others) == 1 && !slices.Contains(r.assigned, false)
	return !r.upsert.plain || slices.ContainsFunc(r.upsert.conflict.DoUpdates, func(set clause.Assignment) bool {
		sent, ok := set.Value.(clause.Column)
		if alone && ok && sent.Table == "excluded" && sent.Name == set.Column.Name {
			return false
		}
		return slices.ContainsFunc(others, func(u unique) bool {
			return u.hidden || slices.ContainsFunc(u.columns, func(c uniqueColumn) bool { return c.name == set.Column.Name })
		})
	})
}

// freshRows returns for each row whether its key in columns[0] was assigned.
func (r *reread) freshRows() []bool {
	list, next := make([]bool, r.rows.len()), 0
	var set map[cell]bool
	for i := range list {
		sent := r.sentAt(i, 0)
		if next < len(r.fresh) && sent == r.columns[0].of(r.fresh[next]) { // as a rule
			list[i] = true
			next += len(r.columns)
			continue
		}
		if set == nil {
			set = make(map[cell]bool, len(r.fresh))
			for _, id := range r.fresh {
				set[r.columns[0].of(id)] = true
			}
		}
		list[i] = set[sent]
	}
	return list
}

// sharedKeys returns the keys of the caller that several rows bring, unless these are the
// same in all columns. One of the rows may be stored under the key, and one before it may
// have met another row, while the key was free.
func (r *reread) sharedKeys() map[cell]bool {
	first, shared := map[cell]int{}, map[cell]bool{}
	for i, assigned := range r.assigned {
		if sent := r.sentAt(i, 0); !assigned && sent.present {
			if j, met := first[sent]; !met {
				first[sent] = i
			} else if !r.same(i, j) {
				shared[sent] = true
			}
		}
	}
	return shared
}

// same reports whether two rows send the same in all columns.
func (r *reread) same(i, j int) bool {
	return !slices.ContainsFunc(r.stmt.Schema.DBNames, func(name string) bool {
		f := r.stmt.Schema.FieldsByDBName[name]
		v, _ := r.value(i, f)
		w, _ := r.value(j, f)
		return !reflect.DeepEqual(v, w)
	})
}

// split returns the rows that can be found by their key, and the others. It leaves
// out rows whose key is an expression.
func (r *reread) split() (byKey, others []int) {
	// Without a target, a stored row with the whole primary key is the one that was met.
	primary := r.stmt.Schema.PrimaryFields
	none := r.db.RowsAffected == 0 && r.upsert.countsInserts(r.stmt) // no fresh key is stored
	whole := !r.named() && len(primary) == 1 && primary[0] == r.columns[0].field
	byKey, others = make([]int, 0, r.rows.len()), make([]int, 0, r.rows.len())
	for i := range r.rows.len() {
		switch sent := r.sentAt(i, 0); {
		case !sent.present:
		case r.assigned[i] && !none, whole && !r.assigned[i] && !r.shared[sent]:
			byKey = append(byKey, i)
		default:
			others = append(others, i)
		}
	}
	return byKey, others
}

// byAny looks rest up by every unique key and returns the rows that are not resolved. A
// row that cannot be compared in one of the keys may have met that one. Then only the
// primary key counts, unless rows share it.
func (r *reread) byAny(rest []int, uniques []unique) (lost []int, err error) {
	var seen, blind []int
	for _, i := range rest {
		switch {
		case !slices.ContainsFunc(uniques, func(u unique) bool { return r.blind(i, u) != nil }):
			seen = append(seen, i)
		case r.shared[r.sentAt(i, 0)]:
			lost = append(lost, i)
		default:
			blind = append(blind, i)
		}
	}
	free, torn, err := r.byUnique(seen, uniques)
	if err != nil {
		return nil, err
	}
	more, tornToo, err := r.byUnique(blind, []unique{uniqueOf(uniques, r.stmt.Schema.PrimaryFields)})
	return slices.Concat(lost, free, torn, more, tornToo), err
}

// byTarget looks rest up by what the statement names. It returns the rows that are
// not resolved. all is the number of rows whose key is known.
func (r *reread) byTarget(rest []int, uniques []unique, all int) (lost []int, err error) {
	target := r.target(uniques)
	free, torn := rest, []int(nil)
	if !target.hidden {
		if free, torn, err = r.byUnique(rest, []unique{target}); err != nil {
			return nil, err
		}
	}
	// The free rows equal no stored row in the target. So they were inserted, even
	// under a key that the caller had set.
	free, more, err := r.byUnique(free, []unique{uniqueOf(uniques, r.stmt.Schema.PrimaryFields)})
	if err != nil {
		return nil, err
	}
	lost = slices.Concat(free, torn, more)
	// With a hidden target they may have met a row. They have not if as many rows are
	// stored under their keys as were inserted.
	if target.hidden && !(r.upsert.countsInserts(r.stmt) && r.db.RowsAffected == int64(all-len(lost))) {
		return rest, nil
	}
	return lost, nil
}

// byKey resolves the rows of list that are stored under the key in memory and returns
// the rest.
func (r *reread) byKey(list []int) (rest []int, err error) {
	stored := make(map[cell][]cell, len(list))
	keep := func(_ int, values []cell, _ uint64) { stored[values[0]] = values }
	if runs := r.runsOf(list); runs != nil {
		if complete, err := r.complete(runs); complete || err != nil {
			return nil, err
		}
		q := r.byKeys(list)
		q.inRuns(runs)
		if err = q.each(list, keep); err != nil {
			return nil, err
		}
		return r.byStored(list, stored), nil
	}
	for chunk := range slices.Chunk(list, keysPerQuery) {
		q := r.byKeys(chunk)
		q.write(" IN (")
		for n, i := range chunk {
			if n > 0 {
				q.write(",")
			}
			q.AddVar(q, r.sentAt(i, 0).value(r.columns[0].kind))
		}
		q.write(")")
		if err = q.each(chunk, keep); err != nil {
			return nil, err
		}
	}
	return r.byStored(list, stored), nil
}

// byStored resolves the rows of list that are in stored, by key, and returns the rest.
func (r *reread) byStored(list []int, stored map[cell][]cell) (rest []int) {
	for _, i := range list {
		if values, ok := stored[r.sentAt(i, 0)]; ok {
			r.resolved(i, values)
			if r.assigned[i] && !r.upsert.replaces { // a row that replaces is the later one
				r.inserted[values[0]] = i
			}
		} else {
			rest = append(rest, i)
		}
	}
	return rest
}

// byKeys returns a query for the rows of list by their keys. The condition is missing. A
// trigger may have stored a row under a fresh key elsewhere.
func (r *reread) byKeys(list []int) *query {
	q := r.query()
	q.write("SELECT 0,0,")
	q.columns()
	q.write(" FROM ")
	if slices.ContainsFunc(list, func(i int) bool { return !r.assigned[i] }) {
		q.write(q.only())
	}
	q.write(q.table(), " WHERE ", clause.Column{Name: r.columns[0].field.DBName})
	return q
}

// byUnique looks list up by keys. It returns the free rows and the torn rows. A free row
// equals no stored row in any key. A torn row equals one stored row in one key and
// another in another.
//
// A row that was found by one key is not looked up by another in which the two are
// equal. So usually one look finds all.
func (r *reread) byUnique(list []int, keys []unique) (free, torn []int, err error) {
	keys = slices.DeleteFunc(slices.Clone(keys), func(key unique) bool {
		return !slices.ContainsFunc(list, func(i int) bool { return r.usable(i, key) })
	})
	found := make([]meeting, r.rows.len())
	for k := range keys {
		ask := make([]int, 0, len(list))
		for _, i := range list {
			if found[i].same>>k&1 == 0 && r.usable(i, keys[k]) {
				ask = append(ask, i)
			}
		}
		err = r.look(ask, keys[k:], func(i int, stored []cell, same uint64) {
			if by, ok := r.inserted[stored[0]]; ok && by > i {
				return // stored after row i, which has not met it
			}
			m := &found[i]
			if m.stored == nil {
				m.stored = stored
			}
			m.torn = m.torn || m.stored[0] != stored[0]
			m.same |= same << k
		})
		if err != nil {
			return nil, nil, err
		}
	}
	for _, i := range list {
		switch m := &found[i]; {
		case m.stored == nil:
			free = append(free, i)
		case m.torn || !m.stored[0].present:
			torn = append(torn, i)
			r.torn[i] = true
		default:
			r.resolved(i, m.stored)
		}
	}
	return free, torn, nil
}

// A meeting is what byUnique has found for a row.
type meeting struct {
	stored []cell // nil for nothing
	same   uint64 // a bit for each of the keys in which the two are equal
	torn   bool   // another key has found another row
}

// usable reports whether row i may be found by u. A fresh primary key equals no stored
// one.
func (r *reread) usable(i int, u unique) bool {
	key := r.columns[0].field
	return r.known(i, u) && !(key.PrimaryKey && r.assigned[i] && u.covers(r.stmt.Schema.PrimaryFields))
}

// known reports whether the values of row i in u are known. Without columns all rows
// would be equal, so nothing is known.
func (r *reread) known(i int, u unique) bool {
	for _, c := range u.columns {
		if c.field == nil || !r.gives(i, c.field) {
			return false
		}
		if _, ok := r.compares(i, c); !ok || u.nullsEqual && !r.names(i, c) {
			return false
		}
	}
	return len(u.columns) > 0
}

// compares returns what is compared with c for row i, unless it is not known what the
// column has stored of that.
func (r *reread) compares(i int, c uniqueColumn) (v any, ok bool) {
	v, _ = r.value(i, c.field)
	if !c.form.Proves() {
		return v, true
	}
	if isSQL(v) {
		return nil, false
	}
	v, ok = c.form.Value(v)
	return v, ok && (v == nil || c.prefix == 0 || c.form.Prefix != "" && c.form.Begins(v))
}

// names reports whether row i says what is in c.
func (r *reread) names(i int, c uniqueColumn) bool {
	_, named := r.value(i, c.field)
	return named
}

// blind returns why row i cannot be compared in u, or nil if it can. With NULL it meets no
// row there.
func (r *reread) blind(i int, u unique) (why *UnresolvedError) {
	if u.hidden {
		return &UnresolvedError{Reason: ReasonExpression, Key: u.name}
	}
	for _, c := range u.columns {
		if c.field == nil || !r.gives(i, c.field) {
			continue
		}
		switch v, ok := r.compares(i, c); {
		case u.nullsEqual && !r.names(i, c): // it may have a default
			return &UnresolvedError{Reason: ReasonExpression, Key: u.name}
		case !ok:
			why = &UnresolvedError{Reason: ReasonType, Key: u.name, Column: c.name, Type: c.typ}
		case v == nil && !u.nullsEqual:
			return nil
		}
	}
	return why
}

// named reports whether the statement names what a stored row is recognized by. MySQL
// ignores that and goes by every unique key.
func (r *reread) named() bool {
	return r.db.Name() != mysqlName && (r.upsert.conflict.OnConstraint != "" || len(r.upsert.target(r.stmt.Schema)) > 0)
}

// target returns the unique key that the statement names. It is hidden if it is not made
// of columns of the model.
func (r *reread) target(uniques []unique) unique {
	s, conflict := r.stmt.Schema, r.upsert.conflict
	if conflict.OnConstraint != "" {
		for _, u := range uniques {
			if u.name == conflict.OnConstraint {
				return u
			}
		}
		return unique{hidden: true}
	}
	var fields []*schema.Field
	for _, name := range r.upsert.target(s) {
		f := s.LookUpField(name)
		if f == nil {
			return unique{hidden: true}
		}
		fields = append(fields, f)
	}
	u := uniqueOf(uniques, fields)
	if len(conflict.TargetWhere.Exprs) > 0 {
		u.where = conflict.TargetWhere
	}
	return u
}

// gives reports whether row i gives the stored value of f. It does not if the statement
// leaves f out, or where it is zero and the database has a default that GORM does not
// set. A field that a map leaves out is looked up as NULL, which equals nothing.
func (r *reread) gives(i int, f *schema.Field) bool {
	if !r.writes(f.DBName) || !f.HasDefaultValue || f.DefaultValueInterface != nil || r.rows.maps != nil {
		return r.writes(f.DBName)
	}
	_, zero := f.ValueOf(r.stmt.Context, r.rows.at(i).fields)
	return !zero
}

// value returns what row i sends for f, and whether it names f, as all structs do.
func (r *reread) value(i int, f *schema.Field) (v any, named bool) {
	row := r.rows.at(i)
	if row.values != nil {
		_, v, named = find(row.values, f)
		return v, named
	}
	v, _ = f.ValueOf(r.stmt.Context, row.fields)
	return v, true
}

// resolved stores the keys of the stored row in row i.
func (r *reread) resolved(i int, values []cell) {
	for c, v := range values {
		r.columns[c].put(r.stmt.Context, r.rows.at(i), v)
	}
}

// unresolved sets the keys of row i to zero. It returns an error if associations need
// them.
func (r *reread) unresolved(i int, uniques []unique) error {
	row := r.rows.at(i)
	var why *UnresolvedError
	if r.nested || r.associationsFollow(row) {
		why = r.why(i, uniques) // before its values are gone
		why.Model, why.Row = r.stmt.Schema.Name, i
	}
	for c := range r.columns {
		r.columns[c].put(r.stmt.Context, row, cell{})
	}
	if why == nil {
		return nil // and no error that holds a nil pointer
	}
	return why
}

// why returns why row i is not resolved.
func (r *reread) why(i int, uniques []unique) *UnresolvedError {
	if r.named() {
		uniques = []unique{r.target(uniques)}
	}
	for _, u := range uniques {
		if why := r.blind(i, u); why != nil {
			return why
		}
	}
	if r.torn[i] {
		return &UnresolvedError{Reason: ReasonTwoRows}
	}
	return &UnresolvedError{Reason: ReasonStale}
}

// associationsFollow reports whether GORM will create rows that refer to row.
func (r *reread) associationsFollow(row row) bool {
	if row.values != nil {
		return false // GORM takes no associations from maps
	}
	rels := &r.stmt.Schema.Relationships
	for _, rel := range slices.Concat(rels.HasOne, rels.HasMany, rels.Many2Many) {
		if !r.writes(rel.Name) {
			continue
		}
		if _, zero := rel.Field.ValueOf(r.stmt.Context, row.fields); !zero {
			return true
		}
	}
	return false
}
