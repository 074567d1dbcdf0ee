package backfill_test

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/backfill"
	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/leasetest"
	"github.com/snowkey/snowkey/types"
)

var (
	epoch = time.Date(2010, 1, 1, 0, 0, 0, 0, time.UTC)
	until = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
)

// small has 4 keys per tick of a second.
func small() core.Layout {
	return core.Layout{Epoch: epoch, Unit: time.Second, TimeBits: 31, DatacenterBits: 1, WorkerBits: 3, SequenceBits: 2}
}

func old() core.Layout {
	l := core.Default()
	l.Epoch = epoch
	return l
}

func mustNew(t *testing.T, c backfill.Config) *backfill.Backfill {
	t.Helper()
	if c.Until.IsZero() {
		c.Until = until
	}
	b, err := backfill.New(c)
	if err != nil {
		t.Fatalf("New(%+v) = %v; want no error", c, err)
	}
	return b
}

// rowsAt returns rows at these times with old keys from 1 on.
func rowsAt(times ...time.Time) []backfill.Row[int] {
	rows := make([]backfill.Row[int], len(times))
	for i, at := range times {
		rows[i] = backfill.Row[int]{Old: i + 1, Time: at}
	}
	return rows
}

// checkKeys fails unless keys rise, and each has the worker and a time within precision of its row's.
func checkKeys(t *testing.T, l core.Layout, worker int64, precision time.Duration, rows []backfill.Row[int], keys []types.Snowflake) {
	t.Helper()
	if len(keys) != len(rows) {
		t.Fatalf("%d keys for %d rows", len(keys), len(rows))
	}
	for i, key := range keys {
		p := l.Parts(key)
		tick := rows[i].Time.Truncate(l.Unit)
		if key <= 0 || p.Worker != worker || p.Time.Before(tick) || !p.Time.Before(rows[i].Time.Add(precision)) {
			t.Fatalf("key of row %+v = %d, worker %d at %v; want worker %d, less than %v after the row", rows[i], key, p.Worker, p.Time, worker, precision)
		}
		if i > 0 && key <= keys[i-1] {
			t.Fatalf("key of row %+v = %d after %d; want keys to rise", rows[i], key, keys[i-1])
		}
	}
}

func TestSameRowsGetTheSameKeysWhereverTheyStop(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 1))
		c := backfill.Config{Layout: small(), Datacenter: 1, Worker: 5, Precision: time.Hour, EarlyAtEpoch: seed%2 == 0}
		if seed%4 >= 2 {
			c.Layout.SequenceBits, c.Layout.ShardBits = 6, 4
		}
		at := epoch
		if c.EarlyAtEpoch {
			at = at.Add(-10 * time.Second)
		}
		var rows []backfill.Row[int]
		for i := range 300 {
			at = at.Add(time.Duration(rng.IntN(4)) * 400 * time.Millisecond)
			rows = append(rows, backfill.Row[int]{Old: i, Time: at, ShardOf: types.Snowflake(rng.IntN(2) * rng.IntN(100))})
		}
		want, err := backfill.Keys(mustNew(t, c), rows)
		if err != nil {
			t.Fatal(err)
		}
		if !c.EarlyAtEpoch {
			checkKeys(t, c.Layout, 5, time.Hour, rows, want)
		}
		var got []types.Snowflake
		for b := mustNew(t, c); len(got) < len(rows); {
			n := min(1+rng.IntN(40), len(rows)-len(got))
			keys, err := backfill.Keys(b, rows[len(got):][:n])
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, keys...)
			if rng.IntN(2) == 0 { // it stops, and another process goes on
				b = mustNew(t, c)
				if err := b.Resume(got[len(got)-1]); err != nil {
					t.Fatalf("Resume(%d) = %v; want no error", got[len(got)-1], err)
				}
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: keys with stops differ from those without", seed)
		}
	}
}

