package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/types"
)

// layout is the layout of all IDs here.
var layout = core.Default()

// A proof is what verify has found out.
type proof struct {
	processes    int
	reported     int // IDs
	rows         int
	unreported   int // rows of processes that were killed before they could report them
	workers      int // numbers
	reservations int
	shared       []succession
}

// A succession is a worker number that one process has had after another.
type succession struct {
	worker        int64
	before, after string // the processes
	at            leasestore.Millis
}

// verify compares what the processes said with what the database holds. The
// processes have ended. The first thing that is wrong is the error.
func verify(processes []*process, rows []row) (*proof, error) {
	r := &proof{processes: len(processes), rows: len(rows)}

	// What the processes said, by itself: no ID twice, whoever said it.
	said := map[types.Snowflake]*process{}
	byPID := map[int]*process{}
	for _, p := range processes {
		byPID[p.pid] = p
		for _, id := range p.ids {
			if other, twice := said[id]; twice {
				return nil, fmt.Errorf("ID %s (%s) was made twice: by %s (pid %d) and by %s (pid %d)", id, decoded(id), other.name, other.pid, p.name, p.pid)
			}
			said[id] = p
		}
	}
	r.reported = len(said)

	// Each row is one that its process has reported, or was killed too early to.
	stored := map[types.Snowflake]bool{}
	for _, row := range rows {
		p := byPID[row.pid]
		switch by := said[row.id]; {
		case p == nil || p.name != row.replica:
			return nil, fmt.Errorf("row %s is of %s (pid %d), which is no process of this run", row.id, row.replica, row.pid)
		case stored[row.id]:
			return nil, fmt.Errorf("row %s is in the database twice", row.id)
		case by == nil && p.state != killed:
			return nil, fmt.Errorf("row %s is of %s (pid %d), which did not report it", row.id, p.name, p.pid)
		case by == nil:
			r.unreported++
		case by != p:
			return nil, fmt.Errorf("row %s is of %s (pid %d), and was reported by %s (pid %d)", row.id, p.name, p.pid, by.name, by.pid)
		}
		stored[row.id] = true
		if !covered(p.reservations, row.id) {
			return nil, fmt.Errorf("ID %s (%s) of %s (pid %d) is in none of its reservations", row.id, decoded(row.id), p.name, p.pid)
		}
	}
	for id, p := range said {
		if !stored[id] {
			return nil, fmt.Errorf("ID %s, which %s (pid %d) reported, is not in the database", id, p.name, p.pid)
		}
	}

	return r, r.successions(processes)
}

// covered reports whether one of the reservations is for the worker and the time
// in id.
func covered(reservations []reservation, id types.Snowflake) bool {
	parts := layout.Parts(id)
	at := leasestore.MillisOf(parts.Time)
	return slices.ContainsFunc(reservations, func(r reservation) bool {
		return r.Worker == parts.Worker && r.From <= at && at < r.Until
	})
}

// successions checks that no two reservations of one worker number overlap.
func (r *proof) successions(processes []*process) error {
	type owned struct {
		reservation
		by *process
	}
	var all []owned
	for _, p := range processes {
		for _, x := range p.reservations {
			all = append(all, owned{x, p})
		}
	}
	slices.SortFunc(all, func(a, b owned) int {
		return cmp.Or(cmp.Compare(a.Worker, b.Worker), cmp.Compare(a.Epoch, b.Epoch))
	})
	r.reservations = len(all)
	for i, b := range all {
		if i == 0 || all[i-1].Worker != b.Worker {
			r.workers++
			continue
		}
		a := all[i-1]
		if a.Until > b.From {
			return fmt.Errorf("worker number %d was reserved twice from %s to %s: for %s (pid %d) and for %s (pid %d)",
				b.Worker, clock(b.From), clock(a.Until), a.by.name, a.by.pid, b.by.name, b.by.pid)
		}
		r.shared = append(r.shared, succession{worker: b.Worker, before: a.by.name, after: b.by.name, at: b.From})
	}
	return nil
}

func clock(m leasestore.Millis) string { return m.Time().Format("15:04:05.000") }

// print writes the proof for people.
func (r *proof) print(out io.Writer, took time.Duration) error {
	_, err := fmt.Fprintf(out, `
%d processes wrote %d rows in %s, with %d worker numbers.

  No ID repeats: the processes reported %d IDs, and no two are equal.
  None is missing: each of them is in the database exactly once.
`, r.processes, r.rows, seconds(took), r.workers, r.reported)
	if err == nil && r.unreported > 0 {
		_, err = fmt.Fprintf(out, "  %d rows more are of a process that was killed before it could report them.\n", r.unreported)
	}
	if err == nil {
		_, err = fmt.Fprintf(out, "  Each ID has a worker number and a time that its process had reserved.\n  The %d reservations overlap nowhere.\n", r.reservations)
	}
	for _, s := range r.shared {
		if err == nil {
			_, err = fmt.Fprintf(out, "  Worker number %d: %s had it for times before %s UTC,\n  %s for times from then on.\n", s.worker, s.before, clock(s.at), s.after)
		}
	}
	return err
}
