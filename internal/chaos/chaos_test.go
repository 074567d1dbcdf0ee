//go:build unix

package chaos

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/snowkey/snowkey/types"
)

const variable = "SNOWKEY_CHAOS_ORDER"

func init() { Main(variable, func([]byte) error { return nil }) }

func TestRepeatedNumbersAreFoundAcrossFiles(t *testing.T) {
	dir := t.TempDir()
	for name, numbers := range map[string][]types.Snowflake{"1-next": {10, 20, 30}, "1-fill": {11, 20, 31}, "2-next": {12, 20, 31, 40}} {
		w, err := NewWriter(filepath.Join(dir, name+NumbersEnd))
		if err == nil {
			err = errors.Join(w.Write(numbers[:1]), w.Write(numbers[1:]), w.file.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "3-next"+NumbersEnd), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := ReadNumbers(dir)
	if err != nil {
		t.Fatal(err)
	}
	n, repeated := all.Duplicates()
	if want := []types.Snowflake{20, 20, 31}; n != 10 || !slices.Equal(repeated, want) {
		t.Errorf("Duplicates() = %d, %v; want 10, %v", n, repeated, want)
	}
	if got, want := all.Files(31), "1-fill.ids and 2-next.ids"; got != want {
		t.Errorf("Files(31) = %q; want %q", got, want)
	}
	if err := all.Ascend(); err != nil {
		t.Errorf("Ascend() = %v; want no error", err)
	}
}

func TestNumbersThatDoNotIncreaseAreFound(t *testing.T) {
	for _, numbers := range [][]types.Snowflake{{1, 3, 2}, {1, 1}} {
		if err := (Numbers{"1-next.ids": numbers}).Ascend(); !errors.Is(err, ErrNotAscending) {
			t.Errorf("Ascend() of %v = %v; want %v", numbers, err, ErrNotAscending)
		}
	}
}

// The test of a run may end without a chance to do anything. A stopped worker can do
// nothing either.
func TestKeeperKillsItsGroupWhenItsInputEnds(t *testing.T) {
	g := &Group{T: t, Variable: variable, Dir: t.TempDir()}
	g.Keep()
	sleeper := exec.CommandContext(context.WithoutCancel(t.Context()), "sleep", "600")
	sleeper.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: g.keeper.Process.Pid}
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	if err := sleeper.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := g.input.Close(); err != nil {
		t.Fatal(err)
	}
	for _, cmd := range []*exec.Cmd{g.keeper, sleeper} {
		_ = cmd.Wait()
		status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
		if !ok || status.Signal() != syscall.SIGKILL {
			t.Errorf("%s ended with %v; want it killed", cmd.Path, cmd.ProcessState)
		}
	}
}
