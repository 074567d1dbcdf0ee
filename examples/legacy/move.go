package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"gorm.io/gorm"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/backfill"
	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/types"
)

// layout begins before the first row, so that every row gets a key of its own time.
var layout = core.Layout{
	Epoch:    time.Date(2018, 1, 1, 0, 0, 0, 0, time.UTC),
	Unit:     time.Millisecond,
	TimeBits: 41, WorkerBits: 10, SequenceBits: 12,
}

// tables have keys that were counted, and a retired worker number each for their new keys.
var tables = []struct {
	name   string
	worker int64
	proof  string // what must be the same before and after: the rows and what they refer to, without keys
}{
	{"customers", 1021, `SELECT c.email, r.email FROM moved m JOIN customers c ON c.id IN (m.old, m.new)
		LEFT JOIN customers r ON r.id = c.referrer_id WHERE m.table_name = 'customers' ORDER BY 1`},
	{"orders", 1022, `SELECT o.number, c.email FROM moved m JOIN orders o ON o.id IN (m.old, m.new)
		LEFT JOIN customers c ON c.id = o.customer_id WHERE m.table_name = 'orders' ORDER BY 1`},
	{"tags", 1023, `SELECT o.number, t.name FROM moved m JOIN orders o ON o.id IN (m.old, m.new)
		LEFT JOIN order_tags ot ON ot.order_id = o.id LEFT JOIN tags t ON t.id = ot.tag_id WHERE m.table_name = 'orders' ORDER BY 1, 2`},
}

// counted is above every key that a counter has come to, and below every new one.
const counted = 1 << 40

// A mover gives the rows their new keys, in three steps: it numbers them in a map from old to new,
// which changes no row; it moves them in batches, each with all that refers to it in one transaction;
// and it checks everything. It may be stopped anywhere and called again, which goes on.
type mover struct {
	db    *gorm.DB
	batch int
	out   io.Writer
	stop  func() error // before each statement that writes, for tests; nil: go on
}

// retire takes the numbers of tables out of use. Call it before the first lease.
func retire(ctx context.Context, store lease.Store, config lease.Config) error {
	for _, t := range tables {
		if err := lease.Retire(ctx, store, config, t.worker, t.name+" of the counter"); err != nil {
			return err
		}
	}
	return nil
}

// prepare makes the tables of the move. The program reads them too.
func (m *mover) prepare(ctx context.Context) error {
	return errors.Join(
		m.exec(m.db.WithContext(ctx), "CREATE TABLE IF NOT EXISTS moved (table_name TEXT, old INTEGER, new INTEGER NOT NULL UNIQUE, PRIMARY KEY (table_name, old)) WITHOUT ROWID"),
		m.exec(m.db.WithContext(ctx), "CREATE TABLE IF NOT EXISTS moved_proofs (name TEXT PRIMARY KEY, proof TEXT NOT NULL)"))
}

// left returns how many rows still have counted keys.
func (m *mover) left(ctx context.Context) (left int, err error) {
	for _, t := range tables {
		var n int
		err = errors.Join(err, m.db.WithContext(ctx).Raw("SELECT count(*) FROM "+t.name+" WHERE id < ?", counted).Scan(&n).Error)
		left += n
	}
	return left, err
}

// run does all three steps.
func (m *mover) run(ctx context.Context) error {
	for _, t := range tables {
		if err := m.number(ctx, t.name, t.worker); err != nil {
			return fmt.Errorf("number %s: %w", t.name, err)
		}
	}
	for _, t := range tables { // once: before the first row is moved
		proof, err := m.proof(ctx, t.proof)
		if err == nil {
			err = m.exec(m.db.WithContext(ctx), "INSERT OR IGNORE INTO moved_proofs (name, proof) VALUES (?, ?)", t.name, proof)
		}
		if err != nil {
			return err
		}
	}
	for _, t := range tables {
		if err := m.move(ctx, t.name); err != nil {
			return fmt.Errorf("move %s: %w", t.name, err)
		}
	}
	return m.check(ctx)
}

