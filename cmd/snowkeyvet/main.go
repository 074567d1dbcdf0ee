// Command snowkeyvet finds mistakes with snowkey keys, and moves a program to them.
//
//	go install .                                 # in a clone, in cmd/snowkeyvet
//	go vet -vettool=$(which snowkeyvet) ./...    # with go vet's cache
//	snowkeyvet -fix ./...                        # and make the edits that are safe
//
// Package keycheck lists the rules. In the output of -json, a rule is the category of its
// diagnostics. An editor shows them where it runs go vet or golangci-lint: in VS Code the
// setting "go.vetFlags": ["-vettool=/path/to/snowkeyvet"]. gopls cannot load analyzers. For
// golangci-lint, package golangci is a module plugin.
//
// # Moving a program
//
// This is experimental: what -move edits may change.
//
//	snowkeyvet -move ./...         # what would change, and what is left to do
//	snowkeyvet -move -fix ./...    # change it, and print what is left
//
// Keys that the database counts become types.Snowflake: gorm.Model becomes gormplugin.Model, the
// integers that are keys change in models, parameters, variables and interfaces, strconv becomes
// types.Parse, and autoIncrement leaves the tags. Comments for swagger and JSON that tests have as
// text stay as they are. The packages must be all that use the keys. Start from a commit, then run
//
//	go mod edit -require=github.com/snowkey/snowkey@v0.0.0 -replace=github.com/snowkey/snowkey=/path/to/clone
//	go mod tidy && go vet ./...
//
// because the module is not published yet, and go get refuses a version beside a replacement.
// The compiler finds what -fix could not follow. Package move says how it decides. Places that cut
// keys to 32 bits come first. The exit status is 2 if no struct is a model, which usually means that
// the patterns leave them out.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"

	"golang.org/x/tools/go/analysis/singlechecker"

	"github.com/snowkey/snowkey/cmd/snowkeyvet/keycheck"
	"github.com/snowkey/snowkey/cmd/snowkeyvet/move"
)

func main() {
	if !slices.Contains(os.Args[1:], "-move") && !slices.Contains(os.Args[1:], "--move") {
		singlechecker.Main(keycheck.Analyzer)
	}
	flags := flag.NewFlagSet("snowkeyvet -move", flag.ExitOnError)
	_ = flags.Bool("move", true, "turn keys that the database counts into types.Snowflake")
	fix := flags.Bool("fix", false, "make the edits, and print only what is left to do")
	_ = flags.Parse(os.Args[1:])
	if err := moveAll(*fix, flags.Args()); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		if errors.Is(err, move.ErrNoModels) {
			os.Exit(2)
		}
		os.Exit(1)
	}
}

// moveAll prints the findings, or makes the edits and prints what they leave.
func moveAll(fix bool, patterns []string) error {
	_, _ = fmt.Fprintln(os.Stderr, "snowkeyvet: loading the packages of the program and their tests")
	p, err := move.Load("", patterns...)
	if err != nil {
		return err
	}
	all := p.Findings()
	counts := map[string]int{}
	for _, f := range all {
		counts[f.Category]++
		if !fix || len(f.SuggestedFixes) == 0 {
			fmt.Printf("%s: %s: %s\n", p.Fset.Position(f.Pos), f.Category, f.Message)
		}
	}
	look := counts["left"] + counts["narrow"]
	if !fix {
		fmt.Printf("%d edits, which -fix makes, and %d places to look at, %d of which cut keys\n", counts["move"], look, counts["narrow"])
		return nil
	}
	files, err := p.Fix(all)
	if err != nil {
		return err
	}
	fmt.Printf("%d edits made in %d files, and %d places to look at, %d of which cut keys\n", counts["move"], files, look, counts["narrow"])
	return nil
}
