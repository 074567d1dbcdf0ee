//go:build unix

package chaos

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// journalEnd ends the name of the file in which a process records its lease.
const journalEnd = ".journal"

// A journal is the record that a process keeps of its lease. Each line is a single write, so
// that none is lost when the process is killed.
type journal struct{ file *os.File }

func openJournal(path string) (*journal, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	return &journal{f}, err
}

// A confirmed request is in the journal before the lease learns of it, and a release before the
// store does. Errors of the writes are ignored, because a missing line fails the run.

func (j *journal) claimed(row leasestore.Row, from leasestore.Millis) {
	_, _ = fmt.Fprintf(j.file, "claim %d %d %d %d\n", row.Worker, row.Epoch, from, row.Until)
}

// begins records that IDs begin later than at the moment that the claim has won.
func (j *journal) begins(row leasestore.Row, at leasestore.Millis) {
	_, _ = fmt.Fprintf(j.file, "begin %d %d 0 %d\n", row.Worker, row.Epoch, at)
}

func (j *journal) renewed(row leasestore.Row) {
	_, _ = fmt.Fprintf(j.file, "renew %d %d 0 %d\n", row.Worker, row.Epoch, row.Until)
}

// late records a renewal that the lease does not accept, unless its clock steps at that moment.
func (j *journal) late(row leasestore.Row) {
	_, _ = fmt.Fprintf(j.file, "late %d %d 0 %d\n", row.Worker, row.Epoch, row.Until)
}

func (j *journal) released(r leasestore.Release) {
	_, _ = fmt.Fprintf(j.file, "release %d %d 0 %d\n", r.Worker, r.Epoch, r.End)
}

// paused records how long no ID came, if it was long.
func (j *journal) paused(d time.Duration) {
	if d <= noted {
		return
	}
	_, _ = fmt.Fprintf(j.file, "pause 0 0 0 %d\n", d.Milliseconds())
}

func (j *journal) lost(e *lease.LostError) {
	_, _ = fmt.Fprintf(j.file, "lost %d %d 0 0\n", e.Worker, e.Epoch)
}

// A hold is one lease's hold on a row. All its IDs have a time in [from, until).
type hold struct {
	process       string
	worker, epoch int64
	from, until   leasestore.Millis
	begin, end    leasestore.Millis // the same by the lease's clock, to within a step of it
	released      bool              // or tried to
}

func (h hold) String() string {
	return fmt.Sprintf("process %s, worker %d, epoch %d, from %d until %d", h.process, h.worker, h.epoch, h.from, h.until)
}

// Events are the contents of the journals of a run.
type events struct {
	holds  []*hold
	losses int
	pause  time.Duration // the longest
}

// readJournals reads all journals in dir.
func readJournals(dir string) (e events, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*"+journalEnd))
	if err != nil {
		return events{}, err
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return events{}, err
		}
		process := strings.TrimSuffix(filepath.Base(path), journalEnd)
		var now *hold
		for line := range strings.Lines(string(text)) {
			var what string
			h := hold{process: process}
			if n, _ := fmt.Sscanf(line, "%s %d %d %d %d\n", &what, &h.worker, &h.epoch, &h.from, &h.until); n < 5 || !strings.HasSuffix(line, "\n") {
				continue // it is being written
			}
			switch {
			case what == "claim":
				now, h.begin, h.end = &h, h.from, h.until
				e.holds = append(e.holds, now)
			case what == "pause":
				e.pause = max(e.pause, h.until.Duration())
			case what == "lost":
				e.losses++
			case now == nil || now.worker != h.worker || now.epoch != h.epoch:
				return events{}, fmt.Errorf("chaos: %s of a row that was not claimed: %s", what, h)
			case what == "begin":
				now.begin = max(now.begin, h.until)
			case what == "renew":
				now.until, now.end = max(now.until, h.until), max(now.end, h.until)
			case what == "late":
				now.until = max(now.until, h.until)
			case what == "release":
				now.until, now.end, now.released = min(now.until, h.until), min(now.end, h.until), true
			}
		}
	}
	return e, nil
}

// takeovers returns how many claims were of rows that had not been given back. It counts rows
// that were forgotten.
func (e events) takeovers() (n int) {
	type place struct{ worker, epoch int64 }
	claimed, released := map[place]bool{}, map[place]bool{}
	for _, h := range e.holds {
		released[place{h.worker, h.epoch}] = released[place{h.worker, h.epoch}] || h.released
	}
	for _, h := range e.holds {
		// A claim increments the epoch, and so does a release. If the previous holder has tried
		// to give the row back, its epoch was the one before the last. If an epoch occurs
		// again, its row was forgotten.
		at := place{h.worker, h.epoch}
		if claimed[at] || h.epoch > 1 && !released[place{h.worker, h.epoch - 2}] {
			n++
		}
		claimed[at] = true
	}
	return n
}

var (
	errOverlap    = errors.New("chaos: two leases have the same time of a row")
	errUnreserved = errors.New("chaos: an ID has a time that is not reserved for its lease")
)

// disjoint returns an error if two holds on a row have a time in common, even if neither has
// returned an ID for that time.
func (e events) disjoint() error {
	holds := slices.DeleteFunc(slices.Clone(e.holds), func(h *hold) bool { return h.end <= h.begin })
	slices.SortFunc(holds, func(a, b *hold) int { return cmp.Or(cmp.Compare(a.worker, b.worker), cmp.Compare(a.begin, b.begin)) })
	for i := 1; i < len(holds); i++ {
		if a, b := holds[i-1], holds[i]; a.worker == b.worker && a.end > b.begin {
			return fmt.Errorf("%w: %s; %s", errOverlap, a, b)
		}
	}
	return nil
}

// reserved returns an error unless each ID is within a hold of its process.
func (e events) reserved(f numberFiles) error {
	holds := map[string][]*hold{}
	for _, h := range e.holds {
		holds[h.process] = append(holds[h.process], h)
	}
	for name, ids := range f {
		process, _, _ := strings.Cut(name, "-")
		for _, id := range ids {
			worker, at := workerOf(id), timeOf(id)
			if !slices.ContainsFunc(holds[process], func(h *hold) bool {
				return h.worker == worker && h.from <= at && at < h.until
			}) {
				return fmt.Errorf("%w: in %s, %s, at %d; it had %v", errUnreserved, name, parts(id), at, holds[process])
			}
		}
	}
	return nil
}
