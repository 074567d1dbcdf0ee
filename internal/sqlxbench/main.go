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
	flag.StringVar(&o.only, "only", "", "run only what matches the `regexp`, as in SQLite/lines/snowkey; print it, write nothing")
	flag.StringVar(&o.raw, "raw", "results.txt", "`file` of what was measured")
	flag.StringVar(&o.page, "page", "../../docs/sqlx-benchmarks.md", "`file` of the page")
	flag.DurationVar(&o.patience, "patience", 20*time.Second, "how long to wait, before each round, for other programs to become quiet")
	flag.StringVar(&o.where.postgres, "postgres", where.postgres, "`URL` of PostgreSQL")
	flag.StringVar(&o.where.mariaDB, "mariadb", where.mariaDB, "`DSN` of MariaDB")
	flag.Usage = func() {
		// Without the defaults of the addresses, which may hold passwords.
		_, _ = fmt.Fprintln(flag.CommandLine.Output(), "usage: go run . [-rounds n] [-only regexp] [-raw file] [-page file] [-patience d] [-postgres URL] [-mariadb DSN]")
	}
	flag.Parse()
	if err := o.run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "sqlxbench:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	rounds    int
	only      string
	raw, page string
	patience  time.Duration
	where     addresses
}

func (o options) run(ctx context.Context) error {
	if flag.NArg() > 0 {
		return fmt.Errorf("want flags alone, got %q", flag.Args())
	}
	if o.only != "" {
		return o.measure(ctx, os.Stdout)
	}
	if o.rounds > 0 {
		if err := o.measureInto(ctx, o.raw); err != nil {
			return err
		}
	}
	text, err := os.ReadFile(o.raw)
	if err != nil {
		return err
	}
	r, err := parse(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", o.raw, err)
	}
	return os.WriteFile(o.page, []byte(r.page()), 0o644)
}

// measureInto leaves the file as it was if the measurement fails.
func (o options) measureInto(ctx context.Context, file string) error {
	out, err := os.Create(file + ".new")
	if err != nil {
		return err
	}
	if err := errors.Join(o.measure(ctx, out), out.Close()); err != nil {
		return errors.Join(err, os.Remove(out.Name()))
	}
	return os.Rename(out.Name(), file)
}

// measure writes what all rounds took.
func (o options) measure(ctx context.Context, out io.Writer) (err error) {
	only, err := regexp.Compile(o.only)
	if err != nil {
		return err
	}
	var places []*place
	defer func() {
		for _, p := range places {
			err = errors.Join(err, p.close(context.WithoutCancel(ctx)))
		}
	}()
	var blocks []block
	for _, t := range targets {
		list := blocksOf(t, only)
		if len(list) == 0 {
			continue
		}
		p, err := newPlace(ctx, t, o.where)
		if err != nil {
			return err
		}
		places = append(places, p)
		for i := range list {
			list[i].place = p
		}
		blocks = append(blocks, list...)
	}
	if len(blocks) == 0 {
		return fmt.Errorf("nothing matches %q", o.only)
	}
	if err := o.header(ctx, out, places); err != nil {
		return err
	}
	for round := range o.rounds + 1 {
		used := quiet(ctx, o.patience)
		lines := out
		if round == 0 {
			lines = io.Discard
		} else if _, err := fmt.Fprintf(out, "# round %d: before it, other programs used %d %% of the CPUs\n", round, used); err != nil {
			return err
		}
		for _, b := range blocks {
			if err := b.round(ctx, lines); err != nil {
				return err
			}
		}
		fmt.Fprintf(os.Stderr, "round %d of %d done\n", round, o.rounds)
	}
	return nil
}

// A block is a group of variants that are compared with each other. They run one after
// the other, so that the machine disturbs them alike.
type block struct {
	place    *place
	variants []variant
}

// blocksOf returns the blocks of a target: one for each load.
func blocksOf(t target, only *regexp.Regexp) []block {
	var blocks []block
	for _, load := range []string{lines, graph} {
		var b block
		for _, v := range variants() {
			if v.load == load && v.on(t) && only.MatchString(nameOf(t, v)) {
				b.variants = append(b.variants, v)
			}
		}
		if b.variants != nil {
			blocks = append(blocks, b)
		}
	}
	return blocks
}

// nameOf is the name of a variant in the results.
func nameOf(t target, v variant) string { return t.name + "/" + v.load + "/" + v.name }

// round runs all variants of the block once, in random order.
func (b block) round(ctx context.Context, out io.Writer) error {
	for _, i := range rand.Perm(len(b.variants)) {
		v := b.variants[i]
		m, err := b.place.run(ctx, v, fullSizes)
		if err != nil {
			return err
		}
		if _, err := io.WriteString(out, m.line(nameOf(b.place.target, v))); err != nil {
			return err
		}
	}
	return nil
}

// header writes what was measured, and where.
func (o options) header(ctx context.Context, out io.Writer, places []*place) error {
	var b strings.Builder
	fmt.Fprintf(&b, "date: %s\ncommand: go run . -rounds %d\ngo: %s\ncpu: %s\ncores: %d\n",
		time.Now().UTC().Format(time.DateOnly), o.rounds, runtime.Version(), cpuName(), runtime.NumCPU())
	fmt.Fprintf(&b, "commit: %s\nmodules: %s\n", commit(ctx), modules())
	for _, p := range places {
		version, err := p.version(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s: %s\n", p.name, version)
	}
	fmt.Fprintf(&b, "rounds: %d\n", o.rounds)
	_, err := io.WriteString(out, b.String())
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

// commit returns the commit of the tree, and whether what is measured differs.
func commit(ctx context.Context) string {
	hash, err := exec.CommandContext(ctx, "git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	name := strings.TrimSpace(string(hash))
	status, err := exec.CommandContext(ctx, "git", "status", "--porcelain", "--", "../../sqlxhelper", "../../types", ".").Output()
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
