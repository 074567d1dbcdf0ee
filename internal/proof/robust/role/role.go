//go:build unix

// Package role starts the program that runs once more, as another process of its test: a test binary is
// its own worker, relay or disk. [Play] does what such a process is there for.
//
// No process outlives the test that started it. All of a program are in the process group of its keeper,
// which kills the group when the program ends in whatever way, even if it is killed itself. A worker could
// not do that: it may be stopped.
package role

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
)

// The environment variables that name the role of a process, and hold its order.
const (
	variable = "SNOWKEY_ROLE"
	ordered  = "SNOWKEY_ROLE_ORDER"
)

// keeping is the role of the keeper.
const keeping = "keeper"

// Play returns at once in a program that was started to run tests. In one that [Command] has started
// it plays the role, and does not return. Call it in an init function or at the beginning of TestMain,
// with all roles of the program.
func Play(roles map[string]func(order []byte) error) {
	name, started := os.LookupEnv(variable)
	if !started {
		return
	}
	play := roles[name]
	switch {
	case name == keeping:
		play = keep
	case play == nil:
		play = func([]byte) error { return fmt.Errorf("role: no role %q in this program", name) }
	}
	if err := play([]byte(os.Getenv(ordered))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Command returns this program as a process that plays a role by an order, which is written as JSON. A data
// race ends it.
func Command(t testing.TB, role string, order any) *exec.Cmd {
	t.Helper()
	cmd, err := command(role, order)
	if err != nil {
		t.Fatal(err)
	}
	Keep(t, cmd)
	return cmd
}

func command(role string, order any) (*exec.Cmd, error) {
	text, err := json.Marshal(order)
	self, errSelf := os.Executable()
	cmd := exec.CommandContext(context.Background(), self)
	cmd.Env = append(os.Environ(), variable+"="+role, ordered+"="+string(text), "GORACE=halt_on_error=1")
	return cmd, errors.Join(err, errSelf)
}

// Keep puts a process that was not started yet into the group that the keeper kills.
func Keep(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	k, err := theKeeper()
	if err != nil {
		t.Fatal(err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: k.cmd.Process.Pid}
}

// A keeper leads a process group.
type keeper struct {
	cmd   *exec.Cmd
	input io.Closer // open until this process ends
}

// theKeeper belongs to this process.
var theKeeper = sync.OnceValues(startKeeper)

func startKeeper() (keeper, error) {
	cmd, err := command(keeping, nil)
	if err != nil {
		return keeper{}, err
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	input, err := cmd.StdinPipe()
	return keeper{cmd, input}, errors.Join(err, cmd.Start())
}

// keep waits for the end of the process that has started this one, which ends standard input.
func keep([]byte) error {
	_, _ = io.Copy(io.Discard, os.Stdin)
	return syscall.Kill(-os.Getpid(), syscall.SIGKILL)
}
