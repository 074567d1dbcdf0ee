package servers

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/lease/leasetest"
	"github.com/snowkey/snowkey/core/lease/sqllease"
	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/proof/servers/faultproxy"
)

func (g leaseTarget) run(t *testing.T) {
	g.store(t, g.open(t))
	leasetest.Run(t, func(t *testing.T) leasetest.Harness {
		where := func(s leasestore.Space, worker int64) string {
			return fmt.Sprintf(" WHERE namespace = '%s' AND datacenter = %d AND worker = %d", s.Namespace, s.Datacenter, worker)
		}
		return leasetest.Harness{
			Seed:      1, // the same in every run: a release must not depend on luck
			Open:      func(t *testing.T) leasetest.Store { return g.store(t, g.open(t)) },
			Namespace: rand.Text(),
			SetUntil: func(t *testing.T, s leasestore.Space, worker int64, until leasestore.Millis) {
				g.exec(t, fmt.Sprintf("UPDATE snowkey_leases SET reserved_until = %d", until)+where(s, worker))
			},
			Delete: func(t *testing.T, s leasestore.Space, worker int64) {
				g.exec(t, "DELETE FROM snowkey_leases"+where(s, worker))
			},
			Stall:        func(t *testing.T) (resume func()) { return g.lockTables(t, "snowkey_leases", "snowkey_leases_meta") },
			LosesReplies: func(t *testing.T) leasetest.Store { return g.store(t, g.losingCommits(t)) },
			Unreachable:  g.unreachable,
			Secret:       "open-sesame",
		}
	})
}

// unreachable returns a handle with a password, on a port without a listener.
func (g leaseTarget) unreachable(t *testing.T) leasetest.Store {
	g.dsn = "root:open-sesame@tcp(127.0.0.1:1)/test"
	if g.dialect() == sqlstore.PostgreSQL {
		g.dsn = "postgres://root:open-sesame@127.0.0.1:1/test?sslmode=disable"
	}
	return g.bare(t, g.open(t))
}

func TestSqlleasePassesTheSuite(t *testing.T) {
	leaseTargets(t, func(t *testing.T, g leaseTarget) { g.run(t) })
}

func TestSqlleasePassesTheSuiteOfRegisters(t *testing.T) {
	leaseTargets(t, func(t *testing.T, g leaseTarget) {
		leasetest.RunRegister(t, func(t *testing.T) leasetest.RegisterHarness {
			return leasetest.RegisterHarness{
				Open:      func(t *testing.T) leasestore.Register { return g.store(t, g.open(t)).Register() },
				Namespace: rand.Text(),
				Delete: func(t *testing.T, s leasestore.Space, worker int64) {
					g.exec(t, fmt.Sprintf("DELETE FROM snowkey_leases WHERE namespace = '%s' AND worker = %d", s.Namespace, worker))
				},
			}
		})
	})
}

func TestSqlleasePassesTheSuiteInOtherModesOfPgx(t *testing.T) {
	for _, mode := range []string{"pgx simple protocol", "pgx exec"} {
		t.Run(mode, func(t *testing.T) { wayTo(mode).target(t).run(t) })
	}
}

// What a program may have made the default must not matter.
func TestSqlleasePassesTheSuiteUnderOtherDefaultsOfPostgres(t *testing.T) {
	wayTo("pgx").target(t, "default_transaction_isolation", "serializable", "synchronous_commit", "off",
		"default_transaction_deferrable", "on", "timezone", "America/New_York").run(t)
}

func TestSqlleasePassesTheSuiteUnderOtherDefaultsOfInnoDB(t *testing.T) {
	onMariaDBAndMySQL(t, func(t *testing.T, w way) {
		for name, parameters := range map[string][]string{
			"ClientFoundRows":   {"clientFoundRows", "true"},
			"InterpolateParams": {"interpolateParams", "true"},
			"Serializable":      {w.isolation(), "'SERIALIZABLE'", "time_zone", "'+11:00'", "sql_mode", "''", "autocommit", "0", "innodb_lock_wait_timeout", "1"},
			"StatementBinlog":   {w.isolation(), "'READ-UNCOMMITTED'", "binlog_format", "'STATEMENT'"},
			"AnsiQuotes":        {"sql_mode", "'ANSI,PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES'", "multiStatements", "true"},
		} {
			t.Run(name, func(t *testing.T) { w.target(t, parameters...).run(t) })
		}
	})
}