func TestRowsOfOneTimeSpreadOverItsPrecision(t *testing.T) {
	day := time.Date(2019, 3, 31, 0, 0, 0, 0, time.FixedZone("", 3600))
	for _, test := range []struct {
		name      string
		layout    core.Layout
		precision time.Duration
		at        time.Time
		rows      int
	}{
		{"100,000 rows in a second", old(), 0, day.Add(12 * time.Hour), 100_000},
		{"100,000 rows in a microsecond of a transaction", old(), 0, day.Add(12*time.Hour + 123456*time.Microsecond), 100_000},
		{"a tick that is full", small(), 0, day, 4},
		{"all of a minute", small(), time.Minute, day, 240},
		{"all of a date", small(), 24 * time.Hour, day, 86_400 * 4},
	} {
		precision := test.precision
		if precision == 0 {
			precision = time.Second
		}
		rows := make([]backfill.Row[int], test.rows)
		for i := range rows {
			rows[i] = backfill.Row[int]{Old: i, Time: test.at}
		}
		b := mustNew(t, backfill.Config{Layout: test.layout, Worker: 7, Precision: test.precision})
		keys, err := backfill.Keys(b, rows)
		if err != nil {
			t.Fatalf("%s: Keys() = %v; want no error", test.name, err)
		}
		checkKeys(t, test.layout, 7, precision, rows, keys)

		// The next time has its keys, whatever the one before has used.
		next := rowsAt(test.at.Add(precision))
		if keys, err = backfill.Keys(b, next); err != nil {
			t.Fatalf("%s: Keys() of the next = %v; want no error", test.name, err)
		}
		checkKeys(t, test.layout, 7, precision, next, keys)
	}
}

func TestRowsThatGetNoKeyAreNamed(t *testing.T) {
	noon := time.Date(2019, 3, 31, 12, 0, 0, 0, time.UTC)
	crowd := make([]time.Time, 9)
	for i := range crowd {
		crowd[i] = noon
	}
	for _, test := range []struct {
		name string
		rows []backfill.Row[int]
		row  int
		err  error
		text string
	}{
		{"NULL", rowsAt(noon, time.Time{}), 2, backfill.ErrNoTime, "backfill: the row has no time: row 2: want a time that the query chooses, such as that of the row before"},
		{"before the epoch", rowsAt(epoch.Add(-1)), 1, backfill.ErrEarly, "backfill: the row is before the epoch: row 1 at 2009-12-31T23:59:59.999999999Z: want from 2010-01-01T00:00:00Z on"},
		{"after now", rowsAt(noon, until), 2, backfill.ErrLate, "row 2 at 2026-01-01T00:00:00Z: want before Config.Until, 2026-01-01T00:00:00Z"},
		{"after the layout", rowsAt(small().Exhausted()), 1, backfill.ErrLate, ""},
		{"a time that decreases", rowsAt(noon, noon.Add(-1)), 2, backfill.ErrOrder, "row 2 at 2019-03-31T11:59:59.999999999Z: want none before 2019-03-31T12:00:00Z"},
		{"an old key that decreases", []backfill.Row[int]{{Old: 5, Time: noon}, {Old: 4, Time: noon}}, 4, backfill.ErrOrder, "row 4 at 2019-03-31T12:00:00Z: want one above 5"},
		{"an old key that is there twice", []backfill.Row[int]{{Old: 5, Time: noon}, {Old: 5, Time: noon}}, 5, backfill.ErrOrder, ""},
		{"on the shard of no key", []backfill.Row[int]{{Old: 5, Time: noon}, {Old: 6, Time: noon, ShardOf: -7}}, 6, backfill.ErrNoShard, "row 6 at 2019-03-31T12:00:00Z: want the key of its parent, above 0, in place of -7"},
		{"more rows than keys", rowsAt(crowd...), 9, backfill.ErrCrowded, "row 9 at 2019-03-31T12:00:00Z: want at most 8 keys, those of 2s, or a longer Config.Precision"},
		{"more rows than keys up to now", rowsAt(slices.Repeat([]time.Time{until.Add(-time.Second)}, 6)...), 5, backfill.ErrCrowded, "at most 4 keys"},
	} {
		c := backfill.Config{Layout: small(), Worker: 1, Precision: 2 * time.Second}
		if len(test.rows)%2 == 0 { // which makes no difference
			c.Layout.SequenceBits, c.Layout.ShardBits = 5, 3
		}
		b := mustNew(t, c)
		keys, err := backfill.Keys(b, test.rows)
		var refused *backfill.RowError
		if !errors.As(err, &refused) || refused.Row != test.row || !errors.Is(err, test.err) || !strings.Contains(err.Error(), test.text) || keys != nil {
			t.Errorf("%s: Keys() = %v, %v; want no key, and row %d: %v: %s", test.name, keys, err, test.row, test.err, test.text)
		}
		// Nothing has changed.
		first := rowsAt(epoch.Add(time.Second))
		got, err := backfill.Keys(b, first)
		want, _ := backfill.Keys(mustNew(t, c), first)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: the next Keys() = %v, %v; want %v, as without the refused rows", test.name, got, err, want)
		}
	}
	if id, err := mustNew(t, backfill.Config{}).Next(epoch); id != 0 || !strings.Contains(err.Error(), ": a row at 2010") {
		t.Errorf("Next() before the epoch = %d, %v; want 0, and a row without a name", id, err)
	}
}

