// Package feedcases tests package feed on a real database. feed runs the tests on SQLite, package
// servers on PostgreSQL, MariaDB and MySQL.
package feedcases

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
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
	Driver, DSN string
	FeedDSN     string // that of the feeds, if not DSN
	ReplicaDSN  string
	Dialect     feed.Dialect
	Schema      string   // of PostgreSQL, if not public
	Kill        string   // ends the connection %d, if it has a server
	Self        string   // tells a connection its number
	Prepare     []string // begins a transaction %s, and prepares it
	Prepared    string   // lists what is prepared, the name in the fourth column
	Commit      string   // ends what is prepared as %s

	Crash          func(pid int) `json:"-"` // ends the server, which comes back by itself
	DB, Feed, Read *sql.DB       `json:"-"` // made by connect
}

// connect makes the pools. What closes them goes to cleanup.
func (d *Database) connect(cleanup func(func())) error {
	for _, p := range []struct {
		pool **sql.DB
		dsn  string
	}{{&d.DB, d.DSN}, {&d.Feed, d.FeedDSN}, {&d.Read, d.ReplicaDSN}} {
		if p.dsn == "" {
			continue
		}
		db, err := sql.Open(d.Driver, p.dsn)
		if err != nil {
			return err
		}
		cleanup(func() { _ = db.Close() })
		*p.pool = db
	}
	d.Feed = cmp.Or(d.Feed, d.DB)
	return nil
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
	d.endPrepared() // which the table would wait for
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
	return d.reader(t, "test", table, slack)
}

