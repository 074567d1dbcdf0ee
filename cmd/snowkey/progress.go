package main

import (
	"fmt"
	"os"
	"time"
)

// A progress shows on standard error how far long work is, if that is a terminal, and not before
// a second has passed.
type progress struct {
	of    int64
	what  string
	next  time.Time
	shown bool
}

func newProgress(of int64, what string) *progress {
	return &progress{of: of, what: what, next: time.Now().Add(time.Second)}
}

func (p *progress) show(done int64) {
	if time.Now().After(p.next) && isTerminal(os.Stderr) {
		p.next, p.shown = time.Now().Add(time.Second), true
		_, _ = fmt.Fprintf(os.Stderr, "\r%d of %d %s, %.0f %%", done, p.of, p.what, float64(done)/float64(p.of)*100)
	}
}

// clear removes what is shown.
func (p *progress) clear() {
	if p.shown {
		p.shown = false
		_, _ = fmt.Fprint(os.Stderr, "\r\x1b[K")
	}
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	null, _ := os.Stat(os.DevNull)
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && !os.SameFile(info, null)
}
