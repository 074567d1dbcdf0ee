package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"os/exec"
	"regexp"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

// A stream is a sequence that InsertSeq inserts in one transaction. Others have
// nothing like it.
type stream struct {
	name    string // as in SQLite/stream/snowkey
	title   string
	options []sqlxhelper.Option
}

// streamsOf returns the streams of a target.
func streamsOf(t target) []stream {
	list := []stream{{t.name + "/stream/snowkey", t.title, nil}}
	if t.name == "PostgreSQL-pgx" {
		list = append(list, stream{t.name + "/stream/snowkey-copy", t.title + ", with pgxcopy", copyOptions()})
	}
	return list
}

// streamAll runs the streams of a target. Each is a process of its own, because memory
// of one before would serve the next.
func (o options) streamAll(ctx context.Context, t target, out io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	p, err := newPlace(ctx, t, o.where)
	if err != nil {
		return err
	}
	if err := errors.Join(header(ctx, out, p, "stream", o.stream), p.close(ctx)); err != nil {
		return err
	}
	for _, s := range streamsOf(t) {
		if err := disturbance(out, 1, quiet(ctx, o.patience)); err != nil {
			return err
		}
		command := exec.CommandContext(ctx, self, append(os.Args[1:], "-only", "^"+regexp.QuoteMeta(s.name)+"$")...)
		command.Stdout, command.Stderr = out, os.Stderr
		if err := command.Run(); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// streamHere runs the streams of a target that match, in this process.
func (o options) streamHere(ctx context.Context, t target, only *regexp.Regexp) error {
	for _, s := range streamsOf(t) {
		if !only.MatchString(s.name) {
			continue
		}
		p, err := newPlace(ctx, t, o.where)
		if err != nil {
			return err
		}
		m, err := p.stream(ctx, s, o.stream)
		if err := errors.Join(err, p.close(context.WithoutCancel(ctx))); err != nil {
			return err
		}
		fmt.Print(m.line(s.name))
	}
	return nil
}

// stream inserts n rows, and reads back what sums them up.
func (p *place) stream(ctx context.Context, s stream, n int) (m measurement, err error) {
	db, _, err := p.open(ctx, false)
	if err != nil {
		return measurement{}, err
	}
	defer func() { err = errors.Join(err, db.Close(), p.remove()) }()
	keys := &counter{last: firstItem}
	h := sqlxhelper.New(keys, s.options...)
	served := p.serverOf(ctx, db)
	debug.FreeOSMemory() // what the program has needed to get here is not to be reused
	_, before, known := peakMemory()
	m.rows = n
	err = m.measure(func() error {
		_, err := sqlxhelper.InsertSeq(ctx, h, db, "order_items", sequence(n))
		return err
	}, served)
	if err != nil {
		return measurement{}, fmt.Errorf("%s: %w", s.name, err)
	}
	if peak, _, _ := peakMemory(); known {
		m.grown = peak - before
	}
	var got string
	if err := db.QueryRowContext(ctx, p.sums()).Scan(&got); err != nil {
		return measurement{}, fmt.Errorf("%s: %w", s.name, err)
	}
	// The keys are 1 to n above firstItem, and the prices are 1 to n.
	sum := strconv.Itoa(n * (n + 1) / 2)
	if want := strconv.Itoa(n) + " " + sum + " " + sum; got != want {
		return measurement{}, fmt.Errorf("%s: the table has %s, want %s rows, sums of keys and prices", s.name, got, want)
	}
	return m, nil
}

// sums returns a query for the number of rows, and the sums of keys and prices.
func (p *place) sums() string {
	keys := fmt.Sprintf("sum(id - %d)", firstItem)
	if p.family == mariaDB {
		return "SELECT concat(count(*), ' ', " + keys + ", ' ', sum(price)) FROM order_items"
	}
	return "SELECT count(*) || ' ' || " + keys + " || ' ' || sum(price) FROM order_items"
}

// sequence returns n rows without keys. Making them takes next to no time.
func sequence(n int) iter.Seq2[keyedItem, error] {
	var skus [1000]string
	for i := range skus {
		skus[i] = fmt.Sprintf("SKU-%06d", i)
	}
	return func(yield func(keyedItem, error) bool) {
		for i := range n {
			row := keyedItem{
				OrderID: firstOrder + types.Snowflake(i/itemsPerOrder), SKU: skus[i%len(skus)], Quantity: i%7 - 1, Price: int64(i) + 1,
				CreatedAt: epoch.Add(time.Duration(i) * time.Microsecond),
			}
			if !yield(row, nil) {
				return
			}
		}
	}
}
