package supply_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	_ "github.com/mattn/go-sqlite3"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/coretest"
	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/internal/base/placement"
	"github.com/snowkey/snowkey/internal/base/supply"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

// Sources of every kind that can be nil. Their methods panic then.
type (
	keyMap   map[int]types.Snowflake
	keySlice []types.Snowflake
	keyChan  chan types.Snowflake
	keyFunc  func() types.Snowflake
	// A sharded pointer would be asked for its shards first.
	keyPointer = *core.Generator
)

func (m keyMap) Next(context.Context) (types.Snowflake, error) { m[0]++; return m[0], nil }

func (s keySlice) Next(context.Context) (types.Snowflake, error) { return s[0], nil }

func (c keyChan) Next(context.Context) (types.Snowflake, error) { return <-c, nil }

func (f keyFunc) Next(context.Context) (types.Snowflake, error) { return f(), nil }

// next is a source without Fill that returns its keys one after the other, and then an error.
type next struct{ keys []types.Snowflake }

var errEnd = errors.New("the end of the keys")

func (n *next) Next(context.Context) (types.Snowflake, error) {
	if len(n.keys) == 0 {
		return 0, errEnd
	}
	id := n.keys[0]
	n.keys = n.keys[1:]
	return id, nil
}

// filled is the same with Fill alone.
type filled struct{ next }

func (f *filled) Next(context.Context) (types.Snowflake, error) {
	return 0, errors.New("Next was called beside Fill")
}

func (f *filled) Fill(ctx context.Context, ids []types.Snowflake) (err error) {
	for i := range ids {
		if ids[i], err = f.next.Next(ctx); err != nil {
			return err
		}
	}
	return nil
}

// ahead is a source that tells how far its keys go, as core.Generator does.
type ahead struct {
	next
	last types.Snowflake
}

func (a *ahead) Max(time.Time) types.Snowflake { return a.last }

// The rows that the plugins fill. Whole is a key by its type, Number by an option.
type (
	Whole  struct{ ID types.Snowflake }
	Number struct{ ID uint }
)

// A plugin fills rows of one kind and returns what it says, with the keys that they have then.
type plugin struct {
	name               string
	none, wide, refuse error
	fill               func(t *testing.T, src supply.Source, integers, wide bool, n int) ([]types.Snowflake, error)
}

