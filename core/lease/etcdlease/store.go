package etcdlease

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/snowkey/snowkey/core/lease"
)

// A Store keeps rows in etcd. It is a [lease.Store], a [lease.Lister] and a
// [lease.Fencer]. Make it with [New]; the zero Store is not usable. It holds nothing but
// the client. It is safe for concurrent use.
type Store struct {
	kv     clientv3.KV
	prefix string
	clock  func(ctx context.Context) (time.Time, error)
}

var (
	_ lease.Store  = (*Store)(nil)
	_ lease.Lister = (*Store)(nil)
	_ lease.Fencer = (*Store)(nil)
)

// Claim implements [lease.Store]. The first claim in a space makes its rows. It passes over
// rows that are damaged, and names one if no other is free.
//
// Besides the errors of lease.Store it returns one that matches [ErrDamaged] or
// [ErrReadOnly], those of the client, and that of ctx.
func (s *Store) Claim(ctx context.Context, c lease.Claim) (lease.Reply, error) {
	if err := c.Space.Check(); err != nil {
		return lease.Reply{}, err
	}
	began := time.Now()
	now, err := s.now(ctx)
	if err != nil {
		return lease.Reply{}, err
	}
	// What the answer took is no difference between the clocks.
	late := c
	late.Now += lease.Millis(time.Since(began).Milliseconds())
	if err := late.Check(now); err != nil {
		return lease.Reply{}, err
	}
	// It looks at about 64 rows first. One of so many is free nearly always, or few are.
	candidates := blocksOf(&c)
	look := candidates[:min(len(candidates), max(1, int(blocks*64/c.Space.Workers)))]
	for {
		v, err := s.read(ctx, "claim", c.Space, look)
		if err != nil {
			return lease.Reply{}, err
		}
		if err := s.prepare(ctx, "claim", v); err != nil {
			return lease.Reply{}, err
		}
		if !v.made {
			continue
		}
		row, err := c.Choose(v.sorted(), now, rand.IntN)
		if errors.Is(err, lease.ErrNoFreeWorker) {
			if len(look) < len(candidates) {
				look = candidates
				continue
			}
			if v.damaged != nil {
				err = fmt.Errorf("%w; etcdlease: %w", err, v.damaged)
			}
		}
		if err != nil {
			return lease.Reply{}, err
		}
		next, _ := c.Apply(row, now) // which Choose has found free at the same now
		written, err := s.write(ctx, "claim", v, change{v.rows[row.Worker], next})
		if err != nil {
			return lease.Reply{}, err
		}
		if written {
			return lease.Reply{Row: next, Before: row.Until, Now: now}, nil
		}
		// Another claim was faster. Each turn of this loop is the success of somebody
		// else, so together they come to an end.
	}
}

