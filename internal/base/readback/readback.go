package readback

import (
	"database/sql"
	"reflect"
	"slices"

	"github.com/snowkey/snowkey/internal/base/dialect"
)

// A Statement is an upsert that was sent.
type Statement struct {
	Dialect dialect.Dialect // 0: of another database, of which nothing is known
	Table   string          // as SQL, without an alias
	Names   []string        // the columns that rows may have values for
	Columns []string        // those to be read, the key first
	Primary []string        // those of the primary key

	// Target is the unique key by which it recognizes stored rows; nil: every one.
	Target *Key
	// Declared are the unique keys of a table that the catalog does not list, such as a view.
	Declared []Key
	// Inserted is the number of rows that were inserted, or -1 if the database does not tell.
	Inserted int64
	Updates  []Update
	Unread   bool // it may set any column of a stored row
	Ignores  bool // INSERT IGNORE
	Replaces bool // INSERT OR REPLACE

	// Equal reports whether two rows have sent the same. It may be nil if there is a Target.
	Equal func(row, other int) bool
	Quote func(name string) string      // writes a name
	Bind  func(t *Text, v any)          // writes a value as the upsert did; nil: as a parameter
	Key   func(stored any) (any, error) // returns a key that was read as Rows.Key does, or nil for none
	Query func(t *Text, scan func(*sql.Rows) error) error
}

// An Update is a column that a statement may set in stored rows.
type Update struct {
	Column string
	Same   bool // to what the row sends for it
}

// Rows are the rows that a statement has sent.
type Rows interface {
	Len() int
	// Key returns the key of a row as it was sent, an int64 in all rows or a string, or nil if it is not known,
	// and whether it is fresh: the program has assigned it, and no other row has it.
	Key(row int) (key any, fresh bool)
	// Value returns what a row has sent for a column.
	Value(row int, column string) (any, Known)
}

// Known says what is known of what a row has sent for a column.
type Known uint8

// What may be known.
const (
	Nothing Known = iota // the INSERT does not name the column
	Sent                 // the value
	SQL                  // an expression
)

// Found is what was found for a row.
type Found struct {
	Key    any    // of the stored row; nil: it is not known which that is
	Values []any  // of Statement.Columns in the stored row, as they were read
	Reason Reason // why it is not known
	Unique string // the name of the unique key that is the reason
	// For ReasonType, the column and its type as the catalog writes it.
	Column, Type string
	Two          [2]any // for ReasonTwoRows, the keys of the stored rows
}

// A Reason says why the stored row is not known. Zero: the row has no key that is known.
type Reason uint8

// The reasons.
const (
	// ReasonType: a column of a unique key compares the value otherwise than it stores it.
	ReasonType Reason = iota + 1
	// ReasonExpression: a unique key does not consist of columns that are compared for equality.
	ReasonExpression
	// ReasonStale: no stored row equals the row, or another one may by now. See also Hides.
	ReasonStale
	// ReasonTwoRows: several stored rows equal the row.
	ReasonTwoRows
)

// Find returns for each row the stored row that it has met, or that was inserted for it. The
// statement has succeeded, and its transaction goes on.
func Find(s *Statement, rows Rows) ([]Found, error) {
	n := rows.Len()
	f := &finder{
		Statement: s, d: databaseOf(s.Dialect), rows: rows, found: make([]Found, n),
		keys: make([]any, n), fresh: make([]bool, n), inserted: map[any]int{}, ambiguous: map[int][2]any{},
	}
	for i := range n {
		f.keys[i], f.fresh[i] = rows.Key(i)
	}
	if s.Target == nil {
		f.share()
	}
	return f.found, f.run()
}

// A finder is a call of Find.
type finder struct {
	*Statement
	d     *database
	rows  Rows
	found []Found
	keys  []any  // of Rows
	fresh []bool // of Rows

	inserted  map[any]int    // for each stored row with a fresh key, the row that was inserted
	shared    map[any]bool   // keys of the caller that different rows have
	ambiguous map[int][2]any // the rows that equal several stored rows, and the keys of two of these
	listed    *table         // see catalog
}

// share notes the keys of the caller that several rows have, unless these rows are equal in all
// columns. One of the rows may be stored under the key, after an earlier one met another stored
// row while the key was free.
func (f *finder) share() {
	first := map[any]int{}
	f.shared = map[any]bool{}
	for i, key := range f.keys {
		if key == nil || f.fresh[i] {
			continue
		}
		if j, met := first[key]; !met {
			first[key] = i
		} else if !f.shared[key] && !f.Equal(i, j) {
			f.shared[key] = true
		}
	}
}

