// Command rehearsal prepares a release and rehearses it.
//
//	go run ./internal/proof/release/rehearsal                 # rehearse a release of this tree
//	go run ./internal/proof/release/rehearsal -documents      # build and run the code that its pages show
//	go run ./internal/proof/release/rehearsal -raise v0.2.0   # write the new version into the go.mod files
//
// All modules of the repository are released together, with one version. A nested
// module requires that version of the others. -raise writes it. The change is
// committed, and the commit gets one tag per published module.
//
// # The rehearsal
//
// A rehearsal works on a copy of the tree and changes nothing else. It raises the
// versions, makes the zip of every published module, and lays them out as a module
// proxy. Then it builds and runs a small program against each module, as a user would.
// That is outside the workspace, without replace lines, with a module cache of its own.
// Modules of others come from this machine's module cache, then from GOPROXY.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"golang.org/x/mod/semver"
)

// rehearsed is a version that will never be released.
const rehearsed = "v0.0.0-rehearsal"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "rehearsal:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	version := flag.String("raise", "", "write this `version` into the go.mod files and do nothing else")
	pages := flag.Bool("documents", false, "build and run the code of README.md and docs, and do nothing else")
	flag.Parse()
	switch {
	case *pages:
		return documents(ctx)
	case *version == "":
		return rehearse(ctx)
	case semver.Canonical(*version) != *version:
		return fmt.Errorf("-raise %s: want a version like v0.2.0", *version)
	}
	return raise(".", *version)
}
