//go:build unix

package leasechaos

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

// A run is the chaos while it lasts.
type run struct {
	chaos     Chaos
	rules     Rules
	t         *testing.T
	dir       string // of the files of the processes
	namespace string
	random    *rand.Rand

	keeper *exec.Cmd
	slots  []*process

	started, restarts, stops, forgotten int
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

// errorf fails the test, and says which run it was.
func (r *run) errorf(format string, args ...any) {
	r.t.Helper()
	r.t.Errorf("%s, %s: %s", r.chaos.Store, r.rules, fmt.Sprintf(format, args...))
}

// conduct starts the processes, does things to them for as long as the run lasts, and
// ends them.
func (r *run) conduct() {
	r.t.Helper()
	input := r.keep()
	defer r.end(input)

	for i := range r.slots {
		r.slots[i] = r.start(i)
	}
	defer r.during()()
	began := time.Now()
	forget, look := began.Add(r.rules.window()), began.Add(r.chaos.For)
	for !r.t.Failed() {
		time.Sleep(between(r.random, 20*time.Millisecond, 200*time.Millisecond))
		now := time.Now()
		if now.After(look) {
			if r.enough() {
				break
			}
			if now.Sub(began) > longest+r.chaos.For {
				r.errorf("not enough has happened in %v for the run to mean anything; see the table", longest)
				break
			}
			look = now.Add(time.Second)
		}
		if r.chaos.Forget != nil && r.rules.forgets() && now.After(forget) {
			r.forget()
			forget = now.Add(between(r.random, r.rules.window()/4, 3*r.rules.window()/2))
		}
		for i, p := range r.slots {
			r.slots[i] = r.look(i, p, now)
		}
		if !r.chaos.Calm {
			r.strike(r.slots[r.random.IntN(len(r.slots))], now)
		}
	}

	// Stopped processes go on, and return the IDs that they were about to return.
	for _, p := range r.slots {
		r.signal(p, syscall.SIGCONT)
	}
	time.Sleep(leaseWindow / 6)
}

// look does what is due for a process, and returns the one to have its slot.
func (r *run) look(slot int, p *process, now time.Time) *process {
	select {
	case <-p.ended:
		r.judge(p)
		r.restarts++
		return r.start(slot)
	default:
	}
	if !p.resume.IsZero() && now.After(p.resume) {
		p.resume = time.Time{}
		r.signal(p, syscall.SIGCONT)
	}
	if !p.patient.IsZero() && now.After(p.patient) {
		r.kill(p)
	}
	return p
}

// strike does something to a process, or nothing.
func (r *run) strike(p *process, now time.Time) {
	if p.killed || !p.patient.IsZero() {
		return
	}
	stopped := 0
	for _, p := range r.slots {
		if !p.resume.IsZero() {
			stopped++
		}
	}
	switch n := r.random.IntN(10); {
	case n < 5 && stopped < len(r.slots)/2 && p.resume.IsZero():
		p.resume = now.Add(between(r.random, r.rules.stop()/4, r.rules.stop()))
		r.stops++
		r.signal(p, syscall.SIGSTOP)
	case n < 5:
	case n < 6, n < 7 && p.resume.IsZero(): // rather one that is not stopped: that one has yet to find its row lost
		r.kill(p)
	case n < 8 && p.resume.IsZero():
		p.patient = now.Add(leaseWindow)
		r.signal(p, syscall.SIGTERM)
	}
}

// during begins what happens to the store. The function that it returns ends that.
func (r *run) during() (end func()) {
	if r.chaos.During == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(r.t.Context())
	done := make(chan error, 1)
	go func() { done <- r.chaos.During(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			r.errorf("During = %v; want no error", err)
		}
	}
}

// forget makes the store forget.
func (r *run) forget() {
	ctx, cancel := context.WithTimeout(r.t.Context(), longest)
	defer cancel()
	if err := r.chaos.Forget(ctx, r.namespace); err != nil {
		r.errorf("Forget = %v; want no error", err)
		return
	}
	r.forgotten++
}

func (r *run) kill(p *process) {
	p.killed = true
	r.signal(p, syscall.SIGKILL)
}

func (r *run) signal(p *process, s syscall.Signal) {
	if p.cmd.Process == nil {
		return // it could not be started
	}
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		r.errorf("signal %v to a process = %v; want no error", s, err)
	}
}

