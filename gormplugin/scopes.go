package gormplugin

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/snowkey/snowkey/types"
)

// A Layout returns the keys of a span of time, which makes the primary key an index of when
// rows were created. core.Generator and core.Layout are layouts, and a source that is one
// needs no [WithLayout].
//
// Between returns the first and the last key from the tick that contains from until before
// the tick that contains until, or a last below first if there is none; see
// core.Layout.Between. It must be safe for concurrent use.
type Layout interface {
	Between(from, until time.Time) (first, last types.Snowflake)
}

// The errors of a condition, for errors.Is.
var (
	// ErrNotInstalled means that the database has no plugin; see [Installed].
	ErrNotInstalled = errors.New("gormplugin: the plugin is not installed on this database")
	// ErrNoLayout means that a condition in times was used, but neither the source is a
	// [Layout] nor did [WithLayout] give one.
	ErrNoLayout = errors.New("gormplugin: the source of keys has no Between; give the plugin a layout with WithLayout")
)

// A Condition selects rows by the time at which they were created, or by their key. It is a
// GORM expression for Where, Not, Or and inline conditions in both APIs, and for updates
// and deletes:
//
//	db.Where(gormplugin.CreatedBetween(from, to)).Find(&orders)
//	gorm.G[Order](db).Where(gormplugin.CreatedBefore(t)).Delete(ctx)
//	db.Preload("Items", gormplugin.CreatedAfter(t)).Find(&orders)
//
// The condition compares the column itself, so the database can use the index of the key.
// For a composite key (TenantID, ID), add a condition on the tenant. An optimizer may still
// prefer the index of another condition, such as the one on deleted_at.
//
// The column is the primary key of the model, as described at [Filled], or the only column
// with the tag snowflake, unless [Condition.On] names one. It is quoted, and qualified with
// the name or alias of the table. A text column is refused, because it does not sort as a
// number.
//
// A statement with an error runs no SQL. The errors are:
//
//   - [ErrNotInstalled] and [ErrNoLayout], for conditions in times;
//   - gorm.ErrModelValueRequired, without a model;
//   - [ModelError], if the model has no such column.
//
// A Condition is immutable and safe for concurrent use. The zero Condition selects every
// row.
type Condition struct {
	span   func(Layout) keySpan // nil: every key
	timed  bool                 // whether span needs a layout
	column string               // "": that of the model
}

// A keySpan is a span of keys without its lower end. The smallest and the largest number
// mean no limit.
type keySpan struct{ above, upTo int64 }

var _ clause.Expression = Condition{}

// CreatedBetween selects the rows that were created at or after from and before until.
//
// A key tells the tick in which its row was created, and nothing within that tick, so both
// times count as the beginning of the tick that contains them: the tick of from is
// selected, and the tick of until is not. The spans [a, b) and [b, c) share no row and miss
// none.
//
// A time before the layout, such as the zero Time, is before every key, and a time after
// the layout is after every key. If until is not in a later tick than from, no row is
// selected.
func CreatedBetween(from, until time.Time) Condition {
	return Condition{timed: true, span: func(l Layout) keySpan {
		first, last := l.Between(from, until)
		return keySpan{first.Int64() - 1, last.Int64()}
	}}
}

// CreatedBefore selects the rows that were created before t. It is [CreatedBetween] without
// a beginning, and includes rows with small keys that a database counted.
func CreatedBefore(t time.Time) Condition { return CreatedBetween(time.Time{}, t) }

// CreatedAfter selects the rows that were created at t or later. It is [CreatedBetween]
// without an end, and selects all rows that CreatedBefore(t) does not. To continue from a
// row, use [NewerThan], which repeats no row of the same tick.
func CreatedAfter(t time.Time) Condition { return CreatedBetween(t, time.Unix(1<<60, 0)) }

// NewerThan selects the rows with a larger key than id. It needs no layout. With an order and a
// limit it is a page, which costs the same at any depth, where OFFSET reads what it skips:
//
//	db.Where(gormplugin.NewerThan(last)).Order("id").Limit(50).Find(&orders)
//
// A reader that follows new rows in this way can miss some. Keys are taken before the insert and
// rows become visible after the commit, so a row may appear after one with a larger key. Read
// again from a key that is older than the longest transaction, or use package feed.
func NewerThan(id types.Snowflake) Condition {
	return Condition{span: func(Layout) keySpan { return keySpan{id.Int64(), math.MaxInt64} }}
}

// OlderThan selects the rows with a smaller key than id. It needs no layout. Pages that begin with
// the newest row order by "id DESC", and the first has no condition.
func OlderThan(id types.Snowflake) Condition {
	return Condition{span: func(Layout) keySpan {
		return keySpan{math.MinInt64, max(id.Int64(), math.MinInt64+1) - 1}
	}}
}

