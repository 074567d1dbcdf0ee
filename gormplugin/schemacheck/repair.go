package schemacheck

import (
	"fmt"
	"slices"
	"strings"
)

// A typeChange is a column that gets another type.
type typeChange struct {
	place
	uncount bool // and the database should no longer count it
}

// changeType returns how to change the type of at to target, and with it the columns that
// foreign keys bind to it. If words are needed, there are no statements.
func (c *checker) changeType(at place, target string) (fix string, sql []string, err error) {
	if first, ok := c.mended[at]; ok {
		return "the statements of the finding on " + first.String() + " mend this too", nil, nil
	}
	places, keys := []place{at}, []foreignKey(nil)
	bound := c.database.binds(at.col, target)
	if bound {
		if places, err = c.together(at); err != nil {
			return "", nil, err
		}
	}
	var changes []typeChange
	for _, p := range places {
		w := c.wantedAt(p)
		if fix := obstacle(p, at, w, target); fix != "" {
			return fix, nil, nil
		}
		if p == at || !p.is(target) {
			changes = append(changes, typeChange{p, w != nil && w.filled && p.col.Counter != ""})
		}
	}
	if bound {
		keys = c.keysOf(changes)
	}
	fix, sql, err = c.database.statements(c, changes, keys, target)
	if len(sql) > 0 {
		for _, ch := range changes {
			c.mended[ch.place] = at
		}
	}
	return fix, sql, err
}

// obstacle returns what to do first if p cannot become target with at, or "". w is what a
// model wants of p, or nil.
func obstacle(p, at place, w *wantedColumn, target string) (fix string) {
	text := target == at.text
	switch {
	case fixes[p.Kind] != "":
		fix = fixes[p.Kind]
	case p.col.Kind != "":
		fix = fixes[p.col.Kind]
	case !text && p.col.class == classText && p.col.HasDefault:
		fix = "drop its default first, which is text"
	case w != nil && w.text != text:
		fix = "a foreign key binds it to " + at.String() + ", of which a model wants another type: make the models agree"
	}
	if fix != "" && p != at {
		fix = "a foreign key binds it to " + p.String() + ", and of that: " + fix
	}
	return fix
}

// is reports whether p is of type target already.
func (p place) is(target string) bool {
	if target == p.text {
		return p.col.class == classText && p.col.longEnough()
	}
	return strings.HasPrefix(p.col.Type, "bigint") && p.col.unsigned() == strings.HasSuffix(target, "unsigned")
}

// wantedAt returns what a model wants of p, or nil.
func (c *checker) wantedAt(p place) *wantedColumn {
	for _, w := range c.wanted {
		if w.in == p.table && p.column(w.field.DBName) == p.col {
			return w
		}
	}
	return nil
}

// together returns at and the columns that foreign keys bind to its type.
func (c *checker) together(at place) (places []place, err error) {
	keys, err := c.foreignKeys()
	if err != nil {
		return nil, err
	}
	places = []place{at}
	for i := 0; i < len(places); i++ { // places grows
		for _, k := range keys {
			if !k.binds(places[i]) {
				continue
			}
			for _, end := range [][2]string{{k.Child, k.From}, {k.Parent, k.To}} {
				p, err := c.place(end[0], end[1])
				if err != nil {
					return nil, err
				}
				if p.col == nil {
					return nil, fmt.Errorf("the catalog does not show all columns of the foreign key %s of %s; grant the right to see them", k.Name, k.Child)
				}
				if !slices.Contains(places, p) {
					places = append(places, p)
				}
			}
		}
	}
	return places, nil
}

// keysOf returns the foreign keys that bind a column of changes, each once.
func (c *checker) keysOf(changes []typeChange) (keys []foreignKey) {
	for _, k := range c.keys {
		bound := slices.ContainsFunc(changes, func(ch typeChange) bool { return k.binds(ch.place) })
		known := slices.ContainsFunc(keys, func(other foreignKey) bool { return other.Name == k.Name && other.Child == k.Child })
		if bound && !known {
			keys = append(keys, k)
		}
	}
	return keys
}

// A part is one change of a table, as ALTER TABLE takes it.
type part struct{ table, change string } // the table is quoted

// alter returns one ALTER TABLE for each table of parts.
func alter(parts []part) (sql []string) {
	for _, table := range tablesOf(parts) {
		var changes []string
		for _, p := range parts {
			if p.table == table {
				changes = append(changes, p.change)
			}
		}
		sql = append(sql, "ALTER TABLE "+table+" "+strings.Join(changes, ", "))
	}
	return sql
}

// tablesOf returns the tables of parts, each once, in order.
func tablesOf(parts []part) (tables []string) {
	for _, p := range parts {
		if !slices.Contains(tables, p.table) {
			tables = append(tables, p.table)
		}
	}
	return tables
}

// refuse returns a statement that fails if bad holds for a row of p: the count of such rows
// overflows when it is added to the largest number.
func refuse(p place, bad string) string {
	return "SELECT 9223372036854775807 + COUNT(*) FROM " + p.quoted + " WHERE " + bad
}

// howRefused says what refuse does.
const howRefused = "; the error that a number is out of range, at SELECT … COUNT(*), means values that are no keys, before anything is changed: find them by the same condition"
