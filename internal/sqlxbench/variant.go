package main

import (
	"context"
	"slices"

	"github.com/jmoiron/sqlx"
)

// The two loads.
const (
	lines = "lines" // rows into one table
	graph = "graph" // orders with their items
)

// A job is what a variant has to store, and where.
type job struct {
	*place
	db     *sqlx.DB
	dsn    string  // of db
	orders []order // with their items; nil in lines
	items  []item  // all
}

// A load is a job that a variant has made ready.
type load struct {
	run func() error // in one transaction, the only part that is measured
	// stored returns the rows with the keys that they have after run; nil where
	// those are the keys of the job.
	stored func() (orders []order, items []item)
}

// A variant is a way to store the rows of a load.
type variant struct {
	load    string // lines or graph
	name    string
	title   string
	only    []string // the names of the targets; nil: all
	limit   bool     // as fast as the database takes rows by this driver
	prepare func(context.Context, *job) (load, error)
}

// on reports whether there is the variant for a target.
func (v variant) on(t target) bool { return v.only == nil || slices.Contains(v.only, t.name) }

// variants returns all of them, in the order of the page.
func variants() []variant {
	list := slices.Concat(limits(), others(), helpers(), copying())
	return append(list,
		variant{lines, "NamedExec", "sqlx `NamedExec`, slices of 1,000", nil, false, namedLines},
		variant{lines, "GORM", "GORM `CreateInBatches` of 1,000", nil, false, gormLines},
		variant{lines, "bun", "bun, slices of 1,000", nil, false, bunLines},
		variant{graph, "NamedExec", "sqlx `NamedExec`, each order and the slice of its items", nil, false, namedGraph},
		variant{graph, "GORM", "GORM, one `Create` in batches of 1,000", nil, false, gormGraph},
		variant{graph, "bun", "bun, both tables in slices of 1,000", nil, false, bunGraph},
	)
}

// batch is how many rows the peers get at once. At the limit of bound values all of
// them are slower, on every database here.
const batch = 1000

// inTx runs store in a transaction of the job's pool.
func (j *job) inTx(ctx context.Context, store func(*sqlx.Tx) error) error {
	tx, err := j.db.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	if err := store(tx); err != nil {
		return err
	}
	return tx.Commit()
}
