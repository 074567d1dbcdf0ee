//go:build unix

package chaos

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os/signal"
	"syscall"

	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/proof/robust/role"
)

// Stores are those that the tests of a binary run chaos on, by name.
type Stores struct {
	Leases   map[string]Open[lease.Store]
	Segments map[string]Open[SegmentStore]
	Serials  map[string]Open[SerialDatabase]
}

// An Open opens a store at an address. It is called in a process of its own, which never
// closes the store, because it is mostly killed.
type Open[S any] func(dsn string) (S, error)

// A SegmentStore is what a run needs of a store of segments.
type SegmentStore interface {
	segment.Store
	segment.Lister
	segment.Keeper
}

// A SerialDatabase is what a run needs of a database with invoices.
type SerialDatabase struct {
	DB      *sql.DB
	Dialect sqlstore.Dialect
}

// An order says what a process is to do, with a work of the kind W.
type order[W any] struct {
	Store string // in the map of Main
	DSN   string
	Work  W
	files
}

// files are what a process begins with that no other has.
type files struct {
	Seed  uint64
	Files string // begins the path of every file that the process writes
}

// random returns one of the process's sources of random numbers.
func (f files) random(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(f.Seed, stream)) }

// Main returns at once in a test binary that was started to run tests. If a run started
// the binary as one of its processes, Main does the work of that process and does not
// return. Call it in an init function, or at the beginning of TestMain.
func Main(s Stores) { role.Play(s.Roles()) }

// The roles of the processes.
const (
	leasing    = "leases"
	segmenting = "segments"
	invoicing  = "serials"
)

// Roles returns what the processes of runs do, for a program that has more roles.
func (s Stores) Roles() map[string]func(order []byte) error {
	return map[string]func([]byte) error{
		leasing: obeying(s.Leases, leaseWork.work), segmenting: obeying(s.Segments, segmentWork.work), invoicing: obeying(s.Serials, serialWork.work),
	}
}

// obeying obeys an order until the process is killed. SIGTERM asks it to end.
func obeying[S, W any](stores map[string]Open[S], work func(w W, asked context.Context, f files, store S) error) func(order []byte) error {
	return func(text []byte) error {
		var o order[W]
		if err := json.Unmarshal(text, &o); err != nil {
			return err
		}
		asked, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		open := stores[o.Store]
		if open == nil {
			return fmt.Errorf("chaos: no store %q among those of Main", o.Store)
		}
		store, err := open(o.DSN)
		if err != nil {
			return err
		}
		return work(o.Work, asked, o.files, store)
	}
}