func (d Database) reader(t *testing.T, name, table string, slack time.Duration) *feed.Feed {
	t.Helper()
	f, err := feed.New(d.config(name, table, slack))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func (d Database) config(reader, table string, slack time.Duration) feed.Config {
	return feed.Config{DB: d.Feed, Dialect: d.Dialect, Table: table, Reader: reader, Slack: slack, Replica: d.Read}
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
		h, err := f.Horizon(t.Context(), 0)
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
	must(t, d.connect(t.Cleanup))
	t.Run("TwoOpenTransactionsHoldTheHorizonAndBlockNobody", func(t *testing.T) {
		if d.Dialect == feed.SQLite {
			t.Skip("SQLite has one writer at a time")
		}
		table, f := d.install(t, slack)
		g := generator(t)
		stand := horizon(t, f, 1)
		waits := func(held types.Snowflake) {
			t.Helper()
			calls := 40
			if d.Dialect == feed.MySQL {
				calls = 5 // of 0.1 s
			}
			for range calls {
				execute(t, d.DB, insert(table, next(t, g)))
				h, err := f.Horizon(t.Context(), 0)
				must(t, err)
				if h > held || h < stand {
					t.Fatalf("Horizon() = %d after %d while a transaction that has inserted %d is open; want no more than that, and no less than before", h, stand, held)
				}
				stand = h
				if open := time.Since(g.Layout().Parts(held).Time); f.Lag() < open {
					t.Fatalf("Lag() = %v while a transaction is open that has inserted %d, %v ago; want no less", f.Lag(), held, open)
				}
			}
		}

		early, err := d.DB.Begin()
		must(t, err)
		defer func() { _ = early.Rollback() }()
		held := next(t, g)
		_, err = early.Exec(insert(table, held))
		must(t, err)
		waits(held)
		late, err := d.DB.Conn(t.Context())
		must(t, err)
		lose := func() { _ = late.Raw(func(any) error { return driver.ErrBadConn }) }
		defer func() { lose(); _ = late.Close() }()
		open := next(t, g)
		name := preparedPrefix + open.String()
		for _, text := range []string{fmt.Sprintf(d.Prepare[0], name), insert(table, open)} {
			_, err = late.ExecContext(t.Context(), text)
			must(t, err)
		}
		waits(held)
		var fence types.Snowflake
		must(t, d.DB.QueryRow("SELECT "+d.position()+" FROM "+table+"_feed").Scan(&fence))
		if fence <= open {
			t.Errorf("the fence is at %d while transactions with %d and %d are open; want it to go on", fence, held, open)
		}
		_, err = early.Exec(insert(table, next(t, g)))
		must(t, err)
		must(t, early.Commit())
		stand = horizon(t, f, held)
		waits(open)
		for _, text := range d.Prepare[1:] {
			_, err = late.ExecContext(t.Context(), fmt.Sprintf(text, name))
			must(t, err)
		}
		waits(open)
		lose()
		waits(open)
		for end := time.Now().Add(patience); d.endPrepared() == 0; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("nothing is prepared for %v; want %s", patience, name)
			}
		}
		want := d.after(table, 0)
		readUpTo(t, f, 0, last(want))
		if got, err := f.Keys(t.Context(), 0, len(want)+1); err != nil || !slices.Equal(got, want) {
			t.Errorf("Keys(0) = %v, %v; want the %d rows, among them %d and %d, which were committed last", got, err, len(want), held, open)
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
				h, err = other.Horizon(t.Context(), 0)
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

	// The trigger of this case runs after that of the feed, and before the row is written, which is when a
	// transaction gets its ID by itself: too late for a horizon that has gone on in between.
	t.Run("AWriterThatHasReadTheFenceHoldsTheHorizon", func(t *testing.T) {
		if d.Dialect != feed.PostgreSQL {
			t.Skip("a transaction of it that writes has an ID before")
		}
		const gate = 7461 // an advisory lock
		table, f := d.install(t, slack)
		id := next(t, generator(t))
		execute(t, d.DB, "CREATE OR REPLACE FUNCTION feed_gate() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN PERFORM pg_advisory_xact_lock_shared("+strconv.Itoa(gate)+"); RETURN NEW; END$$")
		t.Cleanup(func() { execute(t, d.DB, "DROP FUNCTION feed_gate CASCADE") })
		execute(t, d.DB, "CREATE TRIGGER zzz_gate BEFORE INSERT ON "+table+" FOR EACH ROW EXECUTE FUNCTION feed_gate()")
		closed, err := d.DB.Begin()
		must(t, err)
		defer func() { _ = closed.Rollback() }()
		_, err = closed.Exec("SELECT pg_advisory_xact_lock(" + strconv.Itoa(gate) + ")")
		must(t, err)
		stored := make(chan error, 1)
		go func() { _, err := d.DB.Exec(insert(table, id)); stored <- err }()
		for waits, end := 0, time.Now().Add(patience); waits == 0; {
			must(t, d.DB.QueryRow("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = "+strconv.Itoa(gate)+" AND NOT granted").Scan(&waits))
			if time.Now().After(end) {
				t.Fatalf("the writer has not come to the gate for %v", patience)
			}
		}
		d.raise(t, table, f, 0, id)
		for range 20 {
			if h, err := f.Horizon(t.Context(), 0); err != nil || h > id {
				t.Fatalf("Horizon() = %d, %v while a writer that has read the fence has not written its row %d; want no more than that", h, err, id)
			}
		}
		must(t, closed.Rollback())
		must(t, <-stored)
		horizon(t, f, id)
		if keys, err := f.Keys(t.Context(), 0, 10); err != nil || !slices.Contains(keys, id) {
			t.Errorf("Keys(0) = %v, %v; want %d in it", keys, err, id)
		}
	})

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
			if h, err := f.Horizon(t.Context(), 0); h != 0 || !errors.Is(err, feed.ErrUnknownHorizon) {
				t.Errorf("Horizon() %s = %d, %v; want ErrUnknownHorizon", when, h, err)
			}
		}
		unknown("before Install")
		must(t, f.Install(t.Context()))
		if _, err := f.Horizon(t.Context(), 0); err != nil {
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
					if _, err := f.Horizon(t.Context(), 0); err != nil {
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
			d.raise(t, table, f, 0, lost)
			restore()
			second, err := d.DB.Begin()
			must(t, err)
			defer func() { _ = second.Rollback() }()
			_, err = second.Exec(insert(table, lost))
			must(t, err)
			must(t, first.Commit())
			if other {
				d.raise(t, table, d.feed(t, table, slack), 0, lost)
			}
			from := wentBack(t, f, 0)
			must(t, f.Acknowledge(t.Context(), from))
			for range 20 {
				if h, err := f.Horizon(t.Context(), 0); err != nil || h > lost {
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
					d.raise(t, table, fresh(), 0, read)
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

	// All programs were stopped, so no Feed remembers, and the first one raises the fence above what the others
	// have read.
	t.Run("EachReaderLearnsOfARestoreThatNoFeedHasLivedThrough", func(t *testing.T) {
		for _, first := range []string{"a new reader", "the reader with the lowest position", "that of keys", "that of whole rows"} {
			t.Run(first, func(t *testing.T) {
				table, low := d.install(t, slack)
				g := generator(t)
				begin := next(t, g)
				execute(t, d.DB, insert(table, begin))
				reader := func(name string) *feed.Feed { return d.reader(t, name, table, slack) }
				keys, rows := reader("keys"), reader("rows")
				for _, f := range []*feed.Feed{low, keys, rows} {
					readUpTo(t, f, 0, begin)
				}
				restore := d.backup(t, table)
				late, read := next(t, g), next(t, g)
				execute(t, d.DB, insert(table, read))
				readUpTo(t, keys, begin, read)
				for h := types.Snowflake(0); h <= read; {
					var err error
					h, err = rows.Horizon(t.Context(), begin)
					must(t, err)
				}
				restore()
				execute(t, d.DB, "DELETE FROM "+table+fmt.Sprintf(" WHERE id = %d", read))
				execute(t, d.DB, insert(table, late))

				learns := func(name string) {
					t.Helper()
					switch h, err := reader(name).Horizon(t.Context(), read); {
					case name == "keys":
						wentBack(t, reader(name), read)
					case h != 0 || !errors.Is(err, feed.ErrWentBack):
						t.Errorf("Horizon() of the reader of whole rows, which has read up to %d, after the database went back = %d, %v; want ErrWentBack", read, h, err)
					}
				}
				switch first {
				case "a new reader":
					d.raise(t, table, reader("new"), 0, read)
				case "the reader with the lowest position":
					d.raise(t, table, reader("test"), begin, read)
				case "that of keys":
					learns("keys")
				}
				for _, name := range []string{"rows", "keys", "rows"} {
					learns(name)
				}
				from := wentBack(t, reader("test"), begin) // by now somebody has noticed
				if again := wentBack(t, reader("new"), 0); again != from || from > late {
					t.Errorf("the error names the keys %d and %d; want one, and none after %d, which came when the database had gone back", from, again, late)
				}

				must(t, reader("test").Acknowledge(t.Context(), from))
				for _, name := range []string{"rows", "keys", "new"} {
					horizon(t, reader(name), read)
					if keys, err := reader(name).Keys(t.Context(), read, 10); len(keys) != 0 || err != nil {
						t.Errorf("Keys() of the reader %q after Acknowledge = %v, %v; want none", name, keys, err)
					}
				}
				readUpTo(t, reader("test"), begin, late)
			})
		}
	})

	// The fence was past it when the backup was made, which only shows that no row can come below.
	t.Run("AReaderLearnsThatARowIsLostThatWasOpenAtTheBackup", func(t *testing.T) {
		if d.Dialect == feed.SQLite {
			t.Skip("SQLite has one writer at a time")
		}
		table, f := d.install(t, slack)
		horizon(t, f, 1)
		tx, err := d.DB.Begin()
		must(t, err)
		defer func() { _ = tx.Rollback() }()
		open := next(t, generator(t))
		_, err = tx.Exec(insert(table, open))
		must(t, err)
		d.raise(t, table, f, 0, open)
		restore := d.backup(t, table)
		must(t, tx.Commit())
		readUpTo(t, f, 0, open)
		restore()
		execute(t, d.DB, "DELETE FROM "+table)
		if from := wentBack(t, d.feed(t, table, slack), open); from > open {
			t.Errorf("the error names the key %d; want %d, which is lost, or one before", from, open)
		}
	})

	t.Run("AReaderThatIsNewSaysSoBeforeItBeginsAnywhere", func(t *testing.T) {
		table, f := d.install(t, slack)
		id := next(t, generator(t))
		execute(t, d.DB, insert(table, id))
		horizon(t, f, id)
		reader := func() *feed.Feed { return d.reader(t, "new", table, slack) }
		for range 2 {
			if keys, err := reader().Keys(t.Context(), id-1, 10); keys != nil || !errors.Is(err, feed.ErrWentBack) || !strings.Contains(err.Error(), `"new"`) {
				t.Errorf("Keys() of a reader that the database does not know = %v, %v; want ErrWentBack with its name", keys, err)
			}
		}
		horizon(t, f, id) // it stops no other
		horizon(t, reader(), id)
		readUpTo(t, reader(), id-1, id)
	})

	// A request has left a connection of the pool with another default, where another tenant has a table of the
	// same name, and a feed on it.
	t.Run("AFeedStaysWithItsTableWhateverTheConnectionHasAsDefault", func(t *testing.T) {
		table, f := d.install(t, slack)
		id := next(t, generator(t))
		execute(t, d.DB, insert(table, id))
		horizon(t, f, id)
		own := table
		if d.Dialect == feed.MySQL {
			var schema string
			must(t, d.DB.QueryRow("SELECT DATABASE()").Scan(&schema))
			own = schema + "." + table
		}
		d.DB.SetMaxOpenConns(1)
		t.Cleanup(func() {
			d.DB.SetMaxIdleConns(0) // ends it
			d.DB.SetMaxIdleConns(2)
			d.DB.SetMaxOpenConns(0)
		})
		for _, statement := range d.elsewhere(t) {
			execute(t, d.DB, statement)
		}
		fence := func(table string) (n int64) {
			t.Helper()
			must(t, d.DB.QueryRow("SELECT SUM(closed) FROM "+table+"_feed_readers").Scan(&n))
			return n
		}
		before := fence("feed_orders")
		for range 2 {
			if keys, err := f.Keys(t.Context(), 0, 10); err != nil || len(keys) != 1 || keys[0] != id {
				t.Errorf("Keys() on a connection with another default = %v, %v; want %d, which its own table has", keys, err, id)
			}
		}
		if got, err := f.WentBack(t.Context()); got != 0 || err != nil {
			t.Errorf("WentBack() = %d, %v; want 0", got, err)
		}
		must(t, f.Install(t.Context()))
		if after := fence("feed_orders"); after != before {
			t.Errorf("the readers of the other table are at %d, and were at %d; want them left alone", after, before)
		}
		if d.Dialect != feed.SQLite { // whose temporary table hides the own one
			if _, err := d.DB.Exec(insert(own, id-1)); err == nil || !strings.Contains(err.Error(), "below the horizon") {
				t.Errorf("INSERT of an old key on that connection = %v; want it refused by the fence of its table", err)
			}
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

	t.Run("AReaderThatHasReadTheHorizonItselfGoesOn", func(t *testing.T) {
		table, f := d.install(t, slack)
		h, fence := types.Snowflake(0), types.Snowflake(1)
		for h != fence { // where a row may still come
			var err error
			h, err = f.Horizon(t.Context(), 0)
			must(t, err)
			must(t, d.DB.QueryRow("SELECT "+d.position()+" FROM "+table+"_feed").Scan(&fence))
		}
		execute(t, d.DB, insert(table, h))
		readUpTo(t, f, h-1, h)
		if keys, err := f.Keys(t.Context(), h, 10); len(keys) != 0 || err != nil {
			t.Errorf("Keys(%d), which Horizon had returned and Keys then, = %v, %v; want none", h, keys, err)
		}
	})

	t.Run("APositionThatNobodyHasReadStopsNoOtherReader", func(t *testing.T) {
		_, f := d.install(t, time.Hour)
		if _, err := f.Horizon(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		if keys, err := f.Keys(t.Context(), next(t, generator(t)), 10); keys != nil || !errors.Is(err, feed.ErrWentBack) {
			t.Errorf("Keys() from a key of now = %v, %v; want ErrWentBack", keys, err)
		}
		if _, err := f.Horizon(t.Context(), 0); err != nil {
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

// elsewhere returns statements that make a connection find another table feed_orders than the test's own, with
// the tables of a feed.
func (d Database) elsewhere(t *testing.T) []string {
	t.Helper()
	if d.Dialect == feed.SQLite {
		return []string{
			"CREATE TEMP TABLE feed_orders (id INTEGER PRIMARY KEY)", "INSERT INTO temp.feed_orders VALUES (7)",
			"CREATE TEMP TABLE feed_orders_feed (one INTEGER PRIMARY KEY, closed INTEGER NOT NULL)", "INSERT INTO temp.feed_orders_feed VALUES (1, 0)",
			"CREATE TEMP TABLE feed_orders_feed_readers (feed INTEGER PRIMARY KEY, closed INTEGER NOT NULL)", "INSERT INTO temp.feed_orders_feed_readers VALUES (0, 0), (1, 0)",
		}
	}
	schema, use, remove := fmt.Sprintf("feed_elsewhere%08x", rand.Uint32()), "SET search_path TO ", "DROP SCHEMA %s CASCADE"
	if d.Dialect == feed.MySQL {
		use, remove = "USE ", "DROP DATABASE %s"
	}
	execute(t, d.DB, "CREATE SCHEMA "+schema)
	t.Cleanup(func() { execute(t, d.DB, fmt.Sprintf(remove, schema)) })
	execute(t, d.DB, "CREATE TABLE "+schema+".feed_orders (id BIGINT PRIMARY KEY)")
	execute(t, d.DB, insert(schema+".feed_orders", 7))
	must(t, d.feed(t, schema+".feed_orders", time.Millisecond).Install(t.Context()))
	return []string{use + schema}
}

// readUpTo calls Keys from a position until it returns a key as the last one.
func readUpTo(t *testing.T, f *feed.Feed, after, upTo types.Snowflake) {
	t.Helper()
	for end := time.Now().Add(patience); after != upTo; {
		keys, err := f.Keys(t.Context(), after, 10)
		must(t, err)
		if after = max(after, last(keys)); time.Now().After(end) {
			t.Fatalf("Keys() has not returned %d for %v", upTo, patience)
		}
	}
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

// raise calls Horizon, from a position, until the fence is past a key.
func (d Database) raise(t *testing.T, table string, f *feed.Feed, after, past types.Snowflake) {
	t.Helper()
	for fence := types.Snowflake(0); fence <= past; {
		_, err := f.Horizon(t.Context(), after)
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
