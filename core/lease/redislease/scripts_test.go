package redislease_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/lease/redislease"
)

func space(namespace string, workers int64) leasestore.Space {
	return leasestore.Space{Namespace: namespace, Datacenter: 1, Workers: workers, Layout: "a layout"}
}

// newClaim returns a claim for longer than any test takes.
func newClaim(s leasestore.Space) leasestore.Claim {
	return leasestore.Claim{Space: s, Owner: token(), Nonce: token(), Window: 600_000, Now: leasestore.MillisOf(time.Now()), Skew: 600_000, Guard: 100}
}

// renewal returns the next renewal by the claim's holder.
func renewal(c leasestore.Claim, held leasestore.Reply) leasestore.Renewal {
	now := leasestore.MillisOf(time.Now())
	return leasestore.Renewal{
		Space: c.Space, Worker: held.Row.Worker, Epoch: held.Row.Epoch, Owner: c.Owner,
		Known: []string{held.Row.Nonce}, Nonce: token(),
		Next: now, Until: held.Row.Until, Window: c.Window, Now: now, Skew: c.Skew, Guard: c.Guard,
	}
}

func release(c leasestore.Claim, held leasestore.Reply) leasestore.Release {
	return leasestore.Release{
		Space: c.Space, Worker: held.Row.Worker, Epoch: held.Row.Epoch, Owner: c.Owner,
		Known: []string{held.Row.Nonce}, Nonce: token(), End: c.From(held),
	}
}

func mustClaim(t *testing.T, s *redislease.Store, c leasestore.Claim) leasestore.Reply {
	t.Helper()
	reply, err := s.Claim(t.Context(), c)
	if err != nil {
		t.Fatalf("Claim(%+v) = %v; want a row", c, err)
	}
	return reply
}

func mustRenew(t *testing.T, s *redislease.Store, r leasestore.Renewal) leasestore.Reply {
	t.Helper()
	reply, err := s.Renew(t.Context(), r)
	if err != nil {
		t.Fatalf("Renew(%+v) = %v; want it renewed", r, err)
	}
	return reply
}

func rowsOf(t *testing.T, s *redislease.Store, in leasestore.Space) []leasestore.Row {
	t.Helper()
	rows, _, err := s.Rows(t.Context(), in)
	if err != nil {
		t.Fatalf("Rows(%+v) = %v; want rows", in, err)
	}
	return rows
}

// put writes a row by hand.
func (p place) put(t *testing.T, client *redis.Client, s leasestore.Space, row leasestore.Row) {
	t.Helper()
	text := fmt.Sprintf("%d,%s,%s,%d,%d,0,%s", row.Epoch, row.Owner, row.Nonce, row.Until, row.Renewals, row.Holder)
	if err := client.HSet(t.Context(), p.rowKey(s), row.Worker, text).Err(); err != nil {
		t.Fatal(err)
	}
}

