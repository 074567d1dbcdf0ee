package sqlxhelper

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx/reflectx"
)

// A selection is what the options of a call say for its tables. A nil selection
// says nothing.
type selection struct {
	stations []*station // of the call, that of its rows first
	columns  map[target][]column
	conflict *upsert // for the first target, or nil
	readings map[target][]destination
}

// selection works out the options for a call, or says why they do not fit. It
// needs no rows.
func (c *config) selection(d *traits, m *reflectx.Mapper, w *walk) (*selection, error) {
	if c.columns == nil && c.omit == nil && c.returning == nil && !c.conflict.given() {
		return nil, nil
	}
	s := &selection{stations: w.stations, columns: map[target][]column{}, readings: map[target][]destination{}}
	err := s.choose(c)
	if err == nil {
		root := w.stations[0].target
		s.conflict, err = c.conflict.upsert(d, root, s.written(root))
	}
	if err == nil {
		err = s.readBack(c.returning, d, m)
	}
	return s, err
}

// written returns the columns of t that are written.
func (s *selection) written(t target) []column {
	if s != nil {
		if columns, ok := s.columns[t]; ok {
			return columns
		}
	}
	return t.plan.columns
}

// choose applies Columns and Omit.
func (s *selection) choose(c *config) error {
	if c.columns != nil && len(c.columns) == 0 {
		return fmt.Errorf("%w: Columns names no column", ErrArgument)
	}
	kept := map[target][]bool{} // by column
	mark := func(option string, names []string, keep bool) error {
		return s.each(option, names, func(t target, column string) bool {
			i := t.plan.find(column)
			if i < 0 {
				return false
			}
			if kept[t] == nil {
				kept[t] = slices.Repeat([]bool{!keep}, len(t.plan.columns))
			}
			kept[t][i] = keep
			return true
		})
	}
	if err := mark("Columns", c.columns, true); err != nil {
		return err
	}
	for t := range kept {
		kept[t][t.plan.key] = true
	}
	if err := mark("Omit", c.omit, false); err != nil {
		return err
	}
	for _, t := range s.stations {
		keep, chosen := kept[t.target]
		if !chosen {
			continue
		}
		for i := range t.plan.columns {
			c := &t.plan.columns[i]
			switch {
			case keep[i]:
				s.columns[t.target] = append(s.columns[t.target], *c)
			case i == t.plan.key:
				return fmt.Errorf("%w: Omit: %s is the primary key of %v", ErrArgument, c.name, t.plan.typ)
			case s.sets(c):
				return fmt.Errorf("%w: the options leave out %s, a foreign key that InsertGraph sets in %v", ErrArgument, c.name, t.plan.typ)
			}
		}
	}
	return nil
}

// sets reports whether a relation that the call follows sets the foreign key c.
func (s *selection) sets(c *column) bool {
	for _, t := range s.stations {
		for j := range t.leads { // none, if relations are not followed
			if t.plan.relations[j].fk == c {
				return true
			}
		}
	}
	return false
}

// each calls use for every target that a name of an option means. It is an error
// if there is none, or if use returns false for all of them: several types may
// share a table.
func (s *selection) each(option string, names []string, use func(t target, column string) bool) error {
	for _, name := range names {
		meant, column := s.stations[:1], name
		if dot := strings.LastIndexByte(name, '.'); dot >= 0 {
			table := name[:dot]
			column, meant = name[dot+1:], nil
			for _, t := range s.stations {
				if t.table == table {
					meant = append(meant, t)
				}
			}
			if len(meant) == 0 {
				return fmt.Errorf("%w: %s: %q: the call writes nothing into table %q", ErrArgument, option, name, table)
			}
		}
		used := false
		for _, t := range meant {
			if use(t.target, column) {
				used = true
			}
		}
		if !used {
			return fmt.Errorf("%w: %s: %q: %v has no field for column %q", ErrArgument, option, name, meant[0].plan.typ, column)
		}
	}
	return nil
}

// apply makes the loads what the options say, before keys are assigned.
func (s *selection) apply(w *writer) error {
	if s == nil {
		return nil
	}
	if s.conflict != nil {
		for _, l := range w.rows.links {
			from, to := &w.rows.nodes[l.from], &w.rows.nodes[l.to]
			if from.target == s.conflict.on && to.target == s.conflict.on {
				return w.rows.fail(*from, nil, "it refers to %s in the same table, and so would have to be sent before it is known which stored row that is", w.rows.path(*to))
			}
		}
	}
	for i := range w.loads {
		l := &w.loads[i]
		t := target{l.table, l.plan}
		l.read = s.readings[t]
		if s.conflict == nil || t != s.conflict.on {
			continue
		}
		l.upsert, l.tail = s.conflict, s.conflict.tail
		l.fresh = make([]bool, len(l.rows))
		for j, row := range l.rows {
			l.fresh[j] = *l.plan.id(row) == 0
		}
	}
	return nil
}
