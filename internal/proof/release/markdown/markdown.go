// Package markdown finds the code blocks of a page, so that tests can build and run them.
package markdown

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A Block is a fenced block of a page, or a comment of several lines such as
//
//	<!-- setting
//	package main
//	-->
type Block struct {
	Language string   // the word after the fence, or after <!--
	Comment  bool     // readers do not see it
	Text     string   // its lines, each with its end
	Line     int      // of the page where Text begins; the first line is 1
	RunBy    []string // the names of the tests that run it
	On       []string // the databases that it is for; nil for all
}

// A page says by a comment which tests run a block, and on which databases, on the line before
// its fence, or for all blocks behind the comment that have none of their own:
//
//	<!-- run by TestOne, TestTwo -->
//	<!-- run by TestOne on MySQL, MariaDB -->
const runBy = "<!-- run by "

// Blocks returns the blocks of a page in their order. Fences stand at the beginning of a
// line. An indented fence, and a block that does not end, is an error.
func Blocks(page string) ([]Block, error) {
	var (
		list      []Block
		open      *Block
		text      strings.Builder
		line      int
		all, next *Block // what is said of all blocks from here on, and of the next if it begins here
	)
	for content := range strings.Lines(page) {
		line++
		trimmed := strings.TrimSpace(content)
		if next != nil && !strings.HasPrefix(content, "```") {
			all, next = next, nil
		}
		switch {
		case open != nil && (open.Comment && trimmed == "-->" || !open.Comment && trimmed == "```"):
			open.Text = text.String()
			list = append(list, *open)
			open = nil
			text.Reset()
		case open != nil:
			text.WriteString(content)
		case strings.HasPrefix(content, "```"):
			b := *cmp.Or(next, all, &Block{})
			b.Language, b.Line = strings.TrimPrefix(trimmed, "```"), line+1
			open, next = &b, nil
		case strings.HasPrefix(trimmed, "```"):
			return nil, fmt.Errorf("line %d: an indented block: want it at the beginning of the line", line)
		case strings.HasPrefix(content, runBy):
			tests, on, some := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(trimmed, runBy), " -->"), " on ")
			next = &Block{RunBy: strings.Split(tests, ", ")}
			if some {
				next.On = strings.Split(on, ", ")
			}
		case strings.HasPrefix(content, "<!-- ") && !strings.Contains(content, "-->"):
			open = &Block{Language: strings.TrimPrefix(trimmed, "<!-- "), Comment: true, Line: line + 1}
		}
	}
	if open != nil {
		return nil, fmt.Errorf("line %d: the block of %q does not end", open.Line-1, open.Language)
	}
	return list, nil
}

// BlocksOf returns the blocks of a page that a test runs, and the setting of the page. There are
// some, or it is an error.
func BlocksOf(page, test string) (setting string, list []Block, err error) {
	all, err := Blocks(page)
	for _, b := range all {
		switch {
		case b.Language == "setting":
			setting = b.Text
		case slices.Contains(b.RunBy, test):
			list = append(list, b)
		}
	}
	if err == nil && list == nil {
		err = fmt.Errorf("the page has no block that is run by %s", test)
	}
	return setting, list, err
}
