//go:build unix

package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A Group is the processes of one run, for one goroutine.
type Group struct {
	T        *testing.T
	Name     string // of the run, in its errors
	Variable string // as [Main] has it
	Dir      string // of the files of the processes
	Random   *rand.Rand

	// Order returns what a new process is told, which becomes JSON. The paths of all
	// files that it writes begin with files.
	Order func(files string) any

	// Enter changes the command of the process in a slot, so that it runs somewhere else.
	// It must keep the process group and the number of the process. Nil: all run here.
	Enter func(slot int, cmd *exec.Cmd)

	Stop     time.Duration // processes are stopped for so long at most
	Patience time.Duration // a process that was asked to end is killed after this time

	Restarts, Stops int // so far

	keeper  *exec.Cmd
	input   io.Closer
	slots   []*process
	started int
}

// A process is a worker.
type process struct {
	cmd   *exec.Cmd
	files string // begins the paths of its files
	ended chan struct{}
	err   error // of its end; read it after that

	killed  bool
	resume  time.Time // when to continue it; zero: it is not stopped
	patient time.Time // when to kill it, since it was asked to end and has not; zero: it was not asked
}

// Errorf fails the test, and says which run it was.
func (g *Group) Errorf(format string, args ...any) {
	g.T.Helper()
	g.T.Errorf("%s: %s", g.Name, fmt.Sprintf(format, args...))
}

// Start starts n processes. End has to be called after it.
func (g *Group) Start(n int) {
	g.T.Helper()
	g.Keep()
	g.slots = make([]*process, n)
	for i := range g.slots {
		g.slots[i] = g.start(i)
	}
}

// Wait lets some time go by.
func (g *Group) Wait() { time.Sleep(Between(g.Random, 20*time.Millisecond, 200*time.Millisecond)) }

// Look does what is due: it starts processes in place of those that have ended, and
// continues those that were stopped.
func (g *Group) Look() {
	now := time.Now()
	for i, p := range g.slots {
		g.slots[i] = g.look(i, p, now)
	}
}

// look does what is due for a process, and returns the one to have its slot.
func (g *Group) look(slot int, p *process, now time.Time) *process {
	select {
	case <-p.ended:
		g.judge(p)
		g.Restarts++
		return g.start(slot)
	default:
	}
	if !p.resume.IsZero() && now.After(p.resume) {
		p.resume = time.Time{}
		g.signal(p, syscall.SIGCONT)
	}
	if !p.patient.IsZero() && now.After(p.patient) {
		g.kill(p)
	}
	return p
}

// Strike does something to one process, or nothing.
func (g *Group) Strike() {
	p, now := g.slots[g.Random.IntN(len(g.slots))], time.Now()
	if p.killed || !p.patient.IsZero() {
		return
	}
	stopped := 0
	for _, p := range g.slots {
		if !p.resume.IsZero() {
			stopped++
		}
	}
	switch n := g.Random.IntN(10); {
	case n < 5 && stopped < len(g.slots)/2 && p.resume.IsZero():
		p.resume = now.Add(Between(g.Random, g.Stop/4, g.Stop))
		g.Stops++
		g.signal(p, syscall.SIGSTOP)
	case n < 5:
	case n < 6, n < 7 && p.resume.IsZero(): // rather one that is not stopped: that one has yet to learn what it has missed
		g.kill(p)
	case n < 8 && p.resume.IsZero():
		p.patient = now.Add(g.Patience)
		g.signal(p, syscall.SIGTERM)
	}
}

// Continue lets all processes go on.
func (g *Group) Continue() {
	for _, p := range g.slots {
		g.signal(p, syscall.SIGCONT)
	}
}

// End kills all processes of the run, whatever their state, and waits until they are
// gone.
func (g *Group) End() {
	// The keeper is one of them and has not been waited for. So its number cannot be
	// another's yet.
	if err := syscall.Kill(-g.keeper.Process.Pid, syscall.SIGKILL); err != nil {
		g.Errorf("killing the processes = %v; want no error", err)
	}
	for _, p := range g.slots {
		if p == nil {
			continue
		}
		<-p.ended
		g.judge(p)
	}
	_ = g.input.Close()
	_ = g.keeper.Wait() // killed, that is an error
}

func (g *Group) kill(p *process) {
	p.killed = true
	g.signal(p, syscall.SIGKILL)
}

func (g *Group) signal(p *process, s syscall.Signal) {
	if p.cmd.Process == nil {
		return // it could not be started
	}
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		g.Errorf("signal %v to a process = %v; want no error", s, err)
	}
}

// Keep starts the keeper alone. Its process group is the one of all processes.
func (g *Group) Keep() {
	g.T.Helper()
	g.keeper = g.command(keeping, 0)
	input, err := g.keeper.StdinPipe()
	if err != nil {
		g.T.Fatal(err)
	}
	if err := g.keeper.Start(); err != nil {
		g.T.Fatal(err)
	}
	g.input = input
}

// start starts a worker in a slot.
func (g *Group) start(slot int) *process {
	g.started++
	p := &process{files: filepath.Join(g.Dir, fmt.Sprint(g.started)), ended: make(chan struct{})}
	p.cmd = g.Command(g.Order(p.files))
	if g.Enter != nil {
		g.Enter(slot, p.cmd)
	}
	said, err := os.Create(p.files + errorsEnd)
	if err == nil {
		p.cmd.Stderr = said // a file: Wait does not wait for whoever else has it
		err = p.cmd.Start()
		_ = said.Close() // the process has its own
	}
	if err != nil {
		g.Errorf("a process cannot be started: %v", err)
		close(p.ended)
		return p
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	return p
}

// judge fails the test if an ended process has failed or crashed. A process that was
// asked to end may end before it can handle that signal.
func (g *Group) judge(p *process) {
	var exit *exec.ExitError
	if errors.As(p.err, &exit) {
		status, ok := exit.Sys().(syscall.WaitStatus)
		if ok && status.Signaled() && (status.Signal() == syscall.SIGKILL || status.Signal() == syscall.SIGTERM) {
			return
		}
	}
	if p.err != nil {
		g.Errorf("a process has ended by itself: %v\n%s", p.err, p.said())
	}
}

// errorsEnd is the end of the file of a process with its standard error.
const errorsEnd = ".err"

// said returns what a process has written to its standard error, or its beginning.
func (p *process) said() []byte {
	const most = 4000
	text, _ := os.ReadFile(p.files + errorsEnd)
	return bytes.TrimSpace(text[:min(len(text), most)])
}

// Command returns this binary as a process of the run that has an order. The keeper has
// to be there.
func (g *Group) Command(order any) *exec.Cmd {
	text, err := json.Marshal(order)
	if err != nil {
		g.T.Fatal(err)
	}
	return g.command(string(text), g.keeper.Process.Pid)
}

// command returns this binary as a process in a process group. Group 0 means one of its
// own.
func (g *Group) command(order string, group int) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		g.T.Fatal(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(g.T.Context()), self) // End ends it
	cmd.Env = append(os.Environ(), g.Variable+"="+order, "GORACE=halt_on_error=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: group}
	return cmd
}

// Between returns a random length of time.
func Between(r *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(r.Int64N(int64(most-least)+1))
}
