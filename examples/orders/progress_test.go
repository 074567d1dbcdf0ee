package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"testing"
)

// A terminal is a writer that says it is one.
type terminal struct{ io.Writer }

func (terminal) Stat() (os.FileInfo, error) { return charDevice{}, nil }

type charDevice struct{ os.FileInfo }

func (charDevice) Mode() os.FileMode { return os.ModeDevice | os.ModeCharDevice }

// A stopper calls stop when a text is written.
type stopper struct {
	*bytes.Buffer
	at   string
	stop context.CancelFunc
}

func (s *stopper) Write(p []byte) (int, error) {
	if strings.Contains(string(p), s.at) {
		s.stop()
	}
	return s.Buffer.Write(p)
}

func TestProgressWritesAtMostOncePerPercent(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(terminal{&out}, 100_000)
	for i := range 100_000 {
		p.show(i + 1)
	}
	if got := strings.Count(out.String(), "\r"); got < 100 || got > 101 {
		t.Errorf("lines for 100000 orders = %d; want about 100", got)
	}
	if !strings.HasSuffix(out.String(), "\rwriting order 100000 of 100000") {
		t.Errorf("progress ends with %q; want the last order", out.String()[out.Len()-40:])
	}
}

func TestProgressOfNothingWritesNothing(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(terminal{&out}, 0)
	p.show(0)
	p.clear()
	if out.Len() > 0 {
		t.Errorf("progress = %q; want nothing", &out)
	}
}
