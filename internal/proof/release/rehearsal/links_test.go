package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	link = regexp.MustCompile(`\]\(([^)\s]*)\)`)
	code = regexp.MustCompile("(?s)\n```.*?\n```|`[^`\n]*`") // an index and a call look like a link
)

func TestLinksOfThePagesLeadToFilesAndSections(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(tree, "docs", "*.md"))
	must(t, err)
	more, err := filepath.Glob(filepath.Join(tree, "*.md"))
	must(t, err)
	links := 0
	for _, page := range append(pages, more...) {
		text, err := os.ReadFile(page)
		must(t, err)
		for _, match := range link.FindAllStringSubmatch(code.ReplaceAllString(string(text), ""), -1) {
			if host, path, ok := strings.Cut(match[1], "://pkg.go.dev/"); ok && host != "" && ours(path) {
				t.Errorf("%s links to %s; want the file, because pkg.go.dev has no page of a module before it is published", page, match[1])
			}
			if strings.Contains(match[1], "://") {
				continue
			}
			links++
			name, section, _ := strings.Cut(match[1], "#")
			target := page
			if name != "" {
				target = filepath.Join(filepath.Dir(page), name)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which is not there", page, match[1])
			} else if section != "" && !sections(t, target)[section] {
				t.Errorf("%s links to %s, which has no such section", page, match[1])
			}
		}
	}
	if links < 50 {
		t.Errorf("%d links found; want more, or the search has missed some", links)
	}
}

var (
	heading     = regexp.MustCompile(`(?m)^#+ (.*)$`)
	punctuation = regexp.MustCompile(`[^\pL\pN _-]`)
)

// sections returns the sections of a page as links name them.
func sections(t *testing.T, page string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(page)
	must(t, err)
	names := map[string]bool{}
	for _, match := range heading.FindAllStringSubmatch(string(text), -1) {
		names[anchor(match[1])] = true
	}
	return names
}

// anchor returns the name of a section in links.
func anchor(title string) string {
	name := link.ReplaceAllString(strings.ToLower(title), "]")
	return strings.ReplaceAll(punctuation.ReplaceAllString(name, ""), " ", "-")
}
