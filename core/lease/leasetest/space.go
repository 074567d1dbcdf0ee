package leasetest

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// firstClaimMakesTheRows: hold compares all of them with new rows.
func firstClaimMakesTheRows(s *suite) {
	if l := s.a.hold(s.newClaim()); l.epoch != 1 {
		s.Errorf("first Claim = %+v; want epoch 1", l)
	}
}

func rowsMakesNone(s *suite) {
	if rows, _ := s.rows(s.space); len(rows) != 0 {
		s.Errorf("Rows before the first claim = %+v; want none", rows)
	}
	// If Rows had stored its layout, this claim would be refused.
	c := s.newClaim()
	c.Space.Layout = "another"
	s.a.hold(c)
	// Each datacenter is made by its own first claim.
	c.Space.Datacenter++
	if rows, _ := s.rows(c.Space); len(rows) != 0 {
		s.Errorf("Rows of a datacenter in which nobody has claimed = %+v; want none", rows)
	}
}

// simultaneousFirstClaims starts as many new processes as there are rows. Each row must be
// taken once, and none made twice.
func simultaneousFirstClaims(s *suite) {
	const processes, handles = 100, 8
	s.space.Workers = processes
	all := s.handles(handles)
	want := newRows(s.space)
	var mu sync.Mutex // guards want
	atOnce(processes, func(i int) {
		c := s.newClaim()
		r, err := all[i%handles].call(c)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err != nil:
			s.Errorf("first Claim by process %d of %d = error %v; want a row", i, processes, err)
		case r.Row.Worker < 0 || r.Row.Worker >= processes || want[r.Row.Worker].Epoch != 0:
			s.Errorf("first Claim by process %d = %+v; want a row of 0..%d that no other has won", i, r, processes-1)
		default:
			row, ok := c.Apply(want[r.Row.Worker], r.Now)
			if !ok || row != r.Row {
				s.Errorf("first Claim by process %d = %+v; want %+v", i, r, row)
			}
			want[r.Row.Worker] = row
		}
	})
	if rows, _ := s.rows(s.space); !slices.Equal(rows, want) {
		s.Errorf("Rows after %d claims = %+v; want one per worker, as granted, %+v", processes, rows, want)
	}
}

// spacesAreListed makes no space by asking for them.
func spacesAreListed(s *suite) {
	catalog, ok := s.b.store.(leasestore.Catalog)
	if !ok {
		s.Skip("SKIPPED: the store is no leasestore.Catalog")
	}
	var want []leasestore.Space
	for _, at := range []leasestore.Space{
		{}, // none yet
		{Namespace: s.h.Namespace + "n", Datacenter: 11, Workers: 3, Layout: layout},
		{Namespace: s.h.Namespace + "n", Datacenter: 0, Workers: 2, Layout: layout},
		{Namespace: s.h.Namespace + ".N-1.", Datacenter: 1, Workers: 1, Layout: otherLayout},
	} {
		if at.Workers > 0 {
			c := s.newClaim()
			c.Space = at
			s.a.hold(c)
			want = append(want, at)
		}
		got, err := catalog.Spaces(s.Context())
		got = slices.DeleteFunc(got, func(at leasestore.Space) bool { return !strings.HasPrefix(at.Namespace, s.h.Namespace) })
		order := func(a, b leasestore.Space) int {
			return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Datacenter, b.Datacenter))
		}
		slices.SortFunc(got, order)
		if slices.SortFunc(want, order); err != nil || !slices.Equal(got, want) {
			s.Errorf("Spaces() = %+v, %v; want %+v", got, err, want)
		}
	}
}