// number writes the new keys of a table into the map. All its keys and times are in memory, 40
// bytes for each row.
func (m *mover) number(ctx context.Context, table string, worker int64) error {
	db := m.db.WithContext(ctx)
	past, err := backfill.New(backfill.Config{Layout: layout, Worker: worker})
	if err != nil {
		return err
	}
	var last types.NullSnowflake
	if err := db.Raw("SELECT max(new) FROM moved WHERE table_name = ?", table).Scan(&last).Error; err != nil {
		return err
	}
	if last.Valid {
		if err := past.Resume(last.Snowflake); err != nil {
			return err
		}
	}
	rows, err := m.unnumbered(ctx, table)
	if err != nil {
		return err
	}
	done := 0
	for batch := range slices.Chunk(rows, m.batch) {
		keys, err := backfill.Keys(past, batch)
		if err != nil {
			return err // which names the row; nothing was moved yet
		}
		err = db.Transaction(func(tx *gorm.DB) error {
			for i, key := range keys {
				if err := m.exec(tx, "INSERT INTO moved (table_name, old, new) VALUES (?, ?, ?)", table, batch[i].Old, key); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		done += len(batch)
		m.progress("numbered", table, done, len(rows))
	}
	return nil
}

// unnumbered returns the rows that are not in the map, in the order of their times and old keys. A
// row without a time has that of the row before it in the order of the counter.
func (m *mover) unnumbered(ctx context.Context, table string) (rows []backfill.Row[int64], err error) {
	found, err := m.db.WithContext(ctx).Raw("SELECT id, created_at, new IS NOT NULL FROM "+table+
		" LEFT JOIN moved ON table_name = ? AND old = id WHERE id < ? ORDER BY id", table, counted).Rows()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	var before time.Time
	for found.Next() {
		var row backfill.Row[int64]
		var at sql.NullTime
		var numbered bool
		if err := found.Scan(&row.Old, &at, &numbered); err != nil {
			return nil, err
		}
		if at.Valid {
			before = at.Time
		}
		if row.Time = before; !numbered {
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, func(a, b backfill.Row[int64]) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Old, b.Old))
	})
	return rows, found.Err()
}

// move gives the rows of a table their new keys, and all that refers to them. What refers to them is
// what the database says, so that no foreign key is forgotten; its columns should have an index.
func (m *mover) move(ctx context.Context, table string) error {
	references, err := m.references(ctx)
	if err != nil {
		return err
	}
	change := func(table, column, target string) string {
		return fmt.Sprintf("UPDATE %s SET %s = new FROM moved WHERE table_name = '%s' AND old = %[1]s.%[2]s AND old BETWEEN ? AND ?", table, column, target)
	}
	var all, done int
	if err := m.db.WithContext(ctx).Raw("SELECT count(*) FROM "+table+" WHERE id < ?", counted).Scan(&all).Error; err != nil {
		return err
	}
	for done < all {
		var first, last, n int
		err := m.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
			span := tx.Raw("SELECT min(id), max(id), count(*) FROM (SELECT id FROM "+table+" WHERE id < ? ORDER BY id LIMIT ?)", counted, m.batch).Row()
			if err := span.Scan(&first, &last, &n); err != nil {
				return err
			}
			if err := m.exec(tx, "PRAGMA defer_foreign_keys = ON"); err != nil { // until COMMIT
				return err
			}
			for _, r := range references {
				if r.Target != table {
					continue
				}
				if err := m.exec(tx, change(r.Table, r.Column, table), first, last); err != nil {
					return err
				}
			}
			return m.exec(tx, change(table, "id", table), first, last)
		})
		if err != nil {
			return err
		}
		done += n
		m.progress("moved", table, done, all)
	}
	return nil
}

// A reference is a column that refers to the key of a table.
type reference struct{ Table, Column, Target string }

func (m *mover) references(ctx context.Context) (all []reference, err error) {
	err = m.db.WithContext(ctx).Raw(`SELECT t.name AS "table", f."from" AS "column", f."table" AS target
		FROM sqlite_master t, pragma_foreign_key_list(t.name) f WHERE t.type = 'table'`).Scan(&all).Error
	return all, err
}

// check returns an error unless every row of the map has its new key, no row has a counted one,
// every reference of the database has its row, and the rows refer to each other as they did.
func (m *mover) check(ctx context.Context) error {
	none := map[string]string{"references without a row": "SELECT count(*) FROM pragma_foreign_key_check"}
	for _, t := range tables {
		none["counted keys of "+t.name] = fmt.Sprintf("SELECT count(*) FROM %s WHERE id < %d", t.name, counted)
		none["lost rows of "+t.name] = fmt.Sprintf("SELECT count(*) FROM moved WHERE table_name = '%s' AND new NOT IN (SELECT id FROM %[1]s)", t.name)
	}
	for what, query := range none {
		var n int
		if err := m.db.WithContext(ctx).Raw(query).Scan(&n).Error; err != nil || n > 0 {
			return errors.Join(err, fmt.Errorf("check: %d %s", n, what))
		}
	}
	for _, t := range tables {
		var before string
		after, err := m.proof(ctx, t.proof)
		err = errors.Join(err, m.db.WithContext(ctx).Raw("SELECT proof FROM moved_proofs WHERE name = ?", t.name).Scan(&before).Error)
		if err != nil || before != after {
			return errors.Join(err, fmt.Errorf("check: the references of %s are other than before: %s, %s", t.name, before, after))
		}
	}
	_, err := fmt.Fprintln(m.out, "checked: every row has its new key, and every reference its row")
	return err
}

// proof returns the digest of what a query with two columns of text finds.
func (m *mover) proof(ctx context.Context, query string) (_ string, err error) {
	rows, err := m.db.WithContext(ctx).Raw(query).Rows()
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	digest, n := sha256.New(), 0
	for ; rows.Next(); n++ {
		var a, b sql.NullString
		if err := rows.Scan(&a, &b); err != nil {
			return "", err
		}
		_, _ = fmt.Fprintf(digest, "%q %q\n", a.String, b.String)
	}
	return fmt.Sprintf("%d rows %x", n, digest.Sum(nil)), rows.Err()
}

// exec runs a statement that writes.
func (m *mover) exec(db *gorm.DB, statement string, args ...any) error {
	if m.stop != nil {
		if err := m.stop(); err != nil {
			return err
		}
	}
	return db.Exec(statement, args...).Error
}

func (m *mover) progress(did, table string, done, all int) {
	_, _ = fmt.Fprintf(m.out, "%s %s: %d of %d\n", did, table, done, all)
}
