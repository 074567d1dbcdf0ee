package filelease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// The file beside a slot that has the records of its claims is text: a line of a fixed width for each,
// with its number before it, written in place of the oldest one.
//
// It is written once the slot has the claim, and is not synced: a claim has no time for that, and if a
// power failure takes the last record away, the slot still tells the next claim who held it.
const pastWidth = 20 + 1 + leasestore.MaxRecord + 1

func pastPath(path string) string { return path + ".past" }

type pastRecord struct {
	number int64
	text   string
}

// past returns the records of a slot, the newest first. What a power failure has spoiled is missing.
func (sl *slot) past() (all []pastRecord, err error) {
	b, err := os.ReadFile(pastPath(sl.path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for line := range slices.Chunk(b, pastWidth) {
		number, text, _ := strings.Cut(strings.TrimLeft(string(line), " "), "\t")
		if n, err := strconv.ParseInt(number, 10, 64); err == nil && n >= 0 && strings.HasSuffix(text, "\n") {
			all = append(all, pastRecord{n, strings.TrimSuffix(text, "\n")})
		}
	}
	slices.SortFunc(all, func(a, b pastRecord) int { return cmp.Compare(b.number, a.number) })
	return all, prefixed(err)
}

// record keeps the record of a claim that sl has.
func (sl *slot) record(text string) error {
	all, err := sl.past()
	if err != nil {
		return err
	}
	var n int64
	if len(all) > 0 {
		n = all[0].number + 1
	}
	f, err := sl.store.open(pastPath(sl.path), true)
	if err != nil {
		return prefixed(err)
	}
	_, err = f.WriteAt(fmt.Appendf(nil, "%*s\n", pastWidth-1, fmt.Sprintf("%d\t%s", n, text)), n%leasestore.Kept*pastWidth)
	return prefixed(errors.Join(err, f.Close()))
}

// Holders implements [leasestore.Historian].
func (s *Store) Holders(ctx context.Context, space leasestore.Space, worker int64) ([]leasestore.Holder, error) {
	if err := space.ValidateWorker(worker); err != nil {
		return nil, err
	}
	return within(ctx, s, space, func() ([]leasestore.Holder, error) { return s.holders(ctx, space, worker) }, nil)
}

func (s *Store) holders(ctx context.Context, space leasestore.Space, worker int64) ([]leasestore.Holder, error) {
	sp, err := s.space(space)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	sl, last, err := s.lock(ctx, sp, worker, true)
	if errors.Is(err, fs.ErrNotExist) {
		row, missing, markErr := sp.unclaimed(worker)
		if markErr != nil || missing {
			return nil, errors.Join(markErr, err)
		}
		return leasestore.HoldersOf(row, nil), nil
	} else if err != nil {
		return nil, err
	}
	defer sl.close()
	all, err := sl.past()
	if err != nil {
		return nil, err
	}
	var records []string
	for _, record := range all {
		records = append(records, record.text)
	}
	return leasestore.HoldersOf(last.row, records), nil
}