// isolation is the name of the variable on MySQL and MariaDB.
func (w way) isolation() string {
	if w.server == "MariaDB" {
		return "tx_isolation"
	}
	return "transaction_isolation"
}

// A claim or a refusal on the ground of what is rolled back later would be wrong.
func TestUncommittedRowsAreNotReadWhateverTheDefaultIs(t *testing.T) {
	onMariaDBAndMySQL(t, func(t *testing.T, w way) {
		for _, autocommit := range []string{"0", "1"} {
			g, isolation := w.target(t, "autocommit", autocommit), w.isolation()
			db := g.openOne(t)
			s := g.store(t, db)
			c := newLease()
			mustClaim(t, s, c)
			for range 2 { // the level of the connection outlasts a look
				_, err := db.Exec("SET SESSION " + isolation + " = 'READ-UNCOMMITTED'")
				must(t, err)
				tx, err := g.admin.BeginTx(t.Context(), nil)
				must(t, err)
				_, err = tx.Exec("UPDATE snowkey_leases SET owner = 'other', reserved_until = 9000000000000")
				must(t, err)
				// On one connection, where a transaction that the list left open would be in the way.
				if spaces, err := s.Spaces(t.Context()); err != nil || len(spaces) != 1 {
					t.Errorf("autocommit %s: Spaces() = %+v, %v; want one", autocommit, spaces, err)
				}
				rows, _, err := s.Rows(t.Context(), c.Space)
				if err != nil || slices.ContainsFunc(rows, func(r leasestore.Row) bool { return r.Owner == "other" }) {
					t.Errorf("autocommit %s: Rows() = %+v, %v; want no uncommitted row", autocommit, rows, err)
				}
				must(t, tx.Rollback())
				var level string
				if err := db.QueryRow("SELECT @@" + isolation).Scan(&level); err != nil || level != "READ-UNCOMMITTED" {
					t.Errorf("autocommit %s: isolation after a look = %s, %v; want READ-UNCOMMITTED", autocommit, level, err)
				}
			}
		}
	})
}

// newLease returns a claim that an empty space grants.
func newLease() leasestore.Claim {
	return leasestore.Claim{
		Space: leasestore.Space{Namespace: "shop", Datacenter: 1, Workers: 128, Layout: "41/5/5/12"},
		Owner: rand.Text(), Nonce: rand.Text(), Window: 60_000, Now: leasestore.MillisOf(time.Now()), Skew: 60_000,
	}
}

func leaseRenewal(c leasestore.Claim, r leasestore.Reply) leasestore.Renewal {
	return leasestore.Renewal{
		Space: c.Space, Worker: r.Row.Worker, Epoch: r.Row.Epoch, Owner: c.Owner, Known: []string{r.Row.Nonce}, Nonce: rand.Text(),
		Next: c.Now, Until: r.Row.Until, Window: c.Window, Now: leasestore.MillisOf(time.Now()), Skew: c.Skew,
	}
}

func mustClaim(t *testing.T, s *sqllease.Store, c leasestore.Claim) leasestore.Reply {
	t.Helper()
	r, err := s.Claim(t.Context(), c)
	if err != nil {
		t.Fatalf("Claim(%+v) = %v; want a row", c, err)
	}
	return r
}

// The suite has as many first claims, of tables that are there.
func TestHundredFirstStartsShareOneSchemaAndNoRow(t *testing.T) {
	leaseTargets(t, func(t *testing.T, g leaseTarget) {
		const processes, pools = 100, 4
		var dbs [pools]*sql.DB
		for i := range dbs {
			dbs[i] = g.open(t)
		}
		var wg sync.WaitGroup
		var workers sync.Map
		start := make(chan struct{})
		for i := range processes {
			s := g.bare(t, dbs[i%pools])
			wg.Go(func() {
				<-start
				if err := s.CreateTables(t.Context()); err != nil {
					t.Errorf("CreateTables() by process %d = %v; want nil", i, err)
					return
				}
				c := newLease()
				c.Space.Workers = processes
				r, err := s.Claim(t.Context(), c)
				if _, taken := workers.LoadOrStore(r.Row.Worker, true); taken || err != nil {
					t.Errorf("Claim() by process %d = worker %d, %v; want one that no other has", i, r.Row.Worker, err)
				}
			})
		}
		close(start)
		wg.Wait()
	})
}

