//go:build unix

package servertest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Stall stops a process of the test's own, and returns when none of its threads runs.
// Call resume to let it go on.
//
// One thread receives the signal to stop. On a busy machine the others go on for a
// while, and a server answers requests. Only Linux shows its threads. Elsewhere Stall
// does not wait.
func Stall(t testing.TB, process *os.Process) (resume func()) {
	t.Helper()
	if err := process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatalf("servertest: stop process %d: %v", process.Pid, err)
	}
	for deadline := time.Now().Add(patience); running(process.Pid); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("servertest: process %d still runs %v after it was told to stop", process.Pid, patience)
		}
	}
	return func() {
		if err := process.Signal(syscall.SIGCONT); err != nil {
			t.Errorf("servertest: let process %d go on: %v", process.Pid, err)
		}
	}
}

// running reports whether some thread of a process is not stopped.
func running(pid int) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid)) // only a bad pattern is an error
	for _, thread := range threads {
		stat, err := os.ReadFile(thread)
		// "7 (name) T …": the name may hold anything, a parenthesis too.
		if _, state, found := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" ")); err == nil && found && state[0] != 'T' {
			return true
		}
	}
	return false
}
