package etcdlease

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/snowkey/snowkey/core/lease/leasestore"
)

func TestSpaceIsMadeInOneTransaction(t *testing.T) {
	for _, workers := range []int64{1, 63, 64, 65, 1024, 65_536} {
		p := shared(t)
		s, kv := p.hook(t)
		var writes [][]clientv3.Op
		kv.before = func(c call) {
			if c.writes() {
				writes = append(writes, c.then)
			}
		}
		sp := four
		sp.Workers = workers
		c := claimOf(sp)
		r := hold(t, s, c)
		if len(writes) != 2 || len(writes[0]) > 128 {
			t.Errorf("the first claim of %d workers has %d transactions that write; want 2, none of more than 128 writes", workers, len(writes))
		}
		rows := rowsOf(t, s, sp)
		for i, row := range rows {
			if want := (leasestore.Row{Worker: int64(i)}); row != want && row != r.Row {
				t.Fatalf("row %d = %+v; want %+v", i, row, want)
			}
		}
		if int64(len(rows)) != workers {
			t.Errorf("Rows = %d rows; want %d", len(rows), workers)
		}
	}
}

// A hundred processes with separate clients start for the first time.
func TestHundredFirstStartsShareASpace(t *testing.T) {
	p := shared(t)
	sp := four
	sp.Workers = 300
	const processes = 100
	stores := make([]*Store, processes)
	for i := range stores {
		stores[i] = p.store(t)
	}
	var mu sync.Mutex // guards owners
	var wg sync.WaitGroup
	owners := map[int64]string{}
	for i, s := range stores {
		wg.Go(func() {
			c := claimOf(sp)
			r, err := s.Claim(t.Context(), c)
			mu.Lock()
			defer mu.Unlock()
			if other, taken := owners[r.Row.Worker]; err != nil || taken {
				t.Errorf("Claim by process %d = %+v, %v; want a row that %q has not", i, r, err, other)
			}
			owners[r.Row.Worker] = c.Owner
		})
	}
	wg.Wait()
	rows := rowsOf(t, stores[0], sp)
	for _, row := range rows {
		if row.Owner != owners[row.Worker] {
			t.Errorf("row %+v; want owner %q", row, owners[row.Worker])
		}
	}
	if len(rows) != 300 {
		t.Errorf("Rows = %d rows; want 300", len(rows))
	}
}

// The worst of ten thousand first claims at once: those that draw the same block. If a worker left
// the list at a time, each claim would send all others back, which is 5,000 writes for a hundred.
func TestFirstClaimsOnOneListTakeFewTurns(t *testing.T) {
	const claims = 100
	p := shared(t)
	sp := four
	sp.Workers = 32_768
	hold(t, p.store(t), claimOf(sp, 0)) // makes the space
	client := p.client(t)
	var writes, rows atomic.Int64
	client.KV = &hooked{KV: client.KV, before: func(c call) {
		if c.writes() {
			writes.Add(1)
		}
	}, after: func(c call, reply *clientv3.TxnResponse, err error) (*clientv3.TxnResponse, error) {
		for _, got := range reply.OpResponse().Txn().Responses {
			rows.Add(int64(len(got.GetResponseRange().GetKvs())))
		}
		return reply, err
	}}
	inBlock7 := func() leasestore.Claim {
		c := claimOf(sp)
		for blocksOf(sp, leasestore.Hint{}, (&leasestore.Hint{Owner: c.Owner}).Random())[0] != 7 {
			c.Owner = token()
		}
		return c
	}
	var running sync.WaitGroup
	for range claims {
		c, store := inBlock7(), p.storeOn(t, client) // a process of its own: one store has few claims under way
		running.Go(func() {
			if _, err := store.Claim(t.Context(), c); err != nil {
				t.Errorf("Claim = %v; want a row", err)
			}
		})
	}
	running.Wait()
	if most := int64(10 * claims); writes.Load() > most {
		t.Errorf("%d claims have made %d attempts to write; want at most %d", claims, writes.Load(), most)
	}

	// A claim among rows that all have keys reads a part of them.
	for {
		fresh, ok := decodeFresh([]byte(p.get(t, p.keys().freshKey(sp, 7))), 7)
		if !ok || len(fresh) == 0 {
			break
		}
		hold(t, p.store(t), claimOf(sp, fresh[0]))
	}
	rows.Store(0)
	if hold(t, p.storeOn(t, client), inBlock7()); rows.Load() > 67 {
		t.Errorf("a claim of one of %d rows has read %d keys; want at most 64 rows, the space, its layout and the list", sp.Workers/blocks, rows.Load())
	}
}

