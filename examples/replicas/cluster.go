package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/types"
)

// A state is what the table says of a process.
type state string

const (
	starting  state = "starting"
	running   state = "running"
	restarted state = "restarted" // running, in place of one that was killed
	paused    state = "stopped"
	resumed   state = "continued" // running, after it was stopped
	killed    state = "killed"
	ended     state = "ended"
)

// A process is the parent's knowledge of one replica process. The fields from
// state on are guarded by cluster.mu.
type process struct {
	name  string
	pid   int
	cmd   *exec.Cmd
	again bool // it replaces one that was killed

	state        state
	reservations []reservation // by the time they were claimed; the last one is the present one
	holds        bool          // the last reservation has not been lost
	losses       int           // worker numbers lost
	ids          []types.Snowflake
	stderr       tail
}

// now returns the present reservation.
func (p *process) now() (reservation, bool) {
	if !p.holds {
		return reservation{}, false
	}
	return p.reservations[len(p.reservations)-1], true
}

// lives reports whether p is at work.
func (p *process) lives() bool {
	return p.state == running || p.state == restarted || p.state == resumed
}

// A cluster is the processes of one run. Each is a child of this process, which
// ends them all: in order, when end is called; by the end of their input, when
// this process dies.
type cluster struct {
	ctx     context.Context // ends the processes
	end     context.CancelFunc
	stop    context.CancelFunc // ends the story
	task    assignment
	say     func(format string, args ...any)
	readers sync.WaitGroup

	mu        sync.Mutex
	processes []*process
	failure   error // of the first process that ended by itself
}

// grace is how long a process may take to end before it is killed: to finish its
// transaction, and to give its worker number back.
const grace = writePatience + closePatience + 3*time.Second

// start starts a process. only says which worker number it is to take; negative:
// any.
func (c *cluster) start(name string, again bool, only int64) (*process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{name: name, again: again, state: starting}
	p.cmd = exec.CommandContext(c.ctx, program)
	p.cmd.Env = append(os.Environ(), roleVariable+"=replica")
	p.cmd.SysProcAttr = attributes()
	p.cmd.Stderr = &p.stderr
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	// Both run when c.ctx ends: Cancel at once, and a kill after WaitDelay.
	p.cmd.Cancel = func() error { return errors.Join(stdin.Close(), resume(p.cmd.Process)) }
	p.cmd.WaitDelay = grace
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.pid = p.cmd.Process.Pid

	c.mu.Lock()
	c.processes = append(c.processes, p)
	c.mu.Unlock()
	c.readers.Go(func() { c.read(p, stdout) })

	task := c.task
	task.Replica = name
	if only >= 0 {
		task.Only = []int64{only}
	}
	if err := json.NewEncoder(stdin).Encode(task); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

// read takes the reports of p until it ends.
func (c *cluster) read(p *process, out io.Reader) {
	var last report
	reports := json.NewDecoder(out)
	for {
		var r report
		// A line may be torn, if p was killed while it wrote it: that is the end.
		if err := reports.Decode(&r); err != nil {
			break
		}
		c.take(p, r)
		last = r
	}
	_, _ = io.Copy(io.Discard, out)
	_ = p.cmd.Wait() // what it returns is in last and in the process state

	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case p.state == killed: // as it should
		return
	case last.What == bye:
		p.holds = false
	case last.What == failed:
		c.fail(fmt.Errorf("%s (pid %d) failed: %s", p.name, p.pid, last.Why))
	default:
		c.fail(fmt.Errorf("%s (pid %d) ended without a word: %s\n%s", p.name, p.pid, p.cmd.ProcessState, p.stderr.String()))
	}
	p.state = ended
}

// fail ends the story with an error. It requires mu.
func (c *cluster) fail(err error) {
	if c.failure == nil {
		c.failure = err
	}
	c.stop()
}

