package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/gormplugin/schemacheck"
	"github.com/snowkey/snowkey/types"
)

var doctor = command{
	name:    "doctor",
	summary: "say what is wrong with keys, their tables, leases and clocks",
	args:    "[table.column | table | segment:tag=table.column | serial:series=table.column | key ...]",
	most:    math.MaxInt,
	flags:   "db leases table namespace layout bits epoch unit full all json",
	text: `Looks for what makes keys repeat, fail or mislead, and says of each finding how it is mended. It only reads. -db names PostgreSQL, MySQL, MariaDB or the file of SQLite that has the tables.

    snowkey doctor -db postgres://shop@db/shop orders.id items.id
    snowkey doctor -db mysql://shop@db/shop -leases redis://cache orders.id
    snowkey doctor -db postgres://shop@db/shop \
      segment:tickets=tickets.id serial:invoices=invoices.number

It always looks at the clocks of this machine and of the database, and at the leases: those of -leases, or else of -db or in the file that snowkey.Open makes beside one of SQLite. -table names the table of leases if it is not the usual one. The layout of the keys is that of the leases, unless flags name one. A table without a column stands for its primary key. Of a column of keys it looks at the type, at the smallest and the greatest key, whether a unique index keeps them apart, or else which keys several rows have, and whether a lease could have made the newest 10,000, or with -full all of them. Of segments it compares the next number with the greatest in the column, and of serials the counters with the texts in the column.

Before a program moves to keys of 64 bits, -all finds in all tables the primary keys that are too narrow or counted by the database, and the columns that foreign keys bind to them, with the statements. A column of MySQL keeps its sign: one that is BIGINT UNSIGNED, as GORM makes it of a uint, holds every key. It also finds narrow columns that no foreign key binds, if their names end as in order_id or orderId. Columns come before the keys to which they refer. Stop the old program, run the statements of the first finding, and then doctor again, because on MySQL they change what is bound together.

    snowkey doctor -db postgres://shop@db/shop -all

A key, in any form that decode reads, is asked about after a database has refused it as a duplicate, or when a row looks strange: who made it, in how many rows of the columns it is, and which mistakes make such a pair, the likeliest first.

    snowkey doctor -db postgres://shop@db/shop orders.id 312345678901234567

The exit code is that of the worst finding: 0 for notes, 1 for warnings, 2 for errors, which lose or repeat keys, or will. What could not be looked at is an error too.`,
	run: func(ctx context.Context, o *options, out *bufio.Writer, args []string) error {
		d := &examination{options: o, out: out, now: time.Now(), told: map[string]bool{}}
		if err := d.read(args); err != nil {
			return err
		}
		return d.run(ctx)
	},
}

// A severity is how bad a finding is. It is the exit code, too, for which it is an error.
type severity int

const (
	note severity = iota
	warning
	sick
)

func (s severity) String() string { return [...]string{"note", "warning", "error"}[s] }
func (s severity) Error() string  { return s.String() }

// An examination is a run of doctor.
type examination struct {
	*options
	out     *bufio.Writer
	columns []keyColumn
	counted []countedColumn
	keys    []types.Snowflake

	d       *database // nil if there is none
	l       *leases   // nil if there are none
	layouts core.Layout
	now     time.Time // of the database, if it has a clock
	past    map[holderKey][]leasedSpan
	worst   severity
	found   int             // findings
	told    map[string]bool // those on types
}

// A keyColumn is a column of keys, with names as they are given.
type keyColumn struct {
	name, table, column string
	guessed             bool // by its name, which may mislead
}

func (c keyColumn) String() string { return c.name }

// schema returns the schema, which may be "", and the table.
func (c keyColumn) schema() (schema, table string) {
	if schema, table, qualified := strings.Cut(c.table, "."); qualified {
		return schema, table
	}
	return "", c.table
}

// A countedColumn is a column of the numbers of a tag of segments, or of the texts of a series.
type countedColumn struct {
	kind, name string
	keyColumn
}

var tableName = regexp.MustCompile(`^[A-Za-z_]\w*$`)

var countedName = regexp.MustCompile(`^(segment|serial):([^=]+)=(.*)$`)

