//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

func TestCtrlCEndsTheProgramInPlainWordsWithExitCode130(t *testing.T) {
	// The last file comes through a named pipe. Opening it waits for the program to
	// open it too, so the signal finds the program in the middle of the load.
	folder := edited(t, linesFile, 1, "", "")
	fifo := filepath.Join(folder, linesFile)
	lines, err := os.ReadFile(fifo)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(fifo); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Skipf("this system has no named pipes here: %v", err)
	}
	file := dbFile(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-db", file, "-data", folder)
	cmd.Env = append(os.Environ(), "IMPORT_MAIN=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pipe, err := os.OpenFile(fifo, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	header, _, _ := bytes.Cut(lines, []byte("\n"))
	row := []byte("\n5001,1,1,1,0")
	// Enough rows to notice. The write fails when the program has gone.
	_, _ = pipe.Write(append(header, bytes.Repeat(row, 1_000_000)...))
	_ = pipe.Close()
	_ = cmd.Wait() // the exit code says it
	if got := cmd.ProcessState.ExitCode(); got != 130 {
		t.Errorf("exit code = %d; want 130", got)
	}
	if want := "import: interrupted, nothing was loaded\n"; !bytes.HasSuffix(stderr.Bytes(), []byte(want)) || bytes.Contains(stderr.Bytes(), []byte("context")) {
		t.Errorf("stderr = %q; want it to end with %q", &stderr, want)
	}
	if left := content(t, file); len(left) > 0 {
		t.Errorf("%d files are left; want none", len(left))
	}
}
