package main

import (
	"testing"
	"testing/synctest"
	"time"

	bwmarrin "github.com/bwmarrin/snowflake"
	"github.com/sony/sonyflake/v2"
)

// Two processes that have one worker number at one time, or one after the other with a step
// back of the clock between: no generator remembers what another process has issued.
func TestTwoProcessesWithOneWorkerNumberMakeEqualKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)))
		for name, start := range map[string]func(worker int) func() (int64, error){
			"bwmarrin/snowflake": func(worker int) func() (int64, error) {
				n, err := bwmarrin.NewNode(int64(worker))
				must(t, err)
				return func() (int64, error) { return n.Generate().Int64(), nil }
			},
			"sony/sonyflake": func(worker int) func() (int64, error) {
				s, err := sonyflake.New(sonyflake.Settings{MachineID: func() (int, error) { return worker, nil }})
				must(t, err)
				return s.NextID
			},
		} {
			first := func(worker int) int64 {
				id, err := start(worker)()
				if err != nil {
					t.Fatal(name, err)
				}
				return id
			}
			if a, b := first(1), first(1); a != b {
				t.Errorf("%s: two processes with one number begin with %d and %d; want one key twice", name, a, b)
			}
			if a, b := first(2), first(3); a == b {
				t.Errorf("%s: two processes with two numbers begin with %d both; want two keys", name, a)
			}
		}
	})
}
