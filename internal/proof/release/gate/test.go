package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A suite is a run of go test.
type suite struct {
	packages, flags []string
	record          string    // the file that gets a line for each test that passes when it runs alone
	command         []string  // nil: go test
	out             io.Writer // nil: os.Stdout
}

var (
	// failure is the line of a top-level test that has failed; those of subtests are indented.
	failure = regexp.MustCompile(`(?m)^--- FAIL: (\w+)`)

	// verdict is a line of package testing, which repeats the name of a test.
	verdict = regexp.MustCompile(`(?m)^ *--- .*$`)

	// promise matches what a test says that has seen the promise broken. Such a failure is real
	// even if it comes once in a thousand runs, and so is a data race. What a test says is indented.
	promise = regexp.MustCompile(`(?im)^ .*\b(repeat(s|ed)?|twice|missed|misses|lost|gaps?)\b|DATA RACE`)
)

// run runs the tests. Each one that fails runs alone twice more. If it passes both times it is
// recorded and does not fail the run, unless its package says that the promise was broken.
func (s suite) run(ctx context.Context) error {
	if s.command == nil {
		s.command = []string{"go", "test"}
	}
	if s.out == nil {
		s.out = os.Stdout
	}
	said, err := s.goTest(ctx, s.packages)
	if err == nil {
		return nil
	}
	type test struct{ in, name string }
	var flaky []test
	for name, output := range failures(said) {
		failed := failure.FindAllStringSubmatch(output, -1)
		if len(failed) == 0 || !strings.Contains(output, "\nFAIL\n") {
			return err // it was not built, or has not come to its end, so not all its tests have run
		}
		if broken := promise.FindString(verdict.ReplaceAllString(output, "")); broken != "" {
			_, _ = fmt.Fprintf(s.out, "gate: the tests of %s are not run again: one says %q\n", name, broken)
			return err
		}
		for _, match := range failed {
			flaky = append(flaky, test{name, match[1]})
		}
	}
	if len(flaky) == 0 {
		return err
	}
	lines := ""
	for _, test := range flaky {
		for range 2 {
			_, _ = fmt.Fprintf(s.out, "gate: %s has failed, so it runs alone\n", test.name)
			said, again := s.goTest(ctx, []string{test.in}, "-run=^"+test.name+"$", "-skip=^$")
			if again == nil && strings.Contains(said, "[no tests to run]") {
				again = fmt.Errorf("%s did not run again in %s", test.name, test.in)
			}
			if again != nil {
				return errors.Join(err, again)
			}
		}
		lines += fmt.Sprintf("%s.%s %s\n", test.in, test.name, time.Now().UTC().Format(time.DateOnly))
	}
	file, err := os.OpenFile(s.record, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	_, err = file.WriteString(lines)
	return errors.Join(err, file.Close())
}

// goTest runs go test on packages, with more flags than those of the suite, and returns what it says.
func (s suite) goTest(ctx context.Context, packages []string, flags ...string) (string, error) {
	args := slices.Concat(packages, s.flags, flags)
	cmd := exec.CommandContext(ctx, s.command[0], slices.Concat(s.command[1:], args)...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = io.MultiWriter(s.out, &said), os.Stderr
	err := cmd.Run()
	if err != nil {
		err = fmt.Errorf("go test %s: %w", strings.Join(args, " "), err)
	}
	return said.String(), err
}

// failures returns what go test says of each package that has failed. It says that before the line with
// the package's name.
func failures(said string) map[string]string {
	failed, output := map[string]string{}, "\n"
	for line := range strings.Lines(said) {
		switch fields := strings.Fields(line); {
		case strings.HasPrefix(line, "FAIL\t"):
			failed[fields[1]] = output
			output = "\n"
		case strings.HasPrefix(line, "ok  \t"), strings.HasPrefix(line, "?   \t"):
			output = "\n"
		default:
			output += line
		}
	}
	return failed
}
