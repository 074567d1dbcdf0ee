package snowkey_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// docs/doubles.md says what each hop does to a key. A line of its tables that no test shows, here
// or at the commit that the page names, does not belong there; what was not run is in the page's
// last section, with its source.
func TestEveryLineOfThePageOnDoublesHasItsTest(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("docs", "doubles.md"))
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile(`\[(Test\w+)\]\(\.\./([\w/.-]+_test\.go)\)`)
	// By the tests of a folder that the commit had.
	wasShown := regexp.MustCompile("`(avro|debezium|javascript|protobuf|testdata/graphql|testdata/openapi)`(, .*)? \\|\n$")
	lines := 0
	for line := range strings.Lines(string(page)) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| ---") || strings.HasSuffix(line, "| Test |\n") {
			continue
		}
		lines++
		tests := shown.FindAllStringSubmatch(line, -1)
		if len(tests) == 0 && !wasShown.MatchString(line) {
			t.Errorf("no test is named in %q", line)
		}
		for _, test := range tests {
			source, err := os.ReadFile(filepath.FromSlash(test[2]))
			if err != nil {
				t.Errorf("%q: %v", line, err)
			} else if !strings.Contains(string(source), "\nfunc "+test[1]+"(t *testing.T) {") {
				t.Errorf("%s has no %s, which the page names", test[2], test[1])
			}
		}
	}
	if lines < 20 {
		t.Errorf("the page has %d lines that name tests; want at least 20", lines)
	}
}
