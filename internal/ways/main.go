package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/snowkey/snowkey/internal/benchmark"
)

func main() {
	measure := flag.String("measure", "", "what to measure: ids, rows or both, with a comma between them; it replaces what the file has of it")
	span := flag.Duration("time", 1200*time.Millisecond, "how long each way is asked, for each number of goroutines")
	raw := flag.String("raw", "results.txt", "`file` of what was measured")
	docs := flag.String("docs", "../../docs", "`folder` of ways.md and ways.svg")
	flag.Parse()
	if err := run(context.Background(), *measure, *span, *raw, *docs); err != nil {
		fmt.Fprintln(os.Stderr, "ways:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, measure string, span time.Duration, raw, docs string) error {
	for part := range strings.SplitSeq(measure, ",") {
		var err error
		switch part {
		case "":
		case "ids":
			err = replace(ctx, raw, []string{"Ways/", "Fetch/"}, func(p *places, out io.Writer) error { return measureIDs(ctx, p, span, out) })
		case "rows":
			err = replace(ctx, raw, []string{"Rows/"}, func(p *places, out io.Writer) error { return measureRows(ctx, p, out) })
		default:
			err = fmt.Errorf("-measure has %q, want ids or rows", part)
		}
		if err != nil {
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
	return writePage(r, docs)
}

// replace measures, and puts the results into the file in place of those whose names
// begin with one of the prefixes. If the measurement fails the file stays.
func replace(ctx context.Context, file string, prefixes []string, measure func(*places, io.Writer) error) (err error) {
	p, err := newPlaces(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close(context.WithoutCancel(ctx))) }()
	var out strings.Builder
	if err := header(ctx, p, &out); err != nil {
		return err
	}
	if err := measure(p, io.MultiWriter(&out, os.Stderr)); err != nil {
		return err
	}
	old, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for line := range strings.Lines(string(old)) {
		replaced := slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(line, "Benchmark"+p) })
		if strings.HasPrefix(line, "Benchmark") && !replaced {
			out.WriteString(line)
		}
	}
	return os.WriteFile(file, []byte(out.String()), 0o644)
}

// header writes where it was measured.
func header(ctx context.Context, p *places, out io.Writer) error {
	var postgres, mariaDB string
	if err := errors.Join(
		p.postgres.QueryRowContext(ctx, "SHOW server_version").Scan(&postgres),
		p.mariaDB.QueryRowContext(ctx, "SELECT version()").Scan(&mariaDB),
	); err != nil {
		return err
	}
	info, err := p.redis[0].Info(ctx, "server").Result()
	if err != nil {
		return err
	}
	redis := "unknown"
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(line, "redis_version:"); ok {
			redis = strings.TrimSpace(v)
		}
	}
	commit, err := exec.CommandContext(ctx, "git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		commit = []byte("unknown")
	}
	_, err = fmt.Fprintf(out, "date: %s\ncommand: go run . -measure ids,rows\ngo: %s\ncpu: %s\ncores: %d\ncommit: %s\nPostgreSQL: %s\nMariaDB: %s\nRedis: %s\n",
		time.Now().UTC().Format(time.DateOnly), runtime.Version(), cpuName(), runtime.NumCPU(), strings.TrimSpace(string(commit)),
		postgres, mariaDB, redis)
	return err
}
