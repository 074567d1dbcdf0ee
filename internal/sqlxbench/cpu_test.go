package main

import (
	"os"
	"testing"

	"github.com/jmoiron/sqlx"
)

// serverFor returns two connections to the server of a target and what is known of it,
// for a test that is skipped if the server is elsewhere.
func serverFor(t *testing.T, target target) (one, other *sqlx.DB, s server, p *place) {
	t.Helper()
	p = placeFor(t, target)
	connect := func() *sqlx.DB {
		db, _, err := p.open(t.Context(), false)
		if err != nil {
			t.Fatalf("open(%s) = %v; want no error", target.name, err)
		}
		t.Cleanup(func() { _ = db.Close() })
		return db
	}
	one, other = connect(), connect()
	if s = p.serverOf(t.Context(), one); s.main == 0 {
		t.Skipf("the server of %s has no process here that can be seen", target.name)
	}
	return one, other, s, p
}

func TestWorkOfAConnectionIsToldFromThatOfTheRest(t *testing.T) {
	busy := map[family]string{
		postgres: "SELECT count(*) FROM generate_series(1, 3000000)",
		mariaDB:  "SELECT BENCHMARK(20000000, 1 + 1)",
	}
	for _, target := range targets[1:] {
		t.Run(target.name, func(t *testing.T) {
			one, other, s, p := serverFor(t, target)
			for _, test := range []struct {
				db   *sqlx.DB
				mine bool
			}{{one, true}, {other, false}} {
				then := s.cpu()
				if len(then) < 3 {
					t.Fatalf("tasks of the server = %v; want those of two connections and more", then)
				}
				if _, ok := then[p.serverOf(t.Context(), test.db).connection]; !ok {
					t.Errorf("tasks of the server = %v; want that of the connection among them", then)
				}
				var ignored any
				if err := test.db.QueryRowContext(t.Context(), busy[target.family]).Scan(&ignored); err != nil {
					t.Fatal(err)
				}
				connection, others := s.since(then)
				if test.mine && connection <= 0 || !test.mine && others <= connection {
					t.Errorf("after work by the connection itself, %v: connection %v, others %v; want it where it was done", test.mine, connection, others)
				}
			}
		})
	}
}

func TestLookAtTheServerIsNoAllocationOfTheRun(t *testing.T) {
	_, _, s, _ := serverFor(t, targets[1])
	var m measurement
	if err := m.measure(func() error { return nil }, s); err != nil || m.mallocs > 50 {
		t.Errorf("measure(nothing) = %d allocations, %v; want next to none, while a look has one per file or more", m.mallocs, err)
	}
}

func TestPeakOfMemoryIsNotBelowWhatIsUsed(t *testing.T) {
	peak, now, ok := peakMemory()
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("there is no /proc here")
	}
	if !ok || now <= 0 || peak < now {
		t.Errorf("peakMemory() = %d, %d, %v; want what is used now, and no less at the peak", peak, now, ok)
	}
}
