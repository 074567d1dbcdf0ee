package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/lease/sqllease"
	"github.com/snowkey/snowkey/types"
)

var workers = command{
	name:    "workers",
	summary: "show who holds which worker number, and retire or free it",
	args:    "[number | history number | retire number | reinstate number | free number | fence | empty]",
	most:    2,
	words:   []string{"history", "retire", "reinstate", "free", "fence", "empty"},
	flags:   "db table namespace datacenter reason above live layout epoch unit bits json yes",
	text: `Shows the worker numbers that programs take by leases: who holds one, until when, by the clock of the store, and when it was renewed last, by the clock of its holder. A number that is held is renewed in each quarter of the time that it is reserved for, as long as its holder lives; reserved is one that nobody holds and that can be taken then, and unused is one that nobody ever had. Without a number it leaves the unused ones out. history shows who has had a number. Nothing is changed or made.

    snowkey workers -db postgres://shop@db/shop
    snowkey workers -db redis://cache 7
    snowkey workers -db sqlite:shop.db history 7

-db names PostgreSQL, MySQL, MariaDB, SQLite (of a file that has another beside it with -leases after its name, which snowkey.Open makes, it shows the leases in there, unless -table is given), Redis (rediss with TLS; the other servers of a cluster follow, as in ?addr=b:6379&addr=c:6379), etcd (etcds with TLS) or ZooKeeper, of which several servers are separated by commas.

retire takes a number that nobody ever had out of use for good, for keys that are made without a lease; -reason is required. reinstate undoes it.

    snowkey workers -reason 'rows by hand' retire 1023

free ends the lease of a holder that is dead. The number stays reserved until its time, because the holder may only be paused, so it usually suffices to wait. One that was renewed in the last ten minutes, and whose holder therefore may live, needs -live. For a number that a wrong clock has reserved far ahead, -above names a key that no key of the number exceeds. The reserved time then ends after that key, and ten minutes from now at the earliest. Keys repeat if that is not true, or if a process that has ever had the number runs again.

fence is for a store that was restored, or that has lost writes otherwise, while all programs are stopped. It ends all leases, and no number begins before the time of the key of -above and a second more, which is the greatest key of all tables.

    snowkey workers -above 312345678901234567 fence

empty is for a program that was started with a layout that it shall not have. In a SQL database, it gives a namespace that no program uses another layout. -layout, or -epoch, -unit and -bits, say which; the error of the program has them.

    snowkey workers -layout javascript empty

It refuses a namespace that was emptied before, or with a number that is retired or was in use in the last ten minutes, and a layout that could repeat keys which the namespace has made. -above names a key that none of these exceeds, 0 if none is left anywhere. Numbers begin where the old ones ended.

The namespaces NAME.regions and NAME.home have the datacenter numbers of regions and the one of the region whose store it is, see Regions in docs/workers.md. A region renews them about once a minute. Free gives them back, and also needs -live if one was renewed in the last ten minutes; another region gets a number after an hour and ten minutes.

    snowkey workers -namespace shop.regions free 3

All but the list are about one namespace, and about datacenter 0 unless -datacenter names another. What changes something asks before.`,
	run: func(ctx context.Context, o *options, out *bufio.Writer, args []string) error {
		word := "list"
		if len(args) > 0 && slices.Contains([]string{"history", "retire", "reinstate", "free", "fence", "empty"}, args[0]) {
			word, args = args[0], args[1:]
		}
		worker := int64(-1)
		if len(args) > 0 {
			n, err := strconv.ParseUint(args[0], 10, 16)
			if err != nil || len(args) > 1 {
				return usagef("%.64q: want the number of a worker, after one of history, retire, reinstate or free", args)
			}
			worker = int64(n)
		}
		above := types.Snowflake(-1)
		if o.above != "" {
			var err error
			if above, err = read(o.above); err != nil {
				return usagef("-above: %w", err)
			}
		}
		switch err := (leasestore.Space{Namespace: o.namespace, Workers: 1}).Validate(); {
		case o.namespace != "" && err != nil:
			return usageError{err}
		case word == "fence" && (worker >= 0 || o.above == ""):
			return usagef("fence needs -above, the greatest key of all tables, and no number")
		case word == "empty" && (worker >= 0 || !o.layoutNamed()):
			return usagef("empty needs the new layout, as -layout or -bits, and no number")
		case word != "empty" && o.layoutNamed():
			return usagef("-layout, -bits, -epoch and -unit are for empty")
		case word != "list" && word != "fence" && word != "empty" && worker < 0:
			return usagef("%s: want the number of a worker after it", word)
		case (word == "retire") != (o.reason != ""):
			return usagef("want -reason with retire, and with nothing else")
		case strings.ContainsFunc(o.reason, func(r rune) bool { return r < ' ' || r > '~' }):
			return usagef("-reason %.64q: want printable characters of ASCII", o.reason)
		case o.above != "" && word != "free" && word != "fence" && word != "empty":
			return usagef("-above is for free, fence and empty")
		}
		l, err := o.openLeases(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = l.close() }()
		if word == "list" {
			return l.list(ctx, o, out, worker)
		}
		space, err := l.space(o)
		if err == nil && worker >= space.Workers {
			err = usagef("worker %d: namespace %s has 0..%d", worker, space.Namespace, space.Workers-1)
		}
		if err != nil {
			return err
		}
		switch {
		case ofRegions(space) && (word != "free" && word != "history" || o.above != ""):
			return usagef("namespace %s has the datacenter numbers of regions: want history or free, without -above", space.Namespace)
		case word == "history":
			return l.history(ctx, o, out, space, worker)
		case word == "fence":
			return l.fence(ctx, o, out, space, above)
		case word == "empty":
			return l.empty(ctx, o, out, space, above)
		}
		return l.change(ctx, o, out, space, worker, word, above)
	},
}

