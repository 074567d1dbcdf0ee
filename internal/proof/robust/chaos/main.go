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

// working is the role of the processes of all runs.
const working = "chaos"

// An order says what a process is to do. One of Leases, Segments and Serials is set.
type order struct {
	Store string // in the map of Main
	DSN   string
	Seed  uint64
	Files string // begins the path of every file that the process writes

	Leases   *leaseWork
	Segments *segmentWork
	Serials  *serialWork
}

// random returns one of the process's sources of random numbers.
func (o order) random(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(o.Seed, stream)) }

// Main returns at once in a test binary that was started to run tests. If a run started
// the binary as one of its processes, Main does the work of that process and does not
// return. Call it in an init function, or at the beginning of TestMain.
func Main(s Stores) { role.Play(s.Roles()) }

// Roles returns what the processes of runs do, for a program that has more roles.
func (s Stores) Roles() map[string]func(order []byte) error {
	return map[string]func([]byte) error{working: s.work}
}

// work obeys an order until the process is killed. SIGTERM asks it to end.
func (s Stores) work(text []byte) error {
	var o order
	if err := json.Unmarshal(text, &o); err != nil {
		return err
	}
	asked, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	switch {
	case o.Leases != nil:
		return obey(o, s.Leases, func(s lease.Store) error { return o.Leases.work(asked, o, s) })
	case o.Segments != nil:
		return obey(o, s.Segments, func(s SegmentStore) error { return o.Segments.work(asked, o, s) })
	case o.Serials != nil:
		return obey(o, s.Serials, func(d SerialDatabase) error { return o.Serials.work(asked, o, d) })
	}
	return fmt.Errorf("chaos: order without work for store %q", o.Store)
}

func obey[S any](o order, stores map[string]Open[S], work func(S) error) error {
	open := stores[o.Store]
	if open == nil {
		return fmt.Errorf("chaos: no store %q among those of Main", o.Store)
	}
	store, err := open(o.DSN)
	if err != nil {
		return err
	}
	return work(store)
}