// The scripts say in Lua what package lease says in Go. Random rows and requests find where
// they differ, among them rows that no sequence of operations leads to. Values are chosen to
// coincide often, at the edges of each comparison, and beyond what a C long of 32 bits or 14
// digits can hold.
func TestScriptsDoWhatThePureFunctionsSay(t *testing.T) {
	p := shared(t)
	client := p.client(t)
	s := p.storeOn(t, client)
	in := space("n", 3)
	mustClaim(t, s, newClaim(in))
	var now leasestore.Millis

	rng := rand.New(rand.NewPCG(1, 0)) // the same in every run: a release must not depend on luck
	pick := func(texts ...string) string { return texts[rng.IntN(len(texts))] }
	// The store's clock cannot be set and advances between two lines. No sum of the lengths is
	// therefore within 20 s of the present, and no machine is that slow.
	length := func() leasestore.Millis { return []leasestore.Millis{0, 1, 100_000, 500_000, 4_000_000}[rng.IntN(5)] }
	moment := func() leasestore.Millis {
		far := []leasestore.Millis{0, 100_000, 400_000, 600_000, 1_000_000, 3_600_000, 7_300_000, 1 << 42, 1 << 48}[rng.IntN(9)]
		if rng.IntN(2) == 0 {
			far = -far
		}
		return now + far + []leasestore.Millis{-30_000, 20_000, 30_000}[rng.IntN(3)]
	}
	epoch := func() int64 { return []int64{0, 1, 2, 1 << 31, 1 << 50}[rng.IntN(5)] }
	const rounds = 3000
	seen := map[string]int{} // how often which outcome
	for range rounds {
		now = leasestore.MillisOf(time.Now())
		rows := make([]leasestore.Row, in.Workers)
		for i := range rows {
			rows[i] = leasestore.Row{
				Worker: int64(i), Epoch: epoch(), Owner: pick("", "a", "b"), Nonce: pick("", "m", "n"),
				Until: moment(), Renewals: epoch(), Holder: pick("", "host, 1"),
			}
			p.put(t, client, in, rows[i])
		}
		row := rows[rng.IntN(len(rows))]
		var want, got string
		switch rng.IntN(3) {
		case 0:
			c := leasestore.Claim{Space: in, Owner: "c" + token()[:8], Nonce: token(), Holder: pick("", "web-1"), Window: 100_000 + length(), Now: now + 30_000*leasestore.Millis(rng.IntN(3)-1), Skew: 50_000 + length(), Guard: length()}
			if rng.IntN(3) == 0 {
				c.Only = []int64{row.Worker, row.Worker, 99, -1}[rng.IntN(2):]
			}
			reply, err := s.Claim(t.Context(), c)
			if err == nil {
				found := rows[reply.Row.Worker]
				row, ok := c.Apply(found, reply.Now)
				want, got = fmt.Sprint(row, found.Until, ok), fmt.Sprint(reply.Row, reply.Before, true)
				seen["claimed"]++
				break
			}
			_, wantErr := c.Choose(rows, leasestore.MillisOf(time.Now()), rng.IntN)
			want, got = describe(wantErr), describe(err)
			seen["full"]++
		case 1:
			r := leasestore.Renewal{
				Space: in, Worker: row.Worker, Epoch: row.Epoch, Owner: row.Owner, Known: []string{"x", row.Nonce}, Nonce: token(),
				Next: moment(), Until: moment(), Window: length(), Now: now + length()*leasestore.Millis(rng.IntN(3)-1), Skew: length() + 50_000, Guard: length(),
			}
			stale(rng, &r.Epoch, &r.Owner, &r.Known)
			reply, err := s.Renew(t.Context(), r)
			at := reply.Now
			if err != nil {
				at = now
			}
			row, wantErr := r.Apply(row, at)
			want, got = fmt.Sprint(row, describe(wantErr)), fmt.Sprint(reply.Row, describe(err))
			seen["renewal: "+reasonOf(err)]++
			if err == nil && reply.Before != rows[r.Worker].Until {
				t.Errorf("Renew(%+v).Before = %d; want %d", r, reply.Before, rows[r.Worker].Until)
			}
		case 2:
			r := leasestore.Release{
				Space: in, Worker: row.Worker, Epoch: row.Epoch, Owner: row.Owner, Known: []string{"x", row.Nonce}, Nonce: token(), End: moment(),
			}
			stale(rng, &r.Epoch, &r.Owner, &r.Known)
			err := s.Release(t.Context(), r)
			after, wantErr := r.Apply(row)
			if wantErr != nil {
				after = row
			}
			seen["release: "+reasonOf(err)]++
			want, got = fmt.Sprint(after, describe(wantErr)), fmt.Sprint(rowsOf(t, s, in)[row.Worker], describe(err))
		}
		if got != want {
			t.Fatalf("rows %+v: got %s; want %s", rows, got, want)
		}
	}
	for _, outcome := range []string{
		"claimed", "full", "renewal: done", "renewal: " + string(leasestore.TakenOver), "renewal: " + string(leasestore.Copied),
		"renewal: " + string(leasestore.Lapsed), "release: done", "release: " + string(leasestore.TakenOver), "release: " + string(leasestore.Copied),
	} {
		if seen[outcome] == 0 {
			t.Errorf("%d rounds had no outcome %q; want some of each: %v", rounds, outcome, seen)
		}
	}
}

func reasonOf(err error) string {
	var lost *leasestore.LostError
	if errors.As(err, &lost) {
		return string(lost.Reason)
	}
	return "done"
}

