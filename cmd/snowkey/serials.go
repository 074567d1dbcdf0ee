package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/snowkey/snowkey/core/serial"
	"github.com/snowkey/snowkey/core/serial/sqlserial"
	"github.com/snowkey/snowkey/core/sqlstore"
)

var serials = command{
	name:    "serials",
	summary: "show the counters of serial numbers, make and raise them",
	args:    "[list [series] | create series definition | move series [period] number | raise series [period] number]",
	most:    4,
	words:   []string{"list", "create", "move", "raise"},
	flags:   "db table reason json yes",
	text: `Shows the series of serial numbers such as those of invoices, with the last number of each period and whether it is closed. -db names PostgreSQL, MySQL, MariaDB or the file of SQLite that has them.

    snowkey serials -db postgres://shop@db/shop
    snowkey serials -db postgres://shop@db/shop move invoices 2026 417

create makes a series, and its tables unless they are there. The definition has the form in which the list shows it, and must be that of the programs, which otherwise are refused.

    snowkey serials create invoices \
      'prefix "INV", Yearly in Europe/Berlin, 6 digits from 1, NoCheck'

move goes on after the last number that another program has given in a period. Stop that program before. It is refused once the counter has given numbers itself.

raise leaves out the numbers of a period up to one, for numbers that are on paper although the database does not know them after a backup was restored. Stop all programs of the series before. It makes a gap, which auditors ask about: -reason is kept with the time.

    snowkey serials -reason 'restored the backup of Monday' \
      raise invoices 2026 430

A series without periods needs no period. All three show what there is and ask before they write, and none lowers a counter.`,
	run: func(ctx context.Context, o *options, out *bufio.Writer, args []string) error {
		word, name, period := "list", "", ""
		if len(args) > 0 {
			word, args = args[0], args[1:]
		}
		if len(args) > 0 {
			name, args = args[0], args[1:]
		}
		changes := word == "move" || word == "raise"
		if changes && len(args) == 2 {
			period, args = args[0], args[1:]
		}
		var series serial.Series
		var number int64
		var err error
		switch {
		case (word == "raise") != (o.reason != ""):
			return usagef("want -reason with raise, and with nothing else")
		case word == "list" && len(args) == 0:
		case word == "create" && len(args) == 1:
			series, err = serial.ParseDefinition(name, args[0])
		case changes && len(args) == 1:
			if number, err = strconv.ParseInt(args[0], 10, 64); err != nil || number < 0 {
				err = fmt.Errorf("%.64q: want a number 0..%d", args[0], int64(math.MaxInt64))
			}
		default:
			return usagef("want one of list [series], create series definition, move series [period] number, raise series [period] number")
		}
		if err != nil {
			return usageError{err}
		}
		store, d, err := openStore(ctx, o, sqlserial.New)
		if err != nil {
			return err
		}
		defer func() { _ = d.Close() }()
		s := serialStore{o, out, d, store}
		switch word {
		case "list":
			return s.list(ctx, name)
		case "create":
			return s.create(ctx, series)
		}
		return s.change(ctx, word, name, period, number)
	},
}

// A serialStore is an open table of counters.
type serialStore struct {
	*options
	out   *bufio.Writer
	d     *database
	store *sqlserial.Store
}

// list writes the rows of a series, or of all, and all that was written before.
func (s serialStore) list(ctx context.Context, name string) error {
	rows, err := s.store.Rows(ctx)
	if err != nil {
		return s.d.notThere("counters", err)
	}
	var all [][]any
	for _, r := range rows {
		last, state := strconv.FormatInt(r.Last, 10), "open"
		switch {
		case name != "" && r.Series != name:
			continue
		case !r.Counted:
			last, state = "", "unused"
		case r.Closed:
			state = "closed"
		}
		all = append(all, []any{r.Series, r.Period, last, state, r.Definition})
	}
	if len(all) == 0 && name != "" {
		return fmt.Errorf("%s: %w: %s", s.d, serial.ErrNoSeries, name)
	}
	if name == "" {
		if err := s.writeTable(ctx, s.out, s.store); err != nil {
			return s.d.hide(err)
		}
	}
	return s.writeRows(s.out, "series period last state definition", all...)
}

func (s serialStore) create(ctx context.Context, series serial.Series) error {
	table := ""
	switch _, err := s.store.Lookup(ctx, series.Name); {
	case err == nil:
		return cmp.Or(s.list(ctx, series.Name), fmt.Errorf("%s: the series %s is there already", s.d, series.Name))
	case errors.Is(err, sqlstore.ErrNoTable):
		table = ", and the tables,"
	case !errors.Is(err, serial.ErrNoSeries):
		return s.d.hide(err)
	}
	if err := s.confirm(ctx, fmt.Sprintf("Create the series %s%s in %s? Its numbers look like %s, and its definition cannot be changed.", series.Name, table, s.d, example(series))); err != nil {
		return err
	}
	var err error
	if table != "" {
		err = s.store.CreateTables(ctx)
	}
	if err == nil {
		err = s.store.Define(ctx, series)
	}
	if err != nil {
		return s.d.hide(err)
	}
	return s.list(ctx, series.Name)
}

// example returns the text of the first number of a series in May 2026.
func example(s serial.Series) string {
	first, _ := s.Bounds()
	n, _ := s.Number(time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC), first) // which every valid series has
	return n.Text
}

func (s serialStore) change(ctx context.Context, word, name, period string, last int64) error {
	series, err := s.store.Lookup(ctx, name)
	if err != nil {
		return s.d.notThere("counters", err)
	}
	first, greatest := series.Bounds()
	if err := series.ValidatePeriod(period); err != nil || last > greatest {
		return usageError{cmp.Or(err, fmt.Errorf("%d: series %s has numbers up to %d", last, name, greatest))}
	}
	if err := s.list(ctx, name); err != nil {
		return err
	}
	rows, err := s.store.Rows(ctx)
	if err != nil {
		return s.d.hide(err)
	}
	now := first - 1
	for _, r := range rows {
		if r.Series == name && r.Period == period && r.Counted {
			now = max(now, r.Last)
		}
	}
	of := "the series"
	if period != "" {
		of = "the period " + period
	}
	if last <= now {
		_, err := fmt.Fprintf(s.out, "nothing to do: the last number of %s is %d\n", of, now)
		return err
	}
	question := fmt.Sprintf("Go on with %d in %s? The other program must have given %d last, and give no more.", last+1, of, last)
	do := func() error { return s.store.MoveIn(ctx, name, period, last) }
	if word == "raise" {
		question = fmt.Sprintf("Leave out %d to %d in %s? This makes a gap of %d numbers for good, unless they are on paper, and it is kept on record with the reason.", now+1, last, of, last-now)
		do = func() error { return s.store.Raise(ctx, name, period, last, s.reason) }
	}
	if err := s.confirm(ctx, question); err != nil {
		return err
	}
	if err := do(); err != nil {
		return s.d.hide(err)
	}
	return s.list(ctx, name)
}