// space returns the space that the flags name.
func (l *leases) space(o *options) (found leasestore.Space, err error) {
	var all []string
	n := 0
	for _, s := range l.spaces {
		all = append(all, fmt.Sprintf("%s with datacenter %d", s.Namespace, s.Datacenter))
		if s.Datacenter == o.datacenter && (o.namespace == "" || s.Namespace == o.namespace) {
			found = s
			n++
		}
	}
	if n != 1 {
		return found, usagef("want -namespace and -datacenter to name one of: %s", strings.Join(all, ", "))
	}
	return found, nil
}

const longestWindow = 10 * time.Minute

const workerColumns = "namespace datacenter worker state from until in renewed fence holder"

// shown returns the columns of a row that is printed.
func shown(s leasestore.Space, row leasestore.Row, now leasestore.Millis) (state string, cells []any) {
	from, until, in, renewed := "", stamp(row.Until.Time()), "", ""
	if at, ok := row.Written(); ok {
		renewed = stamp(at.UTC())
	}
	switch {
	case row.Retired() && ofRegions(s):
		state, until = "assigned", ""
		if since := row.Until - leasestore.Retired; since <= now { // later if the row was freed just before
			from = stamp(since.Time())
		}
	case row.Retired():
		state, from, until = "retired", stamp((row.Until - leasestore.Retired).Time()), ""
	case row == leasestore.Row{Worker: row.Worker}:
		state, until = "unused", ""
	case row.Until <= now:
		state = "free"
	default:
		if state = "held"; row.Owner == "" {
			state = "reserved"
		}
		in = (row.Until - now).Duration().Round(time.Second).String()
	}
	return state, []any{s.Namespace, s.Datacenter, row.Worker, state, from, until, in, renewed, row.Epoch, row.Holder}
}

