package feedcases

import (
	"context"
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

// Chaos has writers that draw keys early, hold transactions open, commit out of order, roll back, are
// killed and prepare, and feeds that are made anew all the time. It goes on until each of that has happened, and
// a reader of id > last beside them has missed a row.
func Chaos(t *testing.T, d Database, writers int, span time.Duration) {
	const slack = 150 * time.Millisecond
	table, f := d.install(t, slack)
	stop, cancel := context.WithCancel(t.Context())
	defer cancel()
	var work sync.WaitGroup
	var counts struct{ committed, refused, rolledBack, killed, prepared, crashed atomic.Int64 }
	for range writers {
		g := generator(t)
		work.Go(func() {
			for stop.Err() == nil {
				d.write(t, table, g, func(outcome string) {
					switch outcome {
					case "committed":
						counts.committed.Add(1)
					case "refused":
						counts.refused.Add(1)
					case "rolled back":
						counts.rolledBack.Add(1)
					case "killed":
						counts.killed.Add(1)
					case "prepared":
						counts.prepared.Add(1)
					}
				})
			}
		})
	}
	if d.Crash != nil {
		work.Go(func() {
			for committed := int64(0); ; committed = counts.committed.Load() {
				select {
				case <-stop.Done():
					return
				case <-time.After(span / 4):
				}
				if counts.committed.Load() == committed {
					continue // it has not come back for long enough
				}
				var pid int
				if d.DB.QueryRow(d.Self).Scan(&pid) == nil {
					d.Crash(pid)
					counts.crashed.Add(1)
				}
			}
		})
	}

	var naive []types.Snowflake
	var missed atomic.Bool
	work.Go(func() {
		for stop.Err() == nil {
			naive = append(naive, d.after(table, last(naive))...)
			if !missed.Load() && rand.IntN(20) == 0 {
				missed.Store(d.hasMissed(table, naive))
			}
			time.Sleep(time.Millisecond)
		}
	})
	enough := func() bool {
		return missed.Load() && counts.committed.Load() > 0 && counts.refused.Load() > 0 && counts.rolledBack.Load() > 0 &&
			(d.Kill == "" || counts.killed.Load() > 0) && (d.Prepare == nil || counts.prepared.Load() > 0) && (d.Crash == nil || counts.crashed.Load() > 0)
	}
	var got []types.Snowflake
	var longest time.Duration
	read := func() {
		keys, err := f.Keys(t.Context(), last(got), 1+rand.IntN(50))
		if err != nil && d.Crash == nil {
			t.Errorf("Keys() = %v", err)
			cancel()
		}
		got = append(got, keys...)
		if lag := f.Lag(); lag < time.Hour { // there is a horizon
			longest = max(longest, lag)
		}
	}
	for began := time.Now(); stop.Err() == nil && (time.Since(began) < span || !enough() && time.Since(began) < span+patience); {
		read()
		if rand.IntN(50) == 0 {
			f = d.feed(t, table, slack) // of another process
		}
		time.Sleep(time.Duration(rand.IntN(5)) * time.Millisecond)
	}
	cancel()
	work.Wait()
	var want []types.Snowflake
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if want = d.after(table, 0); len(want) > 0 && last(got) >= last(want) || time.Now().After(end) || t.Failed() {
			break
		}
		read()
	}
	if !slices.Equal(got, want) {
		missed, extra := difference(want, got), difference(got, want)
		t.Errorf("the feed has returned %d keys, the table has %d; missed %d %v, not in the table %d %v; sorted: %v",
			len(got), len(want), len(missed), head(missed), len(extra), head(extra), slices.IsSorted(got))
	}
	until, _ := slices.BinarySearch(want, last(naive)+1)
	t.Logf("%d rows read, lag up to %v; id > last missed %d of %d; transactions: %d committed, %d refused, %d rolled back, %d killed, %d prepared; %d crashes of the server",
		len(got), longest.Round(time.Millisecond), len(difference(want[:until], naive)), until, counts.committed.Load(), counts.refused.Load(), counts.rolledBack.Load(), counts.killed.Load(), counts.prepared.Load(), counts.crashed.Load())
	if !enough() {
		t.Error("one of the faults has not happened, or the reader of id > last has missed no row; want all")
	}
}

// hasMissed reports whether a reader without a feed, which has read up to the last of its keys, has not read all
// of the rows up to there.
func (d Database) hasMissed(table string, naive []types.Snowflake) bool {
	var rows int
	err := d.DB.QueryRow(fmt.Sprintf("SELECT count(*) FROM %s WHERE id <= %d", table, int64(last(naive)))).Scan(&rows)
	return err == nil && rows > len(naive)
}

