package servers

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/core/segment/segmenttest"
	"github.com/snowkey/snowkey/core/segment/sqlsegment"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/base/sqlrow/foreign"
	"github.com/snowkey/snowkey/types"
)

func (g leaseTarget) segments(t *testing.T, db *sql.DB, table string) *sqlsegment.Store {
	t.Helper()
	if table == "" {
		table = sqlsegment.DefaultTable
	}
	s, err := sqlsegment.New(db, g.config(table))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSegmentStoresPassTheSuite(t *testing.T) {
	leaseTargets(t, func(t *testing.T, g leaseTarget) { g.runSegments(t) })
}

func (g leaseTarget) runSegments(t *testing.T) {
	tables := 0
	segmenttest.Run(t, segmenttest.Harness{
		Open: func(t *testing.T) segmenttest.Store {
			s := g.segments(t, g.open(t), "")
			if err := s.CreateTables(t.Context()); err != nil {
				t.Fatal(err)
			}
			return s
		},
		LosesReplies: func(t *testing.T) segmenttest.Store { return g.segments(t, g.losingCommits(t), "") },
		Foreign: func(t *testing.T, tag, column string, value any) segmenttest.Store {
			tables++
			table := fmt.Sprint("foreign_", tables)
			for _, text := range foreign.Segments(table, tag, column, value, value == segmenttest.NoColumn) {
				g.exec(t, text)
			}
			return g.segments(t, g.open(t), table)
		},
	})
}

// numbers collects what several processes are given.
type numbers struct {
	mu  sync.Mutex
	all []types.Snowflake
}

func (n *numbers) add(ids ...types.Snowflake) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, ids...)
}

func (n *numbers) count() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.all)
}

func (n *numbers) wantDistinct(t *testing.T) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	slices.Sort(n.all)
	for i := 1; i < len(n.all); i++ {
		if n.all[i-1] == n.all[i] {
			t.Fatalf("%d was given twice", n.all[i])
		}
	}
	t.Logf("%d numbers", len(n.all))
}

