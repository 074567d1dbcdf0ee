// Legacy is a program that exists, with gorm.Model, keys that the database counts, foreign keys, a
// self-reference and a many-to-many, in a SQLite file. It gets keys of snowkey in one of two ways.
//
//	go run ./examples/legacy -db shop.db                   # strings: every row gets a new key
//	go run ./examples/legacy -db other.db -keys integers   # integers: rows keep their keys
//
// With integers, models and stored rows stay as they are; only new rows have other keys. With
// strings, the models have types.Snowflake, and the rows are moved in place while the program
// reads and writes them by their old keys. Stop it anywhere and start it again: it goes on. Once
// all is moved, it only checks. Package before is the program as it was.
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"gorm.io/gorm"

	"github.com/snowkey/snowkey"
	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/sqllease"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/examples/legacy/before"
	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/gormplugin/schemacheck"
	"github.com/snowkey/snowkey/types"
)

func main() {
	file := flag.String("db", "", "the SQLite `file`; empty: a new one that is removed")
	keys := flag.String("keys", "strings", "what the keys are in JSON: strings or integers")
	customers := flag.Int("customers", 2000, "how many customers a new file has; there are three times as many orders")
	batch := flag.Int("batch", 500, "how many rows are moved in one transaction")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *file, *keys, *customers, *batch, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, file, keys string, customers, batch int, out io.Writer) (err error) {
	if file == "" {
		dir, err := os.MkdirTemp("", "legacy")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		file = filepath.Join(dir, "shop.db")
	}
	db, err := before.Open(ctx, file)
	if err != nil {
		return err
	}
	pool, err := db.DB()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	if err := before.Fill(ctx, db, customers); err != nil {
		return err
	}
	switch keys {
	case "integers":
		return integers(ctx, db, out)
	case "strings":
		return moved(ctx, db, file, batch, out)
	}
	return fmt.Errorf("-keys %s: want strings or integers", keys)
}

// integers runs the old program with one more line.
func integers(ctx context.Context, db *gorm.DB, out io.Writer) (err error) {
	pool, err := db.DB()
	if err != nil {
		return err
	}
	gen, err := snowkey.Open(ctx, pool, snowkey.Config{Layout: core.JavaScript()}) // keys that JavaScript reads exactly
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, gen.Close(ctx)) }()
	plugin := gormplugin.New(gen, gormplugin.WithIntegerKeys())
	if err := db.Use(plugin); err != nil { // the line
		return err
	}
	if err := fit(ctx, db, plugin, &before.Customer{}, &before.Order{}, &before.Tag{}); err != nil {
		return err
	}
	var tag before.Tag
	if err := db.First(&tag).Error; err != nil {
		return err
	}
	order, err := before.Place(ctx, db, fmt.Sprintf("%s-%d", before.Number(0), time.Now().UnixNano()), 1, tag)
	if err != nil {
		return err
	}
	var old before.Order
	if err := db.Preload("Customer").Preload("Tags").First(&old, "number = ?", before.Number(1)).Error; err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "order %s of %s keeps key %d; the new one has key %d, made %s\n",
		old.Number, old.Customer.Email, old.ID, order.ID, gen.Layout().Parts(types.Snowflake(order.ID)).Time.Format(time.DateOnly))
	return err
}

// moved runs the new program, and moves the rows while it serves.
func moved(ctx context.Context, db *gorm.DB, file string, batch int, out io.Writer) (err error) {
	gen, err := generator(ctx, file+"-leases")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, gen.Close(context.WithoutCancel(ctx))) }()
	plugin := gormplugin.New(gen)
	if err := db.Use(plugin); err != nil {
		return err
	}
	m := &mover{db: db, batch: batch, out: out}
	if err := m.prepare(ctx); err != nil {
		return err
	}
	left, err := m.left(ctx)
	if err != nil {
		return err
	}
	if left == 0 {
		_, _ = fmt.Fprintln(out, "all rows have their new keys")
		return errors.Join(m.check(ctx), fit(ctx, db, plugin, &Customer{}, &Order{}, &Tag{}))
	}
	s := &service{db: db}
	end := s.begin(ctx)
	err = m.run(ctx)
	if err := errors.Join(err, end()); err != nil {
		return err
	}
	if err := fit(ctx, db, plugin, &Customer{}, &Order{}, &Tag{}); err != nil {
		return err
	}
	order, err := find(ctx, db.Preload("Customer.Referrer").Preload("Tags"), 2) // by its old key
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(order, "", "  ")
	_, _ = fmt.Fprintf(out, "meanwhile %d orders were read by their old keys, and %d placed\n%s\n", s.reads.Load(), s.writes.Load(), text)
	return err
}

