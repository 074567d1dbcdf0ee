package servers

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/core/segment/segmenttest"
	"github.com/snowkey/snowkey/core/segment/sqlsegment"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/proof/servers/foreign"
	"github.com/snowkey/snowkey/types"
)

func (g leaseTarget) segments(t *testing.T, db *sql.DB, table string) *sqlsegment.Store {
	t.Helper()
	if table == "" {
		table = sqlsegment.DefaultTable
	}
	s, err := sqlsegment.New(db, g.config(table))
	must(t, err)
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
			must(t, s.CreateTables(t.Context()))
			return s
		},
		LosesReplies: func(t *testing.T) segmenttest.Store { return g.segments(t, g.losingCommits(t), "") },
		Foreign: func(t *testing.T, tag, column string, value any) segmenttest.Store {
			tables++
			table := fmt.Sprint("foreign_", tables)
			g.exec(t, foreign.Segments(table, tag, column, value, value == segmenttest.NoColumn)...)
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
		if g.dialect() == sqlstore.PostgreSQL {
			create = strings.NewReplacer("`", "", "bigint(20)", "bigint", "int(11)", "int", " ON UPDATE CURRENT_TIMESTAMP", "", " ENGINE=InnoDB", "").Replace(create)
		}
		g.exec(t, create, "insert into leaf_alloc(biz_tag, max_id, step, description) values('leaf-segment-test', 1, 2000, 'Test leaf Segment Mode Get Id')")
		db := g.open(t)
		store := g.segments(t, db, "leaf_alloc")
		if _, err := store.Take(t.Context(), segment.Take{Tag: "leaf-segment-test"}); !errors.Is(err, sqlstore.ErrSchema) {
			t.Errorf("Take from Leaf's table as it is = %v; want %v", err, sqlstore.ErrSchema)
		}
		g.exec(t, store.AlterLeaf()...)

		var given numbers
		var wg sync.WaitGroup
		leaf := func() (end, step int64, err error) { // one transaction of UPDATE and SELECT
			tx, err := db.BeginTx(t.Context(), nil)
			if err != nil {
				return 0, 0, err
			}
			defer func() { _ = tx.Rollback() }()
			_, err = tx.Exec("UPDATE leaf_alloc SET max_id = max_id + step WHERE biz_tag = 'leaf-segment-test'")
			if err == nil {
				err = tx.QueryRow("SELECT max_id, step FROM leaf_alloc WHERE biz_tag = 'leaf-segment-test'").Scan(&end, &step)
			}
			return end, step, errors.Join(err, tx.Commit())
		}
		wg.Go(func() {
			for range 20 {
				end, step, err := leaf()
				if err != nil {
					t.Error(err)
					return
				}
				for k := end - step; k < end; k++ {
					given.add(types.Snowflake(k))
				}
			}
		})
		for range 3 {
			wg.Go(func() {
				for range 4 {
					a, err := segment.New(store, segment.Config{Tag: "leaf-segment-test", Step: 100, Hold: -1})
					if err != nil {
						t.Error(err)
						return
					}
					for range 3 {
						ids := make([]types.Snowflake, 130)
						err = errors.Join(err, a.Fill(t.Context(), ids))
						given.add(ids...)
					}
					if err := errors.Join(err, a.Close(t.Context())); err != nil {
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