// Leaf's own statement and rows, our ALTER TABLE, and our allocators beside a client that
// does what Leaf's server does.
func TestLeafsOwnTableServesBesideAServerOfLeaf(t *testing.T) {
	leaseTargets(t, func(t *testing.T, g leaseTarget) {
		create := "CREATE TABLE `leaf_alloc` (`biz_tag` varchar(128) NOT NULL DEFAULT '', `max_id` bigint(20) NOT NULL DEFAULT '1'," +
			" `step` int(11) NOT NULL, `description` varchar(256) DEFAULT NULL," +
			" `update_time` timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, PRIMARY KEY (`biz_tag`)) ENGINE=InnoDB"
		if g.dialect == sqlstore.PostgreSQL {
			create = strings.NewReplacer("`", "", "bigint(20)", "bigint", "int(11)", "int", " ON UPDATE CURRENT_TIMESTAMP", "", " ENGINE=InnoDB", "").Replace(create)
		}
		g.exec(t, create)
		g.exec(t, "insert into leaf_alloc(biz_tag, max_id, step, description) values('leaf-segment-test', 1, 2000, 'Test leaf Segment Mode Get Id')")
		db := g.open(t)
		store := g.segments(t, db, "leaf_alloc")
		if _, err := store.Take(t.Context(), segment.Take{Tag: "leaf-segment-test"}); !errors.Is(err, sqlstore.ErrSchema) {
			t.Errorf("Take from Leaf's table as it is = %v; want %v", err, sqlstore.ErrSchema)
		}
		for _, text := range store.AlterLeaf() {
			g.exec(t, text)
		}

		var given numbers
		var wg sync.WaitGroup
		wg.Go(func() { // Leaf: one transaction of UPDATE and SELECT
			for range 20 {
				var first, end, step int64
				err := func() error {
					tx, err := db.BeginTx(t.Context(), nil)
					if err != nil {
						return err
					}
					defer func() { _ = tx.Rollback() }()
					if _, err := tx.ExecContext(t.Context(), "UPDATE leaf_alloc SET max_id = max_id + step WHERE biz_tag = 'leaf-segment-test'"); err != nil {
						return err
					}
					if err := tx.QueryRowContext(t.Context(), "SELECT max_id, step FROM leaf_alloc WHERE biz_tag = 'leaf-segment-test'").Scan(&end, &step); err != nil {
						return err
					}
					first = end - step
					return tx.Commit()
				}()
				if err != nil {
					t.Error(err)
					return
				}
				for k := first; k < end; k++ {
					given.add(types.Snowflake(k))
				}
			}
		})
		for range 3 {
			wg.Go(func() {
				for range 4 {
					a, err := segment.New(g.segments(t, db, "leaf_alloc"), segment.Config{Tag: "leaf-segment-test", Step: 100, Hold: -1})
					if err != nil {
						t.Error(err)
						return
					}
					for range 3 {
						ids := make([]types.Snowflake, 130)
						if err := a.Fill(t.Context(), ids); err != nil {
							t.Error(err)
						}
						given.add(ids...)
					}
					if err := a.Close(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		given.wantDistinct(t)
		if got, want := given.count(), 20*2000+3*4*3*130; got != want {
			t.Errorf("%d numbers were given; want %d", got, want)
		}
	})
}

// Connections are killed at random moments, among them COMMITs.
func TestSegmentsRepeatNothingWhileConnectionsAreKilled(t *testing.T) {
	const kills, least = 150, 1000 // numbers
	lockTargets(t, func(t *testing.T, g leaseTarget) {
		first := g.segments(t, g.open(t), "")
		if err := first.CreateTables(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := first.Create(t.Context(), segment.Row{Tag: "orders", Next: 1, Step: 50, Stride: 1}); err != nil {
			t.Fatal(err)
		}
		stop, cancel := context.WithCancel(t.Context())
		defer cancel()
		var given numbers
		var wg sync.WaitGroup
		for range 3 { // processes, each with a pool of its own
			db := g.open(t)
			wg.Go(func() {
				for stop.Err() == nil {
					a, err := segment.New(g.segments(t, db, ""), segment.Config{Tag: "orders", Logger: slog.New(slog.DiscardHandler), Hold: -1, MaxWait: time.Second})
					if err != nil {
						t.Error(err)
						return
					}
					var callers sync.WaitGroup
					for range 8 {
						callers.Go(func() {
							for range 200 {
								if id, err := a.Next(t.Context()); err == nil {
									given.add(id)
								} else if id != 0 {
									t.Errorf("%d beside the error %v", id, err)
								}
							}
						})
					}
					callers.Wait()
					_ = a.Close(t.Context()) // may be killed too
				}
			})
		}
		for killed := 0; !t.Failed() && (killed < kills || given.count() < least); time.Sleep(rand.N(40 * time.Millisecond)) {
			killed += g.killSome(t)
		}
		cancel()
		wg.Wait()
		given.wantDistinct(t)
	})
}

// killSome ends one in three of the test's own connections, and returns how many. On PostgreSQL, where g is of
// lockTargets, they are known by their name, and on MySQL by their database.
func (g leaseTarget) killSome(t *testing.T) (killed int) {
	t.Helper()
	query, kill := "SELECT pid FROM pg_stat_activity WHERE application_name = '"+g.application+"'", "SELECT pg_terminate_backend(%d)"
	if g.dialect == sqlstore.MySQL {
		query, kill = "SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()", "KILL %d" // which MySQL does not prepare
	}
	conn, err := g.admin.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	var ids []int64
	rows, err := conn.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if rand.IntN(3) > 0 {
			continue
		}
		if _, err := conn.ExecContext(t.Context(), fmt.Sprintf(kill, id)); err == nil { // or it has ended
			killed++
		}
	}
	return killed
}

func TestATransactionThatHoldsTheOnlyConnectionGetsAnErrorThatSaysSo(t *testing.T) {
	leaseTargets(t, func(t *testing.T, g leaseTarget) {
		db := g.open(t)
		store := g.segments(t, db, "")
		if err := store.CreateTables(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := store.Create(t.Context(), segment.Row{Tag: "orders", Next: 1, Step: 50, Stride: 1}); err != nil {
			t.Fatal(err)
		}
		db.SetMaxOpenConns(1)
		for name, hold := range map[string]time.Duration{"prefetch": 0, "no prefetch": -1} {
			a, err := segment.New(store, segment.Config{Tag: "orders", Logger: slog.New(slog.DiscardHandler), Hold: hold})
			if err != nil {
				t.Fatal(err)
			}
			tx, err := db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			_, err = a.Next(t.Context())
			if err == nil || !strings.Contains(err.Error(), "connection") {
				t.Errorf("Next with %s, in a transaction that has the only connection = %v; want an error that says so", name, err)
			}
			if err := errors.Join(tx.Rollback(), a.Close(context.Background())); err != nil {
				t.Error(err)
			}
		}
	})
}

// The scenarios are package segment's, with the same numbers.
func TestNoScenarioOfSegmentsBreaksThePromise(t *testing.T) {
	allocator := func(t *testing.T, s *sqlsegment.Store) *segment.Allocator {
		a, err := segment.New(s, segment.Config{Tag: "orders", Hold: -1, Logger: quiet})
		must(t, err)
		t.Cleanup(func() { _ = a.Close(context.WithoutCancel(t.Context())) })
		return a
	}
	leaseTargets(t, func(t *testing.T, g leaseTarget) {
		db := g.open(t)
		s := g.ordersRow(t, db, segment.Row{Next: 1, Stride: 1})
		t.Run("46 commit of a segment unknown", func(t *testing.T) {
			connector, err := g.connect(g.dsn)
			if err != nil {
				t.Fatalf("no connector for %s", g.driver)
			}
			var commits atomic.Int64
			lossy := g.pool(t, losingConnector{connector, func() bool { return commits.Add(1) == 1 }})
			if id, err := allocator(t, g.segments(t, lossy, "")).Next(t.Context()); id != 11 || err != nil {
				t.Errorf("Next = %d, %v; want 11: the range of the first commit is burnt", id, err)
			}
		})
		t.Run("47 rollback of the program", func(t *testing.T) {
			g.exec(t, "CREATE TABLE orders (id BIGINT PRIMARY KEY)")
			a := allocator(t, s)
			before, err := s.Rows(t.Context())
			must(t, err)
			tx, err := db.BeginTx(t.Context(), nil)
			must(t, err)
			id, err := a.Next(t.Context())
			must(t, err)
			_, err = tx.Exec(fmt.Sprintf("INSERT INTO orders VALUES (%d)", id))
			must(t, err)
			must(t, tx.Rollback())
			rows, err := s.Rows(t.Context())
			if err != nil || rows[0].Next != before[0].Next+10 || rows[0].Version != before[0].Version+1 {
				t.Errorf("Rows after the rollback = %+v, %v; want that of one fetch after %+v", rows, err, before)
			}
			if again, err := a.Next(t.Context()); again != id+1 || err != nil {
				t.Errorf("Next after the rollback = %d, %v; want %d", again, err, id+1)
			}
		})
	})
}

// The statement that the error names makes a row that serves.
func TestTheStatementOfErrNoTagMakesTheRow(t *testing.T) {
	leaseTargets(t, func(t *testing.T, g leaseTarget) {
		s := g.segments(t, g.open(t), "Segments") // a name that needs its quotes
		must(t, s.CreateTables(t.Context()))
		for _, tag := range []string{"orders", `o'cl\ock`} {
			_, err := s.Take(t.Context(), segment.Take{Tag: tag})
			if !errors.Is(err, segment.ErrNoTag) {
				t.Fatalf("Take without a row = %v; want %v", err, segment.ErrNoTag)
			}
			_, statement, _ := strings.Cut(err.Error(), "or run ")
			g.exec(t, statement)
			if r, err := s.Take(t.Context(), segment.Take{Tag: tag}); err != nil || r.First != 1 || r.Last != 1000 {
				t.Errorf("Take after %s = %+v, %v; want 1 to 1000", statement, r, err)
			}
		}
	})
}