// An old list that was put back names workers that have rows.
func TestWorkersThatLeaveAListKeepTheirRows(t *testing.T) {
	p := shared(t)
	s := p.store(t)
	sp := four
	sp.Workers = 1024
	held := hold(t, s, claimOf(sp, 71))
	p.remove(t, p.keys().rowKey(sp, 7))
	p.put(t, p.keys().freshKey(sp, 7), "[7,71,135,199]")
	hold(t, s, claimOf(sp, 7)) // 71 leaves the list with it
	rows := rowsOf(t, s, sp)
	if i := slices.IndexFunc(rows, func(row leasestore.Row) bool { return row.Worker == 71 }); i < 0 || rows[i] != held.Row {
		t.Errorf("the row of a worker on an old list is not %+v, as before", held.Row)
	}
}

// Two processes with different layouts start for the first time, in two datacenters.
func TestFirstClaimOfTwoLayoutsDecides(t *testing.T) {
	p := shared(t)
	here, there := four, four
	there.Datacenter++
	there.Layout = "another"
	s, kv := p.hook(t)
	other := p.store(t)
	kv.before = once(func() { hold(t, other, claimOf(there)) })
	if r, err := s.Claim(t.Context(), claimOf(here)); !errors.Is(err, leasestore.ErrLayout) {
		t.Errorf("Claim with a layout that was not the first = %+v, %v; want an error that matches lease.ErrLayout", r, err)
	}
	if rows := rowsOf(t, s, here); len(rows) != 0 {
		t.Errorf("Rows after a refused claim = %+v; want none", rows)
	}
}

// A claim reads a part of a large space first. If it is delivered twice, the second delivery
// reads the same part and takes no second row.
func TestClaimThatIsDeliveredTwiceInALargeSpaceHoldsOneRow(t *testing.T) {
	p := shared(t)
	s, again := p.store(t), p.store(t)
	sp := four
	sp.Workers = 1024
	for range 5 {
		c := claimOf(sp)
		first := hold(t, s, c)
		if second, err := again.Claim(t.Context(), c); err == nil || errors.Is(err, leasestore.ErrNoFreeWorker) {
			t.Errorf("Claim delivered twice = %+v, then %+v, %v; want an error that says nothing of the first", first, second, err)
		}
		held := slices.DeleteFunc(rowsOf(t, s, sp), func(row leasestore.Row) bool { return row.Owner != c.Owner })
		if len(held) != 1 || held[0] != first.Row {
			t.Errorf("the rows of a claim delivered twice are %+v; want %+v", held, first.Row)
		}
	}
}

// Every row of a large space but one is held, and the claim finds that one.
func TestClaimFindsTheOnlyFreeRow(t *testing.T) {
	p := shared(t)
	s := p.store(t)
	sp := four
	sp.Workers = 300
	hold(t, s, claimOf(sp, 0))
	// As if all other rows had been claimed long ago.
	v, err := s.Register().Read(t.Context(), sp, nil)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for block := range int64(blocks) {
		wg.Go(func() {
			for _, seen := range v.Rows {
				if seen.Row.Worker%blocks != block || seen.Row.Worker == 0 || seen.Row.Worker == 177 {
					continue
				}
				c := claimOf(sp)
				next, _ := c.Apply(seen.Row, c.Now)
				now, err := s.Register().Read(t.Context(), sp, []int64{seen.Row.Worker}) // its block's list has changed
				if err != nil {
					t.Error(err)
					return
				}
				if written, err := s.Register().Swap(t.Context(), sp, now.Rows[0], next); !written || err != nil {
					t.Errorf("Swap = %v, %v; want true", written, err)
				}
			}
		})
	}
	wg.Wait()
	if r := hold(t, s, claimOf(sp)); r.Row.Worker != 177 {
		t.Errorf("Claim = %+v; want worker 177, the only one that is free", r)
	}
	var full *leasestore.NoFreeWorkerError
	if _, err := s.Claim(t.Context(), claimOf(sp)); !errors.As(err, &full) || full.Rows != 300 {
		t.Errorf("Claim when all is held = %v; want no free worker of 300", err)
	}
}

