package feedcases

import (
	"cmp"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/feed"
	"github.com/snowkey/snowkey/types"
)

// Run runs the cases.
func Run(t *testing.T, d Database) {
	must(t, d.connect(t.Cleanup))
	servers := []feed.Dialect{feed.PostgreSQL, feed.MySQL} // SQLite has one writer at a time
	all := append(servers, feed.SQLite)
	for _, c := range []struct {
		name  string
		run   func(*scene)
		on    []feed.Dialect
		slack time.Duration
	}{
		{"TwoOpenTransactionsHoldTheHorizonAndBlockNobody", twoOpen, servers, time.Millisecond},
		{"AWriterThatHasReadTheFenceHoldsTheHorizon", gate, servers[:1], time.Millisecond},
		{"AnUpsertOfARowThatIsThereIsNoNewRow", upsert, all, 100 * time.Millisecond},
		{"WithoutItsFenceThereIsNoHorizon", withoutFence, all, time.Millisecond},
		{"ManyFeedsAtOnceGetTheHorizon", manyFeeds, all, time.Millisecond},
		{"AFeedWaitsForTheTransactionsOfADatabaseThatWentBack", openAtRestore, servers, time.Millisecond},
		{"AReaderLearnsThatARowIsLostThatWasOpenAtTheBackup", openAtBackup, servers, time.Millisecond},
		{"AReaderThatIsNewSaysSoBeforeItBeginsAnywhere", newReader, all, time.Millisecond},
		{"AFeedStaysWithItsTableWhateverTheConnectionHasAsDefault", otherDefault, all, time.Millisecond},
		{"AReaderThatHasReadTheHorizonItselfGoesOn", atTheHorizon, all, time.Millisecond},
		{"APositionThatNobodyHasReadStopsNoOtherReader", unreadPosition, all, time.Hour},
		{"AFenceThatWasPutBackIsNoticed", fencePutBack, all, time.Millisecond},
	} {
		if slices.Contains(c.on, d.Dialect) {
			t.Run(c.name, func(t *testing.T) { c.run(d.scene(t, c.slack)) })
		}
	}
	for _, level := range []sql.IsolationLevel{sql.LevelReadUncommitted, sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable} {
		if d.Dialect != feed.SQLite || level == sql.LevelSerializable { // which has one level
			t.Run("AnOldKeyIsRefusedOrTheHorizonWaits/"+level.String(), func(t *testing.T) { oldKey(d.scene(t, time.Millisecond), level) })
		}
	}
	for _, first := range []string{"a new reader", "the reader with the lowest position", "another process", "another process from the beginning", "that of keys", "that of whole rows"} {
		t.Run("EachReaderLearnsOfARestoreUntilSomebodyAcknowledgesIt/"+first, func(t *testing.T) {
			for _, lived := range []bool{false, true} {
				eachReaderLearns(d.scene(t, time.Millisecond), first, lived)
			}
		})
	}
}

func twoOpen(s *scene) {
	stand := s.past(s.feed, 1)
	waits := func(held types.Snowflake) {
		s.Helper()
		calls := 40
		if s.Dialect == feed.MySQL {
			calls = 5 // of 0.1 s
		}
		for range calls {
			s.put()
			h, err := s.feed.Horizon(s.Context(), 0)
			must(s.T, err)
			if h > held || h < stand {
				s.Fatalf("Horizon() = %d after %d while a transaction that has inserted %d is open; want no more than that, and no less than before", h, stand, held)
			}
			stand = h
			if open := time.Since(core.Default().Parts(held).Time); s.feed.Lag() < open {
				s.Fatalf("Lag() = %v while a transaction is open that has inserted %d, %v ago; want no less", s.feed.Lag(), held, open)
			}
		}
	}
	held := s.key()
	early := s.open(held)
	waits(held)
	open := s.key()
	late := s.open(open)
	waits(held)
	if fence := s.fence(); fence <= open {
		s.Errorf("the fence is at %d while transactions with %d and %d are open; want it to go on", fence, held, open)
	}
	_, err := early.Exec(insert(s.table, s.key()))
	must(s.T, err)
	must(s.T, early.Commit())
	stand = s.past(s.feed, held)
	waits(open)
	must(s.T, late.Commit())
	want := s.after(s.table, 0)
	s.read(s.feed, 0, last(want))
	if got, err := s.feed.Keys(s.Context(), 0, len(want)+1); err != nil || !slices.Equal(got, want) {
		s.Errorf("Keys(0) = %v, %v; want the %d rows, among them %d and %d, which were committed last", got, err, len(want), held, open)
	}
}

