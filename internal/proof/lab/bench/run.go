package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// measure runs the suites, each into its file in the folder results. A file stays as it was if the
// measurement fails.
func measure(ctx context.Context, o options, here, results string, chosen []suite) error {
	work, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	if err := os.MkdirAll(results, 0o755); err != nil {
		return err
	}
	m := &machine{ctx: ctx, options: o, here: here, work: work, built: map[string]string{}}
	for _, s := range chosen {
		file := filepath.Join(results, s.name+".txt")
		if err := replace(file, func(out io.Writer) error { return m.suite(s, out) }); err != nil {
			return err
		}
	}
	return nil
}

func replace(file string, write func(io.Writer) error) error {
	out, err := os.Create(file + ".new")
	if err != nil {
		return err
	}
	if err := errors.Join(write(out), out.Close()); err != nil {
		return errors.Join(err, os.Remove(out.Name()))
	}
	return os.Rename(out.Name(), file)
}

// A machine runs steps.
type machine struct {
	ctx context.Context //nolint:containedctx // of one run of the program
	options
	here, work string
	built      map[string]string // test binaries, by folder
}

// suite writes where it is measured, and what all rounds give.
func (m *machine) suite(s suite, out io.Writer) error {
	if err := m.header(out); err != nil {
		return err
	}
	rounds := s.rounds
	if m.short {
		rounds = 1
	} else if m.rounds > 0 {
		rounds = m.rounds
	}
	for round := range rounds {
		for _, step := range s.steps {
			if step.once && round > 0 {
				continue
			}
			if err := m.step(step, round+1, out); err != nil {
				return fmt.Errorf("%s: %s: %w", s.name, step.pattern, err)
			}
		}
		fmt.Fprintf(os.Stderr, "%s: round %d of %d done\n", s.name, round+1, rounds)
	}
	return nil
}

func (m *machine) step(s step, round int, out io.Writer) error {
	binary, err := m.build(s)
	if err != nil {
		return err
	}
	if !m.short {
		_, err := fmt.Fprintf(out, "# round %d, %s: before it, other programs used %d %% of the CPUs\n", round, s.pattern, quiet(m.ctx))
		if err != nil {
			return err
		}
	}
	args := []string{"-test.run", "^$", "-test.bench", s.pattern, "-test.benchtime", s.time, "-test.timeout", "0"}
	if m.short {
		args = append(args, "-test.benchtime", "1x", "-test.short")
	}
	if strings.HasPrefix(s.pattern, "^Test") {
		args = []string{"-test.run", s.pattern, "-test.v"}
	}
	command := exec.CommandContext(m.ctx, binary, args...)
	command.Dir = filepath.Join(m.here, s.folder)
	text, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w\n%s", err, text)
	}
	_, err = out.Write(text)
	return err
}

// build compiles the tests of a package, by its own go.mod and not by the workspace's
// versions.
func (m *machine) build(s step) (string, error) {
	if m.built[s.folder] == "" {
		binary := filepath.Join(m.work, strconv.Itoa(len(m.built)))
		command := exec.CommandContext(m.ctx, "go", "test", "-c", "-o", binary, ".")
		command.Dir = filepath.Join(m.here, s.folder)
		command.Env = append(os.Environ(), "GOWORK=off")
		if text, err := command.CombinedOutput(); err != nil {
			return "", fmt.Errorf("go test -c: %w\n%s", err, text)
		}
		m.built[s.folder] = binary
	}
	return m.built[s.folder], nil
}

// header writes what is measured, and where. The benchmarks print the versions of servers.
func (m *machine) header(out io.Writer) error {
	commit, err := output(m.ctx, m.here, "git", "rev-parse", "--short", "HEAD")
	if err != nil {
		return err
	}
	if status, err := output(m.ctx, m.here, "git", "status", "--porcelain", "--", "../../../..", ":(exclude)results"); err != nil || status != "" {
		commit += " with changes"
	}
	// Those of the benchmarks alone: the module has other programs too.
	list, err := output(m.ctx, m.here, "go", "list", "-deps", "-test", "-f", "{{with .Module}}{{if not (or .Main .Indirect .Replace)}}{{.Path}}@{{.Version}}{{end}}{{end}}", ".")
	if err != nil {
		return err
	}
	modules := strings.Fields(list)
	slices.Sort(modules)
	_, err = fmt.Fprintf(out, "date: %s\ncommand: bench %s\ngo: %s\ncpu: %s\ncores: %d\ncommit: %s\nmodules: %s\n", time.Now().UTC().Format(time.DateOnly),
		strings.Join(os.Args[1:], " "), runtime.Version(), cpuName(), runtime.NumCPU(), commit, strings.Join(slices.Compact(modules), ", "))
	return err
}

// output runs a program outside of the workspace, and returns what it prints.
func output(ctx context.Context, folder, name string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, name, args...)
	command.Dir = folder
	if folder != "" {
		command.Env = append(os.Environ(), "GOWORK=off")
	}
	text, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(text)), nil
}

// cpuName returns what the machine calls its CPU.
func cpuName() string {
	text, _ := os.ReadFile("/proc/cpuinfo") // there is none on other systems
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// quiet waits, for 20 seconds at most, until other programs use no more than a tenth of
// the CPUs. It returns the percentage that they used last, or 0 where it is unknown.
func quiet(ctx context.Context) int {
	for deadline := time.Now().Add(20 * time.Second); ; {
		busy, total := allCPU()
		select {
		case <-ctx.Done():
			return 0
		case <-time.After(300 * time.Millisecond):
		}
		busy2, total2 := allCPU()
		if total2 == total {
			return 0
		}
		percent := int(100 * (busy2 - busy) / (total2 - total))
		if percent <= 10 || time.Now().After(deadline) {
			return percent
		}
	}
}

// allCPU returns the ticks of all CPUs: busy ones, stolen ones too, and all.
func allCPU() (busy, total int64) {
	text, _ := os.ReadFile("/proc/stat") // there is none on other systems
	first, _, _ := strings.Cut(string(text), "\n")
	for i, field := range strings.Fields(first) {
		n, _ := strconv.ParseInt(field, 10, 64)
		if i == 0 || i > 8 {
			continue
		}
		total += n
		if i != 4 && i != 5 { // idle, and waiting for a disk
			busy += n
		}
	}
	return busy, total
}
