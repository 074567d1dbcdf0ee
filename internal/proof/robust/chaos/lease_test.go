//go:build unix

package chaos

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/lease/leasetest"
	"github.com/snowkey/snowkey/types"
)

// journals returns what a run finds in the journals of processes. A line is what was confirmed of a row: what, worker,
// epoch, from, until; of a release, and of what is late, the end; the last line of a process may be cut off.
func journals(t *testing.T, of map[string]string) events {
	t.Helper()
	dir := t.TempDir()
	for process, text := range of {
		j, err := openJournal(filepath.Join(dir, process+journalEnd))
		must(t, err)
		for line := range strings.Lines(text) {
			var what string
			var worker, epoch int64
			var from, until leasestore.Millis
			_, _ = fmt.Sscan(line, &what, &worker, &epoch, &from, &until)
			o := Operation{Outcome: Done, From: from, Reply: leasestore.Reply{Row: leasestore.Row{Worker: worker, Epoch: epoch, Until: until}}}
			switch what {
			case "claim":
				o.Claim = &leasestore.Claim{}
			case "renew", "late":
				o.Renewal, o.Late = &leasestore.Renewal{}, what == "late"
			case "release":
				o.Outcome, o.Release = Unknown, &leasestore.Release{Worker: worker, Epoch: epoch, End: until}
			}
			if what == "lost" {
				j.lost(nil)
			} else {
				j.write(entry{Operation: &o})
			}
			if !strings.HasSuffix(line, "\n") {
				info, err := j.file.Stat()
				must(t, errors.Join(err, j.file.Truncate(info.Size()-9)))
			}
		}
	}
	e, err := readJournals(dir)
	must(t, err)
	return e
}

func TestJournalsTellTakeoversLossesAndHoldsThatOverlap(t *testing.T) {
	for _, test := range []struct {
		name, one, two    string
		takeovers, losses int
		overlap           error
	}{
		{"first claims", "claim 0 1 10 20\n", "claim 1 1 10 20\n", 0, 0, nil},
		{"given back", "claim 0 1 10 20\nrenew 0 1 0 40\nrelease 0 1 0 12\n", "claim 0 3 12 22\n", 0, 0, nil},
		{"given back too much", "claim 0 1 10 20\nrelease 0 1 0 14\n", "claim 0 3 13 30\n", 0, 0, errOverlap},
		{"taken over", "claim 0 1 10 20\nlost\n", "claim 0 2 20 30\n", 1, 1, nil},
		{"taken over too early", "claim 0 1 10 20\n", "claim 0 2 19 30\n", 1, 0, errOverlap},
		{"renewed in spite of a takeover", "claim 0 1 10 20\nrenew 0 1 0 25\n", "claim 0 2 20 30\n", 1, 0, errOverlap},
		{"renewed too late to count", "claim 0 1 10 20\nlate 0 1 0 25\n", "claim 0 2 20 30\n", 1, 0, nil},
		{"forgotten", "claim 0 1 10 20\n", "claim 0 1 30 40\n", 1, 0, nil},
		{"half a line", "claim 0 1 10 20\n", "claim 0 2 20 30", 0, 0, nil},
		{"not begun, as under the guard", "claim 0 1 30 20\n", "claim 0 2 25 40\n", 1, 0, nil},
	} {
		e := journals(t, map[string]string{"1": test.one, "2": test.two})
		if got, err := e.takeovers(), e.disjoint(); got != test.takeovers || e.losses != test.losses || !errors.Is(err, test.overlap) {
			t.Errorf("%s: takeovers, losses, disjoint() = %d, %d, %v; want %d, %d, %v", test.name, got, e.losses, err, test.takeovers, test.losses, test.overlap)
		}
	}
}

func TestIDsOfTimesThatAreNotReservedAreFound(t *testing.T) {
	e := journals(t, map[string]string{
		"1": fmt.Sprintf("claim 0 1 %d %d\nrenew 0 1 0 %d\n", epoch+10, epoch+20, epoch+30),
		"2": fmt.Sprintf("claim 0 2 %d %d\n", epoch+30, epoch+40),
	})
	for _, test := range []struct {
		file         string
		tick, worker types.Snowflake
		want         error
	}{
		{"1-next.ids", 10, 0, nil},
		{"1-fill.ids", 29, 0, nil},
		{"1-next.ids", 9, 0, errUnreserved},
		{"1-next.ids", 30, 0, errUnreserved}, // it is the other's
		{"1-next.ids", 20, 1, errUnreserved},
		{"3-next.ids", 20, 0, errUnreserved},
	} {
		f := numberFiles{test.file: {newID(test.tick, test.worker)}}
		if err := e.reserved(f); !errors.Is(err, test.want) {
			t.Errorf("reserved() of tick %d, worker %d in %s = %v; want %v", test.tick, test.worker, test.file, err, test.want)
		}
	}
}

func newID(tick, worker types.Snowflake) types.Snowflake {
	return tick<<(workerBits+sequenceBits) | worker<<sequenceBits | 7
}

// newStore returns a store under rules. What it draws is draw, or less if it must be.
func newStore(t *testing.T, beneath lease.Store, rules Rules, draw int) *store {
	t.Helper()
	j, err := openJournal(filepath.Join(t.TempDir(), "1"+journalEnd))
	must(t, err)
	t.Cleanup(func() { _ = j.file.Close() })
	return &store{Store: beneath, rules: rules, rows: rows, journal: j, intN: func(n int) int { return min(draw, n-1) }}
}

