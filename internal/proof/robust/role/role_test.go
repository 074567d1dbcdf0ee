//go:build unix

package role

import (
	"os/exec"
	"syscall"
	"testing"
)

func init() { Play(nil) }

// The test of a run may end without a chance to do anything. A stopped worker can do
// nothing either.
func TestKeeperKillsItsGroupWhenItsInputEnds(t *testing.T) {
	k, err := startKeeper()
	if err != nil {
		t.Fatal(err)
	}
	sleeper := exec.Command("sleep", "600")
	sleeper.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: k.cmd.Process.Pid}
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	if err := sleeper.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := k.input.Close(); err != nil {
		t.Fatal(err)
	}
	for _, cmd := range []*exec.Cmd{k.cmd, sleeper} {
		_ = cmd.Wait()
		status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
		if !ok || status.Signal() != syscall.SIGKILL {
			t.Errorf("%s ended with %v; want it killed", cmd.Path, cmd.ProcessState)
		}
	}
}