// spacesDoNotSeeEachOther uses names that a careless store confuses, because it concatenates
// them, ignores case, takes them for a pattern or a path, or truncates them.
func spacesDoNotSeeEachOther(s *suite) {
	p := s.h.Namespace
	long := p + strings.Repeat("x", 63-len(p))
	s.space.Workers = 1
	var holders []*holder
	for i, at := range []spaceKey{
		{p + "n", 0}, {p + "n", 1}, {p + "n", 11}, {p + "n", 1023},
		{p + "n1", 0}, {p + "n1", 1}, {p + "n-1", 1}, {p + "n.1", 1}, {p + "n_1", 1}, {p + "n-1-1", 0},
		{p + "N", 0}, {p + "N1", 1}, // not n
		{p + "a_c", 0}, {p + "abc", 0}, {p + "a.c", 0}, // _ and . are wildcards in some stores
		{p + ".", 0}, {p + "..", 0}, {p + "-", 0}, {p + "_", 0}, {p + "0", 0}, {p + "00", 0}, {p + "0", 1},
		{long + "y", 0}, {long + "z", 0}, {long, 0},
	} {
		c := s.newClaim()
		c.Space.Namespace, c.Space.Datacenter = at.namespace, at.datacenter
		c.Window += leasestore.Millis(i)
		holders = append(holders, s.a.hold(c))
	}
	for i, l := range holders {
		stray := *l // the holder of a row in one space has none in another
		stray.space = holders[(i+1)%len(holders)].space
		s.b.lost("Renew in another space", s.renewal(&stray), leasestore.TakenOver)
		s.a.keep(l, s.renewal(l))
	}
}

func namespaceKeepsItsLayout(s *suite) {
	refused := func(space leasestore.Space) {
		s.Helper()
		c := s.newClaim()
		c.Space = space
		c.Space.Layout = otherLayout
		if _, err := s.b.do(c); !errors.Is(err, leasestore.ErrLayout) {
			s.Errorf("Claim in %+v = error %v; want a *lease.LayoutError", c.Space, err)
		}
	}
	l := s.a.hold(s.newClaim())
	refused(s.space)

	// A namespace has a single layout, because its IDs must be unique and have one meaning.
	c := s.newClaim()
	c.Space.Datacenter = 1
	refused(c.Space)
	s.b.hold(c) // which finds no rows there
	refused(c.Space)

	// The layout is kept when no row is held any longer.
	s.a.must(l.giveBack(l.from))
	refused(s.space)

	// Another namespace may have another layout.
	c = s.newClaim()
	c.Space.Namespace, c.Space.Layout = s.space.Namespace+"-2", otherLayout
	s.b.hold(c)
}

func largeSpaceWorks(s *suite) {
	s.space.Workers = 1024
	owners := map[int64]string{}
	claim := func(only ...int64) {
		c := s.claimOf(only...)
		r, err := s.a.call(c)
		if err != nil || owners[r.Row.Worker] != "" || only != nil && r.Row.Worker != only[0] {
			s.Fatalf("%s; want another row", describe(c, r, err))
		}
		owners[r.Row.Worker] = c.Owner
	}
	for range 10 {
		claim()
	}
	for _, only := range []int64{0, 1023} {
		if owners[only] == "" {
			claim(only)
		}
	}
	rows, _ := s.rows(s.space)
	if len(rows) != 1024 {
		s.Fatalf("Rows has %d rows; want 1024", len(rows))
	}
	for i, row := range rows {
		if row.Worker != int64(i) || row.Owner != owners[row.Worker] {
			s.Errorf("row %d = %+v; want worker %d, owner %q", i, row, i, owners[row.Worker])
		}
	}
}

// whatIsNoSpaceIsRefused: every operation refuses an invalid space with the error of Check
// before it asks the store. To a holder, a space without rows would be a lost row.
func whatIsNoSpaceIsRefused(s *suite) {
	l := s.a.hold(s.newClaim())
	check := s.unchanged(s.space)
	for _, change := range []func(*leasestore.Space){
		func(sp *leasestore.Space) { sp.Namespace = "" },
		func(sp *leasestore.Space) { sp.Namespace = strings.Repeat("x", 65) },
		func(sp *leasestore.Space) { sp.Namespace += "/../x" },
		func(sp *leasestore.Space) { sp.Namespace += "'" },
		func(sp *leasestore.Space) { sp.Namespace += "{}" },
		func(sp *leasestore.Space) { sp.Datacenter = -1 },
		func(sp *leasestore.Space) { sp.Workers = 0 },
		func(sp *leasestore.Space) { sp.Workers = 1<<16 + 1 },
		func(sp *leasestore.Space) { sp.Layout = strings.Repeat("x", 256) },
	} {
		nowhere := *l
		change(&nowhere.space)
		want := nowhere.space.Validate()
		for _, request := range s.requests(&nowhere) {
			_, err := s.b.send(s.Context(), request)
			if value := (*core.ValueError)(nil); !errors.As(err, &value) || value.Error() != want.Error() {
				s.Errorf("%T%+v = error %v; want %v", request, request, err, want)
			}
		}
	}
	check("operations in what is no space")
}
