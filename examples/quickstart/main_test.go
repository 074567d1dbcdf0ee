package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// The keys and times of each run differ: K and T stand for them.
const want = `{
  "id": "K",
  "number": "2026-1",
  "items": [
    {
      "id": "K",
      "order_id": "K",
      "sku": "cup",
      "quantity": 4
    },
    {
      "id": "K",
      "order_id": "K",
      "sku": "pot",
      "quantity": 1
    }
  ]
}
key K: made T, worker W, sequence N
2 orders in the last minute, the last is 2026-2
`

func TestQuickstartStoresBothOrdersAndReadsThemBack(t *testing.T) {
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	stdout := os.Stdout
	os.Stdout = out
	err = run(t.Context(), filepath.Join(t.TempDir(), "orders.db"))
	os.Stdout = stdout
	if err != nil {
		t.Fatalf("run() = %v; want no error", err)
	}
	text, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	got := string(text)
	for pattern, by := range map[string]string{`\d{15,}`: "K", `made \S+,`: "made T,", `worker \d+`: "worker W", `sequence \d+`: "sequence N"} {
		got = regexp.MustCompile(pattern).ReplaceAllString(got, by)
	}
	if got != want {
		t.Errorf("run() wrote\n%s\nwant\n%s", got, want)
	}
}
