package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/sqllease"
	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/core/segment/sqlsegment"
	"github.com/snowkey/snowkey/core/sqlstore"
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
	name, title string
	servers     []string // whose CPU counts
	batch       int      // keys of one call; 0: one
	reveals     string   // what one key reveals, or two
	open        func(ctx context.Context, s *servers) (take, func(context.Context) error, error)
}

const (
	showsCount = "how many keys were made between two"
	showsTime  = "when it was made"
	showsPart  = showsTime + ", and how many before it in that millisecond"
)

var quiet = slog.New(slog.DiscardHandler)

func ways() []way {
	postgres, mariaDB := []string{"PostgreSQL"}, []string{"MariaDB"}
	return []way{
		{"uuid-v4", "UUID, version 4", nil, 0, "nothing", openUUID(uuid.NewRandom)},
		{"uuid-v7", "UUID, version 7", nil, 0, showsTime, openUUID(uuid.NewV7)},
		{"uuid-v7-go", "UUID, version 7, of Go 1.27", nil, 0, showsTime, openStandardUUID},
		{"nextval-postgresql", "`nextval`, PostgreSQL", postgres, 0, showsCount, openNextval(false)},
		{"nextval-many", "… 100 in one SELECT", postgres, 100, showsCount, openNextval(false)},
		{"nextval-mariadb", "`nextval`, MariaDB", mariaDB, 0, showsCount, openNextval(true)},
		{"table-postgresql", "sequence table, PostgreSQL", postgres, 0, showsCount, openTablePostgres},
		{"table-mariadb", "sequence table, MariaDB", mariaDB, 0, showsCount, openTableMariaDB},
		{"two-databases", "two databases, offset and stride", []string{"PostgreSQL", "MariaDB"}, 0, "roughly " + showsCount, openTwo},
		{"segments-postgresql", "**segments**, by rate, PostgreSQL", postgres, 0, "roughly " + showsCount, openSegments(sqlstore.PostgreSQL, segment.ByRate)},
		{"segments-mariadb", "**segments**, by rate, MariaDB", mariaDB, 0, "roughly " + showsCount, openSegments(sqlstore.MySQL, segment.ByRate)},
		{"leaf-postgresql", "**segments**, Leaf's rule, PostgreSQL", postgres, 0, "roughly " + showsCount, openSegments(sqlstore.PostgreSQL, segment.Leaf)},
		{"leaf-mariadb", "**segments**, Leaf's rule, MariaDB", mariaDB, 0, "roughly " + showsCount, openSegments(sqlstore.MySQL, segment.Leaf)},
		{"snowflake-fixed", "**Snowflake**, fixed worker", nil, 0, showsTime + ", and by which worker", openFixed},
		{"snowflake-lease", "**Snowflake**, lease in PostgreSQL", postgres, 0, showsTime + ", and by which worker", openLease},
		{"redis-incr", "Redis per key: `INCR` per millisecond", []string{"Redis"}, 0, showsPart, openIncr},
		{"redis-script", "Redis per key: a script", []string{"Redis"}, 0, showsPart, openScript(1)},
		{"redis-pipelined", "… 100 scripts in a pipeline", []string{"Redis"}, 100, showsPart, openScript(1)},
		{"redis-three", "… over three servers", []string{"Redis"}, 0, showsPart, openScript(3)},
	}
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

type opener = func(context.Context, *servers) (take, func(context.Context) error, error)

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
	store, err := sqllease.New(s.postgres.DB, sqlstore.Config{Dialect: sqlstore.PostgreSQL, Logger: quiet})
	if err != nil {
		return nil, nil, err
	}
	if err := store.CreateTables(ctx); err != nil {
		return nil, nil, err
	}
	worker, err := lease.Acquire(ctx, store, lease.Config{Namespace: "ways", Logger: quiet})
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
		a, err := segment.New(store, segment.Config{Tag: tag, Rule: rule, Logger: quiet})
		if err != nil {
			return nil, nil, err
		}
		return numbers(a), a.Close, nil
	}
}

