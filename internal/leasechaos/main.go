//go:build unix

package leasechaos

import (
	"encoding/json"
	"time"

	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/internal/chaos"
)

// An Open opens a store at an address. It is called in a process of its own, which never
// closes the store: it is mostly killed.
type Open func(dsn string) (lease.Store, error)

// variable is an environment variable that holds an order. A test binary that finds it set
// is a process of a run.
const variable = "SNOWKEY_LEASECHAOS_ORDER"

// An order says what a process is to do.
type order struct {
	Store     string // in the map of Main
	DSN       string
	Namespace string
	Rules     Rules
	Seed      uint64
	Rows      int64
	Window    time.Duration // zero: configWindow says it
	Real      bool          // inject no faults
	Calm      bool          // leave the clock alone
	Files     string        // begins the path of every file that the process writes
	History   string        // the path of the history; empty: none
}

// Main returns at once in a test binary that was started to run tests. If a run started
// the binary as one of its processes, Main acts as that process and does not return. Call
// it in an init function, or at the beginning of TestMain. The map has an Open for every
// store that a test of the binary has chaos for.
func Main(stores map[string]Open) {
	chaos.Main(variable, func(text []byte) error {
		var o order
		if err := json.Unmarshal(text, &o); err != nil {
			return err
		}
		return work(o, stores[o.Store])
	})
}
