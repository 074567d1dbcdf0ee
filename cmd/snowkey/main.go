// Command snowkey takes keys apart and makes them, for people who work with tables and not with
// Go: in a shell, in a script, beside psql.
//
//	CGO_ENABLED=0 go build -o snowkey ./cmd/snowkey    # in a clone: one file that needs no Go
//	snowkey decode 177026472345612305    # when, by which worker
//	snowkey range 2026-05-04             # the keys of a day
//	snowkey help
//
// Only a command with -db asks a server. snowkey.1 is its manual page, and snowkey completion writes completions for
// bash, zsh and fish. Each command is a file that is named for it.
package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	_ "time/tzdata" // -zone works on machines without zones, such as containers
)

// A command is a word after snowkey. help, the manual page and the completions are made of it.
type command struct {
	name    string
	summary string
	args    string   // what follows the flags, for the usage
	most    int      // arguments; more are refused
	words   []string // that an argument may be, for completions
	flags   string   // names of those of options
	text    string   // paragraphs; one that begins with four spaces keeps its lines
	run     func(ctx context.Context, o *options, out *bufio.Writer, args []string) error
}

var commands []command

func init() { // because help, which is one of them, lists all
	commands = []command{decode, generate, keyRange, sqlText, partitions, workers, segments, serials, feeds, doctor, help, version, completion}
}

var (
	errBad         = errors.New("bad input") // which has been reported
	errInterrupted = errors.New("interrupted")
)

// A usageError reports a command line with a missing or an invalid argument.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends a program whose output is blocked
	out := bufio.NewWriter(os.Stdout)
	err := run(ctx, out, os.Args[1:])
	os.Exit(exitCode(cmp.Or(out.Flush(), err)))
}

// exitCode reports an error, and returns what the text exits says.
func exitCode(err error) int {
	var found severity
	if errors.As(err, &found) {
		return int(found)
	}
	if err != nil && !errors.Is(err, errBad) {
		complain(err)
	}
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errInterrupted):
		return 130
	case errors.As(err, new(usageError)):
		return 2
	}
	return 1
}

func complain(err error) { _, _ = fmt.Fprintln(os.Stderr, "snowkey:", err) }

// run runs the command that the first argument names.
func run(ctx context.Context, out *bufio.Writer, args []string) error {
	if len(args) == 0 {
		args = []string{help.name}
	}
	switch args[0] {
	case "-h", "-help", "--help":
		args = []string{help.name}
	case "-version", "--version":
		args = []string{version.name}
	}
	c, err := find(args[0])
	if err != nil {
		return err
	}
	o := &options{}
	rest, err := parse(o.flags(c), args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		return writeHelp(out, c)
	case err != nil:
		err = usageError{err}
	case len(rest) > c.most:
		err = usagef("too many arguments: want at most %d", c.most)
	default:
		if err = c.run(ctx, o, out, rest); err != nil && ctx.Err() != nil && !errors.Is(err, errInterrupted) {
			err = fmt.Errorf("%w: %w", errInterrupted, err)
		}
	}
	if errors.As(err, new(usageError)) {
		return usagef("%s: %w; snowkey help %[1]s explains it", c.name, err)
	}
	return err
}

// parse parses flags, which may follow arguments, and returns the arguments.
func parse(flags *flag.FlagSet, args []string) (rest []string, err error) {
	for {
		if err := flags.Parse(args); err != nil {
			return nil, err
		}
		left := flags.Args()
		if at := len(args) - len(left); len(left) == 0 || at > 0 && args[at-1] == "--" {
			return append(rest, left...), nil
		}
		rest, args = append(rest, left[0]), left[1:]
	}
}

func find(name string) (command, error) {
	for _, c := range commands {
		if c.name == name {
			return c, nil
		}
	}
	for _, c := range commands {
		if distance(name, c.name) <= 2 {
			return command{}, usagef("unknown command %.64q: did you mean %s?", name, c.name)
		}
	}
	return command{}, usagef("unknown command %.64q: want one of %s", name, names())
}

// distance returns how many letters have to be added, removed or replaced to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		before := row[0] // of the row before, one to the left
		row[0] = i + 1
		for j := range b {
			replaced := before
			if a[i] != b[j] {
				replaced++
			}
			before = row[j+1]
			row[j+1] = min(replaced, before+1, row[j]+1)
		}
	}
	return row[len(b)]
}

func names() string {
	var all []string
	for _, c := range commands {
		all = append(all, c.name)
	}
	return strings.Join(all, " ")
}
