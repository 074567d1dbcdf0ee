package shard_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/coretest"
	"github.com/snowkey/snowkey/core/shard"
	"github.com/snowkey/snowkey/types"
)

// A row is its key and the database that it was read from.
type row struct {
	id types.Snowflake
	in *table
}

func (r row) key() types.Snowflake { return r.id }

// A table is one of a database, by ascending keys.
type table struct {
	rows  []row
	reads atomic.Int64
}

// read does what SELECT … BETWEEN … ORDER BY … LIMIT does.
func (t *table) read(_ context.Context, p shard.Page) (rows []row, err error) {
	t.reads.Add(1)
	for _, r := range t.rows {
		if r.id >= p.First && r.id <= p.Last {
			rows = append(rows, r)
		}
	}
	if p.Descending {
		slices.Reverse(rows)
	}
	return rows[:min(len(rows), p.Limit)], nil
}

func readTable(ctx context.Context, db *table, p shard.Page) ([]row, error) { return db.read(ctx, p) }

// Random rows in random databases, some of whose shards are moved: rows of the moved shards are in the
// new database, and copies of some of them, also of deleted ones, in others. The pages, one after the other,
// must be the rows of one sorted table.
func TestPagesAreTheRowsOfOneSortedTable(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1))
		l := layout(1 + r.IntN(8))
		databases := make([]*table, 1+r.IntN(min(6, 1<<l.ShardBits)))
		for i := range databases {
			databases[i] = new(table)
		}
		m, err := shard.Spread(l, databases...)
		if err != nil {
			t.Fatal(err)
		}
		for range r.IntN(10) {
			if m, err = m.Move(r.Int64N(1<<l.ShardBits), databases[r.IntN(len(databases))]); err != nil {
				t.Fatal(err)
			}
		}

		gen := coretest.NewGenerator(coretest.Config{Layout: l})
		var all []row
		for range r.IntN(300) {
			ctx := t.Context()
			if r.IntN(2) == 0 { // many rows in one place
				ctx = core.OnShard(ctx, 0)
			}
			id, err := gen.Next(ctx)
			if err != nil {
				t.Fatal(err)
			}
			db, err := m.Of(id)
			if err != nil {
				t.Fatal(err)
			}
			if r.IntN(4) > 0 { // else deleted, and its copies were forgotten
				all = append(all, row{id, db})
				db.rows = append(db.rows, row{id, db})
			}
			for range r.IntN(3) {
				if other := databases[r.IntN(len(databases))]; other != db && (len(other.rows) == 0 || other.rows[len(other.rows)-1].id != id) {
					other.rows = append(other.rows, row{id, other})
				}
			}
		}

		page := shard.Page{Limit: 1 + r.IntN(40), Descending: r.IntN(2) == 0}
		if len(all) > 0 && r.IntN(2) == 0 {
			page.First, page.Last = all[r.IntN(len(all))].id, all[r.IntN(len(all))].id
		}
		var want []row
		for _, r := range all {
			if r.id >= page.First && (page.Last == 0 || r.id <= page.Last) {
				want = append(want, r)
			}
		}
		if page.Descending {
			slices.Reverse(want)
		}
		for p := page; ; {
			got, err := shard.ReadPage(t.Context(), m, p, row.key, readTable)
			n := min(page.Limit, len(want))
			if err != nil || !slices.Equal(got, want[:n]) {
				t.Fatalf("seed %d: ReadPage(%+v) = %d rows, %v; want the %d that come next, of %d", seed, p, len(got), err, n, len(want))
			}
			if want = want[n:]; n == 0 {
				break
			}
			p = p.After(got[n-1].id)
		}
	}
}

func TestAPageEndsAtTheLastKeyThereIs(t *testing.T) {
	for _, c := range []struct {
		p    shard.Page
		id   types.Snowflake
		want shard.Page
	}{
		{shard.Page{Limit: 3}, 7, shard.Page{Limit: 3, First: 8}},
		{shard.Page{Limit: 3, First: 2, Last: 9}, 7, shard.Page{Limit: 3, First: 8, Last: 9}},
		{shard.Page{Limit: 3, Descending: true}, 7, shard.Page{Limit: 3, Last: 6, Descending: true}},
		{shard.Page{Limit: 3}, math.MaxInt64, shard.Page{Limit: 3, Last: -1}},
		{shard.Page{Limit: 3, Descending: true}, 1, shard.Page{Limit: 3, Last: -1, Descending: true}},
	} {
		if got := c.p.After(c.id); got != c.want {
			t.Errorf("%+v.After(%d) = %+v; want %+v", c.p, c.id, got, c.want)
		}
	}
}

