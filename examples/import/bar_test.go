package main

import (
	"bytes"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// A terminal is a writer that says it is one.
type terminal struct{ io.Writer }

func (terminal) Stat() (os.FileInfo, error) { return charDevice{}, nil }

type charDevice struct{ os.FileInfo }

func (charDevice) Mode() os.FileMode { return os.ModeDevice | os.ModeCharDevice }

// show plays a load: a batch of 1000 rows every 60 ms, which is faster than the bar
// is drawn. In the middle it begins anew, as after a busy database.
func show(b *bar, clock *time.Time) {
	wait := func(d time.Duration) { *clock = clock.Add(d) }
	b.begin(8000)
	wait(60 * time.Millisecond)
	b.advance("orders", 1000, 1000)
	wait(60 * time.Millisecond)
	b.advance("orders", 1000, 2000)
	b.begin(8000)
	for read := int64(1000); read <= 8000; read += 1000 {
		wait(60 * time.Millisecond)
		table := "orders"
		if read > 3000 {
			table = "order_lines"
		}
		b.advance(table, 1000, read)
	}
	b.note("indexes")
	b.clear()
	b.clear()
}

func TestTheBarIsDrawnOverAndOverOnATerminal(t *testing.T) {
	var out bytes.Buffer
	clock := time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)
	show(newBar(terminal{&out}, func() time.Time { return clock }), &clock)
	const on, off = "\x1b[?7l", "\x1b[?7h" // cut what is too wide
	golden := strings.Join([]string{
		on + "\rorders       [##                  ]   12 %  1,000 rows  16,666 rows/s\x1b[K" + off,
		"\r\x1b[K", // begins anew
		on + "\rorders       [##                  ]   12 %  1,000 rows  16,666 rows/s\x1b[K" + off,
		on + "\rorders       [#######             ]   37 %  3,000 rows  16,666 rows/s\x1b[K" + off,
		on + "\rorder_lines  [############        ]   62 %  5,000 rows  16,666 rows/s\x1b[K" + off,
		on + "\rorder_lines  [#################   ]   87 %  7,000 rows  16,666 rows/s\x1b[K" + off,
		on + "\rorder_lines  [####################]  100 %  8,000 rows  16,666 rows/s\x1b[K" + off,
		on + "\rindexes …\x1b[K" + off,
		"\r\x1b[K",
	}, "")
	if got := out.String(); got != golden {
		t.Errorf("bar =\n%s\nwant\n%s", lines(got), lines(golden))
	}
}

func lines(drawn string) string { return strings.ReplaceAll(drawn, "\r", "\n") }

func TestTheBarFitsInATerminalOf80Columns(t *testing.T) {
	var out bytes.Buffer
	clock := time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)
	b := newBar(terminal{&out}, func() time.Time { return clock })
	b.begin(1)
	clock = clock.Add(1000 * time.Second)
	b.advance("order_lines", 999_999_999, 1)
	line := regexp.MustCompile(`\x1b\[[0-9?]*[a-zA-Z]|\r`).ReplaceAllString(out.String(), "")
	if want := "999,999,999 rows  999,999 rows/s"; !strings.HasSuffix(line, want) || len(line) > 79 {
		t.Errorf("bar = %q of %d columns; want one that ends with %q and has 79 at most", line, len(line), want)
	}
}

func TestALogGetsALineForEveryTenth(t *testing.T) {
	var out bytes.Buffer
	clock := time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)
	show(newBar(&out, func() time.Time { return clock }), &clock)
	const golden = `orders        12 %  1,000 rows  16,666 rows/s
orders        25 %  2,000 rows  16,666 rows/s
orders        12 %  1,000 rows  16,666 rows/s
orders        25 %  2,000 rows  16,666 rows/s
orders        37 %  3,000 rows  16,666 rows/s
order_lines   50 %  4,000 rows  16,666 rows/s
order_lines   62 %  5,000 rows  16,666 rows/s
order_lines   75 %  6,000 rows  16,666 rows/s
order_lines   87 %  7,000 rows  16,666 rows/s
order_lines  100 %  8,000 rows  16,666 rows/s
`
	if got := out.String(); got != golden {
		t.Errorf("lines =\n%s\nwant\n%s", got, golden)
	}
	out.Reset()
	b := newBar(&out, func() time.Time { return clock })
	b.begin(1000)
	for read := range int64(1000) {
		b.advance("orders", 1, read+1)
	}
	if got := strings.Count(out.String(), "\n"); got != 10 {
		t.Errorf("lines for 1000 batches = %d; want 10", got)
	}
}

func TestFilesWithoutASizeAreNoProblem(t *testing.T) {
	var out bytes.Buffer
	clock := time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)
	b := newBar(terminal{&out}, func() time.Time { return clock })
	b.begin(0)
	b.advance("orders", 1234567, 10)
	want := "\rorders       [####################]  100 %  1,234,567 rows  - rows/s\x1b[K"
	if got := out.String(); !strings.Contains(got, want) {
		t.Errorf("bar = %q; want %q", got, want)
	}
}

func TestTheReportSaysRowsPerSecondPerTableAndInAll(t *testing.T) {
	var out bytes.Buffer
	err := printReport(&out, "data", "import.db", []step{
		{"customers", 1000, 0},
		{"order_lines", 1234567, 2500 * time.Millisecond},
		{"indexes", 0, 400 * time.Millisecond},
	}, 3*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	const golden = `Loaded data into import.db, in one transaction:

                      rows   seconds    rows/s
     customers       1,000      0.00         -
   order_lines   1,234,567      2.50   493,826
       indexes                  0.40          
        in all   1,235,567      3.00   411,855
`
	if got := out.String(); got != golden {
		t.Errorf("report =\n%s\nwant\n%s", got, golden)
	}
}
