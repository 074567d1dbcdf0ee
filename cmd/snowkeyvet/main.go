// Command snowkeyvet finds mistakes with snowkey keys, and moves a program to them.
//
//	go install .                                 # in a clone, in cmd/snowkeyvet
//	go vet -vettool=$(which snowkeyvet) ./...    # with go vet's cache
//	snowkeyvet -fix ./...                        # and make the edits that are safe
//
// Package keycheck lists the rules, each of which is the category of its diagnostics in the
// output of -json. An editor shows them where it runs go vet or golangci-lint: in VS Code the
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
// types.Parse, autoIncrement leaves the tags, and parameters of swagger and JSON in tests become
// strings. The packages must be all that use the keys. Start from a commit, then run
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
	"context"
	"errors"
	"flag"
	"fmt"
	"go/version"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis/singlechecker"

	"github.com/snowkey/snowkey/cmd/snowkeyvet/keycheck"
	"github.com/snowkey/snowkey/cmd/snowkeyvet/move"
)

func main() {
	// As a tool of go vet it is started with one argument that begins with a minus or names a file
	// of settings, and the packages are checked by the go command.
	if last := os.Args[len(os.Args)-1]; last != "-flags" && last != "-V=full" && !strings.HasSuffix(last, ".cfg") {
		if err := checkVersion(runtime.Version()); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	if !slices.Contains(os.Args[1:], "-move") && !slices.Contains(os.Args[1:], "--move") {
		for _, help := range []string{"-h", "-help", "--help", "help"} {
			if slices.Contains(os.Args[1:], help) {
				_, _ = fmt.Fprintln(os.Stderr, "snowkeyvet -move [-fix] [package] turns keys that the database counts into types.Snowflake. Without -move:")
			}
		}
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

// checkVersion returns an error if the go command of this folder is newer than the Go that built the
// program, which cannot read the export data and the standard library of a newer one: it would print
// a line for each package of it.
func checkVersion(built string) error {
	out, err := exec.CommandContext(context.Background(), "go", "env", "GOVERSION").Output()
	if err != nil {
		return nil //nolint:nilerr // what loads the packages says it better
	}
	here := strings.TrimSpace(string(out))
	if version.Compare(version.Lang(here), version.Lang(built)) > 0 {
		return fmt.Errorf("snowkeyvet: built with %s, and the Go here is %s: install it again with GOTOOLCHAIN=%s", built, here, here)
	}
	return nil
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
