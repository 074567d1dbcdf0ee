package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/snowkey/snowkey/core/backfill"
	"github.com/snowkey/snowkey/examples/legacy/before"
	"github.com/snowkey/snowkey/types"
)

const customers = 200

func TestMain(m *testing.M) {
	if os.Getenv("LEGACY_MAIN") != "" { // the program itself, to be killed
		main()
		return
	}
	os.Exit(m.Run())
}

// shop returns the database of the old program with its rows, and a mover for it.
func shop(t *testing.T, file string) *mover {
	t.Helper()
	db, err := before.Open(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if pool, err := db.DB(); err == nil {
			_ = pool.Close()
		}
	})
	m := &mover{db: db, batch: 7, out: t.Output()}
	if err := errors.Join(before.Fill(t.Context(), db, customers), m.prepare(t.Context())); err != nil {
		t.Fatal(err)
	}
	return m
}

// content returns all that the tables hold.
func content(t *testing.T, db *gorm.DB, tables ...string) string {
	t.Helper()
	var b strings.Builder
	for _, table := range tables {
		var rows []map[string]any
		if err := db.Table(table).Order("1, 2").Find(&rows).Error; err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			fmt.Fprintln(&b, table, row)
		}
	}
	return b.String()
}

// dump is what one line of text says of each row of the old program: all its columns and those of
// what it refers to, but for keys.
func dump(t *testing.T, db *gorm.DB) string {
	t.Helper()
	var lines []string
	err := db.Raw(`SELECT o.number || ' ' || o.created_at || ' ' || c.email || ' ' || coalesce(c.created_at, 'NULL') || ' ' ||
			coalesce(r.email, '') || ' ' || group_concat(t.name) AS line
		FROM orders o JOIN customers c ON c.id = o.customer_id LEFT JOIN customers r ON r.id = c.referrer_id
		JOIN order_tags ot ON ot.order_id = o.id JOIN tags t ON t.id = ot.tag_id
		WHERE o.number LIKE 'N-%' GROUP BY o.id ORDER BY o.number`).Scan(&lines).Error
	if err != nil || len(lines) != 3*customers {
		t.Fatalf("%d orders, %v; want %d", len(lines), err, 3*customers)
	}
	return strings.Join(lines, "\n")
}

// countsNot fails if the database still gives keys to rows without one.
func countsNot(t *testing.T, db *gorm.DB) {
	t.Helper()
	pool, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pool.ExecContext(t.Context(), "INSERT INTO tags (name) VALUES ('counted')"); err == nil {
		t.Error("INSERT without a key = nil; want that nothing counts any more")
	}
}

// checkKeys checks what check does not: that keys have the times of their rows, and their order.
func checkKeys(t *testing.T, m *mover) {
	t.Helper()
	for _, table := range tables {
		var rows []struct {
			Old, New  int64
			CreatedAt *time.Time
		}
		err := m.db.Raw("SELECT old, new, created_at FROM moved JOIN "+table.name+" ON id = new WHERE table_name = ? ORDER BY old", table.name).Scan(&rows).Error
		if err != nil || len(rows) == 0 {
			t.Fatalf("%d rows of %s, %v; want some", len(rows), table.name, err)
		}
		var at time.Time
		for _, row := range rows {
			if row.CreatedAt != nil {
				at = *row.CreatedAt
			}
			p := layout.Parts(types.Snowflake(row.New))
			if late := p.Time.Sub(at.Truncate(time.Millisecond)); p.Worker != table.worker || late < 0 || late >= time.Second {
				t.Fatalf("key of %s %d is of worker %d at %v; want %d, less than a second after %v", table.name, row.Old, p.Worker, p.Time, table.worker, at)
			}
		}
	}
}

