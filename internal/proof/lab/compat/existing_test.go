package compat

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var named = regexp.MustCompile("\\[`(\\w+)`\\]\\((\\.\\./[^)#]+\\.go)\\)")

// The answers of docs/existing.md are tests, or cases of a suite. Its layouts are those of
// this package.
func TestThePageAboutApplicationsThatExistNamesTestsAndTheLayouts(t *testing.T) {
	const docs = "../../../../docs"
	text, err := os.ReadFile(filepath.Join(docs, "existing.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	links := named.FindAllStringSubmatch(page, -1)
	if len(links) < 7 {
		t.Errorf("the page names %d tests; want 7", len(links))
	}
	for _, l := range links {
		source, err := os.ReadFile(filepath.Join(docs, l[2]))
		if err != nil || !strings.Contains(string(source), "func "+l[1]+"(t *testing.T)") && !strings.Contains(string(source), `"`+l[1]+`", `) {
			t.Errorf("%s has no %s: %v", l[2], l[1], err)
		}
	}
	b, y, s := bwmarrinLayout, yitterLayout, shardingLayout
	for _, want := range []string{
		fmt.Sprint(b.Epoch.UnixMilli(), " ms"),
		fmt.Sprint(y.Epoch.UnixMilli(), " ms"),
		fmt.Sprintf("time %d, worker %d, sequence %d", b.TimeBits, b.WorkerBits, b.SequenceBits),
		fmt.Sprintf("| %d, %d, %d", y.TimeBits, y.WorkerBits, y.SequenceBits),
		fmt.Sprintf("time %d, **datacenter %d (the shard)**, worker %d, sequence %d", s.TimeBits, s.DatacenterBits, s.WorkerBits, s.SequenceBits),
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not have %q", want)
		}
	}
}
