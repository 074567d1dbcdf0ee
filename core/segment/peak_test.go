package segment

import (
	"testing"
	"time"
)

func TestThePeakIsHalvedEvery15Minutes(t *testing.T) {
	var p peak
	start := time.Now()
	p.add(start, 1000)
	for _, c := range []struct {
		after time.Duration
		add   float64
		want  float64
	}{
		{0, 500, 1000},
		{15*time.Minute - 1, 0, 1000},
		{15 * time.Minute, 0, 500},
		{29 * time.Minute, 0, 500},
		{30 * time.Minute, 0, 250},
		{31 * time.Minute, 300, 300},
		{46*time.Minute - 1, 0, 300},
		{46 * time.Minute, 0, 150},
		{1000 * time.Hour, 0, 0},
	} {
		if p.add(start.Add(c.after), c.add); p.value != c.want {
			t.Errorf("after %v and %v the peak is %v; want %v", c.after, c.add, p.value, c.want)
		}
	}
}
