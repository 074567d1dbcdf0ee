package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	var o options
	flag.IntVar(&o.rounds, "rounds", 0, "rounds, in each of which every benchmark takes its turn; 0: as many as the suite has")
	flag.StringVar(&o.out, "out", "", "write the results into a `folder`, and not the page")
	flag.Usage = func() {
		_, _ = fmt.Fprintf(flag.CommandLine.Output(), "usage: bench [flags] [all | %s]...\n", strings.Join(suiteNames(), " | "))
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	rounds int
	out    string
}

func suiteNames() (names []string) {
	for _, s := range suites {
		names = append(names, s.name)
	}
	return names
}

// run measures the suites that are named, and writes the page.
func run(ctx context.Context, o options, names []string) error {
	if slices.Contains(names, "all") {
		names = suiteNames()
	}
	here, err := output(ctx, "", "go", "list", "-f", "{{.Dir}}", "github.com/snowkey/snowkey/internal/proof/lab/bench")
	if err != nil {
		return err
	}
	results := filepath.Join(here, "results")
	if o.out != "" {
		return measure(ctx, o.rounds, here, o.out, names)
	}
	if err := measure(ctx, o.rounds, here, results, names); err != nil {
		return err
	}
	return writePage(results, filepath.Join(here, "..", "..", "..", "..", "docs"))
}

// page has the sections between markers. The text around these is written by hand.
const page = "benchmarks.md"

// writePage fills the sections of the page in docs from the files in folder.
func writePage(folder, docs string) error {
	sections, err := allSections(folder)
	if err != nil {
		return err
	}
	name := filepath.Join(docs, page)
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	filled, err := fill(string(text), sections)
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	return os.WriteFile(name, []byte(filled), 0o644)
}

// allSections returns the sections of all suites, by name.
func allSections(folder string) (map[string]string, error) {
	all, sections := map[string]*results{}, map[string]string{}
	for _, s := range suites {
		text, err := os.ReadFile(filepath.Join(folder, s.name+".txt"))
		if err != nil {
			return nil, err
		}
		if all[s.name], err = parse(string(text)); err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
		maps.Copy(sections, s.sections(all[s.name]))
	}
	sections["runs"], sections["goals"] = runs(all), missedGoals(all)
	return sections, nil
}

// runs says where and when each suite was measured.
func runs(all map[string]*results) string {
	rows := [][]string{{"suite", "date", "rounds", "Go", "CPU, two cores", "other programs", "command at its commit", "measured against"}}
	for _, s := range suites {
		r := all[s.name]
		least, most := 0, 0
		for _, units := range r.values {
			n := len(units["ns/op"])
			if most = max(most, n); n > 0 && (least == 0 || n < least) { // simulated time has none
				least = n
			}
		}
		rounds := fmt.Sprint(most)
		if least < most {
			rounds = fmt.Sprintf("%d to %d", least, most)
		}
		var versions []string
		for _, db := range []string{"SQLite", "PostgreSQL", "MariaDB", "MySQL"} {
			if v := r.config[db]; v != "" {
				version := strings.FieldsFunc(strings.TrimPrefix(v, "PostgreSQL "), func(r rune) bool { return r == ' ' || r == '-' })
				versions = append(versions, db+" "+version[0])
			}
		}
		rows = append(rows, []string{
			s.name, r.config["date"], rounds, strings.TrimPrefix(r.config["go"], "go"), r.config["cpu"], fmt.Sprintf("at most %d %%", slices.Max(r.busy)),
			"`" + r.config["command"] + "` at " + r.config["commit"], strings.Join(versions, ", "),
		})
	}
	return table(rows)
}
