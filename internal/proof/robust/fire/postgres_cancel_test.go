//go:build linux

package fire

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/stdlib"

	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/core/segment/sqlsegment"
	"github.com/snowkey/snowkey/core/sqlstore"
)

// A plain connection is one of pgx that the program has wrapped, as for traces, with what
// database/sql needs of it.
type plain struct {
	driver.Conn
	driver.ConnBeginTx
	driver.QueryerContext
	driver.ExecerContext
	driver.SessionResetter
}

func hide(conn driver.Conn) driver.Conn {
	c := conn.(*stdlib.Conn)
	return plain{c, c, c, c, c}
}

// withoutStandby changes a query by which the server says whether it has a standby, so that whoever commits
// does not ask for it.
func withoutStandby(text string) string {
	return strings.ReplaceAll(text, "current_setting('synchronous_standby_names', true) <> ''", "false")
}

// A taker takes numbers of a tag of its own.
type taker struct {
	name  string
	every time.Duration // how often what waits for the standby is cut off
	store *sqlsegment.Store

	confirmed []segment.Range
	failed    map[string]int
}

// takers are all ways to know whether the standby has a commit, and one that does not.
func (c *postgres) takers() []*taker {
	c.t.Helper()
	must(c.t, c.exec(c.t.Context(), "CREATE ROLE app LOGIN", "GRANT ALL ON SCHEMA public TO app"))
	var all []*taker
	for _, way := range []struct {
		name, user string
		every      time.Duration
		connect    func(dsn string) (driver.Connector, error)
		wrap       func(driver.Conn) driver.Conn
	}{
		{"pgx", "app", 5 * time.Millisecond, pgxConnector, nil},
		{"pq that sees the standby", "postgres", 5 * time.Millisecond, pqConnector, nil},
		{"pq", "app", 250 * time.Millisecond, pqConnector, nil},
		{"wrapped pgx", "app", 250 * time.Millisecond, pgxConnector, hide},
		{"mutant", "app", 5 * time.Millisecond, pgxConnector, func(c driver.Conn) driver.Conn { return altered{c.(*stdlib.Conn), withoutStandby} }},
	} {
		dsn := strings.Replace(c.dsn, "user=postgres", fmt.Sprintf("user=%s application_name=%d", way.user, way.every.Milliseconds()), 1)
		connector, err := way.connect(dsn)
		must(c.t, err)
		if way.wrap != nil {
			connector = wrapper{connector, way.wrap}
		}
		db := sql.OpenDB(connector)
		c.t.Cleanup(func() { _ = db.Close() })
		store, err := sqlsegment.New(db, sqlstore.Config{Dialect: sqlstore.PostgreSQL, Table: "numbers", Logger: quiet})
		must(c.t, err)
		all = append(all, &taker{name: way.name, every: way.every, store: store, failed: map[string]int{}})
	}
	Until(c.t.Context(), c.t, "the table", func() error { return all[0].store.CreateTables(c.t.Context()) })
	must(c.t, c.exec(c.t.Context(), "GRANT ALL ON numbers TO app", "ALTER TABLE numbers OWNER TO app"))
	for _, taker := range all {
		must(c.t, taker.store.Create(c.t.Context(), segment.Row{Tag: taker.name, Next: 1, Step: 10, Stride: 1}))
	}
	return all
}

// take takes once, within a time that a fetch has.
func (x *taker) take(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	r, err := x.store.Take(ctx, segment.Take{Tag: x.name})
	if err == nil {
		x.confirmed = append(x.confirmed, r)
	} else {
		x.failed[err.Error()]++
	}
	return err
}

// cutOff cancels whatever waits for the standby, again and again.
func (c *postgres) cutOff(ctx context.Context, every time.Duration) {
	for Rest(ctx, every, every) {
		_, _ = c.admin().ExecContext(ctx, "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND application_name = $1", fmt.Sprint(every.Milliseconds()))
	}
}

// An operator sees that commits hang, since the standby is away, and cancels them. Then the
// primary fails as well.
func TestNumbersOfACommitWhoseWaitWasCutOffAreNotRepeated(t *testing.T) {
	c := newPostgres(t, "", true, "local")
	takers := c.takers()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, every := range []time.Duration{5 * time.Millisecond, 250 * time.Millisecond} {
		running.Go(func() { c.cutOff(ctx, every) })
	}
	for _, x := range takers {
		running.Go(func() {
			for ctx.Err() == nil {
				_ = x.take(ctx)
			}
		})
	}
	Rest(ctx, 2*time.Second, 2*time.Second)
	c.detach()
	Rest(ctx, *lasts/3, *lasts/3)
	cancel()
	running.Wait()
	must(t, c.fail(t.Context()))
	for _, x := range takers {
		confirmed := x.confirmed
		x.confirmed = nil
		Until(t.Context(), t, "a range of the new primary", func() error { return x.take(t.Context()) })
		repeated := int64(0)
		for _, r := range confirmed {
			repeated += max(0, r.Last-max(r.First, x.confirmed[0].First)+1)
		}
		t.Logf("%s: %d ranges, %d numbers repeated; failed: %v", x.name, len(confirmed), repeated, x.failed)
		if mutant := x.name == "mutant"; (repeated > 0) != mutant || len(confirmed) == 0 {
			t.Errorf("%s: %d numbers of %d ranges are offered again; want some: %t", x.name, repeated, len(confirmed), mutant)
		}
	}
}

// What does not hear the server must not take a standby that is far away for one that does
// not answer.
func TestStandbyThatIsFarAwayConfirmsOnEachDriver(t *testing.T) {
	c := newPostgres(t, "", true, "local")
	takers := c.takers()
	c.standby().host.Delay(t, 30*time.Millisecond, 30*time.Millisecond)
	must(t, c.exec(t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_replication"))
	must(t, c.caughtUp(t.Context()))
	for _, x := range takers {
		const tries = 20
		began := time.Now()
		for range tries {
			if err := x.take(t.Context()); err != nil {
				t.Errorf("%s: Take with a standby 30 ms away = %v; want a range", x.name, err)
			}
		}
		took := time.Since(began) / tries
		t.Logf("%s: %v each", x.name, took.Round(time.Millisecond))
		if took < 30*time.Millisecond {
			t.Errorf("%s: Take took %v; want at least the way to the standby and back", x.name, took)
		}
	}
}