func TestLargestSpaceIsMadeAtOnce(t *testing.T) {
	leaseTargets(t, func(t *testing.T, g leaseTarget) {
		s := g.store(t, g.open(t))
		c := newLease()
		c.Space.Workers = 1 << 16
		mustClaim(t, s, c)
		rows, _, err := s.Rows(t.Context(), c.Space)
		if err != nil || len(rows) != 1<<16 || rows[len(rows)-1].Worker != 1<<16-1 {
			t.Errorf("Rows() = %d rows, %v; want %d", len(rows), err, 1<<16)
		}
	})
}

// A claim waits for the program's transaction, which has the only connection. Waiting is no difference
// between clocks. But a process may be descheduled between reading its clock and the call, and its clock is
// then behind by as much, so a refusal is a fault of the store only if it comes with any permitted skew.
func TestClaimThatWaitsForAPoolOfOneIsGranted(t *testing.T) {
	leaseTargets(t, func(t *testing.T, g leaseTarget) {
		db := g.openOne(t)
		s := g.store(t, db)
		for skew := leasestore.Millis(100); ; skew *= 4 {
			tx, err := db.BeginTx(t.Context(), nil)
			must(t, err)
			c := newLease()
			c.Skew = skew
			time.AfterFunc((2 * skew).Duration(), func() { _ = tx.Rollback() })
			reply, err := s.Claim(t.Context(), c)
			if errors.Is(err, lease.ErrClockSkew) && skew < 10_000 {
				continue
			}
			if waited := reply.Now - c.Now; err != nil || waited <= skew {
				t.Errorf("Claim() after the transaction = %v, after %d ms; want a row after more than %d, or the test shows nothing", err, waited, skew)
			}
			return
		}
	})
}

// settings makes a claim on the one connection of a pool. It returns what a query shows of the connection
// before and after, and what an expression had where the row was written, as a trigger sees it.
func (g leaseTarget) settings(t *testing.T, query, inside string) (before, after, within string) {
	t.Helper()
	db := g.openOne(t)
	s := g.store(t, db)
	g.exec(t, "CREATE TABLE seen (settings TEXT)")
	see := "INSERT INTO seen VALUES (" + inside + ")"
	if g.dialect() == sqlstore.PostgreSQL {
		g.exec(t, "CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "+see+"; RETURN NEW; END $$")
		see = "EXECUTE FUNCTION see()"
	}
	g.exec(t, "CREATE TRIGGER see BEFORE UPDATE ON snowkey_leases FOR EACH ROW "+see)
	must(t, db.QueryRow(query).Scan(&before))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := s.Claim(ctx, newLease())
	must(t, err)
	must(t, db.QueryRow(query).Scan(&after))
	must(t, g.admin.QueryRow("SELECT settings FROM seen").Scan(&within))
	return before, after, within
}

// All levels that the server has are here.
func TestWriteIsDurableAndSettingsAreSetBackOnPostgres(t *testing.T) {
	levels := map[string]string{"off": "on", "local": "on", "remote_write": "on", "on": "on", "remote_apply": "remote_apply"}
	var known int
	must(t, wayTo("pgx").target(t).admin.QueryRow("SELECT cardinality(enumvals) FROM pg_settings WHERE name = 'synchronous_commit'").Scan(&known))
	if known != len(levels) {
		t.Errorf("the server has %d levels of synchronous_commit; want the %d of this test", known, len(levels))
	}
	for _, name := range []string{"pgx", "pq"} {
		for setting, want := range levels {
			for _, isolation := range []string{"serializable", "read committed"} {
				t.Run(name+"/"+setting+"/"+isolation, func(t *testing.T) {
					g := wayTo(name).target(t, "synchronous_commit", setting, "lock_timeout", "7s", "statement_timeout", "3h", "default_transaction_isolation", isolation)
					before, after, within := g.settings(t, "SELECT string_agg(name || '=' || setting, ' ' ORDER BY name) FROM pg_settings WHERE name IN "+
						"('synchronous_commit', 'lock_timeout', 'statement_timeout', 'idle_in_transaction_session_timeout', 'transaction_isolation')",
						"current_setting('synchronous_commit') || ', ' || current_setting('transaction_isolation') || ', ' || (current_setting('lock_timeout') = '7s')::text || ', ' || (current_setting('idle_in_transaction_session_timeout') <> '0')::text")
					if after != before {
						t.Errorf("settings after a claim = %q; want as before, %q", after, before)
					}
					// The write under read committed has no transaction, which could be idle.
					if want := fmt.Sprintf("%s, read committed, false, %t", want, isolation == "serializable"); within != want {
						t.Errorf("synchronous_commit, isolation, the default lock_timeout and any idle limit in the claim = %s; want %s", within, want)
					}
				})
			}
		}
	}
}