// Whatever snapshot a transaction has, and whenever it was drawn, a key that the horizon has passed
// is not inserted.
func oldKey(s *scene, level sql.IsolationLevel) {
	tx := s.begin(level)
	var n int
	must(s.T, tx.QueryRow("SELECT count(*) FROM "+s.table).Scan(&n)) // its snapshot
	old, other := s.key(), s.fresh()
	var h types.Snowflake
	for end := time.Now().Add(1500 * time.Millisecond); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		var err error
		h, err = other.Horizon(s.Context(), 0)
		must(s.T, err)
	}
	_, err := tx.Exec(insert(s.table, old))
	if err == nil {
		err = tx.Commit()
	}
	switch {
	case err == nil && h > old:
		s.Errorf("a row with the key %d was committed after Horizon() = %d; want an error", old, h)
	case err != nil && h <= old:
		s.Logf("refused early: %v", err)
	case err != nil && !strings.Contains(err.Error(), belowHorizon) && s.Dialect != feed.SQLite: // whose snapshot was old
		s.Errorf("INSERT of an old key = %v; want what the trigger says", err)
	}
	_ = tx.Rollback()
	old = s.key()
	s.past(s.feed, old)
	s.refused(insert(s.table, old))
}

// The trigger of this case runs after that of the feed, and before the row is written, which is when a
// transaction gets its ID by itself: too late for a horizon that has gone on in between. A transaction of
// other databases that writes has an ID before.
func gate(s *scene) {
	const gate = "7461" // an advisory lock
	id := s.key()
	s.exec("CREATE OR REPLACE FUNCTION feed_gate() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN PERFORM pg_advisory_xact_lock_shared(" + gate + "); RETURN NEW; END$$")
	s.Cleanup(func() { s.exec("DROP FUNCTION feed_gate CASCADE") })
	s.exec("CREATE TRIGGER zzz_gate BEFORE INSERT ON " + s.table + " FOR EACH ROW EXECUTE FUNCTION feed_gate()")
	closed := s.begin(sql.LevelDefault)
	_, err := closed.Exec("SELECT pg_advisory_xact_lock(" + gate + ")")
	must(s.T, err)
	stored := make(chan error, 1)
	go func() { _, err := s.DB.Exec(insert(s.table, id)); stored <- err }()
	for waits, end := 0, time.Now().Add(patience); waits == 0; {
		must(s.T, s.DB.QueryRow("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = "+gate+" AND NOT granted").Scan(&waits))
		if time.Now().After(end) {
			s.Fatalf("the writer has not come to the gate for %v", patience)
		}
	}
	s.raise(s.feed, 0, id)
	s.held(s.feed, id, "a writer that has read the fence has not written its row")
	must(s.T, closed.Rollback())
	must(s.T, <-stored)
	s.past(s.feed, id)
	s.read(s.feed, 0, id)
}

func upsert(s *scene) {
	id := s.put()
	s.past(s.feed, id)
	again := " ON CONFLICT (id) DO UPDATE SET n = 7"
	if s.Dialect == feed.MySQL {
		again = " ON DUPLICATE KEY UPDATE n = 7"
	}
	s.exec(insert(s.table, id) + again)
	s.exec("UPDATE " + s.table + " SET n = n + 1")
	if _, err := s.DB.Exec("UPDATE " + s.table + " SET id = 5"); err == nil {
		s.Error("UPDATE of a key to 5 below the horizon = nil; want it refused")
	}
	var n int
	if err := s.DB.QueryRow("SELECT n FROM " + s.table).Scan(&n); n != 8 || err != nil {
		s.Errorf("n = %d, %v after an upsert and an update; want 8", n, err)
	}
}

