package main

import (
	"testing"
	"time"
)

func TestDaysFollowEachOtherWhateverClocksDo(t *testing.T) {
	for _, name := range []string{"UTC", "Europe/Berlin", "America/Havana", "America/Sao_Paulo", "Asia/Beirut", "Africa/Cairo", "Pacific/Apia", "Australia/Lord_Howe", "Asia/Kathmandu"} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		var last time.Time
		for day := time.Date(2011, 1, 1, 0, 0, 0, 0, time.UTC); day.Year() < 2028; day = day.AddDate(0, 0, 1) {
			text := day.Format(time.DateOnly)
			from, until, err := readTime(text, zone)
			if err != nil || !last.IsZero() && !from.Equal(last) {
				t.Fatalf("%s in %s begins at %v, %v; want %v, the end of the day before", text, name, from, err, last)
			}
			if shown := from.Format(time.DateOnly); from.Before(until) && shown != text {
				t.Errorf("%s in %s begins at %v", text, name, from)
			}
			if before := from.Add(-1).Format(time.DateOnly); before >= text {
				t.Errorf("%s in %s begins at %v, a moment after %s", text, name, from, before)
			}
			last = until
		}
	}
}

func TestATimeThatClocksShowTwiceOrNeverIsRefused(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for text, hours := range map[string]float64{
		"2026-03-29": 23, "2026-10-25": 25, "2026-05-04": 24, "2026-02": 28 * 24, "2026-03": 31*24 - 1, "2026": 365 * 24, "2026-03-29T01": 1,
		"2026-10-25T01": 1, "2026-10-25T03": 1, "2026-10-25 04": 1,
	} {
		if from, until, err := readTime(text, zone); err != nil || until.Sub(from).Hours() != hours {
			t.Errorf("readTime(%s) = %v, %v, %v; want %v hours", text, from, until, err, hours)
		}
	}
	for _, text := range []string{"2026-10-25T02", "2026-10-25T02:30", "2026-03-29T02", "2026-03-29T02:59:59.9"} {
		if from, until, err := readTime(text, zone); err == nil {
			t.Errorf("readTime(%s) = %v, %v; want an error", text, from, until)
		}
	}
	if from, _, err := readTime("2026-10-25T02:30:00+02:00", zone); err != nil || !from.Equal(time.Date(2026, 10, 25, 0, 30, 0, 0, time.UTC)) {
		t.Errorf("with its offset it is %v, %v", from, err)
	}
}
