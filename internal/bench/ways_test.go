package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/sqllease"
	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/core/segment/sqlsegment"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/servertest"
	"github.com/snowkey/snowkey/types"
)

// A key is what a way gives: a number, or a UUID.
type key struct {
	number int64
	uuid   [16]byte
}

// A take sets all keys of a slice.
type take func(ctx context.Context, keys []key) error

// A way is one way to get keys.
type way struct {
	name    string
	servers []string // whose CPU counts
	batch   int      // keys of one call; 0: one
	open    opener
}

// An opener returns what takes keys, and what ends it.
type opener = func(context.Context, *servers) (take, func(context.Context) error, error)

var silent = slog.New(slog.DiscardHandler)

// standardUUID is nil before Go 1.27.
var standardUUID func() [16]byte

func ways() []way {
	onPostgres, onMariaDB, onRedis := []string{"PostgreSQL"}, []string{"MariaDB"}, []string{"Redis"}
	list := []way{
		{"uuid-v4", nil, 0, openUUID(uuid.NewRandom)},
		{"uuid-v7", nil, 0, openUUID(uuid.NewV7)},
		{"nextval-postgresql", onPostgres, 0, openNextval(false)},
		{"nextval-many", onPostgres, 100, openNextval(false)},
		{"nextval-mariadb", onMariaDB, 0, openNextval(true)},
		{"table-postgresql", onPostgres, 0, openTable(false)},
		{"table-mariadb", onMariaDB, 0, openTable(true)},
		{"two-databases", []string{"PostgreSQL", "MariaDB"}, 0, openTwo},
		{"segments-postgresql", onPostgres, 0, openSegments(sqlstore.PostgreSQL, segment.ByRate)},
		{"segments-mariadb", onMariaDB, 0, openSegments(sqlstore.MySQL, segment.ByRate)},
		{"leaf-postgresql", onPostgres, 0, openSegments(sqlstore.PostgreSQL, segment.Leaf)},
		{"snowflake-fixed", nil, 0, openFixed},
		{"snowflake-lease", onPostgres, 0, openLease},
		{"redis-incr", onRedis, 0, openIncr},
		{"redis-script", onRedis, 0, openScript(1)},
		{"redis-pipelined", onRedis, 100, openScript(1)},
		{"redis-three", onRedis, 0, openScript(3)},
	}
	if standardUUID != nil {
		list = append(list, way{"uuid-v7-go", nil, 0, openUUID(func() (uuid.UUID, error) { return standardUUID(), nil })})
	}
	return list
}

func nothing(context.Context) error { return nil }

// each makes a take of a function that returns one key.
func each(next func(ctx context.Context) (key, error)) take {
	return func(ctx context.Context, keys []key) error {
		for i := range keys {
			k, err := next(ctx)
			if err != nil {
				return err
			}
			keys[i] = k
		}
		return nil
	}
}

func openUUID(next func() (uuid.UUID, error)) opener {
	return func(context.Context, *servers) (take, func(context.Context) error, error) {
		return each(func(context.Context) (key, error) {
			id, err := next()
			return key{uuid: id}, err
		}), nothing, nil
	}
}

// numbers makes a take of what has Next.
func numbers(source interface {
	Next(context.Context) (types.Snowflake, error)
}) take {
	return each(func(ctx context.Context) (key, error) {
		id, err := source.Next(ctx)
		return key{number: int64(id)}, err
	})
}

func openFixed(context.Context, *servers) (take, func(context.Context) error, error) {
	return generator(core.StaticWorker(1))
}

func openLease(ctx context.Context, s *servers) (take, func(context.Context) error, error) {
	table, err := servertest.Table(s.postgres.DB, sqllease.DefaultTable)
	if err != nil {
		return nil, nil, err
	}
	store, err := sqllease.New(s.postgres.DB, sqlstore.Config{Dialect: sqlstore.PostgreSQL, Table: table, Logger: silent})
	if err != nil {
		return nil, nil, err
	}
	if err := store.CreateTables(ctx); err != nil {
		return nil, nil, err
	}
	worker, err := lease.Acquire(ctx, store, lease.Config{Namespace: "ways", Logger: silent})
	if err != nil {
		return nil, nil, err
	}
	return generator(worker)
}

func generator(w core.Worker) (take, func(context.Context) error, error) {
	g, err := core.New(core.Config{Worker: w})
	if err != nil {
		return nil, nil, err
	}
	return numbers(g), g.Close, nil
}

func openSegments(d sqlstore.Dialect, rule segment.Rule) opener {
	return func(ctx context.Context, s *servers) (take, func(context.Context) error, error) {
		db := s.postgres
		if d == sqlstore.MySQL {
			db = s.mariaDB
		}
		store, tag, err := newRow(ctx, db.DB, d)
		if err != nil {
			return nil, nil, err
		}
		a, err := segment.New(store, segment.Config{Tag: tag, Rule: rule, Logger: silent})
		if err != nil {
			return nil, nil, err
		}
		return numbers(a), a.Close, nil
	}
}

