//go:build unix

package chaos

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/leasestore"
)

const historyEnd = ".history"

// An Operation is what a process has asked of its store, and what came of it. One of
// Claim, Renewal and Release is set.
type Operation struct {
	Process string // the file of the process, without its end; set by ReadHistory
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

// A history is the file to which a process writes its operations. Each has two lines: one
// before it is sent, and one when it has ended.
type history struct {
	mu   sync.Mutex
	file *os.File
	last atomic.Int64
}

// openHistory returns nil if path is empty.
func openHistory(path string) (*history, error) {
	if path == "" {
		return nil, nil //nolint:nilnil // a history that keeps nothing
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	return &history{file: f}, err
}

func (h *history) write(o Operation) {
	text, err := json.Marshal(o)
	if err != nil {
		panic(err) // it has no field for which that could be
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	_, _ = h.file.Write(append(text, '\n'))
}

// recorded runs an operation and writes it down, unless h is nil.
func recorded(h *history, o Operation, do func() (leasestore.Reply, error)) (leasestore.Reply, error) {
	if h == nil {
		return do()
	}
	o.N = h.last.Add(1)
	o.Begin = time.Now().UnixNano()
	h.write(o)
	reply, err := do()
	o.End = time.Now().UnixNano()
	if o.Outcome, o.Reply = outcomeOf(err), reply; err != nil {
		o.Error = err.Error()
	}
	h.write(o)
	return reply, err
}

// ReadHistory returns the operations that the processes of a run have written down in a
// folder, in no order.
func ReadHistory(dir string) ([]Operation, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*"+historyEnd))
	if err != nil {
		return nil, err
	}
	var all []Operation
	for _, path := range paths {
		of, err := readHistory(path)
		if err != nil {
			return nil, err
		}
		all = append(all, of...)
	}
	return all, nil
}

func readHistory(path string) ([]Operation, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	process := strings.TrimSuffix(filepath.Base(path), historyEnd)
	var all []Operation
	at := map[int64]int{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		o := Operation{}
		if json.Unmarshal(lines.Bytes(), &o) != nil {
			break // half a line: the process was killed
		}
		o.Process = process
		if i, known := at[o.N]; known {
			all[i] = o
			continue
		}
		at[o.N] = len(all)
		all = append(all, o)
	}
	return all, lines.Err()
}
