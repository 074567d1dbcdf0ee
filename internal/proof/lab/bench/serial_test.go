package main

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core/serial"
	"github.com/snowkey/snowkey/core/serial/sqlserial"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
)

// serialLines is how many lines an invoice of BenchmarkSerial has.
const serialLines = 5

// A serialBench is a database with invoices.
type serialBench struct {
	db      *sql.DB
	dialect sqlstore.Dialect
	store   *sqlserial.Store
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
	c := sqlstore.Config{Dialect: dialect, Logger: slog.New(slog.DiscardHandler)}
	if dialect != sqlstore.SQLite {
		if c.Table, err = servertest.Table(db, sqlserial.DefaultTable); err != nil {
			b.Fatal(err)
		}
	}
	store, err := sqlserial.New(db, c)
	if err != nil {
		b.Fatal(err)
	}
	if err := store.CreateTables(b.Context()); err != nil {
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
	return &serialBench{db: db, dialect: dialect, store: store}
}

// lines stores the lines of an invoice.
func (s *serialBench) lines(ctx context.Context, tx *sql.Tx, id int64) error {
	for line := range serialLines {
		_, err := tx.ExecContext(ctx, s.dialect.Bind("INSERT INTO invoice_lines (invoice_id, line, sku) VALUES (?, ?, ?)"), id, line, "sku")
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *serialBench) head(ctx context.Context, tx *sql.Tx, id int64, text string) error {
	_, err := tx.ExecContext(ctx, s.dialect.Bind("INSERT INTO invoices (id, text) VALUES (?, ?)"), id, text)
	return err
}

// invoice stores an invoice in a transaction. It has its number before, unless that is
// empty. Otherwise number is called last.
func (s *serialBench) invoice(ctx context.Context, before string, number func(*sql.Tx) (serial.Number, error)) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	id := s.last.Add(1)
	if err := s.lines(ctx, tx, id); err != nil {
		return err
	}
	if before == "" {
		n, err := number(tx)
		if err != nil {
			return err
		}
		before = n.Text
	}
	if err := s.head(ctx, tx, id, before); err != nil {
		return err
	}
	return tx.Commit()
}

// BenchmarkSerial has 16 clients store invoices of 5 lines, one transaction each. "plain"
// has a number of the program's own. "fast" and "without-gaps" take them from one series,
// or from 16. Run it with -benchtime 2000x, several times.
func BenchmarkSerial(b *testing.B) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for _, target := range serialTargets {
		b.Run(target.name, func(b *testing.B) {
			s := newSerialBench(b, target.database, target.dialect)
			counters := map[string]*serial.Counter{}
			all := make([]serial.Series, 16)
			for i := range all {
				all[i] = serial.Series{Name: fmt.Sprintf("s%d", i), Prefix: fmt.Sprintf("S%d-", i), Period: serial.Yearly, Digits: 9}
				if err := s.store.Define(b.Context(), all[i]); err != nil {
					b.Fatal(err)
				}
				fast := serial.Series{Name: fmt.Sprintf("f%d", i), Prefix: fmt.Sprintf("F%d-", i), Period: serial.Yearly, Digits: 9}
				c, err := serial.NewCounter(s.store, fast, 1000)
				if err != nil {
					b.Fatal(err)
				}
				counters[all[i].Name] = c
			}
			none := func(serial.Series) (string, error) { return "", nil }
			plain := func(serial.Series) (string, error) { return fmt.Sprint("P", s.last.Add(1)), nil }
			fast := func(x serial.Series) (string, error) {
				n, err := counters[x.Name].Next(b.Context(), now)
				return n.Text, err
			}
			for _, variant := range []struct {
				name   string
				series int
				before func(serial.Series) (string, error)
			}{{"plain", 1, plain}, {"fast/series=1", 1, fast}, {"fast/series=16", 16, fast}, {"without-gaps/series=1", 1, none}, {"without-gaps/series=16", 16, none}} {
				store := func(b *testing.B, n int) {
					b.Helper()
					var next atomic.Int64
					var wg sync.WaitGroup
					for g := range 16 {
						x := all[g%variant.series]
						wg.Go(func() {
							for next.Add(1) <= int64(n) {
								text, err := variant.before(x)
								if err == nil {
									err = s.invoice(b.Context(), text, func(tx *sql.Tx) (serial.Number, error) { return s.store.NextIn(b.Context(), tx, x, now) })
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
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for _, target := range serialTargets[1:] { // on SQLite it waits to begin
		b.Run(target.name, func(b *testing.B) {
			s := newSerialBench(b, target.database, target.dialect)
			series := serial.Series{Name: "x", Digits: 9}
			if err := s.store.Define(b.Context(), series); err != nil {
				b.Fatal(err)
			}
			for name, first := range map[string]bool{"number-first": true, "number-last": false} {
				b.Run(name, func(b *testing.B) {
					var waited time.Duration
					for range b.N {
						took, err := s.wait(b.Context(), series, now, first)
						if err != nil {
							b.Fatal(err)
						}
						waited += took
					}
					b.ReportMetric(float64(waited.Microseconds())/float64(b.N), "µs-waited/op")
				})
			}
		})
	}
}

// wait returns how long the second caller waits.
func (s *serialBench) wait(ctx context.Context, series serial.Series, at time.Time, first bool) (time.Duration, error) {
	one, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = one.Rollback() }()
	two, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = two.Rollback() }()
	id := s.last.Add(1)
	if !first {
		if err := s.lines(ctx, one, id); err != nil {
			return 0, err
		}
	}
	n, err := s.store.NextIn(ctx, one, series, at)
	if err != nil {
		return 0, err
	}
	type result struct {
		took time.Duration
		err  error
	}
	second := make(chan result, 1)
	began := time.Now()
	go func() {
		_, err := s.store.NextIn(ctx, two, series, at)
		second <- result{time.Since(began), err}
	}()
	if first {
		if err := s.lines(ctx, one, id); err != nil {
			return 0, err
		}
	}
	if err := s.head(ctx, one, id, n.Text); err != nil {
		return 0, err
	}
	if err := one.Commit(); err != nil {
		return 0, err
	}
	r := <-second
	return r.took, r.err
}
