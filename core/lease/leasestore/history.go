package leasestore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Holder is one claim of a worker number, see [History].
type Holder struct {
	Worker int64
	Epoch  int64  // the fencing number of the claim; 0: unknown
	Holder string // the name that the claim gave, see Claim.Holder
	From   Millis // no ID of the claim has a time before this
	Until  Millis // or at or after this
}

// A History is a [Store] that keeps the past holders of worker numbers. A Store without a history
// returns an error that matches [errors.ErrUnsupported].
//
// History returns at least the last [HistoryLength] claims of the number, in their order. The last
// one is the present holder, if there is one, until the row's limit; the others until the limit that
// the next claim has found.
//
// A claim records itself in its own write, before the first ID, but never fails for want of a
// record. Where some are missing, because the claims were of an older version, the store has no
// place for records, or they are older than those it keeps, History has an entry for them: with
// Epoch and Holder if the row showed them to the next claim, and from the earliest moment at which
// they may have begun, 0 if nothing is known. A number that was retired is held from 0 on, too,
// because its keys may have any time. Therefore a time that is in no entry was given to no lease,
// unless the store has lost writes, or people have changed its rows.
type History interface {
	History(ctx context.Context, s Space, worker int64) ([]Holder, error)
}

// A HistoryRegister is a [Register] that keeps the records that Swap gets as Seen.Record.
type HistoryRegister interface {
	Register

	// Records returns at least the last HistoryLength records of a worker, or all, the newest
	// first.
	Records(ctx context.Context, s Space, worker int64) ([]string, error)
}

const (
	// HistoryLength is how many claims of each worker number a store keeps.
	HistoryLength = 100

	// MaxRecord is the length of the longest record.
	MaxRecord = 3*20 + 2*maxHolder + 4
)

// Record returns what a store keeps of a claim: a line of printable ASCII and tabs, with the epoch,
// where its IDs begin, the limit of the row as it was found, the name of the holder, and, if the row
// was held, the name that was found. That limit is the predecessor's last one, so that nothing
// needs to be recorded when a lease renews or ends.
func (c *Claim) Record(found Row, r Reply) string {
	from := c.From(r)
	if c.Retire {
		from = 0
	}
	record := fmt.Sprintf("%d\t%d\t%d\t%s", r.Row.Epoch, from, found.Until, c.Holder)
	if found.Owner != "" {
		record += "\t" + found.Holder
	}
	return record
}

// HistoryOf returns what [History] says of a row and its records, the newest first.
func HistoryOf(row Row, records []string) []Holder {
	var all []Holder
	// found takes the row as a later claim, or the caller, has found it. If the last claim is not
	// the one that left it so, there were others. An epoch and the name are known of one that
	// still held the row; a released row has the next epoch.
	found := func(epoch int64, until Millis, held bool, holder string) {
		var last Holder
		if n := len(all); n > 0 {
			all[n-1].Until = until
			last = all[n-1]
		}
		switch {
		case last.Epoch > 0 && (held && epoch == last.Epoch && holder == last.Holder || !held && epoch == last.Epoch+1):
			return // it was the last one
		case epoch == 0 && until == 0:
			return // it was nobody
		case !held:
			epoch = 0
		}
		all = append(all, Holder{row.Worker, epoch, holder, last.From, until})
	}
	for _, text := range slices.Backward(records[:min(len(records), HistoryLength)]) {
		fields := append(strings.Split(text, "\t"), "")
		epoch, err1 := strconv.ParseInt(fields[0], 10, 64)
		if len(fields) < 5 || err1 != nil {
			continue // as if it were missing
		}
		from, err2 := strconv.ParseInt(fields[1], 10, 64)
		before, err3 := strconv.ParseInt(fields[2], 10, 64)
		if err2 != nil || err3 != nil {
			continue
		}
		found(epoch-1, Millis(before), len(fields) > 5, fields[4])
		all = append(all, Holder{Worker: row.Worker, Epoch: epoch, Holder: fields[3], From: Millis(from)})
	}
	found(row.Epoch, row.Until, row.Owner != "", row.Holder)
	return all
}

// History implements [History] if the register is a [HistoryRegister].
func (s *RegisterStore) History(ctx context.Context, sp Space, worker int64) ([]Holder, error) {
	recorder, ok := s.register.(HistoryRegister)
	if err := sp.ValidateWorker(worker); err != nil {
		return nil, err
	} else if !ok {
		return nil, fmt.Errorf("lease: a %T keeps no holders: %w", s.register, errors.ErrUnsupported)
	}
	for {
		before, err := s.register.Read(ctx, sp, []int64{worker})
		if err != nil {
			return nil, err
		}
		records, err := recorder.Records(ctx, sp, worker)
		if err != nil {
			return nil, err
		}
		v, err := s.register.Read(ctx, sp, []int64{worker})
		switch {
		case err != nil:
			return nil, err
		case v.Damaged != nil:
			return nil, v.Damaged
		case !v.Made:
			return nil, nil
		case len(v.Rows) == 0:
			return nil, fmt.Errorf("lease: worker %d has no row: somebody has deleted it, which must never be done", worker)
		case len(before.Rows) == 1 && before.Rows[0].Row.Epoch == v.Rows[0].Row.Epoch:
			return HistoryOf(v.Rows[0].Row, records), nil
		}
	}
}

// ValidateWorker returns the error of Validate, or a *core.ValueError if worker is not in s.
func (s Space) ValidateWorker(worker int64) error {
	if err := s.Validate(); err != nil {
		return err
	}
	if !s.has(worker) {
		return invalid("worker", strconv.FormatInt(worker, 10), fmt.Sprintf("0..%d", s.Workers-1))
	}
	return nil
}
