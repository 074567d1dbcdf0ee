package zklease

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// A register keeps each row in a znode of its own and compares the versions of znodes.
type register struct {
	conn   Conn
	acl    []zk.ACL
	prefix string
	clock  string // the path of the znode that is written for its time
}

// LosesWrites returns false, because a majority of the ensemble has what was acknowledged.
func (r *register) LosesWrites() bool { return false }

// Read writes the clock before it reads, which makes the server on this connection catch up:
// within one session, reads are at least as new as the last write.
//
// If the session was replaced in between, the reads may have gone to a server that lags. A
// holder could then miss its own last write, or even its row, and give up a lease that is in
// good order. Read starts over in that case.
func (r *register) Read(ctx context.Context, s leasestore.Space, workers []int64) (leasestore.View, error) {
	for {
		session := r.conn.SessionID()
		now, err := r.tick(ctx).wait(ctx)
		if err != nil {
			return leasestore.View{}, err
		}
		v, err := r.read(ctx, s, workers)
		if err != nil {
			return leasestore.View{}, err
		}
		if session != 0 && session == r.conn.SessionID() {
			v.Now = now
			return v, nil
		}
	}
}

const (
	// probes is how many random rows a claim reads together with the clock. One of them is
	// free nearly always, even if two of three rows are held (0.67⁸ is 4 %).
	probes = 8

	// near is how many random rows a claim reads until it meets a free one. After those, it
	// is cheaper to read all rows once.
	near = 1024
)

// Find sends its requests all at once, so that most claims read in one round trip. What it
// shows may be old. If a held row looks free, the swap is refused; if a free row looks held,
// the claim passes it over.
func (r *register) Find(ctx context.Context, s leasestore.Space, h leasestore.Hint) (leasestore.View, error) {
	tick := r.tick(ctx)
	some := h.Some(s, probes)
	v, err := r.read(ctx, s, some)
	if err != nil {
		return leasestore.View{}, err
	}
	if v.Now, err = tick.wait(ctx); err != nil || !v.Made {
		return v, err
	}
	held := func(seen leasestore.Seen) bool { return !h.Free(seen.Row, v.Now) }
	more := slices.DeleteFunc(h.Some(s, probes+near), func(worker int64) bool { return slices.Contains(some, worker) })
	h.Random().Shuffle(len(more), func(i, j int) { more[i], more[j] = more[j], more[i] }) // or all claims meet at the first free row
	for len(more) > 0 && !slices.ContainsFunc(v.Rows, func(seen leasestore.Seen) bool { return !held(seen) }) {
		n := min(inFlight, len(more))
		next, err := r.read(ctx, s, more[:n])
		if err != nil {
			return leasestore.View{}, err
		}
		v.Rows, v.Damaged = append(v.Rows, next.Rows...), cmp.Or(v.Damaged, next.Damaged)
		more = more[n:]
	}
	slices.SortFunc(v.Rows, func(a, b leasestore.Seen) int { return cmp.Compare(a.Row.Worker, b.Row.Worker) })
	return v, nil
}

// A tag is what a swap compares.
type tag struct {
	layout         string // of the namespace
	namespace, row int32  // versions of znodes
	records        int32  // which the row has
}

// Swap writes a row in a transaction that requires the versions of row and namespace to be
// those that were read. A version is enough to compare, because this store loses no writes.
func (r *register) Swap(ctx context.Context, s leasestore.Space, from leasestore.Seen, to leasestore.Row) (bool, error) {
	was := from.Tag.(tag)
	if was.layout != s.Layout {
		return false, ctx.Err()
	}
	p := r.place(s)
	path := p.row(to.Worker)
	ops := []any{
		&zk.CheckVersionRequest{Path: p.namespace, Version: was.namespace},
		&zk.SetDataRequest{Path: path, Data: encodeRow(to), Version: was.row},
	}
	if from.Record != "" { // behind the row, which another claim of this epoch has changed if it has made the record
		ops = append(ops, r.keep(path, to.Epoch, from.Record))
	}
	_, err := start(ctx, "set "+path, func() ([]zk.MultiResponse, error) { return r.conn.Multi(ops...) }).wait(ctx)
	if errors.Is(err, zk.ErrBadVersion) || errors.Is(err, zk.ErrNoNode) {
		return false, nil
	}
	if err == nil && from.Record != "" && was.records >= leasestore.HistoryLength+spare {
		r.prune(ctx, path)
	}
	return err == nil, err
}

// read returns rows as the server on this connection has them, which may lag. If workers is
// nil it returns all rows.
func (r *register) read(ctx context.Context, s leasestore.Space, workers []int64) (leasestore.View, error) {
	p := r.place(s)
	settings := r.settings(ctx, p)
	rows, err := r.rows(ctx, p, workers)
	if err != nil {
		return leasestore.View{}, err
	}
	is, err := settings()
	if err != nil {
		return leasestore.View{}, err
	}
	// A holder can do without a datacenter whose znode is damaged; Make returns the error.
	v := leasestore.View{Layout: is.layout, Made: is.state == complete, Damaged: is.damaged}
	switch {
	case !v.Made && v.Damaged == nil:
		return v, nil
	case v.Made && workers == nil:
		all := make([]int64, is.workers)
		for i := range all {
			all[i] = int64(i)
		}
		if rows, err = r.rows(ctx, p, all); err != nil {
			return leasestore.View{}, err
		}
	}
	for _, found := range rows {
		row, ok := decodeRow(found.data)
		if !ok || row.Worker != found.worker {
			v.Damaged = damage(p.row(found.worker), found.data, rowForm)
			continue
		}
		v.Rows = append(v.Rows, leasestore.Seen{Row: row, Tag: tag{is.layout, is.namespace.version, found.version, found.children}})
	}
	return v, nil
}

// inFlight is how many rows are read at a time. The rows of most layouts then take a few
// round trips, without filling a server's queue, which holds 1,000 requests of all clients
// together (globalOutstandingLimit).
const inFlight = 256

// A rowNode is the znode of a worker, which exists.
type rowNode struct {
	worker int64
	node
}

// rows reads the znodes of some workers.
func (r *register) rows(ctx context.Context, p place, workers []int64) (rows []rowNode, err error) {
	var sent []pending[node]
	for i := range len(workers) {
		for len(sent) < min(i+inFlight, len(workers)) {
			sent = append(sent, r.get(ctx, p.row(workers[len(sent)])))
		}
		n, err := sent[i].wait(ctx)
		if err != nil {
			return nil, err
		}
		if n.exists {
			rows = append(rows, rowNode{workers[i], n})
		}
	}
	return rows, nil
}
