package main

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/core/segment/sqlsegment"
	"github.com/snowkey/snowkey/core/sqlstore"
)

var segments = command{
	name:    "segments",
	summary: "show the ranges of numbers in a table, make and raise them",
	args:    "[list [tag] | create tag | raise tag number | move tag table.column ...]",
	most:    math.MaxInt,
	words:   []string{"list", "create", "raise", "move"},
	flags:   "db table step stride offset from json yes",
	text: `Shows the tags from which programs take ranges of numbers, and the first number of each that nobody has. -db names PostgreSQL, MySQL, MariaDB or the file of SQLite that has them.

    snowkey segments -db postgres://shop@db/shop
    snowkey segments -db mysql://shop@db/shop raise orders 2000000

create makes the row of a tag, and the table unless it is there. Its first number is 1, or with a -stride above 1 the first one after 0 of those that have the -offset.

raise lets no number come that is not greater than the one that is named, such as the greatest key in use after a backup was restored. The numbers in between are never given out. It never lowers.

move does the same with the greatest number of columns, for tables that counted their keys themselves so far. Stop all programs that insert with numbers of the database before. -from names the database of the columns if it is another one, as always on SQLite.

    snowkey segments -db sqlite:segments.db -from sqlite:shop.db \
      move orders orders.id

All three show the row and ask before they write.`,
	run: func(ctx context.Context, o *options, out *bufio.Writer, args []string) error {
		word, tag := "list", ""
		if len(args) > 0 {
			word, args = args[0], args[1:]
		}
		if len(args) > 0 {
			tag, args = args[0], args[1:]
		}
		row := segment.Row{Tag: tag, Step: o.step, Stride: o.stride, Offset: o.offset}
		above := int64(-1)
		err := row.Validate()
		if err == nil {
			row.Next = row.After(0)
		}
		switch {
		case word == "list" && len(args) == 0:
			if tag == "" {
				err = nil
			}
		case word == "create" && len(args) == 0:
		case word == "raise" && len(args) == 1:
			if above, err = strconv.ParseInt(args[0], 10, 64); err != nil || above < 0 {
				err = fmt.Errorf("%.64q: want a number 0..%d", args[0], int64(math.MaxInt64))
			}
		case word == "move" && len(args) > 0:
			for _, name := range args {
				if !columnName.MatchString(name) {
					err = fmt.Errorf("%.64q: want a column such as orders.id", name)
				}
			}
		default:
			return usagef("want one of list [tag], create tag, raise tag number, move tag table.column")
		}
		if err != nil {
			return usageError{err}
		}
		store, d, err := openStore(ctx, o, sqlsegment.New)
		if err != nil {
			return err
		}
		defer func() { _ = d.Close() }()
		s := segmentStore{o, out, d, store}
		switch word {
		case "list":
			return s.list(ctx, tag)
		case "create":
			return s.create(ctx, row)
		case "raise":
			return s.raise(ctx, tag, func() (int64, error) { return above, nil })
		}
		return s.raise(ctx, tag, func() (int64, error) { return s.greatest(ctx, args) })
	},
}

var columnName = regexp.MustCompile(`^\w+(\.\w+){1,2}$`)

// openStore opens a store in a table of the database of -db. What is wrong with -table is said before
// anything is sent.
func openStore[S any](ctx context.Context, o *options, open func(*sql.DB, sqlstore.Config) (S, error)) (store S, d *database, err error) {
	at, err := o.locate()
	if err != nil {
		return store, nil, err
	}
	dialect, err := at.sqlDialect()
	if err != nil {
		return store, nil, err
	}
	if _, err := open(new(sql.DB), o.store(dialect)); err != nil {
		return store, nil, usageError{err}
	}
	if d, err = o.open(ctx); err != nil {
		return store, nil, err
	}
	store, err = open(d.DB, o.store(dialect))
	return store, d, err
}

// notThere says that the tables of a store are missing.
func (d *database) notThere(what string, err error) error {
	if errors.Is(err, sqlstore.ErrNoTable) {
		return fmt.Errorf("%s: the tables of %s are not there: create makes them, or -table says their name", d, what)
	}
	return d.hide(err)
}

// A segmentStore is an open table of segments.
type segmentStore struct {
	*options
	out   *bufio.Writer
	d     *database
	store *sqlsegment.Store
}

