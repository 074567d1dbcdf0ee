package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestTheListHasEveryNumberOnceAndTheCancelledInvoice(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), filepath.Join(t.TempDir(), "invoices.db"), &out); err != nil {
		t.Fatalf("run() = %v; want no error", err)
	}
	text := out.String()
	for _, at := range []time.Time{oldYear, newYear} {
		stored := 0
		for c := range clients {
			for i := range each {
				if (i < each/2) == at.Equal(oldYear) && (c+i)%3 != 0 {
					stored++
				}
			}
		}
		for n := range stored {
			number, err := invoices.Number(at, int64(1+n))
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Count(text, number.Text+" client "); got != 1 {
				t.Errorf("%s is in the list %d times; want once:\n%s", number.Text, got, text)
			}
		}
		if want := fmt.Sprintf("%d: %d invoices, no gap\n", at.Year(), stored); !strings.Contains(text, want) {
			t.Errorf("the output lacks %q:\n%s", want, text)
		}
	}
	for _, want := range []string{"a late invoice is refused: ", " PAY-", " cancelled: written twice\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("the output lacks %q:\n%s", want, text)
		}
	}
}
