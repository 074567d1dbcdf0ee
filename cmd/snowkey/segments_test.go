package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/core/segment/sqlsegment"
)

func segmentsOf(t *testing.T, d testDB) *sqlsegment.Store {
	t.Helper()
	o := &options{table: "own_segments"}
	store, err := sqlsegment.New(d.DB, o.store(d.dialect))
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// fullName returns the name of a store's table with its schema.
func fullName(t *testing.T, store interface {
	Table(ctx context.Context) (string, error)
}) string {
	t.Helper()
	table, err := store.Table(t.Context())
	if err != nil || !strings.Contains(table, ".") {
		t.Fatalf("Table() = %q, %v; want a name with its schema", table, err)
	}
	return table
}

func TestSegmentsAreMadeAndRaisedAsTheProgramsSeeThem(t *testing.T) {
	onDatabases(t, func(t *testing.T, d testDB) {
		const line = "snowkey segments -table own_segments "
		store := segmentsOf(t, d)
		if out, bad, code := d.on(t, line, ""); code != 1 || out != "" || !strings.Contains(bad, "are not there") {
			t.Errorf("segments without a table = %s, %s, %d", out, bad, code)
		}
		if _, err := store.Rows(t.Context()); err == nil {
			t.Error("listing has made the table")
		}
		if _, bad, code := d.on(t, line+"create orders -stride 2 -step 10", "y\n"); code != 0 || !strings.Contains(bad, "and its table") {
			t.Errorf("create = %s, %d", bad, code)
		}
		if rows, err := store.Rows(t.Context()); err != nil || len(rows) != 1 || rows[0] != (segment.Row{Tag: "orders", Next: 1, Step: 10, Stride: 2}) {
			t.Errorf("create has made %+v, %v", rows, err)
		}
		if out, bad, code := d.on(t, line, ""); code != 0 || !strings.HasPrefix(out, "table "+fullName(t, store)+"\ntag ") {
			t.Errorf("segments = %s, %s, %d; want the full name of the table first", out, bad, code)
		}
		// Keys that were counted so far, of any integer type.
		d.exec(t, "CREATE TABLE orders (id INT PRIMARY KEY, n NUMERIC(20), s VARCHAR(9))", "INSERT INTO orders VALUES (41, 77, 'x'), (7, 1, 'y')", "CREATE TABLE vacant (id INT PRIMARY KEY)")
		for _, test := range []struct {
			line, want string
			code       int
		}{
			{"move orders orders.id", "orders  42    10    2", 0},
			{"move orders orders.id vacant.id", "nothing to do: the next number is above 41", 0},
			{"move orders vacant.id orders.n", "orders  78    10    2", 0},
			{"move orders orders.s", "", 1},
			{"move orders nowhere.id", "", 1},
			{"raise orders 100", "orders  102   10    2", 0},
			{"raise orders 101", "nothing to do", 0},
			{"raise lines 101", "", 1},
			{"move lines orders.id", "", 1},
			{fmt.Sprint("raise orders ", int64(math.MaxInt64)), "orders  9223372036854775808  10", 0},
		} {
			if out, bad, code := d.on(t, line+"-yes "+test.line, ""); code != test.code || !strings.Contains(out, test.want) {
				t.Errorf("%s = %s, %s, %d; want %s, %d", test.line, out, bad, code, test.want, test.code)
			}
		}
	})
}

// Programs may insert while the question stands.
func TestARowIsRaisedAboveWhatIsThereWhenTheOperatorHasAnswered(t *testing.T) {
	d := databases["SQLite"](t)
	store := segmentsOf(t, d)
	if _, bad, code := d.on(t, "snowkey segments -table own_segments -yes create orders", ""); code != 0 {
		t.Fatal(bad)
	}
	greatest := int64(40)
	s := segmentStore{&options{yes: true}, bufio.NewWriter(io.Discard), d.database, store}
	err := s.raise(t.Context(), "orders", func() (int64, error) { greatest++; return greatest, nil })
	if row, found := s.find(t.Context(), "orders"); err != nil || found != nil || row.Next != 43 {
		t.Errorf("raise above 41, and then 42 = %v, and the row is %+v, %v; want 43 next", err, row, found)
	}
}

func TestMoveReadsTheColumnOfAnotherDatabase(t *testing.T) {
	for kind, make := range databases {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			d, shop := make(t), make(t)
			shop.exec(t, "CREATE TABLE orders (id INT PRIMARY KEY)", "INSERT INTO orders VALUES (41)")
			if _, bad, code := d.on(t, "snowkey segments -yes create orders", ""); code != 0 {
				t.Fatal(bad)
			}
			if out, bad, code := d.on(t, "snowkey segments -yes -from '"+shop.url+"' move orders orders.id", ""); code != 0 || !strings.Contains(out, "orders  42 ") {
				t.Errorf("move = %s, %s, %d; want 42", out, bad, code)
			}
			if _, bad, code := d.on(t, "snowkey segments -yes -from oracle://x move orders orders.id", ""); code != 2 {
				t.Errorf("move from an unknown database = %s, %d; want 2", bad, code)
			}
		})
	}
}