// The move stops before any of its statements, again and again, and each time nothing is lost.
func TestMoveThatStopsAnywhereGoesOn(t *testing.T) {
	t.Parallel()
	var want string
	for seed := range uint64(2) {
		rng := rand.New(rand.NewPCG(seed, 26))
		m := shop(t, filepath.Join(t.TempDir(), "shop.db"))
		before := dump(t, m.db)
		errStop := errors.New("stopped")
		stops := 0
		for err := errStop; err != nil; stops++ {
			left := 1 + rng.IntN(100)
			m.stop = func() error {
				if left--; left < 0 {
					return errStop
				}
				return nil
			}
			if err = m.run(t.Context()); err != nil && !errors.Is(err, errStop) {
				t.Fatalf("run() = %v; want that it stops", err)
			}
			if got := dump(t, m.db); got != before {
				t.Fatalf("seed %d, stop %d: the rows are other than before", seed, stops)
			}
			for key := range types.Snowflake(3 * customers) {
				if seed > 0 || stops%8 > 0 {
					break
				}
				if order, err := find(t.Context(), m.db, key+1); err != nil || order.Number != fmt.Sprintf("N-%07d", key+1) {
					t.Fatalf("stop %d: find(%d) = %s, %v; want the order", stops, key+1, order.Number, err)
				}
			}
		}
		checkKeys(t, m)
		got := content(t, m.db, "customers", "orders", "tags", "order_tags", "moved")
		if seed == 0 {
			t.Logf("%d stops", stops)
		}
		// Wherever it stopped, the keys are the same, but for those of tags, which are of today.
		keys := content(t, m.db.Where("table_name <> 'tags'"), "moved")
		if want == "" {
			want = keys
		}
		if keys != want {
			t.Errorf("seed %d: the keys differ from those with other stops", seed)
		}
		m.stop = nil
		if err := m.run(t.Context()); err != nil {
			t.Fatalf("run() again = %v; want no error", err)
		}
		if again := content(t, m.db, "customers", "orders", "tags", "order_tags", "moved"); again != got {
			t.Errorf("seed %d: the second run has changed rows; want none", seed)
		}
	}
}

// The whole program is killed while it moves, reads and writes.
func TestProgramThatIsKilledGoesOn(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "shop.db")
	m := shop(t, file)
	before := dump(t, m.db)
	program := func() (*exec.Cmd, *bytes.Buffer) {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-db", file, "-batch", "10")
		cmd.Env = append(os.Environ(), "LEGACY_MAIN=1")
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		return cmd, &out
	}
	left := func() int {
		n, err := m.left(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	rng := rand.New(rand.NewPCG(1, 26))
	for kill := range 4 { // the first before it moves a row, the others when some are moved
		cmd, _ := program()
		begin, moves := left(), min(kill, 1)*(1+rng.IntN(30))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { _ = cmd.Wait(); close(ended) }()
		for running := true; running && left() > begin-moves; {
			select {
			case <-ended: // all rows are moved
				running = false
			case <-time.After(time.Millisecond):
			}
		}
		_ = cmd.Process.Kill()
		<-ended
		if got := dump(t, m.db); got != before {
			t.Fatalf("after kill %d the rows are other than before", kill)
		}
		t.Logf("after kill %d, %d rows are left of %d", kill, left(), begin)
	}
	for range 2 {
		cmd, out := program()
		if err := cmd.Run(); err != nil || !strings.Contains(out.String(), "every reference its row") {
			t.Fatalf("the program after the kills: %v\n%s", err, out)
		}
	}
	if got := dump(t, m.db); got != before {
		t.Error("at the end the rows are other than before")
	}
	countsNot(t, m.db)
	checkKeys(t, m)
}

func TestIntegerKeysLeaveEveryRow(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "shop.db")
	m := shop(t, file)
	names := []string{"customers", "tags"}
	was, orders := content(t, m.db, names...), content(t, m.db, "orders", "order_tags")
	for range 2 {
		if err := run(t.Context(), file, "integers", customers, 7, t.Output()); err != nil {
			t.Fatal(err)
		}
	}
	if content(t, m.db, names...) != was || content(t, m.db.Where("number LIKE 'N-_______'"), "orders") != orders[:strings.Index(orders, "order_tags")] {
		t.Error("the old rows have changed; want only new ones")
	}
	countsNot(t, m.db)
	var added []before.Order
	if err := m.db.Preload("Customer").Preload("Tags").Find(&added, "number LIKE 'N-0000000-%'").Error; err != nil || len(added) != 2 {
		t.Fatalf("%d new orders, %v; want 2", len(added), err)
	}
	for _, order := range added {
		if order.ID < counted || order.ID >= 1<<53 || order.Customer.ID != 1 || len(order.Tags) != 1 {
			t.Errorf("new order = %+v; want a key of 53 bits, customer 1, and a tag", order)
		}
	}
}

