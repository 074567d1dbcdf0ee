package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// checkShell returns an error unless the packages, tests, steps and targets that
// commands of a block name exist in the tree. Programs that are not the tree's are not
// looked for.
func checkShell(tree, text string) error {
	var bad []error
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		line, _, _ = strings.Cut(" "+line, " #")
		for part := range strings.SplitSeq(line, "&&") {
			if err := checkCommand(tree, strings.Fields(part)); err != nil {
				bad = append(bad, fmt.Errorf("%s: %w", strings.TrimSpace(part), err))
			}
		}
	}
	return errors.Join(bad...)
}

var assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z_0-9]*=`)

func checkCommand(tree string, words []string) error {
	for len(words) > 0 && (assignment.MatchString(words[0]) || words[0] == "env") {
		words = words[1:]
	}
	switch {
	case len(words) == 0:
		return nil
	case slices.Contains([]string{".ci/run", "./.ci/run", ".ci/nightly"}, words[0]):
		return namesIn(filepath.Join(tree, "internal", "proof", "release", "gate", "steps.go"), `name: "%s",`, words[1:])
	case words[0] == "make":
		return namesIn(filepath.Join(tree, "Makefile"), `(?m)^%s:`, words[1:])
	case words[0] == "go" && len(words) > 1 && slices.Contains([]string{"run", "test", "build", "vet"}, words[1]):
		return checkPackages(tree, words[1], words[2:])
	}
	return nil
}

// namesIn returns an error unless the file has a line for each word that is no flag.
func namesIn(file, pattern string, words []string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for _, word := range words {
		if strings.HasPrefix(word, "-") {
			continue
		}
		line, err := regexp.Compile(fmt.Sprintf(pattern, regexp.QuoteMeta(word)))
		if err != nil {
			return err
		}
		if !line.Match(text) {
			return fmt.Errorf("%s has no %s", filepath.Base(file), word)
		}
	}
	return nil
}

// checkPackages returns an error unless the folders that a go command names have files of
// Go, and its -run or -bench finds a test or benchmark in one of them.
func checkPackages(tree, verb string, words []string) error {
	var folders []string
	pattern := "."
	for i, word := range words {
		switch {
		case i > 0 && words[i-1] == "-C":
			tree = filepath.Join(tree, word)
		case i > 0 && (words[i-1] == "-run" || words[i-1] == "-bench"):
			pattern = strings.Trim(word, "'\"")
		case word == "." || strings.HasPrefix(word, "./"):
			folders = append(folders, word)
		}
		if verb == "run" && len(folders) > 0 {
			break // what follows is for the program
		}
	}
	found := false
	for _, folder := range folders {
		has, err := hasTest(tree, folder, pattern)
		if err != nil {
			return err
		}
		found = found || has
	}
	if verb == "test" && len(folders) > 0 && pattern != "." && pattern != "^$" && !found {
		return fmt.Errorf("no test matches %s", pattern)
	}
	return nil
}

var testName = regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz|Example)\w*)\(`)

// hasTest reports whether a pattern of -run matches a test of a folder. Below a folder that ends
// in "..." it does not look. A folder without files of Go is an error.
func hasTest(tree, folder, pattern string) (bool, error) {
	first, _, _ := strings.Cut(pattern, "/") // the rest names subtests
	match, err := regexp.Compile(first)
	if err != nil {
		return false, err
	}
	base, below := strings.CutSuffix(folder, "...")
	info, err := os.Stat(filepath.Join(tree, base))
	files, _ := filepath.Glob(filepath.Join(tree, base, "*.go"))
	if err != nil || !info.IsDir() || len(files) == 0 && !below {
		return false, fmt.Errorf("no files of Go in %s", base)
	}
	found := below
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return false, err
		}
		found = found || slices.ContainsFunc(testName.FindAllSubmatch(text, -1), func(m [][]byte) bool { return match.Match(m[1]) })
	}
	return found, nil
}