// find returns the row of a tag.
func (s segmentStore) find(ctx context.Context, tag string) (segment.Row, error) {
	rows, err := s.store.Rows(ctx)
	if err != nil {
		return segment.Row{}, s.d.notThere("segments", err)
	}
	at := slices.IndexFunc(rows, func(r segment.Row) bool { return r.Tag == tag })
	if at < 0 {
		return segment.Row{}, fmt.Errorf("%s: %w: %s", s.d, segment.ErrNoTag, tag)
	}
	return rows[at], nil
}

func (s segmentStore) list(ctx context.Context, tag string) error {
	if tag != "" {
		row, err := s.find(ctx, tag)
		if err == nil {
			err = s.write(row)
		}
		return err
	}
	rows, err := s.store.Rows(ctx)
	if err != nil {
		return s.d.notThere("segments", err)
	}
	if err := s.writeTable(ctx, s.out, s.store); err != nil {
		return s.d.hide(err)
	}
	return s.write(rows...)
}

func (s segmentStore) write(rows ...segment.Row) error {
	var all [][]any
	for _, r := range rows {
		// The product may exceed 63 bits, after the last number.
		next := new(big.Int).Mul(big.NewInt(r.Next), big.NewInt(r.Stride))
		next.Add(next, big.NewInt(r.Offset))
		state := map[bool]string{true: "frozen", false: "ready"}[r.Frozen]
		all = append(all, []any{r.Tag, next.String(), r.Step, r.Stride, r.Offset, state, r.Description})
	}
	return s.writeRows(s.out, "tag next step stride offset state description", all...)
}

func (s segmentStore) create(ctx context.Context, row segment.Row) error {
	old, err := s.find(ctx, row.Tag)
	table := ""
	switch _, missing := s.store.Rows(ctx); {
	case err == nil:
		return errors.Join(fmt.Errorf("%s: the tag %s is there already", s.d, row.Tag), s.write(old))
	case errors.Is(missing, sqlstore.ErrNoTable):
		table = ", and its table"
	case !errors.Is(err, segment.ErrNoTag):
		return err
	}
	if err := s.write(row); err != nil {
		return err
	}
	if err := s.confirm(ctx, fmt.Sprintf("Create this row%s in %s?", table, s.d)); err != nil {
		return err
	}
	if table != "" {
		err = s.store.CreateTables(ctx)
	} else {
		err = nil
	}
	if err == nil {
		err = s.store.Create(ctx, row)
	}
	return s.d.hide(err)
}

// greatest returns the greatest number of columns in the database of -from, or else of -db.
func (s segmentStore) greatest(ctx context.Context, names []string) (int64, error) {
	from := s.d
	if s.from != "" {
		var err error
		if from, err = (&options{db: s.from}).open(ctx); err != nil {
			return 0, err
		}
		defer func() { _ = from.Close() }()
		if from.dialect != s.d.dialect {
			return 0, usagef("-from %s is not a database of the kind of -db, %s", from, s.d)
		}
	}
	var columns []sqlsegment.Column
	for _, name := range names {
		dot := strings.LastIndexByte(name, '.')
		columns = append(columns, sqlsegment.Column{Table: name[:dot], Name: name[dot+1:], DB: from.DB})
	}
	n, err := s.store.Floor(columns...)(ctx)
	return n, from.hide(err)
}

// raise asks how far again when the operator has answered.
func (s segmentStore) raise(ctx context.Context, tag string, above func() (int64, error)) error {
	row, err := s.find(ctx, tag)
	if err == nil {
		err = s.write(row)
	}
	if err != nil {
		return err
	}
	n, err := above()
	if err != nil {
		return err
	}
	if row.After(n) <= row.Next {
		_, err := fmt.Fprintf(s.out, "nothing to do: the next number is above %d\n", n)
		return err
	}
	if err := s.confirm(ctx, fmt.Sprintf("Raise %s above %d? The numbers from the next one until there are never given out, and it cannot be lowered.", tag, n)); err != nil {
		return err
	}
	if n, err = above(); err != nil {
		return err
	}
	if row, err = s.store.RaiseAbove(ctx, tag, n); err != nil {
		return s.d.hide(err)
	}
	return s.write(row)
}