// single reports whether the key is the primary key by itself.
func (f *finder) single() bool { return len(f.Primary) == 1 && f.Primary[0] == f.Columns[0] }

func (f *finder) run() error {
	var byKey, others []int
	for i, key := range f.keys {
		switch {
		case key == nil:
		// Without a target, a stored row with the whole primary key is the one that was met.
		case f.fresh[i] && f.Inserted != 0, f.Target == nil && f.single() && !f.fresh[i] && !f.shared[key]:
			byKey = append(byKey, i)
		default:
			others = append(others, i)
		}
	}
	rest, err := f.byKey(byKey)
	if err != nil {
		return err
	}
	if rest = append(rest, others...); len(rest) == 0 {
		return nil
	}
	slices.Sort(rest)
	var unresolved []int
	if f.Target != nil {
		unresolved, err = f.byTarget(rest, len(byKey)+len(others))
	} else {
		unresolved, err = f.byAny(rest)
	}
	if err != nil {
		return err
	}
	// A trigger may have stored a row elsewhere, as in a table that inherits, without counting it.
	// The row has its fresh key.
	var fresh []int
	unresolved = slices.DeleteFunc(unresolved, func(i int) bool {
		if f.fresh[i] {
			fresh = append(fresh, i)
		}
		return f.fresh[i]
	})
	if f.Inserted == 0 || f.listed != nil && f.listed.alone {
		if fresh, err = f.byKey(fresh); err != nil {
			return err
		}
	}
	for _, i := range append(unresolved, fresh...) {
		f.found[i] = f.why(i)
	}
	return nil
}

// byTarget finds rows by the target, and returns those that are not found. all is the number of
// rows whose key is known.
func (f *finder) byTarget(rest []int, all int) (unresolved []int, err error) {
	if slices.ContainsFunc(f.Updates, func(set Update) bool { return !set.Same && slices.Contains(f.Target.names(), set.Column) }) {
		return rest, nil // stored rows have another target since
	}
	var nulls, compared, ambiguous, incomparable []int
	remaining := rest
	if f.d.exact != "" && !f.Target.Hidden && f.Target.Columns != nil && len(rest) < manyRows {
		key := *f.Target
		key.exact = true
		list, unsure := f.partition(rest, []Key{key})
		unmatched, several, err := f.byUnique(list, []Key{key})
		if err != nil {
			return nil, err
		}
		several = append(several, unsure...)
		for _, i := range unmatched {
			if f.d.nullsEqual || !f.null(i, f.Target) {
				several = append(several, i)
			} else {
				nulls = append(nulls, i)
			}
		}
		slices.Sort(several)
		remaining = several
	}
	targets, further := []Key{*f.Target}, []Key(nil)
	if len(remaining) > 0 {
		if err := f.catalog(); err != nil {
			return nil, err
		}
		targets, further = f.targets()
	}
	unmatched, hidden := remaining, targets[0].Hidden
	if !hidden {
		all := slices.Concat(targets, further)
		compared, incomparable = f.partition(remaining, all)
		if unmatched, ambiguous, err = f.byUnique(compared, targets); err != nil {
			return nil, err
		}
		more := []int(nil)
		if unmatched, more, err = f.byUnique(unmatched, further); err != nil {
			return nil, err
		}
		ambiguous = append(ambiguous, more...)
	}
	// An unmatched row was inserted, even under a key that the caller has set, because no stored row
	// equals it in the target.
	unmatched, more, err := f.byPrimary(append(unmatched, nulls...))
	if err != nil {
		return nil, err
	}
	unresolved = slices.Concat(unmatched, ambiguous, more, incomparable)
	// With a hidden target it may have met a row, unless as many rows are stored under their keys
	// as were inserted.
	if hidden && f.Inserted != int64(all-len(unresolved)) {
		for _, i := range rest {
			f.found[i] = Found{}
		}
		return rest, nil
	}
	return unresolved, nil
}

// byPrimary finds rows with a key of the caller by the primary key, see byUnique.
func (f *finder) byPrimary(list []int) (unmatched, ambiguous []int, err error) {
	if !f.single() {
		return f.byUnique(list, []Key{f.primary()})
	}
	var set []int
	for _, i := range list {
		if f.fresh[i] {
			unmatched = append(unmatched, i)
		} else {
			set = append(set, i)
		}
	}
	set, err = f.byKey(set)
	return append(unmatched, set...), nil, err
}

