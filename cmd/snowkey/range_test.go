package main

import (
	"strings"
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
			from, until, err := readTime(text, time.Now().In(zone))
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
		if from, until, err := readTime(text, time.Now().In(zone)); err != nil || until.Sub(from).Hours() != hours {
			t.Errorf("readTime(%s) = %v, %v, %v; want %v hours", text, from, until, err, hours)
		}
	}
	for _, text := range []string{"2026-10-25T02", "2026-10-25T02:30", "2026-03-29T02", "2026-03-29T02:59:59.9"} {
		if from, until, err := readTime(text, time.Now().In(zone)); err == nil {
			t.Errorf("readTime(%s) = %v, %v; want an error", text, from, until)
		}
	}
	if from, _, err := readTime("2026-10-25T02:30:00+02:00", time.Now().In(zone)); err != nil || !from.Equal(time.Date(2026, 10, 25, 0, 30, 0, 0, time.UTC)) {
		t.Errorf("with its offset it is %v, %v", from, err)
	}
}

func TestDaysAndWeeksHaveNames(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 5, 5, 23, 30, 0, 0, time.UTC).In(zone) // Wednesday there, Tuesday in UTC
	for text, want := range map[string]string{
		"today": "2026-05-06", "Yesterday": "2026-05-05", "wednesday": "2026-05-06", "monday": "2026-05-04", "Thursday": "2026-04-30",
	} {
		from, until, err := readTime(text, now)
		day, end, _ := readTime(want, now)
		if err != nil || !from.Equal(day) || !until.Equal(end) {
			t.Errorf("readTime(%s) = %v, %v, %v; want the day %s", text, from, until, err, want)
		}
	}
	for text, want := range map[string]string{"2026-W19": "2026-05-04", "2026-w01": "2025-12-29", "2020-W53": "2020-12-28", "2026-W53": "2026-12-28"} {
		from, until, err := readTime(text, now)
		if err != nil || from.Format(time.DateOnly) != want || until.AddDate(0, 0, -7).Format(time.DateOnly) != want {
			t.Errorf("readTime(%s) = %v, %v, %v; want the seven days from %s on", text, from, until, err, want)
		}
	}
	for _, text := range []string{"2025-W53", "2026-W00", "2026-W54", "tomorrow", "mon"} {
		if from, _, err := readTime(text, now); err == nil {
			t.Errorf("readTime(%s) = %v; want an error", text, from)
		}
	}
	for text, want := range map[string]string{"2026-13": "month out of range", "2026-02-30": "day out of range", "2026-05-04T24:00": "hour out of range"} {
		if _, _, err := readTime(text, now); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("readTime(%s) = %v; want an error that says %q", text, err, want)
		}
	}
}
