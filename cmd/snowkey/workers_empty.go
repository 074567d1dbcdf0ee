package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/lease/sqllease"
	"github.com/snowkey/snowkey/types"
)

// empty gives a namespace that no program uses another layout, for keys that end at above at the
// latest if that is not negative.
func (l *leases) empty(ctx context.Context, o *options, out *bufio.Writer, s leasestore.Space, above types.Snowflake) error {
	store, ok := l.leaseStore.(*sqllease.Store)
	if !ok {
		return usagef("empty is for PostgreSQL, MySQL, MariaDB and SQLite: with leases in %s use a namespace of another name, in Config.Namespace", l.Scheme)
	}
	layout, err := o.keyLayout()
	if err != nil {
		return err
	}
	old, err := config(s)
	if err != nil {
		return l.hide(err)
	}
	to := s
	to.Layout, to.Workers = lease.Fingerprint(layout), 1<<layout.WorkerBits
	if to.Layout == s.Layout {
		_, err := fmt.Fprintf(out, "namespace %s has the layout %q: nothing to do\n", s.Namespace, s.Layout)
		return err
	}
	rows, now, err := l.Rows(ctx, s)
	if err != nil {
		return l.hide(err)
	}
	if err := unused(s, rows, now); err != nil {
		return err
	}
	if old.LossGuard > 0 || old.Layout.DatacenterBits > 0 || layout.DatacenterBits > 0 {
		return fmt.Errorf("namespace %s: empty is for layouts without datacenters and leases without the loss guard, because another store may have rows of theirs, or this one may have lost some: use a namespace of another name, in Config.Namespace", s.Namespace)
	}
	span := madeKeys{layout: old.Layout, from: now, most: above}
	for _, row := range rows {
		span.until = max(span.until, row.Until)
		if row == (leasestore.Row{Worker: row.Worker}) {
			continue
		}
		past, err := l.History(ctx, s, row.Worker)
		if err != nil {
			return l.hide(err)
		}
		for _, h := range past {
			span.from = min(span.from, h.From)
		}
	}
	if err := span.apart(layout, now); err != nil {
		return fmt.Errorf("namespace %s: %w", s.Namespace, err)
	}
	question := fmt.Sprintf("Empty namespace %s of %s, which keeps %d worker numbers of the layout %q, and let programs with the layout %q begin there? Programs with the old one then fail.", s.Namespace, l, s.Workers, s.Layout, to.Layout)
	if above >= 0 {
		question += fmt.Sprintf(" Keys repeat unless both are true: every process that has ever had a number of the namespace has ended, paused and copied ones too; and no key of the namespace is after %d, in any table, copy, queue or other system.", above)
	}
	if err := o.confirm(ctx, question); err != nil {
		return err
	}
	// From the time that was read on: everything that was decided holds for later keys.
	if err := store.Relayout(ctx, s, to, rows, max(now, span.until)); err != nil {
		if errors.Is(err, leasestore.ErrLost) {
			err = fmt.Errorf("a worker number was taken or renewed since the rows were read, so that a program uses the namespace; nothing was changed: %w", err)
		}
		return l.hide(err)
	}
	_, err = fmt.Fprintf(out, "namespace %s: the %d worker numbers of the layout %q are gone, and %d of the layout %q are free from %s on\n",
		s.Namespace, s.Workers, s.Layout, to.Workers, to.Layout, stamp(max(now, span.until).Time()))
	return err
}

// unused returns an error unless the last lease of a space ended longer than the longest window ago.
// Every holder that lives has renewed since, unless its clock is wrong. Each number that is held or was
// given back counts.
func unused(s leasestore.Space, rows []leasestore.Row, now leasestore.Millis) error {
	for _, row := range rows {
		if row.Epoch >= leasestore.RelayoutEpochs {
			return fmt.Errorf("namespace %s was emptied before, so that nothing is known of the keys of its first layout: use a namespace of another name, in Config.Namespace", s.Namespace)
		}
		if row.Retired() {
			return fmt.Errorf("worker %d of namespace %s is retired, so that keys of its layout are made without a lease: use a namespace of another name, in Config.Namespace", row.Worker, s.Namespace)
		}
		last, holder := row.Until.Time(), fmt.Sprintf("by %q", row.Holder)
		if row.Owner == "" {
			row.Owner, holder = "given back", "and was given back" // Written also tells when
		}
		if at, ok := row.Written(); ok && at.After(last) {
			last = at
		}
		if row.Until > 0 && now.Time().Sub(last) < longestWindow {
			return fmt.Errorf("worker %d of namespace %s was in use at %s, %s: stop all programs of the namespace, and try again after %s; or use a namespace of another name, in Config.Namespace",
				row.Worker, s.Namespace, stamp(last.UTC()), holder, stamp(last.Add(longestWindow).UTC()))
		}
	}
	return nil
}

// madeKeys are what is known of the keys that a layout has made.
type madeKeys struct {
	layout      core.Layout
	from, until leasestore.Millis // of their times
	most        types.Snowflake   // no key exceeds it; negative: not known
}

// apart returns an error if a key of the layout next, from the time now on, may be one of m.
func (m madeKeys) apart(next core.Layout, now leasestore.Millis) error {
	first, last := m.layout.Min(m.from.Time()), m.layout.Max(m.until.Time())
	if m.most >= 0 {
		last = min(last, m.most)
	}
	begin, end := next.Min(max(now, m.until).Time()), next.Max(next.Exhausted().Add(-time.Nanosecond))
	if last < first || last < begin || end < first {
		return nil
	}
	return fmt.Errorf("its keys are from %d to %d, and those of the new layout from %d to %d, so that keys could repeat; if no key of the namespace is stored anywhere, -above 0 says so; otherwise use other tables and a namespace of another name", first, last, begin, end)
}