// byAny finds rows by every unique key, and returns those that are not found. A row that cannot
// be compared in one of the keys may have met a row by that one, so it is looked up by the primary
// key alone, unless other rows share that.
func (f *finder) byAny(rest []int) (unresolved []int, err error) {
	if err := f.catalog(); err != nil {
		return nil, err
	}
	if f.mayHaveMoved() {
		return rest, nil
	}
	var compared, incomparable []int
	for _, i := range rest {
		switch {
		case !f.incomparableIn(i, f.listed.keys):
			compared = append(compared, i)
		case f.shared[f.keys[i]]:
			unresolved = append(unresolved, i)
		default:
			incomparable = append(incomparable, i)
		}
	}
	unmatched, ambiguous, err := f.byUnique(compared, f.listed.keys)
	if err != nil {
		return nil, err
	}
	more, ambiguousToo, err := f.byUnique(incomparable, []Key{f.primary()})
	return slices.Concat(unresolved, unmatched, ambiguous, more, ambiguousToo), err
}

// incomparableIn reports whether row i cannot be compared in one of keys.
func (f *finder) incomparableIn(i int, keys []Key) bool {
	for k := range keys {
		if f.incomparable(i, &keys[k]) != nil {
			return true
		}
	}
	return false
}

// mayHaveMoved reports whether a row of the statement can have changed the unique values by which an
// earlier row met its stored row. Looked up by these values after the statement, the earlier row
// would be taken for whichever row has them by then.
//
// That takes an update and more than one unique key to meet rows by, as on MySQL. With fresh keys
// and a single unique key besides the primary key, rows meet others by that key alone, and an
// update with the values that a row sends leaves them equal.
func (f *finder) mayHaveMoved() bool {
	if f.rows.Len() == 1 || f.Ignores {
		return false
	}
	others := slices.DeleteFunc(slices.Clone(f.listed.keys), func(key Key) bool { return f.covers(&key, f.Primary) })
	alone := len(others) == 1 && !slices.Contains(f.fresh, false)
	return f.Unread || slices.ContainsFunc(f.Updates, func(set Update) bool {
		return !(alone && set.Same) && slices.ContainsFunc(others, func(key Key) bool {
			return key.Hidden || slices.ContainsFunc(key.Columns, func(c Column) bool { return f.d.same(c.Name, set.Column) })
		})
	})
}

// A candidate is what byUnique has found for a row.
type candidate struct {
	stored []any  // nil if nothing was found
	same   uint64 // a bit for each key in which the two are equal
	other  []any  // another stored row that was found too
}

// byUnique finds rows by keys. It returns the unmatched rows, which equal no stored row in any key,
// and the ambiguous ones, which equal several: one in one key, say, and another in another. A row
// that was found by one key is not looked up by another in which the two are equal, so that one look
// usually finds all rows.
func (f *finder) byUnique(list []int, keys []Key) (unmatched, ambiguous []int, err error) {
	keys = slices.DeleteFunc(slices.Clone(keys), func(key Key) bool {
		return !slices.ContainsFunc(list, func(i int) bool { return f.usable(i, &key) })
	})
	candidates := make([]candidate, f.rows.Len())
	for _, i := range list {
		delete(f.ambiguous, i) // it may have been by the values as they were sent
	}
	for k := range keys {
		ask := make([]int, 0, len(list))
		for _, i := range list {
			if candidates[i].same>>k&1 == 0 && f.usable(i, &keys[k]) {
				ask = append(ask, i)
			}
		}
		err = f.look(ask, keys[k:], func(i int, stored []any, same uint64) {
			if by, ok := f.inserted[f.key(stored)]; ok && by > i {
				return // stored after row i, which has not met it
			}
			m := &candidates[i]
			if m.stored == nil {
				m.stored = stored
			} else if f.key(m.stored) != f.key(stored) {
				m.other = stored
			}
			m.same |= same << k
		})
		if err != nil {
			return nil, nil, err
		}
	}
	for _, i := range list {
		switch m := &candidates[i]; {
		case m.stored == nil:
			unmatched = append(unmatched, i)
		case m.other != nil || f.key(m.stored) == nil:
			ambiguous = append(ambiguous, i)
			f.ambiguous[i] = [2]any{f.key(m.stored), f.key(m.other)}
		default:
			f.found[i] = f.foundOf(m.stored)
		}
	}
	return unmatched, ambiguous, nil
}

func (f *finder) foundOf(stored []any) Found {
	return Found{Key: f.key(stored), Values: stored[:len(f.Columns)]}
}

// key returns the key of a stored row, or nil.
func (f *finder) key(stored []any) any {
	if stored == nil {
		return nil
	}
	return stored[len(f.Columns)]
}

