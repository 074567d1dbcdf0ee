package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/sqlstore"
)

// lookAtLeases finds the layout, and rows of leases that will refuse the next process.
func (e *examination) lookAtLeases(ctx context.Context) error {
	if e.l == nil {
		if err := e.find(note, "leases", "there are none in "+e.d.String(), "If worker numbers are leased elsewhere, -leases names that store. If they are fixed, nothing tells whether two processes have one."); err != nil {
			return err
		}
		return e.yearsLeft()
	}
	if e.namespace != "" {
		e.l.spaces = slices.DeleteFunc(e.l.spaces, func(s leasestore.Space) bool { return s.Namespace != e.namespace })
		if len(e.l.spaces) == 0 {
			return usagef("-namespace %.64q: %s has none of that name", e.namespace, e.l)
		}
	}
	e.l.spaces = slices.DeleteFunc(e.l.spaces, ofRegions) // whose rows are no worker numbers
	if err := e.storedLayouts(); err != nil {
		return err
	}
	for _, s := range e.l.spaces {
		if err := e.space(ctx, s); err != nil {
			return err
		}
	}
	return e.yearsLeft()
}

// storedLayouts takes the layout from the leases, or compares that of the flags with it.
func (e *examination) storedLayouts() error {
	var all []core.Layout
	var texts []string
	for _, s := range e.l.spaces {
		c, err := config(s)
		if err != nil {
			if err := e.find(sick, "leases", err.Error(), "Programs of this version cannot claim a number there. Another version has stored it, or somebody has changed it."); err != nil {
				return err
			}
			continue
		}
		all, texts = append(all, c.Layout), append(texts, lease.Fingerprint(c.Layout))
	}
	slices.Sort(texts)
	stored := strings.Join(slices.Compact(texts), "; and ")
	switch {
	case len(all) == 0:
	case e.layoutNamed() && !slices.Contains(texts, lease.Fingerprint(e.layout())):
		return e.find(sick, "leases", "their layout is not that of the flags, but "+stored, "The keys of one table must have one layout. Name that of the programs, or leave the flags out.")
	case e.layoutNamed():
	case !strings.Contains(stored, ";"):
		e.layouts = all[0]
	default:
		return e.find(note, "leases", "there are several layouts: "+stored, "-namespace or -layout says which one the keys have. It is taken to be the default.")
	}
	return nil
}

// yearsLeft tells how long the layout lasts.
func (e *examination) yearsLeft() error {
	end := e.layout().Exhausted()
	left := end.Sub(e.now)
	if left > 5*365*24*time.Hour {
		return nil
	}
	s := warning
	if left < 0 {
		s = sick
	}
	return e.find(s, "layout", "its time bits end at "+stamp(end), "Plan a new layout, with new tables or a later epoch for them, or a wider key. No key is made after that time.")
}

// space looks at the rows of a space.
func (e *examination) space(ctx context.Context, s leasestore.Space) error {
	where := fmt.Sprintf("leases of %s, datacenter %d", s.Namespace, s.Datacenter)
	rows, now, err := e.l.Rows(ctx, s)
	if err != nil {
		return e.l.hide(err)
	}
	if e.l.LosesWrites() && !strings.HasSuffix(s.Layout, leasestore.GuardMark) {
		if err := e.find(warning, where, "the store may forget what it has acknowledged, and the loss guard is off", "Turn lease.Config.LossGuard on, in a new namespace, unless the server keeps every write."); err != nil {
			return err
		}
	}
	// No live process with a right clock reserves further ahead.
	far := now + leasestore.MaxAhead + leasestore.Millis(10*time.Minute/time.Millisecond)
	used, of := 0, 0
	for _, row := range rows {
		if row.Retired() {
			continue
		}
		of++
		if row.Until > now {
			used++
		}
		if row.Until <= far {
			continue
		}
		err := e.find(sick, where, fmt.Sprintf("worker %d is reserved until %s, by a process whose clock was wrong", row.Worker, stamp(row.Until.Time())),
			fmt.Sprintf("Do nothing while enough other numbers are free. Otherwise stop all processes of the namespace, and with the greatest key of the number run\n  snowkey workers -namespace %s -datacenter %d -above KEY free %d", s.Namespace, s.Datacenter, row.Worker))
		if err != nil {
			return err
		}
	}
	if used*10 > of*8 {
		err := e.find(warning, where, fmt.Sprintf("%d of %d worker numbers are in use", used, of), "The next rolling update may find none: run fewer processes, or plan a layout with more worker bits.")
		if err != nil {
			return err
		}
	}
	switch _, err := e.l.History(ctx, s, 0); {
	case errors.Is(err, sqlstore.ErrNoTable):
		return e.find(warning, where, "nothing records who holds a number: the table of past holders is missing", "CreateTables of the store makes it, or its statement of Statements.")
	case errors.Is(err, errors.ErrUnsupported):
		return e.find(note, where, "the store does not record who has held a number", "")
	case err != nil:
		return e.l.hide(err)
	}
	return nil
}

// A holderKey is a worker number of any namespace.
type holderKey struct{ datacenter, worker int64 }

// A leasedSpan is a claim of a worker number.
type leasedSpan struct {
	leasestore.Holder
	namespace string
}

func (s leasedSpan) String() string {
	name := s.Holder.Holder
	if name == "" {
		name = "an unknown holder"
	}
	from := "some time"
	if s.From > 0 {
		from = stamp(s.From.Time())
	}
	return fmt.Sprintf("%s in namespace %s, from %s to %s", name, s.namespace, from, stamp(s.Until.Time()))
}

// holders returns all that have had a worker number. It asks once.
func (e *examination) holders(ctx context.Context, k holderKey) ([]leasedSpan, error) {
	if spans, ok := e.past[k]; ok {
		return spans, nil
	}
	var spans []leasedSpan
	for _, s := range e.l.spaces {
		if s.Datacenter != k.datacenter || k.worker >= s.Workers {
			continue
		}
		all, err := e.l.History(ctx, s, k.worker)
		if err != nil {
			return nil, e.l.hide(err)
		}
		for _, h := range all {
			spans = append(spans, leasedSpan{h, s.Namespace})
		}
	}
	if e.past == nil {
		e.past = map[holderKey][]leasedSpan{}
	}
	e.past[k] = spans
	return spans, nil
}

// at returns the holders that had the number for a part of a key's tick.
func at(spans []leasedSpan, tick time.Time, unit time.Duration) (found []leasedSpan) {
	for _, s := range spans {
		if s.From.Time().Before(tick.Add(unit)) && tick.Before(s.Until.Time()) {
			found = append(found, s)
		}
	}
	return found
}
