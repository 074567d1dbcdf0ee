package gormplugin

import (
	"fmt"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/snowkey/snowkey/types"
)

// A Page is a keyset page: a limited number of rows next to a key, the cursor. It sets the
// condition, the order and the limit of a statement. Unlike OFFSET it costs the same at any
// depth, and neither skips nor repeats rows while others are inserted:
//
//	db.Clauses(gormplugin.PageAfter(last, 50)).Find(&orders)
//	gorm.G[Order](db, gormplugin.PageAfter(last, 50)).Find(ctx)
//	gorm.G[Order](db).Where("state = ?", "paid").Scopes(gormplugin.PageAfter(last, 50).ModifyStatement).Find(ctx)
//	db.Scopes(gormplugin.PageAfter(last, 50).Scope).Find(&orders)
//
// The row nearest to the cursor comes first. The last row of a page is the cursor of the
// next page in the same direction, and the first row is the cursor of the page in the other
// direction. Use slices.Reverse to turn a page for display. A page with fewer rows than the
// limit is the last one.
//
// The column is found as for a [Condition]. If the condition before the page has an Or, it
// is put in parentheses.
//
// The statement fails with [ErrPage]
//
//   - if the limit is below 1, as in the zero Page;
//   - with another order, such as that of First, Last and FindInBatches;
//   - with an Or after the page;
//   - in an update or delete where the database takes no LIMIT, because it would change all
//     rows beyond the cursor.
//
// Use [NewerThan] or [OlderThan] there, and for the Count of the rows that are left.
//
// A Page is immutable and safe for concurrent use.
type Page struct {
	beyond Condition
	down   bool
	limit  int
}

var (
	_ clause.Expression      = Page{}
	_ gorm.StatementModifier = Page{}
)

// PageAfter returns the page of the limit smallest keys above id, in rising order. An id of
// zero is before the first row.
//
// A reader that follows new rows in this way can miss some. Keys are taken before the
// insert and rows become visible after the commit, so a row may appear after one with a
// larger key. Read again from a cursor that is older than the longest transaction.
func PageAfter(id types.Snowflake, limit int) Page {
	return Page{beyond: NewerThan(id), limit: limit}
}

// PageBefore returns the page of the limit largest keys below id, in falling order, with
// the newest row first. An id of zero is after the last row.
func PageBefore(id types.Snowflake, limit int) Page {
	p := Page{beyond: OlderThan(id), down: true, limit: limit}
	if id == 0 {
		p.beyond = Condition{}
	}
	return p
}

// On returns p for another column than the key of the model, see [Condition.On]. The column
// must be unique among the selected rows, because rows with the same value have no order,
// and are lost where a page ends between them.
func (p Page) On(column string) Page {
	p.beyond.column = column
	return p
}

// Scope adds p to a statement, for db.Scopes. Its place in the chain does not matter,
// because GORM adds scopes last.
func (p Page) Scope(db *gorm.DB) *gorm.DB { return db.Clauses(p) }

// Build makes p an argument of Clauses and gorm.G, which call ModifyStatement instead.
// GORM calls it if p is used as a condition, which is an error.
func (Page) Build(b clause.Builder) {
	_ = b.AddError(fmt.Errorf("%w: a Page is not a condition; pass it to Clauses, gorm.G or Scopes", ErrPage))
}

// ModifyStatement adds p to stmt. GORM calls it for Clauses and gorm.G. In the generic
// API, pass it to Scopes.
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

// A pageGroup is the conditions before a page, in parentheses.
type pageGroup []clause.Expression

func (g pageGroup) Build(b clause.Builder) {
	_ = b.WriteByte('(')
	clause.Where{Exprs: slices.Clone(g)}.Build(b) // which changes the order in the slice
	_ = b.WriteByte(')')
}

// A pageStart is the condition of a page. It is written when the statement is complete, and
// checks the rest of it.
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
	// Not earlier, because GORM loses the error of a subquery and writes an empty one, and
	// "NOT IN ()" selects every row.
	if p.limit < 1 {
		return fmt.Errorf("%w: a limit of %d; use 1 or more", ErrPage, p.limit)
	}
	if !slices.Contains(stmt.BuildClauses, "LIMIT") {
		return fmt.Errorf("%w: the statement takes no LIMIT; use NewerThan or OlderThan", ErrPage)
	}
	if c, ok := stmt.Clauses["ORDER BY"]; ok { // Count removes it
		order, _ := c.Expression.(clause.OrderBy)
		if _, own := order.Expression.(pageOrder); !own || len(order.Columns) > 0 {
			return fmt.Errorf("%w: the statement has another order; remove it, as a page is ordered by its column", ErrPage)
		}
	}
	if where, ok := stmt.Clauses["WHERE"].Expression.(clause.Where); ok && besideAlternative(where.Exprs) {
		return fmt.Errorf("%w: an Or follows the page; put the alternatives into one Where before it", ErrPage)
	}
	return nil
}

// besideAlternative reports whether list, or a conjunction or group in it, has both a page
// start and an Or.
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

// alternative reports whether e is written after OR, and not after AND.
func alternative(e clause.Expression) bool {
	or, ok := e.(clause.OrConditions)
	return ok && len(or.Exprs) == 1
}

// A pageOrder is the order of a page, whose column is known only when the statement is
// built.
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
