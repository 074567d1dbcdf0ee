package servers

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/keysql"
	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
	"github.com/snowkey/snowkey/types"
)

// A hand is a schema with the function of keysql.Default, whose clock the test sets.
type hand struct {
	*testing.T
	db     *sql.DB
	schema string
}

// newHand makes the schema in the database of db.
func newHand(t *testing.T, db *sql.DB) hand {
	t.Helper()
	h := hand{t, db, spaceName()}
	h.exec("CREATE SCHEMA " + h.schema)
	t.Cleanup(func() { h.exec("DROP SCHEMA " + h.schema + " CASCADE") })
	h.exec("CREATE TABLE $.clock (at timestamptz, ahead interval NOT NULL DEFAULT '0')")
	h.exec("INSERT INTO $.clock DEFAULT VALUES")
	return h
}

// openHand is newHand on the PostgreSQL of most tests.
func openHand(t *testing.T) hand {
	t.Helper()
	return newHand(t, openSqlx(t, "pgx", servertest.PostgreSQL(t)).DB)
}

// here returns a statement in which $. stands for the schema.
func (h hand) here(text string) string { return strings.ReplaceAll(text, "$.", h.schema+".") }

func (h hand) exec(text string, args ...any) {
	h.Helper()
	if _, err := h.db.ExecContext(context.WithoutCancel(h.Context()), h.here(text), args...); err != nil {
		h.Fatalf("%s: %v", text, err)
	}
}

// install installs the function, with changes to its text.
func (h hand) install(l core.Layout, datacenter, worker int64, change func(string) string) {
	h.Helper()
	statements, err := keysql.Default(keysql.PostgreSQL, l, datacenter, worker, h.schema)
	must(h.T, err)
	for _, s := range statements {
		h.exec(change(h.clocked(s)))
	}
}

func unchanged(text string) string { return text }

// clocked gives the table in place of the clock.
func (h hand) clocked(text string) string {
	return strings.ReplaceAll(text, "clock_timestamp()", "(SELECT coalesce(at, clock_timestamp() + ahead) FROM "+h.schema+".clock)")
}

func (h hand) set(at time.Time) { h.exec("UPDATE $.clock SET at = $1", at) }
func (h hand) step(by time.Duration) {
	h.exec(fmt.Sprint("UPDATE $.clock SET ahead = ahead + interval '1 microsecond' * ", by.Microseconds()))
}

type queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// draw draws n keys in one statement.
func (h hand) draw(by queryer, n int) []types.Snowflake {
	h.Helper()
	keys, err := h.tryDraw(by, n)
	must(h.T, err)
	return keys
}

func (h hand) tryDraw(by queryer, n int) (keys []types.Snowflake, err error) {
	rows, err := by.QueryContext(h.Context(), fmt.Sprintf("SELECT %s.id_next() FROM generate_series(1, %d)", h.schema, n))
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var id types.Snowflake
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		keys = append(keys, id)
	}
	return keys, rows.Err()
}

func (h hand) conn() *sql.Conn {
	h.Helper()
	c, err := h.db.Conn(h.Context())
	must(h.T, err)
	h.Cleanup(func() { _ = c.Close() })
	return c
}

// locks returns the advisory locks of the function, for each its session, mode and whether it is granted.
func (h hand) locks() (locks []string) {
	h.Helper()
	rows, err := h.db.QueryContext(h.Context(), `SELECT pid || ' ' || mode || ' ' || granted FROM pg_locks
		WHERE locktype = 'advisory' AND classid = 1936617335 AND objid = ($1)::regclass::oid AND objsubid = 1`, h.schema+".snowkey_next")
	must(h.T, err)
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var lock string
		must(h.T, rows.Scan(&lock))
		locks = append(locks, lock)
	}
	must(h.T, rows.Err())
	return locks
}

// await waits until a condition holds.
func (h hand) await(what string, holds func() bool) {
	h.Helper()
	for end := time.Now().Add(hangs); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			h.Fatalf("after %v still not: %s; locks: %q", hangs, what, h.locks())
		}
	}
}

func pidOf(t *testing.T, c *sql.Conn) (pid int) {
	t.Helper()
	must(t, c.QueryRowContext(t.Context(), "SELECT pg_backend_pid()").Scan(&pid))
	return pid
}