// usable reports whether row i may be found by key. A fresh primary key equals no stored one.
func (f *finder) usable(i int, key *Key) bool {
	if f.fresh[i] && slices.Contains(f.Primary, f.Columns[0]) && f.covers(key, f.Primary) {
		return false
	}
	for n := range key.Columns {
		c := &key.Columns[n]
		v, known := f.value(i, c.Name)
		if known == Nothing || key.exact && known != Sent {
			return false
		}
		if _, ok := f.compares(v, known, c); !ok {
			return false
		}
	}
	return len(key.Columns) > 0 // a key without columns would make all rows equal
}

// compares returns what is compared with c for a value. It reports false if it is not known what
// the column has stored of that.
func (f *finder) compares(v any, known Known, c *Column) (any, bool) {
	if !c.form.Proves() {
		return v, true
	}
	if known == SQL {
		return nil, false
	}
	v, ok := c.form.Value(v)
	return v, ok && (v == nil || c.Prefix == 0 || c.form.Prefix != "" && c.form.Begins(v))
}

// incomparable returns why row i cannot be compared in key, or nil if it can be. A row with NULL
// conflicts with no row.
func (f *finder) incomparable(i int, key *Key) (why *Found) {
	if key.Hidden {
		return &Found{Reason: ReasonExpression, Unique: key.Name}
	}
	for n := range key.Columns {
		c := &key.Columns[n]
		v, known := f.value(i, c.Name)
		if known == Nothing {
			continue
		}
		switch v, ok := f.compares(v, known, c); {
		case !ok:
			why = &Found{Reason: ReasonType, Unique: key.Name, Column: c.Name, Type: c.typ}
		case v == nil && !key.nullsEqual:
			return nil
		}
	}
	return why
}

// partition divides list into rows whose values in all columns of targets and their conditions are
// known and can be compared, and the others, which may or may not have met a stored row: the database
// has filled a column, say. A fresh row is here because it was not inserted, so it is one that the
// target covers.
func (f *finder) partition(list []int, targets []Key) (known, unsure []int) {
	tested := f.testedBy(targets)
	for _, i := range list {
		if f.filled(i, targets, tested) || f.incomparableIn(i, targets) {
			unsure = append(unsure, i)
		} else {
			known = append(known, i)
		}
	}
	return known, unsure
}

func (f *finder) filled(i int, targets []Key, tested [][]string) bool {
	for k := range targets {
		key := &targets[k]
		if !f.fresh[i] && !f.canTest(i, tested[k]) {
			return true
		}
		if (key.nullsEqual || !f.null(i, key)) && slices.ContainsFunc(key.Columns, func(c Column) bool {
			_, known := f.value(i, c.Name)
			return known == Nothing
		}) {
			return true
		}
	}
	return false
}

// null reports whether row i has sent NULL for a column of key.
func (f *finder) null(i int, key *Key) bool {
	return slices.ContainsFunc(key.Columns, func(c Column) bool {
		v, known := f.value(i, c.Name)
		return known == Sent && isNull(v)
	})
}

// value returns what row i has for a column, which is NULL if the INSERT does not name the column
// and the database does not fill it.
func (f *finder) value(i int, column string) (any, Known) {
	v, known := f.rows.Value(i, column)
	if known == Nothing && f.listed != nil && slices.Contains(f.listed.nulls, column) {
		return nil, Sent
	}
	return v, known
}

// why returns why row i is not found.
func (f *finder) why(i int) Found {
	var keys []Key
	switch {
	case f.Target != nil && f.listed != nil:
		targets, further := f.targets()
		keys = slices.Concat(targets, further)
	case f.Target != nil:
		keys = []Key{*f.Target}
	case f.listed != nil:
		keys = f.listed.keys
	}
	for _, key := range keys {
		if why := f.incomparable(i, &key); why != nil {
			return *why
		}
	}
	if f.Target != nil && f.filled(i, keys, f.testedBy(keys)) {
		return Found{Reason: ReasonExpression, Unique: keys[0].Name}
	}
	if two, ok := f.ambiguous[i]; ok {
		return Found{Reason: ReasonTwoRows, Two: two}
	}
	return Found{Reason: ReasonStale}
}

// isNull reports whether v is sent as NULL.
func isNull(v any) bool {
	if sent, ok := converted(v); ok && sent == nil {
		return true
	}
	r := reflect.ValueOf(v)
	return (r.Kind() == reflect.Pointer || r.Kind() == reflect.Slice) && r.IsNil()
}
