// The command report reads the output of the benchmarks. It prints the medians, and
// compares them with the goals, as markdown.
//
//	report [-doc page.md] [-svg picture.svg] raw.txt
//
// With -doc it replaces what stands between the markers of a page:
//
//	<!-- measured: goals -->
//	…
//	<!-- /measured -->
//
// With -svg it draws the contention curve.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/snowkey/snowkey/internal/benchmark"
)

func main() {
	doc := flag.String("doc", "", "markdown `file` whose marked sections are replaced")
	svg := flag.String("svg", "", "`file` for the picture of the contention curve")
	flag.Parse()
	if err := run(flag.Args(), *doc, *svg); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func run(args []string, doc, svg string) error {
	if len(args) != 1 {
		return fmt.Errorf("want one file of benchmark output, got %d arguments", len(args))
	}
	raw, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	r, err := benchmark.Parse(string(raw))
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	tables := tablesOf(r)
	for _, t := range tables {
		fmt.Printf("## %s\n\n%s\n", t.name, t.markdown)
	}
	if svg != "" {
		picture, err := plot(r)
		if err != nil {
			return err
		}
		if err := os.WriteFile(svg, picture, 0o644); err != nil {
			return err
		}
	}
	if doc != "" {
		page, err := os.ReadFile(doc)
		if err != nil {
			return err
		}
		filled, err := fill(string(page), tables)
		if err != nil {
			return fmt.Errorf("%s: %w", doc, err)
		}
		if err := os.WriteFile(doc, []byte(filled), 0o644); err != nil {
			return err
		}
	}
	return nil
}
