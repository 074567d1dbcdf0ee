//go:build linux

package fire

import (
	"strings"
	"testing"
	"time"
)

// A verdict is a test that only remembers what it was told.
type verdict struct {
	testing.TB
	bad, skipped, failed bool
}

func (*verdict) Helper()                 {}
func (*verdict) Name() string            { return "TestOfATest" }
func (v *verdict) Failed() bool          { return v.bad }
func (v *verdict) Skip(...any)           { v.skipped = true }
func (v *verdict) Errorf(string, ...any) { v.failed = true }

func TestARunThatHasShownNothingIsNoPass(t *testing.T) {
	before := *lasts
	defer func() { *lasts = before }()
	for _, test := range []struct {
		lasts        time.Duration
		shown, bad   bool
		skips, fails bool
	}{
		{15 * time.Second, true, false, false, false},
		{15 * time.Second, false, false, true, false},
		{15 * time.Second, false, true, false, false}, // it has failed: that must not become a skip
		{time.Minute, true, false, false, false},
		{time.Minute, false, false, false, true},
	} {
		*lasts = test.lasts
		v := &verdict{bad: test.bad}
		Shown(v, test.shown, "%d takeovers", 3)
		if v.skipped != test.skips || v.failed != test.fails {
			t.Errorf("Shown(%t) after a run of %v that has failed: %t: skipped %t, failed %t; want %t, %t",
				test.shown, test.lasts, test.bad, v.skipped, v.failed, test.skips, test.fails)
		}
	}
	last := skipped[len(skipped)-1]
	skipped = skipped[:len(skipped)-1]
	if want := "TestOfATest: 15s is too short to prove anything: 3 takeovers"; !strings.HasPrefix(last, want) {
		t.Errorf("the list of what was skipped ends in %q; want %q", last, want)
	}
}
