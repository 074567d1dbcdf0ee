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

// Stall stops a process of the test's own, and returns when none of its threads runs
// any more. Without resume it stands still until it is killed.
//
// A signal to stop is no more than a note that one of the threads must find. On a
// busy machine the others go on for a while, and a server answers requests.
// Only Linux shows its threads; elsewhere Stall does not wait.
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

// running reports whether a thread of a process is seen that is not stopped.
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