// take notes a report.
func (c *cluster) take(p *process, r report) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch r.What {
	case reserved:
		if n := len(p.reservations); n > 0 && p.reservations[n-1].Epoch == r.Epoch && p.reservations[n-1].Worker == r.Worker {
			p.reservations[n-1].Until = r.Until
			return
		}
		p.reservations = append(p.reservations, r.reservation)
		p.holds = true
		switch {
		case p.state == starting && p.again:
			p.state = restarted
		case p.state == starting:
			p.state = running
		}
		c.say("%s (pid %d) has worker number %d, epoch %d", p.name, p.pid, r.Worker, r.Epoch)
	case lost:
		p.losses++
		// The report comes from a goroutine of its own: the next claim may have
		// been quicker.
		if now, ok := p.now(); ok && now.Worker == r.Worker && now.Epoch == r.Epoch {
			p.holds = false
		}
		c.say("%s (pid %d) has lost worker number %d:\n%s", p.name, p.pid, r.Worker, r.Why)
	case waiting:
		c.say("%s (pid %d) waits: no time is reserved", p.name, p.pid)
	case wrote:
		p.ids = append(p.ids, r.IDs...)
	}
}

// kill kills p as a crash would: it cannot give anything back.
func (c *cluster) kill(p *process) error {
	c.mu.Lock()
	p.state = killed
	c.mu.Unlock()
	return p.cmd.Process.Kill()
}

// pause stops p.
//
// On SQLite, a process that is stopped within a transaction keeps the file locked
// until it goes on. All others would wait for it, which shows nothing about leases,
// so p is stopped at another moment then.
func (c *cluster) pause(ctx context.Context, p *process) error {
	for range 50 {
		if err := pause(p.cmd.Process); err != nil {
			return err
		}
		if c.task.Place.Postgres != "" || c.task.Place.writable(ctx) {
			c.mu.Lock()
			p.state = paused
			c.mu.Unlock()
			return nil
		}
		if err := errors.Join(resume(p.cmd.Process), sleep(ctx, 37*time.Millisecond)); err != nil {
			return err
		}
	}
	return errors.New("found no moment to stop a replica: the SQLite files are always locked")
}

// resume lets p go on.
func (c *cluster) resume(p *process) error {
	c.mu.Lock()
	p.state = resumed
	c.mu.Unlock()
	return resume(p.cmd.Process)
}

// wait waits until all processes have ended, after end.
func (c *cluster) wait() { c.readers.Wait() }

// at returns the living process number i, counted round.
func (c *cluster) at(i int) (*process, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var living []*process
	for _, p := range c.processes {
		if p.lives() {
			living = append(living, p)
		}
	}
	if len(living) == 0 {
		return nil, errors.New("no replica is left")
	}
	return living[i%len(living)], nil
}

// reservationOf returns what p has reserved.
func (c *cluster) reservationOf(p *process) (reservation, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return p.now()
}

// A line is a process in the table.
type line struct {
	name  string
	pid   int
	state state
	holds bool
	now   reservation
	count int // of IDs
	last  types.Snowflake
}

// lines returns the table.
func (c *cluster) lines() []line {
	c.mu.Lock()
	defer c.mu.Unlock()
	var lines []line
	for _, p := range c.processes {
		l := line{name: p.name, pid: p.pid, state: p.state, count: len(p.ids)}
		l.now, l.holds = p.now()
		if l.count > 0 {
			l.last = p.ids[l.count-1]
		}
		lines = append(lines, l)
	}
	return lines
}

// await waits until done, which is called with the lock held, returns true, but
// no longer than patience. It returns whether it did.
func (c *cluster) await(ctx context.Context, patience time.Duration, done func() bool) (bool, error) {
	for giveUp := time.Now().Add(patience); ; {
		c.mu.Lock()
		ok := done()
		c.mu.Unlock()
		if ok || time.Now().After(giveUp) {
			return ok, nil
		}
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return false, err
		}
	}
}

// sleep waits for d, or until ctx ends, whose error it then returns.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// left returns how far until is ahead.
func left(until leasestore.Millis) time.Duration { return time.Until(until.Time()) }

// A tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

const tailLength = 4096

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, b...)
	if more := len(t.kept) - tailLength; more > 0 {
		t.kept = slices.Delete(t.kept, 0, more)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.kept))
}