func withoutFence(s *scene) {
	unknown := func(when string) {
		s.Helper()
		if h, err := s.feed.Horizon(s.Context(), 0); h != 0 || !errors.Is(err, feed.ErrUnknownHorizon) {
			s.Errorf("Horizon() %s = %d, %v; want ErrUnknownHorizon", when, h, err)
		}
	}
	if s.Dialect == feed.PostgreSQL {
		s.exec("ALTER TABLE " + s.table + " ENABLE TRIGGER zz_feed") // not for replicated rows
		unknown("with a trigger that replication passes by")
		must(s.T, s.feed.Install(s.Context()))
		s.exec("ALTER TABLE " + s.table + " DISABLE TRIGGER zz_feed")
	} else {
		s.exec("DROP TRIGGER " + s.table + "_feed_update")
	}
	unknown("after the trigger was taken away")
	must(s.T, s.feed.Install(s.Context()))
	s.past(s.feed, 1)
	s.drop(s.T, s.table)
	s.exec("CREATE TABLE " + s.table + " (id BIGINT PRIMARY KEY)")
	unknown("before Install")
}

func manyFeeds(s *scene) {
	s.past(s.feed, 1)
	const feeds, calls = 12, 3
	var work sync.WaitGroup
	for range feeds {
		work.Go(func() {
			f := s.fresh()
			for range calls {
				if _, err := f.Horizon(s.Context(), 0); err != nil {
					s.Errorf("Horizon() of one of %d Feeds at once = %v", feeds, err)
				}
			}
		})
	}
	work.Wait()
}

// Those that wrote where it has gone back to begin after all that the Feed has waited for, and another
// Feed has raised the fence above that again.
func openAtRestore(s *scene) {
	for _, other := range []bool{false, true} {
		s.past(s.feed, s.key())
		restore := s.backup()
		first := s.open(s.key())
		lost := s.key()
		s.raise(s.feed, 0, lost)
		restore()
		second := s.open(lost)
		must(s.T, first.Commit())
		if other {
			s.raise(s.fresh(), 0, lost)
		}
		must(s.T, s.feed.Acknowledge(s.Context(), s.wentBack(s.feed, 0)))
		s.held(s.feed, lost, "a transaction is open that has inserted that")
		must(s.T, second.Commit())
		s.past(s.feed, lost)
	}
}

// The fence was past it when the backup was made, which only shows that no row can come below.
func openAtBackup(s *scene) {
	s.past(s.feed, 1)
	open := s.key()
	tx := s.open(open)
	s.raise(s.feed, 0, open)
	restore := s.backup()
	must(s.T, tx.Commit())
	s.read(s.feed, 0, open)
	restore()
	if from := s.wentBack(s.fresh(), open); from > open {
		s.Errorf("the error names the key %d; want %d, which is lost, or one before", from, open)
	}
}

