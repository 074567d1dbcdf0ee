package etcdlease

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/snowkey/snowkey/core/lease"
)

// blocks is the number of blocks of a space, at most. Worker w is in block w%blocks.
//
// The rows of a space are made all at once, and never again. But a space may have 65,536
// rows, and a transaction of etcd 128 writes and 1.5 MiB. So a row that nobody has claimed
// yet has no key. Its worker is in the list of fresh workers of its block. The lists of
// all blocks are made in one transaction, together with the key of the space, and only if
// nothing of the space exists. The first claim of a row takes the worker off the list and
// writes the row, in one transaction that requires the list to be what was read. So
//
//   - a worker that is on its list has a row that is zero;
//   - a worker that has a key has the row in it;
//   - a worker that has neither is gone, and is never made anew. No request puts a worker
//     back on a list;
//   - a worker that has both is damage: somebody has put an old list back.
//
// A crash leaves either nothing or all of it, and of a hundred first claims one makes the
// space. There is no state in between that somebody would have to complete.
//
// Rejected:
//   - Rows that are made in portions, with a key that is written last and proves that all
//     exist. A portion that is late, or that two processes make, must not make a row that
//     was claimed and deleted meanwhile. That takes a state "filling", whose revision every
//     portion requires, as in package zklease. It also takes 656 transactions.
//   - A row without a key is zero. Then a row that was deleted is free, and its worker
//     begins below what is reserved.
//   - One list for the space. A thousand first claims at once would each refuse the others.
//     With 64 lists and 1,024 rows, a list is written 16 times in all.
//   - All rows of a block in one key. Every renewal would write all of them.
const blocks = 64

// batch is how many rows are written in one transaction, one for the list left out.
const batch = 100

func (s *Store) layoutKey(sp lease.Space) string { return s.prefix + "/" + sp.Namespace + "/layout" }

// base begins all keys of a space, but that of the layout.
func (s *Store) base(sp lease.Space) string {
	return fmt.Sprintf("%s/%s/%d/", s.prefix, sp.Namespace, sp.Datacenter)
}

func (s *Store) spaceKey(sp lease.Space) string { return s.base(sp) + "space" }

func (s *Store) blockPrefix(sp lease.Space, block int64) string {
	return fmt.Sprintf("%s%02d/", s.base(sp), block)
}

func (s *Store) freshKey(sp lease.Space, block int64) string {
	return s.blockPrefix(sp, block) + "fresh"
}

func (s *Store) rowKey(sp lease.Space, worker int64) string {
	return fmt.Sprintf("%s%d", s.blockPrefix(sp, worker%blocks), worker)
}

// A view is what was read of a space, all of it at one revision.
type view struct {
	space  lease.Space
	layout *mvccpb.KeyValue // nil: missing
	made   bool             // as the key of the space says
	rows   map[int64]stored // by worker
	fresh  map[int64]list   // by block

	// damaged is the error for what is not in the view because it makes no sense.
	damaged error
}

// A stored row.
type stored struct {
	row      lease.Row
	revision int64 // of the last change of its key; 0: it has none, and is fresh
}

// A list of fresh workers.
type list struct {
	workers  []int64
	revision int64
}

// read reads some blocks of a space. Reads of etcd are linearizable unless told
// otherwise: a refusal on their grounds is certain. All are in one transaction.
func (s *Store) read(ctx context.Context, what string, sp lease.Space, some []int64) (*view, error) {
	gets := []clientv3.Op{clientv3.OpGet(s.layoutKey(sp)), clientv3.OpGet(s.spaceKey(sp))}
	for _, block := range some {
		gets = append(gets, clientv3.OpGet(s.blockPrefix(sp, block), clientv3.WithPrefix()))
	}
	return s.view(ctx, what, sp, gets)
}

// readRow reads one row.
func (s *Store) readRow(ctx context.Context, what string, sp lease.Space, worker int64) (*view, error) {
	return s.view(ctx, what, sp, []clientv3.Op{
		clientv3.OpGet(s.rowKey(sp, worker)), clientv3.OpGet(s.freshKey(sp, worker%blocks)),
	})
}

func (s *Store) view(ctx context.Context, what string, sp lease.Space, gets []clientv3.Op) (*view, error) {
	reply, err := s.commit(ctx, what, nil, gets, nil)
	if err != nil {
		return nil, err
	}
	v := &view{space: sp, rows: map[int64]stored{}, fresh: map[int64]list{}}
	for _, got := range reply.Responses {
		for _, kv := range got.GetResponseRange().Kvs {
			s.add(v, kv)
		}
	}
	for _, l := range v.fresh {
		for _, worker := range l.workers {
			if _, both := v.rows[worker]; both {
				delete(v.rows, worker)
				v.damaged = damage(s.rowKey(sp, worker), "exists, but its worker is on the list of those never claimed")
				continue
			}
			v.rows[worker] = stored{row: lease.Row{Worker: worker}}
		}
	}
	return v, nil
}

