//go:build unix

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A watched is a running program whose output the test reads.
type watched struct {
	*exec.Cmd
	lines  *bufio.Scanner
	text   strings.Builder // the lines so far
	stderr bytes.Buffer
}

func watch(t *testing.T, args ...string) *watched {
	t.Helper()
	w := &watched{Cmd: program(t, args...)}
	w.Env = append(w.Env, "TMPDIR="+t.TempDir())
	w.Cmd.Stderr = &w.stderr
	out, err := w.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	w.lines = bufio.NewScanner(out)
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	return w
}

// until reads as many lines as match.
func (w *watched) until(t *testing.T, match string, times int) {
	t.Helper()
	for times > 0 {
		if !w.lines.Scan() {
			_ = w.Wait() // the exit code says it
			t.Fatalf("the program has ended with exit code %d, stderr %q; want %d more lines with %q; output: %s",
				w.ProcessState.ExitCode(), &w.stderr, times, match, &w.text)
		}
		fmt.Fprintln(&w.text, w.lines.Text())
		if strings.Contains(w.lines.Text(), match) {
			times--
		}
	}
}

// rest reads to the end and returns the exit code.
func (w *watched) rest() int {
	for w.lines.Scan() {
		fmt.Fprintln(&w.text, w.lines.Text())
	}
	_ = w.Wait() // the exit code says it
	return w.ProcessState.ExitCode()
}

// pids returns the processes that the lines so far mention.
func (w *watched) pids(t *testing.T) []int {
	t.Helper()
	var pids []int
	for _, found := range regexp.MustCompile(`\(pid (\d+)\) has worker number`).FindAllStringSubmatch(w.text.String(), -1) {
		pid, err := strconv.Atoi(found[1])
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

// lives reports whether there is a process pid at work: one that has ended and
// whose new parent has not asked for its exit code is none.
func lives(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, after, _ := strings.Cut(string(stat), ") ")
	return err != nil || !strings.HasPrefix(after, "Z")
}

func wantGone(t *testing.T, pids []int) {
	t.Helper()
	giveUp := time.Now().Add(patience)
	for _, pid := range pids {
		for lives(pid) {
			if time.Now().After(giveUp) {
				t.Errorf("process %d lives; want it gone", pid)
				_ = syscall.Kill(pid, syscall.SIGKILL)
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}

func TestCtrlCEndsEveryReplicaAndStillChecks(t *testing.T) {
	t.Parallel()
	w := watch(t, "-for", "10m")
	tmp := w.Env[len(w.Env)-1][len("TMPDIR="):]
	w.until(t, "has worker number", 4)
	if err := w.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	code := w.rest()
	if got := w.stderr.String(); code != 130 || got != "replicas: interrupted\n" {
		t.Errorf("exit code %d, stderr %q; want 130 and the word interrupted", code, got)
	}
	if want := "No ID repeats"; !strings.Contains(w.text.String(), want) {
		t.Errorf("output = %s; want %q in it", &w.text, want)
	}
	pids := w.pids(t)
	if len(pids) != 4 {
		t.Fatalf("replicas %d; want 4", pids)
	}
	for _, pid := range pids {
		if lives(pid) {
			t.Errorf("process %d lives after the program; want it gone", pid)
		}
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) != 0 {
		t.Errorf("the temporary folder holds %v, %v; want nothing", left, err)
	}
}

// untilStopped is a run that stops a replica after some seconds, and then waits for its window, in
// which a test has time enough on a busy machine too.
var untilStopped = []string{"-for", "21s", "-window", "20s", "-kill=false"}

func TestCtrlCWhileAReplicaIsStoppedEndsIt(t *testing.T) {
	t.Parallel()
	w := watch(t, untilStopped...)
	w.until(t, "STOPPED", 1)
	if err := w.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := w.rest(); code != 130 || !strings.Contains(w.text.String(), "No ID repeats") {
		t.Errorf("exit code %d, stderr %q, output %s; want 130 and No ID repeats", code, &w.stderr, &w.text)
	}
	wantGone(t, w.pids(t))
}

func TestReplicasEndWithAParentThatIsKilled(t *testing.T) {
	t.Parallel()
	w := watch(t, untilStopped...)
	w.until(t, "STOPPED", 1)
	if err := w.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	w.rest()
	pids := w.pids(t)
	if len(pids) != 4 {
		t.Fatalf("replicas %d; want 4", pids)
	}
	wantGone(t, pids)
}

func TestAReplicaThatDiesByItselfFailsTheRun(t *testing.T) {
	t.Parallel()
	w := watch(t, "-for", "10m")
	w.until(t, "has worker number", 4)
	pids := w.pids(t)
	if err := syscall.Kill(pids[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	code := w.rest()
	want := fmt.Sprintf("(pid %d) ended without a word: signal: killed", pids[0])
	if code != 1 || !strings.Contains(w.stderr.String(), want) {
		t.Errorf("exit code %d, stderr %q; want 1 and %q", code, &w.stderr, want)
	}
	if strings.Contains(w.text.String(), "No ID repeats") {
		t.Errorf("output = %s; want nothing that looks like success", &w.text)
	}
	wantGone(t, pids)
}

func TestASystemWithoutAFolderForFilesIsAnError(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()+"/nowhere")
	if err := run(t.Context(), short, io.Discard, io.Discard); !os.IsNotExist(err) {
		t.Errorf("run without a temporary folder = %v; want an error that names it", err)
	}
}
