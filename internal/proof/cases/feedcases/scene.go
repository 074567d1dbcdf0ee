package feedcases

import (
	"cmp"
	"database/sql"
	"errors"
	"fmt"
	"strings"
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

func (d Database) reader(t *testing.T, name, table string, slack time.Duration) *feed.Feed {
	t.Helper()
	f, err := feed.New(d.config(name, table, slack))
	must(t, err)
	return f
}

func (d Database) config(reader, table string, slack time.Duration) feed.Config {
	return feed.Config{DB: d.Feed, Dialect: d.Dialect, Table: table, Reader: reader, Slack: slack, Replica: d.Read}
}

// install makes a table of orders, empty, with a feed. It goes away with the test.
func (d Database) install(t *testing.T, slack time.Duration) (table string, f *feed.Feed) {
	t.Helper()
	table = "feed_orders"
	if d.Dialect == feed.PostgreSQL {
		table = cmp.Or(d.Schema, "public") + "." + table
	}
	d.drop(t, table)
	execute(t, d.DB, "CREATE TABLE "+table+" (id BIGINT PRIMARY KEY, n BIGINT NOT NULL DEFAULT 0)")
	t.Cleanup(func() { d.drop(t, table) })
	f = d.reader(t, "test", table, slack)
	for range 2 { // the second changes nothing
		must(t, f.Install(t.Context()))
	}
	return table, f
}

func insert(table string, id types.Snowflake) string {
	return fmt.Sprintf("INSERT INTO %s (id) VALUES (%d)", table, int64(id))
}

// patience is how long a test waits for what should come soon: a busy machine may take long to start a process
// or to end a session, and what hangs does so for ever.
const patience = 3 * time.Minute

// A scene is a table of orders with a feed, whose reader is "test", and a source of keys.
type scene struct {
	Database
	*testing.T
	table string
	feed  *feed.Feed
	slack time.Duration
	last  types.Snowflake // key
}

func (d Database) scene(t *testing.T, slack time.Duration) *scene {
	t.Helper()
	table, f := d.install(t, slack)
	return &scene{d, t, table, f, slack, 0}
}

// key returns a new key of now.
func (s *scene) key() types.Snowflake {
	s.last = max(s.last+1, core.Default().Min(time.Now()))
	return s.last
}

func (s *scene) exec(text string) {
	s.Helper()
	execute(s.T, s.DB, text)
}

// put stores a row with a new key.
func (s *scene) put() types.Snowflake {
	s.Helper()
	id := s.key()
	s.exec(insert(s.table, id))
	return id
}

// open begins a transaction that has inserted a key.
func (s *scene) open(id types.Snowflake) *sql.Tx {
	s.Helper()
	tx := s.begin(sql.LevelDefault)
	_, err := tx.Exec(insert(s.table, id))
	must(s.T, err)
	return tx
}

func (s *scene) begin(level sql.IsolationLevel) *sql.Tx {
	s.Helper()
	tx, err := s.DB.BeginTx(s.Context(), &sql.TxOptions{Isolation: level})
	must(s.T, err)
	s.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

func (s *scene) reader(name string) *feed.Feed {
	s.Helper()
	return s.Database.reader(s.T, name, s.table, s.slack)
}

// fresh returns a Feed of the reader "test", as that of a process that has just begun.
func (s *scene) fresh() *feed.Feed {
	s.Helper()
	return s.reader("test")
}

// past calls Horizon until it is past a key.
func (s *scene) past(f *feed.Feed, key types.Snowflake) types.Snowflake {
	s.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		h, err := f.Horizon(s.Context(), 0)
		must(s.T, err)
		if h > key {
			return h
		}
		if time.Now().After(end) {
			s.Fatalf("Horizon() = %d for %v; want it past %d", h, patience, key)
		}
	}
}

// held fails the test if the horizon is past a key, in some calls.
func (s *scene) held(f *feed.Feed, key types.Snowflake, why string) {
	s.Helper()
	for range 20 {
		if h, err := f.Horizon(s.Context(), 0); err != nil || h > key {
			s.Fatalf("Horizon() = %d, %v while %s; want no more than %d", h, err, why, key)
		}
	}
}

// read calls Keys from a position until it returns a key as the last one.
func (s *scene) read(f *feed.Feed, after, upTo types.Snowflake) {
	s.Helper()
	for end := time.Now().Add(patience); after != upTo; {
		keys, err := f.Keys(s.Context(), after, 10)
		must(s.T, err)
		if after = max(after, last(keys)); time.Now().After(end) {
			s.Fatalf("Keys() has not returned %d for %v", upTo, patience)
		}
	}
}

// nothing fails the test if there is a key after a position.
func (s *scene) nothing(f *feed.Feed, after types.Snowflake) {
	s.Helper()
	if keys, err := f.Keys(s.Context(), after, 10); len(keys) != 0 || err != nil {
		s.Errorf("Keys(%d) = %v, %v; want none", after, keys, err)
	}
}

// refused wants an error of a statement that writes a key below the horizon.
func (s *scene) refused(text string) {
	s.Helper()
	if _, err := s.DB.Exec(text); err == nil || !strings.Contains(err.Error(), belowHorizon) {
		s.Errorf("Exec(%s) = %v; want it refused below the horizon", text, err)
	}
}

// belowHorizon is in what the trigger says.
const belowHorizon = "below the horizon"

// wentBack wants ErrWentBack, and returns the key that it names.
func (s *scene) wentBack(f *feed.Feed, after types.Snowflake) types.Snowflake {
	s.Helper()
	keys, err := f.Keys(s.Context(), after, 10)
	if keys != nil || !errors.Is(err, feed.ErrWentBack) {
		s.Fatalf("Keys(%d) after the database went back = %v, %v; want ErrWentBack", after, keys, err)
	}
	from, err := f.WentBack(s.Context())
	must(s.T, err)
	if from == 0 || !strings.Contains(fmt.Sprint(f.Keys(s.Context(), after, 10)), from.String()) {
		s.Fatalf("WentBack() = %d; want the key in the text of the error", from)
	}
	return from
}

// raise calls Horizon, from a position, until the fence is past a key.
func (s *scene) raise(f *feed.Feed, after, past types.Snowflake) {
	s.Helper()
	for s.fence() <= past {
		_, err := f.Horizon(s.Context(), after)
		must(s.T, err)
	}
}

func (s *scene) fence() (key types.Snowflake) {
	s.Helper()
	column := "closed"
	if s.Dialect == feed.PostgreSQL {
		column = "last_value"
	}
	must(s.T, s.DB.QueryRow("SELECT "+column+" FROM "+s.table+"_feed").Scan(&key))
	return key
}

func (s *scene) setFence(key types.Snowflake) {
	s.Helper()
	if s.Dialect == feed.PostgreSQL {
		s.exec(fmt.Sprintf("SELECT setval('%s_feed', %d)", s.table, int64(key)))
	} else {
		s.exec(fmt.Sprintf("UPDATE %s_feed SET closed = %d", s.table, int64(key)))
	}
}

// backup returns a function that sets the fence and the readers to what they are now, and deletes
// the rows that have come since, as a restore does.
func (s *scene) backup() (restore func()) {
	s.Helper()
	fence, newest := s.fence(), last(s.after(s.table, 0))
	s.exec("DROP TABLE IF EXISTS feed_backup")
	s.exec("CREATE TABLE feed_backup AS SELECT * FROM " + s.table + "_feed_readers")
	s.Cleanup(func() { s.exec("DROP TABLE IF EXISTS feed_backup") })
	return func() {
		s.Helper()
		s.setFence(fence)
		s.exec("DELETE FROM " + s.table + "_feed_readers")
		s.exec("INSERT INTO " + s.table + "_feed_readers SELECT * FROM feed_backup")
		for _, id := range s.after(s.table, newest) { // a range would wait for rows that are not committed
			s.exec(fmt.Sprintf("DELETE FROM %s WHERE id = %d", s.table, int64(id)))
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// preparedPrefix begins the name of each transaction that is prepared.
const preparedPrefix = "feed"

// endPrepared commits the transactions that are prepared, and returns their number. One that still has its
// connection may be left to a later call.
func (d Database) endPrepared() (n int) {
	if d.Prepare == nil {
		return 0
	}
	rows, err := d.DB.Query(d.Prepared)
	if err != nil {
		return 0 // the server has crashed
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var unused int
		var name string
		if err := rows.Scan(&unused, &unused, &unused, &name); err != nil || !strings.HasPrefix(name, preparedPrefix) {
			continue
		}
		if _, err := d.DB.Exec(fmt.Sprintf(d.Commit, name)); err == nil {
			n++
		}
	}
	return n
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