// fit makes the tables fit the models: no key is left to the database, nothing else counts.
func fit(ctx context.Context, db *gorm.DB, plugin *gormplugin.Plugin, models ...any) error {
	if err := plugin.Verify(db, models...); err != nil {
		return err
	}
	findings, err := schemacheck.Check(ctx, db, models...)
	for _, f := range findings {
		if len(f.SQL) == 0 {
			err = errors.Join(err, f)
		}
		for _, statement := range f.SQL {
			err = errors.Join(err, db.WithContext(ctx).Exec(statement).Error)
		}
	}
	return err
}

// generator retires the numbers of the move, and leases one for new rows. The leases are in a SQLite
// file of their own, which transactions of the program do not lock; another database keeps them too.
func generator(ctx context.Context, file string) (gen *core.Generator, err error) {
	db, err := sql.Open("sqlite3", file)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, db.Close())
		}
	}()
	store, err := sqllease.New(db, sqlstore.Config{Dialect: sqlstore.SQLite})
	if err != nil {
		return nil, err
	}
	if err := store.CreateTables(ctx); err != nil {
		return nil, err
	}
	config := lease.Config{Namespace: "shop", Layout: layout, Window: 10 * time.Second}
	if err := retire(ctx, store, config); err != nil {
		return nil, err
	}
	worker, err := lease.Acquire(ctx, store, config)
	if err != nil {
		return nil, err
	}
	if gen, err = core.New(core.Config{Layout: layout, Worker: worker}); err != nil {
		return nil, errors.Join(err, worker.Close(ctx))
	}
	worker.Own(db)
	return gen, nil
}

// A service is what the program does meanwhile: requests with the keys that clients know.
type service struct {
	db            *gorm.DB
	reads, writes atomic.Int64
}

// begin serves until end, which returns the first errors. Each order must be found by its counted
// key, and a customer get an order by his, before they are moved and after.
func (s *service) begin(ctx context.Context) (end func() error) {
	ended := make(chan struct{})
	var wg sync.WaitGroup
	var reading, writing error
	wg.Go(func() { reading = s.repeat(ctx, ended, "orders", &s.reads, s.read) })
	wg.Go(func() { writing = s.repeat(ctx, ended, "customers", &s.writes, s.write) })
	return func() error {
		close(ended)
		wg.Wait()
		return errors.Join(reading, writing)
	}
}

// repeat makes requests for the counted keys of a table, one after the other, until it is ended.
func (s *service) repeat(ctx context.Context, ended <-chan struct{}, table string, done *atomic.Int64, request func(context.Context, uint) error) error {
	var keys uint
	err := s.db.WithContext(ctx).Raw("SELECT max((SELECT coalesce(max(id), 0) FROM "+table+" WHERE id < ?),"+
		" (SELECT coalesce(max(old), 0) FROM moved WHERE table_name = ?))", counted, table).Scan(&keys).Error
	for key := uint(1); err == nil; key = key%keys + 1 {
		select {
		case <-ended:
			return nil
		default:
		}
		if err = request(ctx, key); err == nil {
			done.Add(1)
		}
	}
	return fmt.Errorf("a request for %s: %w", table, err)
}

func (s *service) read(ctx context.Context, key uint) error {
	order, err := find(ctx, s.db, types.Snowflake(key))
	if err == nil && order.Number != before.Number(key) {
		err = fmt.Errorf("order %d is %s, want %s", key, order.Number, before.Number(key))
	}
	return err
}

func (s *service) write(ctx context.Context, key uint) error {
	time.Sleep(time.Millisecond) // or it would do nothing but this
	return place(ctx, s.db, fmt.Sprintf("L-%d", time.Now().UnixNano()), types.Snowflake(key))
}