func plugins(t *testing.T) []plugin {
	db, err := gorm.Open(sqlite.Open("file:supply?mode=memory&cache=shared"), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		t.Fatal(err)
	}
	pool, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	pool.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = pool.Close() })
	if err := db.AutoMigrate(&Whole{}, &Number{}); err != nil {
		t.Fatal(err)
	}
	whole := func(rows []Whole) (ids []types.Snowflake) {
		for _, r := range rows {
			ids = append(ids, r.ID)
		}
		return ids
	}
	number := func(rows []Number) (ids []types.Snowflake) {
		for _, r := range rows {
			ids = append(ids, types.Snowflake(r.ID))
		}
		return ids
	}
	clean := func(t *testing.T) {
		t.Helper()
		for _, table := range []string{"wholes", "numbers"} {
			if _, err := pool.ExecContext(t.Context(), "DELETE FROM "+table); err != nil {
				t.Fatal(err)
			}
		}
	}
	options := func(integers, wide bool) (g []gormplugin.Option, s []sqlxhelper.Option) {
		if integers {
			g, s = append(g, gormplugin.WithIntegerKeys()), append(s, sqlxhelper.WithIntegerKeys())
		}
		if wide {
			g, s = append(g, gormplugin.WithWideIntegerKeys()), append(s, sqlxhelper.WithWideIntegerKeys())
		}
		return g, s
	}
	return []plugin{
		{"gormplugin.Assign", gormplugin.ErrNoSource, gormplugin.ErrWideKey, gormplugin.ErrBadKey, func(t *testing.T, src supply.Source, integers, wide bool, n int) ([]types.Snowflake, error) {
			opts, _ := options(integers, wide)
			if integers || wide {
				rows := make([]Number, n)
				err := gormplugin.New(src, opts...).Assign(t.Context(), db, rows)
				return number(rows), err
			}
			rows := make([]Whole, n)
			err := gormplugin.New(src, opts...).Assign(t.Context(), db, rows)
			return whole(rows), err
		}},
		{"gormplugin, Use and Create", gormplugin.ErrNoSource, gormplugin.ErrWideKey, gormplugin.ErrBadKey, func(t *testing.T, src supply.Source, integers, wide bool, n int) ([]types.Snowflake, error) {
			opts, _ := options(integers, wide)
			own, err := gorm.Open(sqlite.New(sqlite.Config{Conn: pool}), &gorm.Config{Logger: logger.Discard})
			if err != nil {
				t.Fatal(err)
			}
			if err := own.Use(gormplugin.New(src, opts...)); err != nil {
				return nil, err
			}
			clean(t)
			if integers || wide {
				rows := make([]Number, n)
				err := own.Create(&rows).Error
				return number(rows), err
			}
			rows := make([]Whole, n)
			err = own.Create(&rows).Error
			return whole(rows), err
		}},
		{"sqlxhelper", sqlxhelper.ErrSource, sqlxhelper.ErrWideKey, sqlxhelper.ErrSource, func(t *testing.T, src supply.Source, integers, wide bool, n int) ([]types.Snowflake, error) {
			_, opts := options(integers, wide)
			h, handle := sqlxhelper.New(src, opts...), sqlx.NewDb(pool, "sqlite3")
			clean(t)
			if integers || wide {
				rows := make([]Number, n)
				err := h.InsertMany(t.Context(), handle, "numbers", rows)
				return number(rows), err
			}
			rows := make([]Whole, n)
			err := h.InsertMany(t.Context(), handle, "wholes", rows)
			return whole(rows), err
		}},
	}
}

func TestANilOfEveryKindIsNoSourceInBothPlugins(t *testing.T) {
	for _, p := range plugins(t) {
		for _, src := range []supply.Source{nil, keyPointer(nil), keyMap(nil), keySlice(nil), keyChan(nil), keyFunc(nil), gormplugin.SourceFunc(nil), sqlxhelper.SourceFunc(nil), (*next)(nil)} {
			if _, err := p.fill(t, src, false, false, 2); !errors.Is(err, p.none) {
				t.Errorf("%s with a nil %T = %v; want %v", p.name, src, err, p.none)
			}
		}
	}
	for _, src := range []supply.Source{gormplugin.SourceFunc(nil), sqlxhelper.SourceFunc(nil)} {
		if id, err := src.Next(t.Context()); id != 0 || !errors.Is(err, gormplugin.ErrNoSource) && !errors.Is(err, sqlxhelper.ErrSource) {
			t.Errorf("Next of a nil %T = %d, %v; want an error", src, id, err)
		}
	}
}

func TestWhatIsNoKeyIsRefusedAndLeavesNoKeyInBothPlugins(t *testing.T) {
	const last = 1<<53 - 1
	keys := func(list ...types.Snowflake) []types.Snowflake { return list }
	for name, c := range map[string]struct {
		keys           []types.Snowflake
		integers, wide bool
		says           string // of an error; "" for none
		is             func(p plugin) error
	}{
		"keys":                         {keys(1, 2, 3), false, false, "", nil},
		"the largest key":              {keys(1, 2, math.MaxInt64), false, false, "", nil},
		"zero":                         {keys(1, 0, 3), false, false, "key 2 of 3 is 0, want 1 or larger", func(p plugin) error { return p.refuse }},
		"a negative key":               {keys(1, 2, -5), false, false, "key 3 of 3 is -5, want 1 or larger", func(p plugin) error { return p.refuse }},
		"an error at the last key":     {keys(1, 2), false, false, "3 keys", func(plugin) error { return errEnd }},
		"the last of 53 bits":          {keys(1, 2, last), true, false, "", nil},
		"the first of 54":              {keys(1, last+1, 2), true, false, "key 2 of 3 is 9007199254740992; use the layout core.JavaScript", func(p plugin) error { return p.wide }},
		"the first of 54, wide":        {keys(1, last+1, 2), false, true, "", nil},
		"the first of 54, wide before": {keys(1, last+1, 2), true, true, "", nil},
		"54 bits without the option":   {keys(1, last+1, 2), false, false, "", nil},
	} {
		for _, p := range plugins(t) {
			for _, src := range []supply.Source{&next{slices.Clone(c.keys)}, &filled{next{slices.Clone(c.keys)}}} {
				ids, err := p.fill(t, src, c.integers, c.wide, 3)
				if c.says == "" {
					if err != nil {
						t.Errorf("%s, %s of a %T = %v; want no error", p.name, name, src, err)
					}
					continue
				}
				if err == nil || !errors.Is(err, c.is(p)) || !strings.Contains(err.Error(), c.says) {
					t.Errorf("%s, %s of a %T = %v; want %v: %s", p.name, name, src, err, c.is(p), c.says)
				}
				if slices.ContainsFunc(ids, func(id types.Snowflake) bool { return id != 0 }) {
					t.Errorf("%s, %s of a %T leaves the keys %d; want none", p.name, name, src, ids)
				}
			}
		}
	}
}

