package main

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// Eighty columns are what a terminal, a mail and a ticket have.
func TestHelpFitsIntoEightyColumns(t *testing.T) {
	for _, c := range append([]command{{}}, commands...) {
		out, _, code := snowkey(t, "snowkey help "+c.name, "")
		if code != 0 {
			t.Fatalf("snowkey help %s = %d", c.name, code)
		}
		for line := range strings.Lines(out) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
				t.Errorf("snowkey help %s has a line of %d columns: %s", c.name, n, line)
			}
		}
	}
}

func TestTablesFitIntoEightyColumnsAndLoseNothing(t *testing.T) {
	names := strings.Fields(workerColumns)
	const until, renewed = "2026-05-04T12:10:00.000Z", "2026-05-04T12:00:01.234Z"
	row := func(holder string) []any {
		return []any{"shop", int64(0), int64(7), "held", "", until, "9m58s", renewed, int64(3), holder}
	}
	for name, c := range map[string]struct {
		rows [][]any
		want string
	}{
		"none": {nil, "namespace  datacenter  worker  state  from  until  in  renewed  fence  holder\n"},
		"one": {[][]any{row("orders-2-4711")}, "namespace  datacenter  worker  state  until                     in\n" +
			"shop       0           7       held   " + until + "  9m58s\n    renewed " + renewed + ", fence 3, holder orders-2-4711\n"},
		"one without much": {[][]any{{"shop", int64(0), int64(7), "unused", "", "", "", "", int64(0), ""}},
			"namespace  datacenter  worker  state   from  until  in  renewed  fence  holder\nshop       0           7       unused  -     -      -   -        0      -\n"},
		"a long name": {[][]any{row(strings.Repeat("x", 64)), {"shop", int64(0), int64(8), "free", "", until, "", "", int64(1), ""}},
			"namespace  datacenter  worker  state  until                     in\n" +
				"shop       0           7       held   " + until + "  9m58s\n    renewed " + renewed + ", fence 3, holder\n    " + strings.Repeat("x", 64) + "\n" +
				"shop       0           8       free   " + until + "  -\n    fence 1\n"},
	} {
		got := table(names, c.rows)
		if got != c.want {
			t.Errorf("%s: table =\n%s\nwant\n%s", name, got, c.want)
		}
		for line := range strings.Lines(got) {
			if utf8.RuneCountInString(line) > 81 {
				t.Errorf("%s: the line %q is too long", name, line)
			}
		}
	}
}