// The rows of the past, too: children are on their parent's shard, others on one after the other, and
// no two keys are equal above the shard.
func TestRowsOfThePastAreOnShards(t *testing.T) {
	l := old()
	l.ShardBits = 8 // 16 keys per tick
	orders, lines := mustNew(t, backfill.Config{Layout: l, Worker: 1}), mustNew(t, backfill.Config{Layout: l, Worker: 2})
	above := map[types.Snowflake]bool{}
	var order types.Snowflake
	for i := range 1000 {
		at := epoch.AddDate(1, 0, i/300)
		var err error
		if order, err = orders.Next(at); err != nil || l.Shard(order) != int64(i%256) || above[order>>8] {
			t.Fatalf("key of row %d = %d, %v, on shard %d; want a new one on shard %d", i, order, err, l.Shard(order), i%256)
		}
		line, err := lines.NextOnShardOf(at, order)
		if err != nil || l.Shard(line) != l.Shard(order) || above[line>>8] {
			t.Fatalf("key of the line of row %d = %d, %v, on shard %d; want a new one on shard %d", i, line, err, l.Shard(line), l.Shard(order))
		}
		above[order>>8], above[line>>8] = true, true
	}
	if id, err := lines.NextOnShardOf(until.Add(-time.Hour), 0); id != 0 || !errors.Is(err, backfill.ErrNoShard) {
		t.Errorf("NextOnShardOf(0) = %d, %v; want ErrNoShard", id, err)
	}
}

func TestKeyZeroIsNotGiven(t *testing.T) {
	b := mustNew(t, backfill.Config{Layout: old()})
	if key, err := b.Next(epoch); key != 1 || err != nil {
		t.Errorf("first key of worker 0 at the epoch = %d, %v; want 1", key, err)
	}
}

func TestSettingsAreValidated(t *testing.T) {
	for _, c := range []backfill.Config{
		{Worker: 1024}, {Worker: -1}, {Datacenter: 1}, {Layout: core.Layout{Unit: 1}},
		{Precision: time.Microsecond}, {Precision: -time.Hour},
	} {
		var v *core.ValueError
		if b, err := backfill.New(c); b != nil || !errors.As(err, &v) || v.Package != "backfill" {
			t.Errorf("New(%+v) = %v, %v; want a *core.ValueError of backfill", c, b, err)
		}
	}
	b := mustNew(t, backfill.Config{Layout: small(), Worker: 5})
	for _, key := range []types.Snowflake{0, -1, 1, 6 << 2, 5<<2 | 1<<5, 1<<62 | 5<<2} {
		if err := b.Resume(key); err == nil {
			t.Errorf("Resume(%d) = nil; want an error: the key is not one of worker 5, datacenter 0", key)
		}
	}
}

