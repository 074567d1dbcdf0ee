package zklease

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// A place is where a space is in ZooKeeper.
type place struct{ namespace, datacenter string }

// clockName cannot be a namespace, because of its @.
const clockName = "@clock"

func (r *register) place(s leasestore.Space) place {
	name := s.Namespace
	if name == "." || name == ".." {
		// ZooKeeper refuses these names. No namespace contains %, so they stay unique.
		name = strings.ReplaceAll(name, ".", "%2E")
	}
	namespace := r.prefix + "/" + name
	return place{namespace, namespace + "/" + strconv.FormatInt(s.Datacenter, 10)}
}

func (p place) row(worker int64) string {
	return p.datacenter + "/" + strconv.FormatInt(worker, 10)
}

// Make completes a space in steps, and looks again after each. That keeps a hundred first
// claims at once simple: a process that finds a step done by another is as far as if it had
// done the step itself.
//
// The znode of the datacenter is missing at first, then filling while its rows are made, and
// complete at last. Rows are claimed in the last state only and made in the second only: each
// transaction that makes rows requires that the znode still has the version at which it was
// seen to be filling, and completing it changes the version. Therefore
//
//   - any process may complete a half-made space, because none of its rows has been claimed,
//     and a row that is made anew is zero as it was before;
//   - a row that vanishes later is never made again, not even by a request that was delayed
//     since before the space was complete. With a zero row in its place, its worker would
//     begin below what is reserved.
//
// A check before the transaction, instead of within it, would let such a late request through.
func (r *register) Make(ctx context.Context, s leasestore.Space) error {
	p := r.place(s)
	for {
		is, err := r.settings(ctx, p)()
		switch {
		case err != nil:
		case !is.namespace.exists:
			err = r.make(ctx, p.namespace, encodeLayout(s.Layout))
		case is.layout != s.Layout: // it is written once, so that even an old read is right about it
			err = &leasestore.LayoutError{Namespace: s.Namespace, Stored: is.layout, Own: s.Layout}
		case !is.datacenter.exists:
			err = r.make(ctx, p.datacenter, meta{s.Workers, filling}.encode())
		case is.damaged != nil:
			err = is.damaged
		case is.state == complete:
			return nil
		default:
			err = r.fill(ctx, p, is.workers, is.datacenter.version)
		}
		if err != nil {
			return err
		}
	}
}

// The settings of a space are what the znodes of its namespace and of its datacenter say.
type settings struct {
	namespace, datacenter node
	layout                string
	meta                        // zero if it is missing or damaged
	damaged               error // of the datacenter
}

// settings asks for the settings of a space, and returns a function that waits for them. The error is
// also that of a namespace that is damaged.
func (r *register) settings(ctx context.Context, p place) func() (settings, error) {
	namespace, datacenter := r.get(ctx, p.namespace), r.get(ctx, p.datacenter)
	return func() (is settings, err error) {
		if is.namespace, err = namespace.wait(ctx); err != nil {
			return is, err
		}
		if is.datacenter, err = datacenter.wait(ctx); err != nil || !is.namespace.exists {
			return is, err
		}
		var ok bool
		if is.layout, ok = decodeLayout(is.namespace.data); !ok {
			return is, damage(p.namespace, is.namespace.data, layoutForm)
		}
		if !is.datacenter.exists {
			return is, nil
		}
		if is.meta, ok = decodeMeta(is.datacenter.data); !ok {
			is.meta, is.damaged = meta{}, damage(p.datacenter, is.datacenter.data, metaForm)
		}
		return is, nil
	}
}

// make creates a znode unless it exists.
func (r *register) make(ctx context.Context, path string, data []byte) error {
	_, err := start(ctx, "make "+path, func() (struct{}, error) {
		return struct{}{}, r.create(ctx, path, data)
	}).wait(ctx)
	return err
}

// fill makes the missing rows and then completes the datacenter, as long as its znode has the
// given version. It returns nil if the space is complete, or another process may have
// completed it.
func (r *register) fill(ctx context.Context, p place, workers int64, version int32) error {
	for {
		missing, err := r.missing(ctx, p, workers)
		if err != nil {
			return err
		}
		if len(missing) == 0 {
			_, err := start(ctx, "set "+p.datacenter, func() (*zk.Stat, error) {
				return r.conn.Set(p.datacenter, meta{workers, complete}.encode(), version)
			}).wait(ctx)
			if errors.Is(err, zk.ErrBadVersion) {
				return nil // another process has completed it
			}
			return err
		}
		for len(missing) > 0 {
			n := min(batch, len(missing))
			err := r.makeRows(ctx, p, missing[:n], version)
			if errors.Is(err, zk.ErrBadVersion) {
				return nil
			}
			if errors.Is(err, zk.ErrNodeExists) {
				break // another process makes rows too: look what is left
			}
			if err != nil {
				return err
			}
			missing = missing[n:]
		}
	}
}

// missing returns the workers without a row.
func (r *register) missing(ctx context.Context, p place, workers int64) ([]int64, error) {
	names, err := r.children(ctx, p.datacenter)
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

// children returns the names of the znodes below path, and none if it is missing.
func (r *register) children(ctx context.Context, path string) ([]string, error) {
	return start(ctx, "list "+path, func() ([]string, error) {
		names, _, err := r.conn.Children(path)
		if errors.Is(err, zk.ErrNoNode) {
			err = nil
		}
		return names, err
	}).wait(ctx)
}

// makeRows makes all of the rows or none, if the znode of the datacenter has the version.
func (r *register) makeRows(ctx context.Context, p place, workers []int64, version int32) error {
	ops := []any{&zk.CheckVersionRequest{Path: p.datacenter, Version: version}}
	for _, worker := range workers {
		ops = append(ops, &zk.CreateRequest{
			Path:  p.row(worker),
			Data:  encodeRow(leasestore.Row{Worker: worker}),
			Acl:   r.acl,
			Flags: zk.FlagPersistent,
		})
	}
	_, err := start(ctx, fmt.Sprintf("make %d rows in %s", len(workers), p.datacenter), func() ([]zk.MultiResponse, error) {
		return r.conn.Multi(ops...)
	}).wait(ctx)
	return err
}
