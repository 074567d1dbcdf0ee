package zklease

import (
	"context"
	"slices"

	"github.com/snowkey/snowkey/core/lease"
)

// A table is what was read of some rows. Those that do not exist are not in it.
type table struct {
	rows     []lease.Row
	versions map[int64]int32 // by worker

	// alien is the error for a row that could not be decoded. It is nobody's to
	// claim; but a claim that finds another row need not fail for it.
	alien error
}

// A reading is a row on its way.
type reading struct {
	worker int64
	path   string
	node   pending[node]
}

func (s *Store) readRow(ctx context.Context, p place, worker int64) reading {
	path := p.row(worker)
	return reading{worker, path, s.get(ctx, path)}
}

// add waits for a row.
func (t *table) add(ctx context.Context, r reading) error {
	n, err := r.node.wait(ctx)
	if err != nil || !n.exists {
		return err
	}
	if t.versions == nil {
		t.versions = map[int64]int32{}
	}
	row, err := decodeRowOf(r.worker, r.path, n.data)
	if err == nil {
		t.rows = append(t.rows, row)
		t.versions[row.Worker] = n.version
	} else {
		t.alien = err
	}
	return nil
}

func (t *table) drop(worker int64) {
	t.rows = slices.DeleteFunc(t.rows, func(r lease.Row) bool { return r.Worker == worker })
}

// inFlight is how many rows are read at a time. It takes all rows of most layouts in a
// few round trips. It does not fill a server's queue, which holds 1000 requests of all
// clients together (globalOutstandingLimit).
const inFlight = 256

// read reads the rows of some workers.
func (s *Store) read(ctx context.Context, p place, workers []int64) (table, error) {
	var t table
	var readings []reading
	for i, worker := range workers {
		if i >= inFlight {
			if err := t.add(ctx, readings[i-inFlight]); err != nil {
				return table{}, err
			}
		}
		readings = append(readings, s.readRow(ctx, p, worker))
	}
	for _, r := range readings[max(0, len(readings)-inFlight):] {
		if err := t.add(ctx, r); err != nil {
			return table{}, err
		}
	}
	return t, nil
}
