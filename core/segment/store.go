package segment

import (
	"context"
	"fmt"
	"math"
)

// A Store keeps one row per tag. The row knows the first number that nobody has. It
// must be safe for concurrent use, and gives up when ctx ends. Package segmenttest
// certifies an implementation.
//
// A row counts in k. The number that belongs to k is k·stride + offset. With the
// stride 1 and the offset 0, which most rows have, it is k itself.
type Store interface {
	// Take moves the row forward in one atomic step and returns what it has passed.
	// It returns nil only when the step is durable: after COMMIT, not after the row of
	// RETURNING. After any other error the range may be lost. Nobody gets it then.
	//
	// Errors that match ErrNoTag, ErrExhausted, ErrStride and ErrOneConnection say that
	// the row was not moved.
	Take(ctx context.Context, t Take) (Range, error)

	// GiveBack returns the end of a range. It changes the row only if nobody has taken
	// since: version and max_id must be those that the Take left. It raises the
	// version, so a request that arrives twice or late changes nothing. A request that
	// is refused is no error.
	GiveBack(ctx context.Context, g GiveBack) error
}

// A Take asks for a range.
type Take struct {
	Tag   string
	Count int64 // how many numbers; 0: the step of the row
	// Above, if it is not 0, is a number below all those of the range. The row is
	// raised to there in the same step.
	Above int64
	// Stride, if it is not 0, must be that of the row. Otherwise the error is ErrStride.
	Stride int64
	// Waited says that a call waits for each range, because nothing is prefetched, and the
	// caller may hold a connection of the store's pool in a transaction. A store whose pool
	// has no other connection returns ErrOneConnection at once.
	Waited bool
}

// A Range holds the numbers k·Stride + Offset for k from First to Last. It is what
// a row has passed.
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
	// Create makes a row. A row that is there already stays, and is an error.
	Create(ctx context.Context, r Row) error
	// Raise moves a row to next, if it is not there yet, and returns the row. It never
	// lowers.
	Raise(ctx context.Context, tag string, next int64) (Row, error)
}

// Several is implemented by a Store that is several databases, as [Spread] returns it. A Store
// that wraps it may pass it on: [Stats] and the log of an Allocator then tell of each.
type Several interface {
	// Databases returns what is known of the databases of a tag, in their order. It waits
	// for none of them.
	Databases(tag string) []Database
}

// A Database describes one of several databases at one moment.
type Database struct {
	Max      int64 // greatest number that it gave; 0: none
	Fetches  uint64
	Failures uint64
	Err      error // of the last call; nil: it gave a range
}

// check returns what is wrong with a range, which a Store made.
func (r Range) check() error {
	switch {
	case r.First < 0:
		return &ValueError{"Range.First", r.First, "at least 0"}
	case r.Last < r.First:
		return &ValueError{"Range.Last", r.Last, fmt.Sprintf("at least Range.First, which is %d", r.First)}
	case r.Stride < 1:
		return &ValueError{"Range.Stride", r.Stride, "at least 1"}
	case r.Offset < 0 || r.Offset >= r.Stride:
		return &ValueError{"Range.Offset", r.Offset, fmt.Sprintf("from 0 to %d, below Range.Stride", r.Stride-1)}
	case r.Last > (math.MaxInt64-r.Offset)/r.Stride:
		return &ValueError{"Range.Last", r.Last, fmt.Sprintf("at most %d: numbers have 63 bits", (math.MaxInt64-r.Offset)/r.Stride)}
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
