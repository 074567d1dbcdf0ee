package segment

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"time"
)

// MaxCount is the greatest count of one range, 2³¹−1, which fits the column step, an INT.
const MaxCount = math.MaxInt32

// A Rule determines when the next range is fetched and how large it is.
type Rule int

const (
	// ByRate holds as many numbers as the peak rate uses up within Config.Hold. The peak is the
	// greatest rate over 100 ms, and is halved every 15 minutes. A range is fetched when the
	// numbers that are held last for less than half of Hold, or for less than four times the
	// slowest recent fetch.
	ByRate Rule = iota

	// Leaf is the rule of Meituan's Leaf: two buffers, and a fetch when a tenth of one is
	// used. A range that lasted for less than 15 minutes doubles the count, and one that
	// lasted for more than 30 minutes halves it.
	Leaf
)

func (r Rule) String() string {
	switch r {
	case ByRate:
		return "ByRate"
	case Leaf:
		return "Leaf"
	}
	return fmt.Sprintf("Rule(%d)", int(r))
}

// A Config describes an Allocator. Only Tag is required.
type Config struct {
	Tag     string        // names the sequence: 1 to 128 printable characters of ASCII
	Step    int64         // least numbers per fetch, up to MaxStep; 0: the row's step
	MaxStep int64         // most numbers per fetch, up to MaxCount; 0: 1,000,000
	Hold    time.Duration // go on this long without the store at the recent peak rate; 0: 10 min; negative: no prefetch
	Rule    Rule          // ByRate or Leaf
	Last    int64         // greatest number; 0: 1<<63-1. JavaScript has exact integers up to 1<<53-1
	MaxWait time.Duration // how long a call waits for the store; 0: 5 s; negative: until its context ends

	// Floor returns the greatest number that is in use, such as the result of SELECT max(id).
	// It is called once, before the first fetch. If the store then offers a number that is not
	// above it, calls fail with ErrWentBack. Floor never raises the row.
	Floor func(context.Context) (int64, error)

	Logger   *slog.Logger // for warnings; nil: slog.Default()
	OnRefill func(Refill) // called after each fetch, in the Allocator's goroutine; may be nil
}

// A Refill is one fetch of an Allocator.
type Refill struct {
	Tag   string
	Count int64         // numbers that it brought; 0: it failed
	Held  int64         // numbers after it
	Took  time.Duration // how long the store took
	Err   error         // why it failed; else nil
}

// withDefaults returns c with its defaults filled in, or a *core.ValueError.
func (c Config) withDefaults() (Config, error) {
	if err := checkTag(c.Tag); err != nil {
		return c, err
	}
	if c.MaxStep == 0 {
		c.MaxStep = 1_000_000
	}
	if c.Hold == 0 {
		c.Hold = 10 * time.Minute
	}
	if c.Last == 0 {
		c.Last = math.MaxInt64
	}
	if c.MaxWait == 0 {
		c.MaxWait = 5 * time.Second
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	switch {
	case c.MaxStep < 1 || c.MaxStep > MaxCount:
		return c, invalid("Config.MaxStep", c.MaxStep, fmt.Sprintf("1 to %d, or 0 for 1000000", MaxCount))
	case c.Step < 0 || c.Step > c.MaxStep:
		return c, invalid("Config.Step", c.Step, fmt.Sprintf("1 to %d, which is MaxStep, or 0 for what the row says", c.MaxStep))
	case c.Rule != ByRate && c.Rule != Leaf:
		return c, invalid("Config.Rule", c.Rule, "ByRate or Leaf")
	case c.Last < 1:
		return c, invalid("Config.Last", c.Last, "at least 1, or 0 for 1<<63-1")
	}
	return c, nil
}
