package servers

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/lease/sqllease"
	"github.com/snowkey/snowkey/core/sqlstore"
)

// pastTargets are leaseTargets, and MySQL counting the rows that it has found.
func pastTargets(t *testing.T, f func(t *testing.T, g leaseTarget)) {
	leaseTargets(t, f)
	t.Run("ClientFoundRows", func(t *testing.T) {
		f(t, wayTo("MySQL").target(t, "clientFoundRows", "true"))
	})
}

// An installation of an older version has no table of past holders, until somebody creates it.
func TestLeasesGoOnWithoutTheTableOfPastHolders(t *testing.T) {
	pastTargets(t, func(t *testing.T, g leaseTarget) {
		s := g.store(t, g.open(t))
		g.exec(t, "DROP TABLE snowkey_leases_past")
		claim := func(worker int64, holder string) (leasestore.Claim, leasestore.Reply) {
			c := newLease()
			c.Only, c.Holder = []int64{worker}, holder
			return c, mustClaim(t, s, c)
		}
		c, r := claim(7, "old") // which makes the space
		renewed, err := s.Renew(t.Context(), leaseRenewal(c, r))
		must(t, err)
		_, err = s.History(t.Context(), c.Space, 7)
		if !errors.Is(err, sqlstore.ErrNoTable) || !strings.Contains(err.Error(), s.Statements()[2]) {
			t.Errorf("History() without the table = %v; want ErrNoTable, and the statement", err)
		}

		g.store(t, g.open(t)) // creates the table
		s = g.bare(t, g.open(t))
		want := map[int64]leasestore.Holder{7: {Worker: 7, Epoch: 1, Holder: "old", Until: renewed.Row.Until}}
		for worker := range int64(3) { // rows that the table does not have
			_, r := claim(worker, "new")
			want[worker] = leasestore.Holder{Worker: worker, Epoch: 1, Holder: "new", From: r.Now, Until: r.Row.Until}
		}
		for worker, want := range want {
			if got, err := s.History(t.Context(), c.Space, worker); err != nil || !slices.Equal(got, []leasestore.Holder{want}) {
				t.Errorf("History() = %+v, %v; want %+v", got, err, want)
			}
		}
	})
}

func TestLeasesGoOnWithoutTheRightToRecordHolders(t *testing.T) {
	leaseTargets(t, func(t *testing.T, g leaseTarget) {
		g.store(t, g.open(t))
		restricted := g
		restricted.place, _ = g.user(t, g.admin, "GRANT SELECT, INSERT, UPDATE ON snowkey_leases TO $role", "GRANT SELECT, INSERT, UPDATE ON snowkey_leases_meta TO $role")
		for _, table := range []string{"without the right to it", "without it"} {
			if table == "without it" {
				g.exec(t, "DROP TABLE snowkey_leases_past")
			}
			var log bytes.Buffer
			config := g.config(sqllease.DefaultTable)
			config.Logger = slog.New(slog.NewTextHandler(&log, nil))
			s, err := sqllease.New(restricted.open(t), config)
			must(t, err)
			if err := s.CreateTables(t.Context()); err != nil || !strings.Contains(log.String(), "sqllease: no table of past holders") {
				t.Errorf("CreateTables() %s = %v, and logs %q; want nil, and a warning", table, err, &log)
			}
			c := newLease()
			r := mustClaim(t, s, c)
			if _, err := s.Renew(t.Context(), leaseRenewal(c, r)); err != nil {
				t.Errorf("Renew() %s = %v; want it renewed", table, err)
			}
			if all, err := s.History(t.Context(), c.Space, r.Row.Worker); err == nil || !errors.Is(err, leasestore.ErrPermanent) {
				t.Errorf("History() %s = %+v, %v; want a permanent error", table, all, err)
			}
		}
	})
}

// The documentation says how much a number takes at most.
func TestAClaimRemovesOldRecords(t *testing.T) {
	leaseTargets(t, func(t *testing.T, g leaseTarget) {
		s := g.store(t, g.open(t))
		c := newLease()
		c.Space.Workers, c.Holder = 1, strings.Repeat("w", 64)
		mustClaim(t, s, c)
		g.exec(t, "UPDATE snowkey_leases_past SET records = REPEAT('0123456789', 3000)", "UPDATE snowkey_leases SET reserved_until = 1, owner = ''")
		c.Owner, c.Nonce = rand.Text(), rand.Text()
		mustClaim(t, s, c)
		var length int
		if err := g.admin.QueryRow("SELECT LENGTH(records) FROM snowkey_leases_past").Scan(&length); err != nil || length > 20_000 {
			t.Errorf("length of the records after a claim = %d, %v; want at most 20,000", length, err)
		}
	})
}

// A DBA rewrites the table of past holders.
func TestALockedTableOfPastHoldersStopsNoClaim(t *testing.T) {
	leaseTargets(t, func(t *testing.T, g leaseTarget) {
		s := g.store(t, g.open(t))
		mustClaim(t, s, newLease())
		release := g.lockTables(t, "snowkey_leases_past")
		// A claim waits for the lock for half of its time, and goes on without the record in the other
		// half. How long a half must be depends on how busy the machine is.
		var c leasestore.Claim
		var r leasestore.Reply
		for limit := 2 * time.Second; ; limit *= 4 {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			c = newLease()
			var err error
			r, err = s.Claim(ctx, c)
			cancel()
			if err == nil {
				break
			}
			if limit > time.Minute {
				t.Fatalf("Claim() within %v while the table is locked = %v; want a row", limit, err)
			}
		}
		release()
		if row, err := s.Renew(t.Context(), leaseRenewal(c, r)); err != nil {
			t.Errorf("Renew() after it is unlocked = %+v, %v; want it renewed", row, err)
		}
		if next := mustClaim(t, s, newLease()); next.Row.Worker == r.Row.Worker {
			t.Errorf("Claim() = %+v; want another row", next)
		}
	})
}