// add adds a key to a view.
func (s *Store) add(v *view, kv *mvccpb.KeyValue) {
	key := string(kv.Key)
	switch {
	case key == s.layoutKey(v.space):
		v.layout = kv
	case key == s.spaceKey(v.space):
		v.made = true
	case strings.HasSuffix(key, "/fresh"):
		var block int64
		_, _ = fmt.Sscanf(strings.TrimPrefix(key, s.base(v.space)), "%d/", &block) // what is wrong has another key
		workers, ok := decodeFresh(kv.Value, block)
		if !ok || key != s.freshKey(v.space, block) {
			v.damaged = damage(key, "has %q", cut(string(kv.Value)))
			return
		}
		v.fresh[block] = list{workers, kv.ModRevision}
	default:
		row, _, ok := decodeRow(kv.Value)
		if !ok || key != s.rowKey(v.space, row.Worker) {
			v.damaged = damage(key, "has %q", cut(string(kv.Value)))
			return
		}
		v.rows[row.Worker] = stored{row, kv.ModRevision}
	}
}

// sorted returns the rows in the order of the workers.
func (v *view) sorted() []lease.Row {
	rows := make([]lease.Row, 0, len(v.rows))
	for _, r := range v.rows {
		rows = append(rows, r.row)
	}
	slices.SortFunc(rows, func(a, b lease.Row) int { return int(a.Worker - b.Worker) })
	return rows
}

// prepare returns nil if the space of a view may be used. If it was not made, prepare makes
// it, and the caller must read it again.
func (s *Store) prepare(ctx context.Context, what string, v *view) error {
	sp := v.space
	if v.layout != nil {
		var layout string
		if !decode(v.layout.Value, &layout) {
			return fmt.Errorf("etcdlease: %s: %w", what, damage(s.layoutKey(sp), "has %q", cut(string(v.layout.Value))))
		}
		if layout != sp.Layout {
			return &lease.LayoutError{Namespace: sp.Namespace, Stored: layout, Own: sp.Layout}
		}
	}
	if !v.made {
		return s.make(ctx, what, v)
	}
	if v.layout == nil {
		return fmt.Errorf("etcdlease: %s: %w", what, damage(s.spaceKey(sp), "exists without %s", s.layoutKey(sp)))
	}
	return nil
}

// make makes the layout, unless it is there, and all rows, unless there is anything of
// them. If somebody else was faster it does nothing.
func (s *Store) make(ctx context.Context, what string, v *view) error {
	sp := v.space
	var layoutRevision int64
	puts := []clientv3.Op{clientv3.OpPut(s.spaceKey(sp), fmt.Sprintf(`{"workers":%d}`, sp.Workers))}
	if v.layout == nil {
		puts = append(puts, clientv3.OpPut(s.layoutKey(sp), encode(sp.Layout)))
	} else {
		layoutRevision = v.layout.ModRevision
	}
	for block := range min(blocks, sp.Workers) {
		var workers []int64
		for worker := block; worker < sp.Workers; worker += blocks {
			workers = append(workers, worker)
		}
		puts = append(puts, clientv3.OpPut(s.freshKey(sp, block), encode(workers)))
	}
	reply, err := s.commit(ctx, what, []clientv3.Cmp{
		clientv3.Compare(clientv3.ModRevision(s.layoutKey(sp)), "=", layoutRevision),
		clientv3.Compare(clientv3.CreateRevision(s.base(sp)), "=", 0).WithPrefix(),
	}, puts, []clientv3.Op{
		clientv3.OpGet(s.spaceKey(sp)),
		clientv3.OpGet(s.base(sp), clientv3.WithPrefix(), clientv3.WithLimit(1)),
	})
	if err != nil || reply.Succeeded {
		return err
	}
	made, some := reply.Responses[0].GetResponseRange(), reply.Responses[1].GetResponseRange()
	if len(made.Kvs) == 0 && len(some.Kvs) > 0 {
		return fmt.Errorf("etcdlease: %s: %w", what, damage(string(some.Kvs[0].Key), "exists without %s", s.spaceKey(sp)))
	}
	return nil
}

// A change of a row.
type change struct {
	from stored
	to   lease.Row
}

// write writes rows of one block, all or none. It does nothing, and returns false, if one
// of them is not what was read.
//
// It compares the revision of the last change. The version of a key would not do: it
// begins at 1 again when a key was deleted and made anew.
func (s *Store) write(ctx context.Context, what string, v *view, changes ...change) (bool, error) {
	var same []clientv3.Cmp
	var puts []clientv3.Op
	taken := map[int64]bool{} // off the list
	var block int64
	for _, c := range changes {
		key := s.rowKey(v.space, c.to.Worker)
		same = append(same, clientv3.Compare(clientv3.ModRevision(key), "=", c.from.revision))
		puts = append(puts, clientv3.OpPut(key, encodeRow(c.to, c.from.row.Until)))
		block = c.to.Worker % blocks
		taken[c.to.Worker] = c.from.revision == 0
	}
	l := v.fresh[block]
	left := slices.DeleteFunc(slices.Clone(l.workers), func(worker int64) bool { return taken[worker] })
	if len(left) < len(l.workers) {
		key := s.freshKey(v.space, block)
		same = append(same, clientv3.Compare(clientv3.ModRevision(key), "=", l.revision))
		puts = append(puts, clientv3.OpPut(key, encode(left)))
	}
	reply, err := s.commit(ctx, what, same, puts, nil)
	return err == nil && reply.Succeeded, err
}