func TestTakeSetsAllKeysOrNone(t *testing.T) {
	for _, list := range [][]types.Snowflake{{1, 2}, {1, 2, 0}, {1, -1, 3}, {1, 2, 101}, {1, 2, 100}} {
		for _, src := range []supply.Source{&next{slices.Clone(list)}, &filled{next{slices.Clone(list)}}} {
			s, err := supply.New(src, 100)
			if err != nil {
				t.Fatal(err)
			}
			ids := make([]types.Snowflake, 3)
			if err := s.Take(t.Context(), ids); err == nil && !slices.Equal(ids, list) || err != nil && !slices.Equal(ids, []types.Snowflake{0, 0, 0}) {
				t.Errorf("Take from a %T of %d = %v, with %d; want all keys or none", src, list, err, ids)
			}
		}
	}
}

func TestASourceThatIsTooWideForIntegerKeysIsRefusedInBothPlugins(t *testing.T) {
	const last = 1<<53 - 1
	for _, c := range []struct {
		name           string
		src            func() supply.Source
		integers, wide bool
		refuse         bool
	}{
		{"53 bits to come", func() supply.Source { return &ahead{next{[]types.Snowflake{1}}, last} }, true, false, false},
		{"54 bits to come", func() supply.Source { return &ahead{next{[]types.Snowflake{1}}, last + 1} }, true, false, true},
		{"54 bits to come, wide", func() supply.Source { return &ahead{next{[]types.Snowflake{1}}, math.MaxInt64} }, false, true, false},
		{"the default layout", func() supply.Source { return coretest.NewGenerator(coretest.Config{}) }, true, false, true},
		{"the default layout without the option", func() supply.Source { return coretest.NewGenerator(coretest.Config{}) }, false, false, false},
		{"the layout for JavaScript", func() supply.Source { return coretest.NewGenerator(coretest.Config{Layout: core.JavaScript()}) }, true, false, false},
	} {
		for _, p := range plugins(t) {
			_, err := p.fill(t, c.src(), c.integers, c.wide, 1)
			if c.refuse != errors.Is(err, p.wide) || c.refuse != (err != nil) || c.refuse && !strings.Contains(err.Error(), "goes up to") {
				t.Errorf("%s with %s = %v; want ErrWideKey that says how far it goes: %v", p.name, c.name, err, c.refuse)
			}
		}
	}
}

