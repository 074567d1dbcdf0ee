package main

import (
	"bytes"
	"errors"
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

func TestTableIsDrawnInPlaceOnATerminal(t *testing.T) {
	var out bytes.Buffer
	s := newScreen(terminal{&out})
	s.show("a\nb\n")
	s.show("c\nd\n")
	s.say("news of %s", "r1")
	const drawn = noWrap + "c\nd\n" + wrap
	got := out.String()
	if want := noWrap + "a\nb\n" + wrap + "\r\x1b[2A" + eraseBelow + drawn; !strings.HasPrefix(got, want) {
		t.Errorf("two tables are written as %q; want %q", got, want)
	}
	if want := "s  news of r1\n" + drawn; !strings.HasSuffix(got, want) {
		t.Errorf("a line is written as %q; want %q at the end: above the table", got, want)
	}
}

func TestTheTableFitsInATerminalOf80Columns(t *testing.T) {
	last := id(t, 1023, 42) + 4095
	for _, s := range []state{restarted, resumed} {
		wantNarrow(t, table([]line{{name: "r17", pid: 4194304, state: s, holds: true,
			now: reservation{Worker: 1023, Epoch: 10, Until: ms(599_900)}, count: 12_000, last: last}}, noon))
	}
}

func TestALongLineGoesOnBelowItsBegin(t *testing.T) {
	var out bytes.Buffer
	newScreen(&out).say("r1\nand r2")
	if want := "  0.0 s  r1\n         and r2\n"; out.String() != want {
		t.Errorf("written: %q; want %q", &out, want)
	}
}

func TestTableLeavesNoControlCharactersElsewhere(t *testing.T) {
	var out bytes.Buffer
	s := newScreen(&out)
	s.show("a\nb\n")
	s.say("news")
	s.show("c\nd\n")
	if err := s.leave(); err != nil || strings.ContainsAny(out.String(), "\r\x1b") {
		t.Errorf("written to a pipe: %q, %v; want plain lines", &out, err)
	}
}

func TestScreenReportsAWriteThatFailed(t *testing.T) {
	s := newScreen(broken{})
	s.say("news")
	if err := s.leave(); !errors.Is(err, errBroken) {
		t.Errorf("leave() = %v; want %v", err, errBroken)
	}
}

var errBroken = errors.New("broken")

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errBroken }

func TestTableShowsAReservationThatIsOver(t *testing.T) {
	last := id(t, 7, 42)
	lines := []line{
		{name: "r1", pid: 1, state: running, holds: true, now: reservation{Worker: 7, Epoch: 3, Until: ms(2500)}, count: 20, last: last},
		{name: "r2", pid: 2, state: killed, holds: true, now: reservation{Worker: 8, Epoch: 1, Until: ms(0)}},
		{name: "r3", pid: 3, state: starting},
	}
	got := strings.Split(table(lines, noon), "\n")
	for i, want := range []string{
		"r1 1 running 7 3 2.5 s 20 " + last.String(),
		"r2 2 killed 8 1 over 0 -",
		"r3 3 starting - - - 0 -",
		last.String() + " = 12:00:00.042 UTC, worker 7, sequence 0",
	} {
		if line := strings.Join(strings.Fields(got[i+1]), " "); line != want {
			t.Errorf("table() has the line %q; want %q", line, want)
		}
	}
}

func TestLongLinesAreFoldedAtSpaces(t *testing.T) {
	for text, want := range map[string]string{
		"one two three four\nfive": "one two\nthree\nfour\nfive",
		"seventeen letters":        "seventeen\nletters",
		"short":                    "short",
		"exactly8":                 "exactly8",
		"exactly8 and more":        "exactly8\nand more",
	} {
		if got := fold(text, 8); got != want {
			t.Errorf("fold(%q, 8) = %q; want %q", text, got, want)
		}
	}
}
