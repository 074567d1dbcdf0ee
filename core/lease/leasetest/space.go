package leasetest

import (
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/snowkey/snowkey/core/lease"
)

func firstClaimMakesTheRows(s *suite) {
	c := s.newClaim()
	r, err := s.a.claim(c)
	if err != nil {
		s.Fatalf("Claim(%+v) = error %v; want a row", c, err)
	}
	rows, _ := s.b.rows(s.space)
	if int64(len(rows)) != s.space.Workers {
		s.Fatalf("Rows after the first claim has %d rows; want %d", len(rows), s.space.Workers)
	}
	for i, row := range rows {
		want := lease.Row{Worker: int64(i)}
		if row.Worker == r.Row.Worker {
			want = r.Row
		}
		if row != want {
			s.Errorf("Rows after the first claim: row %d = %+v; want %+v", i, row, want)
		}
	}
	if want := (lease.Row{Worker: r.Row.Worker, Epoch: 1, Owner: c.Owner, Nonce: c.Nonce, Until: r.Now + c.Window, Renewals: 1, Holder: c.Holder}); r.Row != want {
		s.Errorf("Claim(%+v).Row = %+v; want %+v", c, r.Row, want)
	}
	if r.Before != 0 {
		s.Errorf("Claim(%+v).Before = %d; want 0", c, r.Before)
	}
}

func rowsMakesNone(s *suite) {
	if rows, _ := s.a.rows(s.space); len(rows) != 0 {
		s.Errorf("Rows before the first claim = %+v; want none", rows)
	}
	// Had Rows left its layout behind, this claim would be refused.
	c := s.newClaim()
	c.Space.Layout = "another"
	s.a.hold(c)
	// A further datacenter is made by its own first claim.
	elsewhere := c.Space
	elsewhere.Datacenter++
	if rows, _ := s.b.rows(elsewhere); len(rows) != 0 {
		s.Errorf("Rows of a datacenter in which nobody has claimed = %+v; want none", rows)
	}
}

