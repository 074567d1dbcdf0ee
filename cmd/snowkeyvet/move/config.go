package move

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// configurations names the places where a generator of code is told to make integers of keys.
func (f *findings) configurations() {
	seen := map[string]bool{}
	for _, pkg := range f.packages {
		for _, file := range pkg.CompiledGoFiles {
			seen[filepath.Dir(file)] = true
		}
		if pkg.Module != nil {
			seen[pkg.Module.Dir] = true
		}
	}
	for dir := range seen {
		for name, look := range map[string]func(string) map[int]string{
			"gqlgen.yml": gqlgen, "gqlgen.yaml": gqlgen, ".gqlgen.yml": gqlgen,
			"sqlc.yaml": sqlc, "sqlc.yml": sqlc, "sqlc.json": sqlc,
		} {
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				continue // there is none
			}
			places := look(string(text))
			if len(places) == 0 {
				continue
			}
			file := f.Fset.AddFile(filepath.Join(dir, name), -1, len(text))
			file.SetLinesForContent(text)
			for line, message := range places {
				f.left(file.LineStart(line), message)
			}
		}
	}
}

var (
	gqlgenID  = regexp.MustCompile(`^(\s*)ID:\s*$`)
	gqlgenInt = regexp.MustCompile(`\bgraphql\.U?[iI]nt(?:ID|32|64|8|16)?\w*\b`)
	indent    = regexp.MustCompile(`^\s*`)
)

// gqlgen returns the lines that map GraphQL's ID to an integer.
func gqlgen(text string) map[int]string {
	found := map[int]string{}
	within := -1 // the indent of "ID:"
	for i, line := range strings.Split(text, "\n") {
		if m := gqlgenID.FindStringSubmatch(line); m != nil {
			within = len(m[1])
			continue
		}
		if strings.TrimSpace(line) == "" {
			continue
		}
		if within >= 0 && len(indent.FindString(line)) <= within {
			within = -1
		}
		if name := gqlgenInt.FindString(line); name != "" && within >= 0 && !strings.HasPrefix(strings.TrimSpace(line), "#") {
			found[i+1] = "gqlgen maps ID to " + name + ": map it to github.com/snowkey/snowkey/types.Snowflake"
		}
	}
	return found
}

var (
	sqlcColumn = regexp.MustCompile(`"?column"?\s*:\s*"?[\w.*]*\b(?:\w+_)?id\b`)
	sqlcInt    = regexp.MustCompile(`"?(?:go_type|type)"?\s*:\s*"?(u?int(?:8|16|32|64)?)\b`)
	sqlcItem   = regexp.MustCompile(`^\s*(?:-\s|\{)`)
)

// sqlc returns the lines of overrides that make integers of columns with keys, and the first line
// if there is no override for keys at all: sqlc makes int64 or int32 of integer columns by itself.
func sqlc(text string) map[int]string {
	found := map[int]string{}
	if !strings.Contains(text, "snowkey/types") {
		found[1] = "sqlc makes integers of columns with keys, unless an override gives them the go_type github.com/snowkey/snowkey/types.Snowflake"
	}
	column := false
	number, at := "", 0
	for i, line := range strings.Split(text+"\n- ", "\n") {
		if sqlcItem.MatchString(line) {
			if column && number != "" {
				found[at] = "sqlc makes " + number + " of a column with keys: give it the go_type github.com/snowkey/snowkey/types.Snowflake"
			}
			column, number = false, ""
		}
		column = column || sqlcColumn.MatchString(line)
		if m := sqlcInt.FindStringSubmatch(line); m != nil {
			number, at = m[1], i+1
		}
	}
	return found
}
