package segment

import (
	"context"
	"fmt"
	"math"
)

// A Store keeps one row per tag, which records the first number that has not been given out. A
// Store must be safe for concurrent use and give up when ctx ends. Package segmenttest
// certifies an implementation.
//
// A row counts in k, and the number that belongs to k is k·stride + offset. With the stride 1
// and the offset 0, which most rows have, the number is k itself.
type Store interface {
	// Take moves the row forward in one atomic step and returns the range that it has passed.
	// It returns nil only when the step is durable, that is after COMMIT and not after the row
	// of RETURNING. After any other error the range may be lost, and no process gets it.
	//
	// Errors that match ErrNoTag, ErrExhausted, ErrStride and ErrOneConnection guarantee that
	// the row was not moved.
	Take(ctx context.Context, t Take) (Range, error)

	// GiveBack returns the end of a range. It changes the row only if no range has been taken
	// since: version and max_id must be those that the Take left. It raises the version, so
	// that a request that arrives twice or late changes nothing. A refused request is not an
	// error.
	GiveBack(ctx context.Context, g GiveBack) error
}

// A Take asks for a range.
type Take struct {
	Tag   string
	Count int64 // how many numbers; 0: the step of the row
	// Above, if it is not 0, is a number below all numbers of the range. The row is raised to
	// it in the same step.
	Above int64
	// Stride, if it is not 0, must be the row's. Otherwise the error is ErrStride.
	Stride int64
	// Waited means that a call waits for each range, because nothing is prefetched, and that
	// the caller may hold a connection of the store's pool in a transaction. A store whose pool
	// has no other connection returns ErrOneConnection at once.
	Waited bool
}

// A Range is the part of a sequence that a row has passed: the numbers k·Stride + Offset for k
// from First to Last.
type Range struct {
	First, Last    int64 // values of k, both inside
	Stride, Offset int64
	Version        int64 // of the row after the Take
	Step           int64 // of the row
}

// A GiveBack offers the values of k from First to before End.
type GiveBack struct {
	Tag        string
	First, End int64 // End is max_id after the last Take
	Version    int64 // of that Take, so at least 1
}

// A Lister lists the rows of a store, for operators.
type Lister interface {
	Rows(ctx context.Context) ([]Row, error)
}

// A Keeper changes the rows of a store, for operators.
type Keeper interface {
	// Create adds a row. If the row exists, Create leaves it alone and returns an error.
	Create(ctx context.Context, r Row) error
	// Raise moves a row up to next, unless it is there or above, and returns the row. It never
	// lowers it.
	Raise(ctx context.Context, tag string, next int64) (Row, error)
}

// Several is implemented by a Store that consists of several databases, as [Spread] returns it.
// A Store that wraps it may forward it, and then [Stats] and the log of an Allocator report on
// each database.
type Several interface {
	// Databases returns the state of the databases of a tag, in their order, without waiting
	// for any of them.
	Databases(tag string) []Database
}

// A Database is the state of one of several databases at one moment.
type Database struct {
	Max      int64 // greatest number that it gave; 0: none
	Fetches  uint64
	Failures uint64
	Err      error // of the last call; nil: it gave a range
}

// check validates a range that a Store has returned.
func (r Range) check() error {
	switch {
	case r.First < 0:
		return invalid("Range.First", r.First, "at least 0")
	case r.Last < r.First:
		return invalid("Range.Last", r.Last, fmt.Sprintf("at least Range.First, which is %d", r.First))
	case r.Stride < 1:
		return invalid("Range.Stride", r.Stride, "at least 1")
	case r.Offset < 0 || r.Offset >= r.Stride:
		return invalid("Range.Offset", r.Offset, fmt.Sprintf("from 0 to %d, below Range.Stride", r.Stride-1))
	case r.Last > (math.MaxInt64-r.Offset)/r.Stride:
		return invalid("Range.Last", r.Last, fmt.Sprintf("at most %d: numbers have 63 bits", (math.MaxInt64-r.Offset)/r.Stride))
	}
	return nil
}

// number returns the number of k.
func (r Range) number(k int64) int64 { return k*r.Stride + r.Offset }

// atMost returns the greatest k whose number is not above last.
func (r Range) atMost(last int64) int64 {
	if last < r.Offset {
		return -1
	}
	return (last - r.Offset) / r.Stride
}
