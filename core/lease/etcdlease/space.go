package etcdlease

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/internal/base/errtext"
)

// blocks is the maximum number of blocks of a space. Worker w is in block w%blocks.
//
// All rows of a space are made at once, and never again. A space may have 65,536 rows, however,
// while a transaction of etcd takes 128 writes and 1.5 MiB, so a row that was never claimed has
// no key; its worker is in its block's list of fresh workers instead. The lists of all blocks
// are made in one transaction, together with the key of the space, and only if nothing of the
// space exists. The first claim of a row removes the worker from the list and writes the row,
// in one transaction that requires the list to be unchanged since it was read. With the worker,
// up to 63 others leave the list, and their rows are made as they are, zero, so that few of many
// claims at once change the list, while the others take rows that are apart. Therefore
//
//   - a worker on its list has a row that is zero;
//   - a worker with a key has its row there;
//   - a worker with neither is gone and is never made anew, because no request adds a worker to
//     a list;
//   - a worker with both is damage: an old list was put back.
//
// A crash leaves either nothing or everything, and one of a hundred concurrent first claims
// makes the space, so there is no intermediate state to complete.
//
// Rejected:
//   - Rows that are made in portions, with a key written last as the proof that all exist. A
//     portion that arrives late, or is made by two processes, must not recreate a row that was
//     claimed and deleted meanwhile. That takes a state "filling", whose revision every portion
//     requires, as in package zklease, and 656 transactions.
//   - Treating a row without a key as zero. A deleted row would then be free, and its worker
//     would begin below the limit that was reserved.
//   - One list for the whole space, on which a thousand concurrent first claims would each make
//     the others fail, and 64 lists that one worker leaves at a time: of ten thousand first claims
//     at once, 156 would be on each list, where a turn lets one through and sends all back.
//   - All rows of a block in one key, which every renewal would rewrite.
const blocks = 64

func (r *register) layoutKey(sp leasestore.Space) string {
	return r.prefix + "/" + sp.Namespace + "/layout"
}

// base returns the prefix of all keys of a space except its layout.
func (r *register) base(sp leasestore.Space) string {
	return fmt.Sprintf("%s/%s/%d/", r.prefix, sp.Namespace, sp.Datacenter)
}

func (r *register) spaceKey(sp leasestore.Space) string { return r.base(sp) + "space" }

func (r *register) blockPrefix(sp leasestore.Space, block int64) string {
	return fmt.Sprintf("%s%02d/", r.base(sp), block)
}

// rowKeys returns the keys of all rows of a block, in their order.
func (r *register) rowKeys(sp leasestore.Space, block int64) (keys []string) {
	for worker := block; worker < sp.Workers; worker += blocks {
		keys = append(keys, r.rowKey(sp, worker))
	}
	slices.Sort(keys)
	return keys
}

func (r *register) freshKey(sp leasestore.Space, block int64) string {
	return r.blockPrefix(sp, block) + "fresh"
}

func (r *register) rowKey(sp leasestore.Space, worker int64) string {
	return fmt.Sprintf("%s%d", r.blockPrefix(sp, worker%blocks), worker)
}

// A view is a space as it was read, at a single revision.
type view struct {
	space   leasestore.Space
	layout  *mvccpb.KeyValue // nil: missing
	made    bool             // the key of the space exists
	workers int64            // that it names; 0: it is damaged
	rows    map[int64]stored // by worker
	fresh   map[int64]list   // by block

	// damaged is the error for keys that were left out of the view because they make no sense.
	damaged error
}

// A stored row. Its key has text and was last changed at revision; with revision 0 it has no
// key, and its worker is on the list.
type stored struct {
	row      leasestore.Row
	revision int64
	text     string
	list     list
}

// A list of fresh workers.
type list struct {
	workers  []int64
	revision int64
	text     string
}

// mostKeys is how many rows are read by their own keys. For more of them, whole blocks are
// read.
const mostKeys = 32

