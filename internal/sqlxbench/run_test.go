package main

import (
	"context"
	"regexp"
	"testing"

	"github.com/snowkey/snowkey/internal/servertest"
)

// fewRows are enough for two batches and a rest, for every awkward text, and for a
// chunk size that divides neither.
var fewRows = sizes{lines: 3_317, orders: 237}

// placeFor returns the place of a target for a test, which is skipped without the
// server.
func placeFor(t *testing.T, target target) *place {
	t.Helper()
	var where addresses
	switch target.family {
	case postgres:
		where.postgres = servertest.PostgreSQL(t)
	case mariaDB:
		where.mariaDB = servertest.MariaDB(t)
	}
	p, err := newPlace(t.Context(), target, where)
	if err != nil {
		t.Fatalf("newPlace(%s) = %v; want no error", target.name, err)
	}
	t.Cleanup(func() {
		if err := p.close(context.Background()); err != nil {
			t.Errorf("close of %s = %v; want no error", target.name, err)
		}
	})
	return p
}

// The rows that are read back after each run are compared with those that were given.
// So all variants store the same, whatever quotes and escapes they use.
func TestEveryVariantStoresTheSameRows(t *testing.T) {
	for _, target := range targets {
		t.Run(target.name, func(t *testing.T) {
			p := placeFor(t, target)
			for _, v := range variants() {
				if !v.on(target) {
					continue
				}
				t.Run(v.load+"/"+v.name, func(t *testing.T) {
					m, err := p.run(t.Context(), v, fewRows)
					if err != nil {
						t.Fatalf("run = %v; want no error", err)
					}
					want := map[string]int{lines: fewRows.lines, graph: fewRows.orders * (1 + itemsPerOrder)}[v.load]
					if m.rows != want || m.elapsed <= 0 || m.mallocs == 0 {
						t.Errorf("run = %+v; want %d rows, a time and allocations", m, want)
					}
				})
			}
		})
	}
}

func TestProgramAndTestsFindTheSameServers(t *testing.T) {
	where := defaultAddresses()
	if servertest.PostgreSQL(t) != where.postgres {
		t.Error("the URL of PostgreSQL is not that of servertest")
	}
	if servertest.MariaDB(t) != where.mariaDB {
		t.Error("the DSN of MariaDB is not that of servertest")
	}
}

func TestStreamStoresItsRows(t *testing.T) {
	for _, target := range targets {
		for _, s := range streamsOf(target) {
			t.Run(s.name, func(t *testing.T) {
				p := placeFor(t, target)
				m, err := p.stream(t.Context(), s, 12_345)
				if err != nil {
					t.Fatalf("stream = %v; want no error", err)
				}
				if _, _, known := peakMemory(); m.rows != 12_345 || m.elapsed <= 0 || known && m.grown <= 0 {
					t.Errorf("stream = %+v; want 12345 rows, a time, and how much memory it took", m)
				}
			})
		}
	}
}

func TestOnlyWhatMatchesIsMeasured(t *testing.T) {
	for _, test := range []struct {
		only string
		want int
	}{{"", 2}, {"SQLite/lines/snowkey$", 1}, {"MariaDB", 0}} {
		if got := blocksOf(targets[0], regexp.MustCompile(test.only)); len(got) != test.want {
			t.Errorf("blocksOf(SQLite, %q) = %d blocks; want %d", test.only, len(got), test.want)
		}
	}
}
