//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package filelease

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// The test binary runs itself as the processes that share a directory. With this variable set
// it plays the role that the variable names, instead of running tests.
const (
	roleVariable = "FILELEASE_TEST_ROLE"
	dirVariable  = "FILELEASE_TEST_DIR"
	seedVariable = "FILELEASE_TEST_SEED"
)

// processSeed determines when which process is killed and what each does, but not the outcome.
var (
	processSeed  = flag.Uint64("processes.seed", 1, "the seed of the choices of the test that kills processes")
	processKills = flag.Int("processes.kills", 15, "how many processes that test kills, and how many leases it wants")
)

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "":
		os.Exit(m.Run())
	case "hold":
		holdARow(os.Getenv(dirVariable))
	case "work":
		seed, err := strconv.ParseUint(os.Getenv(seedVariable), 10, 64)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		workOnRows(os.Getenv(dirVariable), rand.New(rand.NewPCG(seed, 0)))
	}
}

// start starts a process in a role, and returns it with its output.
func start(t *testing.T, role, dir string, seed uint64) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"="+role, dirVariable+"="+dir, fmt.Sprint(seedVariable, "=", seed))
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

// kill kills a process and waits for its end.
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

// holdARow claims a row, prints its limit and waits to be killed.
func holdARow(dir string) {
	reply, err := mustOpen(dir).Claim(context.Background(), newClaim(1))
	fmt.Println(int64(reply.Row.Until), err)
	time.Sleep(time.Hour) // not select {}, which Go reports as a deadlock
}

func TestARowIsFreeAtOnceWhenItsProcessIsKilled(t *testing.T) {
	dir := t.TempDir()
	s := newStore(t, dir, Config{})
	cmd, out := start(t, "hold", dir, 0)
	defer kill(t, cmd)
	var until leasestore.Millis
	line, err := out.ReadString('\n')
	if n, scanErr := fmt.Sscanf(line, "%d <nil>", &until); n != 1 {
		t.Fatalf("the process said %q, error %v, %v; want the limit of its row", line, err, scanErr)
	}
	if _, err := s.Claim(t.Context(), newClaim(1)); !errors.Is(err, leasestore.ErrNoFreeWorker) {
		t.Fatalf("Claim while the process lives = error %v; want %v", err, leasestore.ErrNoFreeWorker)
	}
	kill(t, cmd)
	if got := cmd.ProcessState.String(); got != "signal: killed" {
		t.Fatalf("the process has ended by itself: %s", got)
	}
	c := newClaim(1)
	if got := mustClaim(t, s, c); c.From(got) < until {
		t.Errorf("Claim after the kill begins at %d; want %d or later", c.From(got), until)
	}
}

// workOnRows claims, renews and releases until it is killed. Before it uses a range of time it
// writes the range to a file of its own, and before it releases it writes where the range ends,
// so the files cover everything that may have become an ID.
func workOnRows(dir string, random *rand.Rand) {
	s := mustOpen(dir)
	log, err := os.OpenFile(logFile(dir, os.Getpid()), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o666)
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
		c.Window = leasestore.Millis(100 + random.IntN(400))
		if random.IntN(2) == 0 {
			c.Skew = 50 // so that rows are also taken over when they expire
		}
		reply, err := s.Claim(ctx, c)
		if errors.Is(err, leasestore.ErrClockSkew) {
			continue // on a busy machine the process was delayed after reading the clock
		}
		if errors.Is(err, leasestore.ErrNoFreeWorker) {
			time.Sleep(time.Millisecond)
			continue
		}
		if err != nil {
			unexpected("Claim", err)
		}
		from := c.From(reply)
		_, _ = fmt.Fprintf(log, "range %d %d %s %d %d\n", reply.Row.Worker, reply.Row.Epoch, c.Owner, from, reply.Row.Until)
		alive := true
		for range random.IntN(20) {
			r := renewalOf(c, reply)
			next, err := s.Renew(ctx, r)
			if errors.Is(err, leasestore.ErrLost) {
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
			if random.IntN(4) == 0 {
				time.Sleep(time.Duration(random.IntN(5)) * time.Millisecond)
			}
		}
		if !alive || random.IntN(4) == 0 {
			continue // abandoned
		}
		r := releaseOf(c, reply)
		r.End = from + leasestore.Millis(random.Int64N(int64(reply.Row.Until-from)+1))
		_, _ = fmt.Fprintf(log, "end %d %d %s %d 0\n", reply.Row.Worker, reply.Row.Epoch, c.Owner, r.End)
		if err := s.Release(ctx, r); err != nil && !errors.Is(err, leasestore.ErrLost) {
			unexpected("Release", err)
		}
	}
}

func logFile(dir string, pid int) string { return filepath.Join(dir, fmt.Sprint("log-", pid)) }

// A span is what one lease may have used of a worker's time.
type span struct {
	worker, epoch int64
	owner         string
	from, until   int64
}

// readSpans returns what all processes have written down, by owner.
func readSpans(t *testing.T, dir string) map[string]*span {
	t.Helper()
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
				t.Fatalf("a process has ended: %s", line)
			}
			var what string
			var s span
			if n, _ := fmt.Sscanf(line, "%s %d %d %s %d %d", &what, &s.worker, &s.epoch, &s.owner, &s.from, &s.until); n != 6 || !strings.HasSuffix(line, "\n") {
				continue // the line is incomplete, so its range has not been used yet
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
	return spans
}

func TestProcessesThatAreKilledNeverShareATime(t *testing.T) {
	dir := t.TempDir()
	const processes = 5
	t.Logf("-processes.seed=%d", *processSeed)
	random := rand.New(rand.NewPCG(*processSeed, 0))
	var running []*exec.Cmd
	defer func() {
		for _, cmd := range running {
			kill(t, cmd)
		}
	}()
	// Until enough has happened, however long the machine takes to start a process.
	kills := 0
	for giveUp := time.Now().Add(3 * time.Minute); kills < *processKills || len(readSpans(t, dir)) < *processKills; {
		if time.Now().After(giveUp) {
			t.Fatalf("3 minutes with %d kills and %d leases; want %d and %d", kills, len(readSpans(t, dir)), *processKills, *processKills)
		}
		for len(running) < processes {
			cmd, _ := start(t, "work", dir, random.Uint64())
			running = append(running, cmd)
		}
		time.Sleep(time.Duration(20+random.IntN(60)) * time.Millisecond)
		// Usually one that has had a row, because where processes start slowly none would live
		// long enough otherwise.
		i := random.IntN(len(running))
		if info, err := os.Stat(logFile(dir, running[i].Process.Pid)); random.IntN(4) > 0 && (err != nil || info.Size() == 0) {
			continue
		}
		kill(t, running[i])
		running = slices.Delete(running, i, i+1)
		kills++
	}
	for _, cmd := range running {
		kill(t, cmd)
	}
	running = nil

	spans := readSpans(t, dir)
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

	// The rows are sound.
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
	t.Logf("%d leases, %d kills", len(all), kills)
}