// A backup is restored, and a row comes below what the readers have read. Either their Feeds have lived through
// that, or all programs were stopped and no Feed remembers. The one that is first may raise the fence above
// what the others have read. The reader "test" sleeps until somebody has acknowledged the restore, and is not
// told of it again.
func eachReaderLearns(s *scene, first string, lived bool) {
	begin := s.put()
	feeds := map[string]*feed.Feed{"test": s.feed, "keys": s.reader("keys"), "rows": s.reader("rows")}
	for _, f := range feeds {
		s.read(f, 0, begin)
	}
	restore := s.backup()
	late, read := s.key(), s.put()
	s.read(feeds["keys"], begin, read)
	s.past(feeds["rows"], read)
	s.past(feeds["test"], read)
	restore()
	s.exec(insert(s.table, late))

	of := func(name string) *feed.Feed {
		if lived {
			return feeds[name]
		}
		return s.reader(name)
	}
	var from types.Snowflake
	learns := func(f *feed.Feed, after types.Snowflake) {
		s.Helper()
		again := s.wentBack(f, after)
		if from = cmp.Or(from, again); again != from {
			s.Errorf("the errors name the keys %d and %d; want one", from, again)
		}
	}
	switch first {
	case "a new reader":
		s.raise(s.reader("new"), 0, read)
	case "the reader with the lowest position":
		s.raise(s.fresh(), begin, read)
	case "another process":
		learns(s.reader("keys"), read)
	case "another process from the beginning": // it has read nothing that is lost
		s.raise(s.reader("keys"), 0, read)
		if lived {
			learns(feeds["keys"], read)
		}
	case "that of keys":
		learns(of("keys"), read)
	}
	for range 2 {
		if h, err := of("rows").Horizon(s.Context(), read); h != 0 || !errors.Is(err, feed.ErrWentBack) {
			s.Errorf("Horizon() of the reader of whole rows, which has read up to %d, after the database went back = %d, %v; want ErrWentBack", read, h, err)
		}
		learns(of("keys"), read)
		learns(s.fresh(), begin) // by now somebody has noticed
		learns(s.reader("new"), 0)
	}
	a := of("keys")
	var bad *core.ValueError
	if err := a.Acknowledge(s.Context(), from+1); !errors.As(err, &bad) || !strings.Contains(err.Error(), from.String()) {
		s.Errorf("Acknowledge() of another key = %v; want a ValueError that names %d", err, from)
	}
	must(s.T, s.fresh().Acknowledge(s.Context(), from))
	if got, err := a.WentBack(s.Context()); got != 0 || err != nil {
		s.Errorf("WentBack() after Acknowledge = %d, %v; want 0", got, err)
	}
	if err := a.Acknowledge(s.Context(), from); !errors.As(err, &bad) || err != error(bad) {
		s.Errorf("Acknowledge() twice = %v; want a ValueError", err)
	}
	all := []*feed.Feed{of("keys"), of("rows"), of("test"), s.reader("keys"), s.reader("new")}
	for _, f := range all {
		s.past(f, read)
		s.nothing(f, read)
	}
	if keys, err := a.Keys(s.Context(), from-1, 10); err != nil || last(keys) != late {
		s.Errorf("Keys(%d), from the key of the error on = %v, %v; want %d, which no reader has seen", from-1, keys, err, late)
	}
	next := s.put()
	for _, f := range all {
		s.read(f, read, next)
	}
}

func newReader(s *scene) {
	id := s.put()
	s.past(s.feed, id)
	for range 2 {
		if keys, err := s.reader("new").Keys(s.Context(), id-1, 10); keys != nil || !errors.Is(err, feed.ErrWentBack) || !strings.Contains(err.Error(), `"new"`) {
			s.Errorf("Keys() of a reader that the database does not know = %v, %v; want ErrWentBack with its name", keys, err)
		}
	}
	s.past(s.feed, id) // it stops no other
	s.past(s.reader("new"), id)
	s.read(s.reader("new"), id-1, id)
}