// blocksOf returns the blocks of the workers that will do, in a random order. A claim that
// is made again looks at them in the same order. So it finds the row that it has taken, and
// takes no second one, unless one before it has become free meanwhile.
func blocksOf(c *lease.Claim) []int64 {
	var all []int64
	for block := range min(blocks, c.Space.Workers) {
		if c.Only == nil || slices.ContainsFunc(c.Only, func(worker int64) bool {
			return worker%blocks == block && worker < c.Space.Workers
		}) {
			all = append(all, block)
		}
	}
	c.Random().Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// damaged is the reason of a lease whose row is not one.
const damaged lease.Reason = "its row holds what package etcdlease did not write"

// Renew implements [lease.Store]. A row that is damaged is lost: the error matches
// [ErrDamaged] as well, and the lease takes another row. Other errors as for Claim.
func (s *Store) Renew(ctx context.Context, r lease.Renewal) (lease.Reply, error) {
	if err := r.Space.Check(); err != nil {
		return lease.Reply{}, err
	}
	now, err := s.now(ctx)
	if err != nil {
		return lease.Reply{}, err
	}
	before, row, err := s.change(ctx, "renew", r.Space, r.Worker, r.Nonce, r.Lost, func(row lease.Row) (lease.Row, error) {
		return r.Apply(row, now)
	})
	if err != nil {
		return lease.Reply{}, err
	}
	return lease.Reply{Row: row, Before: before.Until, Now: now}, nil
}

// Release implements [lease.Store]. Errors as for Renew.
func (s *Store) Release(ctx context.Context, r lease.Release) error {
	if err := r.Space.Check(); err != nil {
		return err
	}
	_, _, err := s.change(ctx, "release", r.Space, r.Worker, r.Nonce, r.Lost, r.Apply)
	return err
}

// change applies an operation to the row of its holder, and writes the result. It returns
// the row as it was found and as it was written.
//
// A row that has the nonce of the operation already is refused like any other that the
// holder does not know, because a copy of the process may have drawn the same nonce, and
// they must not both go on. If this call has sent a write before, that one may have been
// done after all, as by a proxy that sends it twice. Then the outcome is unknown.
func (s *Store) change(
	ctx context.Context, what string, sp lease.Space, worker int64, nonce string,
	lost func(lease.Reason) *lease.LostError, apply func(lease.Row) (lease.Row, error),
) (before, after lease.Row, err error) {
	for sent := false; ; sent = true {
		v, err := s.readRow(ctx, what, sp, worker)
		if err != nil {
			return lease.Row{}, lease.Row{}, err
		}
		from, found := v.rows[worker]
		switch {
		case !found && v.damaged != nil:
			return lease.Row{}, lease.Row{}, fmt.Errorf("%w: %w", lost(damaged), v.damaged)
		case !found:
			return lease.Row{}, lease.Row{}, lost(lease.Gone)
		case sent && from.row.Nonce == nonce:
			return lease.Row{}, lease.Row{}, fmt.Errorf("etcdlease: %s: the row of worker %d has the nonce of this request: "+
				"it was done, by this process or by a copy of it", what, worker)
		}
		to, err := apply(from.row)
		if err != nil {
			return lease.Row{}, lease.Row{}, err
		}
		written, err := s.write(ctx, what, v, change{from, to})
		if err != nil {
			return lease.Row{}, lease.Row{}, err
		}
		if written {
			return from.row, to, nil
		}
	}
}

// Fence implements [lease.Fencer], a hundred rows at a time. A row that is missing is left
// out. One that is damaged is an error, after the others have been fenced. Errors as for
// Claim.
func (s *Store) Fence(ctx context.Context, f lease.Fencing) error {
	if err := f.Space.Check(); err != nil {
		return err
	}
	for made := false; !made; {
		v, err := s.read(ctx, "fence", f.Space, nil)
		if err != nil {
			return err
		}
		if err := s.prepare(ctx, "fence", v); err != nil {
			return err
		}
		made = v.made
	}
	var errs []error
	for block := range int64(blocks) {
		for fenced := map[int64]bool{}; ; {
			v, err := s.read(ctx, "fence", f.Space, []int64{block})
			if err != nil {
				return errors.Join(append(errs, err)...)
			}
			var changes []change
			for _, row := range v.sorted() {
				if !fenced[row.Worker] && len(changes) < batch {
					changes = append(changes, change{v.rows[row.Worker], f.Apply(row)})
				}
			}
			if len(changes) == 0 {
				if v.damaged != nil {
					errs = append(errs, fmt.Errorf("etcdlease: fence: %w", v.damaged))
				}
				break
			}
			written, err := s.write(ctx, "fence", v, changes...)
			if err != nil {
				return errors.Join(append(errs, err)...)
			}
			for _, c := range changes {
				fenced[c.to.Worker] = written
			}
		}
	}
	return errors.Join(errs...)
}

// LosesWrites returns false: a majority of the cluster has what is acknowledged.
func (s *Store) LosesWrites() bool { return false }

// Rows implements [lease.Lister], at one revision. Errors as for Claim.
func (s *Store) Rows(ctx context.Context, sp lease.Space) ([]lease.Row, lease.Millis, error) {
	if err := sp.Check(); err != nil {
		return nil, 0, err
	}
	now, err := s.now(ctx)
	if err != nil {
		return nil, 0, err
	}
	all := make([]int64, blocks)
	for i := range all {
		all[i] = int64(i)
	}
	v, err := s.read(ctx, "rows", sp, all)
	if err != nil {
		return nil, 0, err
	}
	if v.damaged != nil {
		return nil, 0, fmt.Errorf("etcdlease: rows: %w", v.damaged)
	}
	return v.sorted(), now, nil
}