func TestShardsOfASupplyAreThoseOfItsSource(t *testing.T) {
	layout := core.Default()
	layout.ShardBits = 4
	sharded, err := supply.New(coretest.NewGenerator(coretest.Config{Layout: layout}), math.MaxInt64)
	if err != nil || !sharded.Sharded() {
		t.Fatalf("New = %v, %v; want a supply with shards", sharded, err)
	}
	for _, src := range []supply.Source{coretest.NewGenerator(coretest.Config{}), &next{}} {
		if plain, err := supply.New(src, math.MaxInt64); err != nil || plain.Sharded() {
			t.Errorf("New(%T) = %v, %v; want one without shards", src, plain, err)
		}
	}
	if (*supply.Supply)(nil).Sharded() {
		t.Error("a nil Supply has shards; want none")
	}
	var outside *core.ValueError
	for _, c := range []struct {
		ctx  context.Context
		want int64
		fail bool
	}{{t.Context(), placement.None, false}, {core.OnShard(t.Context(), 0), 0, false}, {core.OnShardOf(t.Context(), 1<<20|9), 9, false}, {core.OnShard(t.Context(), 16), placement.None, true}} {
		if got, err := sharded.Wish(c.ctx); got != c.want || errors.As(err, &outside) != c.fail {
			t.Errorf("Wish = %d, %v; want %d, and a *core.ValueError: %v", got, err, c.want, c.fail)
		}
	}
	id := types.Snowflake(123<<4 | 5)
	if on := sharded.On(14, id); sharded.Shard(id) != 5 || sharded.Shard(on) != 14 || on>>4 != id>>4 {
		t.Errorf("On(14, %d) = %d, on shard %d; want the same key on shard 14", id, on, sharded.Shard(on))
	}
	seen, shard := map[int64]bool{}, int64(3)
	for range 16 {
		seen[shard], shard = true, sharded.Step(shard)
	}
	if len(seen) != 16 || shard != 3 {
		t.Errorf("16 steps lead to the shards %v and back to %d; want all 16, and 3", fmt.Sprint(seen), shard)
	}
}

// What the generator says of a call without a key is said once, and the number agrees with its noun.
func TestTheErrorOfASourceIsSaidOnceByBothPlugins(t *testing.T) {
	gen, err := core.New(core.Config{Worker: core.StaticWorker(1)})
	if err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	cancelled := gormplugin.SourceFunc(func(context.Context) (types.Snowflake, error) { return gen.Next(over) })
	for n, want := range map[int]string{1: "take 1 key", 3: "take 3 keys"} {
		for _, p := range plugins(t) {
			_, err := p.fill(t, cancelled, false, false, n)
			if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), ": "+want) || !strings.HasSuffix(err.Error(), ": context canceled") || strings.Contains(err.Error(), "core: ") {
				t.Errorf("%s, %d keys = %v; want %s, and context canceled once", p.name, n, err, want)
			}
		}
	}
	if err := gen.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, p := range plugins(t) {
		_, err := p.fill(t, gen, false, false, 1)
		if !errors.Is(err, core.ErrClosed) || !strings.HasSuffix(err.Error(), ": core: generator is closed") || strings.Contains(err.Error(), "no ID") {
			t.Errorf("%s of a closed generator = %v; want the error of core once", p.name, err)
		}
	}
	for name, err := range map[string]error{"Next": second(gen.Next(t.Context())), "Fill": gen.Fill(t.Context(), make([]types.Snowflake, 1))} {
		if err == nil || err.Error() != "core: generator is closed" {
			t.Errorf("%s of a closed generator = %v; want the sentinel alone", name, err)
		}
	}
}

func second(_ types.Snowflake, err error) error { return err }

// foreign is a source of somebody else, with 16 shards, that has any shard for a context.
type foreign struct {
	next
	shard int64
}

func (foreign) ShardBits() int { return 4 }

func (f foreign) ShardFrom(context.Context) (int64, bool, error) { return f.shard, true, nil }

func TestAShardThatIsNoneIsRefused(t *testing.T) {
	for shard, valid := range map[int64]bool{-1: false, 0: true, 15: true, 16: false, math.MinInt64: false} {
		s, err := supply.New(&foreign{shard: shard}, math.MaxInt64)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Wish(t.Context())
		if want := map[bool]int64{true: shard, false: placement.None}[valid]; got != want || (err == nil) != valid {
			t.Errorf("Wish() = %d, %v for shard %d of 16; want %d, an error: %v", got, err, shard, want, !valid)
		}
	}
}