// Each call is held while it has the lock, or waits for it, and is then interrupted.
func TestAnInterruptedCallOnPostgreSQLLeavesNoLock(t *testing.T) {
	for name, c := range map[string]struct {
		held string // before which the call sleeps, or nothing
		lock string // which it then has or wants
	}{
		"nextval": {"n := nextval", "ShareLock true"},
		"setval":  {"SELECT setval", "ExclusiveLock true"},
		"waiting": {"", "ShareLock false"},
	} {
		for _, interrupt := range []string{"pg_cancel_backend(%d), pg_cancel_backend(%[1]d)", "pg_terminate_backend(%d)", ""} {
			t.Run(name+" "+interrupt, func(t *testing.T) {
				h := openHand(t)
				h.install(core.Default(), 0, 1, func(text string) string {
					if c.held == "" {
						return text
					}
					return strings.ReplaceAll(text, c.held, "PERFORM pg_sleep(600); "+c.held)
				})
				session, blocker := h.conn(), h.conn()
				pid := pidOf(t, session)
				if c.held == "" {
					_, err := blocker.ExecContext(t.Context(), "SELECT pg_advisory_lock((1936617335::bigint << 32) | $1::regclass::oid::bigint)", h.schema+".snowkey_next")
					must(t, err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				ended := make(chan error)
				go func() {
					_, err := session.ExecContext(ctx, h.here("SELECT $.id_next()"))
					ended <- err
				}()
				h.await("the call has got there", func() bool { return slices.Contains(h.locks(), fmt.Sprint(pid, " ", c.lock)) })
				if interrupt == "" {
					cancel()
				} else {
					h.exec("SELECT " + fmt.Sprintf(interrupt, pid))
				}
				if err := <-ended; err == nil {
					t.Error("the call = nil; want that it was interrupted")
				}
				gone := func() bool {
					return !slices.ContainsFunc(h.locks(), func(l string) bool { return strings.HasPrefix(l, fmt.Sprint(pid, " ")) })
				}
				// The session is there after a cancellation, and so would its lock be.
				if strings.Contains(interrupt, "cancel") && (!gone() || pidOf(t, session) != pid) {
					t.Errorf("locks after the cancellation: %q; want none of %d", h.locks(), pid)
				}
				h.await("its locks are released", gone)
				_, err := blocker.ExecContext(t.Context(), "SELECT pg_advisory_unlock_all()")
				must(t, err)
				h.install(core.Default(), 0, 1, unchanged)
				h.draw(h.db, 2)
			})
		}
	}
}

func TestAnOpenTransactionOnPostgreSQLBlocksNoKey(t *testing.T) {
	h := openHand(t)
	h.install(core.Default(), 0, 1, unchanged)
	tx, err := h.db.BeginTx(t.Context(), nil)
	must(t, err)
	defer func() { _ = tx.Rollback() }()
	keys := h.draw(tx, 3) // of setval, and of nextval
	if locks := h.locks(); len(locks) > 0 {
		t.Errorf("locks of an open transaction: %q; want none", locks)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // not for ever
	defer cancel()
	for _, by := range []time.Duration{0, time.Hour, -time.Hour, 2 * time.Hour} {
		h.step(by)
		var id types.Snowflake
		if err := h.db.QueryRowContext(ctx, "SELECT "+h.schema+".id_next()").Scan(&id); err != nil {
			t.Fatalf("a call beside an open transaction = %v", err)
		}
		keys = append(keys, id)
	}
	if keys = append(keys, h.draw(tx, 1)...); !slices.IsSorted(keys) || len(slices.Compact(keys)) != 8 {
		t.Errorf("keys %v; want that each is above the one before", keys)
	}
}

// handLayouts are the named layouts, their ends, and random ones.
func handLayouts(r *rand.Rand) map[string]core.Layout {
	layouts := map[string]core.Layout{
		"default": core.Default(), "Twitter": core.Twitter(), "Discord": core.Discord(),
		"Mastodon": core.Mastodon(), "Instagram": core.Instagram(), "JavaScript": core.JavaScript(),
		"many in a tick": {Epoch: core.Default().Epoch, Unit: time.Second, TimeBits: 31, SequenceBits: 32},
	}
	for i := range 6 {
		l := core.Layout{
			Epoch:          time.Date(1990+r.IntN(35), 1, 1, 0, 0, 0, r.IntN(1e6)*1000, time.UTC),
			Unit:           []time.Duration{250 * time.Microsecond, time.Millisecond, 7 * time.Millisecond, time.Second}[r.IntN(4)],
			DatacenterBits: r.IntN(6), WorkerBits: r.IntN(11), SequenceBits: 1 + r.IntN(12),
		}
		l.TimeBits = min(63-l.DatacenterBits-l.WorkerBits-l.SequenceBits, 36+r.IntN(6))
		layouts[fmt.Sprint("random ", i)] = l
	}
	return layouts
}

func TestKeysByHandOnPostgreSQLAreThoseOfTheLayout(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	layouts := handLayouts(r)
	for _, name := range slices.Sorted(maps.Keys(layouts)) { // so that the seed replays all of it
		l := layouts[name]
		t.Run(name, func(t *testing.T) {
			h := openHand(t)
			datacenter, worker := r.Int64N(1<<l.DatacenterBits), r.Int64N(1<<l.WorkerBits)
			h.install(l, datacenter, worker, unchanged)
			// Durations end after 292 years, and the clock goes a million ticks ahead.
			tick := 1000 + r.Int64N(min(1<<l.TimeBits-1<<21, int64(250*365*24*time.Hour/l.Unit)))
			at := func(ticks int64) time.Time { // the middle of a tick
				return l.Epoch.Add(time.Duration(ticks)*l.Unit + l.Unit/2).Truncate(time.Microsecond)
			}
			compose := func(number int64) types.Snowflake {
				t.Helper()
				id, err := l.Compose(core.Parts{
					Time: at(number >> l.SequenceBits), Datacenter: datacenter, Worker: worker,
					Sequence: number & (1<<l.SequenceBits - 1),
				})
				must(t, err)
				return id
			}
			slack := int64(16 * time.Millisecond / l.Unit)
			next := tick << l.SequenceBits // the number that a draw should get
			// A number that nextval gives past the slack is left out, as of a tick with two numbers.
			follows := func() {
				if next >= (tick+slack+1)<<l.SequenceBits {
					next++
				}
			}
			for _, step := range []struct {
				what string
				by   int64 // ticks
				want func()
			}{
				{"at first", 0, func() {}},
				{"while the clock stands", 0, follows},
				{"within 16 ms", slack, follows},
				{"after more", 2, func() { next = tick << l.SequenceBits }},
				{"after a step back", -500, func() { next++ }}, // the number that nextval gave is left out
				{"far ahead", 1 << 20, func() { next = tick << l.SequenceBits }},
			} {
				tick += step.by
				h.set(at(tick))
				step.want()
				got := h.draw(h.db, 1)[0]
				if want := compose(next); got != want {
					t.Errorf("%s, id_next() = %d, %+v; want %d, %+v", step.what, got, l.Parts(got), want, l.Parts(want))
				}
				next++
			}
		})
	}
}

func TestNoKeyByHandOnPostgreSQLIsPastTheEndOfTheLayout(t *testing.T) {
	for name, l := range map[string]core.Layout{
		"default":        core.Default(),
		"63 bits of one": {Epoch: core.Default().Epoch, Unit: time.Second, TimeBits: 31, SequenceBits: 32},
	} {
		t.Run(name, func(t *testing.T) {
			h := openHand(t)
			h.install(l, 0, 0, unchanged)
			for _, past := range []time.Duration{time.Hour, 0} {
				h.set(l.Exhausted().Add(past))
				if keys, err := h.tryDraw(h.db, 1); err == nil || !strings.Contains(err.Error(), "out of ") {
					t.Errorf("id_next() %v after the end = %d, %v; want that it is out of bounds", past, keys, err)
				}
			}
			h.set(l.Exhausted().Add(-time.Minute)) // the errors changed nothing
			if id := h.draw(h.db, 1)[0]; l.Parts(id).Time.After(l.Exhausted().Add(-time.Minute)) {
				t.Errorf("id_next() a minute before the end has the time %v", l.Parts(id).Time)
			}
			h.exec(fmt.Sprintf("SELECT setval('$.snowkey_next', %d)", int64(1)<<(l.TimeBits+l.SequenceBits)-1))
			if keys, err := h.tryDraw(h.db, 1); err == nil || !strings.Contains(err.Error(), "reached maximum value") {
				t.Errorf("id_next() after the last key = %d, %v; want that the sequence is at its end", keys, err)
			}
		})
	}
}

// Ten thousand rows of one statement outrun the 51,200 keys per second of JavaScript's layout.
func TestAStatementOnPostgreSQLInsertsManyRowsByHand(t *testing.T) {
	for name, l := range map[string]core.Layout{"default": core.Default(), "JavaScript": core.JavaScript()} {
		t.Run(name, func(t *testing.T) {
			h := openHand(t)
			h.install(l, 0, 5, unchanged)
			h.set(time.Now()) // it stands
			h.exec("CREATE TABLE $.orders (id bigint PRIMARY KEY DEFAULT $.id_next(), number bigint)")
			h.exec("INSERT INTO $.orders (number) SELECT generate_series(1, 10000)")
			var rows, ordered int
			must(t, h.db.QueryRowContext(t.Context(), "SELECT count(*), count(*) FILTER (WHERE number = rank) FROM (SELECT number, rank() OVER (ORDER BY id) FROM "+h.schema+".orders) AS o").Scan(&rows, &ordered))
			if rows != 10000 || ordered != rows {
				t.Errorf("%d rows, %d in the order of the statement; want 10000", rows, ordered)
			}
		})
	}
}

func TestARoleWithoutPrivilegesOnPostgreSQLInsertsByHand(t *testing.T) {
	h := openHand(t)
	h.install(core.Default(), 0, 5, unchanged)
	role := newRole(t, h.db)
	h.exec("GRANT USAGE ON SCHEMA " + h.schema + " TO " + role)
	c := h.conn()
	_, err := c.ExecContext(t.Context(), "SET ROLE "+role)
	must(t, err)
	// A function in front of the search path is not called.
	h.exec("CREATE FUNCTION $.nextval(text) RETURNS bigint LANGUAGE sql AS 'SELECT 1 / 0::bigint'")
	_, err = c.ExecContext(t.Context(), "SET search_path = "+h.schema+", pg_catalog")
	must(t, err)
	if keys := h.draw(c, 2); keys[0] >= keys[1] {
		t.Errorf("keys of a role = %d; want two, in order", keys)
	}
	if _, err := c.ExecContext(t.Context(), "SELECT pg_catalog.setval('"+h.schema+".snowkey_next', 1)"); err == nil {
		t.Error("setval by a role without privileges = nil; want an error")
	}
	_, err = c.ExecContext(t.Context(), "RESET ROLE")
	must(t, err)
}

// The statements of docs/operations.md: rows by hand, and a new beginning under another number
// after a clock that was a month ahead.
func TestTheStatementsOnPostgreSQLForRowsByHandRun(t *testing.T) {
	_, blocks := onPage(t, "operations.md")
	h := openHand(t)
	run := func(text string) {
		t.Helper()
		for statement := range strings.SplitSeq(text, ";\n") {
			if statement = strings.NewReplacer("public.", h.schema+".", " orders ", " "+h.schema+".orders ").Replace(statement); statement != "" {
				h.exec(statement)
			}
		}
	}
	h.install(core.Default(), 0, 1023, unchanged)
	h.exec("CREATE TABLE $.orders (id bigint PRIMARY KEY, number text)")
	run(blocks[0])
	session := h.conn() // has plans with the old sequence
	h.step(30 * 24 * time.Hour)
	far := h.draw(session, 1)[0]
	h.step(-30 * 24 * time.Hour)
	run(blocks[1])
	h.install(core.Default(), 0, 1022, unchanged)
	h.exec("INSERT INTO $.orders (number) VALUES ('A-18')")
	id := h.draw(session, 1)[0]
	if p := core.Default().Parts(id); p.Worker != 1022 || id >= far || p.Time.After(time.Now().Add(24*time.Hour)) {
		t.Errorf("id_next() under the new number = %+v; want worker 1022, and a time near the clock", p)
	}
	var rows int
	must(t, h.db.QueryRowContext(t.Context(), "SELECT count(*) FROM "+h.schema+".orders").Scan(&rows))
	if rows != 2 {
		t.Errorf("%d rows; want 2", rows)
	}
}

// A backend that is killed takes all memory of the server with it, as an immediate shutdown does,
// and the log that is not yet written.
func TestACrashOfPostgreSQLRepeatsNoKeyByHand(t *testing.T) {
	t.Parallel()
	dsn, _ := servertest.StartPostgreSQL(t, "wal_writer_delay=10s", "autovacuum=off", "max_wal_senders=0")
	h := newHand(t, openSqlx(t, "pgx", dsn).DB)
	h.db.SetMaxIdleConns(0) // none of before a crash
	crash := func() {
		t.Helper()
		victim, witness := h.conn(), h.conn()
		backend, err := os.FindProcess(pidOf(t, victim))
		must(t, err)
		must(t, backend.Kill())
		h.await("all sessions have ended", func() bool { return witness.PingContext(t.Context()) != nil })
		_, _ = victim.Close(), witness.Close()
		h.await("the server has recovered", func() bool { return h.db.PingContext(t.Context()) == nil })
	}
	// repeats draws 40 keys before and after crashes, with a clock that may be behind them.
	repeats := func(ahead time.Duration, change func(string) string) (n int) {
		t.Helper()
		h.exec("UPDATE $.clock SET at = now() + interval '1 day' + ahead, ahead = ahead + interval '7 days'")
		h.install(core.Default(), 0, 1, change)
		h.draw(h.db, 1)
		h.exec(fmt.Sprintf("UPDATE $.clock SET at = at - interval '%d milliseconds'", ahead.Milliseconds()))
		h.exec("CHECKPOINT")
		seen := map[types.Snowflake]bool{}
		for range 4 {
			// What it writes to the log covers the numbers that others draw next.
			tx, err := h.db.BeginTx(t.Context(), nil)
			must(t, err)
			h.draw(tx, 1)
			for range 10 {
				for _, id := range h.draw(h.db, 1) {
					if seen[id] {
						n++
					}
					seen[id] = true
				}
			}
			crash()
			_ = tx.Rollback() // of a session that is gone
			if ahead <= 0 {   // the time that the crash took
				h.exec("UPDATE $.clock SET at = at + interval '100 milliseconds'")
			}
		}
		return n
	}
	for _, ahead := range []time.Duration{0, time.Hour} {
		if n := repeats(ahead, unchanged); n > 0 {
			t.Errorf("with a clock %v behind the keys, %d of 40 came again after a crash; want none", ahead, n)
		}
	}
	upper := regexp.MustCompile(` OR n >= .* THEN`)
	if n := repeats(time.Hour, func(text string) string { return upper.ReplaceAllString(text, " THEN") }); n == 0 {
		t.Error("without setval for keys ahead of the clock, none came again; want some, or the test sees nothing")
	}
}

func TestRowsWithoutAKeyAreRefused(t *testing.T) { onMariaDBAndMySQL(t, refusesKeyless) }

func refusesKeyless(t *testing.T, w way) {
	statements, err := keysql.RequireKey(keysql.MySQL, "orders", "id")
	must(t, err)
	for _, mode := range []string{"", "STRICT_ALL_TABLES", "NO_AUTO_VALUE_ON_ZERO"} {
		for _, column := range []string{"BIGINT NOT NULL", "BIGINT UNSIGNED NOT NULL", "BIGINT NOT NULL AUTO_INCREMENT"} {
			t.Run(mode+" "+column, func(t *testing.T) {
				g := w.target(t, "sql_mode", "'"+mode+"'")
				g.admin = g.open(t) // the trigger has the mode too
				g.exec(t, "CREATE TABLE orders (id "+column+" PRIMARY KEY, number VARCHAR(10))")
				g.exec(t, slices.Concat(statements, statements)...) // again changes nothing
				for _, row := range []string{
					"INSERT INTO orders (number) VALUES ('A')",
					"INSERT INTO orders VALUES (NULL, 'A')",
					"INSERT INTO orders VALUES (0, 'A')",
					"INSERT INTO orders VALUES (DEFAULT, 'A')",
					"INSERT INTO orders SELECT 0, 'A'",
					"INSERT IGNORE INTO orders VALUES (0, 'A')",
					"REPLACE INTO orders VALUES (0, 'A')",
					"INSERT INTO orders VALUES (-1, 'A')",
				} {
					// Outside of strict mode, an unsigned column turns -1 into 0 before the trigger.
					if _, err := g.admin.Exec(row); err == nil {
						t.Errorf("%s = nil; want an error", row)
					}
				}
				g.exec(t, "INSERT INTO orders VALUES (177026472345612305, 'A')")
				var rows int
				must(t, g.admin.QueryRow("SELECT COUNT(*) FROM orders").Scan(&rows))
				if rows != 1 {
					t.Errorf("%d rows; want the one with a key", rows)
				}
			})
		}
	}
}
