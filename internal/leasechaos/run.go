//go:build unix

package leasechaos

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/snowkey/snowkey/internal/chaos"
)

// A run is the chaos while it lasts.
type run struct {
	*chaos.Group
	chaos     Chaos
	rules     Rules
	namespace string
	forgotten int
}

// newRun returns a run without processes.
func newRun(g *chaos.Group, c Chaos, rules Rules, namespace string) *run {
	r := &run{Group: g, chaos: c, rules: rules, namespace: namespace}
	g.Name = fmt.Sprintf("%s, %s", c.Store, rules)
	g.Variable, g.Order, g.Enter = variable, r.order, c.Enter
	g.Stop, g.Patience = rules.stop(), leaseWindow
	return r
}

// conduct starts the processes, does things to them for as long as the run lasts, and
// ends them.
func (r *run) conduct() {
	r.T.Helper()
	r.Start(r.chaos.Processes)
	defer r.End()
	defer r.during()()
	began := time.Now()
	forget, look := began.Add(r.rules.window()), began.Add(r.chaos.For)
	for !r.T.Failed() {
		r.Wait()
		now := time.Now()
		if now.After(look) {
			if r.enough() {
				break
			}
			if now.Sub(began) > longest+r.chaos.For {
				r.Errorf("not enough has happened in %v for the run to mean anything; see the table", longest)
				break
			}
			look = now.Add(time.Second)
		}
		if r.chaos.Forget != nil && r.rules.forgets() && now.After(forget) {
			r.forget()
			forget = now.Add(chaos.Between(r.Random, r.rules.window()/4, 3*r.rules.window()/2))
		}
		r.Look()
		if !r.chaos.Calm {
			r.Strike()
		}
	}

	// Stopped processes go on, and return the IDs that they were about to return.
	r.Continue()
	time.Sleep(leaseWindow / 6)
}

// during begins what happens to the store. The function that it returns ends that.
func (r *run) during() (end func()) {
	if r.chaos.During == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(r.T.Context())
	done := make(chan error, 1)
	go func() { done <- r.chaos.During(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			r.Errorf("During = %v; want no error", err)
		}
	}
}

// forget makes the store forget.
func (r *run) forget() {
	ctx, cancel := context.WithTimeout(r.T.Context(), longest)
	defer cancel()
	if err := r.chaos.Forget(ctx, r.namespace); err != nil {
		r.Errorf("Forget = %v; want no error", err)
		return
	}
	r.forgotten++
}

// order returns what a new process is to do.
func (r *run) order(files string) any {
	history := ""
	if r.chaos.History != "" {
		history = filepath.Join(r.chaos.History, filepath.Base(files)+historyEnd)
	}
	return order{
		Store:     r.chaos.Store,
		DSN:       r.chaos.DSN,
		Namespace: r.namespace,
		Rules:     r.rules,
		Rows:      r.chaos.Rows,
		Window:    r.chaos.Window,
		Real:      r.chaos.During != nil,
		Calm:      r.chaos.Calm,
		Seed:      r.Random.Uint64(),
		Files:     files,
		History:   history,
	}
}
