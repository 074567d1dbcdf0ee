package main

import (
	"bufio"
	"context"
	"encoding/json"
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
	command         []string  // nil: go test -json
	out             io.Writer // nil: os.Stdout
}

// An event is one line of go test -json.
type event struct {
	Action, Package, Test, Output string
}

// A result is what one run of a package left.
type result struct {
	failed   bool
	finished bool // the run came to its end, and so all its tests have run
	output   strings.Builder
	tests    map[string]*strings.Builder // output by top-level test
	ran      map[string]bool
	bad      []string // the top-level tests that failed
}

// promise matches what a test says that has seen the promise broken. Such a failure is real
// even if it comes once in a thousand runs, and so is a data race.
var promise = regexp.MustCompile(`(?i)\b(repeat(s|ed)?|twice|missed|misses|lost|gaps?)\b|DATA RACE`)

// run runs the tests. Each one that fails runs alone twice more. If it passes both times it is
// recorded and does not fail the run, unless its failure says that the promise was broken.
func (s suite) run(ctx context.Context) error {
	if s.command == nil {
		s.command = []string{"go", "test", "-json"}
	}
	if s.out == nil {
		s.out = os.Stdout
	}
	results, err := s.goTest(ctx, append(slices.Clone(s.packages), s.flags...)...)
	if err == nil {
		return nil
	}
	var flaky []string
	for name, r := range results {
		if !r.failed {
			continue
		}
		if !r.finished || len(r.bad) == 0 {
			return err
		}
		for _, test := range r.bad {
			if said := ours(r.tests[test].String()); promise.MatchString(said) {
				_, _ = fmt.Fprintf(s.out, "gate: %s.%s is not run again: it says %q\n", name, test, promise.FindString(said))
				return err
			}
			flaky = append(flaky, name+"."+test)
		}
	}
	if len(flaky) == 0 { // nothing was built
		return err
	}
	slices.Sort(flaky)
	for _, test := range flaky {
		if again := s.alone(ctx, test); again != nil {
			return errors.Join(err, again)
		}
	}
	file, err := os.OpenFile(s.record, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	for _, test := range flaky {
		if _, err := fmt.Fprintln(file, test, time.Now().UTC().Format(time.DateOnly)); err != nil {
			return errors.Join(err, file.Close())
		}
	}
	return file.Close()
}

// alone runs one test twice, by itself.
func (s suite) alone(ctx context.Context, test string) error {
	dot := strings.LastIndex(test, ".")
	name, test := test[:dot], test[dot+1:]
	for range 2 {
		_, _ = fmt.Fprintf(s.out, "gate: %s fails, so it runs alone\n", test)
		args := append([]string{name}, s.flags...)
		results, err := s.goTest(ctx, append(args, "-run=^"+test+"$", "-skip=^$")...)
		if err != nil {
			return err
		}
		if r := results[name]; r == nil || !r.ran[test] {
			return fmt.Errorf("%s did not run again in %s", test, name)
		}
	}
	return nil
}

// ours is the output of a test without the lines of package testing, which repeat its name.
func ours(output string) string {
	var b strings.Builder
	for line := range strings.Lines(output) {
		if s := strings.TrimSpace(line); !strings.HasPrefix(s, "--- ") && !strings.HasPrefix(s, "=== ") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// goTest runs go test -json and prints what go test prints without it: a line for each package,
// and the output of tests that failed.
func (s suite) goTest(ctx context.Context, args ...string) (map[string]*result, error) {
	cmd := exec.CommandContext(ctx, s.command[0], append(slices.Clone(s.command[1:]), args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	results, err := read(out, s.out)
	if wait := cmd.Wait(); wait != nil {
		err = fmt.Errorf("go test %s: %w", strings.Join(args, " "), wait)
	}
	return results, err
}

func read(r io.Reader, w io.Writer) (map[string]*result, error) {
	results := map[string]*result{}
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return results, nil
		}
		if err != nil {
			return results, err
		}
		var e event
		if json.Unmarshal(line, &e) != nil {
			_, _ = w.Write(line) // not of test2json, such as a toolchain that is downloaded
			continue
		}
		if e.Action == "build-output" {
			_, _ = io.WriteString(w, e.Output)
		}
		if e.Package == "" {
			continue
		}
		p := results[e.Package]
		if p == nil {
			p = &result{tests: map[string]*strings.Builder{}, ran: map[string]bool{}}
			results[e.Package] = p
		}
		p.take(e, w)
	}
}

func (r *result) take(e event, w io.Writer) {
	top, _, _ := strings.Cut(e.Test, "/")
	switch {
	case e.Action == "output" && e.Test == "":
		r.finished = r.finished || e.Output == "FAIL\n" || e.Output == "PASS\n"
		r.output.WriteString(e.Output)
		if strings.HasPrefix(e.Output, "ok  \t") || strings.HasPrefix(e.Output, "?   \t") {
			_, _ = io.WriteString(w, e.Output)
		}
	case e.Action == "output":
		if r.tests[top] == nil {
			r.tests[top] = &strings.Builder{}
		}
		r.tests[top].WriteString(e.Output)
	case e.Action == "run":
		r.ran[e.Test] = true
	case e.Test != "" && e.Test == top && (e.Action == "pass" || e.Action == "skip"):
		delete(r.tests, top)
	case e.Action == "fail" && e.Test == top && top != "":
		r.bad = append(r.bad, top)
	case e.Action == "fail" && e.Test == "":
		r.failed = true
		for _, test := range r.tests {
			_, _ = io.WriteString(w, test.String())
		}
		_, _ = io.WriteString(w, r.output.String())
	}
}
