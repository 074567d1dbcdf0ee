package sqlxhelper

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx/reflectx"
)

// apply sets what the options say in the stations of a call, or says why they do
// not fit. It needs no rows.
func (c *config) apply(d *traits, m *reflectx.Mapper, w *walk) error {
	if err := w.choose(c.columns, c.omit); err != nil {
		return err
	}
	if err := c.conflict.apply(d, w.stations[0]); err != nil {
		return err
	}
	return w.readBack(c.returning, d, m)
}

// choose applies Columns and Omit.
func (w *walk) choose(columns, omit []string) error {
	if columns != nil && len(columns) == 0 {
		return fmt.Errorf("%w: Columns names no column", ErrArgument)
	}
	only, err := w.named("Columns", columns)
	if err != nil {
		return err
	}
	but, err := w.named("Omit", omit)
	if err != nil {
		return err
	}
	for _, s := range w.stations {
		key := s.plan.columns[s.plan.key].name
		left := func(c column) bool {
			return only[s] != nil && c.name != key && !slices.Contains(only[s], c.name) || slices.Contains(but[s], c.name)
		}
		for _, c := range s.plan.columns {
			switch {
			case !left(c):
			case c.name == key:
				return fmt.Errorf("%w: Omit: %s is the primary key of %v", ErrArgument, key, s.plan.typ)
			case w.sets(s, c.name):
				return fmt.Errorf("%w: the options leave out %s, a foreign key that InsertGraph sets in %v", ErrArgument, c.name, s.plan.typ)
			}
		}
		if only[s] != nil || but[s] != nil {
			s.columns = slices.DeleteFunc(slices.Clone(s.plan.columns), left)
		}
	}
	return nil
}

// named returns the columns that an option names, by station.
func (w *walk) named(option string, names []string) (map[*station][]string, error) {
	found := map[*station][]string{}
	err := w.each(option, names, func(s *station, column string) bool {
		if s.plan.find(column) < 0 {
			return false
		}
		found[s] = append(found[s], column)
		return true
	})
	return found, err
}

// sets reports whether a relation that the call follows sets a column of rows of s.
func (w *walk) sets(s *station, column string) bool {
	fk := &s.plan.columns[s.plan.find(column)]
	return slices.ContainsFunc(w.stations, func(o *station) bool {
		relations := o.plan.relations[:len(o.leads)] // none, if relations are not followed
		return slices.ContainsFunc(relations, func(r relation) bool { return r.fk == fk })
	})
}

// each calls use for every station that a name of an option means. It is an error
// if there is none, or if use returns false for all of them: several types may
// share a table.
func (w *walk) each(option string, names []string, use func(s *station, column string) bool) error {
	for _, name := range names {
		meant, column := w.stations[:1], name
		if dot := strings.LastIndexByte(name, '.'); dot >= 0 {
			table := name[:dot]
			column, meant = name[dot+1:], nil
			for _, s := range w.stations {
				if s.table == table {
					meant = append(meant, s)
				}
			}
			if len(meant) == 0 {
				return fmt.Errorf("%w: %s: %q: the call writes nothing into table %q", ErrArgument, option, name, table)
			}
		}
		used := false
		for _, s := range meant {
			used = use(s, column) || used
		}
		if !used {
			return fmt.Errorf("%w: %s: %q: %v has no field for column %q", ErrArgument, option, name, meant[0].plan.typ, column)
		}
	}
	return nil
}