func (e *examination) read(args []string) error {
	for _, arg := range args {
		if strings.Contains(arg, "://") { // and may hold a password
			return usagef("an address among the columns: -db names the database")
		}
		kind, name, column := "", "", arg
		if m := countedName.FindStringSubmatch(arg); m != nil {
			kind, name, column = m[1], m[2], m[3]
		}
		if key, err := read(arg); err == nil {
			e.keys = append(e.keys, key)
			continue
		}
		if kind == "" && tableName.MatchString(column) {
			e.columns = append(e.columns, keyColumn{name: column, table: column}) // which its primary key names
			continue
		}
		if !columnName.MatchString(column) {
			return usagef("%.64q: want a column such as orders.id, segment:tickets=tickets.id, serial:invoices=invoices.number, or a key", arg)
		}
		dot := strings.LastIndexByte(column, '.')
		c := keyColumn{name: column, table: column[:dot], column: column[dot+1:]}
		if kind == "" {
			e.columns = append(e.columns, c)
		} else {
			e.counted = append(e.counted, countedColumn{kind, name, c})
		}
	}
	if e.layoutNamed() {
		var err error
		if e.layouts, err = e.keyLayout(); err != nil {
			return err
		}
	}
	return nil
}

func (e *examination) run(ctx context.Context) error {
	switch _, err := e.locate(); {
	case errors.Is(err, errNoDatabase) && e.leases != "" && len(e.columns)+len(e.counted) == 0 && !e.all:
	case err != nil:
		return err
	default:
		if e.d, err = e.open(ctx); err != nil {
			return err
		}
		defer func() { _ = e.d.Close() }()
	}
	l, err := e.leasesOf(ctx)
	if err != nil {
		return err
	}
	if l != nil {
		e.l = l
		defer func() { _ = l.close() }()
	}
	checks := []check{{"clock", e.clocks}, {"leases", e.lookAtLeases}}
	compared := sync.OnceValues(func() ([]schemacheck.Finding, error) { return e.compare(ctx, e.columns) })
	for i, c := range e.columns {
		if c.column == "" {
			if c.column, err = e.primaryKey(ctx, c.table); err != nil {
				return err
			}
			c.name = c.table + "." + c.column
			e.columns[i] = c
		}
		checks = append(checks, check{c.name, func(ctx context.Context) error {
			findings, err := compared()
			if err != nil {
				return err
			}
			return e.column(ctx, c, findings)
		}})
	}
	if e.all {
		checks = append(checks, check{"tables", e.everyKey})
	}
	for _, c := range e.counted {
		at := e.segment
		if c.kind == "serial" {
			at = e.serial
		}
		checks = append(checks, check{c.keyColumn.name, func(ctx context.Context) error { return at(ctx, c) }})
	}
	for _, key := range e.keys {
		checks = append(checks, check{key.String(), func(ctx context.Context) error { return e.key(ctx, key) }})
	}
	for _, c := range checks {
		err := c.run(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, new(usageError)):
			return err
		case err != nil:
			err = e.find(sick, c.where, "could not be looked at: "+err.Error(), "")
		}
		if err != nil {
			return err
		}
	}
	if e.worst > note {
		return e.worst
	}
	if e.json {
		return nil
	}
	_, err = fmt.Fprintln(e.out, "nothing is wrong with what was looked at")
	return err
}

// A check is a part of the examination. Its error is a finding, unless it is of the output, where no
// finding can be written.
type check struct {
	where string
	run   func(context.Context) error
}

// find writes a finding. What mends it may have several lines.
func (e *examination) find(s severity, where, reason, mend string) error {
	e.worst, e.found = max(e.worst, s), e.found+1
	if e.json {
		return e.writeRows(e.out, "severity where reason mend", []any{s.String(), where, reason, mend})
	}
	const indent = "         "
	text := fmt.Sprintf("%-8s ", s) + strings.TrimPrefix(wrap(where+": "+reason, indent), indent)
	for line := range strings.Lines(mend) {
		if strings.HasPrefix(line, "  ") { // a statement or a command, which somebody copies
			text += indent + strings.TrimRight(line, "\n") + "\n"
		} else {
			text += wrap(line, indent)
		}
	}
	_, err := e.out.WriteString(text)
	return cmp.Or(err, e.out.Flush())
}

// layout returns the layout of the keys: that of the flags, or of the leases.
func (e *examination) layout() core.Layout { return cmp.Or(e.layouts, core.Default()) }

// leasesOf opens the leases of -leases, or else those that may be at -db. It returns nil if there
// are none at -db.
func (e *examination) leasesOf(ctx context.Context) (*leases, error) {
	o := &options{db: e.leases, table: e.table}
	if e.leases != "" {
		l, err := o.openLeases(ctx)
		if err != nil {
			err = fmt.Errorf("-leases: %w", err)
		}
		return l, err
	}
	o.db = cmp.Or(e.db, os.Getenv(dbVariable))
	l, err := o.openLeases(ctx)
	if errors.Is(err, errNoLeases) && e.table == "" {
		return nil, nil //nolint:nilnil // a program may keep them elsewhere, or have none
	}
	return l, err
}