// newRow makes a row of its own for each run.
func newRow(ctx context.Context, db *sql.DB, d sqlstore.Dialect) (*sqlsegment.Store, string, error) {
	c := sqlstore.Config{Dialect: d, Logger: silent}
	if d != sqlstore.SQLite {
		var err error
		if c.Table, err = servertest.Table(db, sqlsegment.DefaultTable); err != nil {
			return nil, "", err
		}
	}
	store, err := sqlsegment.New(db, c)
	if err != nil {
		return nil, "", err
	}
	if err := store.CreateTables(ctx); err != nil {
		return nil, "", err
	}
	tag := fmt.Sprint("ways ", time.Now().UnixNano())
	return store, tag, store.Create(ctx, segment.Row{Tag: tag, Next: 1, Step: 1000, Stride: 1})
}

// openNextval takes numbers of a sequence, all of a slice in one SELECT.
func openNextval(inMariaDB bool) opener {
	return func(ctx context.Context, s *servers) (take, func(context.Context) error, error) {
		name := fmt.Sprintf("numbers_%d", time.Now().UnixNano())
		db, one, more := s.postgres, "SELECT nextval('"+name+"')", " FROM generate_series(1, %d)"
		if inMariaDB {
			db, one, more = s.mariaDB, "SELECT NEXTVAL("+name+")", " FROM seq_1_to_%d"
		}
		_, err := db.ExecContext(ctx, "CREATE SEQUENCE "+name)
		return func(ctx context.Context, keys []key) (err error) {
			text := one
			if len(keys) > 1 {
				text += fmt.Sprintf(more, len(keys))
			}
			rows, err := db.QueryContext(ctx, text)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, rows.Close()) }()
			for i := 0; rows.Next(); i++ {
				if err := rows.Scan(&keys[i].number); err != nil {
					return err
				}
			}
			return rows.Err()
		}, nothing, err
	}
}

// tableNext returns a function that takes a number from a table of one row.
func tableNext(ctx context.Context, db *sql.DB, mariaDB bool, first, stride int64) (func(context.Context) (key, error), error) {
	name := fmt.Sprintf("numbers_%d", time.Now().UnixNano())
	for _, text := range []string{"CREATE TABLE " + name + " (n BIGINT NOT NULL)", fmt.Sprintf("INSERT INTO %s VALUES (%d)", name, first-stride)} {
		if _, err := db.ExecContext(ctx, text); err != nil {
			return nil, err
		}
	}
	if mariaDB {
		text := fmt.Sprintf("UPDATE %s SET n = LAST_INSERT_ID(n + %d)", name, stride)
		return func(ctx context.Context) (k key, err error) {
			r, err := db.ExecContext(ctx, text)
			if err != nil {
				return k, err
			}
			k.number, err = r.LastInsertId()
			return k, err
		}, nil
	}
	text := fmt.Sprintf("UPDATE %s SET n = n + %d RETURNING n", name, stride)
	return func(ctx context.Context) (k key, err error) {
		err = db.QueryRowContext(ctx, text).Scan(&k.number)
		return k, err
	}, nil
}

func openTable(inMariaDB bool) opener {
	return func(ctx context.Context, s *servers) (take, func(context.Context) error, error) {
		db := s.postgres.DB
		if inMariaDB {
			db = s.mariaDB.DB
		}
		next, err := tableNext(ctx, db, inMariaDB, 1, 1)
		return each(next), nothing, err
	}
}

// openTwo asks PostgreSQL for odd numbers and MariaDB for even ones, in turns.
func openTwo(ctx context.Context, s *servers) (take, func(context.Context) error, error) {
	odd, err := tableNext(ctx, s.postgres.DB, false, 1, 2)
	if err != nil {
		return nil, nil, err
	}
	even, err := tableNext(ctx, s.mariaDB.DB, true, 2, 2)
	var turn atomic.Int64
	return each(func(ctx context.Context) (key, error) {
		if turn.Add(1)%2 == 0 {
			return even(ctx)
		}
		return odd(ctx)
	}), nothing, err
}

// BenchmarkWays asks each way by 1, 8 and 64 goroutines, which take one key after the other,
// or 100 at a time where they are pipelined. Round trips are counted on the connections: a
// read that follows a write. The CPU time of a server includes all its processes and threads.
func BenchmarkWays(b *testing.B) {
	s := startServers(b)
	s.printVersions(b)
	for _, w := range ways() {
		for _, callers := range []int{1, 8, 64} {
			b.Run(fmt.Sprintf("c=%d/%s", callers, w.name), func(b *testing.B) { w.benchmark(b, s, callers) })
		}
	}
}

