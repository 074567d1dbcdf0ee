package feedcases

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/feed"
	"github.com/snowkey/snowkey/types"
)

// Held has two transactions that are open for a span each, the second from the middle of the first
// on, while others write. The horizon waits for both, the lag shows it, nobody else waits, and each row is read
// once and in order.
func Held(t *testing.T, d Database, span time.Duration) {
	const slack = time.Second
	table, f := d.install(t, slack)
	g := generator(t)
	first := fresh(t, g, slack, func(id types.Snowflake) error {
		_, err := d.DB.ExecContext(t.Context(), insert(table, id))
		return err
	})

	var got []types.Snowflake
	readers := []*feed.Feed{f, nil}
	read := func() {
		t.Helper()
		readers[1] = d.feed(t, table, slack) // of a process that has just started
		keys, err := readers[rand.IntN(2)].Keys(t.Context(), last(got), 1000)
		must(t, err)
		got = append(got, keys...)
	}
	for end := time.Now().Add(patience); len(got) == 0; time.Sleep(5 * time.Millisecond) {
		if read(); time.Now().After(end) {
			t.Fatalf("Keys() has not returned %d for %v", first, patience)
		}
	}

	stop, cancel := context.WithCancel(t.Context())
	defer cancel()
	var work sync.WaitGroup
	defer work.Wait()
	defer cancel()
	var others atomic.Int64
	work.Go(func() {
		for ; stop.Err() == nil; time.Sleep(20 * time.Millisecond) {
			id, err := g.Next(stop)
			if err == nil {
				_, err = d.DB.ExecContext(context.Background(), insert(table, id))
			}
			switch {
			case err == nil:
				others.Add(1)
			case stop.Err() == nil && (!strings.Contains(err.Error(), "below the horizon") || time.Since(g.Layout().Parts(id).Time) < slack): // without a rest of the machine
				t.Errorf("INSERT beside an open transaction = %v", err)
			}
		}
	})

	early := d.hold(t, table, g, slack, false)
	until := func(end time.Duration, limit types.Snowflake) {
		t.Helper()
		before := others.Load()
		for began := time.Now(); time.Since(began) < end || others.Load() == before; time.Sleep(10 * time.Millisecond) {
			read()
			if last(got) >= limit {
				t.Fatalf("Keys() = %d while a transaction that has inserted %d is open; want no more", last(got), limit)
			}
			if open := time.Since(g.Layout().Parts(limit).Time); f.Lag() < open {
				t.Fatalf("Lag() = %v while a transaction is open that has inserted %d, %v ago; want no less", f.Lag(), limit, open)
			}
		}
	}
	until(span/2+2*slack, early.id) // so that the horizon can pass the first while the second is open
	late := d.hold(t, table, g, slack, true)
	until(span/2, early.id)
	early.more(t, table, g, slack) // as fresh as any
	lag := f.Lag()
	early.commit(t)
	for end := time.Now().Add(patience); last(got) < early.id; {
		if until(0, late.id); time.Now().After(end) {
			t.Fatalf("Keys() has not returned %d %v after its transaction has ended", early.id, patience)
		}
	}
	until(span/2, late.id)
	late.commit(t)
	cancel()
	work.Wait()

	var want []types.Snowflake
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if want = d.after(table, 0); last(got) >= last(want) || time.Now().After(end) {
			break
		}
		read()
	}
	if !slices.Equal(got, want) {
		missed, extra := difference(want, got), difference(got, want)
		t.Errorf("the feed has returned %d keys, the table has %d; missed %d %v, not in the table %d %v; sorted: %v",
			len(got), len(want), len(missed), head(missed), len(extra), head(extra), slices.IsSorted(got))
	}
	t.Logf("%d rows read; transactions held open for %v, the lag was %v; %d rows of others meanwhile", len(got), span, lag.Round(time.Millisecond), others.Load())
}

// A held transaction is one that stays open.
type held struct {
	id   types.Snowflake
	conn *sql.Conn
	end  string
}

// hold begins a transaction and inserts a row. On PostgreSQL it may be prepared, which leaves it without a
// connection. InnoDB knows no connection of such a one, and has nothing to read until it ends.
func (d Database) hold(t *testing.T, table string, g *core.Generator, slack time.Duration, prepare bool) held {
	t.Helper()
	conn, err := d.DB.Conn(t.Context())
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	h := held{0, conn, "COMMIT"}
	h.execute(t, "BEGIN")
	t.Cleanup(func() { _, _ = conn.ExecContext(context.Background(), "ROLLBACK") })
	h.id = h.more(t, table, g, slack)
	if prepare && d.Dialect == feed.PostgreSQL {
		name := fmt.Sprintf("held%x", rand.Uint64())
		h.execute(t, fmt.Sprintf("PREPARE TRANSACTION '%s'", name))
		h.end = fmt.Sprintf(d.Commit, name)
		t.Cleanup(func() { _, _ = conn.ExecContext(context.Background(), fmt.Sprintf("ROLLBACK PREPARED '%s'", name)) })
	}
	return h
}

func (h held) execute(t *testing.T, text string) {
	t.Helper()
	if _, err := h.conn.ExecContext(t.Context(), text); err != nil {
		t.Fatalf("Exec(%q) = %v", text, err)
	}
}

// more inserts another row, and returns its key.
func (h held) more(t *testing.T, table string, g *core.Generator, slack time.Duration) types.Snowflake {
	t.Helper()
	h.execute(t, "SAVEPOINT more")
	return fresh(t, g, slack, func(id types.Snowflake) error {
		_, err := h.conn.ExecContext(t.Context(), insert(table, id))
		if err != nil {
			h.execute(t, "ROLLBACK TO SAVEPOINT more")
		}
		return err
	})
}

// fresh inserts a key that is younger than slack, and returns it. If the machine rests after a key was drawn, it
// grows too old meanwhile and is refused, and fresh draws another.
func fresh(t *testing.T, g *core.Generator, slack time.Duration, insert func(types.Snowflake) error) types.Snowflake {
	t.Helper()
	for {
		id := next(t, g)
		err := insert(id)
		if err == nil {
			return id
		}
		if age := time.Since(g.Layout().Parts(id).Time); !strings.Contains(err.Error(), "below the horizon") || age < slack {
			t.Fatalf("INSERT of a key that is %v old = %v; want it stored", age, err)
		}
	}
}

func (h held) commit(t *testing.T) {
	t.Helper()
	h.execute(t, h.end)
}
