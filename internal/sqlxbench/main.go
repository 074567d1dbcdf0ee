package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

func main() {
	var o options
	where := defaultAddresses()
	flag.IntVar(&o.rounds, "rounds", 11, "rounds that count, after one that does not; 0: only write the page")
	flag.IntVar(&o.stream, "stream", 0, "instead of the rounds, insert a sequence of so many `rows`")
	flag.StringVar(&o.target, "target", "", "measure only the targets that match the `regexp`, and keep the results of the others")
	flag.StringVar(&o.only, "only", "", "run only what matches the `regexp`, as in SQLite/lines/snowkey; print it, write nothing")
	flag.StringVar(&o.raw, "raw", "results", "`folder` of what was measured")
	flag.StringVar(&o.page, "page", "../../docs/sqlx-benchmarks.md", "`file` of the page")
	flag.DurationVar(&o.patience, "patience", 20*time.Second, "how long to wait, before each round, for other programs to become quiet")
	flag.StringVar(&o.where.postgres, "postgres", where.postgres, "`URL` of PostgreSQL")
	flag.StringVar(&o.where.mariaDB, "mariadb", where.mariaDB, "`DSN` of MariaDB")
	flag.Usage = func() {
		// Without the defaults of the addresses, which may hold passwords.
		_, _ = fmt.Fprintln(flag.CommandLine.Output(), "usage: go run . [-rounds n | -stream rows] [-target regexp] [-only regexp] [-raw folder] [-page file] [-patience d] [-postgres URL] [-mariadb DSN]")
	}
	flag.Parse()
	if err := o.run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "sqlxbench:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	rounds, stream int
	target, only   string
	raw, page      string
	patience       time.Duration
	where          addresses
}

func (o options) run(ctx context.Context) error {
	if flag.NArg() > 0 {
		return fmt.Errorf("want flags alone, got %q", flag.Args())
	}
	only, err := regexp.Compile(o.only)
	if err != nil {
		return err
	}
	chosen, err := regexp.Compile(o.target)
	if err != nil {
		return err
	}
	for _, t := range targets {
		if !chosen.MatchString(t.name) {
			continue
		}
		switch {
		case o.only != "" && o.stream > 0:
			err = o.streamHere(ctx, t, only)
		case o.only != "":
			err = o.measure(ctx, t, only, os.Stdout)
		case o.stream > 0:
			err = o.into(t.name+"-stream.txt", func(out io.Writer) error { return o.streamAll(ctx, t, out) })
		case o.rounds > 0:
			err = o.into(t.name+".txt", func(out io.Writer) error { return o.measure(ctx, t, only, out) })
		}
		if err != nil {
			return err
		}
	}
	if o.only != "" {
		return nil
	}
	r, err := readResults(o.raw)
	if err != nil {
		return err
	}
	return os.WriteFile(o.page, []byte(r.page()), 0o644)
}

// into leaves the file as it was if the measurement fails.
func (o options) into(file string, measure func(io.Writer) error) error {
	file = filepath.Join(o.raw, file)
	out, err := os.Create(file + ".new")
	if err != nil {
		return err
	}
	if err := errors.Join(measure(out), out.Close()); err != nil {
		return errors.Join(err, os.Remove(out.Name()))
	}
	return os.Rename(out.Name(), file)
}

// measure writes what all rounds of a target took.
func (o options) measure(ctx context.Context, t target, only *regexp.Regexp, out io.Writer) (err error) {
	blocks := blocksOf(t, only)
	if len(blocks) == 0 {
		return nil
	}
	p, err := newPlace(ctx, t, o.where)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close(context.WithoutCancel(ctx))) }()
	if err := header(ctx, out, p, "rounds", o.rounds); err != nil {
		return err
	}
	for round := range o.rounds + 1 {
		used := quiet(ctx, o.patience)
		lines := out
		if round == 0 {
			lines = io.Discard
		} else if err := disturbance(out, round, used); err != nil {
			return err
		}
		for _, b := range blocks {
			if err := p.round(ctx, b, lines); err != nil {
				return err
			}
		}
		fmt.Fprintf(os.Stderr, "%s: round %d of %d done\n", t.name, round, o.rounds)
	}
	return nil
}

// disturbance writes what other programs used before a round.
func disturbance(out io.Writer, round, used int) error {
	_, err := fmt.Fprintf(out, "# round %d: before it, other programs used %d %% of the CPUs\n", round, used)
	return err
}

// A block is a group of variants that are compared with each other. They run one after
// the other, so that the machine disturbs them alike.
type block []variant

// blocksOf returns the blocks of a target: one for each load.
func blocksOf(t target, only *regexp.Regexp) []block {
	var blocks []block
	for _, load := range []string{lines, graph} {
		var b block
		for _, v := range variants() {
			if v.load == load && v.on(t) && only.MatchString(nameOf(t, v)) {
				b = append(b, v)
			}
		}
		if b != nil {
			blocks = append(blocks, b)
		}
	}
	return blocks
}

// nameOf is the name of a variant in the results.
func nameOf(t target, v variant) string { return t.name + "/" + v.load + "/" + v.name }

// round runs all variants of a block once, in random order.
func (p *place) round(ctx context.Context, b block, out io.Writer) error {
	for _, i := range rand.Perm(len(b)) {
		m, err := p.run(ctx, b[i], fullSizes)
		if err != nil {
			return err
		}
		if _, err := io.WriteString(out, m.line(nameOf(p.target, b[i]))); err != nil {
			return err
		}
	}
	return nil
}

// header writes what was measured, and where. kind is rounds or stream, with a number of
// which there are so many.
func header(ctx context.Context, out io.Writer, p *place, kind string, n int) error {
	version, err := p.version(ctx)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "date: %s\ngo: %s\ncpu: %s\ncores: %d\ncommit: %s\nmodules: %s\n%s: %s\n%s: %d\n",
		time.Now().UTC().Format(time.DateOnly), runtime.Version(), cpuName(), runtime.NumCPU(), commit(ctx), modules(), p.name, version, kind, n)
	return err
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

// commit returns the commit of the tree, and whether what is measured differs. Results
// are written meanwhile, and do not count.
func commit(ctx context.Context) string {
	hash, err := exec.CommandContext(ctx, "git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	name := strings.TrimSpace(string(hash))
	status, err := exec.CommandContext(ctx, "git", "status", "--porcelain", "--", "../../sqlxhelper", "../../types", ".", ":(exclude)results").Output()
	if err != nil || len(status) > 0 {
		name += " with changes"
	}
	return name
}

// measured are the modules whose versions matter.
var measured = []string{
	"github.com/jmoiron/sqlx", "gorm.io/gorm", "github.com/uptrace/bun", "github.com/mattn/go-sqlite3",
	"github.com/jackc/pgx/v5", "github.com/lib/pq", "github.com/go-sql-driver/mysql",
}

// modules returns the versions that this program was built with.
func modules() string {
	info, _ := debug.ReadBuildInfo()
	var list []string
	for _, path := range measured {
		for _, dep := range info.Deps {
			if dep.Path == path {
				list = append(list, path+" "+dep.Version)
			}
		}
	}
	return strings.Join(list, ", ")
}