func TestThePageOfSegmentsShowsCommandsThatRun(t *testing.T) {
	page, err := os.ReadFile("../../docs/segments.md")
	if err != nil {
		t.Fatal(err)
	}
	commands := regexp.MustCompile("(?m)snowkey segments[^`\n]*").FindAllString(string(page), -1)
	onDatabases(t, func(t *testing.T, d testDB) {
		d.exec(t, "CREATE TABLE orders (id INT PRIMARY KEY)", "INSERT INTO orders VALUES (3000000)")
		if _, bad, code := d.on(t, "snowkey segments create orders", "y\n"); code != 0 {
			t.Fatal(bad)
		}
		ran := 0
		for _, line := range commands {
			switch {
			case line == "snowkey segments move" || line == "snowkey segments create orders": // a word of a sentence, and above
				continue
			case strings.Contains(line, "create"):
				line = strings.Replace(line, "orders", "lines", 1) // in another database
			}
			ran++
			if out, bad, code := d.on(t, line, "y\n"); code != 0 {
				t.Errorf("%s = %s, %s, %d", line, out, bad, code)
			}
		}
		if ran < 4 {
			t.Errorf("%d commands of %q; want more", ran, commands)
		}
		if out, _, _ := d.on(t, "snowkey segments", ""); !strings.Contains(out, "lines   1        1000  2       1 ") || !strings.Contains(out, "orders  3000001  1000  1       0 ") {
			t.Errorf("in the end there is %s", out)
		}
	})
}

// Programs take ranges while the operator raises: no number comes twice, and none that was raised over.
func TestNoNumberRepeatsWhileARowIsRaised(t *testing.T) {
	onDatabases(t, func(t *testing.T, d testDB) {
		store := segmentsOf(t, d)
		const line = "snowkey segments -table own_segments -yes "
		if _, bad, code := d.on(t, line+"create orders -step 3", ""); code != 0 {
			t.Fatal(bad)
		}
		ctx, stop := context.WithCancel(t.Context())
		var wait sync.WaitGroup
		var last atomic.Int64
		numbers := make([]map[int64]bool, 3)
		for i := range numbers {
			a, err := segment.New(store, segment.Config{Tag: "orders", Hold: time.Millisecond, Logger: silent})
			if err != nil {
				t.Fatal(err)
			}
			numbers[i] = map[int64]bool{}
			wait.Go(func() {
				defer func() { _ = a.Close(context.Background()) }()
				for ctx.Err() == nil {
					if n, err := a.Next(ctx); err == nil {
						if numbers[i][n.Int64()] {
							t.Errorf("%d twice", n)
						}
						numbers[i][n.Int64()] = true
						last.Store(n.Int64())
					}
					time.Sleep(time.Millisecond)
				}
			})
		}
		after := func(n int64) { // a program gives a number after n
			for last.Load() <= n {
				time.Sleep(time.Millisecond) // ends with the test
			}
		}
		after(0)
		for _, n := range []int64{1_000_000, 2_000_000} {
			if out, bad, code := d.on(t, fmt.Sprint(line, "raise orders ", n), ""); code != 0 {
				t.Errorf("raise = %s, %s, %d", out, bad, code)
			}
			after(n)
		}
		stop()
		wait.Wait()
		all := map[int64]bool{}
		for _, some := range numbers {
			for n := range some {
				if all[n] {
					t.Fatalf("%d was given twice", n)
				}
				all[n] = true
			}
		}
	})
}
