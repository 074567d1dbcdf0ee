package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core/serial"
	"github.com/snowkey/snowkey/core/serial/sqlserial"
	"github.com/snowkey/snowkey/core/sqlstore"
)

// serialLines is how many lines an invoice of BenchmarkSerial has.
const serialLines = 5

var serialTime = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// A serialBench is a database with invoices.
type serialBench struct {
	db      *sql.DB
	dialect sqlstore.Dialect
	numbers *sqlserial.Store
	last    atomic.Int64
}

var serialTargets = []struct {
	database
	dialect sqlstore.Dialect
}{{sqlite, sqlstore.SQLite}, {postgres, sqlstore.PostgreSQL}, {mariaDB, sqlstore.MySQL}, {mySQL, sqlstore.MySQL}}

func newSerialBench(b *testing.B, d database, dialect sqlstore.Dialect) *serialBench {
	b.Helper()
	db, err := sql.Open(d.driver, d.space(b))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(16)
	db.SetMaxIdleConns(16)
	store, err := sqlserial.New(db, storeConfig(b, db, dialect, sqlserial.DefaultTable))
	if err == nil {
		err = store.CreateTables(b.Context())
	}
	if err != nil {
		b.Fatal(err)
	}
	for _, text := range []string{
		"CREATE TABLE invoices (id BIGINT PRIMARY KEY, text VARCHAR(64) NOT NULL UNIQUE)",
		"CREATE TABLE invoice_lines (invoice_id BIGINT NOT NULL, line INT NOT NULL, sku VARCHAR(40) NOT NULL, PRIMARY KEY (invoice_id, line))",
	} {
		if _, err := db.ExecContext(b.Context(), text); err != nil {
			b.Fatal(err)
		}
	}
	return &serialBench{db: db, dialect: dialect, numbers: store}
}

// An invoice is stored by parts, in one transaction.
type (
	invoice struct {
		id   int64
		text string
	}
	part func(context.Context, *sql.Tx, *invoice) error
)

// store stores an invoice. It has its text before, or from one of the parts.
func (s *serialBench) store(ctx context.Context, text string, parts ...part) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	i := &invoice{s.last.Add(1), text}
	for _, p := range parts {
		if err := p(ctx, tx, i); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func (s *serialBench) lines(ctx context.Context, tx *sql.Tx, i *invoice) error {
	for line := range serialLines {
		_, err := tx.ExecContext(ctx, s.dialect.Bind("INSERT INTO invoice_lines (invoice_id, line, sku) VALUES (?, ?, ?)"), i.id, line, "sku")
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *serialBench) head(ctx context.Context, tx *sql.Tx, i *invoice) error {
	_, err := tx.ExecContext(ctx, s.dialect.Bind("INSERT INTO invoices (id, text) VALUES (?, ?)"), i.id, i.text)
	return err
}

// number takes the number of an invoice that has no text.
func (s *serialBench) number(x serial.Series) part {
	return func(ctx context.Context, tx *sql.Tx, i *invoice) error {
		if i.text != "" {
			return nil
		}
		n, err := s.numbers.NextIn(ctx, tx, x, serialTime)
		i.text = n.Text
		return err
	}
}

// BenchmarkSerial has 16 clients store invoices of 5 lines, one transaction each. "plain"
// has a number of the program's own. "fast" and "without-gaps" take them from one series,
// or from 16. Run it with -benchtime 2000x, several times.
func BenchmarkSerial(b *testing.B) {
	const clients = 16
	for _, target := range serialTargets {
		b.Run(target.name, func(b *testing.B) {
			s := newSerialBench(b, target.database, target.dialect)
			var all [clients]serial.Series
			var counters [clients]*serial.Counter
			for i := range all {
				all[i] = serial.Series{Name: fmt.Sprintf("s%d", i), Prefix: fmt.Sprintf("S%d-", i), Period: serial.Yearly, Digits: 9}
				fast := serial.Series{Name: fmt.Sprintf("f%d", i), Prefix: fmt.Sprintf("F%d-", i), Period: serial.Yearly, Digits: 9}
				var err error
				counters[i], err = serial.NewCounter(s.numbers, fast, 1000)
				if err := errors.Join(err, s.numbers.Define(b.Context(), all[i])); err != nil {
					b.Fatal(err)
				}
			}
			none := func(int) (string, error) { return "", nil }
			plain := func(int) (string, error) { return fmt.Sprint("P", s.last.Add(1)), nil }
			fast := func(i int) (string, error) {
				n, err := counters[i].Next(b.Context(), serialTime)
				return n.Text, err
			}
			for _, variant := range []struct {
				name   string
				series int
				before func(i int) (string, error)
			}{{"plain", 1, plain}, {"fast/series=1", 1, fast}, {"fast/series=16", 16, fast}, {"without-gaps/series=1", 1, none}, {"without-gaps/series=16", 16, none}} {
				store := func(b *testing.B, n int) {
					b.Helper()
					var next atomic.Int64
					var wg sync.WaitGroup
					for client := range clients {
						i := client % variant.series
						wg.Go(func() {
							for next.Add(1) <= int64(n) {
								text, err := variant.before(i)
								if err == nil {
									err = s.store(b.Context(), text, s.lines, s.number(all[i]), s.head)
								}
								if err != nil {
									b.Error(err)
									return
								}
							}
						})
					}
					wg.Wait()
				}
				b.Run(variant.name, func(b *testing.B) {
					store(b, 200) // opens the connections, and fills caches
					b.ResetTimer()
					store(b, b.N)
					b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "invoices/s")
				})
			}
		})
	}
}

// BenchmarkSerialWait measures how long a second caller waits for its number, while the
// first stores 5 lines after it has taken its own, or has stored them before.
func BenchmarkSerialWait(b *testing.B) {
	for _, target := range serialTargets[1:] { // on SQLite it waits to begin
		b.Run(target.name, func(b *testing.B) {
			s := newSerialBench(b, target.database, target.dialect)
			series := serial.Series{Name: "x", Digits: 9}
			if err := s.numbers.Define(b.Context(), series); err != nil {
				b.Fatal(err)
			}
			var waited time.Duration
			second := make(chan error, 1)
			numbered := func(ctx context.Context, tx *sql.Tx, i *invoice) error {
				err := s.number(series)(ctx, tx, i)
				go func() {
					second <- s.store(ctx, "", func(ctx context.Context, tx *sql.Tx, i *invoice) error {
						began := time.Now()
						err := s.number(series)(ctx, tx, i)
						waited += time.Since(began)
						return err
					})
				}()
				return err
			}
			for name, parts := range map[string][]part{"number-first": {numbered, s.lines, s.head}, "number-last": {s.lines, numbered, s.head}} {
				b.Run(name, func(b *testing.B) {
					waited = 0
					for range b.N {
						if err := s.store(b.Context(), "", parts...); err != nil {
							b.Fatal(err)
						}
						if err := <-second; err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(float64(waited.Microseconds())/float64(b.N), "µs-waited/op")
				})
			}
		})
	}
}
