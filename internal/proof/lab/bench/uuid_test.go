package main

import (
	"bytes"
	"database/sql"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	gofrs "github.com/gofrs/uuid/v5"
	google "github.com/google/uuid"
	_ "github.com/mattn/go-sqlite3"

	"github.com/snowkey/snowkey/core"
)

// What docs/alternatives.md says of UUIDs, of the generators that Go programs use.

// A generator7 makes UUIDs of version 7 for a whole process.
type generator7 struct {
	name string
	next func() [16]byte

	// follows: if the clock steps back, the UUIDs do too.
	follows bool
}

var generators7 = []generator7{
	{name: "google/uuid", next: func() [16]byte { return google.Must(google.NewV7()) }},
	{name: "gofrs/uuid", next: func() [16]byte { return gofrs.Must(gofrs.NewV7()) }},
}

func TestUUIDv7IncreasesWithinAProcess(t *testing.T) {
	for _, g := range generators7 {
		last, back := g.next(), 0
		for range 1_300_000 {
			id := g.next()
			if bytes.Compare(id[:], last[:]) <= 0 {
				back++
			}
			last = id
		}
		if back != 0 {
			t.Errorf("%s: %d of 1,300,000 are not above the one before; want none", g.name, back)
		}
	}
}

// A bubble begins in the year 2000, which is a step back of decades.
func TestUUIDv7AfterAStepBackOfTheClock(t *testing.T) {
	for _, g := range generators7 {
		before := g.next()
		synctest.Test(t, func(t *testing.T) {
			if after := g.next(); bytes.Compare(after[:], before[:]) < 0 != g.follows {
				t.Errorf("%s: %x comes after %x and a step back; want it below: %v", g.name, after, before, g.follows)
			}
		})
	}
}

// Nor are snowkey's: they sort by worker within a millisecond.
func TestKeysOfTwoProcessesAreInNoOrderWithinAMillisecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)))
		newer := func(next func(process int) []byte) (back int) {
			var last []byte
			for i := range 100 {
				id := next(i % 2)
				if bytes.Compare(id, last) <= 0 {
					back++
				}
				last = id
			}
			return back
		}
		uuids := []*gofrs.Gen{gofrs.NewGen(), gofrs.NewGen()}
		if newer(func(p int) []byte { return gofrs.Must(uuids[p].NewV7()).Bytes() }) == 0 {
			t.Error("100 UUIDs of two generators in turn increase; want some below the one before")
		}
		var gens []*core.Generator
		for worker := range int64(2) {
			g, err := core.New(core.Config{Worker: core.StaticWorker(worker)})
			must(t, err)
			defer func() { _ = g.Close(t.Context()) }()
			gens = append(gens, g)
		}
		if newer(func(p int) []byte {
			id, err := gens[p].Next(t.Context())
			text, errText := id.MarshalBinary()
			if err != nil || errText != nil {
				t.Fatal(err, errText)
			}
			return text
		}) == 0 {
			t.Error("100 keys of two workers in turn increase; want some below the one before")
		}
	})
}

// A thousand rows in one transaction write to most pages of a table if their keys are
// random, and to its last ones if they increase. The pages are those in SQLite's log.
func TestRandomKeysWriteToMostPagesOfAnIndex(t *testing.T) {
	gen, err := core.New(core.Config{Worker: core.StaticWorker(1)})
	must(t, err)
	defer func() { _ = gen.Close(t.Context()) }()
	type way struct {
		name string
		next func() any
		most bool
	}
	ways := []way{
		{"version 4", func() any { id := google.New(); return id[:] }, true},
		{"snowkey", func() any {
			id, err := gen.Next(t.Context())
			must(t, err)
			return int64(id)
		}, false},
	}
	for _, g := range generators7 {
		ways = append(ways, way{"version 7, " + g.name, func() any { id := g.next(); return id[:] }, false})
	}
	for _, w := range ways {
		written, pages := writtenPages(t, w.next)
		t.Logf("%s: 1,000 rows write to %d of %d pages", w.name, written, pages)
		if w.most && 2*written < pages || !w.most && 10*written > pages {
			t.Errorf("%s: 1,000 rows write to %d of %d pages; want most of them: %v", w.name, written, pages, w.most)
		}
	}
}

// writtenPages returns how many pages of a table with 20,000 rows the next 1,000 rows write.
func writtenPages(t *testing.T, next func() any) (written, pages int) {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(t.TempDir(), "keys.db")+"?_journal_mode=WAL&_cache_size=-65536")
	must(t, err)
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1)
	var discard int
	insert := func(rows int) {
		tx, err := db.BeginTx(t.Context(), nil)
		must(t, err)
		for range rows {
			if _, err := tx.ExecContext(t.Context(), "INSERT INTO keys VALUES (?, zeroblob(32))", next()); err != nil {
				t.Fatal(err)
			}
		}
		must(t, tx.Commit())
	}
	ask := func(query string, into ...any) {
		if err := db.QueryRowContext(t.Context(), query).Scan(into...); err != nil {
			t.Fatal(query, err)
		}
	}
	if _, err := db.ExecContext(t.Context(), "CREATE TABLE keys (id PRIMARY KEY, pad) WITHOUT ROWID"); err != nil {
		t.Fatal(err)
	}
	insert(20_000)
	ask("PRAGMA wal_checkpoint(TRUNCATE)", &discard, &discard, &discard)
	insert(1000)
	ask("PRAGMA wal_checkpoint(PASSIVE)", &discard, &written, &discard)
	ask("PRAGMA page_count", &pages)
	return written, pages
}