func TestRestOfADeletedSpaceIsRefused(t *testing.T) {
	for name, remove := range map[string]func(p place){
		"the key of the space": func(p place) { p.remove(t, p.keys().spaceKey(four)) },
		"the layout":           func(p place) { p.remove(t, p.keys().layoutKey(four)) },
		"both":                 func(p place) { p.remove(t, p.keys().spaceKey(four)); p.remove(t, p.keys().layoutKey(four)) },
	} {
		p := shared(t)
		s := p.store(t)
		c := claimOf(four, 1)
		r := hold(t, s, c)
		remove(p)
		before := dump(t, p)
		for what, call := range map[string]func() error{
			"Claim": func() error { _, err := s.Claim(t.Context(), claimOf(four)); return err },
			"Fence": func() error { return s.Fence(t.Context(), leasestore.Fencing{Space: four, Nonce: token()}) },
		} {
			if err := call(); !errors.Is(err, ErrDamaged) || !errors.Is(err, leasestore.ErrPermanent) || !strings.HasPrefix(err.Error(), "etcdlease: ") {
				t.Errorf("%s without %s = %v; want an error that matches ErrDamaged", what, name, err)
			}
		}
		if after := dump(t, p); !slices.Equal(after, before) {
			t.Errorf("the keys without %s = %q; want as before, %q", name, after, before)
		}
		if _, err := s.Renew(t.Context(), renewalOf(c, r)); name != "the key of the space" && err == nil {
			t.Errorf("Renew without %s = nil; want an error: another layout may come", name)
		} else if name == "the key of the space" && err != nil {
			t.Errorf("Renew without %s = %v; want no error, as row and layout are there", name, err)
		}
	}
}

// dump returns every key of a place with its value.
func dump(t *testing.T, p place) (all []string) {
	t.Helper()
	reply, err := p.client(t).Get(t.Context(), p.prefix, clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range reply.Kvs {
		all = append(all, fmt.Sprintf("%s=%s", kv.Key, kv.Value))
	}
	return all
}

func TestDamagedRowIsLostAndPassedOver(t *testing.T) {
	for name, damage := range map[string]func(p place, key string){
		"another value":     func(p place, key string) { p.put(t, key, "x") },
		"no value":          func(p place, key string) { p.put(t, key, "") },
		"a later version":   func(p place, key string) { p.put(t, key, strings.Replace(p.get(t, key), "{", `{"v":2,`, 1)) },
		"another's row":     func(p place, key string) { p.put(t, key, encodeRow(leasestore.Row{Worker: 2}, 0)) },
		"an old list":       func(p place, _ string) { p.put(t, p.keys().freshKey(four, 1), "[1]") },
		"a spoiled list":    func(p place, key string) { p.remove(t, key); p.put(t, p.keys().freshKey(four, 1), "[1, 65]") },
		"a list of another": func(p place, key string) { p.remove(t, key); p.put(t, p.keys().freshKey(four, 1), "[2]") },
	} {
		p := shared(t)
		s := p.store(t)
		c := claimOf(four, 1)
		r := hold(t, s, c)
		damage(p, p.keys().rowKey(four, 1))
		before := dump(t, p)
		_, err := s.Renew(t.Context(), renewalOf(c, r))
		if !errors.Is(err, leasestore.ErrLost) || !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: Renew = %v; want it lost, for ErrDamaged", name, err)
		}
		if err := s.Release(t.Context(), releaseOf(c, r)); !errors.Is(err, leasestore.ErrLost) || !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: Release = %v; want it lost, for ErrDamaged", name, err)
		}
		if _, _, err := s.Rows(t.Context(), four); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: Rows = %v; want an error that matches ErrDamaged", name, err)
		}
		if _, err := s.Claim(t.Context(), claimOf(four, 1)); !errors.Is(err, leasestore.ErrNoFreeWorker) || !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: Claim(Only 1) = %v; want no free worker, and ErrDamaged", name, err)
		}
		if after := dump(t, p); !slices.Equal(after, before) {
			t.Errorf("%s: the keys are %q; want as before, %q", name, after, before)
		}
		for range 3 {
			if r := hold(t, s, claimOf(four)); r.Row.Worker == 1 {
				t.Errorf("%s: Claim = %+v; want another row", name, r)
			}
		}
		if err := s.Fence(t.Context(), leasestore.Fencing{Space: four, Nonce: token()}); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: Fence = %v; want an error that matches ErrDamaged", name, err)
		}
		p.remove(t, p.keys().freshKey(four, 1))
		_, _ = p.client(t).Delete(t.Context(), p.keys().rowKey(four, 1)) // it may be gone
		if rows := rowsOf(t, s, four); len(rows) != 3 || rows[0].Owner+rows[1].Owner+rows[2].Owner != "" {
			t.Errorf("%s: Rows after Fence = %+v; want the three others fenced", name, rows)
		}
	}
}

func TestDamagedLayoutIsRefused(t *testing.T) {
	p := shared(t)
	s := p.store(t)
	hold(t, s, claimOf(four))
	p.put(t, p.keys().layoutKey(four), "x")
	if _, err := s.Claim(t.Context(), claimOf(four)); !errors.Is(err, ErrDamaged) || !errors.Is(err, leasestore.ErrPermanent) {
		t.Errorf("Claim with a damaged layout = %v; want an error that matches ErrDamaged", err)
	}
}