// A request has left a connection of the pool with another default, where another tenant has a table of the
// same name, and a feed on it.
func otherDefault(s *scene) {
	id := s.put()
	s.past(s.feed, id)
	own := s.table
	if s.Dialect == feed.MySQL {
		var schema string
		must(s.T, s.DB.QueryRow("SELECT DATABASE()").Scan(&schema))
		own = schema + "." + own
	}
	s.DB.SetMaxOpenConns(1)
	s.Cleanup(func() {
		s.DB.SetMaxIdleConns(0) // ends it
		s.DB.SetMaxIdleConns(2)
		s.DB.SetMaxOpenConns(0)
	})
	for _, statement := range s.elsewhere() {
		s.exec(statement)
	}
	positions := func() (n int64) {
		s.Helper()
		must(s.T, s.DB.QueryRow("SELECT SUM(closed) FROM feed_orders_feed_readers").Scan(&n))
		return n
	}
	before := positions()
	for range 2 {
		if keys, err := s.feed.Keys(s.Context(), 0, 10); err != nil || len(keys) != 1 || keys[0] != id {
			s.Errorf("Keys() on a connection with another default = %v, %v; want %d, which its own table has", keys, err, id)
		}
	}
	if got, err := s.feed.WentBack(s.Context()); got != 0 || err != nil {
		s.Errorf("WentBack() = %d, %v; want 0", got, err)
	}
	must(s.T, s.feed.Install(s.Context()))
	if after := positions(); after != before {
		s.Errorf("the readers of the other table are at %d, and were at %d; want them left alone", after, before)
	}
	if s.Dialect != feed.SQLite { // whose temporary table hides the own one
		s.refused(insert(own, id-1))
	}
}

// elsewhere returns statements that make a connection find another table feed_orders than the test's own, with
// the tables of a feed.
func (s *scene) elsewhere() []string {
	s.Helper()
	if s.Dialect == feed.SQLite {
		return []string{
			"CREATE TEMP TABLE feed_orders (id INTEGER PRIMARY KEY)", "INSERT INTO temp.feed_orders VALUES (7)",
			"CREATE TEMP TABLE feed_orders_feed (one INTEGER PRIMARY KEY, closed INTEGER NOT NULL)", "INSERT INTO temp.feed_orders_feed VALUES (1, 0)",
			"CREATE TEMP TABLE feed_orders_feed_readers (feed INTEGER PRIMARY KEY, closed INTEGER NOT NULL)", "INSERT INTO temp.feed_orders_feed_readers VALUES (0, 0), (1, 0)",
		}
	}
	schema, use, remove := fmt.Sprintf("feed_elsewhere%08x", rand.Uint32()), "SET search_path TO ", "DROP SCHEMA %s CASCADE"
	if s.Dialect == feed.MySQL {
		use, remove = "USE ", "DROP DATABASE %s"
	}
	s.exec("CREATE SCHEMA " + schema)
	s.Cleanup(func() { s.exec(fmt.Sprintf(remove, schema)) })
	s.exec("CREATE TABLE " + schema + ".feed_orders (id BIGINT PRIMARY KEY)")
	s.exec(insert(schema+".feed_orders", 7))
	must(s.T, s.Database.reader(s.T, "test", schema+".feed_orders", time.Millisecond).Install(s.Context()))
	return []string{use + schema}
}

func atTheHorizon(s *scene) {
	h, fence := types.Snowflake(0), types.Snowflake(1)
	for h != fence { // where a row may still come
		var err error
		h, err = s.feed.Horizon(s.Context(), 0)
		must(s.T, err)
		fence = s.fence()
	}
	s.exec(insert(s.table, h))
	s.read(s.feed, h-1, h)
	s.nothing(s.feed, h) // which Horizon had returned, and Keys then
}

func unreadPosition(s *scene) {
	_, before := s.feed.Horizon(s.Context(), 0)
	keys, err := s.feed.Keys(s.Context(), s.key(), 10)
	if keys != nil || !errors.Is(err, feed.ErrWentBack) {
		s.Errorf("Keys() from a key of now = %v, %v; want ErrWentBack", keys, err)
	}
	if _, after := s.feed.Horizon(s.Context(), 0); before != nil || after != nil {
		s.Errorf("Horizon() = %v, and after that %v; want no error", before, after)
	}
}

func fencePutBack(s *scene) {
	s.past(s.feed, s.key())
	s.setFence(1)
	fresh := s.fresh()
	must(s.T, fresh.Acknowledge(s.Context(), s.wentBack(fresh, 0)))
	s.past(s.feed, 1)
}
