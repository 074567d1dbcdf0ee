package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/types"
)

// A text that is read as a key is what one of the forms writes for the key, and no other form
// reads it. A line is answered once: with the key, or as bad.
func FuzzDecode(f *testing.F) {
	for _, text := range []string{"", "0", "177026472345612305", "9223372036854775807", "9223372036854775808", "12345678901", "1111111111111",
		"0Czks0tP37X", "1QgmVVkniES", "04W86BB0G4007", "0271065a-c102-8000-9773-6e6f776b6579", "0271065A-C102-8000-9773-6E6F776B6579", "5\r\n7", "007\n\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if id, err := read(text); err == nil {
			same := 0
			for _, f := range forms {
				if f.write(id) == text || f.name == "uuid" && f.write(id) == strings.ToLower(text) {
					same++
				}
			}
			if same != 1 {
				t.Errorf("read(%q) = %d, which %d forms write so", text, id, same)
			}
		} else if id != 0 {
			t.Errorf("read(%q) = %d beside %v", text, id, err)
		}

		var out bytes.Buffer
		d := decoder{options: &options{json: true}, layout: core.Mastodon(), parse: read, out: bufio.NewWriter(&out)}
		count, good := 0, 0
		err := lines(context.Background(), strings.NewReader(text), d.out, func(_ int, line string, err error) error {
			count++
			if id, bad := read(line); bad == nil && err == nil {
				good++
				return d.write(id)
			}
			return nil
		})
		if err != nil || d.out.Flush() != nil {
			t.Fatal(err)
		}
		if want := strings.Count(text, "\n") + min(len(text[strings.LastIndexByte(text, '\n')+1:]), 1); count != want {
			t.Errorf("%d lines of %q; want %d", count, text, want)
		}
		for decoder := json.NewDecoder(&out); decoder.More(); good-- {
			var record struct{ Key types.Snowflake }
			if err := decoder.Decode(&record); err != nil {
				t.Fatal(err)
			}
		}
		if good != 0 {
			t.Errorf("%d objects are missing", good)
		}
	})
}

// A period begins before it ends, and the next one of its kind begins there.
func FuzzReadTime(f *testing.F) {
	for _, text := range []string{"2026", "2026-05", "2026-05-04", "2026-10-25T02", "2026-03-29 02:30", "2026-05-04T09:30:15.5", "2026-05-04T09:30:00+02:00", "0000", "9999-12-31"} {
		f.Add(text)
	}
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if from, until, err := readTime(text, time.Now().In(zone)); err == nil && until.Before(from) {
			t.Errorf("readTime(%q) = %v, %v; want no end before the beginning", text, from, until)
		}
	})
}
