package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/snowkey/snowkey/types"
)

// A screen shows what happens, and below it the table of the processes. On a
// terminal the table is drawn over and over in the same place; elsewhere it is
// written now and then. It is safe for concurrent use.
type screen struct {
	terminal bool
	begin    time.Time

	mu    sync.Mutex
	out   io.Writer
	table string // as it stands on the terminal
	err   error  // of the first write that failed
}

func newScreen(out io.Writer) *screen {
	return &screen{out: out, terminal: isTerminal(out), begin: time.Now()}
}

// isTerminal reports whether out is a character device: a terminal, and not a
// pipe or a file. (/dev/null is one too, which does no harm.)
func isTerminal(out io.Writer) bool {
	file, ok := out.(interface{ Stat() (os.FileInfo, error) })
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

const (
	eraseBelow = "\x1b[J"
	noWrap     = "\x1b[?7l" // a line that is too long is cut, and stays one line
	wrap       = "\x1b[?7h"
)

// say writes a line above the table. Further lines of the text stand below its first,
// and so does what does not fit into 79 columns.
func (s *screen) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := strings.ReplaceAll(fold(fmt.Sprintf(format, args...), 70), "\n", "\n         ")
	s.write(s.home() + fmt.Sprintf("%5.1f s  %s\n", time.Since(s.begin).Seconds(), text) + s.draw())
}

// fold breaks lines that are longer than width bytes at spaces.
func fold(text string, width int) string {
	var b strings.Builder
	for i, line := range strings.Split(text, "\n") {
		if i > 0 {
			b.WriteByte('\n')
		}
		column := 0
		for j, word := range strings.Split(line, " ") {
			switch {
			case j == 0:
			case column+1+len(word) > width:
				b.WriteByte('\n')
				column = 0
			default:
				b.WriteByte(' ')
				column++
			}
			b.WriteString(word)
			column += len(word)
		}
	}
	return b.String()
}

// show replaces the table.
func (s *screen) show(table string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	home := s.home()
	s.table = table
	if s.terminal {
		s.write(home + s.draw())
	} else {
		s.write("\n" + table + "\n")
	}
}

// home returns what brings the cursor to the first line of the table and erases
// it. It requires mu.
func (s *screen) home() string {
	n := strings.Count(s.table, "\n")
	if !s.terminal || n == 0 {
		return ""
	}
	return fmt.Sprintf("\r\x1b[%dA", n) + eraseBelow
}

// draw returns what writes the table. It requires mu.
func (s *screen) draw() string {
	if !s.terminal || s.table == "" {
		return ""
	}
	return noWrap + s.table + wrap
}

// write keeps the first error. It requires mu.
func (s *screen) write(text string) {
	if _, err := io.WriteString(s.out, text); s.err == nil {
		s.err = err
	}
}

// leave ends the table, which stays where it is, and returns the first error.
func (s *screen) leave() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.table = ""
	return s.err
}

// keep shows the table of c until ctx ends, and once more then.
func (s *screen) keep(ctx context.Context, c *cluster, every time.Duration) {
	for {
		err := sleep(ctx, every)
		s.show(table(c.lines(), time.Now()))
		if err != nil {
			return
		}
	}
}

// table returns the lines as text, and below them what the greatest ID says.
func table(lines []line, now time.Time) string {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "replica\tpid\tstate\tworker\tepoch\treserved\tIDs\tlast ID")
	var greatest types.Snowflake
	for _, l := range lines {
		worker, epoch, ahead := "-", "-", "-"
		if l.holds {
			worker, epoch = fmt.Sprint(l.now.Worker), fmt.Sprint(l.now.Epoch)
			ahead = "over"
			if d := l.now.Until.Time().Sub(now); d > 0 {
				ahead = seconds(d)
			}
		}
		id := "-"
		if l.last != 0 {
			id = l.last.String()
		}
		greatest = max(greatest, l.last)
		_, _ = fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\t%d\t%s\n", l.name, l.pid, l.state, worker, epoch, ahead, l.count, id)
	}
	_ = w.Flush() // neither it nor what is written to it fails
	if greatest != 0 {
		fmt.Fprintf(&b, "%d = %s\n", greatest, decoded(greatest))
	}
	return b.String()
}

// decoded returns what an ID says.
func decoded(id types.Snowflake) string {
	p := layout.Parts(id)
	return fmt.Sprintf("%s UTC, worker %d, sequence %d", p.Time.UTC().Format("15:04:05.000"), p.Worker, p.Sequence)
}
