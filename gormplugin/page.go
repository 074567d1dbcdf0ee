package gormplugin

import (
	"fmt"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/snowkey/snowkey/types"
)

// A Page is a number of rows next to a key, which is the cursor: a keyset page.
// Unlike OFFSET it costs the same at any depth, and neither skips nor repeats
// rows while others are inserted. It is the condition, the order and the limit in
// one:
//
//	db.Clauses(gormplugin.PageAfter(last, 50)).Find(&orders)
//	gorm.G[Order](db, gormplugin.PageAfter(last, 50)).Find(ctx)
//	gorm.G[Order](db).Where("state = ?", "paid").Scopes(gormplugin.PageAfter(last, 50).ModifyStatement).Find(ctx)
//	db.Scopes(gormplugin.PageAfter(last, 50).Scope).Find(&orders)
//
// The rows come nearest first: upwards after the cursor, downwards before it.
// The last row of a page is the cursor of the next page in the same direction,
// the first row that of the page in the other; slices.Reverse turns a page round
// for display. A page of fewer rows than the limit is the last one.
//
// The column is found as for a [Condition]. A condition before the page that has
// an Or is kept together.
//
// A page is an error of the statement, [ErrPage], if the limit is below 1; with
// another order, which First, Last and FindInBatches bring along as well; with
// an Or after it; and in an update or a delete of a database that takes no LIMIT
// there, which would change all the rows beyond the cursor. There, and for the
// Count of what is left, use [NewerThan] or [OlderThan].
//
// A Page does not change and is safe for concurrent use. The zero Page is
// ErrPage.
type Page struct {
	beyond Condition
	down   bool
	limit  int
}

var (
	_ clause.Expression      = Page{}
	_ gorm.StatementModifier = Page{}
)

// PageAfter returns the page of the limit smallest keys above id, in rising
// order. An id of zero is before the first row.
//
// A reader that follows new rows with it can miss some: keys are taken before
// the insert and rows are seen after the commit, so a row may appear behind one
// with a larger key. Read again from a cursor that is older than any transaction
// lasts.
func PageAfter(id types.Snowflake, limit int) Page {
	return Page{beyond: NewerThan(id), limit: limit}
}

// PageBefore returns the page of the limit largest keys below id, in falling
// order: the newest first. An id of zero is behind the last row.
func PageBefore(id types.Snowflake, limit int) Page {
	p := Page{beyond: OlderThan(id), down: true, limit: limit}
	if id == 0 {
		p.beyond = Condition{}
	}
	return p
}

// On returns p for another column than the key of the model, see [Condition.On].
// Rows with the same value there are in no order, and are lost where a page ends
// between them: the column must be unique among the rows that are selected.
func (p Page) On(column string) Page {
	p.beyond.column = column
	return p
}

// Scope adds p to a statement, for db.Scopes. GORM adds scopes after all else, so
// it may stand anywhere in the chain.
func (p Page) Scope(db *gorm.DB) *gorm.DB { return db.Clauses(p) }

// Build makes p an argument of Clauses and of gorm.G, which call ModifyStatement
// instead. GORM calls it where a condition is wanted: that is an error.
func (Page) Build(b clause.Builder) {
	_ = b.AddError(fmt.Errorf("%w but a condition: pass it to Clauses, gorm.G or Scopes", ErrPage))
}

// ModifyStatement adds p to stmt. GORM calls it for Clauses and gorm.G; in the
// generic API it is also the function for Scopes.
func (p Page) ModifyStatement(stmt *gorm.Statement) {
	where, ok := stmt.Clauses["WHERE"]
	if before, known := where.Expression.(clause.Where); ok && known && slices.ContainsFunc(before.Exprs, alternative) {
		// "a OR b" would become "a OR b AND beyond".
		where.Expression = clause.Where{Exprs: []clause.Expression{pageGroup(before.Exprs)}}
		stmt.Clauses["WHERE"] = where
	}
	stmt.AddClause(clause.Where{Exprs: []clause.Expression{pageStart(p)}})
	stmt.AddClause(clause.OrderBy{Expression: pageOrder(p)})
	stmt.AddClause(clause.Limit{Limit: &p.limit})
}

// A pageGroup is what stands before a page, kept together.
type pageGroup []clause.Expression

func (g pageGroup) Build(b clause.Builder) {
	_ = b.WriteByte('(')
	clause.Where{Exprs: slices.Clone(g)}.Build(b) // which changes the order in the slice
	_ = b.WriteByte(')')
}

// A pageStart is the condition of a page. When it is written the statement is
// complete, so it is where the rest is checked.
type pageStart Page

func (p pageStart) Build(b clause.Builder) {
	stmt, ok := b.(*gorm.Statement)
	if ok {
		if err := p.check(stmt); err != nil {
			_ = stmt.AddError(err)
			return // see Condition.Build
		}
	}
	p.beyond.Build(b)
}

func (p pageStart) check(stmt *gorm.Statement) error {
	// Not before: GORM loses the error of a subquery, and writes an empty one for
	// it, so "NOT IN ()" would be every row.
	if p.limit < 1 {
		return fmt.Errorf("%w: a limit of %d, which is below 1", ErrPage, p.limit)
	}
	if !slices.Contains(stmt.BuildClauses, "LIMIT") {
		return fmt.Errorf("%w: the statement takes no LIMIT; use NewerThan or OlderThan", ErrPage)
	}
	if c, ok := stmt.Clauses["ORDER BY"]; ok { // Count removes it
		order, _ := c.Expression.(clause.OrderBy)
		if _, own := order.Expression.(pageOrder); !own || len(order.Columns) > 0 {
			return fmt.Errorf("%w: it has another order than that of the key", ErrPage)
		}
	}
	if where, ok := stmt.Clauses["WHERE"].Expression.(clause.Where); ok && besideAlternative(where.Exprs) {
		return fmt.Errorf("%w: an Or stands after it; put the alternatives into one Where before", ErrPage)
	}
	return nil
}

// besideAlternative reports whether a page start in list, or in a conjunction or
// group in list, is in one row with an Or.
func besideAlternative(list []clause.Expression) bool {
	start := func(e clause.Expression) bool { _, ok := e.(pageStart); return ok }
	if slices.ContainsFunc(list, start) && slices.ContainsFunc(list, alternative) {
		return true
	}
	return slices.ContainsFunc(list, func(e clause.Expression) bool {
		switch e := e.(type) {
		case clause.AndConditions:
			return besideAlternative(e.Exprs)
		case pageGroup:
			return besideAlternative(e)
		}
		return false
	})
}

// alternative reports whether e is written with OR before it, and not AND.
func alternative(e clause.Expression) bool {
	or, ok := e.(clause.OrConditions)
	return ok && len(or.Exprs) == 1
}

// A pageOrder is the order of a page. It is no column, because the column is
// known only when the statement is built.
type pageOrder Page

func (p pageOrder) Build(b clause.Builder) {
	stmt, ok := b.(*gorm.Statement)
	if !ok {
		return
	}
	column, err := keyColumn(stmt, p.beyond.column)
	if err != nil {
		_ = stmt.AddError(err)
		return
	}
	stmt.WriteQuoted(column)
	if p.down {
		_, _ = stmt.WriteString(" DESC")
	}
}
