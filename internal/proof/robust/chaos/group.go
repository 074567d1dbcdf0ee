//go:build unix

package chaos

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/snowkey/snowkey/internal/proof/robust/role"
)

// A group is the processes of one run, for one goroutine.
type group struct {
	t      *testing.T
	name   string // of the run, in its errors
	dir    string // of the files of the processes
	random *rand.Rand

	role  string
	order order[any] // without what each process has of its own

	// enter changes the command of the process in a slot so that it runs elsewhere. It must
	// keep the process group and the number of the process. If nil, all run here.
	enter func(slot int, cmd *exec.Cmd)

	stop     time.Duration // the maximum time for which processes are stopped
	patience time.Duration // a process that was asked to end is killed after this time
	calm     bool          // processes are neither stopped nor killed

	restarts, stops int // so far

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
	patient time.Time // when to kill it if it has not ended by itself; zero: it was not asked to end
}

// errorf fails the test, and says which run it was.
func (g *group) errorf(format string, args ...any) {
	g.t.Helper()
	g.t.Errorf("%s: %s", g.name, fmt.Sprintf(format, args...))
}

// startAll starts n processes. end has to be called after it.
func (g *group) startAll(n int) {
	g.t.Helper()
	g.slots = make([]*process, n)
	for i := range g.slots {
		g.slots[i] = g.start(i)
	}
}

// wait lets some time go by.
func (g *group) wait() { time.Sleep(between(g.random, 20*time.Millisecond, 200*time.Millisecond)) }

// lookAll does what is due: it replaces processes that have ended, and continues those that
// were stopped.
func (g *group) lookAll() {
	now := time.Now()
	for i, p := range g.slots {
		g.slots[i] = g.look(i, p, now)
	}
}

// look does what is due for a process, and returns the process for its slot.
func (g *group) look(slot int, p *process, now time.Time) *process {
	select {
	case <-p.ended:
		g.judge(p)
		g.restarts++
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

// strike does something to one process, or nothing.
func (g *group) strike() {
	p, now := g.slots[g.random.IntN(len(g.slots))], time.Now()
	if p.killed || !p.patient.IsZero() {
		return
	}
	stopped := 0
	for _, p := range g.slots {
		if !p.resume.IsZero() {
			stopped++
		}
	}
	switch n := g.random.IntN(10); {
	case n < 5 && stopped < len(g.slots)/2 && p.resume.IsZero():
		p.resume = now.Add(between(g.random, g.stop/4, g.stop))
		g.stops++
		g.signal(p, syscall.SIGSTOP)
	case n < 5:
	case n < 6, n < 7 && p.resume.IsZero(): // less often a stopped one, which has yet to learn what it has missed
		g.kill(p)
	case n < 8 && p.resume.IsZero():
		p.patient = now.Add(g.patience)
		g.signal(p, syscall.SIGTERM)
	}
}

// continueAll continues all processes.
func (g *group) continueAll() {
	for _, p := range g.slots {
		g.signal(p, syscall.SIGCONT)
	}
}

// end kills all processes of the run, whatever their state, and waits for their end.
func (g *group) end() {
	for _, p := range g.slots {
		if p != nil {
			g.kill(p)
			<-p.ended
			g.judge(p)
		}
	}
}

func (g *group) kill(p *process) {
	p.killed = true
	g.signal(p, syscall.SIGKILL)
}

func (g *group) signal(p *process, s syscall.Signal) {
	if p.cmd.Process == nil {
		return // it could not be started
	}
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		g.errorf("signal %v to a process = %v; want no error", s, err)
	}
}

// start starts a worker in a slot.
func (g *group) start(slot int) *process {
	g.started++
	p := &process{files: filepath.Join(g.dir, fmt.Sprint(g.started)), ended: make(chan struct{})}
	o := g.order
	o.files = files{Seed: g.random.Uint64(), Files: p.files}
	p.cmd = role.Command(g.t, g.role, o)
	if g.enter != nil {
		g.enter(slot, p.cmd)
	}
	said, err := os.Create(p.files + errorsEnd)
	if err == nil {
		p.cmd.Stderr = said // a file, so that Wait does not wait for other processes that have it
		err = p.cmd.Start()
		_ = said.Close() // the process has its own
	}
	if err != nil {
		g.errorf("a process cannot be started: %v", err)
		close(p.ended)
		return p
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	return p
}

// judge fails the test if an ended process has failed or crashed. A process that was asked to
// end may end before it can handle that signal.
func (g *group) judge(p *process) {
	var exit *exec.ExitError
	if errors.As(p.err, &exit) {
		status, ok := exit.Sys().(syscall.WaitStatus)
		if ok && status.Signaled() && (status.Signal() == syscall.SIGKILL || status.Signal() == syscall.SIGTERM) {
			return
		}
	}
	if p.err != nil {
		g.errorf("a process has ended by itself: %v\n%s", p.err, p.said())
	}
}

// errorsEnd ends the name of the file with a process's standard error.
const errorsEnd = ".err"

// said returns the beginning of what a process has written to its standard error.
func (p *process) said() []byte {
	const most = 4000
	text, _ := os.ReadFile(p.files + errorsEnd)
	return bytes.TrimSpace(text[:min(len(text), most)])
}

// between returns a random length of time.
func between(r *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(r.Int64N(int64(most-least)+1))
}
