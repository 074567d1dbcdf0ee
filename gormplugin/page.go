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
// The column is found as for a [Condition]. Several conditions before the page are put in
// parentheses, so that an Or among them does no harm.
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
	if id == 0 {
		return Page{down: true, limit: limit}
	}
	return Page{beyond: OlderThan(id), down: true, limit: limit}
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
	where := stmt.Clauses["WHERE"]
	if before, ok := where.Expression.(clause.Where); ok && len(before.Exprs) > 0 {
		// "a OR b" would become "a OR b AND beyond".
		where.Expression = clause.Where{Exprs: []clause.Expression{clause.And(before.Exprs...)}}
		stmt.Clauses["WHERE"] = where
	}
	stmt.AddClause(clause.Where{Exprs: []clause.Expression{pageStart(p)}})
	stmt.AddClause(clause.OrderBy{Expression: pageOrder(p)})
	stmt.AddClause(clause.Limit{Limit: &p.limit})
}

// A pageStart is the condition of a page. It is written when the statement is complete, and
// checks the rest of it. It does not do so earlier, because GORM loses the error of a subquery
// and writes an empty one, and "NOT IN ()" selects every row; see [Condition.Build].
type pageStart Page

func (p pageStart) Build(b clause.Builder) {
	if stmt, ok := b.(*gorm.Statement); ok {
		if reason := p.refused(stmt); reason != "" {
			_ = stmt.AddError(fmt.Errorf("%w: %s", ErrPage, reason))
			return
		}
	}
	p.beyond.Build(b)
}

// refused returns why stmt is no page, or "".
func (p pageStart) refused(stmt *gorm.Statement) string {
	where, _ := stmt.Clauses["WHERE"].Expression.(clause.Where)
	sorted, isSorted := stmt.Clauses["ORDER BY"] // Count removes it
	order, _ := sorted.Expression.(clause.OrderBy)
	_, own := order.Expression.(pageOrder)
	switch {
	case p.limit < 1:
		return fmt.Sprintf("a limit of %d; use 1 or more", p.limit)
	case !slices.Contains(stmt.BuildClauses, "LIMIT"):
		return "the statement takes no LIMIT; use NewerThan or OlderThan"
	case isSorted && (!own || len(order.Columns) > 0):
		return "the statement has another order; remove it, as a page is ordered by its column"
	case besideOr(where.Exprs):
		return "an Or follows the page; put the alternatives into one Where before it"
	}
	return ""
}

// besideOr reports whether list, or a conjunction in it, has both a page start and an Or. GORM
// makes a conjunction of both for a model with a soft delete.
func besideOr(list []clause.Expression) bool {
	start, or := false, false
	for _, e := range list {
		switch e := e.(type) {
		case pageStart:
			start = true
		case clause.OrConditions:
			or = or || len(e.Exprs) == 1 // written after OR, and not after AND
		case clause.AndConditions:
			if besideOr(e.Exprs) {
				return true
			}
		}
	}
	return start && or
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
