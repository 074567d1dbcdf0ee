//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package filelease

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core/lease"
)

// The test binary runs itself as the processes that share a directory: with this
// variable set it does what it names and does not run tests.
const (
	roleVariable = "FILELEASE_TEST_ROLE"
	dirVariable  = "FILELEASE_TEST_DIR"
)

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "":
		os.Exit(m.Run())
	case "hold":
		holdARow(os.Getenv(dirVariable))
	case "work":
		workOnRows(os.Getenv(dirVariable))
	}
}

// start starts a process in a role, and returns it with its output.
func start(t *testing.T, role, dir string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"="+role, dirVariable+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewReader(out)
}

// kill kills a process, which may do nothing about it, and waits for its end.
func kill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	_ = cmd.Wait()
}

func mustOpen(dir string) *Store {
	s, err := New(dir, Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	return s
}

// holdARow claims a row, says up to when, and waits to be killed.
func holdARow(dir string) {
	reply, err := mustOpen(dir).Claim(context.Background(), newClaim(1))
	fmt.Println(int64(reply.Row.Until), err)
	select {}
}

func TestARowIsFreeAtOnceWhenItsProcessIsKilled(t *testing.T) {
	dir := t.TempDir()
	s := newStore(t, dir, Config{})
	cmd, out := start(t, "hold", dir)
	defer kill(t, cmd)
	var until lease.Millis
	line, err := out.ReadString('\n')
	if n, scanErr := fmt.Sscanf(line, "%d <nil>", &until); n != 1 {
		t.Fatalf("the process said %q, error %v, %v; want the limit of its row", line, err, scanErr)
	}
	if _, err := s.Claim(t.Context(), newClaim(1)); !errors.Is(err, lease.ErrNoFreeWorker) {
		t.Fatalf("Claim while the process lives = error %v; want %v", err, lease.ErrNoFreeWorker)
	}
	kill(t, cmd)
	c := newClaim(1)
	if got := mustClaim(t, s, c); c.From(got) < until {
		t.Errorf("Claim after the kill begins at %d; want %d or later", c.From(got), until)
	}
}

// workOnRows claims, renews and releases until it is killed. Before it would use a
// range of time it writes that to a file of its own, and before it releases where
// it ends: what is in the files is what may have become IDs.
func workOnRows(dir string) {
	s := mustOpen(dir)
	log, err := os.OpenFile(filepath.Join(dir, fmt.Sprintf("log-%d", os.Getpid())), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o666)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	ctx := context.Background()
	unexpected := func(what string, err error) {
		_, _ = fmt.Fprintf(log, "unexpected: %s: %v\n", what, err)
		os.Exit(1)
	}
	for {
		c := newClaim(3)
		c.Window = lease.Millis(100 + rand.IntN(400))
		if rand.IntN(2) == 0 {
			c.Skew = 50 // so that rows are taken over when they expire, too
		}
		reply, err := s.Claim(ctx, c)
		if errors.Is(err, lease.ErrNoFreeWorker) {
			time.Sleep(time.Millisecond)
			continue
		}
		if err != nil {
			unexpected("Claim", err)
		}
		from := c.From(reply)
		_, _ = fmt.Fprintf(log, "range %d %d %s %d %d\n", reply.Row.Worker, reply.Row.Epoch, c.Owner, from, reply.Row.Until)
		alive := true
		for range rand.IntN(20) {
			r := renewalOf(c, reply)
			next, err := s.Renew(ctx, r)
			if errors.Is(err, lease.ErrLost) {
				alive = false
				break
			}
			if err != nil {
				unexpected("Renew", err)
			}
			if next.Row.Until < reply.Row.Until || next.Before < reply.Row.Until {
				unexpected("Renew", fmt.Errorf("limit %d, before %d, fell from %d", next.Row.Until, next.Before, reply.Row.Until))
			}
			reply = next
			_, _ = fmt.Fprintf(log, "range %d %d %s %d %d\n", reply.Row.Worker, reply.Row.Epoch, c.Owner, from, reply.Row.Until)
			if rand.IntN(4) == 0 {
				time.Sleep(time.Duration(rand.IntN(5)) * time.Millisecond)
			}
		}
		if !alive || rand.IntN(4) == 0 {
			continue // abandoned
		}
		r := releaseOf(c, reply)
		r.End = from + lease.Millis(rand.Int64N(int64(reply.Row.Until-from)+1))
		_, _ = fmt.Fprintf(log, "end %d %d %s %d 0\n", reply.Row.Worker, reply.Row.Epoch, c.Owner, r.End)
		if err := s.Release(ctx, r); err != nil && !errors.Is(err, lease.ErrLost) {
			unexpected("Release", err)
		}
	}
}

// A span is what one lease may have used of a worker's time.
type span struct {
	worker, epoch int64
	owner         string
	from, until   int64
}

func TestProcessesThatAreKilledNeverShareATime(t *testing.T) {
	dir := t.TempDir()
	const processes = 5
	deadline := time.Now().Add(4 * time.Second)
	if testing.Short() {
		deadline = time.Now().Add(time.Second)
	}
	var running []*exec.Cmd
	defer func() {
		for _, cmd := range running {
			kill(t, cmd)
		}
	}()
	kills := 0
	for time.Now().Before(deadline) {
		for len(running) < processes {
			cmd, _ := start(t, "work", dir)
			running = append(running, cmd)
		}
		time.Sleep(time.Duration(20+rand.IntN(60)) * time.Millisecond)
		i := rand.IntN(len(running))
		kill(t, running[i])
		running = slices.Delete(running, i, i+1)
		kills++
	}
	for _, cmd := range running {
		kill(t, cmd)
	}
	running = nil

	spans := map[string]*span{}
	logs, err := filepath.Glob(filepath.Join(dir, "log-*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range logs {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			if strings.HasPrefix(line, "unexpected") {
				t.Errorf("%s", line)
				continue
			}
			var what string
			var s span
			if n, _ := fmt.Sscanf(line, "%s %d %d %s %d %d", &what, &s.worker, &s.epoch, &s.owner, &s.from, &s.until); n != 6 {
				continue // the process was killed in the middle of it, before it used that
			}
			switch known := spans[s.owner]; {
			case what == "end": // the IDs end there
				known.until = s.from
			case known == nil:
				spans[s.owner] = &s
			default:
				known.until = s.until
			}
		}
	}
	all := make([]*span, 0, len(spans))
	for _, s := range spans {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *span) int {
		return cmp.Or(cmp.Compare(a.worker, b.worker), cmp.Compare(a.epoch, b.epoch))
	})
	for i, s := range all[1:] {
		before := all[i]
		if before.worker == s.worker && (before.epoch == s.epoch || before.until > s.from) {
			t.Errorf("two leases share a time, or an epoch: %+v and %+v", *before, *s)
		}
	}

	// And the rows are sound.
	store := newStore(t, dir, Config{})
	rows, _, err := store.Rows(t.Context(), newClaim(3).Space)
	if len(rows) != 3 || err != nil {
		t.Fatalf("Rows = %+v, error %v; want 3", rows, err)
	}
	for _, s := range all {
		if row := rows[s.worker]; row.Epoch < s.epoch || int64(row.Until) < s.until {
			t.Errorf("row %+v is behind the lease %+v", row, *s)
		}
	}
	if len(all) < 3 {
		t.Errorf("leases = %d; want some", len(all))
	}
	t.Logf("%d leases of %d processes, %d kills", len(all), len(logs), kills)
}
