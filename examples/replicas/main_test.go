package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
)

// With the role set the test binary is the program itself. The program starts
// its replicas with the role set as well.
func TestMain(m *testing.M) {
	if os.Getenv(roleVariable) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A ran is a program that has ended.
type ran struct {
	code           int
	stdout, stderr string
}

// program returns the program as a command, with output to the ran.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), roleVariable+"=parent")
	return cmd
}

// runProgram runs it to its end.
func runProgram(t *testing.T, args ...string) ran {
	t.Helper()
	cmd := program(t, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return ran{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// short is a run in which nothing happens to the replicas.
var short = []string{"-for", "2s", "-kill=false", "-stop=false", "-replicas", "3"}

func dbFile(t *testing.T) string { return filepath.Join(t.TempDir(), "replicas.db") }

// raw opens a file without the program's settings.
func raw(t *testing.T, file string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite3", file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// proves fails the test unless the run has shown everything and the database has
// as many IDs as it says.
func proves(t *testing.T, r ran, db *sql.DB) {
	t.Helper()
	if r.code != 0 || r.stderr != "" {
		t.Fatalf("exit code %d, stderr %q; want 0 and nothing; stdout: %s", r.code, r.stderr, r.stdout)
	}
	wanted := []string{
		`\d s  KILLED r2 \(pid \d+, SIGKILL\)`,
		// On a machine that starts no process within a window, it may have its own again.
		`\d s  RESTARTED r2 as pid \d+, with worker number \d+(:\n +\d+ was still reserved| again:\n +the time reserved before was over)\n`,
		`\n  No ID repeats: the processes reported \d+ IDs, and no two are equal.\n`,
		`\n  Each ID has a worker number and a time that its process had reserved.\n`,
		`\nreplica +pid +state +worker +epoch +reserved +IDs +last ID\nr1 +\d+ +running +\d+ +\d+ +(\d\.\d s|over) +\d+ +\d+\n`,
	}
	processes := 5
	if canPause {
		processes++
		wanted = append(wanted,
			`\d s  STOPPED r3 \(pid \d+, SIGSTOP\)`,
			`\d s  The time is over. r5, which is new, has asked for just this number\n +and has it`,
			`\d s  r3 \(pid \d+\) has lost worker number \d+:\n +another lease has claimed its\s+row.*\n`,
			`\n  Worker number \d+: r3 had it for times before [\d:.]+ UTC,\n  r5 for times from then on.\n`,
		)
	}
	for _, want := range wanted {
		if !regexp.MustCompile(want).MatchString(r.stdout) {
			t.Errorf("the program prints %s\nwant a match of %s", r.stdout, want)
		}
	}
	wantNarrow(t, r.stdout)
	found := regexp.MustCompile(`\n(\d+) processes wrote (\d+) rows in .*, with (\d+) worker numbers\.\n`).FindStringSubmatch(r.stdout)
	if found == nil {
		t.Fatalf("the program prints %s\nwant a summary", r.stdout)
	}
	// How many numbers there are depends on which of them were free again when
	// somebody asked for one.
	workers := map[string]bool{}
	for _, claim := range regexp.MustCompile(`\(pid \d+\) has worker number (\d+), epoch \d+\n`).FindAllStringSubmatch(r.stdout, -1) {
		workers[claim[1]] = true
	}
	if found[1] != strconv.Itoa(processes) || found[3] != strconv.Itoa(len(workers)) || len(workers) < 4 {
		t.Errorf("summary = %q; want %d processes and the %d worker numbers that they said they have", found[0], processes, len(workers))
	}
	var rows, distinct int
	if err := db.QueryRowContext(t.Context(), "SELECT count(*), count(DISTINCT id) FROM "+eventsTable).Scan(&rows, &distinct); err != nil {
		t.Fatal(err)
	}
	// The story waits for the first 20 rows of each replica, and of the one that takes
	// the place of another.
	if fmt.Sprint(rows) != found[2] || distinct != rows || rows < 100 {
		t.Errorf("the database has %d rows and %d IDs; the summary says %s; want the same, and at least 100", rows, distinct, found[2])
	}
}

func TestNoIDRepeatsThoughReplicasAreKilledAndStopped(t *testing.T) {
	t.Parallel()
	file := dbFile(t)
	proves(t, runProgram(t, "-for", "4s", "-db", file), raw(t, file))
}

func TestNoIDRepeatsOnPostgreSQL(t *testing.T) {
	t.Parallel()
	dsn := servertest.PostgreSQL(t)
	admin, err := openDatabase(place{Postgres: dsn})
	if err != nil {
		t.Fatal(err)
	}
	database := fmt.Sprintf("snowkey_replicas_%d_%d", os.Getpid(), time.Now().UnixNano())
	t.Cleanup(func() {
		_, err := admin.rows.ExecContext(context.WithoutCancel(t.Context()), "DROP DATABASE IF EXISTS "+database+" WITH (FORCE)")
		if err = errors.Join(err, admin.close()); err != nil {
			t.Error(err)
		}
	})
	if _, err := admin.rows.ExecContext(t.Context(), "CREATE DATABASE "+database); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal("the DSN is not a URL")
	}
	u.Path = "/" + database
	own, err := openDatabase(place{Postgres: u.String()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = own.close() })
	proves(t, runProgram(t, "-for", "4s", "-postgres", u.String()), own.rows)
}

func TestASecondRunOnTheSameFileRepeatsNothingOfTheFirst(t *testing.T) {
	t.Parallel()
	args := append([]string{"-db", dbFile(t)}, short...)
	for range 2 {
		r := runProgram(t, args...)
		if r.code != 0 || !strings.Contains(r.stdout, "\n3 processes wrote ") {
			t.Fatalf("exit code %d, stdout %s, stderr %s; want 0, and the rows of 3 processes", r.code, r.stdout, r.stderr)
		}
	}
}

func TestRunFailsIfTheDatabaseDoesNotHoldWhatWasWritten(t *testing.T) {
	for name, test := range map[string]struct{ trigger, want string }{
		"rows that vanish": {
			"AFTER INSERT ON " + eventsTable + " BEGIN DELETE FROM " + eventsTable + " WHERE id = new.id; END",
			`^replicas: NOT PROVED: ID \d+, which r\d \(pid \d+\) reported, is not in the database\n$`,
		},
		"rows that are refused": {
			"BEFORE INSERT ON " + eventsTable + " BEGIN SELECT RAISE(ABORT, 'taken'); END",
			`^replicas: r\d \(pid \d+\) failed: row \d+: taken\n$`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := dbFile(t)
			db, err := openDatabase(place{File: file})
			if err != nil {
				t.Fatal(err)
			}
			if err := db.create(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := db.close(); err != nil {
				t.Fatal(err)
			}
			if _, err := raw(t, file).ExecContext(t.Context(), "CREATE TRIGGER spoil "+test.trigger); err != nil {
				t.Fatal(err)
			}
			r := runProgram(t, append([]string{"-db", file}, short...)...)
			if r.code != 1 || !regexp.MustCompile(test.want).MatchString(r.stderr) {
				t.Errorf("exit code %d, stderr %q; want 1 and a match of %s", r.code, r.stderr, test.want)
			}
			if strings.Contains(r.stdout, "No ID repeats") {
				t.Errorf("stdout = %s; want nothing that looks like success", r.stdout)
			}
		})
	}
}

func TestBadFlagsPrintTheUsage(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"-nonsense"}, "-nonsense"},
		{[]string{"replicas.db"}, "unexpected argument: replicas.db"},
		{[]string{"-replicas", "0"}, "-replicas is 0, want 1 to 16"},
		{[]string{"-replicas", "17"}, "-replicas is 17, want 1 to 16"},
		{[]string{"-window", "2s"}, "-window is 2s, want 3s to 10m"},
		{[]string{"-window", "11m"}, "-window is 11m0s, want 3s to 10m"},
		{[]string{"-for", "1s"}, "-for is 1s, want at least 2s"},
		{[]string{"-for", "3s", "-stop"}, "-for is 3s, want at least 4s, a window and a second, or -stop=false"},
		{[]string{"-batch", "0"}, "-batch is 0, want 1 to 1000"},
		{[]string{"-batch", "1001"}, "-batch is 1001, want 1 to 1000"},
		{[]string{"-db", "x", "-postgres", "y"}, "-db and -postgres are both given"},
	} {
		var stdout, stderr bytes.Buffer
		err := run(t.Context(), test.args, &stdout, &stderr)
		if !errors.Is(err, errUsage) || !strings.Contains(stderr.String(), test.want) || !strings.Contains(stderr.String(), "Usage of replicas") {
			t.Errorf("run(%q) = %v, stderr %q; want %v, and %q with the usage", test.args, err, &stderr, errUsage, test.want)
		}
	}
	var usage bytes.Buffer
	if err := run(t.Context(), []string{"-h"}, new(bytes.Buffer), &usage); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("run(-h) = %v; want %v", err, flag.ErrHelp)
	}
	wantNarrow(t, usage.String())
	for _, want := range []string{"-replicas number", "-for duration", "-window duration", "-batch rows", "-db file", "-postgres URL"} {
		if !strings.Contains(usage.String(), want+"\n") {
			t.Errorf("run(-h) prints %s; want %q in it", &usage, want)
		}
	}
	if r := runProgram(t, "-nonsense"); r.code != 2 {
		t.Errorf("replicas -nonsense exits with %d; want 2", r.code)
	}
}

