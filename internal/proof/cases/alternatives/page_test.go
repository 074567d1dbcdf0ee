package alternatives

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const docs = "../../../../docs"

var named = regexp.MustCompile("\\[`(Test\\w+)`\\]\\(([^)#]+)\\)")

func TestThePageNamesTestsThatExistAndAllOfThisPackage(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(docs, "alternatives.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	links := named.FindAllStringSubmatch(page, -1)
	if all := strings.Count(page, "`Test"); len(links) != all || all == 0 {
		t.Errorf("%d of %d names of tests are links to their files", len(links), all)
	}
	onPage := map[string]bool{}
	for _, l := range links {
		onPage[l[1]] = true
		source, err := os.ReadFile(filepath.Join(docs, l[2]))
		if err != nil || !strings.Contains(string(source), "\nfunc "+l[1]+"(t *testing.T)") {
			t.Errorf("%s has no %s: %v", l[2], l[1], err)
		}
	}
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range regexp.MustCompile(`(?m)^func (Test\w+)`).FindAllStringSubmatch(string(source), -1) {
			if file != "page_test.go" && !onPage[f[1]] {
				t.Errorf("%s of %s is not on the page", f[1], file)
			}
		}
	}
}
