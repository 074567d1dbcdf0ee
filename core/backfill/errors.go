package backfill

import (
	"errors"
	"fmt"
	"time"
)

// The reasons for which a row gets no key, for errors.Is. The package comment says what to do.
var (
	// ErrNoTime means that the row has no time.
	ErrNoTime = errors.New("backfill: the row has no time")

	// ErrEarly means that the row is older than the layout.
	ErrEarly = errors.New("backfill: the row is before the epoch")

	// ErrLate means that the row is not before Config.Until, or is after the end of the layout.
	ErrLate = errors.New("backfill: the row is too late")

	// ErrOrder means that the row is not in the order of (time, old key).
	ErrOrder = errors.New("backfill: the row is out of order")

	// ErrNoShard means that the key whose shard the row should have is no key.
	ErrNoShard = errors.New("backfill: the row has no shard")

	// ErrCrowded means that all keys within Config.Precision of the row's time are given to others.
	ErrCrowded = errors.New("backfill: all keys of the row's time are in use")
)

// A RowError says which row got no key, and why.
type RowError struct {
	Row  any       // its old key; nil if Backfill.Next was called
	Time time.Time // zero with ErrNoTime
	Err  error     // one of the reasons above
	Want string    // what is accepted
}

func (e *RowError) Error() string {
	row := "a row"
	if e.Row != nil {
		row = fmt.Sprintf("row %v", e.Row)
	}
	if !e.Time.IsZero() {
		row += " at " + show(e.Time)
	}
	return fmt.Sprintf("%v: %s: want %s", e.Err, row, e.Want)
}

// Unwrap returns Err.
func (e *RowError) Unwrap() error { return e.Err }

// show returns a time as errors show it.
func show(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