// write is one transaction.
func (d Database) write(t *testing.T, table string, g *core.Generator, outcome func(string)) {
	ctx := context.Background() // a transaction ends in its own way
	keys := make([]types.Snowflake, 1+rand.IntN(3))
	if err := g.Fill(ctx, keys); err != nil {
		t.Error(err)
		return
	}
	unit := time.Millisecond
	if d.Dialect == feed.SQLite { // the others wait for the lock
		unit /= 20
	}
	pause := func() {
		if rand.IntN(4) == 0 {
			time.Sleep(time.Duration(rand.IntN(100)) * unit)
		}
	}
	if rand.IntN(8) == 0 {
		time.Sleep(400 * time.Millisecond) // the keys grow old
	}
	conn, err := d.DB.Conn(ctx)
	if err != nil {
		outcome("killed")
		return
	}
	defer func() { _ = conn.Close() }()
	say := func(text string) bool {
		if err == nil {
			_, err = conn.ExecContext(ctx, text)
		}
		return err == nil
	}
	var self int
	if d.Kill != "" {
		err = conn.QueryRowContext(ctx, d.Self).Scan(&self)
	}
	name := fmt.Sprintf("feed%x", rand.Uint64())
	// A transaction of XA without its connection holds the horizon for everybody.
	twoPhase := d.Prepare != nil && rand.IntN(10*len(d.Prepare)-10) == 0
	begin, commit := "BEGIN", "COMMIT"
	if twoPhase {
		begin = fmt.Sprintf(d.Prepare[0], name)
	}
	for _, set := range d.isolation() {
		say(set)
	}
	if !say(begin) {
		outcome("killed")
		return
	}
	for _, id := range keys {
		pause()
		if !say(insert(table, id)) {
			break
		}
	}
	pause()
	if rand.IntN(30) == 0 {
		time.Sleep(1000 * unit)
	}
	switch n := rand.IntN(20); {
	case err != nil:
		if strings.Contains(err.Error(), "below the horizon") {
			outcome("refused")
		} else {
			t.Logf("INSERT = %v", err)
		}
		err = nil
		if twoPhase && len(d.Prepare) > 2 {
			_, _ = conn.ExecContext(ctx, fmt.Sprintf(d.Prepare[1], name))
			_, _ = conn.ExecContext(ctx, fmt.Sprintf("XA ROLLBACK '%s'", name))
		} else {
			_, _ = conn.ExecContext(ctx, "ROLLBACK")
		}
	case twoPhase:
		for _, text := range d.Prepare[1:] {
			say(fmt.Sprintf(text, name))
		}
		if len(d.Prepare) > 2 && rand.IntN(2) == 0 { // and the connection goes away
			_, _ = d.DB.ExecContext(ctx, fmt.Sprintf(d.Kill, self))
		}
		pause()
		time.Sleep(200 * time.Millisecond)
		// What stays prepared holds the horizon for ever. A server that crashed may not have it, and says so when
		// it is back. One that does not know it yet, by XAER_NOTA, has not noticed the end of its connection.
		prepared := err == nil
		for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			_, there := d.DB.ExecContext(ctx, fmt.Sprintf(d.Commit, name)) // another connection, or this one if it has the transaction
			if there == nil {
				outcome("prepared")
				break
			}
			if _, here := conn.ExecContext(ctx, fmt.Sprintf(d.Commit, name)); here == nil {
				outcome("prepared")
				break
			}
			if strings.Contains(there.Error(), "does not exist") || !prepared && strings.Contains(there.Error(), "XAER_NOTA") {
				break
			}
		}
	case n < 2:
		say("ROLLBACK")
		outcome("rolled back")
	case n < 4 && d.Kill != "":
		_, _ = d.DB.ExecContext(ctx, fmt.Sprintf(d.Kill, self))
		say(commit)
		outcome("killed")
	default:
		if say(commit) {
			outcome("committed")
		} else {
			_, _ = conn.ExecContext(ctx, "ROLLBACK")
		}
	}
}

// isolation returns what sets the level of the next transaction.
func (d Database) isolation() []string {
	levels := []string{"READ COMMITTED", "REPEATABLE READ"}
	level := levels[rand.IntN(len(levels))]
	switch d.Dialect.String() {
	case "PostgreSQL":
		return []string{"SET default_transaction_isolation = '" + level + "'"}
	case "MySQL":
		return []string{"SET SESSION TRANSACTION ISOLATION LEVEL " + level}
	}
	return nil
}

// after returns the keys after one, as a reader without a feed does.
func (d Database) after(table string, key types.Snowflake) (keys []types.Snowflake) {
	rows, err := d.DB.Query(fmt.Sprintf("SELECT id FROM %s WHERE id > %d ORDER BY id", table, int64(key)))
	if err != nil {
		return nil
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var id types.Snowflake
		if rows.Scan(&id) == nil {
			keys = append(keys, id)
		}
	}
	return keys
}

func last(keys []types.Snowflake) types.Snowflake {
	if len(keys) == 0 {
		return 0
	}
	return keys[len(keys)-1]
}

// difference returns the keys of a that are not in b.
func difference(a, b []types.Snowflake) (d []types.Snowflake) {
	in := make(map[types.Snowflake]bool, len(b))
	for _, k := range b {
		in[k] = true
	}
	for _, k := range a {
		if !in[k] {
			d = append(d, k)
		}
	}
	return d
}

func head(keys []types.Snowflake) []types.Snowflake { return keys[:min(3, len(keys))] }