// list writes the rows of a worker, or of all if it is negative.
func (l *leases) list(ctx context.Context, o *options, out *bufio.Writer, worker int64) error {
	var all [][]any
	some := false
	for _, s := range l.spaces {
		if o.namespace != "" && s.Namespace != o.namespace || worker >= s.Workers {
			continue
		}
		some = true
		rows, now, err := l.Rows(ctx, s)
		if err != nil {
			return l.hide(err)
		}
		counts := map[string]int{}
		for _, row := range rows {
			state, cells := shown(s, row, now)
			counts[state]++
			if row.Worker == worker || worker < 0 && state != "unused" {
				all = append(all, cells)
			}
		}
		if !o.json && worker < 0 {
			_, _ = fmt.Fprintf(out, "namespace %s, datacenter %d, %d workers:", s.Namespace, s.Datacenter, s.Workers)
			for _, state := range []string{"held", "assigned", "reserved", "free", "retired", "unused"} {
				if counts[state] > 0 {
					_, _ = fmt.Fprintf(out, " %d %s", counts[state], state)
				}
			}
			_, _ = fmt.Fprintln(out)
		}
	}
	if !some {
		var names []string
		for _, s := range l.spaces {
			names = append(names, fmt.Sprintf("%s has 0..%d", s.Namespace, s.Workers-1))
		}
		return usagef("no such namespace, or no such worker: %s", strings.Join(slices.Compact(names), ", "))
	}
	if s, ok := l.leaseStore.(*sqllease.Store); ok && !o.json && worker < 0 {
		if err := o.writeTable(ctx, out, s); err != nil {
			return l.hide(err)
		}
	}
	return o.writeRows(out, workerColumns, all...)
}

// history writes the past and present holders of a worker number.
func (l *leases) history(ctx context.Context, o *options, out *bufio.Writer, s leasestore.Space, worker int64) error {
	past, err := l.History(ctx, s, worker)
	if err != nil {
		return l.hide(err)
	}
	var all [][]any
	for _, h := range past {
		from := ""
		if h.From > 0 {
			from = stamp(h.From.Time())
		}
		row := []any{s.Namespace, s.Datacenter, worker, "", from, stamp(h.Until.Time()), "", "", h.Epoch, h.Holder}
		if !o.json { // the line above says the same
			row[0], row[1], row[2] = "", "", ""
		}
		all = append(all, row)
	}
	if !o.json {
		_, _ = fmt.Fprintf(out, "worker %d of namespace %s, datacenter %d\n", worker, s.Namespace, s.Datacenter)
	}
	return o.writeRows(out, workerColumns, all...)
}

// fence ends all leases of a space, and lets no later one begin before a key and a second.
func (l *leases) fence(ctx context.Context, o *options, out *bufio.Writer, s leasestore.Space, above types.Snowflake) error {
	config, err := config(s)
	if err != nil {
		return l.hide(err)
	}
	until := config.Layout.Parts(above).Time.Add(time.Second)
	if err := o.confirm(ctx, fmt.Sprintf("End all leases of namespace %s, datacenter %d, and let no number begin before %s? Its programs must all be stopped, or keys can repeat.", s.Namespace, s.Datacenter, stamp(until))); err != nil {
		return err
	}
	if err := lease.Fence(ctx, l.leaseStore, config, until); err != nil {
		return l.hide(err)
	}
	_, err = fmt.Fprintln(out, "fence: done")
	return err
}