// get returns the operations that read the rows of workers, or all rows if workers is nil. They
// go into one transaction. Reads of etcd are linearizable by default, so a refusal based on
// them is certain.
func (r *register) get(sp leasestore.Space, workers []int64) []clientv3.Op {
	gets := []clientv3.Op{clientv3.OpGet(r.layoutKey(sp)), clientv3.OpGet(r.spaceKey(sp))}
	asked := map[int64]bool{} // blocks
	for _, worker := range workers {
		if len(workers) <= mostKeys {
			gets = append(gets, clientv3.OpGet(r.rowKey(sp, worker)))
			if !asked[worker%blocks] {
				gets = append(gets, clientv3.OpGet(r.freshKey(sp, worker%blocks)))
			}
		}
		asked[worker%blocks] = true
	}
	if workers == nil || len(workers) > mostKeys {
		for block := range int64(blocks) {
			if workers == nil || asked[block] {
				gets = append(gets, clientv3.OpGet(r.blockPrefix(sp, block), clientv3.WithPrefix()))
			}
		}
	}
	return gets
}

// view returns what gets read, with the rows of workers, or all rows if workers is nil. count is how
// many the space has.
func (r *register) view(ctx context.Context, what string, sp leasestore.Space, gets []clientv3.Op, workers []int64) (_ leasestore.View, count int64, err error) {
	reply, err := r.commit(ctx, what, nil, gets, nil)
	if err != nil {
		return leasestore.View{}, 0, err
	}
	v := &view{space: sp, rows: map[int64]stored{}, fresh: map[int64]list{}}
	for _, got := range reply.Responses {
		for _, kv := range got.GetResponseRange().Kvs {
			r.add(v, kv)
		}
	}
	for _, l := range v.fresh {
		for _, worker := range l.workers {
			if _, both := v.rows[worker]; both {
				delete(v.rows, worker)
				v.damaged = damage(r.rowKey(sp, worker), "exists, but its worker is on the list of those never claimed")
				continue
			}
			v.rows[worker] = stored{row: leasestore.Row{Worker: worker}, list: l}
		}
	}
	seen, err := r.seen(what, v, workers)
	return seen, v.workers, err
}

// add adds a key to a view.
func (r *register) add(v *view, kv *mvccpb.KeyValue) {
	key, text := string(kv.Key), string(kv.Value)
	switch {
	case key == r.layoutKey(v.space):
		v.layout = kv
	case key == r.spaceKey(v.space):
		v.made = true
		_, _ = fmt.Sscanf(text, `{"workers":%d}`, &v.workers)
	case strings.HasSuffix(key, "/fresh"):
		var block int64
		_, _ = fmt.Sscanf(strings.TrimPrefix(key, r.base(v.space)), "%d/", &block) // an invalid number yields another key
		workers, ok := decodeFresh(kv.Value, block)
		if !ok || key != r.freshKey(v.space, block) {
			v.damaged = damage(key, "has %q", errtext.Cut(text))
			return
		}
		v.fresh[block] = list{workers, kv.ModRevision, text}
	default:
		row, _, ok := decodeRow(kv.Value)
		if !ok || key != r.rowKey(v.space, row.Worker) {
			v.damaged = damage(key, "has %q", errtext.Cut(text))
			return
		}
		v.rows[row.Worker] = stored{row: row, revision: kv.ModRevision, text: text}
	}
}

// seen converts a view into a register's, with the rows of workers, or all rows if workers is
// nil.
func (r *register) seen(what string, v *view, workers []int64) (leasestore.View, error) {
	out := leasestore.View{Made: v.made, Damaged: v.damaged}
	switch {
	case v.layout == nil && v.made:
		return leasestore.View{}, fmt.Errorf("etcdlease: %s: %w", what, damage(r.spaceKey(v.space), "exists without %s", r.layoutKey(v.space)))
	case v.layout != nil && !decode(v.layout.Value, &out.Layout):
		return leasestore.View{}, fmt.Errorf("etcdlease: %s: %w", what, damage(r.layoutKey(v.space), "has %q", errtext.Cut(string(v.layout.Value))))
	}
	if out.Damaged != nil {
		out.Damaged = fmt.Errorf("etcdlease: %s: %w", what, out.Damaged)
	}
	for worker, row := range v.rows {
		if _, asked := slices.BinarySearch(workers, worker); asked || workers == nil {
			out.Rows = append(out.Rows, leasestore.Seen{Row: row.row, Tag: row})
		}
	}
	slices.SortFunc(out.Rows, func(a, b leasestore.Seen) int { return cmp.Compare(a.Row.Worker, b.Row.Worker) })
	return out, nil
}

