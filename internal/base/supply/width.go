package supply

import (
	"math"
	"time"

	"github.com/snowkey/snowkey/types"
)

// Limit returns the largest key that a plugin may assign: with numbers, where keys are numbers
// in JSON, the largest integer up to which a JavaScript number has every integer.
func Limit(numbers bool) types.Snowflake {
	if numbers {
		return 1<<53 - 1
	}
	return math.MaxInt64
}

// exceeds returns the largest key that a source will ever return and true if it is above limit,
// as far as the source tells by a method Max, as core.Generator has.
func exceeds(src any, limit types.Snowflake) (types.Snowflake, bool) {
	s, ok := src.(interface {
		Max(t time.Time) types.Snowflake
	})
	if !ok {
		return 0, false
	}
	last := s.Max(time.Unix(1<<40, 0)) // after the end of any layout
	return last, last > limit
}