func (w way) benchmark(b *testing.B, s *servers, callers int) {
	take, end, err := w.open(b.Context(), s)
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := end(context.Background()); err != nil {
			b.Error(err)
		}
	}()
	batch := max(w.batch, 1)
	// It opens the connections, and uses up what a generator may run ahead.
	warmUp := max(callers*batch, b.N/10)
	if err := askFor(b.Context(), take, callers, batch, warmUp); err != nil {
		b.Fatal(err)
	}
	used, trips := s.cpu(w.servers...), s.trips.Load()
	b.ResetTimer()
	if err := askFor(b.Context(), take, callers, batch, b.N); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	n := float64(b.N)
	b.ReportMetric(n/b.Elapsed().Seconds(), "IDs/s")
	b.ReportMetric(float64(s.trips.Load()-trips)/n, "trips/ID")
	b.ReportMetric(float64((s.cpu(w.servers...)-used).Microseconds())/n, "server-µs/ID")
}

// BenchmarkFetch takes ranges of a segment, one after the other.
func BenchmarkFetch(b *testing.B) {
	s := startServers(b)
	for _, db := range []*server{s.postgres, s.mariaDB} {
		b.Run(db.name, func(b *testing.B) { b.ReportMetric(s.fetches(b, db, b.N), "trips/fetch") })
	}
}

// fetches returns the round trips of a fetch.
func (s *servers) fetches(t testing.TB, db *server, n int) float64 {
	store, tag, err := newRow(t.Context(), db.DB, map[string]sqlstore.Dialect{"PostgreSQL": sqlstore.PostgreSQL, "MariaDB": sqlstore.MySQL}[db.name])
	if err != nil {
		t.Fatal(err)
	}
	if b, ok := t.(*testing.B); ok {
		b.ResetTimer()
	}
	trips := s.trips.Load()
	for range n {
		if _, err := store.Take(t.Context(), segment.Take{Tag: tag}); err != nil {
			t.Fatal(err)
		}
	}
	return float64(s.trips.Load()-trips) / float64(n)
}

// askFor lets the callers take n keys in all, or a few more.
func askFor(ctx context.Context, take take, callers, batch, n int) error {
	var (
		wg   sync.WaitGroup
		errs = make([]error, callers)
	)
	for i := range callers {
		wg.Go(func() {
			keys := make([]key, batch)
			for left := (n + i) / callers; left > 0 && errs[i] == nil; left -= batch { // these sum to n
				errs[i] = take(ctx, keys)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func TestEachWayReturnsDistinctKeys(t *testing.T) {
	s := startServers(t)
	for _, w := range ways() {
		take, end, err := w.open(t.Context(), s)
		if err != nil {
			t.Fatalf("%s: %v", w.name, err)
		}
		seen := map[key]bool{}
		for range 3 {
			keys := make([]key, 40)
			if err := take(t.Context(), keys); err != nil {
				t.Fatalf("%s: %v", w.name, err)
			}
			for _, k := range keys {
				if seen[k] || k == (key{}) {
					t.Errorf("%s returns %v; want a new key", w.name, k)
				}
				seen[k] = true
			}
		}
		if err := end(t.Context()); err != nil {
			t.Errorf("%s: %v", w.name, err)
		}
	}
	t.Run("a fetch takes the round trips of the page", func(t *testing.T) {
		want := committed(t, "ways")
		for _, db := range []*server{s.postgres, s.mariaDB} {
			w, _ := want.median("Fetch/"+db.name, "trips/fetch")
			if got := s.fetches(t, db, 200); number(got) != number(w) {
				t.Errorf("%s: a fetch takes %v round trips; results/ways.txt has %v: measure again", db.name, got, w)
			}
		}
	})
	t.Run("PostgreSQL gets a UUID as 16 bytes", func(t *testing.T) {
		for kind, width := range map[string]int64{"uuid-v4": 16, "uuid-v7": 16, "snowflake-fixed": 8} {
			orders := &rowTable{s, s.postgres, strings.ReplaceAll(kind, "-", "_"), kind, nil}
			orders.create(t)
			text, bind := orders.statement(rowBatch)
			args := bind([][]key{rowKeys(t, kind, rowBatch), rowKeys(t, identity, rowBatch)})
			before := s.sent.Load()
			if err := orders.send(t.Context(), text, args); err != nil {
				t.Fatal(err)
			}
			// Each value of an array has its length before it. The statement is sent too.
			most := rowBatch*(4+width+4+8) + 1_000
			if sent := s.sent.Load() - before; sent > most {
				t.Errorf("%d rows with a %s took %d bytes; want at most %d", rowBatch, kind, sent, most)
			}
		}
	})
}
