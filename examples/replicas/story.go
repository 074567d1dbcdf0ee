package main

import (
	"context"
	"fmt"
	"time"
)

// A story is what happens to the replicas, and when.
type story struct {
	replicas int
	length   time.Duration
	window   time.Duration
	kill     bool
	pause    bool
}

// patience is how long a replica may take to get a worker number and to write its
// first rows. The machine may be busy.
const patience = 2 * time.Minute

// tell plays the story with c, until its end or that of ctx. Its times count from
// when all replicas work: a machine may take longer to start them than the story is.
func (s story) tell(ctx context.Context, c *cluster) error {
	for i := range s.replicas {
		if _, err := c.start(fmt.Sprint("r", i+1), false, -1); err != nil {
			return err
		}
	}
	if err := s.allWork(ctx, c); err != nil {
		return err
	}
	begin := time.Now()
	until := func(part time.Duration) error { return sleep(ctx, time.Until(begin.Add(part))) }
	if s.kill {
		if err := until(s.length / 6); err != nil {
			return err
		}
		if err := s.crash(ctx, c); err != nil {
			return err
		}
	}
	if s.pause {
		if err := until(s.length / 3); err != nil {
			return err
		}
		if err := s.sleepOver(ctx, c); err != nil {
			return err
		}
		if err := sleep(ctx, s.length/24); err != nil {
			return err
		}
	}
	return until(s.length)
}

// allWork waits until every process has written rows.
func (s story) allWork(ctx context.Context, c *cluster) error {
	ok, err := c.await(ctx, patience, func() bool {
		for _, p := range c.processes {
			if p.state == starting || p.lives() && len(p.ids) == 0 {
				return false
			}
		}
		return true
	})
	if err == nil && !ok {
		err = fmt.Errorf("not every replica has written rows after %s", patience)
	}
	return err
}

// crash kills a replica and starts it again.
func (s story) crash(ctx context.Context, c *cluster) error {
	p, err := c.at(1)
	if err != nil {
		return err
	}
	if err := c.kill(p); err != nil {
		return err
	}
	old, held := c.reservationOf(p)
	if held {
		c.say("KILLED %s (pid %d, SIGKILL).\nIt could not give worker number %d back: reserved for %s more", p.name, p.pid, old.Worker, seconds(left(old.Until)))
	}
	if err := sleep(ctx, s.length/24); err != nil {
		return err
	}
	p, err = c.start(p.name, true, -1)
	if err != nil {
		return err
	}
	if err := s.allWork(ctx, c); err != nil {
		return err
	}
	switch now, ok := c.reservationOf(p); {
	case !ok || !held:
	case now.Worker != old.Worker:
		c.say("RESTARTED %s as pid %d, with worker number %d:\n%d was still reserved", p.name, p.pid, now.Worker, old.Worker)
	default:
		c.say("RESTARTED %s as pid %d, with worker number %d again:\nthe time reserved before was over", p.name, p.pid, now.Worker)
	}
	return nil
}

// sleepOver stops a replica until its reservation is over. Another process takes
// its worker number. Then the replica goes on, and has noticed nothing of it.
func (s story) sleepOver(ctx context.Context, c *cluster) error {
	p, err := c.at(1)
	if err != nil {
		return err
	}
	old, err := s.stop(ctx, c, p)
	if err != nil {
		return err
	}
	heir, err := c.start(fmt.Sprint("r", s.replicas+1), false, old.Worker)
	if err != nil {
		return err
	}
	taken, err := c.await(ctx, patience, func() bool { return heir.state != starting })
	if err != nil {
		return err
	}
	if taken {
		c.say("The time is over. %s, which is new, has asked for just this number\nand has it: %s is still stopped and does not know", heir.name, p.name)
	}
	if err := sleep(ctx, s.length/12); err != nil {
		return err
	}
	return goOn(ctx, c, p, heir, old)
}

// stop stops p and waits until its reservation, which it returns, is over.
func (s story) stop(ctx context.Context, c *cluster, p *process) (old reservation, err error) {
	if err := c.pause(ctx, p); err != nil {
		return old, err
	}
	old, ok := c.reservationOf(p)
	if !ok {
		return old, fmt.Errorf("%s has no worker number", p.name)
	}
	c.say("STOPPED %s (pid %d, SIGSTOP).\nWorker number %d is reserved for %s more", p.name, p.pid, old.Worker, seconds(left(old.Until)))
	for began := time.Now(); left(old.Until) > 0; {
		if time.Since(began) > 2*s.window {
			return old, fmt.Errorf("%s (pid %d) was stopped, and yet it renews its lease", p.name, p.pid)
		}
		if err := sleep(ctx, left(old.Until)); err != nil {
			return old, err
		}
		// Its last renewal may have been on its way to us when we asked.
		old, _ = c.reservationOf(p)
	}
	return old, nil
}

// goOn continues p and waits until it has a worker number again. Its old number is
// the heir's by now.
func goOn(ctx context.Context, c *cluster, p, heir *process, old reservation) error {
	c.mu.Lock()
	before, losses := len(p.ids), p.losses
	c.mu.Unlock()
	c.say("CONTINUED %s (pid %d, SIGCONT)", p.name, p.pid)
	if err := c.resume(p); err != nil {
		return err
	}
	if _, err := c.await(ctx, patience, func() bool { return p.losses > losses && p.holds }); err != nil {
		return err
	}
	// What it wrote with the old number may be reported after the new one.
	if err := sleep(ctx, 3*beat); err != nil {
		return err
	}
	c.mu.Lock()
	noticed, late := p.losses > losses, 0
	for _, id := range p.ids[before:] {
		if parts := layout.Parts(id); parts.Worker == old.Worker && parts.Time.Before(old.Until.Time()) {
			late++
		}
	}
	c.mu.Unlock()
	switch {
	case noticed && late > 0:
		c.say("%s found out at its next renewal. Before that it made %d IDs\nwith worker number %d, as %s does: theirs are from different times", p.name, late, old.Worker, heir.name)
	case noticed:
		c.say("%s found out at its next renewal,\nbefore it made another ID with worker number %d", p.name, old.Worker)
	}
	return nil
}

// seconds returns d as people say it.
func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