func TestSettingsAreSetBackOnInnoDB(t *testing.T) {
	onMariaDBAndMySQL(t, settingsAreSetBack)
}

func settingsAreSetBack(t *testing.T, w way) {
	t.Helper()
	g, isolation := w.target(t, "innodb_lock_wait_timeout", "77", w.isolation(), "'SERIALIZABLE'"), w.isolation()
	before, after, within := g.settings(t, "SELECT CONCAT_WS(' ', CONNECTION_ID(), @@innodb_lock_wait_timeout, @@"+isolation+")", "@@innodb_lock_wait_timeout")
	if after != before || !strings.HasSuffix(after, " 77 SERIALIZABLE") {
		t.Errorf("connection, lock wait, isolation after a claim = %q; want as before, %q", after, before)
	}
	if wait, err := strconv.Atoi(within); err != nil || wait < 1 || wait > 60 {
		t.Errorf("innodb_lock_wait_timeout in the claim = %s; want 1..60, what ctx leaves", within)
	}
}

func TestReadOnlyServerIsRefused(t *testing.T) {
	// lib/pq asks for a transaction that can write, and gets it.
	// The server's own read_only would refuse the tests of others too.
	for name, parameter := range map[string]string{"pgx": "default_transaction_read_only", "MariaDB": "tx_read_only", "MySQL": "transaction_read_only"} {
		t.Run(name, func(t *testing.T) {
			writable := wayTo(name).target(t)
			g := writable
			g.place = g.with(t, parameter, "1")
			c := newLease()
			r := mustClaim(t, writable.store(t, writable.open(t)), c)
			s := g.bare(t, g.open(t))
			if _, err := s.Claim(t.Context(), newLease()); !errors.Is(err, sqlstore.ErrReadOnly) {
				t.Errorf("Claim() = %v; want ErrReadOnly", err)
			}
			if _, err := s.Renew(t.Context(), leaseRenewal(c, r)); !errors.Is(err, sqlstore.ErrReadOnly) || errors.Is(err, lease.ErrLost) {
				t.Errorf("Renew() = %v; want ErrReadOnly", err)
			}
		})
	}
}

func TestMissingOrForeignTablesAreNamed(t *testing.T) {
	leaseTargets(t, func(t *testing.T, g leaseTarget) {
		s := g.bare(t, g.open(t))
		_, err := s.Claim(t.Context(), newLease())
		if !errors.Is(err, sqlstore.ErrNoTable) || !strings.Contains(err.Error(), s.Statements()[0]) || !strings.Contains(err.Error(), s.Statements()[1]) {
			t.Errorf("Claim() without tables = %v; want ErrNoTable and the statements", err)
		}
		g.exec(t, s.Statements()...)
		mustClaim(t, s, newLease())
		g.exec(t, "DROP TABLE snowkey_leases", "CREATE TABLE snowkey_leases (namespace INT, datacenter INT)")
		if err := s.CreateTables(t.Context()); !errors.Is(err, sqlstore.ErrSchema) {
			t.Errorf("CreateTables() with a foreign table = %v; want ErrSchema", err)
		}
	})
}

