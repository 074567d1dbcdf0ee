package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// roleVariable is set for the processes that the program starts from itself.
const roleVariable = "SNOWKEY_REPLICAS_ROLE"

func main() {
	if os.Getenv(roleVariable) == "replica" {
		if err := replica(os.Stdin, os.Stdout); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}

	// Ctrl-C ends the story early. The replicas still end in order, and what they
	// wrote is checked. A second Ctrl-C ends the process at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)

	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		os.Exit(2)
	case errors.Is(err, errInterrupted):
		_, _ = fmt.Fprintln(os.Stderr, "replicas:", err)
		os.Exit(130) // what a shell reports for a program that Ctrl-C has ended
	default:
		_, _ = fmt.Fprintln(os.Stderr, "replicas:", err)
		os.Exit(1)
	}
}

// errUsage is the error after wrong flags. The message is on stderr already.
var errUsage = errors.New("bad usage")

// errInterrupted is the error if ctx ended before the story, and all else was well.
var errInterrupted = errors.New("interrupted")

// run is the parent: the whole program but for the replicas, with everything
// that a test wants to hand in.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	s, task, err := parse(args, stderr)
	if err != nil {
		return err
	}
	task.Run = rand.Text()
	if task.Place == (place{}) {
		folder, err := os.MkdirTemp("", "snowkey-replicas-")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
		task.Place.File = filepath.Join(folder, "replicas.db")
	}

	if err := task.Place.createFiles(); err != nil {
		return err
	}
	// Open until the end. SQLite tidies up when the last process closes a file, and
	// a replica that opens it just then would fail.
	db, err := openDatabase(task.Place)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.close()) }()
	if err := db.create(ctx); err != nil {
		return err
	}

	began := time.Now()
	processes, told := perform(ctx, s, task, newScreen(stdout))
	took := time.Since(began)
	if ctx.Err() != nil && errors.Is(told, ctx.Err()) {
		told = errInterrupted // and yet the replicas have ended in order
	} else if told != nil {
		return told
	}

	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	rows, err := db.read(ctx, task.Run)
	if err != nil {
		return fmt.Errorf("reading the rows back: %w", err)
	}
	proof, err := verify(processes, rows)
	if err != nil {
		return fmt.Errorf("NOT PROVED: %w", err)
	}
	if err := proof.print(stdout, took); err != nil {
		return err
	}
	return told
}

// perform plays the story and returns its processes when all of them have
// ended.
func perform(ctx context.Context, s story, task assignment, screen *screen) ([]*process, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	living, end := context.WithCancel(context.WithoutCancel(ctx))
	c := &cluster{ctx: living, end: end, stop: stop, task: task, say: screen.say}

	every := beat
	if !screen.terminal {
		every = s.length * 2 / 9 // four times, and not just when something happens
	}
	showing, hide := context.WithCancel(context.Background())
	var shown sync.WaitGroup
	shown.Go(func() { screen.keep(showing, c, every) })

	err := s.tell(ctx, c)
	screen.say("The replicas end, and give their worker numbers back")
	c.end()
	c.wait()
	hide()
	shown.Wait()
	if c.failure != nil {
		err = c.failure // the story had to end because of it
	}
	return c.processes, errors.Join(err, screen.leave())
}

// parse reads the flags.
func parse(args []string, stderr io.Writer) (s story, task assignment, err error) {
	flags := flag.NewFlagSet("replicas", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&s.replicas, "replicas", 4, "the `number` of replicas, 1 to 16")
	flags.DurationVar(&s.length, "for", 12*time.Second, "the `duration` of the run: at least 2s,\nand a window and a second with -stop")
	flags.DurationVar(&s.window, "window", 3*time.Second, "the `duration` that a lease reserves ahead, 3s to 10m")
	flags.BoolVar(&s.kill, "kill", true, "kill a replica and start it again")
	flags.BoolVar(&s.pause, "stop", canPause, "stop a replica for longer than a window, and continue it")
	flags.IntVar(&task.Batch, "batch", 20, `the number of `+"`rows`"+` per transaction, 1 to 1000; each replica makes
ten transactions a second`)
	flags.StringVar(&task.Place.File, "db", "", `use this SQLite `+"`file`"+`, and another with -leases after its name,
and keep both; without it, files in a temporary folder are used
and deleted`)
	flags.StringVar(&task.Place.Postgres, "postgres", "", `use the PostgreSQL server at this `+"`URL`"+` instead, and keep the
tables `+eventsTable+", "+leasesTable+` and
`+leasesTable+"_meta there")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return s, task, err
		}
		return s, task, errUsage
	}
	wrong := s.problem(task)
	if flags.NArg() > 0 {
		wrong = "unexpected argument: " + strings.Join(flags.Args(), " ")
	}
	if wrong != "" {
		_, _ = fmt.Fprintln(stderr, wrong)
		flags.Usage()
		return s, task, errUsage
	}
	task.Window = s.window
	return s, task, nil
}

// problem returns what is wrong with the values of the flags, or "".
func (s story) problem(task assignment) string {
	switch {
	case s.replicas < 1 || s.replicas > 16:
		return fmt.Sprintf("-replicas is %d, want 1 to 16", s.replicas)
	case s.window < 3*time.Second || s.window > 10*time.Minute:
		return fmt.Sprintf("-window is %s, want 3s to 10m", s.window)
	case s.length < 2*time.Second:
		return fmt.Sprintf("-for is %s, want at least 2s", s.length)
	case s.pause && s.length < s.window+time.Second:
		return fmt.Sprintf("-for is %s, want at least %s, a window and a second, or -stop=false", s.length, s.window+time.Second)
	case s.pause && !canPause:
		return "-stop: this system cannot stop a process"
	case task.Batch < 1 || task.Batch > 1000:
		return fmt.Sprintf("-batch is %d, want 1 to 1000", task.Batch)
	case task.Place.File != "" && task.Place.Postgres != "":
		return "-db and -postgres are both given, want one of them"
	}
	return ""
}
