package core

import (
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/snowkey/snowkey/types"
)

// chiSquare returns the statistic of id % n against an even distribution.
func chiSquare(ids []types.Snowflake, n int) float64 {
	count := make([]int, n)
	for _, id := range ids {
		count[int64(id)%int64(n)]++
	}
	want := float64(len(ids)) / float64(n)
	var sum float64
	for _, c := range count {
		sum += (float64(c) - want) * (float64(c) - want) / want
	}
	return sum
}

// critical returns the value that chi-square exceeds with probability 3e-7 (z = 5)
// for an even distribution over n, by the approximation of Wilson and Hilferty.
func critical(n int) float64 {
	k := float64(n - 1)
	return k * math.Pow(1-2/(9*k)+5*math.Sqrt(2/(9*k)), 3)
}

// At one ID per tick every ID is the first of its tick. Random and rotating starts
// spread id % n evenly for every n; from zero, half of two shards stay empty.
func TestSequenceStartsSpreadModulo(t *testing.T) {
	const ids = 5 * 5 * 4096 // whole turns of Rotating
	for _, rollback := range []Rollback{Continue, Backfill} {
		for _, start := range []SequenceStart{Random, Rotating} {
			t.Run(fmt.Sprint(rollback, start), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					g := newTest(t, Config{Layout: bubbleLayout(12), Rollback: rollback, SequenceStart: start}, nil)
					mustNext(t, g)
					time.Sleep(time.Second)
					got := make([]types.Snowflake, ids)
					for i := range got {
						time.Sleep(time.Millisecond)
						got[i] = mustNext(t, g)
					}
					for _, n := range []int{2, 3, 10, 16, 64, 1000} {
						x := chiSquare(got, n)
						t.Logf("id %% %d: chi-square %.1f, %d degrees of freedom, critical value %.1f", n, x, n-1, critical(n))
						if x > critical(n) {
							t.Errorf("%d IDs, one per ms, id %% %d: chi-square = %.1f; want at most %.1f", ids, n, x, critical(n))
						}
					}
				})
			})
		}
	}
}

func TestFromZeroEveryIDOfASlowGeneratorIsEven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTest(t, Config{Layout: bubbleLayout(12)}, nil)
		mustNext(t, g)
		time.Sleep(time.Second)
		for range 100 {
			time.Sleep(time.Millisecond)
			if id := mustNext(t, g); id%4096 != 0 {
				t.Fatalf("Next(), one per ms = %d; want sequence 0", id)
			}
		}
	})
}

func TestASequenceGoesOnFromItsStart(t *testing.T) {
	for _, start := range []SequenceStart{Random, Rotating} {
		synctest.Test(t, func(t *testing.T) {
			g := newTest(t, Config{Layout: bubbleLayout(2), SequenceStart: start}, nil)
			mustNext(t, g)
			time.Sleep(time.Second)
			var count [4]int
			for range 400 {
				time.Sleep(time.Millisecond)
				id := mustNext(t, g)
				count[id%4]++
				if next := mustNext(t, g); id%4 < 3 && next != id+1 {
					t.Fatalf("%v: the second ID of a tick = %d after %d; want one more", start, next, id)
				}
				time.Sleep(time.Millisecond) // out of the tick that the second ID may have gone on to
			}
			if count[0] == 0 || count[1] == 0 || count[2] == 0 || count[3] == 0 || start == Rotating && count != [4]int{100, 100, 100, 100} {
				t.Errorf("%v: beginnings %v; want all four used", start, count)
			}
		})
	}
}

// A start high in the tick leaves little of it, and must cost nothing at the full
// rate.
func TestSequenceStartsKeepTheFullRate(t *testing.T) {
	for _, rollback := range []Rollback{Continue, Backfill} {
		for _, start := range []SequenceStart{Random, Rotating} {
			synctest.Test(t, func(t *testing.T) {
				g := newTest(t, Config{Layout: bubbleLayout(4), Rollback: rollback, SequenceStart: start}, nil)
				for range 400 {
					mustNext(t, g)
				}
				began := time.Now()
				for range 16 * 1000 {
					mustNext(t, g)
				}
				if took := time.Since(began); took > 1001*time.Millisecond {
					t.Errorf("%v, %v: 16000 IDs at 16 per ms took %v; want 1s", rollback, start, took)
				}
			})
		}
	}
}
