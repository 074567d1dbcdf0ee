// The command gormreport measures what keys cost with GORM, and writes
// docs/gorm-benchmarks.md. Run it in internal/conformance/servers, with the servers that
// CONTRIBUTING.md names, on an idle machine:
//
//	go run ./gormreport -rounds 11
//
// It keeps the output of the benchmarks in gormreport/results.txt, in the format that
// benchstat reads. With -rounds 0 it measures nothing and writes the page from that
// file.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/snowkey/snowkey/internal/benchmark"
)

func main() {
	rounds := flag.Int("rounds", 11, "rounds, in each of which every benchmark takes its turn; 0: only write the page")
	raw := flag.String("raw", "gormreport/results.txt", "`file` of the output of the benchmarks")
	page := flag.String("page", "../../../docs/gorm-benchmarks.md", "`file` of the page")
	flag.Parse()
	if err := run(context.Background(), *rounds, *raw, *page); err != nil {
		fmt.Fprintln(os.Stderr, "gormreport:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, rounds int, raw, page string) error {
	if rounds > 0 {
		if err := measure(ctx, rounds, raw); err != nil {
			return err
		}
	}
	text, err := os.ReadFile(raw)
	if err != nil {
		return err
	}
	r, err := benchmark.Parse(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", raw, err)
	}
	return os.WriteFile(page, []byte(results{r}.page()), 0o644)
}

// measure writes the output of all rounds to a file.
func measure(ctx context.Context, rounds int, raw string) (err error) {
	dir, err := os.MkdirTemp("", "gormreport")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	out, err := os.Create(raw)
	if err != nil {
		return err
	}
	defer func() {
		if closed := out.Close(); err == nil {
			err = closed
		}
	}()
	databases, plugin := filepath.Join(dir, "databases.test"), filepath.Join(dir, "plugin.test")
	for binary, pkg := range map[string]string{databases: ".", plugin: "../../../gormplugin"} {
		if _, err = output(ctx, "go", "test", "-c", "-o", binary, pkg); err != nil {
			return err
		}
	}
	if err = header(ctx, out, rounds); err != nil {
		return err
	}
	for round := range rounds {
		load, _ := os.ReadFile("/proc/loadavg") // there is none on other systems
		if _, err = fmt.Fprintf(out, "# round %d, load average %s\n", round+1, strings.TrimSpace(string(load))); err != nil {
			return err
		}
		for _, step := range [][]string{
			// One operation of each takes long enough. The next variant
			// follows soon, so that the machine disturbs both alike.
			{databases, "-test.bench", "^Benchmark(GORM|Upsert)$", "-test.benchtime", "1x"},
			{databases, "-test.bench", "^BenchmarkUpsertWriters$", "-test.benchtime", "10x"}, // the numbers vary
			{plugin, "-test.bench", "^Benchmark(Assignment|AssignGraph)$", "-test.benchtime", "50ms"},
		} {
			text, err := output(ctx, step[0], append(step[1:], "-test.run", "^$", "-test.v")...)
			if err != nil {
				return err
			}
			if _, err = out.Write(text); err != nil {
				return err
			}
		}
		fmt.Fprintf(os.Stderr, "round %d of %d done\n", round+1, rounds)
	}
	return nil
}

// header writes what was measured, and where.
func header(ctx context.Context, out io.Writer, rounds int) error {
	commit, err := output(ctx, "git", "rev-parse", "--short", "HEAD")
	if err != nil {
		return err
	}
	dirty := ""
	if _, err = output(ctx, "git", "diff", "--quiet", "HEAD", "--", "../../../gormplugin", "../../../types", "../../../core", "."); err != nil {
		dirty = " with changes"
	}
	modules, err := output(ctx, "go", "list", "-m", "-f", "{{.Path}} {{.Version}}", "gorm.io/gorm", "gorm.io/driver/sqlite",
		"gorm.io/driver/postgres", "gorm.io/driver/mysql", "github.com/google/uuid")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "date: %s\ngo: %s\ncores: %d\ncommit: %s%s\nmodules: %s\nrounds: %d\n",
		time.Now().UTC().Format(time.DateOnly), runtime.Version(), runtime.NumCPU(),
		bytes.TrimSpace(commit), dirty, strings.Join(strings.Split(strings.TrimSpace(string(modules)), "\n"), ", "), rounds)
	return err
}

func output(ctx context.Context, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	text, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), strings.Join(args, " "), err, text)
	}
	return text, nil
}
