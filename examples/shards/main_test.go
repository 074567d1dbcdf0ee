package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

func TestEveryOrderLiesWholeInOneFile(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), t.TempDir(), &out); err != nil {
		t.Fatalf("run() = %v; want no error", err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 5+4 {
		t.Fatalf("run() wrote\n%s\nwant 5 orders and 4 files", &out)
	}
	for i, line := range lines[:5] {
		if want := fmt.Sprintf("order %d of customer ", 300-i); !strings.HasPrefix(line, want) || !strings.Contains(line, ", 2 lines, ") {
			t.Errorf("order %d of the page: %s; want %s…, 2 lines", i, line, want)
		}
	}
	sums := make([]int, 3)
	for i, line := range lines[5:] {
		var file, customers, orders, whole int
		if _, err := fmt.Sscanf(line, "file %d: %d customers, %d orders, %d of them whole", &file, &customers, &orders, &whole); err != nil || file != i+1 {
			t.Fatalf("%q = file %d, %v; want file %d", line, file, err, i+1)
		}
		if whole != orders || customers != 64 {
			t.Errorf("%s; want all of them, and 64 customers", line)
		}
		for j, n := range []int{customers, orders, whole} {
			sums[j] += n
		}
	}
	if got, want := fmt.Sprint(sums), "[256 300 300]"; got != want {
		t.Errorf("customers, orders and whole orders = %s; want %s", got, want)
	}
}
