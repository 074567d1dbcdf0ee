package main

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core/serial"
	"github.com/snowkey/snowkey/core/serial/sqlserial"
)

func TestSerialsAreThoseOfThePrograms(t *testing.T) {
	onDatabases(t, func(t *testing.T, d testDB) {
		const line = "snowkey serials -table own_counters "
		invoices := serial.Series{Name: "invoices", Prefix: "INV-", Period: serial.Yearly, Separator: "-", Digits: 5}
		if out, bad, code := d.on(t, line, ""); code != 1 || out != "" || !strings.Contains(bad, "are not there") {
			t.Errorf("serials without tables = %s, %s, %d", out, bad, code)
		}
		create := line + "create invoices '" + invoices.Definition() + "'"
		for answer, want := range map[string]int{"n\n": 1, "": 2} {
			if _, bad, code := d.on(t, create, answer); code != want || !strings.Contains(bad, "INV-2026-00001") {
				t.Errorf("create with the answer %q = %s, %d; want %d", answer, bad, code, want)
			}
			if _, _, code := d.on(t, line, ""); code != 1 {
				t.Fatalf("the answer %q has made the tables", answer)
			}
		}
		if _, bad, code := d.on(t, create, "y\n"); code != 0 {
			t.Fatal(bad)
		}
		o := &options{table: "own_counters"}
		store, err := sqlserial.New(d.DB, o.store(d.dialect))
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Define(t.Context(), invoices); err != nil { // refuses another definition
			t.Fatal(err)
		}
		if out, bad, code := d.on(t, line, ""); code != 0 || !strings.HasPrefix(out, "table "+fullName(t, store)+"\nseries ") {
			t.Errorf("serials = %s, %s, %d; want the full name of the table first", out, bad, code)
		}
		next := func() serial.Number {
			tx, err := d.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			n, err := store.NextIn(t.Context(), tx, invoices, time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC))
			if err != nil {
				t.Error(err)
			}
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
			return n
		}
		for _, test := range []struct {
			line, want string
			code       int
		}{
			{"-yes move invoices 2026 417", "invoices  2026    417   open\n", 0},
			{"-yes move invoices 2026 400", "nothing to do: the last number of the period 2026 is 417", 0},
			{"-yes -reason restored raise invoices 2027 7", "invoices  2027    7     open\n", 0},
			{"-yes -reason restored raise invoices 202 7", "", 2},
			{"-yes -reason restored raise invoices 7", "", 2},
			{"-yes -reason restored raise invoices 2026 100000", "", 2},
			{"-yes -reason restored raise nobody 2026 7", "", 1},
			{"-yes move invoices 2027 8", "", 1}, // after numbers of its own
		} {
			if out, bad, code := d.on(t, line+test.line, ""); code != test.code || !strings.Contains(out, test.want) {
				t.Errorf("%s = %s, %s, %d; want %s, %d", test.line, out, bad, code, test.want, test.code)
			}
		}
		if n := next(); n.Text != "INV-2026-00418" {
			t.Errorf("the number after those that have moved in is %s; want INV-2026-00418", n.Text)
		}
		for answer, want := range map[string]int{"n\n": 1, "": 2} {
			if _, bad, code := d.on(t, line+"-reason restored raise invoices 2026 430", answer); code != want || !strings.Contains(bad, "Leave out 419 to 430 in the period 2026? This makes a gap of 12 numbers") {
				t.Errorf("raise with the answer %q = %s, %d; want the gap, and %d", answer, bad, code, want)
			}
		}
		if n := next(); n.N != 419 {
			t.Errorf("the number after the answer no is %d; want 419", n.N)
		}
		if _, bad, code := d.on(t, line+"-reason restored raise invoices 2026 430", "y\n"); code != 0 {
			t.Errorf("raise = %s, %d", bad, code)
		}
		if n := next(); n.N != 431 {
			t.Errorf("the number after 430 is %d; want 431", n.N)
		}
		events, err := store.Events(t.Context(), "invoices", "2026")
		if err != nil || len(events) != 2 || events[1].What != sqlserial.Raised || events[1].Reason != "restored" {
			t.Errorf("Events() = %+v, %v; want the reason", events, err)
		}
	})
}

// Programs number invoices while the operator raises the counter.
func TestNoSerialRepeatsWhileACounterIsRaised(t *testing.T) {
	onDatabases(t, func(t *testing.T, d testDB) {
		series := serial.Series{Name: "slips", Prefix: "S", Digits: 9}
		const line = "snowkey serials -yes "
		if _, bad, code := d.on(t, line+"create slips '"+series.Definition()+"'", ""); code != 0 {
			t.Fatal(bad)
		}
		store, err := sqlserial.New(d.DB, (&options{}).store(d.dialect))
		if err == nil {
			err = store.Define(t.Context(), series)
		}
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		var wait sync.WaitGroup
		numbers := make([][]int64, 3)
		for i := range numbers {
			c, err := serial.NewCounter(store, series, 3)
			if err != nil {
				t.Fatal(err)
			}
			wait.Go(func() {
				for ctx.Err() == nil {
					if n, err := c.Next(ctx, time.Now()); err == nil {
						numbers[i] = append(numbers[i], n.N)
					}
					time.Sleep(time.Millisecond)
				}
				_ = c.Close(context.Background())
			})
		}
		for _, n := range []int{1_000_000, 2_000_000} {
			if out, bad, code := d.on(t, fmt.Sprint(line, "-reason test raise slips ", n), ""); code != 0 {
				t.Errorf("raise = %s, %s, %d", out, bad, code)
			}
		}
		stop()
		wait.Wait()
		all := map[int64]bool{}
		for _, some := range numbers {
			for _, n := range some {
				if all[n] {
					t.Fatalf("%d was given twice", n)
				}
				all[n] = true
			}
		}
		if first, err := store.Take(t.Context(), series.Name, "", time.Now(), 1); err != nil || first <= 2_000_000 {
			t.Errorf("the next number is %d, %v; want one above 2,000,000", first, err)
		}
	})
}

func TestThePageOfSerialsShowsCommandsThatRun(t *testing.T) {
	page, err := os.ReadFile("../../docs/serials.md")
	if err != nil {
		t.Fatal(err)
	}
	commands := regexp.MustCompile("(?m)snowkey serials[^`\\n]*").FindAllString(string(page), -1)
	if len(commands) < 3 {
		t.Fatalf("the page shows %q", commands)
	}
	onDatabases(t, func(t *testing.T, d testDB) {
		for _, line := range commands {
			if out, bad, code := d.on(t, line, "y\n"); code != 0 {
				t.Errorf("%s = %s, %s, %d", line, out, bad, code)
			}
		}
	})
}
