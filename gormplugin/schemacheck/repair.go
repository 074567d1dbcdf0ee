package schemacheck

import (
	"fmt"
	"slices"
	"strings"
)

// A place is a column of a table.
type place struct {
	*table
	col *tableColumn
}

func (p place) String() string { return p.name + "." + p.col.name }

// A foreignKey is one of the database. Its tables are written as table.id is.
type foreignKey struct {
	name, table, other string
	columns, refers    []string // of table, of other
	definition         string   // FOREIGN KEY (…) REFERENCES …, as the database writes it
}

// uses reports whether p is a column of k, on either side.
func (k *foreignKey) uses(p place) bool {
	return k.table == p.id && slices.Contains(k.columns, p.col.name) || k.other == p.id && slices.Contains(k.refers, p.col.name)
}

// together returns at and the columns that foreign keys bind to its type, and these
// foreign keys.
func (c *checker) together(at place) (places []place, keys []*foreignKey, err error) {
	places = []place{at}
	for i := 0; i < len(places); i++ { // places grows
		list, err := c.dialect.foreignKeys(c, places[i].table)
		if err != nil {
			return nil, nil, err
		}
		for _, key := range list {
			for n := range key.columns {
				from, err := c.place(key.table, key.columns[n])
				if err != nil {
					return nil, nil, err
				}
				to, err := c.place(key.other, key.refers[n])
				if err != nil {
					return nil, nil, err
				}
				if from != places[i] && to != places[i] {
					continue
				}
				if from.col == nil || to.col == nil {
					return nil, nil, fmt.Errorf("the catalog does not show all columns of the foreign key %s of %s; grant the right to see them", key.name, key.table)
				}
				if !slices.ContainsFunc(keys, func(k *foreignKey) bool { return k.name == key.name && k.table == key.table }) {
					keys = append(keys, key)
				}
				for _, p := range []place{from, to} {
					if !slices.Contains(places, p) {
						places = append(places, p)
					}
				}
			}
		}
	}
	return places, keys, nil
}

// place returns a column of the table id.
func (c *checker) place(id, column string) (place, error) {
	t, ok := c.byID[id]
	if !ok {
		var err error
		if t, err = c.dialect.open(c, id); err != nil {
			return place{}, err
		}
		c.byID[id] = t
	}
	return place{t, t.column(column)}, nil
}

// wantedAt returns what a model wants of p, or nil.
func (c *checker) wantedAt(p place) (*wantedColumn, error) {
	for _, w := range c.wanted {
		t, err := c.load(w.table())
		if err != nil {
			return nil, err
		}
		if t == p.table && t.column(w.field.DBName) == p.col {
			return w, nil
		}
	}
	return nil, nil
}

// change returns how to make at of type target, and with it what foreign keys bind
// to it. What needs words has no statements.
func (c *checker) change(at place, target string) (fix string, sql []string, err error) {
	if first, ok := c.mended[at]; ok {
		return "the statements of the finding on " + first.String() + " mend this too", nil, nil
	}
	places, keys := []place{at}, []*foreignKey(nil)
	if c.dialect.binds(at.col, target) {
		if places, keys, err = c.together(at); err != nil {
			return "", nil, err
		}
	}
	var changes []place
	for _, p := range places {
		w, err := c.wantedAt(p)
		if err != nil {
			return "", nil, err
		}
		text := target == at.text
		switch {
		case p.table.fixed != "":
			fix = p.table.fixed
		case p.col.fixed != "":
			fix = p.col.fixed
		case !text && p.col.class == classText && p.col.value:
			fix = "drop its default first, which is text"
		case w != nil && w.text != text:
			fix = "a foreign key binds it to " + at.String() + ", of which a model wants another type: make the models agree"
		default:
			p.col.uncount = w != nil && w.filled && p.col.counted != ""
			if p == at || !c.dialect.is(p.col, target) {
				changes = append(changes, p)
			}
			continue
		}
		if p != at {
			fix = "a foreign key binds it to " + p.String() + ", and of that: " + fix
		}
		return fix, nil, nil
	}
	keys = slices.DeleteFunc(keys, func(k *foreignKey) bool {
		return !slices.ContainsFunc(changes, func(p place) bool { return k.uses(p) })
	})
	fix, sql, err = c.dialect.statements(c, changes, keys, target)
	if len(sql) > 0 {
		for _, p := range changes {
			c.mended[p] = at
		}
	}
	return fix, sql, err
}

// tablesOf returns the tables of places, each once, in order.
func tablesOf(places []place) (list []*table) {
	for _, p := range places {
		if !slices.Contains(list, p.table) {
			list = append(list, p.table)
		}
	}
	return list
}

// alter returns one ALTER TABLE for each table of keys, with a part for each.
func alter(quote func(id string) string, keys []*foreignKey, part func(*foreignKey) string) (sql []string) {
	parts := map[string][]string{}
	var tables []string
	for _, key := range keys {
		if parts[key.table] == nil {
			tables = append(tables, key.table)
		}
		parts[key.table] = append(parts[key.table], part(key))
	}
	for _, id := range tables {
		sql = append(sql, "ALTER TABLE "+quote(id)+" "+strings.Join(parts[id], ", "))
	}
	return sql
}

// refuse returns a statement that fails where a row of p is as bad says. The largest
// number is added to the count of such rows, and overflows.
func refuse(p place, bad string) string {
	return "SELECT 9223372036854775807 + COUNT(*) FROM " + p.quoted + " WHERE " + bad
}

// howRefused says what refuse does.
const howRefused = "; the error that a number is out of range, at SELECT … COUNT(*), means values that are no keys, before anything is changed: find them by the same condition"
