package gormplugin

import (
	"reflect"
	"slices"

	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
)

// A resolver finds the stored row of each row of an upsert.
//
// It first looks for the fresh keys. Only this statement has them, so a row that is stored
// under one was inserted. A key that the caller has set proves nothing yet: its row need not
// be the one that the upsert met, and many rows may share part of a composite key.
//
// The other rows are looked up by the target of the upsert, or by all unique keys of the
// table. The database compares the values, because only the database knows its collations
// and the precision of its columns.
type resolver struct {
	*creation
	upsert   upsert
	alone    bool          // see table.alone
	tidb     bool          // see table.tidb
	assigned []bool        // for each row, whether its key is fresh
	inserted map[cell]int  // for each stored row with a fresh key, the row of the statement
	shared   map[cell]bool // keys of the caller that different rows have
	torn     map[int]bool  // the rows that equal two stored rows
}

// run resolves all rows: it sets their keys to those of the stored rows, or to zero.
func (r *resolver) run() (err error) {
	r.selection = selectionOf(r.stmt, true)
	r.assigned, r.inserted = r.freshRows(), map[cell]int{}
	if r.database.inherits && slices.Contains(r.assigned, false) {
		t, err := r.catalog()
		if err != nil {
			return err
		}
		r.alone = t.alone
	}
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
	t, err := r.catalog()
	if err != nil {
		return err
	}
	lost, err := r.byUniques(rest, t, len(byKey)+len(others))
	if err != nil {
		return err
	}
	for _, i := range lost {
		if unresolved := r.unresolved(i, t.uniques); unresolved != nil {
			err = unresolved
		}
	}
	return err
}

