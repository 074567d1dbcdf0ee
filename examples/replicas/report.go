package main

import (
	"context"
	"encoding/json"
	"io"
	"sync"

	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/types"
)

// A report is what a replica tells the parent: one line of JSON on its standard
// output.
type report struct {
	What what `json:"what"`

	// Of reserved.
	reservation

	// Of wrote. IDs are strings in JSON: a JavaScript number could not hold them.
	IDs []types.Snowflake `json:"ids,omitempty"`

	// Of lost and failed.
	Why string `json:"why,omitempty"`
}

type what string

const (
	reserved what = "reserved" // the store has confirmed a reservation, or a longer one
	wrote    what = "wrote"    // the rows with these IDs are committed
	waiting  what = "waiting"  // no time is reserved, and so there are no IDs
	lost     what = "lost"     // the worker number is somebody else's
	failed   what = "failed"   // the replica ends with an error
	bye      what = "bye"      // the replica has ended as it should
)

// A reservation is the time, from From up to but not including Until, for which
// one lease has one worker number. All its IDs must be in there, and no others.
type reservation struct {
	Worker int64             `json:"worker,omitempty"`
	Epoch  int64             `json:"epoch,omitempty"` // grows with each lease of this worker number
	From   leasestore.Millis `json:"from,omitempty"`
	Until  leasestore.Millis `json:"until,omitempty"`
}

// A reporter writes reports. It is safe for concurrent use.
type reporter struct {
	mu  sync.Mutex
	out *json.Encoder
}

func newReporter(out io.Writer) *reporter { return &reporter{out: json.NewEncoder(out)} }

// send returns when the line is in the pipe, from where the parent gets it even
// if this process is killed the moment after.
func (r *reporter) send(line report) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out.Encode(line)
}

// A journal is a lease.Store that tells the parent of every reservation before
// the first ID is made under it, so that the parent knows of all of them in the
// end, whenever a replica was killed. A program of your own has no need of this; it
// hands the sqllease.Store to lease.Acquire.
type journal struct {
	lease.Store
	to *reporter
}

// An error of send counts as a request whose outcome is unknown, which is what
// any error but those of package lease means to the lease.

func (j journal) Claim(ctx context.Context, c leasestore.Claim) (leasestore.Reply, error) {
	r, err := j.Store.Claim(ctx, c)
	if err != nil {
		return r, err
	}
	return r, j.to.send(report{What: reserved, reservation: reservation{
		Worker: r.Row.Worker, Epoch: r.Row.Epoch, From: c.From(r), Until: r.Row.Until,
	}})
}

func (j journal) Renew(ctx context.Context, n leasestore.Renewal) (leasestore.Reply, error) {
	r, err := j.Store.Renew(ctx, n)
	if err != nil {
		return r, err
	}
	return r, j.to.send(report{What: reserved, reservation: reservation{
		Worker: r.Row.Worker, Epoch: r.Row.Epoch, Until: r.Row.Until,
	}})
}

// Release tells before it asks. The lease has no IDs at or after n.End, whatever
// the store does; if the request succeeds, the next may begin there.
func (j journal) Release(ctx context.Context, n leasestore.Release) error {
	err := j.to.send(report{What: reserved, reservation: reservation{
		Worker: n.Worker, Epoch: n.Epoch, Until: n.End,
	}})
	if err != nil {
		return err
	}
	return j.Store.Release(ctx, n)
}