// A million rows up to this moment get keys of a retired number while four generators with leases
// make theirs.
func TestAMillionRowsBesideLiveGenerators(t *testing.T) {
	const rows, generators, each, worker = 1_000_000, 4, 250_000, 1000
	store := leasetest.NewMemory(nil)
	config := lease.Config{Namespace: "backfill-beside", Logger: slog.New(slog.DiscardHandler)}
	if err := lease.Retire(t.Context(), store, config, worker, "a test"); err != nil {
		t.Fatal(err)
	}
	ids := make([][]types.Snowflake, generators)
	var wg sync.WaitGroup
	started := time.Now()
	for i := range ids {
		wg.Go(func() { ids[i] = live(t, store, config, each) })
	}
	var keys []types.Snowflake
	b := mustNew(t, backfill.Config{Worker: worker, Until: time.Now().Add(time.Hour)}) // to meet them in time
	for len(keys) < rows {
		batch := make([]backfill.Row[int], 10_000)
		at := time.Now()
		for i := range batch {
			batch[i] = backfill.Row[int]{Old: i, Time: at}
		}
		got, err := backfill.Keys(b, batch)
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, got...)
	}
	wg.Wait()
	all := slices.Concat(append(ids, keys)...)
	if len(all) != rows+generators*each {
		t.Fatalf("%d keys; want %d", len(all), rows+generators*each)
	}
	slices.Sort(all)
	for i := range all[1:] {
		if all[i] == all[i+1] {
			t.Fatalf("key %d was made twice: %+v", all[i], core.Default().Parts(all[i]))
		}
	}
	t.Logf("%d keys in %v", len(all), time.Since(started))
}

// live returns n IDs of a generator with a lease.
func live(t *testing.T, store lease.Store, config lease.Config, n int) []types.Snowflake {
	l, err := lease.Acquire(t.Context(), store, config)
	if err != nil {
		t.Error(err)
		return nil
	}
	gen, err := core.New(core.Config{Worker: l})
	if err != nil {
		t.Error(err)
		return nil
	}
	defer func() { _ = gen.Close(context.WithoutCancel(t.Context())) }()
	ids := make([]types.Snowflake, n)
	for chunk := range slices.Chunk(ids, 100) {
		if err := gen.Fill(t.Context(), chunk); err != nil {
			t.Error(err)
		}
	}
	return ids
}

func TestARowInTheTickOfUntilIsTakenIfItIsBefore(t *testing.T) {
	late := until.Add(500 * time.Microsecond)
	b := mustNew(t, backfill.Config{Layout: old(), Worker: 5, Until: late})
	if id, err := b.Next(until); err != nil || !old().Parts(id).Time.Equal(until) {
		t.Errorf("Next(%v) with Until %v = %d, %v; want a key of that tick", until, late, id, err)
	}
	var refused *backfill.RowError
	if id, err := b.Next(late); id != 0 || !errors.As(err, &refused) || !errors.Is(err, backfill.ErrLate) {
		t.Errorf("Next(Until) = %d, %v; want ErrLate", id, err)
	}
}

func TestAnErrorNamesTheFieldOfTheConfig(t *testing.T) {
	for name, c := range map[string]backfill.Config{"Config.Worker": {Worker: 1024}, "Config.Datacenter": {Datacenter: 1}} {
		var bad *core.ValueError
		if _, err := backfill.New(c); !errors.As(err, &bad) || bad.Name != name {
			t.Errorf("New(%+v) = %v; want an error that names %s", c, err, name)
		}
	}
}
