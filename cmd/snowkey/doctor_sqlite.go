package main

import (
	"regexp"
	"strings"
)

// onSQLite are the steps of schemacheck in which words and a statement are mixed, each with the
// statement and the comment that say the same.
var onSQLite = []struct {
	step *regexp.Regexp
	line string
}{
	{regexp.MustCompile(`^stop here if (SELECT .*) finds a row: (.*)$`), "$1; -- stop here if it finds a row: $2"},
	{regexp.MustCompile("^INSERT INTO (`.*`) every column FROM (`.*`)$"), "INSERT INTO $1 SELECT * FROM $2;"},
	{regexp.MustCompile(`^(PRAGMA foreign_key_check) (has to find nothing)$`), "$1; -- $2"},
	{regexp.MustCompile(`^COMMIT, (or ROLLBACK after any error)$`), "COMMIT; -- $1"},
	{regexp.MustCompile("^((?:PRAGMA \\w+ = \\w+|BEGIN IMMEDIATE|DROP TABLE `.*`|ALTER TABLE `.*` RENAME TO `.*`))$"), "$1;"},
}

// sqliteLines returns the steps by which a table of SQLite is built again as lines to be copied. What
// a person has to write is a comment. Any other text is returned unchanged.
func sqliteLines(fix string) string {
	head, rest, found := strings.Cut(fix, "; PRAGMA foreign_keys = OFF; ")
	if !found {
		return fix
	}
	text := head + ":"
	for step := range strings.SplitSeq("PRAGMA foreign_keys = OFF; "+rest, "; ") {
		line := ""
		for _, form := range onSQLite {
			if form.step.MatchString(step) {
				line = "\n  " + form.step.ReplaceAllString(step, form.line)
			}
		}
		if line == "" {
			for words := range strings.Lines(wrap(step, strings.Repeat(" ", 14))) { // as wide as what stands before
				line += "\n  -- " + strings.TrimSpace(words)
			}
		}
		text += line
	}
	return text
}