// newRow makes a row of its own for each run.
func newRow(ctx context.Context, db *sql.DB, d sqlstore.Dialect) (*sqlsegment.Store, string, error) {
	store, err := sqlsegment.New(db, sqlstore.Config{Dialect: d, Logger: quiet})
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

func openTablePostgres(ctx context.Context, s *servers) (take, func(context.Context) error, error) {
	next, err := tableNext(ctx, s.postgres.DB, false, 1, 1)
	return each(next), nothing, err
}

func openTableMariaDB(ctx context.Context, s *servers) (take, func(context.Context) error, error) {
	next, err := tableNext(ctx, s.mariaDB.DB, true, 1, 1)
	return each(next), nothing, err
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

// measureKeys asks each way by 1, 8 and 64 goroutines.
func measureKeys(ctx context.Context, s *servers, span time.Duration, out io.Writer) error {
	for _, w := range ways() {
		for _, callers := range callerCounts {
			if err := w.measure(ctx, s, callers, span, out); err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
		}
	}
	return measureFetches(ctx, s, out)
}

var callerCounts = []int{1, 8, 64}

func (w way) measure(ctx context.Context, s *servers, callers int, span time.Duration, out io.Writer) (err error) {
	take, end, err := w.open(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end(ctx)) }()
	// It opens the connections, and uses up what a generator may run ahead.
	if _, err := askFor(ctx, take, callers, max(w.batch, 1), span/10); err != nil {
		return err
	}
	used, trips, began := s.cpu(w.servers...), s.trips.Load(), time.Now()
	count, err := askFor(ctx, take, callers, max(w.batch, 1), span)
	if err != nil {
		return err
	}
	took := time.Since(began)
	trips, used = s.trips.Load()-trips, s.cpu(w.servers...)-used
	n := float64(count)
	_, err = fmt.Fprintf(out, "BenchmarkWays/c=%d/%s %d %.1f ns/op %.0f IDs/s %.8f trips/ID %.4f server-µs/ID\n",
		callers, w.name, count, float64(took.Nanoseconds())/n, n/took.Seconds(), float64(trips)/n, float64(used.Microseconds())/n)
	return err
}

// measureFetches asks for ranges, one after the other.
func measureFetches(ctx context.Context, s *servers, out io.Writer) error {
	const fetches = 200
	for db, d := range map[*database]sqlstore.Dialect{s.postgres: sqlstore.PostgreSQL, s.mariaDB: sqlstore.MySQL} {
		store, tag, err := newRow(ctx, db.DB, d)
		if err != nil {
			return err
		}
		trips, began := s.trips.Load(), time.Now()
		for range fetches {
			if _, err := store.Take(ctx, segment.Take{Tag: tag}); err != nil {
				return err
			}
		}
		took := time.Since(began)
		_, err = fmt.Fprintf(out, "BenchmarkFetch/%s %d %.0f ns/op %.2f trips/fetch\n",
			db.name, fetches, float64(took.Nanoseconds())/fetches, float64(s.trips.Load()-trips)/fetches)
		if err != nil {
			return err
		}
	}
	return nil
}

// askFor lets the callers take keys for a time, and returns how many they took.
func askFor(ctx context.Context, take take, callers, batch int, span time.Duration) (int64, error) {
	var (
		wg    sync.WaitGroup
		total atomic.Int64
		errs  = make([]error, callers)
		over  atomic.Bool
	)
	timer := time.AfterFunc(span, func() { over.Store(true) })
	defer timer.Stop()
	for i := range callers {
		wg.Go(func() {
			keys, n := make([]key, batch), 0
			for !over.Load() && errs[i] == nil {
				errs[i] = take(ctx, keys)
				n += batch
			}
			total.Add(int64(n))
		})
	}
	wg.Wait()
	return total.Load(), errors.Join(errs...)
}
