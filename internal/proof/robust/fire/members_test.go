//go:build linux

package fire

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core/feed"
	"github.com/snowkey/snowkey/internal/base/dialect"
)

// What is tried on a cluster whose members all take writes.

// memberDBs returns a way to each member of a cluster.
func memberDBs(c *cluster) (dbs []*sql.DB) {
	for _, n := range c.nodes {
		db := openInTurn(n.host.IP, "", nil)
		c.t.Cleanup(func() { _ = db.Close() })
		dbs = append(dbs, db)
	}
	return dbs
}

// noHorizon wants an error from each member of a cluster in which all take writes.
func noHorizon(t *testing.T, members []*sql.DB) {
	t.Helper()
	if _, err := members[0].ExecContext(t.Context(), "CREATE TABLE fire.feed_orders (id BIGINT PRIMARY KEY)"); err != nil {
		t.Fatal(err)
	}
	for i, db := range members {
		f, err := feed.New(feed.Config{DB: db, Dialect: feed.MySQL, Table: "fire.feed_orders", Reader: "mail"})
		must(t, err)
		if i == 0 {
			must(t, f.Install(t.Context()))
		}
		for range 20 {
			if h, err := f.Horizon(t.Context(), 0); h != 0 || !errors.Is(err, feed.ErrUnknownHorizon) {
				t.Fatalf("Horizon() of member %d = %d, %v; want ErrUnknownHorizon", i, h, err)
			}
		}
	}
}

// askCommits commits on all servers of a cluster while the first one is struck twice, and
// looks at each row that was said not to be committed. Half of the transactions change one
// hot row, which another server may have changed: these lose when they commit. look sees
// what any server has acknowledged, once the second strike is over.
func askCommits(t *testing.T, dbs []*sql.DB, look *sql.DB, strike func(ctx context.Context, i int)) {
	t.Helper()
	for _, text := range []string{
		"CREATE TABLE fire.commits (id BIGINT PRIMARY KEY) ENGINE=InnoDB",
		"CREATE TABLE fire.hot (id BIGINT PRIMARY KEY, n BIGINT NOT NULL) ENGINE=InnoDB",
		"INSERT INTO fire.hot VALUES (1, 0)",
	} {
		if _, err := dbs[0].ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	Rest(t.Context(), time.Second, time.Second) // until all servers have them
	type outcome struct {
		id  int64
		err error
	}
	outcomes := make(chan []outcome)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	const writers = 16 // half of them on the first server
	for w := range int64(writers) {
		db := dbs[0]
		if w%2 == 1 {
			db = dbs[w/2%int64(len(dbs))]
		}
		hot := w/2%2 == 1
		go func() {
			var all []outcome
			for id := w; ctx.Err() == nil; id += writers {
				tx, err := db.BeginTx(ctx, nil)
				if err == nil {
					if _, err = tx.Exec("INSERT INTO fire.commits VALUES (?)", id); err == nil && hot {
						_, err = tx.Exec("UPDATE fire.hot SET n = n + 1 WHERE id = 1")
					}
					if err == nil {
						all = append(all, outcome{id, tx.Commit()})
						continue
					}
					_ = tx.Rollback()
				}
				Rest(ctx, 10*time.Millisecond, 50*time.Millisecond)
			}
			outcomes <- all
		}()
	}
	for i := range 2 {
		Rest(ctx, time.Second, 2*time.Second)
		strike(ctx, i)
	}
	cancel()
	var all []outcome
	for range writers {
		all = append(all, <-outcomes...)
	}
	there := map[int64]bool{}
	if err := query(t.Context(), look, "SELECT id FROM fire.commits", func(scan func(...any) error) error {
		var id int64
		err := scan(&id)
		there[id] = true
		return err
	}); err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, o := range all {
		text := "done"
		if o.err != nil {
			text = o.err.Error()
		}
		kinds[fmt.Sprintf("%s; there: %t", text, there[o.id])]++
		if o.err != nil && dialect.NotCommitted(o.err) && there[o.id] {
			t.Errorf("COMMIT of %d = %v; it is there", o.id, o.err)
		}
		if o.err == nil && !there[o.id] {
			t.Errorf("COMMIT of %d = nil; it is not there", o.id)
		}
	}
	for kind, n := range kinds {
		t.Log(n, kind)
	}
}

// childrenOfOne inserts two rows on two members of a cluster at the same moment, and again. Galera locks the
// key of a parent in share mode, so children of one do not conflict.
func childrenOfOne(t *testing.T, dbs []*sql.DB) {
	t.Helper()
	for _, text := range []string{
		"CREATE TABLE fire.parents (id BIGINT PRIMARY KEY)",
		"CREATE TABLE fire.children (id BIGINT PRIMARY KEY, parent_id BIGINT, FOREIGN KEY (parent_id) REFERENCES fire.parents (id))",
		"INSERT INTO fire.parents VALUES (1), (2)",
	} {
		if _, err := dbs[0].ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	Rest(t.Context(), time.Second, time.Second) // until all members have them
	id := 0
	for name, parents := range map[string][2]any{"two parents": {1, 2}, "one parent": {1, 1}, "NULL": {nil, nil}} {
		for range 200 {
			outcomes := make(chan error, 2)
			for m, parent := range parents {
				id++
				key := id
				go func() {
					_, err := dbs[m].ExecContext(t.Context(), "INSERT INTO fire.children VALUES (?, ?)", key, parent)
					outcomes <- err
				}()
			}
			for range 2 {
				if err := <-outcomes; err != nil {
					t.Errorf("%s: INSERT beside another child = %v; want no conflict", name, err)
				}
			}
		}
	}
}
