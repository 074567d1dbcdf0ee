package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/lease/sqllease"
	"github.com/snowkey/snowkey/types"
)

// tried is a namespace in which a program with the default layout has made one key.
func (p leasePlace) tried(t *testing.T, store lease.Store, shop string) (key types.Snowflake, worker int64) {
	t.Helper()
	l, err := p.as(t, store, shop, core.Default())
	if err != nil {
		t.Fatal(err)
	}
	gen, err := core.New(core.Config{Worker: l})
	if err != nil {
		t.Fatal(err)
	}
	key, err = gen.Next(t.Context())
	if err := errors.Join(err, gen.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	return key, core.Default().Parts(key).Worker
}

// as takes a lease with a layout, for core.New.
func (p leasePlace) as(t *testing.T, store lease.Store, shop string, layout core.Layout) (*lease.Lease, error) {
	t.Helper()
	return lease.Acquire(t.Context(), store, lease.Config{Namespace: shop, Layout: layout, Window: 10 * time.Second, Logger: silent, MaxClockSkew: time.Minute, LossGuard: -1})
}

// age lets the lease of a worker number have begun two hours ago, and have ended an hour ago. Without
// known nothing is on record.
func (p leasePlace) age(t *testing.T, shop string, worker int64, known bool) {
	t.Helper()
	now := time.Now()
	record := ""
	if known {
		record = fmt.Sprintf("1\t%d\t0\tweb\n", now.Add(-2*time.Hour).UnixMilli())
	}
	where := fmt.Sprintf(" WHERE namespace = '%s' AND worker = %d", shop, worker)
	openURL(t, p.url).exec(t,
		fmt.Sprintf("UPDATE %s SET epoch = 2, owner = '', nonce = '', holder = '', reserved_until = %d", p.table, now.Add(-time.Hour).UnixMilli())+where,
		fmt.Sprintf("UPDATE %s_past SET records = '%s'", p.table, record)+where)
}

func onSQLLeases(t *testing.T, test func(t *testing.T, p leasePlace)) {
	t.Helper()
	onLeases(t, func(t *testing.T, p leasePlace) {
		if _, ok := p.open(t).leaseStore.(*sqllease.Store); ok {
			test(t, p)
		}
	})
}

func TestTheErrorOfAnotherLayoutNamesTheCommandThatEmptiesTheNamespace(t *testing.T) {
	onSQLLeases(t, func(t *testing.T, p leasePlace) {
		store, shop, other := p.open(t), namespace(t), namespace(t)
		key, worker := p.tried(t, store, shop)
		p.tried(t, store, other)
		_, err := p.as(t, store, shop, core.JavaScript())
		command := regexp.MustCompile("`snowkey workers (-namespace .* empty)`").FindStringSubmatch(fmt.Sprint(err))
		if !errors.Is(err, lease.ErrLayout) || command == nil {
			t.Fatalf("Acquire with another layout = %v; want ErrLayout that names a command", err)
		}
		stored := func() string {
			rows, _, err := store.Rows(t.Context(), leasestore.Space{Namespace: shop, Workers: 1024, Layout: lease.Fingerprint(core.Default())})
			return fmt.Sprint(rows, err)
		}
		before := stored()
		if _, bad, code := p.on(t, "-yes "+command[1], ""); code != 1 || !strings.Contains(bad, fmt.Sprintf("worker %d of namespace %s was in use at ", worker, shop)) || !strings.Contains(bad, "Z, and was given back: stop all programs") || stored() != before {
			t.Errorf("empty just after the lease = %s, %d; want the number that was in use, and no change", bad, code)
		}
		p.age(t, shop, worker, true)
		before = stored()
		if _, bad, code := p.on(t, command[1], "n\n"); code != 1 || !strings.Contains(bad, "Empty namespace "+shop) || stored() != before {
			t.Errorf("empty with the answer n = %s, %d; want the question, and no change", bad, code)
		}
		began := time.Now()
		out, bad, code := p.on(t, "-yes "+command[1], "")
		if code != 0 || !strings.Contains(out, "1024 worker numbers") || !strings.Contains(out, "and 64 of the layout") {
			t.Fatalf("empty = %s%s, %d; want the numbers of both layouts", out, bad, code)
		}
		if _, err := p.as(t, store, shop, core.Default()); !errors.Is(err, lease.ErrLayout) {
			t.Errorf("Acquire with the old layout = %v; want ErrLayout", err)
		}
		l, err := p.as(t, store, shop, core.JavaScript())
		if err != nil {
			t.Fatalf("Acquire with the new layout = %v; want no error", err)
		}
		gen, err := core.New(core.Config{Worker: l, Layout: core.JavaScript()})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = gen.Close(context.Background()) }()
		next, err := gen.Next(t.Context())
		if at := core.JavaScript().Parts(next).Time; err != nil || next == key || at.Before(began.Truncate(time.Second).Add(-time.Second)) {
			t.Errorf("Next = %d of %s, %v; want a key from %s on", next, at, err, began)
		}
		if _, err := p.as(t, store, other, core.JavaScript()); !errors.Is(err, lease.ErrLayout) {
			t.Errorf("Acquire in another namespace = %v; want ErrLayout as before", err)
		}
		if out, bad, code := p.on(t, "-yes "+command[1], ""); code != 0 || !strings.Contains(out, "nothing to do") {
			t.Errorf("empty once more = %s%s, %d; want nothing to do", out, bad, code)
		}
	})
}