// wantNarrow checks that a text fits in a terminal of 80 columns.
func wantNarrow(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(strings.ReplaceAll(text, "    \t", "        ")) {
		if utf8.RuneCountInString(line) > 80 { // and the newline is one
			t.Errorf("the line %q is wider than 79 columns", line)
		}
	}
}

func TestAFileThatCannotBeWrittenIsNamedWithWhatToDo(t *testing.T) {
	for _, file := range []string{filepath.Join(t.TempDir(), "x", "replicas.db"), t.TempDir()} {
		var out bytes.Buffer
		err := run(t.Context(), append([]string{"-db", file}, short...), &out, &out)
		if err == nil || !strings.HasPrefix(err.Error(), "cannot create or write to "+file+": ") || !strings.HasSuffix(err.Error(), "; choose a file in a folder that you may write to, with -db") {
			t.Errorf("run -db %s = %v; want an error that names it and says what to do", file, err)
		}
	}
}

func TestNoErrorShowsThePassword(t *testing.T) {
	for _, dsn := range []string{
		"postgres://joe:hunter2@127.0.0.1:port/test",
		"postgres://joe:hunter2@127.0.0.1:1/test?connect_timeout=1",
		"host=127.0.0.1 port=1 user=joe password='hunter2",
		"hunter2",
	} {
		var out bytes.Buffer
		err := run(t.Context(), append([]string{"-postgres", dsn}, short...), &out, &out)
		if err == nil || strings.Contains(err.Error()+out.String(), "hunter2") {
			t.Errorf("run(-postgres …) = %v, output %q; want an error without the password", err, &out)
		}
	}
}

func TestTailKeepsTheEnd(t *testing.T) {
	var kept tail
	for range tailLength {
		if n, err := kept.Write([]byte("abc")); n != 3 || err != nil {
			t.Fatalf("Write(abc) = %d, %v; want 3, nil", n, err)
		}
	}
	if _, err := kept.Write([]byte("end\n")); err != nil {
		t.Fatal(err)
	}
	got := kept.String()
	if len(got) != tailLength-1 || !strings.HasSuffix(got, "abcabcend") {
		t.Errorf("String() has %d bytes and ends in %q; want %d and abcabcend", len(got), got[max(0, len(got)-9):], tailLength-1)
	}
}