func TestAnEmptySpanAsksNoDatabase(t *testing.T) {
	l := layout(1)
	a, b := &table{}, &table{}
	m, err := shard.Spread(l, a, b)
	if err != nil {
		t.Fatal(err)
	}
	p := shard.Page{Limit: 1}
	now := time.Now()
	p.First, p.Last = l.Between(now, now)
	if rows, err := shard.ReadPage(t.Context(), m, p, row.key, readTable); len(rows) > 0 || err != nil || a.reads.Load()+b.reads.Load() > 0 {
		t.Errorf("ReadPage() of no time = %d rows, %v, by %d reads; want nothing", len(rows), err, a.reads.Load()+b.reads.Load())
	}
}

func TestAWrongPageOfOneDatabaseIsAnError(t *testing.T) {
	m, err := shard.Spread(layout(1), "even", "odd")
	if err != nil {
		t.Fatal(err)
	}
	key := func(id types.Snowflake) types.Snowflake { return id }
	for name, c := range map[string]struct {
		page shard.Page
		rows []types.Snowflake
		want string
	}{
		"unordered":  {shard.Page{Limit: 9}, []types.Snowflake{3, 7, 5}, "key of row 2 is 5: want a key of 8..9223372036854775807: rows of the page in ascending order of their keys, each once"},
		"twice":      {shard.Page{Limit: 9}, []types.Snowflake{3, 3}, "key of row 1 is 3: want a key of 4..9223372036854775807"},
		"ascending":  {shard.Page{Limit: 9, Descending: true}, []types.Snowflake{3, 5}, "key of row 1 is 5: want a key of 0..2: rows of the page in descending order"},
		"not after":  {shard.Page{Limit: 9, First: 4}, []types.Snowflake{3, 5}, "key of row 0 is 3: want a key of 4..9223372036854775807"},
		"not before": {shard.Page{Limit: 9, Last: 4, Descending: true}, []types.Snowflake{5}, "key of row 0 is 5: want a key of 0..4"},
		"no key":     {shard.Page{Limit: 9}, []types.Snowflake{0}, "key of row 0 is 0: want a key of 0..9223372036854775807"},
		"no limit":   {shard.Page{}, nil, "Page.Limit is 0: want 1 or more"},
	} {
		rows, err := shard.ReadPage(t.Context(), m, c.page, key, func(_ context.Context, db string, _ shard.Page) ([]types.Snowflake, error) {
			if db == "even" {
				return nil, nil
			}
			return c.rows, nil
		})
		if !isValueError(err) || !strings.Contains(err.Error(), c.want) || rows != nil {
			t.Errorf("%s: ReadPage() = %d, %v; want no rows and %s", name, rows, err, c.want)
		}
	}
}

func TestTheFirstErrorEndsTheOtherReads(t *testing.T) {
	m, err := shard.Spread(layout(2), "a", "b", "c")
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	key := func(id types.Snowflake) types.Snowflake { return id }
	synctest.Test(t, func(t *testing.T) {
		rows, err := shard.ReadPage(t.Context(), m, shard.Page{Limit: 1}, key, func(ctx context.Context, db string, _ shard.Page) ([]types.Snowflake, error) {
			if db == "b" {
				time.Sleep(time.Second)
				return nil, broken
			}
			<-ctx.Done()
			return nil, ctx.Err()
		})
		if !errors.Is(err, broken) || rows != nil || err.Error() != "shard: page of the database of shard 2: broken" {
			t.Errorf("ReadPage() = %d, %v; want no rows and that the database of shard 2 is broken", rows, err)
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := shard.ReadPage(ctx, m, shard.Page{Limit: 1}, key, func(context.Context, string, shard.Page) ([]types.Snowflake, error) {
		t.Error("ReadPage() with a context that has ended reads; want no read")
		return nil, nil
	}); !errors.Is(err, context.Canceled) {
		t.Errorf("ReadPage() with a context that has ended = %v; want context.Canceled", err)
	}
}
