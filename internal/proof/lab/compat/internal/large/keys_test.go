package large

import (
	"math"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/types"
)

func TestNoDoubleHoldsAKey(t *testing.T) {
	for _, key := range Keys {
		if f := float64(key); f < math.MaxInt64 && types.Snowflake(f) == key {
			t.Errorf("float64(%d) = %.0f; want another number", key, f)
		}
	}
}

func TestOneKeyIsOfTheDefaultLayout(t *testing.T) {
	parts := core.Parts{Time: time.Date(2025, 11, 25, 7, 12, 33, 0, time.UTC), Worker: 7, Sequence: 1}
	if key, err := core.Default().Compose(parts); err != nil || key != Keys[1] {
		t.Errorf("Compose(%+v) = %d, %v; want %d", parts, key, err, Keys[1])
	}
}