// Make makes the layout unless it exists, and all rows unless any part of the space exists.
func (r *register) Make(ctx context.Context, sp leasestore.Space) error {
	puts := []clientv3.Op{
		clientv3.OpPut(r.spaceKey(sp), fmt.Sprintf(`{"workers":%d}`, sp.Workers)),
		clientv3.OpPut(r.layoutKey(sp), encode(sp.Layout)),
	}
	for block := range min(blocks, sp.Workers) {
		var workers []int64
		for worker := block; worker < sp.Workers; worker += blocks {
			workers = append(workers, worker)
		}
		puts = append(puts, clientv3.OpPut(r.freshKey(sp, block), encode(workers)))
	}
	empty := clientv3.Compare(clientv3.CreateRevision(r.base(sp)), "=", 0).WithPrefix()
	for _, layout := range []clientv3.Cmp{
		clientv3.Compare(clientv3.CreateRevision(r.layoutKey(sp)), "=", 0),
		clientv3.Compare(clientv3.Value(r.layoutKey(sp)), "=", encode(sp.Layout)), // of another datacenter
	} {
		reply, err := r.commit(ctx, "make", []clientv3.Cmp{layout, empty}, puts, []clientv3.Op{
			clientv3.OpGet(r.spaceKey(sp)),
			clientv3.OpGet(r.base(sp), clientv3.WithPrefix(), clientv3.WithLimit(1)),
		})
		if err != nil || reply.Succeeded {
			return err
		}
		made, some := reply.Responses[0].GetResponseRange(), reply.Responses[1].GetResponseRange()
		if len(made.Kvs) == 0 && len(some.Kvs) > 0 {
			return fmt.Errorf("etcdlease: make: %w", damage(string(some.Kvs[0].Key), "exists without %s", r.spaceKey(sp)))
		}
	}
	return nil // another process was faster, perhaps with another layout
}

// Swap compares the values of keys besides the revisions of their last changes, because a
// restored snapshot takes the revisions back. Versions would not do either: they begin at 1
// again when a key is deleted and made anew.
func (r *register) Swap(ctx context.Context, sp leasestore.Space, from leasestore.Seen, to leasestore.Row) (bool, error) {
	was := from.Tag.(stored)
	key := r.rowKey(sp, to.Worker)
	same := []clientv3.Cmp{
		clientv3.Compare(clientv3.Value(r.layoutKey(sp)), "=", encode(sp.Layout)),
		clientv3.Compare(clientv3.ModRevision(key), "=", was.revision),
	}
	puts := []clientv3.Op{clientv3.OpPut(key, encodeRow(to, was.row.Until))}
	if was.revision == 0 { // its worker leaves the list
		list := r.freshKey(sp, to.Worker%blocks)
		leaving, left := bunch(was.list.workers, to.Worker)
		same = append(same, clientv3.Compare(clientv3.ModRevision(list), "=", was.list.revision), clientv3.Compare(clientv3.Value(list), "=", was.list.text))
		puts = append(puts, clientv3.OpPut(list, encode(left)))
		for _, worker := range leaving { // unless it has a row, which an old list would forget
			row := r.rowKey(sp, worker)
			puts = append(puts, clientv3.OpTxn([]clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(row), "=", 0)},
				[]clientv3.Op{clientv3.OpPut(row, encodeRow(leasestore.Row{Worker: worker}, 0))}, nil))
		}
	} else {
		same = append(same, clientv3.Compare(clientv3.Value(key), "=", was.text))
	}
	if from.Record != "" {
		puts = append(puts, r.keep(sp, to, from.Record)...)
	}
	reply, err := r.commit(ctx, "swap", same, puts, nil)
	return err == nil && reply.Succeeded, err
}

// mostBunch is how many workers leave a list at once. Their writes, that of the list and two of the
// record fit into a transaction of 128.
const mostBunch = 64

// bunch returns the workers that leave a list with one of them, which is not among them, and the
// workers that are left.
func bunch(list []int64, worker int64) (leaving, left []int64) {
	at := slices.Index(list, worker)
	end := min(at+mostBunch, len(list))
	begin := max(0, end-mostBunch)
	return slices.Concat(list[begin:at], list[at+1:end]), append(append([]int64{}, list[:begin]...), list[end:]...)
}
