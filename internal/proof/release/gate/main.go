// Gate answers what .ci/run and .ci/nightly ask: which steps there are, which of them a change
// needs, and whether a test that failed fails again.
//
//	gate list               the steps: name, when, heading
//	gate wanted             the names of the steps that the gate runs when the files of standard input have changed
//	gate test FILE PACKAGES -- FLAGS
//	                        go test, with a second look at tests that fail; FILE gets a line for each that passes then
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gate:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	end := slices.Index(args, "--")
	switch {
	case slices.Equal(args, []string{"list"}):
		for _, s := range steps {
			fmt.Printf("%-10s %-8s %s\n", s.name, s.when, s.heading)
		}
		return nil
	case slices.Equal(args, []string{"wanted"}):
		files, err := io.ReadAll(os.Stdin)
		for _, name := range wanted(steps, strings.Fields(string(files))) { // no name in this tree has a space
			fmt.Println(name)
		}
		return err
	case end > 2 && args[0] == "test":
		return suite{record: args[1], packages: args[2:end], flags: args[end+1:]}.run(ctx)
	}
	return errors.New("usage: gate list | wanted | test FILE PACKAGES -- FLAGS")
}