// byUniques resolves rows by what the upsert recognizes a stored row by, and returns the
// rows that are not resolved. all is the number of rows whose key is known.
func (r *resolver) byUniques(rest []int, t *table, all int) (lost []int, err error) {
	r.alone, r.tidb, r.torn = t.alone, t.tidb, map[int]bool{}
	switch {
	case r.named():
		lost, err = r.byTarget(rest, t.uniques, all)
	case r.moves(t.uniques):
		lost = rest
	default:
		lost, err = r.byAny(rest, t.uniques)
	}
	if err != nil {
		return nil, err
	}
	// A trigger may have stored a row elsewhere, as in a partition, without counting it in
	// RowsAffected. The row has its fresh key.
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
// an earlier row met its stored row. Looked up by these values after the statement, the
// earlier row would be taken for whichever row has them by then.
//
// That takes an update and more than one unique key to meet rows by, as on MySQL. With fresh
// keys and a single unique key besides the primary key, rows meet others by that key alone,
// and an update with the values that a row sends leaves them equal.
func (r *resolver) moves(uniques []unique) bool {
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

// freshRows returns for each row whether the plugin has assigned its key in columns[0].
func (c *creation) freshRows() []bool {
	list, next := make([]bool, c.rows.len()), 0
	var set map[cell]bool
	for i := range list {
		sent := c.sentAt(i, 0)
		if next < len(c.fresh) && sent == c.columns[0].of(c.fresh[next]) { // nearly always
			list[i] = true
			next += len(c.columns)
			continue
		}
		if set == nil {
			set = make(map[cell]bool, len(c.fresh))
			for _, id := range c.fresh {
				set[c.columns[0].of(id)] = true
			}
		}
		list[i] = set[sent]
	}
	return list
}

// sharedKeys returns the keys of the caller that several rows have, unless these rows are
// equal in all columns. One of the rows may be stored under the key, after an earlier one
// met another stored row while the key was free.
func (r *resolver) sharedKeys() map[cell]bool {
	first, shared := map[cell]int{}, map[cell]bool{}
	for i, assigned := range r.assigned {
		if sent := r.sentAt(i, 0); !assigned && sent.present {
			if j, met := first[sent]; !met {
				first[sent] = i
			} else if !r.equal(i, j) {
				shared[sent] = true
			}
		}
	}
	return shared
}

// equal reports whether two rows send the same in all columns.
func (r *resolver) equal(i, j int) bool {
	return !slices.ContainsFunc(r.stmt.Schema.DBNames, func(name string) bool {
		f := r.stmt.Schema.FieldsByDBName[name]
		v, _ := r.value(i, f)
		w, _ := r.value(j, f)
		return !reflect.DeepEqual(v, w)
	})
}

// split returns the rows that can be found by their key, and the other rows. It leaves out
// rows whose key is an expression.
func (r *resolver) split() (byKey, others []int) {
	primary := r.stmt.Schema.PrimaryFields
	none := r.stmt.RowsAffected == 0 && r.upsert.countsInserts(r.stmt) // no fresh key is stored
	// Without a target, a stored row with the whole primary key is the one that was met.
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

// byAny resolves rows by every unique key, and returns the rows that are not resolved. A row
// that cannot be compared in one of the keys may have met a row by that one, so it is looked
// up by the primary key alone, unless other rows share it.
func (r *resolver) byAny(rest []int, uniques []unique) (lost []int, err error) {
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

// byTarget resolves rows by the target that the upsert names, and returns the rows that are
// not resolved. all is the number of rows whose key is known.
func (r *resolver) byTarget(rest []int, uniques []unique, all int) (lost []int, err error) {
	target := r.target(uniques)
	free, torn := rest, []int(nil)
	if !target.hidden {
		if free, torn, err = r.byUnique(rest, []unique{target}); err != nil {
			return nil, err
		}
	}
	// A free row equals no stored row in the target, so it was inserted, even under a key
	// that the caller has set.
	free, more, err := r.byUnique(free, []unique{uniqueOf(uniques, r.stmt.Schema.PrimaryFields)})
	if err != nil {
		return nil, err
	}
	lost = slices.Concat(free, torn, more)
	// With a hidden target it may have met a row, unless as many rows are stored under
	// their keys as were inserted.
	if target.hidden && !(r.upsert.countsInserts(r.stmt) && r.stmt.RowsAffected == int64(all-len(lost))) {
		return rest, nil
	}
	return lost, nil
}

// byUnique resolves rows by keys. It returns the free rows, which equal no stored row in any
// key, and the torn rows, which equal one stored row in one key and another in another. A row
// that was found by one key is not looked up by another in which the two are equal, so that
// one look-up usually finds all rows.
func (r *resolver) byUnique(list []int, keys []unique) (free, torn []int, err error) {
	keys = slices.DeleteFunc(slices.Clone(keys), func(key unique) bool {
		return !slices.ContainsFunc(list, func(i int) bool { return r.usable(i, key) })
	})
	met := make([]meeting, r.rows.len())
	for k := range keys {
		ask := make([]int, 0, len(list))
		for _, i := range list {
			if met[i].same>>k&1 == 0 && r.usable(i, keys[k]) {
				ask = append(ask, i)
			}
		}
		err = r.find(ask, keys[k:], func(i int, stored []cell, same uint64) {
			if by, ok := r.inserted[stored[0]]; ok && by > i {
				return // stored after row i, which has not met it
			}
			m := &met[i]
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
		switch m := &met[i]; {
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
	stored []cell // nil if nothing was found
	same   uint64 // a bit for each key in which the two are equal
	torn   bool   // another key has found another row
}

// usable reports whether row i may be found by u. A fresh primary key equals no stored one.
func (r *resolver) usable(i int, u unique) bool {
	key := r.columns[0].field
	return r.known(i, u) && !(key.PrimaryKey && r.assigned[i] && u.covers(r.stmt.Schema.PrimaryFields))
}

// known reports whether the values of row i in u are known. A key without columns would make
// all rows equal.
func (r *resolver) known(i int, u unique) bool {
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

// compares returns what is compared with c for row i. It reports false if it is not known
// what the column has stored of that.
func (r *resolver) compares(i int, c uniqueColumn) (v any, ok bool) {
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

// names reports whether row i has a value for c.
func (r *resolver) names(i int, c uniqueColumn) bool {
	_, named := r.value(i, c.field)
	return named
}

// blind returns why row i cannot be compared in u, or nil if it can be. A row with NULL
// conflicts with no row in u.
func (r *resolver) blind(i int, u unique) (why *UnresolvedError) {
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

// named reports whether the upsert names the target by which it recognizes a stored row.
func (r *resolver) named() bool {
	return !r.database.everyKey && (r.upsert.conflict.OnConstraint != "" || len(r.upsert.target(r.stmt.Schema)) > 0)
}

// target returns the unique key that the upsert names. It is hidden if it does not consist
// of columns of the model.
func (r *resolver) target(uniques []unique) unique {
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
// leaves f out, or if f is zero and the database has a default that GORM does not set. A
// field that a map leaves out is looked up as NULL, which equals nothing.
func (r *resolver) gives(i int, f *schema.Field) bool {
	if !r.writes(f.DBName) || !f.HasDefaultValue || f.DefaultValueInterface != nil || r.rows.maps != nil {
		return r.writes(f.DBName)
	}
	_, zero := f.ValueOf(r.stmt.Context, r.rows.at(i).fields)
	return !zero
}

// value returns what row i sends for f, and whether the row names f, as every struct does.
func (r *resolver) value(i int, f *schema.Field) (v any, named bool) {
	row := r.rows.at(i)
	if row.values != nil {
		_, v, named = find(row.values, f)
		return v, named
	}
	v, _ = f.ValueOf(r.stmt.Context, row.fields)
	return v, true
}

// resolved sets the keys of row i to those of the stored row.
func (r *resolver) resolved(i int, values []cell) {
	for c, v := range values {
		r.columns[c].put(r.stmt.Context, r.rows.at(i), v)
	}
}

// unresolved sets the keys of row i to zero. It returns an error if associations need them.
func (r *resolver) unresolved(i int, uniques []unique) error {
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
func (r *resolver) why(i int, uniques []unique) *UnresolvedError {
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
func (r *resolver) associationsFollow(row row) bool {
	if row.values != nil {
		return false // GORM takes no associations from maps
	}
	for _, rel := range dependents(r.stmt.Schema) {
		if !r.writes(rel.Name) {
			continue
		}
		if _, zero := rel.Field.ValueOf(r.stmt.Context, row.fields); !zero {
			return true
		}
	}
	return false
}