// stale occasionally turns a request into one whose sender does not have the row.
func stale(rng *rand.Rand, epoch *int64, owner *string, known *[]string) {
	switch rng.IntN(9) {
	case 0:
		*epoch++
	case 1:
		*owner += "x"
	case 2:
		*known = (*known)[:1]
	case 3:
		*known = nil
	}
}

// describe returns the part of an error that does not depend on the store's clock.
func describe(err error) string {
	var full *leasestore.NoFreeWorkerError
	if errors.As(err, &full) {
		return fmt.Sprintf("full:%s/%d/%d/%v/%v", full.Namespace, full.Datacenter, full.Rows, full.Earliest, full.Ahead)
	}
	return fmt.Sprint(err)
}

func TestRowThatCouldNotBeReadAgainIsNotWritten(t *testing.T) {
	p := shared(t)
	s := p.store(t)
	in := space("n", 2)
	c := newClaim(in)
	held := mustClaim(t, s, c)
	before := rowsOf(t, s, in)
	const most = 1 << 51
	late := release(c, held)
	late.End = most + 1
	long := renewal(c, held)
	long.Window, long.Guard = most, 0
	comma := newClaim(in)
	comma.Nonce = "a,b"
	empty := newClaim(in)
	empty.Nonce = ""
	_, renewErr := s.Renew(t.Context(), long)
	_, commaErr := s.Claim(t.Context(), comma)
	_, emptyErr := s.Claim(t.Context(), empty)
	for name, err := range map[string]error{
		"Release beyond 2^51": s.Release(t.Context(), late), "Renew beyond 2^51": renewErr, "Claim with a comma": commaErr, "Claim without a nonce": emptyErr,
	} {
		if invalid := (*core.ValueError)(nil); !errors.As(err, &invalid) || invalid.Package != "redislease" {
			t.Errorf("%s = %v; want a *core.ValueError of this package", name, err)
		}
	}
	if after := rowsOf(t, s, in); !slices.Equal(after, before) {
		t.Errorf("rows = %+v; want them as before, %+v", after, before)
	}
}

func TestDamagedRowIsRefusedByGoAndLuaAlike(t *testing.T) {
	p := shared(t)
	client := p.client(t)
	s := p.storeOn(t, client)
	in := space("n", 1)
	c := newClaim(in)
	held := mustClaim(t, s, c)
	for _, text := range []string{
		"", "x", ",,,,,,", "1,a,b,2,3,", "1,a,b,2,3,4", "-1,a,b,2,3,4,", "1,a,b,2,-3,4,", "+1,a,b,2,3,4,", " 1,a,b,2,3,4,", "1,a,b,2,3,4 ,",
		"1,a,b,2.0,3,4,", "1,a,b,1e3,3,4,", "0x1,a,b,2,3,4,", "1,a,b,,3,4,", "1,a,b,nan,3,4,", "2251799813685249,a,b,2,3,4,",
		"1,a,b,-2251799813685249,3,4,", "1,a,b,99999999999999999999,3,4,", "1,a,b,2,3,9007199254740993,", "1,a,b,2,3,4,\n", "1,a,b,2,3,4,ä",
	} {
		if err := client.HSet(t.Context(), p.rowKey(in), 0, text).Err(); err != nil {
			t.Fatal(err)
		}
		_, claimErr := s.Claim(t.Context(), newClaim(in))
		_, renewErr := s.Renew(t.Context(), renewal(c, held))
		releaseErr := s.Release(t.Context(), release(c, held))
		_, _, rowsErr := s.Rows(t.Context(), in)
		for call, err := range map[string]error{"Claim": claimErr, "Renew": renewErr, "Release": releaseErr, "Rows": rowsErr} {
			if !errors.Is(err, redislease.ErrDamaged) || !strings.Contains(err.Error(), strconv.Quote(text)) {
				t.Errorf("%s with row %q = %v; want an error that matches ErrDamaged and quotes it", call, text, err)
			}
			// A holder is told to claim another row.
			if lost := call == "Renew" || call == "Release"; errors.Is(err, leasestore.ErrLost) != lost {
				t.Errorf("%s with row %q = %v; want it lost: %v", call, text, err, lost)
			}
		}
		if got := client.HGet(t.Context(), p.rowKey(in), "0").Val(); got != text {
			t.Errorf("row = %q; want it left as it was, %q", got, text)
		}
	}
}

