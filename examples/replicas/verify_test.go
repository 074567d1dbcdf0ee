package main

import (
	"strings"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/types"
)

var noon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// ms returns the moment n milliseconds after noon.
func ms(n int) leasestore.Millis { return leasestore.MillisOf(noon) + leasestore.Millis(n) }

// id returns the ID of a worker in a millisecond after noon.
func id(t *testing.T, worker int64, n int) types.Snowflake {
	t.Helper()
	id, err := layout.Compose(core.Parts{Time: ms(n).Time(), Worker: worker})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// taleOf returns two processes that had worker number 7 one after the other, and
// their rows. The first was killed.
func taleOf(t *testing.T) (first, second *process, rows []row) {
	first = &process{
		name: "r1", pid: 11, state: killed,
		reservations: []reservation{{Worker: 7, Epoch: 1, From: ms(0), Until: ms(100)}},
		ids:          []types.Snowflake{id(t, 7, 0), id(t, 7, 99)},
	}
	second = &process{
		name: "r2", pid: 12, state: ended,
		reservations: []reservation{
			{Worker: 3, Epoch: 5, From: ms(0), Until: ms(50)},
			{Worker: 7, Epoch: 2, From: ms(100), Until: ms(200)},
		},
		ids: []types.Snowflake{id(t, 3, 49), id(t, 7, 100)},
	}
	return first, second, []row{
		{id(t, 7, 0), "r1", 11},
		{id(t, 3, 49), "r2", 12},
		{id(t, 7, 99), "r1", 11},
		{id(t, 7, 100), "r2", 12},
	}
}

func TestVerifyAcceptsWhatIsRight(t *testing.T) {
	first, second, rows := taleOf(t)
	rows = append(rows, row{id(t, 7, 50), "r1", 11}) // which r1 was killed too early to report
	got, err := verify([]*process{first, second}, rows)
	if err != nil {
		t.Fatalf("verify() = %v; want nil", err)
	}
	if got.processes != 2 || got.reported != 4 || got.rows != 5 || got.unreported != 1 || got.workers != 2 || got.reservations != 3 {
		t.Errorf("verify() = %+v; want 2 processes, 4 IDs, 5 rows, 1 unreported, 2 workers, 3 reservations", got)
	}
	want := succession{worker: 7, before: "r1", after: "r2", at: ms(100)}
	if len(got.shared) != 1 || got.shared[0] != want {
		t.Errorf("verify() finds the successions %+v; want %+v", got.shared, want)
	}
}

func TestVerifyFindsWhatIsWrong(t *testing.T) {
	for _, test := range []struct {
		name  string
		spoil func(first, second *process, rows []row) []row
		want  string
	}{
		{"an ID of two processes", func(first, second *process, rows []row) []row {
			second.ids[1] = first.ids[1]
			return rows
		}, "was made twice: by r1 (pid 11) and by r2 (pid 12)"},
		{"an ID twice of one process", func(_, second *process, rows []row) []row {
			second.ids = append(second.ids, second.ids[0])
			return rows
		}, "was made twice: by r2 (pid 12) and by r2 (pid 12)"},
		{"a row that is gone", func(_, _ *process, rows []row) []row {
			return rows[:3]
		}, "which r2 (pid 12) reported, is not in the database"},
		{"a row that is there twice", func(_, _ *process, rows []row) []row {
			return append(rows, rows[1])
		}, "is in the database twice"},
		{"a row that its living process did not report", func(_, _ *process, rows []row) []row {
			return append(rows, row{id(t, 7, 150), "r2", 12})
		}, "is of r2 (pid 12), which did not report it"},
		{"a row of a stranger", func(_, _ *process, rows []row) []row {
			rows[0].pid = 13
			return rows
		}, "is of r1 (pid 13), which is no process of this run"},
		{"a row under another's name", func(_, _ *process, rows []row) []row {
			rows[0].replica = "r2"
			return rows
		}, "is of r2 (pid 11), which is no process of this run"},
		{"a row of another process than the one that reported it", func(_, _ *process, rows []row) []row {
			rows[0].replica, rows[0].pid = "r2", 12
			return rows
		}, "is of r2 (pid 12), and was reported by r1 (pid 11)"},
		{"an ID at the limit", func(first, _ *process, rows []row) []row {
			first.reservations[0].Until = ms(99)
			return rows
		}, "(12:00:00.099 UTC, worker 7, sequence 0) of r1 (pid 11) is in none of its reservations"},
		{"an ID before the beginning", func(_, second *process, rows []row) []row {
			second.reservations[1].From = ms(101)
			return rows
		}, "(12:00:00.100 UTC, worker 7, sequence 0) of r2 (pid 12) is in none of its reservations"},
		{"an ID of a worker number that the process did not have", func(_, second *process, rows []row) []row {
			second.reservations[0].Worker = 4
			return rows
		}, "(12:00:00.049 UTC, worker 3, sequence 0) of r2 (pid 12) is in none of its reservations"},
		{"reservations that overlap", func(_, second *process, rows []row) []row {
			second.reservations[1].From = ms(99)
			return rows
		}, "worker number 7 was reserved twice from 12:00:00.099 to 12:00:00.100: for r1 (pid 11) and for r2 (pid 12)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			first, second, rows := taleOf(t)
			rows = test.spoil(first, second, rows)
			got, err := verify([]*process{first, second}, rows)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("verify() = %+v, %v; want an error with %q", got, err, test.want)
			}
		})
	}
}

func TestSummaryMentionsOnlyWhatThereWas(t *testing.T) {
	var out strings.Builder
	if err := (&proof{processes: 2, rows: 4, reported: 4, workers: 2, reservations: 2}).print(&out, time.Second); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{"No ID repeats": true, "rows more": false, "for times before": false} {
		if strings.Contains(out.String(), text) != want {
			t.Errorf("print() = %q; want %q in it: %v", out.String(), text, want)
		}
	}
}