func TestEmptyRefusesWhatCouldRepeatAKey(t *testing.T) {
	onSQLLeases(t, func(t *testing.T, p leasePlace) {
		store := p.open(t)
		const js = "-yes -layout javascript -namespace "
		for name, c := range map[string]struct {
			prepare func(shop string, worker int64)
			flags   string
			want    string
		}{
			"a lease that lives": {func(shop string, _ int64) {
				l, err := p.as(t, store, shop, core.Default())
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = l.Close(context.Background()) })
			}, "", "was in use at"},
			"a retired number": {func(shop string, worker int64) {
				if err := lease.Retire(t.Context(), store, lease.Config{Namespace: shop, Layout: core.Default(), LossGuard: -1, Logger: silent}, (worker+1)%1024, "by hand"); err != nil {
					t.Fatal(err)
				}
			}, "", "is retired"},
			"keys of any time":              {func(shop string, worker int64) { p.age(t, shop, worker, false) }, "", "keys could repeat"},
			"keys of any time, none stored": {func(shop string, worker int64) { p.age(t, shop, worker, false) }, "-above 0 ", ""},
		} {
			shop := namespace(t)
			_, worker := p.tried(t, store, shop)
			p.age(t, shop, worker, true)
			c.prepare(shop, worker)
			_, bad, code := p.on(t, c.flags+js+shop+" empty", "")
			if (code == 0) != (c.want == "") || !strings.Contains(bad, c.want) {
				t.Errorf("%s: empty = %s, %d; want %q", name, bad, code, c.want)
			}
			if _, err := p.as(t, store, shop, core.JavaScript()); errors.Is(err, lease.ErrLayout) != (c.want != "") {
				t.Errorf("%s: Acquire with the new layout = %v; want ErrLayout: %v", name, err, c.want != "")
			}
			if c.want == "" { // keys of the first layout may be those of a third one, and nothing tells their times
				if _, bad, code := p.on(t, "-yes -layout default -above 0 -namespace "+shop+" empty", ""); code == 0 || !strings.Contains(bad, "was emptied before") {
					t.Errorf("%s: empty again, for the first layout = %s, %d; want it refused", name, bad, code)
				}
			}
		}
		shop := namespace(t)
		_, worker := p.tried(t, store, shop)
		s := leasestore.Space{Namespace: shop, Workers: 1024, Layout: lease.Fingerprint(core.Default())}
		rows, now, err := store.Rows(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.as(t, store, shop, core.Default()); err != nil { // after the rows were read
			t.Fatal(err)
		}
		to := leasestore.Space{Namespace: shop, Workers: 64, Layout: lease.Fingerprint(core.JavaScript())}
		if err := store.leaseStore.(*sqllease.Store).Relayout(t.Context(), s, to, rows, now); !errors.Is(err, leasestore.ErrLost) {
			t.Errorf("Relayout with a lease since worker %d was read = %v; want ErrLost", worker, err)
		}
		if _, err := p.as(t, store, shop, core.JavaScript()); !errors.Is(err, lease.ErrLayout) {
			t.Errorf("Acquire with the new layout afterwards = %v; want ErrLayout", err)
		}
	})
}

func TestEmptyIsForSQLDatabases(t *testing.T) {
	onLeases(t, func(t *testing.T, p leasePlace) {
		store, shop := p.open(t), namespace(t)
		if _, ok := store.leaseStore.(*sqllease.Store); ok {
			return
		}
		hold(t, store, shop, 1, "web")
		if _, bad, code := p.on(t, "-yes -layout javascript empty", ""); code != 2 || !strings.Contains(bad, "use a namespace of another name") {
			t.Errorf("empty = %s, %d; want the way out", bad, code)
		}
	})
}

// The oracle makes every key of some ticks of one layout, and reads it as the other one does.
func TestLayoutsAreApartOnlyIfNoKeyIsOfBoth(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 7))
	layout := func() core.Layout {
		l := core.Layout{Unit: time.Duration(1+r.IntN(3)) * time.Millisecond, TimeBits: 4 + r.IntN(5), WorkerBits: 1 + r.IntN(3), SequenceBits: 1 + r.IntN(3)}
		l.Epoch = core.Default().Epoch.Add(time.Duration(r.IntN(40)) * time.Millisecond)
		return l
	}
	apart, together := 0, 0
	for range 2_000 {
		old, next := layout(), layout()
		base := leasestore.MillisOf(core.Default().Epoch)
		from := base + leasestore.Millis(r.IntN(200))
		until := from + leasestore.Millis(r.IntN(20))
		now := until + leasestore.Millis(r.IntN(100))
		m := madeKeys{layout: old, from: from, until: until, most: -1}
		repeats := false
		for k := types.Snowflake(0); k <= old.Max(old.Exhausted()); k++ {
			at := old.Parts(k).Time // of its tick, which may contain from
			if !at.Add(old.Unit).After(from.Time()) || !at.Before(until.Time()) {
				continue
			}
			// As next reads it: a key that it has, of the tick of now or a later one.
			if k <= next.Max(next.Exhausted()) && next.Parts(k).Time.Add(next.Unit).After(now.Time()) {
				repeats = true
			}
		}
		switch err := m.apart(next, now); {
		case err == nil && repeats:
			t.Fatalf("%+v from %d until %d and %+v from %d on are apart; want them refused, because a key is of both", old, from-base, until-base, next, now-base)
		case err == nil:
			apart++
		default:
			together++
		}
	}
	if apart < 50 || together < 50 {
		t.Errorf("%d pairs are apart and %d are not; want enough of both", apart, together)
	}
}
