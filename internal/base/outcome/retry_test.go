package outcome

import (
	"testing"
	"time"
)

func TestDelaysGrowUpToOneSecond(t *testing.T) {
	for n := range 1000 { // as many looks fit into settleTimeout, if rarely
		if d := delay(n + 1); d < 0 || d >= time.Second {
			t.Fatalf("delay(%d) = %v; want 0 to 1s", n+1, d)
		}
	}
	longest := [maxAttempts]time.Duration{}
	for n := 1; n < maxAttempts; n++ {
		limit := min(10*time.Millisecond<<(n-1), time.Second)
		for range 1000 {
			d := delay(n)
			if d < 0 || d >= limit {
				t.Fatalf("delay(%d) = %v; want 0 to %v", n, d, limit)
			}
			longest[n] = max(longest[n], d)
		}
		if longest[n] < limit/2 {
			t.Errorf("delay(%d) = %v at most in 1000; want up to %v", n, longest[n], limit)
		}
	}
}