// simultaneousFirstClaims starts as many new processes as there are rows. Each row must
// be taken once, and none be made twice.
func simultaneousFirstClaims(s *suite) {
	const processes, handles = 100, 8
	s.space.Workers = processes
	all := []handle{s.a, s.b}
	for len(all) < handles {
		all = append(all, s.open())
	}

	var (
		mu      sync.Mutex
		granted = map[int64]lease.Row{}
		wg      sync.WaitGroup
		start   = make(chan struct{})
	)
	for i := range processes {
		c := s.newClaim()
		wg.Go(func() {
			<-start
			r, err := all[i%handles].claim(c)
			if err != nil {
				s.Errorf("first Claim by process %d of %d = error %v; want a row", i, processes, err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if other, ok := granted[r.Row.Worker]; ok {
				s.Errorf("two simultaneous claims won worker %d: %+v and %+v", r.Row.Worker, other, r.Row)
			}
			granted[r.Row.Worker] = r.Row
			if r.Row.Epoch != 1 || r.Row.Renewals != 1 {
				s.Errorf("first Claim.Row = %+v; want epoch 1 and 1 write", r.Row)
			}
		})
	}
	close(start)
	wg.Wait()

	rows, _ := s.a.rows(s.space)
	if len(rows) != processes {
		s.Errorf("Rows after %d claims has %d rows; want one per worker", processes, len(rows))
	}
	for _, row := range rows {
		if row != granted[row.Worker] {
			s.Errorf("Rows has %+v; want it as granted, %+v", row, granted[row.Worker])
		}
	}
}

// spacesDoNotSeeEachOther uses names that a careless store takes for one. Such a store
// joins them, ignores their case, takes them for a pattern or a path, or cuts them.
func spacesDoNotSeeEachOther(s *suite) {
	type place struct {
		namespace  string
		datacenter int64
	}
	p := s.h.Namespace
	long := p + strings.Repeat("x", 63-len(p))
	places := []place{
		{p + "n", 0}, {p + "n", 1}, {p + "n", 11}, {p + "n", 1023},
		{p + "n1", 0}, {p + "n1", 1}, {p + "n-1", 1}, {p + "n.1", 1}, {p + "n_1", 1}, {p + "n-1-1", 0},
		{p + "N", 0}, {p + "N1", 1}, // not n
		{p + "a_c", 0}, {p + "abc", 0}, {p + "a.c", 0}, // _ and . are patterns elsewhere
		{p + ".", 0}, {p + "..", 0}, {p + "-", 0}, {p + "_", 0}, {p + "0", 0}, {p + "00", 0}, {p + "0", 1},
		{long + "y", 0}, {long + "z", 0}, {long, 0},
	}
	s.space.Workers = 2
	spaceOf := func(p place) lease.Space {
		space := s.space
		space.Namespace, space.Datacenter = p.namespace, p.datacenter
		return space
	}

	want := map[place]lease.Row{}
	for i, at := range places {
		c := s.newClaim()
		c.Space = spaceOf(at)
		c.Window += lease.Millis(i)
		if rows, _ := s.a.rows(c.Space); len(rows) != 0 {
			s.Errorf("Rows(%q, %d) before a claim there = %+v; want none", at.namespace, at.datacenter, rows)
		}
		r, err := s.a.claim(c)
		if err != nil {
			s.Errorf("Claim in %q, %d = error %v; want a row", at.namespace, at.datacenter, err)
			continue
		}
		want[at] = r.Row
	}

	// A holder in one space has no row in another.
	for i, at := range places {
		other := places[(i+1)%len(places)]
		if want[at].Epoch == 0 || want[other].Epoch == 0 {
			continue
		}
		l := &holder{space: spaceOf(other), worker: want[at].Worker, epoch: 1, owner: want[at].Owner, known: []string{want[at].Nonce}}
		if _, err := s.b.renew(s.renewal(l)); !errors.Is(err, lease.ErrLost) {
			s.Errorf("Renew in %q, %d by the holder in %q, %d = error %v; want it lost", other.namespace, other.datacenter, at.namespace, at.datacenter, err)
		}
	}
	for _, at := range places {
		rows, _ := s.b.rows(spaceOf(at))
		expect := []lease.Row{{Worker: 0}, {Worker: 1}}
		expect[want[at].Worker] = want[at]
		if !slices.Equal(rows, expect) {
			s.Errorf("Rows(%q, %d) = %+v; want %+v", at.namespace, at.datacenter, rows, expect)
		}
	}
}

func namespaceKeepsItsLayout(s *suite) {
	const other = "epoch 2021-01-01T00:00:00Z, unit 1ms, bits 41/5/5/12"
	l := s.a.hold(s.newClaim())
	check := s.unchanged(s.space)

	refused := func(datacenter int64) {
		s.Helper()
		c := s.newClaim()
		c.Space.Layout, c.Space.Datacenter = other, datacenter
		_, err := s.b.claim(c)
		var differs *lease.LayoutError
		want := lease.LayoutError{Namespace: s.space.Namespace, Stored: layout, Own: other}
		if !errors.As(err, &differs) || *differs != want {
			s.Errorf("Claim in datacenter %d with another layout = error %v; want %v", datacenter, err, &want)
		}
	}
	refused(s.space.Datacenter)
	check("a claim with another layout")

	// The whole namespace has one layout: its IDs are unique, and mean the same.
	elsewhere := s.space
	elsewhere.Datacenter = 1
	refused(elsewhere.Datacenter)
	if rows, _ := s.a.rows(elsewhere); len(rows) != 0 {
		s.Errorf("Rows of a datacenter whose only claim was refused = %+v; want none", rows)
	}
	c := s.newClaim()
	c.Space = elsewhere
	s.b.hold(c)
	refused(elsewhere.Datacenter)

	// It is kept when nobody has a row any more.
	if err := s.a.release(l.giveBack(l.from)); err != nil {
		s.Errorf("Release = error %v; want it released", err)
	}
	refused(s.space.Datacenter)

	// Another namespace is free to have another.
	c = s.newClaim()
	c.Space.Namespace, c.Space.Layout = s.space.Namespace+"-2", other
	s.b.hold(c)
}

func largeSpaceWorks(s *suite) {
	s.space.Workers = 1024
	taken := map[int64]bool{}
	for range 10 {
		taken[s.a.hold(s.newClaim()).worker] = true
	}
	if len(taken) != 10 {
		s.Errorf("10 claims of 1024 rows won %d rows; want 10", len(taken))
	}
	for _, only := range []int64{0, 1023} {
		if taken[only] {
			continue
		}
		c := s.newClaim()
		c.Only = []int64{only}
		if l := s.b.hold(c); l.worker != only {
			s.Errorf("Claim(Only %d) won worker %d", only, l.worker)
		}
		taken[only] = true
	}
	rows, _ := s.a.rows(s.space)
	if len(rows) != 1024 {
		s.Fatalf("Rows has %d rows; want 1024", len(rows))
	}
	for i, row := range rows {
		if row.Worker != int64(i) || (row.Owner != "") != taken[row.Worker] {
			s.Errorf("row %d = %+v; want worker %d, owned: %t", i, row, i, taken[row.Worker])
		}
	}
}

// whatIsNoSpaceIsRefused: each operation refuses it with the error of Check, before it
// asks the store. To a holder, a space without rows would be a lost row.
func whatIsNoSpaceIsRefused(s *suite) {
	l := s.a.hold(s.newClaim())
	check := s.unchanged(s.space)
	for _, change := range []func(*lease.Space){
		func(sp *lease.Space) { sp.Namespace = "" },
		func(sp *lease.Space) { sp.Namespace += "/../x" },
		func(sp *lease.Space) { sp.Namespace += "'" },
		func(sp *lease.Space) { sp.Namespace += "{}" },
		func(sp *lease.Space) { sp.Datacenter = -1 },
		func(sp *lease.Space) { sp.Workers = 0 },
		func(sp *lease.Space) { sp.Workers = 1<<16 + 1 },
		func(sp *lease.Space) { sp.Layout = strings.Repeat("x", 256) },
	} {
		c := s.newClaim()
		change(&c.Space)
		r, g := s.renewal(l), l.giveBack(l.from)
		r.Space, g.Space = c.Space, c.Space
		ctx := s.Context()
		_, claim := s.b.claimCtx(ctx, c)
		_, renew := s.b.renewCtx(ctx, r)
		release := s.b.releaseCtx(ctx, g)
		_, _, rows := s.b.store.Rows(ctx, c.Space)
		want := c.Space.Check()
		for call, err := range map[string]error{"Claim": claim, "Renew": renew, "Release": release, "Rows": rows} {
			var value *lease.ValueError
			if !errors.As(err, &value) || value.Error() != want.Error() {
				s.Errorf("%s in %+v = error %v; want %v", call, c.Space, err, want)
			}
		}
	}
	check("operations in what is no space")
}
