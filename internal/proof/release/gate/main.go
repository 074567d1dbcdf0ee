// Gate answers what .ci/run and .ci/nightly ask: which steps there are, which of them a change
// needs, and whether a test that failed fails again.
//
//	gate list               the steps: name, when, heading
//	gate wanted BASE        the names of the steps that the gate runs on what has changed since BASE
//	gate files BASE         the files that have changed
//	gate modules BASE       the folders of the modules that have to be tidied again
//	gate base               the commit that the gate compares with
//	gate test FILE PACKAGES -- FLAGS
//	                        go test, with a second look at tests that fail; FILE gets a line for each that passes then
//	gate flaky FILE         fails if a test stands in FILE twice
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gate:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	word, args := first(args)
	tree := tree{dir: "."}
	switch word {
	case "list":
		for _, s := range steps {
			fmt.Printf("%-10s %-8s %s\n", s.name, s.when, s.heading)
		}
		return nil
	case "base":
		fmt.Println(tree.base(ctx))
		return nil
	case "wanted", "files", "modules":
		base, _ := first(args)
		files, err := tree.changed(ctx, base)
		if err != nil {
			return err
		}
		switch word {
		case "wanted":
			files = wanted(steps, files)
		case "modules":
			files = tree.untidy(files)
		}
		for _, f := range files {
			fmt.Println(f)
		}
		return nil
	case "test":
		record, args := first(args)
		end := slices.Index(args, "--")
		if record == "" || end < 1 {
			break
		}
		return suite{packages: args[:end], flags: args[end+1:], record: record}.run(ctx)
	case "flaky":
		name, _ := first(args)
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return repeated(string(text))
	}
	return errors.New("usage: gate list | wanted BASE | files BASE | modules BASE | base | test FILE PACKAGES -- FLAGS | flaky FILE")
}

func first(args []string) (string, []string) {
	if len(args) == 0 {
		return "", nil
	}
	return args[0], args[1:]
}

// repeated returns an error that names the tests with more than one line. A test that fails
// by chance once is noted; one that does so again has to be mended.
func repeated(text string) error {
	seen, twice := map[string]bool{}, []string{}
	for line := range strings.Lines(text) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == "" || name == "#" {
			continue
		}
		if seen[name] && !slices.Contains(twice, name) {
			twice = append(twice, name)
		}
		seen[name] = true
	}
	if len(twice) > 0 {
		return fmt.Errorf("these tests have failed by chance more than once, mend them and remove their lines: %s", strings.Join(twice, ", "))
	}
	return nil
}
