package etcdlease

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/internal/base/wait"
)

// A Store keeps rows in etcd. It is a [leasestore.Store], a [leasestore.Lister], a
// [leasestore.Fencer] and a [leasestore.History]. [New] creates it; the zero Store is not usable. It holds nothing but the
// client, and is safe for concurrent use.
//
// Besides the errors of leasestore.Store it returns errors that match [ErrDamaged] or
// [ErrReadOnly], the client's errors and ctx's.
type Store struct{ *leasestore.RegisterStore }

var _ leasestore.Catalog = (*Store)(nil) // beside what a RegisterStore is

// A register keeps rows in etcd.
type register struct {
	kv     clientv3.KV
	prefix string
	clock  func(ctx context.Context) (time.Time, error)
}

// LosesWrites returns false, because a majority of the cluster has every acknowledged write on
// disk.
func (r *register) LosesWrites() bool { return false }

// Read reads rows at one revision.
func (r *register) Read(ctx context.Context, sp leasestore.Space, workers []int64) (leasestore.View, error) {
	return r.look(ctx, "read", sp, r.get(sp, workers), workers)
}

// near is how many rows a claim reads first. One of that many is nearly always free unless hardly
// any is.
const near = 64

// Find reads near rows: some blocks of a small space, or a part of one block, behind a random
// place in it. Of each list it shows the one worker that follows the place, because the first of
// the claims that take a worker off a list makes all others fail.
func (r *register) Find(ctx context.Context, sp leasestore.Space, h leasestore.Hint) (leasestore.View, error) {
	random := h.Random()
	some := blocksOf(sp, h, random)
	gets, places := r.get(sp, []int64{}), map[int64]string{}
	for _, block := range some[:min(len(some), max(1, int(blocks*near/sp.Workers)))] {
		keys := r.rowKeys(sp, block)
		place := random.IntN(len(keys))
		if len(keys) <= near || h.Only != nil {
			gets = append(gets, clientv3.OpGet(r.blockPrefix(sp, block), clientv3.WithPrefix()))
		} else {
			end := clientv3.GetPrefixRangeEnd(r.blockPrefix(sp, block))
			gets = append(gets, clientv3.OpGet(r.freshKey(sp, block)),
				clientv3.OpGet(keys[min(place, len(keys)-near)], clientv3.WithRange(end), clientv3.WithLimit(near)))
		}
		places[block] = keys[place]
	}
	v, err := r.look(ctx, "find", sp, gets, h.Only)
	fresh := map[int64]string{}                    // by block, the key of the worker that is shown
	rank := func(key string, block int64) string { // from the place on, and then from the beginning
		if key < places[block] {
			return "1" + key
		}
		return "0" + key
	}
	isFresh := func(seen leasestore.Seen) bool { return seen.Tag.(stored).revision == 0 }
	for _, seen := range v.Rows {
		block, key := seen.Row.Worker%blocks, r.rowKey(sp, seen.Row.Worker)
		if other, ok := fresh[block]; isFresh(seen) && (!ok || rank(key, block) < rank(other, block)) {
			fresh[block] = key
		}
	}
	v.Rows = slices.DeleteFunc(v.Rows, func(seen leasestore.Seen) bool {
		return isFresh(seen) && fresh[seen.Row.Worker%blocks] != r.rowKey(sp, seen.Row.Worker)
	})
	return v, err
}

// look reads rows while it asks for the time.
func (r *register) look(ctx context.Context, what string, sp leasestore.Space, gets []clientv3.Op, workers []int64) (leasestore.View, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	clock := wait.Start(func() (leasestore.Millis, error) {
		now, err := r.now(ctx)
		if err != nil {
			cancel() // or the client would go on waiting for a silent server
		}
		return now, err
	})
	v, _, err := r.view(ctx, what, sp, gets, workers)
	now, failed := clock(context.WithoutCancel(ctx)) // it ends with ctx, and its own error is the reason
	v.Now = now
	return v, cmp.Or(failed, err)
}

// blocksOf returns the blocks of eligible workers in a random order. A claim that is repeated
// sees the same order, so it finds the row that it has taken instead of taking a second one,
// unless an earlier row has become free meanwhile.
func blocksOf(sp leasestore.Space, h leasestore.Hint, random *rand.Rand) []int64 {
	var all []int64
	for block := range min(blocks, sp.Workers) {
		if h.Only == nil || slices.ContainsFunc(h.Only, func(worker int64) bool { return worker%blocks == block }) {
			all = append(all, block)
		}
	}
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// Spaces implements [leasestore.Catalog].
func (s *Store) Spaces(ctx context.Context) (spaces []leasestore.Space, err error) {
	r := s.Register().(*register)
	names, err := r.commit(ctx, "list", nil, []clientv3.Op{clientv3.OpGet(r.prefix+"/", clientv3.WithPrefix(), clientv3.WithKeysOnly())}, nil)
	if err != nil {
		return nil, err
	}
	for _, kv := range names.Responses[0].GetResponseRange().Kvs {
		at, key := leasestore.Space{}, string(kv.Key)
		parts := strings.Split(strings.TrimPrefix(key, r.prefix+"/"), "/")
		if len(parts) != 3 || parts[2] != "space" {
			continue
		}
		at.Namespace = parts[0]
		_, err := fmt.Sscan(parts[1], &at.Datacenter)
		if err != nil || r.spaceKey(at) != key {
			return nil, fmt.Errorf("etcdlease: list: %w", damage(key, "is the key of no space"))
		}
		v, count, err := r.view(ctx, "list", at, r.get(at, []int64{}), []int64{})
		if err != nil {
			return nil, err
		}
		if at.Layout, at.Workers = v.Layout, count; count < 1 {
			return nil, fmt.Errorf("etcdlease: list: %w", damage(key, "has no number of workers"))
		}
		spaces = append(spaces, at)
	}
	return spaces, nil
}
