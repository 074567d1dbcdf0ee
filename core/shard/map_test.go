package shard_test

import (
	"database/sql"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/shard"
	"github.com/snowkey/snowkey/types"
)

// layout returns the default one with shards.
func layout(bits int) core.Layout {
	l := core.Default()
	l.ShardBits = bits
	return l
}

// assign returns a map of 256 shards, all in one database.
func assign(db string) map[int64]string {
	of := make(map[int64]string)
	for n := range int64(256) {
		of[n] = db
	}
	return of
}

func TestAMapThatIsNotWholeIsRefused(t *testing.T) {
	few := assign("a")
	delete(few, 17)
	few[200] = ""
	stray := assign("a")
	stray[256] = "b"
	for name, c := range map[string]struct {
		layout    core.Layout
		databases map[int64]string
		want      string
	}{
		"two missing": {layout(8), few, "shard: databases is without shard 17 (2 of 256 are missing): want a database for each shard of the layout"},
		"none":        {layout(8), nil, "shard: databases is without shard 0 (256 of 256 are missing): want a database for each shard of the layout"},
		"too many":    {layout(8), stray, "shard: shard of databases is 256: want 0..255"},
		"no shards":   {core.Default(), assign("a"), "shard: Layout.ShardBits is 0: want 1 or more, such as 8 for 256 shards"},
		"no layout":   {core.Layout{}, assign("a"), "core: Layout.TimeBits is 0: want 1..62"},
	} {
		m, err := shard.New(c.layout, c.databases)
		if !isValueError(err) || err.Error() != c.want || m != nil {
			t.Errorf("%s: New() = %v, %v; want nil, %s", name, m, err, c.want)
		}
	}
	if m, err := shard.Spread(layout(1), new(sql.DB), nil); m != nil || err == nil {
		t.Errorf("Spread() with a nil *sql.DB = %v, %v; want nil and an error", m, err)
	}
	for _, n := range []int{0, 3} {
		m, err := shard.Spread(layout(1), make([]string, n)...)
		if !isValueError(err) || m != nil {
			t.Errorf("Spread() of 2 shards over %d databases = %v, %v; want nil and a *ValueError", n, m, err)
		}
	}
}

func TestSpreadGivesEachDatabaseARangeOfShards(t *testing.T) {
	m, err := shard.Spread(layout(8), "a", "b", "c", "d", "e")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := m.Databases(), []string{"a", "b", "c", "d", "e"}; !slices.Equal(got, want) {
		t.Errorf("Databases() = %q; want %q", got, want)
	}
	counts, last := map[string]int{}, ""
	for n := range int64(256) {
		db, err := m.On(n)
		if err != nil || db < last {
			t.Errorf("On(%d) = %q, %v after %q; want a database in order", n, db, err, last)
		}
		counts[db]++
		last = db
	}
	for db, n := range counts {
		if n != 51 && n != 52 {
			t.Errorf("%q has %d of 256 shards; want 51 or 52", db, n)
		}
	}
	for _, n := range []int64{-1, 256} {
		db, err := m.On(n)
		if !isValueError(err) || db != "" {
			t.Errorf("On(%d) = %q, %v; want a *ValueError", n, db, err)
		}
	}
}

func TestAKeyIsInTheDatabaseOfItsShard(t *testing.T) {
	l := layout(4)
	m, err := shard.Spread(l, "a", "b", "c")
	if err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		id := types.Snowflake(rand.Int64() | 1<<40)
		got, err := m.Of(id)
		want, _ := m.On(l.Shard(id))
		if err != nil || got != want {
			t.Errorf("Of(%d) = %q, %v; want %q, that of shard %d", id, got, err, want, l.Shard(id))
		}
	}
	for _, id := range []types.Snowflake{0, -1} {
		db, err := m.Of(id)
		if !isValueError(err) || db != "" {
			t.Errorf("Of(%d) = %q, %v; want a *ValueError", id, db, err)
		}
	}
}

func TestMoveChangesOneShardOfANewMap(t *testing.T) {
	before, err := shard.Spread(layout(8), "a", "b")
	if err != nil {
		t.Fatal(err)
	}
	after, err := before.Move(3, "c")
	if err != nil {
		t.Fatal(err)
	}
	for n := range int64(256) {
		old, _ := before.On(n)
		db, _ := after.On(n)
		want := "a"
		if n >= 128 {
			want = "b"
		}
		if old != want {
			t.Errorf("On(%d) of the map before = %q; want %q", n, old, want)
		}
		if n == 3 {
			want = "c"
		}
		if db != want {
			t.Errorf("On(%d) of the map after = %q; want %q", n, db, want)
		}
	}
	if got, want := after.Databases(), []string{"a", "c", "b"}; !slices.Equal(got, want) {
		t.Errorf("Databases() = %q; want %q", got, want)
	}
	for _, c := range []struct {
		n  int64
		to string
	}{{256, "c"}, {-1, "c"}, {3, ""}} {
		m, err := before.Move(c.n, c.to)
		if !isValueError(err) || m != nil {
			t.Errorf("Move(%d, %q) = %v, %v; want nil and a *ValueError", c.n, c.to, m, err)
		}
	}
}

func TestSplitPutsEachRowInOnePart(t *testing.T) {
	l := layout(8)
	m, err := shard.Spread(l, "a", "b", "c", "d")
	if err != nil {
		t.Fatal(err)
	}
	key := func(id types.Snowflake) types.Snowflake { return id }
	rows := make([]types.Snowflake, 10_000)
	for i := range rows {
		rows[i] = types.Snowflake(rand.Int64N(1<<62) + 1)
	}
	parts, err := shard.Split(m, rows, key)
	if err != nil {
		t.Fatal(err)
	}
	// What is taken from the front of the parts, in the order of rows, has to be rows.
	left := maps.Clone(parts)
	for i, id := range rows {
		db, _ := m.Of(id)
		if len(left[db]) == 0 || left[db][0] != id {
			t.Fatalf("rows[%d] is not the next of part %q; want each row once, in order", i, db)
		}
		left[db] = left[db][1:]
	}
	for db, rest := range left {
		if len(rest) > 0 {
			t.Errorf("part %q has %d rows more than rows", db, len(rest))
		}
	}

	rows[77] = 0
	parts, err = shard.Split(m, rows, key)
	want := "shard: key of rows[77] is 0: want a key, above 0: rows get their keys before they are split"
	if !isValueError(err) || err.Error() != want || parts != nil {
		t.Errorf("Split() = %d parts, %v; want none, %s", len(parts), err, want)
	}
}

func isValueError(err error) bool {
	var value *core.ValueError
	return errors.As(err, &value)
}
