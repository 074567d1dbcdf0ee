package main

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// A person copies the lines, and writes the one statement that is a comment.
func TestWhatMendsATableOfSQLiteIsLinesToCopy(t *testing.T) {
	d := databases["SQLite"](t)
	d.exec(t, "CREATE TABLE authors (id TEXT PRIMARY KEY, name TEXT)", "CREATE INDEX by_name ON authors (name)",
		"INSERT INTO authors VALUES ('177026472345612305', 'Ada')")
	out, bad, code := snowkey(t, "export "+dbVariable+"='"+d.url+"'\nsnowkey doctor authors.id", "")
	_, out, found := strings.Cut(out, "authors.id: column is of the wrong type")
	if code != 2 || !found {
		t.Fatalf("doctor = %s, %s, %d; want a finding on the type", out, bad, code)
	}
	var lines []string
	for line := range strings.Lines(out) {
		line = strings.TrimSuffix(line, "\n")
		copied, ok := strings.CutPrefix(line, "           ") // deeper than words
		switch {
		case !ok && utf8.RuneCountInString(line) > 80, ok && strings.HasPrefix(copied, "-- ") && utf8.RuneCountInString(line) > 80:
			t.Errorf("the line %q has more than 80 columns", line)
		case !ok:
			continue
		case strings.HasPrefix(copied, "-- CREATE TABLE `authors_new`"):
			copied = "CREATE TABLE authors_new (id INTEGER PRIMARY KEY, name TEXT);"
		case strings.HasPrefix(copied, "-- create again by their sql: index `by_name`"):
			copied = "CREATE INDEX by_name ON authors (name);"
		case !strings.HasPrefix(copied, "-- ") && !strings.Contains(copied, ";"):
			t.Errorf("the line %q is no statement", copied)
		}
		lines = append(lines, copied)
	}
	if len(lines) < 9 {
		t.Fatalf("doctor = %s; want the steps on lines of their own", out)
	}
	d.exec(t, strings.Join(lines, "\n"))
	if got := d.text(t, "SELECT type || ' ' || (SELECT typeof(id) || ' ' || id FROM authors) || ' ' || (SELECT count(*) FROM sqlite_master WHERE name = 'by_name') FROM pragma_table_info('authors') WHERE name = 'id'"); got != "INTEGER integer 177026472345612305 1" {
		t.Errorf("after the lines the column, its value and the index are %q; want INTEGER integer 177026472345612305 1", got)
	}
}
