package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// measure runs the suites that are named, each into its file in the folder results. A file stays as it was
// if the measurement fails.
func measure(ctx context.Context, rounds int, here, results string, names []string) error {
	work, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	if err := os.MkdirAll(results, 0o755); err != nil {
		return err
	}
	m := &machine{ctx: ctx, here: here, work: work, built: map[string]string{}}
	// Before there are new results, which are no change of what is measured.
	if m.commit, err = output(ctx, here, "git", "describe", "--always", "--exclude", "*", "--dirty= with changes"); err != nil {
		return err
	}
	for _, name := range names {
		i := slices.Index(suiteNames(), name)
		if i < 0 {
			return fmt.Errorf("no suite %q", name)
		}
		s := suites[i]
		if rounds > 0 {
			s.rounds = rounds
		}
		if err := m.suite(s); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(results, name+".txt"), m.out.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// A machine runs steps.
type machine struct {
	ctx                context.Context //nolint:containedctx // of one run of the program
	here, work, commit string
	built              map[string]string // test binaries, by folder
	out                bytes.Buffer      // of the suite that runs
}

// suite writes where it is measured, and what all rounds give. The benchmarks print the processor, and the
// versions of servers.
func (m *machine) suite(s suite) error {
	m.out.Reset()
	fmt.Fprintf(&m.out, "date: %s\ncommand: bench %s\ngo: %s\ncores: %d\ncommit: %s\n", time.Now().UTC().Format(time.DateOnly),
		strings.Join(os.Args[1:], " "), runtime.Version(), runtime.NumCPU(), m.commit)
	for round := range s.rounds {
		for _, step := range s.steps {
			if step.once && round > 0 {
				continue
			}
			if err := m.step(step, round+1); err != nil {
				return fmt.Errorf("%s: %w", step.pattern, err)
			}
		}
		fmt.Fprintf(os.Stderr, "%s: round %d of %d done\n", s.name, round+1, s.rounds)
	}
	return nil
}

func (m *machine) step(s step, round int) error {
	// By its own go.mod, and not by the workspace's versions.
	if m.built[s.folder] == "" {
		binary := filepath.Join(m.work, strconv.Itoa(len(m.built)))
		if _, err := output(m.ctx, filepath.Join(m.here, s.folder), "go", "test", "-c", "-o", binary, "."); err != nil {
			return err
		}
		m.built[s.folder] = binary
	}
	args := []string{"-test.run", "^$", "-test.bench", s.pattern, "-test.benchtime", s.time, "-test.timeout", "0"}
	if strings.HasPrefix(s.pattern, "^Test") {
		args = []string{"-test.run", s.pattern, "-test.v"}
	}
	fmt.Fprintf(&m.out, "# round %d, %s: before it, other programs used %d %% of the CPUs\n", round, s.pattern, quiet(m.ctx))
	text, err := output(m.ctx, filepath.Join(m.here, s.folder), m.built[s.folder], args...)
	m.out.WriteString(text + "\n")
	return err
}

// output runs a program outside of the workspace, and returns what it prints.
func output(ctx context.Context, folder, name string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, name, args...)
	command.Dir, command.Stderr = folder, os.Stderr
	if folder != "" {
		command.Env = append(os.Environ(), "GOWORK=off")
	}
	text, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, text)
	}
	return strings.TrimSpace(string(text)), nil
}

// quiet waits, for 20 seconds at most, until other programs use no more than a tenth of the CPUs. It returns
// the percentage that they used last, or 0 where it is unknown.
func quiet(ctx context.Context) int {
	up, idle := uptime()
	for deadline := time.Now().Add(20 * time.Second); ; {
		select {
		case <-ctx.Done():
			return 0
		case <-time.After(300 * time.Millisecond):
		}
		before, rested := up, idle
		if up, idle = uptime(); up == before {
			return 0
		}
		percent := int(100 - 100*(idle-rested)/((up-before)*float64(runtime.NumCPU())))
		if percent <= 10 || time.Now().After(deadline) {
			return max(0, percent)
		}
	}
}

// uptime returns the seconds since the machine has started, and those that its CPUs had nothing to do.
func uptime() (up, idle float64) {
	text, _ := os.ReadFile("/proc/uptime") // there is none on other systems
	_, _ = fmt.Sscan(string(text), &up, &idle)
	return up, idle
}
