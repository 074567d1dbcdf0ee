package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/lease/sqllease"
)

// finish writes the statements that keysql returns, and with -apply runs them.
func (o *options) finish(ctx context.Context, out *bufio.Writer) func([]string, error) error {
	return func(statements []string, err error) error {
		if err != nil || !o.apply {
			return o.finishOn(ctx, out, nil)(statements, err)
		}
		d, err := o.open(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = d.Close() }()
		return o.finishOn(ctx, out, d)(statements, nil)
	}
}

// finishOn is finish on a database that is open.
func (o *options) finishOn(ctx context.Context, out *bufio.Writer, d *database) func([]string, error) error {
	return func(statements []string, err error) error {
		if err != nil {
			return usageError{err}
		}
		text := "-- there is nothing to do\n"
		if len(statements) > 0 {
			text = strings.Join(statements, ";\n") + ";\n"
		}
		if o.apply && len(statements) > 1 {
			text += "-- What takes it back, also after a part of it:\n" + regexp.MustCompile("(?m)^").ReplaceAllString(cmp.Or(o.undo, undo(statements)), "-- ") + ";\n"
		}
		if _, err := out.WriteString(text); err != nil || !o.apply || len(statements) == 0 {
			return err
		}
		return o.run(ctx, out, d, statements)
	}
}

// What statements make, by kind and name: functions, triggers and views, and partitions of PostgreSQL. The
// sequence of id_next stays, because one that begins anew repeats keys.
var made = regexp.MustCompile(`(?m)^CREATE (?:OR REPLACE )?(?:SQL SECURITY INVOKER )?(FUNCTION|TABLE|TRIGGER|VIEW) (?:IF NOT EXISTS )?([^ (]+)`)

// undo returns the statements that remove what others make. A partition goes only while it has no rows.
func undo(statements []string) string {
	var all []string
	for _, m := range slices.Backward(made.FindAllStringSubmatch(strings.Join(statements, "\n"), -1)) {
		text := "DROP " + m[1] + " IF EXISTS " + m[2]
		if m[1] == "TABLE" {
			text = "DO $snowkey$ BEGIN\nLOCK TABLE " + m[2] + " IN ACCESS EXCLUSIVE MODE;\nIF EXISTS (SELECT FROM " + m[2] + ") THEN RAISE EXCEPTION 'there are rows in %', '" + m[2] + "'; END IF;\n" + text + ";\nEXCEPTION WHEN undefined_table THEN NULL;\nEND $snowkey$"
		}
		all = append(all, text)
	}
	return strings.Join(all, ";\n")
}

// run asks, and runs statements that have been written. Each is whole by itself, and does nothing
// if it was run before, so that a run that ends in the middle is gone on with by running it again.
func (o *options) run(ctx context.Context, out *bufio.Writer, d *database, statements []string) error {
	if err := d.refuseOtherLayout(ctx, o); err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if err := o.confirm(ctx, fmt.Sprintf("Run these %d statements on %s?", len(statements), d)); err != nil {
		return err
	}
	p := newProgress(int64(len(statements)), "statements")
	defer p.clear()
	for i, statement := range statements {
		p.show(int64(i))
		if _, err := d.ExecContext(ctx, statement); err != nil {
			p.clear()
			if ctx.Err() != nil {
				err = errInterrupted
			}
			if i == 0 {
				return fmt.Errorf("%w: statement 1 of %d was not done, and nothing is changed", d.hide(err), len(statements))
			}
			return fmt.Errorf("%w: statement %d of %d was not done, and the %d before it were; when the cause is gone, the same command goes on with it", d.hide(err), i+1, len(statements), i)
		}
	}
	p.clear()
	_, err := fmt.Fprintf(out, "-- done: %d statements\n", len(statements))
	return err
}

// refuseOtherLayout refuses a layout that no namespace of the database's leases has, if it keeps
// leases in the default table. Functions and bounds for it would misread every key.
func (d *database) refuseOtherLayout(ctx context.Context, o *options) error {
	l, err := o.keyLayout()
	if err != nil {
		return err
	}
	store, err := sqllease.New(d.DB, o.store(d.dialect))
	if err != nil {
		return err
	}
	spaces, err := store.Spaces(ctx)
	if spaces = slices.DeleteFunc(spaces, ofRegions); err != nil || len(spaces) == 0 {
		return nil //nolint:nilerr // no leases here, or no right to see them
	}
	var stored []string
	for _, s := range spaces {
		if strings.TrimSuffix(s.Layout, leasestore.GuardMark) == lease.Fingerprint(l) {
			return nil
		}
		stored = append(stored, s.Layout)
	}
	slices.Sort(stored)
	return usagef("the layout is another than that of the leases in this database, which is %s", strings.Join(slices.Compact(stored), "; or "))
}
