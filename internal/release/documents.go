package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// A program is one that a document shows, with the output that it shows for it.
type program struct{ text, output string }

// programs returns the programs of a document: blocks of Go that begin with
// "package main". The output of each stands in the next block, which is of text.
func programs(markdown string) (list []program, err error) {
	blocks := strings.Split("\n"+markdown, "\n```")
	for i := 1; i < len(blocks); i += 2 { // every second one is inside of a block
		text, ok := strings.CutPrefix(blocks[i], "go\npackage main\n")
		if !ok {
			continue
		}
		if i+2 >= len(blocks) || !strings.HasPrefix(blocks[i+2], "text\n") {
			return nil, fmt.Errorf("the program %d shows no output: want a block of text after it", len(list)+1)
		}
		list = append(list, program{"package main\n" + text + "\n", strings.TrimPrefix(blocks[i+2], "text\n") + "\n"})
	}
	return list, nil
}

// runDocuments runs the programs of README.md and of docs in modules of a user, and
// compares what they print with what the document shows.
func runDocuments(ctx context.Context, temp, tree string, m module, env []string, out io.Writer) error {
	pages, err := filepath.Glob(filepath.Join(tree, "docs", "*.md"))
	if err != nil {
		return err
	}
	for _, page := range append(pages, filepath.Join(tree, "README.md")) {
		text, err := os.ReadFile(page)
		if err != nil {
			return err
		}
		list, err := programs(string(text))
		if err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(page), err)
		}
		for i, p := range list {
			folder, err := userModule(temp, tree, m, []byte(p.text))
			if err != nil {
				return err
			}
			// The program prints to standard output, and logs to the other.
			printed, err := command(ctx, folder, env, "go", "run", ".")
			if err == nil && printed != p.output {
				err = errors.New("it prints " + printed + "; want " + p.output)
			}
			if err != nil {
				return fmt.Errorf("%s, program %d: %w", filepath.Base(page), i+1, err)
			}
		}
		if len(list) > 0 {
			_, _ = fmt.Fprintf(out, "%s: %d programs print what it shows\n", filepath.Base(page), len(list))
		}
	}
	return nil
}
