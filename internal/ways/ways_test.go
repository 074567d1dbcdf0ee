package main

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/snowkey/snowkey/internal/benchmark"
	"github.com/snowkey/snowkey/internal/servertest"
)

func committed(t *testing.T) *benchmark.Results {
	t.Helper()
	text, err := os.ReadFile("results.txt")
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(text))
}

func parse(t *testing.T, text string) *benchmark.Results {
	t.Helper()
	r, err := benchmark.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestThePageIsWhatTheResultsSay(t *testing.T) {
	r, folder := committed(t), t.TempDir()
	if err := writePage(r, folder); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ways.md", "ways.svg"} {
		got, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		if want, err := os.ReadFile(filepath.Join("../../docs", name)); err != nil || string(got) != string(want) {
			t.Errorf("docs/%s is not what results.txt gives (%v): run go run .", name, err)
		}
	}
}

// start starts the servers, if they are installed.
func start(t *testing.T) *servers {
	t.Helper()
	for _, name := range []string{program("postgres"), "mariadbd", "redis-server"} {
		if _, err := exec.LookPath(name); err != nil {
			servertest.Missing(t, err)
		}
	}
	s, err := newServers(context.Background()) // t.Context ends before the Cleanup
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestEachWayReturnsDistinctKeys(t *testing.T) {
	s := start(t)
	for _, w := range ways() {
		take, end, err := w.open(t.Context(), s)
		if w.name == "uuid-v7-go" && err != nil {
			t.Log(err) // the figures are measured with a newer Go
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", w.name, err)
		}
		seen := map[key]bool{}
		for range 3 {
			keys := make([]key, 40)
			if err := take(t.Context(), keys); err != nil {
				t.Fatalf("%s: %v", w.name, err)
			}
			for _, k := range keys {
				if seen[k] || k == (key{}) {
					t.Errorf("%s returns %v; want a new key", w.name, k)
				}
				seen[k] = true
			}
		}
		if err := end(t.Context()); err != nil {
			t.Errorf("%s: %v", w.name, err)
		}
	}
	t.Run("a fetch takes the round trips of the page", func(t *testing.T) {
		var out strings.Builder
		if err := measureFetches(t.Context(), s, &out); err != nil {
			t.Fatal(err)
		}
		got, want := parse(t, out.String()), committed(t)
		for _, name := range []string{"Fetch/PostgreSQL", "Fetch/MariaDB"} {
			g, _ := got.Median(name, "trips/fetch")
			if w, _ := want.Median(name, "trips/fetch"); g != w {
				t.Errorf("%s takes %v round trips; results.txt has %v: measure again", name, g, w)
			}
		}
	})
	t.Run("PostgreSQL gets a UUID as 16 bytes", func(t *testing.T) {
		all, err := rowKeys(t.Context(), s, rowBatch)
		if err != nil {
			t.Fatal(err)
		}
		for kind, width := range map[string]int64{"uuid-v4": 16, "uuid-v7": 16, "snowflake-fixed": 8} {
			orders := &table{s, s.postgres, kind, kind, nil}
			orders.name = strings.ReplaceAll(orders.name, "-", "_")
			if err := orders.create(t.Context()); err != nil {
				t.Fatal(err)
			}
			text, bind := orders.statement()
			args := bind([][]key{all[kind], all[identity]})
			before := s.sent.Load()
			if err := orders.send(t.Context(), text, args); err != nil {
				t.Fatal(err)
			}
			// Each value of an array has its length before it. The statement is sent too.
			most := rowBatch*(4+width+4+8) + 1_000
			if sent := s.sent.Load() - before; sent > most {
				t.Errorf("%d rows with a %s took %d bytes; want at most %d", rowBatch, kind, sent, most)
			}
		}
	})
}

// A reader may need several reads for one answer. That is one round trip.
func TestARoundTripIsTheFirstReadAfterAWrite(t *testing.T) {
	here, there := net.Pipe()
	go func() {
		b := make([]byte, 1)
		for {
			if _, err := there.Read(b); err != nil {
				return
			}
			if b[0] == '?' {
				_, _ = there.Write([]byte("ab")) // the other end is read by the test
			}
		}
	}()
	var trips, sent atomic.Int64
	c := &countingConn{Conn: here, trips: &trips, sent: &sent}
	defer func() { _ = c.Close() }()
	b := make([]byte, 1)
	for i := range int64(3) {
		for _, step := range []func([]byte) (int, error){
			func([]byte) (int, error) { return c.Write([]byte("!")) },
			func([]byte) (int, error) { return c.Write([]byte("?")) },
			c.Read, c.Read,
		} {
			if _, err := step(b); err != nil {
				t.Fatal(err)
			}
		}
		if trips.Load() != i+1 {
			t.Errorf("after %d questions the count is %d", i+1, trips.Load())
		}
	}
}

func TestNoTextOfThePictureIsCutOff(t *testing.T) {
	picture, err := plot(committed(t))
	if err != nil {
		t.Fatal(err)
	}
	const perCharacter = 0.64 * 13 // what a digit of DejaVu Sans takes at the size of the labels
	for _, m := range regexp.MustCompile(`x="([0-9.]+)" y="\d+" text-anchor="middle">([^<]*)<`).FindAllStringSubmatch(string(picture), -1) {
		x, _ := strconv.ParseFloat(m[1], 64)
		if right := x + perCharacter*float64(len(m[2]))/2; right > plotWidth {
			t.Errorf("%q ends at %.0f; the picture ends at %d", m[2], right, plotWidth)
		}
	}
}
