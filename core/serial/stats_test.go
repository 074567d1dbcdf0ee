package serial

import (
	"errors"
	"testing"
)

func TestStatsOfACounterAreOfItsLatestPeriod(t *testing.T) {
	m := new(memory)
	c := counter(t, m, daily, 10)
	if got, want := c.Stats(), (Stats{Series: daily.Name, Last: 9999}); got != want {
		t.Errorf("Stats before the first call = %+v; want %+v", got, want)
	}
	for i, d := range []int{1, 1, 2, 1} { // one block of each day
		if _, err := c.Next(t.Context(), day(d)); err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
	}
	want := Stats{Series: daily.Name, Period: "20261102", Held: 7 + 9, Max: 10, Last: 9999, Fetches: 2}
	if got := c.Stats(); got != want {
		t.Errorf("Stats with blocks of two days = %+v; want %+v", got, want)
	}
	m.failure = errors.New("away")
	for range 3 {
		if _, err := c.Next(t.Context(), day(3)); !errors.Is(err, m.failure) {
			t.Fatalf("Next = %v; want %v", err, m.failure)
		}
	}
	want.Failures = 3
	if got := c.Stats(); got != want {
		t.Errorf("Stats after three failures = %+v; want %+v", got, want)
	}
}