// keep starts the keeper, and returns what it reads. Its process group is the one
// of all processes.
func (r *run) keep() (input io.Closer) {
	r.t.Helper()
	r.keeper = r.command(order{Keep: true}, 0)
	input, err := r.keeper.StdinPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := r.keeper.Start(); err != nil {
		r.t.Fatal(err)
	}
	return input
}

// start starts a worker in a slot.
func (r *run) start(slot int) *process {
	r.started++
	p := &process{files: filepath.Join(r.dir, fmt.Sprint(r.started)), ended: make(chan struct{})}
	history := ""
	if r.chaos.History != "" {
		history = filepath.Join(r.chaos.History, fmt.Sprint(r.started)+historyEnd)
	}
	p.cmd = r.command(order{
		Store:     r.chaos.Store,
		DSN:       r.chaos.DSN,
		Namespace: r.namespace,
		Rules:     r.rules,
		Rows:      r.chaos.Rows,
		Window:    r.chaos.Window,
		Real:      r.chaos.During != nil,
		Calm:      r.chaos.Calm,
		Seed:      r.random.Uint64(),
		Files:     p.files,
		History:   history,
	}, r.keeper.Process.Pid)
	if r.chaos.Enter != nil {
		r.chaos.Enter(slot, p.cmd)
	}
	said, err := os.Create(p.files + errorsEnd)
	if err == nil {
		p.cmd.Stderr = said // a file: Wait does not wait for whoever else has it
		err = p.cmd.Start()
		_ = said.Close() // the process has its own
	}
	if err != nil {
		r.errorf("a process cannot be started: %v", err)
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
func (r *run) judge(p *process) {
	var exit *exec.ExitError
	if errors.As(p.err, &exit) {
		status, ok := exit.Sys().(syscall.WaitStatus)
		if ok && status.Signaled() && (status.Signal() == syscall.SIGKILL || status.Signal() == syscall.SIGTERM) {
			return
		}
	}
	if p.err != nil {
		r.errorf("a process has ended by itself: %v\n%s", p.err, p.said())
	}
}

// said returns what a process has written to its standard error, or its beginning.
func (p *process) said() []byte {
	const most = 4000
	text, _ := os.ReadFile(p.files + errorsEnd)
	return bytes.TrimSpace(text[:min(len(text), most)])
}

// command returns this binary as a process of the run, in a process group. Group 0 means
// one of its own.
func (r *run) command(o order, group int) *exec.Cmd {
	text, err := json.Marshal(o)
	if err != nil {
		r.t.Fatal(err) // it has no field for which that could be
	}
	self, err := os.Executable()
	if err != nil {
		r.t.Fatal(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(r.t.Context()), self) // end ends it
	cmd.Env = append(os.Environ(), variable+"="+string(text), "GORACE=halt_on_error=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: group}
	return cmd
}

// end kills all processes of the run, whatever their state, and waits until they are
// gone.
func (r *run) end(input io.Closer) {
	// The keeper is one of them and has not been waited for. So its number cannot be
	// another's yet.
	if err := syscall.Kill(-r.keeper.Process.Pid, syscall.SIGKILL); err != nil {
		r.errorf("killing the processes = %v; want no error", err)
	}
	for _, p := range r.slots {
		if p == nil {
			continue
		}
		<-p.ended
		r.judge(p)
	}
	_ = input.Close()
	_ = r.keeper.Wait() // killed, that is an error
}
