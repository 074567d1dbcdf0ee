// Package markdown finds the code blocks of a page, so that tests can build and run them.
package markdown

import (
	"fmt"
	"strings"
)

// A Block is a fenced block of a page, or a comment of several lines such as
//
//	<!-- setting
//	package main
//	-->
type Block struct {
	Language string // the word after the fence, or after <!--
	Comment  bool   // readers do not see it
	Text     string // its lines, each with its end
	Line     int    // of the page where Text begins; the first line is 1
}

// Blocks returns the blocks of a page in their order. Fences stand at the beginning of a
// line. An indented fence, and a block that does not end, is an error.
func Blocks(page string) ([]Block, error) {
	var (
		list []Block
		open *Block
		text strings.Builder
		line int
	)
	for content := range strings.Lines(page) {
		line++
		trimmed := strings.TrimSpace(content)
		switch {
		case open != nil && (open.Comment && trimmed == "-->" || !open.Comment && trimmed == "```"):
			open.Text = text.String()
			list = append(list, *open)
			open = nil
			text.Reset()
		case open != nil:
			text.WriteString(content)
		case strings.HasPrefix(content, "```"):
			open = &Block{Language: strings.TrimPrefix(trimmed, "```"), Line: line + 1}
		case strings.HasPrefix(trimmed, "```"):
			return nil, fmt.Errorf("line %d: an indented block: want it at the beginning of the line", line)
		case strings.HasPrefix(content, "<!-- ") && !strings.Contains(content, "-->"):
			open = &Block{Language: strings.TrimPrefix(trimmed, "<!-- "), Comment: true, Line: line + 1}
		}
	}
	if open != nil {
		return nil, fmt.Errorf("line %d: the block of %q does not end", open.Line-1, open.Language)
	}
	return list, nil
}