// The figures are in the log. They are bounds and no equations: a driver may learn to need
// fewer. Two of a range's on MySQL are the savepoint of [sqlrow.Tx.Reread].
func TestOperationsTakeFewRoundTrips(t *testing.T) {
	leaseTargets(t, func(t *testing.T, g leaseTarget) {
		g, p := g.through(t)
		db := g.openOne(t)
		s := g.store(t, db)
		mustClaim(t, s, newLease())
		segments := g.ordersRow(t, db, segment.Row{Next: 1, Stride: 1})
		most := map[string][3]int{"pgx": {2, 2, 5}, "pq": {2, 2, 7}, "MariaDB": {9, 8, 14}, "MySQL": {9, 8, 14}}[g.name]
		for i := range 3 { // pgx prepares statements the first time
			// Above innodb_lock_wait_timeout, a call would need no trip to shorten that.
			ctx, cancel := context.WithTimeout(t.Context(), 45*time.Second)
			defer cancel()
			c := newLease()
			var r leasestore.Reply
			var got [3]int
			for k, call := range []func() error{
				func() (err error) { r, err = s.Claim(ctx, c); return err },
				func() error { _, err := s.Renew(ctx, leaseRenewal(c, r)); return err },
				func() error { _, err := segments.Take(ctx, segment.Take{Tag: "orders"}); return err },
			} {
				p.Arm(faultproxy.Fault{})
				must(t, call())
				got[k] = faultproxy.Trips(p.Messages())
			}
			t.Logf("round trips of a claim, a renewal and the fetch of a range: %d", got)
			if i > 0 && (got[0] > most[0] || got[1] > most[1] || got[2] > most[2]) {
				t.Errorf("round trips of a claim, a renewal and the fetch of a range = %d; want at most %d", got, most)
			}
		}
	})
}

// In a space of 32,768 rows where a third is held, as after the crash of ten thousand processes,
// the key leads to the sixteen rows that a claim chooses from.
func TestAClaimInALargeSpaceReadsFewRows(t *testing.T) {
	leaseTargets(t, func(t *testing.T, g leaseTarget) {
		const claims, most = 50, 64 // 24 to find 16 free ones, and what the write looks up
		db := g.openOne(t)
		s := g.store(t, db)
		c := newLease()
		c.Space.Workers = 32_768
		flush, read := "DO 0", "SELECT sum(variable_value) FROM performance_schema.session_status WHERE variable_name LIKE 'Handler\\_read%'"
		switch {
		case g.dialect() == sqlstore.PostgreSQL: // whose numbers are those of all connections, vacuum's too
			flush, read = "SELECT pg_stat_force_next_flush()", "SELECT sum(seq_tup_read) + sum(idx_tup_fetch) FROM pg_stat_user_tables WHERE schemaname = current_schema()"
			g.exec(t, "ALTER TABLE snowkey_leases SET (autovacuum_enabled = off)")
		case g.server == "MariaDB":
			read = strings.Replace(read, "performance_schema", "information_schema", 1)
		}
		mustClaim(t, s, c)
		// By the connection whose reads are counted: those of another one arrive at any time.
		_, err := db.Exec(fmt.Sprintf("UPDATE snowkey_leases SET owner = 'x', reserved_until = %d WHERE worker %% 3 = 0", c.Now+100*c.Window))
		must(t, err)
		count := func() (rows int64) {
			t.Helper()
			if _, err := db.Exec(flush); err != nil {
				t.Skipf("SKIPPED: the rows that were read are counted later: %v", err)
			}
			must(t, db.QueryRow(read).Scan(&rows))
			return rows
		}
		before := count()
		for range claims {
			c.Owner, c.Nonce = rand.Text(), rand.Text()
			mustClaim(t, s, c)
		}
		got := (count() - before) / claims
		t.Logf("rows read: %d for each claim", got)
		if got > most || got < 16 {
			t.Errorf("a claim has read %d rows of 32,768; want 16 to %d", got, most)
		}
	})
}

// Neither of two first claims in two datacenters sees the other's rows. What they
// have in common is the row of the namespace.
func TestSimultaneousFirstClaimsWithTwoLayoutsAreNotBothGranted(t *testing.T) {
	leaseTargets(t, func(t *testing.T, g leaseTarget) {
		s := g.store(t, g.open(t))
		for round := range 10 {
			var wg sync.WaitGroup
			var errs [2]error
			for i := range errs {
				wg.Go(func() {
					c := newLease()
					c.Space.Namespace = fmt.Sprintf("round%d", round)
					c.Space.Datacenter, c.Space.Layout = int64(i), fmt.Sprintf("layout%d", i)
					_, errs[i] = s.Claim(t.Context(), c)
				})
			}
			wg.Wait()
			if (errs[0] == nil) == (errs[1] == nil) || !errors.Is(errors.Join(errs[:]...), lease.ErrLayout) {
				t.Errorf("Claim() with two layouts at once = %v and %v; want one granted, one ErrLayout", errs[0], errs[1])
			}
		}
	})
}
