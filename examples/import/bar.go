package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/snowkey/snowkey/examples/internal/csvload"
)

// A bar shows how far a load is. On a terminal it is one line that is drawn over
// and over. Elsewhere, as in a log, it is a plain line for every tenth of the work.
type bar struct {
	out      io.Writer
	terminal bool
	now      func() time.Time

	total int64 // bytes of all files
	start time.Time
	drawn time.Time // the last time; zero, long ago, if there is nothing to clear
	tenth int64     // the last that had its line
	rows  int       // since start
}

func newBar(out io.Writer, now func() time.Time) *bar {
	return &bar{out: out, terminal: csvload.IsTerminal(out), now: now}
}

// begin starts from nothing. total is how many bytes there are to read.
func (b *bar) begin(total int64) {
	b.clear()
	b.total, b.start, b.tenth, b.rows = total, b.now(), 0, 0
}

const (
	// A line of 80 columns has room for a bar of 20, a thousand million rows and a
	// million of them per second.
	barWidth = 20
	// redraw is how long a drawn bar stays. Ten times a second looks smooth.
	redraw = 100 * time.Millisecond

	noWrap = "\x1b[?7l" // a narrow terminal cuts the line, and can still draw over it
	wrap   = "\x1b[?7h"
)

// advance adds rows to the count. read is how many bytes of all files are read.
func (b *bar) advance(table string, rows int, read int64) {
	b.rows += rows
	done := int64(100)
	if read < b.total { // not for a file that grows, or has no size, as a pipe
		done = read * 100 / b.total
	}
	now := b.now()
	text := fmt.Sprintf("%3d %%  %s rows  %s rows/s", done, thousands(int64(b.rows)), perSecond(b.rows, now.Sub(b.start)))
	switch {
	case b.terminal && (now.Sub(b.drawn) >= redraw || done == 100):
		b.drawn = now
		full := strings.Repeat("#", int(done*barWidth/100))
		b.write(noWrap+"\r%-11s  [%-*s]  %s\x1b[K"+wrap, table, barWidth, full, text)
	case !b.terminal && done/10 > b.tenth:
		b.tenth = done / 10
		b.write("%-11s  %s\n", table, text)
	}
}

// note says what is going on when no rows are.
func (b *bar) note(what string) {
	if b.terminal {
		b.drawn = b.now()
		b.write(noWrap+"\r%s …\x1b[K"+wrap, what)
	}
}

// clear removes the bar, so that what follows starts on an empty line.
func (b *bar) clear() {
	if !b.drawn.IsZero() {
		b.drawn = time.Time{}
		b.write("\r\x1b[K") // return, erase to the end of the line
	}
}

// write ignores errors: a load does not fail because its progress cannot be
// shown.
func (b *bar) write(format string, args ...any) { _, _ = fmt.Fprintf(b.out, format, args...) }

// perSecond is a rate as text, "-" where the clock has not moved.
func perSecond(rows int, took time.Duration) string {
	if took <= 0 {
		return "-"
	}
	return thousands(int64(float64(rows) / took.Seconds()))
}

// thousands writes 1234567 as 1,234,567.
func thousands(n int64) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