func TestClaimPassesOverDamagedRows(t *testing.T) {
	p := shared(t)
	client := p.client(t)
	s := p.storeOn(t, client)
	in := space("n", 100)
	c := newClaim(in)
	c.Only = []int64{5}
	mustClaim(t, s, c)
	for worker := range int64(100) {
		text := "x"
		if worker%2 == 0 {
			text = "1,,b,2,3,4" // with a readable limit that has passed
		}
		if worker == 77 || worker == 5 {
			continue
		}
		if err := client.HSet(t.Context(), p.rowKey(in), worker, text).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if got := mustClaim(t, s, newClaim(in)); got.Row.Worker != 77 {
		t.Errorf("Claim beside 98 damaged rows = worker %d; want 77", got.Row.Worker)
	}
	if got, err := s.Claim(t.Context(), newClaim(in)); !errors.Is(err, redislease.ErrDamaged) {
		t.Errorf("Claim when all other rows are damaged = %+v, error %v; want an error that matches ErrDamaged", got, err)
	}
}

// When a key disappears, what remains of the space must not be taken for a new space.
func TestRestOfASpaceIsNotMadeAnew(t *testing.T) {
	p := shared(t)
	client := p.client(t)
	s := p.storeOn(t, client)
	for name, remove := range map[string]func(in leasestore.Space) error{
		"settings": func(in leasestore.Space) error { return client.Del(t.Context(), p.settingsKey(in)).Err() },
		"layout":   func(in leasestore.Space) error { return client.HDel(t.Context(), p.settingsKey(in), "layout").Err() },
		"marker":   func(in leasestore.Space) error { return client.HDel(t.Context(), p.settingsKey(in), "rows:1").Err() },
	} {
		in := space(name, 2)
		mustClaim(t, s, newClaim(in))
		before := rowsOf(t, s, in)
		if err := remove(in); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Claim(t.Context(), newClaim(in)); !errors.Is(err, redislease.ErrDamaged) {
			t.Errorf("Claim without the %s = %v; want an error that matches ErrDamaged", name, err)
		}
		if after := rowsOf(t, s, in); !slices.Equal(after, before) {
			t.Errorf("rows without the %s = %+v; want them as before, %+v", name, after, before)
		}
	}

	in := space("rows", 2)
	held := newClaim(in)
	reply := mustClaim(t, s, held)
	if err := client.Del(t.Context(), p.rowKey(in)).Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Claim(t.Context(), newClaim(in)); !errors.Is(err, redislease.ErrDamaged) || !strings.Contains(err.Error(), p.settingsKey(in)) {
		t.Errorf("Claim after all rows were deleted = %v; want an error that matches ErrDamaged and names %s, the key that is left", err, p.settingsKey(in))
	}
	if _, err := s.Renew(t.Context(), renewal(held, reply)); reasonOf(err) != string(leasestore.Gone) {
		t.Errorf("Renew after all rows were deleted = %v; want it lost: %s", err, leasestore.Gone)
	}
	if _, _, err := s.Rows(t.Context(), in); !errors.Is(err, redislease.ErrDamaged) {
		t.Errorf("Rows after all rows were deleted = %v; want an error that matches ErrDamaged", err)
	}
}

func TestKeyThatIsNoHashIsNamed(t *testing.T) {
	p := shared(t)
	client := p.client(t)
	s := p.storeOn(t, client)
	for _, keyOf := range []func(leasestore.Space) string{p.settingsKey, p.rowKey} {
		in := space("n", 2)
		c := newClaim(in)
		held := mustClaim(t, s, c)
		key := keyOf(in)
		if err := client.Set(t.Context(), key, "mine", 0).Err(); err != nil {
			t.Fatal(err)
		}
		_, claim := s.Claim(t.Context(), newClaim(in))
		_, renew := s.Renew(t.Context(), renewal(c, held))
		_, _, rows := s.Rows(t.Context(), in)
		calls := map[string]error{"Claim": claim, "Renew": renew, "Release": s.Release(t.Context(), release(c, held))}
		calls["Rows"] = rows
		for call, err := range calls {
			if !errors.Is(err, redislease.ErrDamaged) || definite(err) || !strings.Contains(err.Error(), strconv.Quote(key)) {
				t.Errorf("%s with a string at %q = %v; want an error that matches ErrDamaged and names the key", call, key, err)
			}
		}
		if text, err := client.Get(t.Context(), key).Result(); text != "mine" || err != nil {
			t.Errorf("GET %s = %q, %v; want what was there", key, text, err)
		}
		p.clear(t)
	}
}

func TestClaimFindsTheLastFreeRowOfMany(t *testing.T) {
	p := shared(t)
	client := p.client(t)
	s := p.storeOn(t, client)
	in := space("n", 3000) // more rows than the script reads at once
	mustClaim(t, s, newClaim(in))
	later := leasestore.MillisOf(time.Now()) + 600_000
	for _, free := range []int64{0, 999, 1000, 1001, 2999} {
		pipe := client.Pipeline()
		for worker := range in.Workers {
			pipe.HSet(t.Context(), p.rowKey(in), worker, fmt.Sprintf("1,a,b,%d,1,0,", later+leasestore.Millis(worker)))
		}
		pipe.HSet(t.Context(), p.rowKey(in), free, "0,,,0,0,0,")
		if _, err := pipe.Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		c := newClaim(in)
		if free%2 == 0 {
			for worker := range in.Workers {
				c.Only = append(c.Only, worker)
			}
		}
		if reply := mustClaim(t, s, c); reply.Row.Worker != free {
			t.Errorf("Claim when only %d is free = worker %d", free, reply.Row.Worker)
		}
		_, err := s.Claim(t.Context(), newClaim(in))
		var full *leasestore.NoFreeWorkerError
		if !errors.As(err, &full) || full.Rows != 3000 {
			t.Errorf("Claim when none is free = %v; want a *lease.NoFreeWorkerError about 3000 rows", err)
		}
	}
}

// With most rows free the script chooses among the few that it reads first, and with few free
// among all. Both choices must be random.
func TestClaimChoosesAllFreeRowsAlike(t *testing.T) {
	p := shared(t)
	client := p.client(t)
	s := p.storeOn(t, client)
	for _, test := range []struct{ workers, free int64 }{{4, 4}, {2000, 4}} {
		in := space(fmt.Sprint("n", test.workers), test.workers)
		mustClaim(t, s, newClaim(in))
		fill := map[string]string{}
		later := leasestore.MillisOf(time.Now()) + 600_000
		for worker := range test.workers {
			fill[fmt.Sprint(worker)] = fmt.Sprintf("1,a,b,%d,1,0,", later)
			if worker < test.free {
				fill[fmt.Sprint(worker)] = "0,,,0,0,0,"
			}
		}
		const rounds = 400
		counts := make([]float64, test.free)
		if err := client.HSet(t.Context(), p.rowKey(in), fill).Err(); err != nil {
			t.Fatal(err)
		}
		for range rounds {
			worker := mustClaim(t, s, newClaim(in)).Row.Worker
			p.put(t, client, in, leasestore.Row{Worker: worker}) // free again
			counts[worker]++
		}
		chi := 0.0
		expected := rounds / float64(test.free)
		for _, n := range counts {
			chi += (n - expected) * (n - expected) / expected
		}
		// With 3 degrees of freedom this is exceeded once in ten million runs.
		if chi > 35 {
			t.Errorf("%d claims of %d free rows among %d: workers were chosen %v times; want about %.0f each", rounds, test.free, test.workers, counts, expected)
		}
	}
}

func TestKeysLiveForeverInOneSlot(t *testing.T) {
	p := shared(t)
	client := p.client(t)
	s := p.storeOn(t, client)
	in := space("a.b", 1)
	other := in
	other.Datacenter = 5
	c := newClaim(in)
	mustRenew(t, s, renewal(c, mustClaim(t, s, c)))
	mustClaim(t, s, newClaim(other))
	keys, err := client.Keys(t.Context(), p.prefix+":*").Result()
	slices.Sort(keys)
	want := []string{p.prefix + ":{a.b}", p.prefix + ":{a.b}:1", p.prefix + ":{a.b}:1:0", p.prefix + ":{a.b}:5", p.prefix + ":{a.b}:5:0"}
	if err != nil || !slices.Equal(keys, want) {
		t.Errorf("keys = %q, %v; want %q", keys, err, want)
	}
	for _, key := range keys {
		if ttl := client.TTL(t.Context(), key).Val(); ttl != -1 {
			t.Errorf("TTL %s = %v; want none", key, ttl)
		}
	}
}