// A row that can get no key stops the move before it has begun.
func TestRowWithoutATimeIsNamed(t *testing.T) {
	t.Parallel()
	m := shop(t, filepath.Join(t.TempDir(), "shop.db"))
	if err := m.db.Exec("UPDATE orders SET created_at = NULL WHERE id < 3").Error; err != nil { // none before it
		t.Fatal(err)
	}
	want := content(t, m.db, "customers", "orders", "tags", "order_tags")
	var refused *backfill.RowError
	if err := m.run(t.Context()); !errors.As(err, &refused) || refused.Row != int64(1) || !errors.Is(err, backfill.ErrNoTime) {
		t.Errorf("run() = %v; want that order 1 has no time", err)
	}
	if content(t, m.db, "customers", "orders", "tags", "order_tags") != want {
		t.Error("rows have changed; want none")
	}
}

func TestCheckFindsEveryWrongReference(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "shop.db")
	m := shop(t, file)
	if err := m.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	pool, err := m.db.DB()
	if err != nil {
		t.Fatal(err)
	}
	pool.SetMaxOpenConns(1) // for the PRAGMA
	if err := m.db.Exec("PRAGMA foreign_keys = OFF").Error; err != nil {
		t.Fatal(err)
	}
	for _, harm := range []string{
		"UPDATE customers SET referrer_id = id WHERE email = 'c000002@example.com'",
		"UPDATE customers SET referrer_id = NULL WHERE email = 'c000002@example.com'",
		"UPDATE orders SET customer_id = (SELECT min(id) FROM customers) WHERE number = 'N-0000002'",
		"UPDATE orders SET customer_id = 7 WHERE number = 'N-0000002'",
		"UPDATE orders SET id = 7 WHERE number = 'N-0000002'",
		"INSERT INTO orders (id, number, customer_id) VALUES (1 << 60, 'placed meanwhile', 1 << 60)",
		"INSERT INTO tags (id, name) VALUES (900000, 'by hand')",
		"DELETE FROM customers WHERE email = 'c000002@example.com'",
		"DELETE FROM tags WHERE name = 'never used'",
		"DELETE FROM order_tags WHERE order_id = (SELECT id FROM orders WHERE number = 'N-0000002')",
		"UPDATE order_tags SET tag_id = (SELECT id FROM tags WHERE name = 'paid') WHERE order_id = (SELECT id FROM orders WHERE number = 'N-0000001')",
	} {
		if err := m.check(t.Context()); err != nil {
			t.Fatalf("check() = %v; want no error", err)
		}
		tx := m.db.Begin()
		if err := tx.Exec(harm).Error; err != nil {
			t.Fatal(err)
		}
		if err := (&mover{db: tx, out: t.Output()}).check(t.Context()); err == nil {
			t.Errorf("check() after %s = nil; want an error", harm)
		}
		tx.Rollback()
	}
}

// What must be as before is what was before the first row moved, not before the last start.
func TestCheckRemembersWhatWasBeforeTheMove(t *testing.T) {
	t.Parallel()
	m := shop(t, filepath.Join(t.TempDir(), "shop.db"))
	errStop := errors.New("stopped")
	m.stop = func() error {
		var moved int64
		err := m.db.Model(&Customer{}).Where("id > ?", counted).Count(&moved).Error
		if moved > 0 {
			err = errStop
		}
		return err
	}
	pool, err := m.db.DB()
	if err != nil {
		t.Fatal(err)
	}
	if err := m.run(t.Context()); !errors.Is(err, errStop) {
		t.Fatalf("run() = %v; want that it stops when a row has moved", err)
	}
	if _, err := pool.ExecContext(t.Context(), "UPDATE orders SET customer_id = 50 WHERE number = 'N-0000002'"); err != nil {
		t.Fatal(err)
	}
	m.stop = nil
	if err := m.run(t.Context()); err == nil || !strings.Contains(err.Error(), "the references of orders are other than before") {
		t.Errorf("run() after an order has got another customer = %v; want that the check finds it", err)
	}
}
