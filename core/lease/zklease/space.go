package zklease

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/snowkey/snowkey/core/lease"
)

// A place is where a space is in ZooKeeper.
type place struct{ namespace, datacenter string }

// clockName is no namespace: those have no @.
const clockName = "@clock"

func (s *Store) place(sp lease.Space) place {
	name := sp.Namespace
	if name == "." || name == ".." {
		// ZooKeeper refuses these. No namespace has a %, so two never share a name.
		name = strings.ReplaceAll(name, ".", "%2E")
	}
	namespace := s.base + "/" + name
	return place{namespace, namespace + "/" + strconv.FormatInt(sp.Datacenter, 10)}
}

func (p place) row(worker int64) string {
	return p.datacenter + "/" + strconv.FormatInt(worker, 10)
}

// prepare takes a claim one step nearer to a space with rows, given how the znodes of
// its namespace and its datacenter are read. If the state that it returns is complete,
// nothing was left to do. Else it must be called again with what is there then.
//
// It does one step, and all is read again before the next. That keeps a hundred first
// claims at once simple. One that finds a step done by another is as far as if it had
// done the step itself.
//
// The znode of the datacenter goes through three states: missing; filling, while its
// rows are made; complete. Claims are made in the last one only, and rows only in the
// second. Each transaction that makes rows also requires that the znode has the version
// at which it was seen to be filling. Setting it to complete changes the version. So
//
//   - a half-made space may be completed by anybody: its rows have never been claimed,
//     and a row that is made anew is what it was, zero;
//   - a row that vanishes later is never made again, not even by a request that its
//     sender, or the network, has kept since before the space was complete. A zero row
//     in its place would let its worker begin below what is reserved.
//
// A check before the request, in place of the one within it, would not do. Such a late
// request could come between the two.
func (s *Store) prepare(ctx context.Context, sp lease.Space, p place, namespace, datacenter pending[node]) (meta, error) {
	n, err := namespace.wait(ctx)
	if err != nil {
		return meta{}, err
	}
	d, err := datacenter.wait(ctx)
	if err != nil {
		return meta{}, err
	}
	if !n.exists {
		return meta{}, s.make(ctx, p.namespace, encodeLayout(sp.Layout))
	}
	layout, ok := decodeLayout(n.data)
	if !ok {
		return meta{}, alien(p.namespace, n.data, layoutForm)
	}
	// The layout is written once, so even an old read is right about it.
	if layout != sp.Layout {
		return meta{}, &lease.LayoutError{Namespace: sp.Namespace, Stored: layout, Own: sp.Layout}
	}
	if !d.exists {
		return meta{}, s.make(ctx, p.datacenter, meta{sp.Workers, filling}.encode())
	}
	m, ok := decodeMeta(d.data)
	if !ok {
		return meta{}, alien(p.datacenter, d.data, metaForm)
	}
	if m.state == filling {
		return m, s.fill(ctx, p, m.workers, d.version)
	}
	return m, nil
}

// make creates one znode unless it is there.
func (s *Store) make(ctx context.Context, path string, data []byte) error {
	_, err := start(ctx, "make "+path, func() (struct{}, error) {
		return struct{}{}, s.create(ctx, path, data)
	}).wait(ctx)
	return err
}

// fill makes the rows that are missing, and then sets the datacenter to complete, as
// long as its znode has the given version. It returns nil when the space is, or may be,
// complete.
func (s *Store) fill(ctx context.Context, p place, workers int64, version int32) error {
	for {
		missing, err := s.missing(ctx, p, workers)
		if err != nil {
			return err
		}
		if len(missing) == 0 {
			err := s.set(ctx, p.datacenter, meta{workers, complete}.encode(), version)
			if errors.Is(err, zk.ErrBadVersion) {
				return nil // somebody else has
			}
			return err
		}
		for len(missing) > 0 {
			n := min(batch, len(missing))
			err := s.makeRows(ctx, p, missing[:n], version)
			if errors.Is(err, zk.ErrBadVersion) {
				return nil
			}
			if errors.Is(err, zk.ErrNodeExists) {
				break // somebody else is at it: look what is left
			}
			if err != nil {
				return err
			}
			missing = missing[n:]
		}
	}
}

// missing returns the workers without a row.
func (s *Store) missing(ctx context.Context, p place, workers int64) ([]int64, error) {
	names, err := start(ctx, "list "+p.datacenter, func() ([]string, error) {
		names, _, err := s.conn.Children(p.datacenter)
		return names, err
	}).wait(ctx)
	if err != nil {
		return nil, err
	}
	there := make(map[string]bool, len(names))
	for _, name := range names {
		there[name] = true
	}
	var missing []int64
	for worker := range workers {
		if !there[strconv.FormatInt(worker, 10)] {
			missing = append(missing, worker)
		}
	}
	return missing, nil
}

// makeRows makes rows, all or none, if the znode of the datacenter has the version.
func (s *Store) makeRows(ctx context.Context, p place, workers []int64, version int32) error {
	ops := []any{&zk.CheckVersionRequest{Path: p.datacenter, Version: version}}
	for _, worker := range workers {
		ops = append(ops, &zk.CreateRequest{
			Path:  p.row(worker),
			Data:  encodeRow(lease.Row{Worker: worker}),
			Acl:   s.acl,
			Flags: zk.FlagPersistent,
		})
	}
	_, err := start(ctx, fmt.Sprintf("make %d rows in %s", len(workers), p.datacenter), func() ([]zk.MultiResponse, error) {
		return s.conn.Multi(ops...)
	}).wait(ctx)
	return err
}
