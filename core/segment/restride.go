package segment

import (
	"context"
	"fmt"
	"math"
)

// A Freezer is a Store whose rows can change their stride.
type Freezer interface {
	// Freeze makes the row refuse every Take with ErrFrozen, until Thaw, and returns it. A
	// row that is frozen already stays so.
	Freeze(ctx context.Context, tag string) (Row, error)
	// Thaw sets the Next, Stride and Offset of a frozen row, which then answers Take again. A row
	// that is not frozen is an error, and so is a Next that is not above the greatest number that
	// the row can have given.
	Thaw(ctx context.Context, r Row) error
}

// Restride gives the rows of a tag a new stride, for instance to add a database. Row i gets
// offset i. The row of a new database is created before, with the new stride, and is one of
// rows, so that it begins above the numbers of the others. Programs may run meanwhile: their
// calls use the numbers that they hold and then wait for the end of the change, for
// Config.MaxWait at most.
//
// Restride first freezes every row, so that no more numbers are given out and the greatest one
// that any row can have given is known, and then moves each row above it. If it fails halfway,
// rows stay frozen; run it again with the same databases. Restride is experimental.
func Restride(ctx context.Context, tag string, stride int64, rows ...Freezer) error {
	if err := checkTag(tag); err != nil {
		return err
	}
	if stride < int64(len(rows)) || stride > math.MaxInt32 {
		return invalid("stride", stride, fmt.Sprintf("%d, the number of databases, to %d", len(rows), math.MaxInt32))
	}
	frozen := make([]Row, len(rows))
	top := int64(0)
	for i, store := range rows {
		r, err := store.Freeze(ctx, tag)
		if err != nil {
			return fmt.Errorf("segment: tag %s: freezing database %d of %d: %w", tag, i+1, len(rows), err)
		}
		frozen[i] = r
		top = max(top, r.top())
	}
	for i, store := range rows {
		r := frozen[i]
		r.Stride, r.Offset = stride, int64(i)
		r.Next = r.After(top)
		if err := store.Thaw(ctx, r); err != nil {
			return fmt.Errorf("segment: tag %s: database %d of %d has no new stride yet; run it again: %w", tag, i+1, len(rows), err)
		}
	}
	return nil
}