// healthy is a draw with which no call has a fault.
const healthy = oneIn - 1

func newClaim(owner string) leasestore.Claim {
	return leasestore.Claim{
		Space: leasestore.Space{Namespace: "n", Workers: 4, Layout: "l"},
		Owner: owner, Nonce: owner, Window: 3000, Now: leasestore.MillisOf(time.Now()), Skew: 5000,
	}
}

func TestClaimsAreOfFewerRowsAndAShorterWindow(t *testing.T) {
	m := leasetest.NewMemory(nil)
	s := newStore(t, m, Fence, healthy)
	reply, err := s.Claim(t.Context(), newClaim("me"))
	must(t, err)
	all, _, err := m.Rows(t.Context(), newClaim("me").Space)
	if got := reply.Row.Until - reply.Now; got != 1000 || len(all) != rows || err != nil {
		t.Errorf("Claim reserves %d ms of %d rows, %v; want 1000 of %d", got, len(all), err, rows)
	}
}

func TestStolenRowsAreHeldByOthers(t *testing.T) {
	m := leasetest.NewMemory(nil)
	s := newStore(t, m, FenceStolen, healthy)
	for i := range rows {
		c := newClaim(fmt.Sprint("holder", i))
		c.Space.Workers = rows
		if _, err := m.Claim(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	s.intN = func(n int) int {
		if n == oneIn {
			return healthy
		}
		return 0 // it steals
	}
	c := newClaim("thief")
	reply, err := s.Claim(t.Context(), c)
	must(t, err)
	if reply.Row.Epoch != 2 || c.From(reply) < reply.Before || reply.Before <= reply.Now {
		t.Errorf("Claim = %+v, from %d; want a row of another's time, and nothing of that time", reply, c.From(reply))
	}
}

// What becomes of a claim under each fault, at once and in the end.
func TestFaultsDoWhatTheirNamesSay(t *testing.T) {
	for _, test := range []struct {
		fault       int
		err         error
		done, later bool          // whether the row is claimed when the call returns; in the end
		least       time.Duration // that the call takes
	}{
		{requestLost, errInjected, false, false, 0},
		{replyLost, errInjected, true, true, 0},
		{replyLate, nil, true, true, time.Second},
		{zombie, errInjected, false, true, 0},
		{healthy, nil, true, true, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := leasetest.NewMemory(nil)
			s := newStore(t, m, Fence, test.fault)
			claimed := func() bool {
				all, _, err := m.Rows(t.Context(), newClaim("me").Space)
				must(t, err)
				return slices.ContainsFunc(all, func(r leasestore.Row) bool { return r.Owner == "me" })
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			began := time.Now()
			_, err := s.Claim(ctx, newClaim("me"))
			took, done := time.Since(began), claimed()
			time.Sleep(time.Minute)
			if later := claimed(); !errors.Is(err, test.err) || done != test.done || later != test.later || took < test.least {
				t.Errorf("fault %d: Claim = %v after %v; claimed: %t, later %t; want %v after %v; %t, %t",
					test.fault, err, took, done, later, test.err, test.least, test.done, test.later)
			}
		})
	}
}

func TestTheJournalTellsWhatWasAskedAndWhatCameOfIt(t *testing.T) {
	s := newStore(t, leasetest.NewMemory(nil), Fence, healthy)
	s.real = true
	c := newClaim("me")
	reply, err := s.Claim(t.Context(), c)
	must(t, err)
	renewal := leasestore.Renewal{Space: c.Space, Worker: reply.Row.Worker, Epoch: 9, Owner: "other", Known: []string{"x"}, Nonce: "n", Window: 3000}
	if _, err := s.Renew(t.Context(), renewal); !errors.Is(err, lease.ErrLost) {
		t.Fatalf("Renew(another's) = %v; want ErrLost", err)
	}
	s.journal.write(entry{Operation: &Operation{Renewal: &leasestore.Renewal{Worker: 1}, Begin: 1}}) // the process was killed
	e, err := readJournals(filepath.Dir(s.journal.file.Name()))
	if err != nil || len(e.operations) != 3 {
		t.Fatalf("readJournals() = %d operations, %v; want 3", len(e.operations), err)
	}
	for i, want := range []Outcome{Done, Lost, Unknown} {
		if o := e.operations[i]; o.Outcome != want || o.Process != "1" || o.Begin == 0 || (o.End == 0) != (want == Unknown) {
			t.Errorf("operation %d = %+v; want the outcome %q of process 1", i, o, want)
		}
	}
	if o := e.operations[0]; o.Claim == nil || o.Claim.Owner != "me" || o.Reply.Row != reply.Row || o.From != c.From(reply) {
		t.Errorf("the claim = %+v; want that of me, with the row %+v", o, reply.Row)
	}
}

func TestClocksDriftBetweenTheirJumps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock{}
		c.last.Store(&jump{at: time.Now(), ahead: -time.Second, drift: 0.01})
		time.Sleep(10 * time.Second)
		if got := time.Until(c.now()); got != -900*time.Millisecond {
			t.Errorf("after 10 s the clock is ahead by %v; want -900ms", got)
		}
	})
}