// change retires, reinstates or frees a worker number. It shows the row as the store has it, and
// asks.
func (l *leases) change(ctx context.Context, o *options, out *bufio.Writer, s leasestore.Space, worker int64, word string, above types.Snowflake) error {
	rows, now, err := l.Rows(ctx, s)
	if err != nil {
		return l.hide(err)
	}
	at := slices.IndexFunc(rows, func(row leasestore.Row) bool { return row.Worker == worker })
	if at < 0 {
		return fmt.Errorf("worker %d has no row: somebody has deleted it, which must never be done", worker)
	}
	row := rows[at]
	state, cells := shown(s, row, now)
	until := cells[5]
	config, err := config(s)
	if err != nil {
		return l.hide(err)
	}
	var question string
	do := func() error { return l.end(ctx, s, row, row.Until) }
	name := fmt.Sprintf("worker %d of namespace %s, datacenter %d", worker, s.Namespace, s.Datacenter)
	switch {
	case word == "retire":
		do = func() error { return lease.Retire(ctx, l, config, worker, o.reason) }
		question = fmt.Sprintf("Take %s out of use for good? No program gets it any more, and what makes keys under it must be the only one.", name)
		if state != "unused" { // one that is retired is left alone, and another one refused
			if err := do(); err != nil {
				return l.hide(err)
			}
			question = ""
		}
	case word == "reinstate" && state == "retired":
		do = func() error { return lease.Reinstate(ctx, l, config, worker) }
		question = fmt.Sprintf("Give %s back to the programs, an hour and ten minutes from now on? What makes keys under it must have ended for good, and it cannot be retired again.", name)
	case word == "reinstate":
		return fmt.Errorf("%s is not retired, but %s", name, state)
	case state == "assigned" && alive(row, now) && !o.live:
		at, _ := row.Written()
		return fmt.Errorf("%s was marked at %s for region %q, which is less than %v ago, so that processes of the region may live: all of them must have ended; then wait, or say so with -live", name, stamp(at.UTC()), row.Holder, longestWindow)
	case state == "assigned":
		// No key of the region is later, unless the clock was wrong: a limit is at most an hour and the
		// longest window ahead.
		end := now + leasestore.MaxAhead + leasestore.Millis(longestWindow/time.Millisecond)
		do = func() error { return l.end(ctx, s, row, end) }
		question = fmt.Sprintf("Take %s from region %q? All processes of that region must have ended, or keys repeat.", name, row.Holder)
	case state == "retired":
		return fmt.Errorf("%s is retired: reinstate gives it back", name)
	case state == "free" || state == "unused":
		question = ""
	case alive(row, now) && !o.live:
		at, _ := row.Written()
		return fmt.Errorf("%s was renewed at %s by %q, which is less than a window ago, so that its process lives: stop that process, and the number is free; -live ends its lease all the same", name, stamp(at.UTC()), row.Holder)
	case o.above == "" && state == "reserved":
		return fmt.Errorf("nobody holds %s, whose reserved time ends at %s: wait until then; only for a time far ahead there is -above", name, until)
	case o.above == "":
		question = fmt.Sprintf("End the lease of %q on %s? If that process lives, it takes another number. This one stays reserved until %s, so that no key repeats.", row.Holder, name, until)
	default:
		// A live process whose clock is right learns within a quarter of its window that it has lost
		// the number, and its keys are before that moment. Only a process that has been paused, or
		// whose clock is wrong, can make later ones, and the operator says that there is none.
		last := config.Layout.Parts(above).Time
		end := max(leasestore.MillisOf(last.Add(config.Layout.Unit))+1, now+leasestore.Millis(longestWindow/time.Millisecond))
		if end >= row.Until {
			return fmt.Errorf("%s is reserved until %s, and -above would reserve it until %s: wait", name, until, stamp(end.Time()))
		}
		do = func() error { return l.end(ctx, s, row, end) }
		question = fmt.Sprintf("Reserve %s until %s and not until %s? Keys repeat unless both are true: every process that has ever had the number has ended, paused and copied ones too; and no key of the number is after %d, of %s, in any table, copy, queue or other system.",
			name, stamp(end.Time()), until, above, stamp(last))
	}
	if err := o.writeRows(out, workerColumns, cells); err != nil {
		return err
	}
	if question == "" {
		_, err := fmt.Fprintf(out, "nothing to do\n")
		return err
	}
	if err := o.confirm(ctx, question); err != nil {
		return err
	}
	if err := do(); err != nil {
		return l.hide(err)
	}
	_, err = fmt.Fprintf(out, "%s: done\n", word)
	return err
}

// alive reports whether a row was renewed within the longest window. Every holder that lives has, unless
// its clock is wrong, and every region that reaches the store.
func alive(row leasestore.Row, now leasestore.Millis) bool {
	at, ok := row.Written()
	return ok && row.Until > now && now.Time().Sub(at).Abs() < longestWindow
}

// end gives a row back as its holder would, unless it has changed since it was read. Its IDs end
// before the given time.
func (l *leases) end(ctx context.Context, s leasestore.Space, row leasestore.Row, end leasestore.Millis) error {
	var token [16]byte
	_, _ = rand.Read(token[:]) // never fails
	err := l.Release(ctx, leasestore.Release{Space: s, Worker: row.Worker, Epoch: row.Epoch, Owner: row.Owner, Known: []string{row.Nonce}, Nonce: fmt.Sprintf("%x", token), End: end})
	if errors.Is(err, leasestore.ErrLost) {
		err = fmt.Errorf("worker %d was renewed, or taken, since it was shown, so that its holder lives; nothing was changed", row.Worker)
	}
	return err
}
