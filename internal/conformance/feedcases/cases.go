// Package feedcases tests package feed on a real database. feed runs the tests on SQLite, package
// servers on PostgreSQL, MariaDB and MySQL.
package feedcases

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/feed"
	"github.com/snowkey/snowkey/types"
)

// A Database is where the cases run. Its pools may have any number of connections.
type Database struct {
	DB      *sql.DB
	Dialect feed.Dialect
	Kill    string // ends the connection %d, if it has a server
	Self    string // tells a connection its number
	Prepare []string
	Commit  string // ends what Prepare has prepared under the name %[1]s
	Read    *sql.DB
	Feed    *sql.DB       // that of the feeds, if not DB
	Schema  string        // of PostgreSQL, if not public
	Crash   func(pid int) // ends the server, which comes back by itself
}

// orders makes a table, empty, which goes away with the test.
func (d Database) orders(t *testing.T) (name string) {
	t.Helper()
	name = "feed_orders"
	if d.Dialect == feed.PostgreSQL {
		name = cmp.Or(d.Schema, "public") + "." + name
	}
	d.drop(t, name)
	execute(t, d.DB, "CREATE TABLE "+name+" (id BIGINT PRIMARY KEY, n BIGINT NOT NULL DEFAULT 0)")
	t.Cleanup(func() { d.drop(t, name) })
	return name
}

func (d Database) drop(t *testing.T, name string) {
	execute(t, d.DB, "DROP TABLE IF EXISTS "+name)
	if d.Dialect == feed.PostgreSQL {
		execute(t, d.DB, "DROP SEQUENCE IF EXISTS "+name+"_feed")
		execute(t, d.DB, "DROP FUNCTION IF EXISTS "+name+"_feed")
	} else {
		execute(t, d.DB, "DROP TABLE IF EXISTS "+name+"_feed")
	}
	execute(t, d.DB, "DROP TABLE IF EXISTS "+name+"_feed_readers")
}

func execute(t *testing.T, db *sql.DB, text string) {
	t.Helper()
	if _, err := db.Exec(text); err != nil {
		t.Fatalf("Exec(%q) = %v", text, err)
	}
}

func (d Database) feed(t *testing.T, table string, slack time.Duration) *feed.Feed {
	t.Helper()
	f, err := feed.New(feed.Config{DB: cmp.Or(d.Feed, d.DB), Dialect: d.Dialect, Table: table, Slack: slack, Replica: d.Read})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func (d Database) install(t *testing.T, slack time.Duration) (table string, f *feed.Feed) {
	t.Helper()
	table = d.orders(t)
	f = d.feed(t, table, slack)
	for range 2 { // the second changes nothing
		if err := f.Install(t.Context()); err != nil {
			t.Fatalf("Install() = %v", err)
		}
	}
	return table, f
}

func generator(t *testing.T) *core.Generator {
	t.Helper()
	for worker := range int64(1024) {
		g, err := core.New(core.Config{Worker: core.StaticWorker(worker)})
		if errors.Is(err, core.ErrWorkerInUse) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = g.Close(context.Background()) })
		return g
	}
	t.Fatal("no worker number is free")
	return nil
}

