//go:build unix

package chaos

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// An Operation is what a lease has asked of its store, and what came of it. One of
// Claim, Renewal and Release is set.
type Operation struct {
	Process string // the file of the process, without its end; set when it is read
	N       int64  // counts the operations of a process

	Claim   *leasestore.Claim   `json:",omitempty"`
	Renewal *leasestore.Renewal `json:",omitempty"`
	Release *leasestore.Release `json:",omitempty"`

	// Begin and End are in nanoseconds of Unix time by the one clock of the machine. End
	// is 0 if the process did not live to see it.
	Begin, End int64

	Outcome Outcome
	Reply   leasestore.Reply // if Done
	Error   string           `json:",omitempty"`

	// From is where the IDs of a claim that was won begin, and Later where they begin if the lease
	// counts from a later moment than the claim.
	From, Later leasestore.Millis `json:",omitempty"`

	// Late is set for a renewal that the lease does not accept, unless its clock steps at that moment.
	Late bool `json:",omitempty"`
}

// An Outcome is what the process knows of an operation.
type Outcome string

// Unknown operations may have been done, or may yet be done at any later time.
const (
	Unknown Outcome = ""
	Done    Outcome = "done"
	Lost    Outcome = "lost"    // refused: the row is another's
	NoFree  Outcome = "no free" // refused: no row is free
	Refused Outcome = "refused" // by the layout, or by the clock
)

func outcomeOf(err error) Outcome {
	var (
		none   *lease.NoFreeWorkerError
		layout *lease.LayoutError
		skew   *lease.ClockSkewError
	)
	switch {
	case err == nil:
		return Done
	case errors.Is(err, lease.ErrLost):
		return Lost
	case errors.As(err, &none):
		return NoFree
	case errors.As(err, &layout), errors.As(err, &skew):
		return Refused
	}
	return Unknown
}

// journalEnd ends the name of the file in which a process records its lease.
const journalEnd = ".journal"

// A journal is the record that a process keeps of its lease. Each line is a single write, so
// that none is lost when the process is killed. Errors of the writes are ignored, because a
// missing line fails the run.
type journal struct {
	mu   sync.Mutex // guards the writes and n
	file *os.File
	n    int64
}

// An entry is a line of a journal: an operation, twice, or something else of a lease.
type entry struct {
	Operation *Operation `json:",omitempty"`
	Lost      bool       `json:",omitempty"` // the lease has noticed it
}

func openJournal(path string) (*journal, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	return &journal{file: f}, err
}

func (j *journal) write(e entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if o := e.Operation; o != nil && o.N == 0 {
		j.n++
		o.N = j.n
	}
	text, err := json.Marshal(e)
	if err != nil {
		panic(err) // it has no field for which that could be
	}
	_, _ = j.file.Write(append(text, '\n'))
}

func (j *journal) lost(*lease.LostError) { j.write(entry{Lost: true}) }

// recorded runs an operation. It is in the journal before the store learns of it, and its outcome before
// the lease does. told, if not nil, adds what the outcome means for the lease.
func (j *journal) recorded(o Operation, do func() (leasestore.Reply, error), told func(*Operation)) (leasestore.Reply, error) {
	o.Begin = time.Now().UnixNano()
	j.write(entry{Operation: &o})
	reply, err := do()
	o.End = time.Now().UnixNano()
	if o.Outcome = outcomeOf(err); err != nil {
		o.Error, reply = err.Error(), leasestore.Reply{}
	} else if o.Reply = reply; told != nil {
		told(&o)
	}
	j.write(entry{Operation: &o})
	return reply, err
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
	operations []Operation
	holds      []*hold
	losses     int
}

// readJournals reads all journals in dir.
func readJournals(dir string) (e events, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*"+journalEnd))
	for _, path := range paths {
		err = errors.Join(err, e.read(path))
	}
	return e, err
}

func (e *events) read(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	var now *hold
	at := map[int64]int{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line entry
		if json.Unmarshal(lines.Bytes(), &line) != nil {
			break // half a line: it is being written, or the process was killed
		}
		if line.Lost {
			e.losses++
		}
		if line.Operation == nil {
			continue
		}
		o := *line.Operation
		o.Process = strings.TrimSuffix(filepath.Base(path), journalEnd)
		if i, known := at[o.N]; known {
			e.operations[i] = o
		} else {
			at[o.N] = len(e.operations)
			e.operations = append(e.operations, o)
		}
		if o.Claim != nil && o.Outcome == Done {
			row := o.Reply.Row
			now = &hold{process: o.Process, worker: row.Worker, epoch: row.Epoch, from: o.From, until: row.Until, begin: max(o.From, o.Later), end: row.Until}
			e.holds = append(e.holds, now)
		} else if !now.changed(o) {
			return fmt.Errorf("chaos: process %s has changed a row that it had not claimed: %+v", o.Process, o)
		}
	}
	return lines.Err()
}

// changed adds what a renewal or a release says of the hold. It reports whether it was one of that.
func (h *hold) changed(o Operation) bool {
	switch {
	case o.Renewal != nil && o.Outcome == Done:
		row := o.Reply.Row
		if h == nil || row.Worker != h.worker || row.Epoch != h.epoch {
			return false
		}
		if h.until = max(h.until, row.Until); !o.Late {
			h.end = max(h.end, row.Until)
		}
	case o.Release != nil:
		if h == nil || o.Release.Worker != h.worker || o.Release.Epoch != h.epoch {
			return false
		}
		h.until, h.end, h.released = min(h.until, o.Release.End), min(h.end, o.Release.End), true
	}
	return true
}

// takeovers returns how many claims, at least, were of rows that had not been given back. It counts
// rows that were forgotten. The last hold on each row is left out, since it was not taken over.
func (e events) takeovers() (n int) {
	rows := map[int64]bool{}
	for _, h := range e.holds {
		rows[h.worker] = true
		if !h.released {
			n++
		}
	}
	return max(0, n-len(rows))
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
