package leasestore

import (
	"context"
	"errors"
	"sync"
)

// A Fencing asks to end all leases of a space and to raise the limits of its rows.
type Fencing struct {
	Space Space
	Nonce string // a fresh token, 32 hexadecimal digits
	Until Millis
}

// Apply returns row as the fencing leaves it: given back, with a limit of at least Until. A
// retired row is unchanged.
//
// The limit alone would not do. After a restore, an earlier holder may find its token in
// the row. Its renewal would raise its limit beyond Until. Its next IDs would have times
// before Until, which the lost writes may have given to others. The new epoch refuses the
// holder, and it claims anew.
func (f *Fencing) Apply(row Row) Row {
	if row.Retired() {
		return row
	}
	return row.next(f.Nonce, max(row.Until, f.Until))
}

// Fence implements [Fencer], row by row. It skips missing rows, and returns an error for a damaged
// row after it has fenced the others.
func (s *RegisterStore) Fence(ctx context.Context, f Fencing) error {
	if err := f.Space.Validate(); err != nil {
		return err
	}
	// It makes a trip for each row, and each may take the time that is left.
	o := operation{register: s.register, space: f.Space, ctx: ctx}
	var v View
	for made := false; !made; {
		var err error
		if v, err = o.read(nil); err != nil {
			return err
		}
		if made, err = o.made(v); err != nil {
			return err
		}
	}
	var wg sync.WaitGroup
	errs := make([]error, fencers)
	for i := range errs {
		wg.Go(func() {
			for j := i; j < len(v.Rows) && errs[i] == nil; j += fencers {
				errs[i] = o.fence(&f, v.Rows[j])
			}
		})
	}
	wg.Wait()
	return errors.Join(append([]error{v.Damaged}, errs...)...)
}

// fencers is how many rows Fence writes at a time, of up to 65,536.
const fencers = 16

func (o *operation) fence(f *Fencing, from Seen) error {
	for {
		if from.Row.Retired() {
			return nil // a swap that changes nothing may be refused again and again
		}
		if done, err := o.swap(from, f.Apply(from.Row)); done || err != nil {
			return err
		}
		v, err := o.read([]int64{from.Row.Worker})
		if err != nil {
			return err
		}
		if made, err := o.made(v); !made {
			return err
		}
		i, found := v.find(from.Row.Worker)
		if !found || v.Rows[i].Row.Nonce == f.Nonce { // it is gone, or was done before
			return v.Damaged
		}
		from = v.Rows[i]
	}
}
