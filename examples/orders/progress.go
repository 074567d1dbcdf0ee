package main

import (
	"fmt"
	"io"

	"github.com/snowkey/snowkey/examples/internal/csvload"
)

// A progress is a line that is written over and over on a terminal. Elsewhere it
// writes nothing.
type progress struct {
	out   io.Writer // nil: not a terminal
	total int
	shown int // percent; avoids a write per order when there are many
}

func newProgress(out io.Writer, total int) *progress {
	if !csvload.IsTerminal(out) {
		out = nil
	}
	return &progress{out: out, total: total, shown: -1}
}

// show says that done orders are written.
func (p *progress) show(done int) {
	if p.out == nil || p.total == 0 {
		return
	}
	if percent := done * 100 / p.total; percent != p.shown {
		p.shown = percent
		_, _ = fmt.Fprintf(p.out, "\rwriting order %d of %d", done, p.total)
	}
}

// clear removes the line, so that what follows starts on an empty one.
func (p *progress) clear() {
	if p.out != nil && p.shown >= 0 {
		p.shown = -1
		_, _ = fmt.Fprint(p.out, "\r\x1b[K") // return, erase to the end of the line
	}
}