// On returns c for another column than the key of the model. This may be a reference, to
// select items by when their order was created, or the key of a joined table. It is
// needed without a model, as in Table("orders") with maps, and in the conditions of
// Joins.
//
//	db.Where(gormplugin.CreatedAfter(t).On("order_id")).Find(&items)
//	db.Joins("Customer", db.Where(gormplugin.CreatedAfter(t).On("id"))).Find(&orders)
//
// column is the name of a column or of a field of the model. It is qualified with the
// table, unless it has a dot, as in "customers.id". A field must be a 64-bit number, which
// may be nullable. In the condition on which a subquery is joined, name the table:
//
//	customers := clause.LeftJoin.AssociationFrom("Customer", gorm.G[Customer](db))
//	gorm.G[Order](db).Joins(customers, func(on gorm.JoinBuilder, join, _ clause.Table) error {
//		on.Where(gormplugin.CreatedAfter(t).On(join.Name + ".id"))
//		return nil
//	})
func (c Condition) On(column string) Condition {
	c.column = column
	return c
}

// Scope adds c to a statement, for db.Scopes:
//
//	db.Scopes(gormplugin.CreatedBefore(t).Scope).Find(&orders)
func (c Condition) Scope(db *gorm.DB) *gorm.DB { return db.Where(c) }

// Build writes c. GORM calls it.
//
// After an error it writes nothing, which makes the SQL invalid and fails the statement
// even where GORM loses errors, as in subqueries. A DELETE must not run without its
// condition.
func (c Condition) Build(b clause.Builder) {
	stmt, ok := b.(*gorm.Statement)
	if !ok {
		_ = b.AddError(fmt.Errorf("gormplugin: a condition in a %T, which has no model", b))
		return
	}
	limits := keySpan{math.MinInt64, math.MaxInt64}
	if c.span != nil {
		var layout Layout
		if c.timed {
			var err error
			if layout, err = layoutOn(stmt.DB); err != nil {
				_ = stmt.AddError(err)
				return
			}
		}
		limits = c.span(layout)
	}
	column, err := keyColumn(stmt, c.column)
	if err != nil {
		_ = stmt.AddError(err)
		return
	}
	above, upTo := limits.above > math.MinInt64, limits.upTo < math.MaxInt64
	switch {
	case above && upTo:
		// In parentheses, or a NOT before it would mean the first half.
		_ = stmt.WriteByte('(')
		compare(stmt, column, " > ", limits.above)
		_, _ = stmt.WriteString(" AND ")
		compare(stmt, column, " <= ", limits.upTo)
		_ = stmt.WriteByte(')')
	case above:
		compare(stmt, column, " > ", limits.above)
	default:
		compare(stmt, column, " <= ", limits.upTo)
	}
}

func compare(stmt *gorm.Statement, column any, operator string, limit int64) {
	stmt.WriteQuoted(column)
	_, _ = stmt.WriteString(operator)
	stmt.AddVar(stmt, limit)
}

// layoutOn returns the layout of the plugin on db.
func layoutOn(db *gorm.DB) (Layout, error) {
	p, ok := db.Plugins[pluginName].(*Plugin)
	if !ok {
		return nil, ErrNotInstalled
	}
	if p.layout != nil {
		return p.layout, nil
	}
	if l, ok := p.src.(Layout); ok {
		return l, nil
	}
	return nil, fmt.Errorf("%w: %T", ErrNoLayout, p.src)
}

// keyColumn returns the column called name, or the column of the model's key.
func keyColumn(stmt *gorm.Statement, name string) (column any, err error) {
	var field *schema.Field
	switch {
	case name == "" && stmt.Schema == nil:
		return nil, fmt.Errorf("gormplugin: a condition without a model, name the column with On: %w", gorm.ErrModelValueRequired)
	case name == "":
		if field, err = policyOf(stmt.DB).keyOf(stmt.Schema); err != nil {
			return nil, err
		}
	case stmt.Schema != nil:
		field = stmt.Schema.LookUpField(name)
	}
	if field != nil {
		if !sorts(field) {
			return nil, &ModelError{Model: stmt.Schema.String(), Field: field.Name, Reason: fmt.Sprintf("%s does not sort as keys do", field.FieldType)}
		}
		name = field.DBName
	}
	if stmt.Table == "" || strings.Contains(name, ".") {
		return clause.Column{Name: name}, nil
	}
	return clause.Column{Table: clause.CurrentTable, Name: name}, nil
}

// sorts reports whether the column of f holds a key as a number. A foreign key may have a
// type that the plugin does not fill, such as uint or sql.NullInt64.
func sorts(f *schema.Field) bool {
	return numeric(f) || (f.GORMDataType == schema.Int || f.GORMDataType == schema.Uint) && f.Size == 64 && f.Serializer == nil
}

// keyOf returns the field of s that holds the key: the prioritized primary key, if it is one
// of ours, or else the only field with the tag. The plugin need not fill
// it.
func (k policy) keyOf(s *schema.Schema) (*schema.Field, error) {
	if f := s.PrioritizedPrimaryField; f != nil && k.key(f) {
		return f, nil
	}
	var found []*schema.Field
	for _, name := range s.DBNames {
		if f := s.FieldsByDBName[name]; numeric(f) && tagged(f) {
			found = append(found, f)
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	name, reason := "", "no key that is a number, of type types.Snowflake or types.ID, or with the tag snowflake; name a column with On"
	if len(found) > 1 {
		name, reason = found[1].Name, "one key of several, and none is the primary key; name the column with On"
	} else if f := s.PrioritizedPrimaryField; f != nil {
		name = f.Name
	}
	return nil, &ModelError{Model: s.String(), Field: name, Reason: reason}
}
