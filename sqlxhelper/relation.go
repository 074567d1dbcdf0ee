package sqlxhelper

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// A relation is a field that holds rows of another table: children, which refer to the row with
// the field, or the row to which that one belongs.
type relation struct {
	field   string
	index   []int
	table   string
	belongs bool // the row with the field refers to the one in it
	many    bool // []T or []*T, not *T
	pointer bool // *T or []*T, not []T
	typ     reflect.Type
	plan    *plan // of typ
	fkName  string
	fk      *column // of the row that refers
}

// parseRelation reads the tag "table,fk=column" or "table,belongs_to=column".
func parseRelation(text string) (parsed tag, problem string) {
	table, option, _ := strings.Cut(text, ",")
	kind, foreign, _ := strings.Cut(option, "=")
	if kind != "fk" && kind != "belongs_to" || strings.Contains(foreign, ",") {
		return parsed, wantTag
	}
	for _, problem := range []string{tableProblem(table), nameProblem(foreign)} {
		if problem != "" {
			return parsed, problem
		}
	}
	parsed = tag{table: table, foreign: foreign, belongs: kind == "belongs_to"}
	return parsed, ""
}

// tag is the part of the field's tag that names the foreign key.
func (r *relation) tag() string {
	if r.belongs {
		return "belongs_to=" + r.fkName
	}
	return "fk=" + r.fkName
}

// newRelation returns the relation of a field, or the reason why it cannot be one.
func newRelation(f reflect.StructField, tag tag) (r relation, problem string) {
	if !f.IsExported() {
		return r, "the field is not exported, so its rows could not be given keys"
	}
	r = relation{table: tag.table, fkName: tag.foreign, belongs: tag.belongs}
	t := f.Type
	if t.Kind() == reflect.Slice {
		r.many, t = true, t.Elem()
	}
	if t.Kind() == reflect.Pointer {
		r.pointer, t = true, t.Elem()
	}
	if r.belongs && (t.Kind() != reflect.Struct || r.many || !r.pointer) {
		return r, fmt.Sprintf("%v cannot hold the row that %s refers to, want *T with a struct T", f.Type, tag.foreign)
	}
	if t.Kind() != reflect.Struct || !r.many && !r.pointer {
		// A struct by value could not say that there is no child.
		return r, fmt.Sprintf("%v cannot hold child rows, want []T, []*T or *T with a struct T", f.Type)
	}
	r.typ = t
	return r, ""
}

// relate completes a relation of p to rows of the plan other, or returns the reason why it
// cannot be one.
func (b *builder) relate(p *plan, r *relation, other *plan) (problem string) {
	from, to := other, p // the plan that refers, and the one to which it refers
	if r.belongs {
		from, to = p, other
	}
	fk := from.indexOf(r.fkName)
	switch {
	case fk < 0:
		return fmt.Sprintf("%s: %v has no field for column %s", r.tag(), from.typ, r.fkName)
	case fk == from.key:
		return fmt.Sprintf("%s: that is the primary key of %v, which needs one of its own", r.tag(), from.typ)
	case !b.holdKey(&from.columns[fk]):
		return fmt.Sprintf("%s: %v.%s is %v, want types.Snowflake, *types.Snowflake or types.NullSnowflake, or a types.ID or types.NullID%s",
			r.tag(), from.typ, from.columns[fk].field, from.columns[fk].typ, b.orInteger())
	}
	// A column is set by one belongs_to field and by the fields that hold its row as a child.
	// A row is in only one of those; the belongs_to field then points back to its parent.
	for i := range from.relations {
		o := &from.relations[i]
		if !o.belongs || o.fkName != r.fkName {
			continue
		}
		if o == r {
			break // the fields after it will find it
		}
		if r.belongs {
			return fmt.Sprintf("%s: field %s sets that column too", r.tag(), o.field)
		}
		if o.typ != to.typ {
			return fmt.Sprintf("%s: by the field %v.%s that column refers to %v", r.tag(), from.typ, o.field, o.typ)
		}
	}
	// All references to a table are to one primary key.
	first, ok := b.keys[r.table]
	if !ok {
		b.keys[r.table] = other
	} else if was, is := first.columns[first.key].name, other.columns[other.key].name; was != is {
		return fmt.Sprintf("table %s has the primary key %s in %v and %s in %v", r.table, was, first.typ, is, other.typ)
	}
	r.plan, r.fk = other, &from.columns[fk]
	from.foreign = append(from.foreign, fk)
	other.paths++
	if r.pointer {
		other.paths++
	}
	return ""
}

// isForeign reports whether a relation sets the column.
func (p *plan) isForeign(name string) bool {
	return slices.ContainsFunc(p.foreign, func(i int) bool { return p.columns[i].name == name })
}
