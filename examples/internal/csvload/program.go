package csvload

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
)

// ErrUsage is the error after wrong flags. The message is on stderr already.
var ErrUsage = errors.New("bad usage")

// ErrInterrupted is the error after Ctrl-C.
var ErrInterrupted = errors.New("interrupted")

// Main calls run and exits with its result: 0 for nil and for -h, 2 for ErrUsage,
// 130 for ErrInterrupted as a shell reports it, 1 for any other error.
//
// Ctrl-C ends ctx. The open transaction is then rolled back, and run returns. A
// second Ctrl-C ends the process at once.
func Main(name string, run func(ctx context.Context, args []string, stdout, stderr io.Writer) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	code := 1
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
		os.Exit(0)
	case errors.Is(err, ErrUsage):
		os.Exit(2)
	case errors.Is(err, ErrInterrupted):
		code = 130
	}
	_, _ = fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
	os.Exit(code)
}

// ParseFlags parses args. check returns what is wrong with the values, or "". It
// returns flag.ErrHelp after -h, and ErrUsage when it has printed a problem and
// the usage.
func ParseFlags(flags *flag.FlagSet, args []string, check func() string) error {
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return err
	} else if err != nil {
		return ErrUsage
	}
	problem := check()
	if flags.NArg() > 0 {
		problem = "unexpected argument: " + strings.Join(flags.Args(), " ")
	}
	if problem == "" {
		return nil
	}
	_, _ = fmt.Fprintln(flags.Output(), problem)
	flags.Usage()
	return ErrUsage
}

// IsTerminal reports whether out is a character device: a terminal, and not a
// pipe or a file. /dev/null is a character device too, which does no harm.
func IsTerminal(out io.Writer) bool {
	file, ok := out.(interface{ Stat() (os.FileInfo, error) })
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
