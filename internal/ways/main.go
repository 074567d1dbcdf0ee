package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"time"

	"github.com/snowkey/snowkey/internal/benchmark"
)

func main() {
	again := flag.Bool("measure", false, "measure, and replace results.txt")
	span := flag.Duration("time", 1200*time.Millisecond, "how long each way is asked, for each number of goroutines")
	rows := flag.Int("rows", 200_000, "rows of a table that fits into memory, a multiple of 20,000")
	raw := flag.String("raw", "results.txt", "`file` of what was measured")
	docs := flag.String("docs", "../../docs", "`folder` of ways.md and ways.svg")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if *again {
		if err := measure(ctx, *span, *rows, *raw); err != nil {
			exit(err)
		}
	}
	text, err := os.ReadFile(*raw)
	if err != nil {
		exit(err)
	}
	r, err := benchmark.Parse(string(text))
	if err != nil {
		exit(fmt.Errorf("%s: %w", *raw, err))
	}
	if err := writePage(r, *docs); err != nil {
		exit(err)
	}
}

func exit(err error) {
	fmt.Fprintln(os.Stderr, "ways:", err)
	os.Exit(1)
}

// measure replaces the file, unless something fails.
func measure(ctx context.Context, span time.Duration, rows int, file string) (err error) {
	if _, _, err := openStandardUUID(ctx, nil); err != nil {
		return err
	}
	if rows <= 0 || rows%(20*rowBatch) != 0 {
		return fmt.Errorf("-rows is %d, want a multiple of %d", rows, 20*rowBatch)
	}
	s, err := newServers(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	var text strings.Builder
	out := io.MultiWriter(&text, os.Stderr)
	if err := header(ctx, s, rows, out); err != nil {
		return err
	}
	if err := measureKeys(ctx, s, span, out); err != nil {
		return err
	}
	if err := measureRows(ctx, s, rows, out); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text.String()), 0o644)
}

// header writes where it is measured.
func header(ctx context.Context, s *servers, rows int, out io.Writer) error {
	var postgres, mariaDB string
	if err := errors.Join(
		s.postgres.QueryRowContext(ctx, "SHOW server_version").Scan(&postgres),
		s.mariaDB.QueryRowContext(ctx, "SELECT version()").Scan(&mariaDB),
	); err != nil {
		return err
	}
	info, err := s.redis[0].Info(ctx, "server").Result()
	if err != nil {
		return err
	}
	_, redis, _ := strings.Cut(info, "redis_version:")
	redis, _, _ = strings.Cut(redis, "\r")
	_, err = fmt.Fprintf(out, "date: %s\ngo: %s\ncpu: %s\ncores: %d\nPostgreSQL: %s\nMariaDB: %s\nRedis: %s\nrows: %d\n",
		time.Now().UTC().Format(time.DateOnly), runtime.Version(), cpuName(), runtime.NumCPU(),
		postgres, mariaDB, redis, rows)
	return err
}
