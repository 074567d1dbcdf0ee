package shard

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/types"
)

// A Page says which rows to read: those with the Limit smallest keys from First to Last, or the greatest.
// It is a plain value.
//
//	page := shard.Page{Limit: 20, Descending: true} // the newest rows
//	page = page.After(orders[len(orders)-1].ID)     // those before them
//	page.First, page.Last = layout.Between(monday, tuesday)
type Page struct {
	// First and Last are the smallest and the greatest key, both included, as they are in the result of
	// core.Layout.Between. A Last of 0 is the greatest key that there is. If First is above Last, no row
	// is in the page and no database is asked.
	First, Last types.Snowflake

	Limit      int  // how many rows at most, 1 or more
	Descending bool // from Last down to First
}

// After returns the page that follows the row with key id: the rows above it, or below it if p is
// Descending.
func (p Page) After(id types.Snowflake) Page {
	switch {
	case p.Descending && id > 1:
		p.Last = id - 1
	case !p.Descending && id < math.MaxInt64:
		p.First = id + 1
	default: // a Last of 0 would be none, and a First above the greatest key the smallest
		p.First, p.Last = 0, -1
	}
	return p
}

// ReadPage returns the rows of a page of all databases, in the order of their keys, each row once. It calls
// read for each database, at the same time and with a Page whose Last is set, and again for what comes after
// copies of rows that m has elsewhere. The function returns the rows of the page in db, in order, all of them
// or as many as the limit:
//
//	orders, err := shard.ReadPage(ctx, databases, page, func(o Order) types.Snowflake { return o.ID },
//		func(ctx context.Context, db *sqlx.DB, p shard.Page) (rows []Order, err error) {
//			err = db.SelectContext(ctx, &rows, db.Rebind("SELECT * FROM orders WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT ?"),
//				p.First, p.Last, p.Limit)
//			return rows, err
//		})
//
// A row out of order or out of the page, which would be a wrong page, is a [*core.ValueError] that names
// it, and so is a limit below 1. The first error of read ends ctx for the other databases, and ReadPage
// returns it, wrapped. On an error there are no rows.
func ReadPage[DB comparable, Row any](ctx context.Context, m *Map[DB], p Page, key func(Row) types.Snowflake,
	read func(ctx context.Context, db DB, p Page) ([]Row, error)) ([]Row, error) {
	if p.Limit < 1 {
		return nil, invalid("Page.Limit", strconv.Itoa(p.Limit), "1 or more")
	}
	if p.Last == 0 {
		p.Last = math.MaxInt64
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	databases := m.Databases()
	parts := make([][]Row, len(databases))
	var first sync.Once // the errors after it are often its effects
	var failure error
	var wg sync.WaitGroup
	for i, db := range databases {
		wg.Go(func() {
			part, err := readPart(ctx, m, db, p, key, read)
			if err != nil {
				first.Do(func() {
					failure = fmt.Errorf("shard: page of the database of shard %d: %w", slices.Index(m.of, db), err)
					cancel()
				})
			}
			parts[i] = part
		})
	}
	wg.Wait()
	if failure != nil {
		return nil, failure
	}
	// Each part has the limit of its database or all of it, so a row that is in none comes after
	// limit others.
	rows := slices.Concat(parts...)
	slices.SortFunc(rows, func(a, b Row) int { return p.compare(key(a), key(b)) })
	return rows[:min(len(rows), p.Limit)], nil
}

// readPart returns the page of one database, without the rows that m has elsewhere. It asks for more in
// their place, because a row that was deleted where its shard is now can still be where the shard was.
func readPart[DB comparable, Row any](ctx context.Context, m *Map[DB], db DB, p Page, key func(Row) types.Snowflake,
	read func(context.Context, DB, Page) ([]Row, error)) (part []Row, err error) {
	for p.First <= p.Last && len(part) < p.Limit {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		rows, err := read(ctx, db, p)
		if err != nil {
			return nil, err
		}
		rest := p
		for i, row := range rows {
			id := key(row)
			if id <= 0 || id < rest.First || id > rest.Last {
				return nil, outside(i, id, rest)
			}
			if m.holder(id) == db {
				part = append(part, row)
			}
			rest = rest.After(id)
		}
		if len(rows) < p.Limit {
			break
		}
		p = rest
	}
	return part, nil
}

// compare says which key comes first in the page.
func (p Page) compare(a, b types.Snowflake) int {
	if p.Descending {
		a, b = b, a
	}
	return cmp.Compare(a, b)
}

// outside returns the error of row i, where rest is what of the page comes after the row before.
func outside(i int, id types.Snowflake, rest Page) *core.ValueError {
	order := "ascending"
	if rest.Descending {
		order = "descending"
	}
	return invalid("key of row "+strconv.Itoa(i), id.String(),
		"a key of "+rest.First.String()+".."+rest.Last.String()+": rows of the page in "+order+" order of their keys, each once")
}