func next(t *testing.T, g *core.Generator) types.Snowflake {
	t.Helper()
	id, err := g.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func insert(table string, id types.Snowflake) string {
	return fmt.Sprintf("INSERT INTO %s (id) VALUES (%d)", table, int64(id))
}

// patience is how long a test waits for what should come soon: a busy machine may take long to start a process
// or to end a session, and what hangs does so for ever.
const patience = 3 * time.Minute

// horizon calls Horizon until it is past a key.
func horizon(t *testing.T, f *feed.Feed, past types.Snowflake) types.Snowflake {
	t.Helper()
	for end := time.Now().Add(patience); ; {
		h, err := f.Horizon(t.Context())
		if err != nil {
			t.Fatalf("Horizon() = %v", err)
		}
		if h > past {
			return h
		}
		if time.Now().After(end) {
			t.Fatalf("Horizon() = %d for %v; want it past %d", h, patience, past)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// Run runs the cases.
func Run(t *testing.T, d Database) {
	const slack = time.Millisecond
	t.Run("AnOpenTransactionHoldsTheHorizonAndBlocksNobody", func(t *testing.T) {
		if d.Dialect == feed.SQLite {
			t.Skip("SQLite has one writer at a time")
		}
		table, f := d.install(t, slack)
		g := generator(t)
		first := next(t, g)
		execute(t, d.DB, insert(table, first))
		horizon(t, f, first)

		tx, err := d.DB.Begin()
		must(t, err)
		defer func() { _ = tx.Rollback() }()
		held := next(t, g)
		_, err = tx.Exec(insert(table, held))
		must(t, err)
		later := next(t, g)
		execute(t, d.DB, insert(table, later))
		stand := types.Snowflake(0)
		calls := 80 // more than there are gates
		if d.Dialect == feed.MySQL {
			calls = 30 // of 0.1 s
		}
		for range calls {
			h, err := f.Horizon(t.Context())
			must(t, err)
			if h > held || h < stand {
				t.Fatalf("Horizon() = %d after %d while a transaction that has inserted %d is open; want no more than that, and no less than before", h, stand, held)
			}
			stand = h
			if open := time.Since(g.Layout().Parts(held).Time); f.Lag() < open {
				t.Fatalf("Lag() = %v while a transaction is open that has inserted %d, %v ago; want no less", f.Lag(), held, open)
			}
		}
		var fence types.Snowflake
		must(t, d.DB.QueryRow("SELECT "+d.position()+" FROM "+table+"_feed").Scan(&fence))
		if fence <= later {
			t.Errorf("the fence is at %d while a transaction with %d is open; want it to go on", fence, held)
		}
		execute(t, d.DB, insert(table, next(t, g)))
		must(t, tx.Commit())
		horizon(t, f, later)
		got, err := f.Keys(t.Context(), first, 2)
		if err != nil || len(got) != 2 || got[0] != held || got[1] != later {
			t.Errorf("Keys(%d) = %v, %v; want %d, which was committed last, and %d", first, got, err, held, later)
		}
	})

	// Whatever snapshot a transaction has, and whenever it was drawn, a key that the horizon has passed
	// is not inserted.
	for _, level := range []sql.IsolationLevel{sql.LevelReadUncommitted, sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable} {
		t.Run("AnOldKeyIsRefusedOrTheHorizonWaits/"+level.String(), func(t *testing.T) {
			if d.Dialect == feed.SQLite && level != sql.LevelSerializable {
				t.Skip("SQLite has one level")
			}
			table, f := d.install(t, slack)
			g := generator(t)
			tx, err := d.DB.BeginTx(t.Context(), &sql.TxOptions{Isolation: level})
			must(t, err)
			defer func() { _ = tx.Rollback() }()
			var n int
			must(t, tx.QueryRow("SELECT count(*) FROM "+table).Scan(&n)) // its snapshot
			old := next(t, g)
			other := d.feed(t, table, slack)
			var h types.Snowflake
			for end := time.Now().Add(1500 * time.Millisecond); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
				h, err = other.Horizon(t.Context())
				must(t, err)
			}
			_, err = tx.Exec(insert(table, old))
			if err == nil {
				err = tx.Commit()
			}
			switch {
			case err == nil && h > old:
				t.Errorf("a row with the key %d was committed after Horizon() = %d; want an error", old, h)
			case err != nil && h <= old:
				t.Logf("refused early: %v", err)
			case err != nil && !strings.Contains(err.Error(), "below the horizon"):
				if d.Dialect != feed.SQLite { // whose snapshot was old
					t.Errorf("INSERT of an old key = %v; want what the trigger says", err)
				}
			}
			_ = tx.Rollback()

			old = next(t, g)
			h = horizon(t, f, old)
			if _, err := d.DB.Exec(insert(table, old)); err == nil || !strings.Contains(err.Error(), "below the horizon") {
				t.Errorf("INSERT of %d after Horizon() = %d: %v; want it refused", old, h, err)
			}
		})
	}

	t.Run("AnUpsertOfARowThatIsThereIsNoNewRow", func(t *testing.T) {
		table, f := d.install(t, 100*time.Millisecond)
		id := next(t, generator(t))
		execute(t, d.DB, insert(table, id))
		horizon(t, f, id)
		upsert := " ON CONFLICT (id) DO UPDATE SET n = 7"
		if d.Dialect == feed.MySQL {
			upsert = " ON DUPLICATE KEY UPDATE n = 7"
		}
		execute(t, d.DB, insert(table, id)+upsert)
		execute(t, d.DB, "UPDATE "+table+" SET n = n + 1")
		if _, err := d.DB.Exec("UPDATE " + table + " SET id = 5"); err == nil {
			t.Error("UPDATE of a key to 5 below the horizon = nil; want it refused")
		}
		var n int
		must(t, d.DB.QueryRow("SELECT n FROM "+table).Scan(&n))
		if n != 8 {
			t.Errorf("n = %d after an upsert and an update; want 8", n)
		}
	})

	t.Run("WithoutItsFenceThereIsNoHorizon", func(t *testing.T) {
		table := d.orders(t)
		f := d.feed(t, table, slack)
		unknown := func(when string) {
			t.Helper()
			if h, err := f.Horizon(t.Context()); h != 0 || !errors.Is(err, feed.ErrUnknownHorizon) {
				t.Errorf("Horizon() %s = %d, %v; want ErrUnknownHorizon", when, h, err)
			}
		}
		unknown("before Install")
		must(t, f.Install(t.Context()))
		if _, err := f.Horizon(t.Context()); err != nil {
			t.Errorf("Horizon() after Install = %v", err)
		}
		if d.Dialect == feed.PostgreSQL {
			execute(t, d.DB, "ALTER TABLE "+table+" ENABLE TRIGGER zz_feed") // not for replicated rows
			unknown("with a trigger that replication passes by")
			must(t, f.Install(t.Context()))
			execute(t, d.DB, "ALTER TABLE "+table+" DISABLE TRIGGER zz_feed")
		} else {
			execute(t, d.DB, "DROP TRIGGER "+table+"_feed_update")
		}
		unknown("after the trigger was taken away")
	})

	t.Run("ManyFeedsAtOnceGetTheHorizon", func(t *testing.T) {
		table, f := d.install(t, slack)
		horizon(t, f, 1)
		const feeds, calls = 12, 3
		var work sync.WaitGroup
		for range feeds {
			work.Go(func() {
				f := d.feed(t, table, slack)
				for range calls {
					if _, err := f.Horizon(t.Context()); err != nil {
						t.Errorf("Horizon() of one of %d Feeds at once = %v", feeds, err)
					}
				}
			})
		}
		work.Wait()
	})

	// Those that wrote where it has gone back to begin after all that the Feed has waited for, and another
	// Feed has raised the fence above that again.
	t.Run("AFeedWaitsForTheTransactionsOfADatabaseThatWentBack", func(t *testing.T) {
		if d.Dialect == feed.SQLite {
			t.Skip("SQLite has one writer at a time, and no Feed waits")
		}
		for _, other := range []bool{false, true} {
			table, f := d.install(t, slack)
			g := generator(t)
			horizon(t, f, 1)
			restore := d.backup(t, table)
			first, err := d.DB.Begin()
			must(t, err)
			defer func() { _ = first.Rollback() }()
			_, err = first.Exec(insert(table, next(t, g)))
			must(t, err)
			lost := next(t, g)
			d.raise(t, table, f, lost)
			restore()
			second, err := d.DB.Begin()
			must(t, err)
			defer func() { _ = second.Rollback() }()
			_, err = second.Exec(insert(table, lost))
			must(t, err)
			must(t, first.Commit())
			if other {
				d.raise(t, table, d.feed(t, table, slack), lost)
			}
			from := wentBack(t, f, 0)
			must(t, f.Acknowledge(t.Context(), from))
			for range 20 {
				if h, err := f.Horizon(t.Context()); err != nil || h > lost {
					t.Fatalf("Horizon() = %d, %v while a transaction is open that has inserted %d; want no more", h, err, lost)
				}
			}
			must(t, second.Commit())
			horizon(t, f, lost)
		}
	})

	// A backup is restored, and a row comes below what the readers have read.
	t.Run("EveryFeedLearnsThatTheDatabaseWentBackUntilSomebodyAcknowledgesIt", func(t *testing.T) {
		for _, first := range []string{"the Feed", "one that has just started, from its position", "one that has just started, from the beginning"} {
			t.Run(first, func(t *testing.T) {
				table, a := d.install(t, slack)
				g := generator(t)
				before := next(t, g)
				execute(t, d.DB, insert(table, before))
				horizon(t, a, before)
				restore := d.backup(t, table)
				late, read := next(t, g), next(t, g)
				execute(t, d.DB, insert(table, read))
				horizon(t, a, read)
				b := d.feed(t, table, slack)
				horizon(t, b, read)
				restore()
				execute(t, d.DB, "DELETE FROM "+table+fmt.Sprintf(" WHERE id = %d", read))
				execute(t, d.DB, insert(table, late))

				fresh := func() *feed.Feed { return d.feed(t, table, slack) }
				var from types.Snowflake
				switch first {
				case "the Feed":
					from = wentBack(t, a, read)
				case "one that has just started, from its position":
					from = wentBack(t, fresh(), read)
				default: // it has read nothing that is lost, and raises the fence
					d.raise(t, table, fresh(), read)
					from = wentBack(t, a, read)
				}
				for i, f := range []*feed.Feed{a, b, fresh(), fresh(), a} {
					after := read
					if i == 3 {
						after = 0
					}
					if again := wentBack(t, f, after); again != from {
						t.Errorf("the error of Feed %d names the key %d; want %d, as the first", i, again, from)
					}
				}
				var bad *core.ValueError
				if err := a.Acknowledge(t.Context(), from+1); !errors.As(err, &bad) || !strings.Contains(err.Error(), from.String()) {
					t.Errorf("Acknowledge() of another key = %v; want a ValueError that names %d", err, from)
				}
				must(t, fresh().Acknowledge(t.Context(), from))
				if got, err := a.WentBack(t.Context()); got != 0 || err != nil {
					t.Errorf("WentBack() after Acknowledge = %d, %v; want 0", got, err)
				}
				if err := a.Acknowledge(t.Context(), from); !errors.As(err, &bad) {
					t.Errorf("Acknowledge() twice = %v; want a ValueError", err)
				}
				for _, f := range []*feed.Feed{a, b, fresh()} {
					horizon(t, f, read)
					if keys, err := f.Keys(t.Context(), read, 10); len(keys) != 0 || err != nil {
						t.Errorf("Keys() after Acknowledge = %v, %v; want none", keys, err)
					}
				}
				if keys, err := a.Keys(t.Context(), from-1, 10); err != nil || last(keys) != late {
					t.Errorf("Keys(%d), from the key of the error on = %v, %v; want %d, which no reader has seen", from-1, keys, err, late)
				}
			})
		}
	})

	// One that was away all the time is not told of it again.
	t.Run("AFeedThatSleptThroughAnAcknowledgedRestoreBeginsAnew", func(t *testing.T) {
		table, asleep := d.install(t, slack)
		g := generator(t)
		horizon(t, asleep, 1)
		restore := d.backup(t, table)
		read := next(t, g)
		horizon(t, asleep, read)
		restore()
		f := d.feed(t, table, slack)
		must(t, f.Acknowledge(t.Context(), wentBack(t, f, read)))
		id := next(t, g)
		execute(t, d.DB, insert(table, id))
		horizon(t, asleep, id)
		if keys, err := asleep.Keys(t.Context(), read, 10); len(keys) != 1 || err != nil {
			t.Errorf("Keys() = %v, %v; want %d", keys, err, id)
		}
	})

	t.Run("APositionThatNobodyHasReadStopsNoOtherReader", func(t *testing.T) {
		_, f := d.install(t, time.Hour)
		if _, err := f.Horizon(t.Context()); err != nil {
			t.Fatal(err)
		}
		if keys, err := f.Keys(t.Context(), next(t, generator(t)), 10); keys != nil || !errors.Is(err, feed.ErrWentBack) {
			t.Errorf("Keys() from a key of now = %v, %v; want ErrWentBack", keys, err)
		}
		if _, err := f.Horizon(t.Context()); err != nil {
			t.Errorf("Horizon() after that = %v; want no error", err)
		}
	})

	t.Run("AFenceThatWasPutBackIsNoticed", func(t *testing.T) {
		table, f := d.install(t, slack)
		horizon(t, f, next(t, generator(t)))
		if d.Dialect == feed.PostgreSQL {
			execute(t, d.DB, "SELECT setval('"+table+"_feed', 1)")
		} else {
			execute(t, d.DB, "UPDATE "+table+"_feed SET closed = 1")
		}
		fresh := d.feed(t, table, slack)
		must(t, fresh.Acknowledge(t.Context(), wentBack(t, fresh, 0)))
		horizon(t, f, 1)
	})
}

// wentBack wants ErrWentBack, and returns the key that it names.
func wentBack(t *testing.T, f *feed.Feed, after types.Snowflake) types.Snowflake {
	t.Helper()
	keys, err := f.Keys(t.Context(), after, 10)
	if keys != nil || !errors.Is(err, feed.ErrWentBack) {
		t.Fatalf("Keys(%d) after the database went back = %v, %v; want ErrWentBack", after, keys, err)
	}
	from, err := f.WentBack(t.Context())
	must(t, err)
	if from == 0 || !strings.Contains(fmt.Sprint(f.Keys(t.Context(), after, 10)), from.String()) {
		t.Fatalf("WentBack() = %d; want the key in the text of the error", from)
	}
	return from
}

// raise calls Horizon until the fence is past a key.
func (d Database) raise(t *testing.T, table string, f *feed.Feed, past types.Snowflake) {
	t.Helper()
	for fence := types.Snowflake(0); fence <= past; {
		_, err := f.Horizon(t.Context())
		must(t, err)
		must(t, d.DB.QueryRow("SELECT "+d.position()+" FROM "+table+"_feed").Scan(&fence))
	}
}

// position is the column of a fence that has its key.
func (d Database) position() string {
	if d.Dialect == feed.PostgreSQL {
		return "last_value"
	}
	return "closed"
}

// backup returns a function that sets all of the fence to what it is now, as a restore does.
func (d Database) backup(t *testing.T, table string) (restore func()) {
	t.Helper()
	var fence int64
	must(t, d.DB.QueryRow("SELECT "+d.position()+" FROM "+table+"_feed").Scan(&fence))
	execute(t, d.DB, "DROP TABLE IF EXISTS feed_backup")
	execute(t, d.DB, "CREATE TABLE feed_backup AS SELECT * FROM "+table+"_feed_readers")
	t.Cleanup(func() { execute(t, d.DB, "DROP TABLE IF EXISTS feed_backup") })
	return func() {
		t.Helper()
		if d.Dialect == feed.PostgreSQL {
			execute(t, d.DB, fmt.Sprintf("SELECT setval('%s_feed', %d)", table, fence))
		} else {
			execute(t, d.DB, fmt.Sprintf("UPDATE %s_feed SET closed = %d", table, fence))
		}
		execute(t, d.DB, "DELETE FROM "+table+"_feed_readers")
		execute(t, d.DB, "INSERT INTO "+table+"_feed_readers SELECT * FROM feed_backup")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
