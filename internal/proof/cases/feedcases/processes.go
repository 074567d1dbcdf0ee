package feedcases

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/feed"
	"github.com/snowkey/snowkey/types"
)

// A role is what a process does that [Processes] starts, until it is killed.
type role struct {
	Writer      bool // or else a reader
	Driver, DSN string
	Dialect     feed.Dialect
	Table       string
	Slack       time.Duration
	Worker      int64
	Journal     string // what a writer has done, or the keys that a reader has read
}

const roleVariable = "SNOWKEY_FEED_PROCESS"

// Process plays the role of a process that [Processes] has started, and never returns then. The tests
// call it in [ProcessTest].
func Process(t *testing.T) {
	text, ok := os.LookupEnv(roleVariable)
	if !ok {
		t.Skip("it is a process of another test")
	}
	go func() { // it ends with the process that has started it
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	var r role
	err := json.Unmarshal([]byte(text), &r)
	if err == nil {
		err = r.play(context.Background())
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// ProcessTest is the name of the test that a process runs.
const ProcessTest = "TestAProcessOfTheFeed"

func (r role) play(ctx context.Context) error {
	db, err := sql.Open(r.Driver, r.DSN)
	if err != nil {
		return err
	}
	journal, err := os.OpenFile(r.Journal, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	if !r.Writer {
		return r.read(ctx, db, journal)
	}
	g, err := core.New(core.Config{Worker: core.StaticWorker(r.Worker)})
	for err == nil {
		err = r.write(ctx, db, journal, g)
	}
	return err
}

// What a writer notes of a transaction before it goes on, the last note of which counts.
const (
	begun     = "begun"     // no row is there unless another note follows
	committed = "committed" // each row is
	ending    = "ending"    // all rows are, or none
	aborted   = "aborted"   // none is
)

// write is one transaction.
func (r role) write(ctx context.Context, db *sql.DB, journal *os.File, g *core.Generator) error {
	keys := make([]types.Snowflake, 1+rand.IntN(3))
	if err := g.Fill(ctx, keys); err != nil {
		return err
	}
	note := func(state string) error {
		for _, id := range keys {
			state += " " + id.String()
		}
		_, err := journal.WriteString(state + "\n")
		return err
	}
	pause := func() {
		if rand.IntN(3) == 0 {
			time.Sleep(rand.N(60 * time.Millisecond))
		}
	}
	if rand.IntN(10) == 0 {
		time.Sleep(2 * r.Slack) // the keys grow old
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after Commit it does nothing
	if err := note(begun); err != nil {
		return err
	}
	for _, id := range keys {
		pause()
		if _, err := tx.ExecContext(ctx, insert(r.Table, id)); err != nil {
			if !strings.Contains(err.Error(), "below the horizon") {
				return err
			}
			return note(aborted)
		}
	}
	pause()
	if rand.IntN(20) == 0 {
		time.Sleep(rand.N(2 * time.Second))
	}
	if rand.IntN(8) == 0 {
		return errors.Join(tx.Rollback(), note(aborted))
	}
	if err := note(ending); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	return note(committed)
}

// read reads on from the last key in its journal, which has each key that was read.
func (r role) read(ctx context.Context, db *sql.DB, journal *os.File) error {
	text, err := io.ReadAll(journal)
	if err != nil {
		return err
	}
	whole := bytes.LastIndexByte(text, '\n') + 1
	if err := journal.Truncate(int64(whole)); err != nil {
		return err
	}
	keys, err := parseKeys(strings.Fields(string(text[:whole])))
	if err != nil {
		return err
	}
	f, err := feed.New(feed.Config{DB: db, Dialect: r.Dialect, Table: r.Table, Reader: filepath.Base(r.Journal), Slack: r.Slack})
	for at := last(keys); err == nil; time.Sleep(rand.N(5 * time.Millisecond)) {
		if keys, err = f.Keys(ctx, at, 1+rand.IntN(50)); err != nil || len(keys) == 0 {
			continue
		}
		var lines strings.Builder
		for _, id := range keys {
			lines.WriteString(id.String() + "\n")
		}
		at = last(keys)
		_, err = journal.WriteString(lines.String())
	}
	return err
}

func parseKeys(words []string) (keys []types.Snowflake, err error) {
	for _, word := range words {
		id, err := types.Parse(word)
		if err != nil {
			return nil, err
		}
		keys = append(keys, id)
	}
	return keys, nil
}

// A process is one that runs in a role.
type process struct {
	role role
	cmd  *exec.Cmd
}

func start(t *testing.T, r role) *process {
	t.Helper()
	text, err := json.Marshal(r)
	must(t, err)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+ProcessTest+"$")
	cmd.Env = append(os.Environ(), roleVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	_, err = cmd.StdinPipe() // closed when this process ends
	must(t, err)
	must(t, cmd.Start())
	p := &process{r, cmd}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_, _ = cmd.Process.Kill(), cmd.Wait()
		}
	})
	return p
}

// kill ends the process without a word to anybody.
func (p *process) kill(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Error(err)
	}
	_ = p.cmd.Wait()
	if p.cmd.ProcessState.Exited() {
		t.Errorf("a process has ended by itself: %v", p.cmd.ProcessState)
	}
}

// lines returns the complete lines of its journal.
func (p *process) lines() []string {
	text, _ := os.ReadFile(p.role.Journal) // there is none before the first line
	lines := strings.Split(string(text), "\n")
	return lines[:len(lines)-1]
}

// inTransaction reports whether the last that a writer has noted is that it has begun.
func (p *process) inTransaction() bool {
	lines := p.lines()
	return len(lines) > 0 && strings.HasPrefix(lines[len(lines)-1], begun)
}

// Processes has programs write and programs read, all of which are killed, most of the writers in the middle
// of a transaction. A reader goes on where the one before it was killed. It must have read each committed
// row once and in order, and no other.
func Processes(t *testing.T, d Database, driver, dsn string, span time.Duration) {
	const (
		slack            = 300 * time.Millisecond
		writers, readers = 6, 2
		leastKills       = 15 // in the middle of a transaction
		leastRestarts    = 4  // of readers
		leastCommitted   = 50 // transactions
	)
	table, f := d.install(t, slack)
	base := role{Driver: driver, DSN: dsn, Dialect: d.Dialect, Table: table, Slack: slack}
	folder, worker := t.TempDir(), int64(0)
	var all []*process // writers, also those that were killed
	write := func() *process {
		r := base
		r.Writer, r.Worker, r.Journal = true, worker, filepath.Join(folder, "writer"+strconv.FormatInt(worker, 10))
		worker++
		p := start(t, r)
		all = append(all, p)
		return p
	}
	read := func(i int) *process {
		r := base
		r.Journal = filepath.Join(folder, "reader"+strconv.Itoa(i))
		return start(t, r)
	}
	var writing, reading []*process
	for range writers {
		writing = append(writing, write())
	}
	for i := range readers {
		reading = append(reading, read(i))
	}

	count := func(state string) (n int) {
		for _, p := range all {
			for _, line := range p.lines() {
				if strings.HasPrefix(line, state) {
					n++
				}
			}
		}
		return n
	}
	var naive []types.Snowflake
	killed, restarted := 0, 0
	for began := time.Now(); time.Since(began) < span || killed < leastKills || restarted < leastRestarts || count(committed) < leastCommitted || !d.hasMissed(table, naive); {
		if t.Failed() || time.Since(began) > span+patience {
			t.Fatalf("after %v: %d writers killed in a transaction, %d readers killed, %d transactions, and id > last has missed a row: %t; want %d, %d, %d, true",
				time.Since(began), killed, restarted, count(committed), d.hasMissed(table, naive), leastKills, leastRestarts, leastCommitted)
		}
		naive = append(naive, d.after(table, last(naive))...)
		time.Sleep(rand.N(20 * time.Millisecond))
		if i := rand.IntN(writers); rand.IntN(10) == 0 && writing[i].inTransaction() && worker < 1024 {
			writing[i].kill(t)
			if writing[i].inTransaction() { // still
				killed++
			}
			writing[i] = write()
		}
		if i := rand.IntN(readers); rand.IntN(50) == 0 && (rand.IntN(4) == 0 || len(reading[i].lines()) > 0) {
			reading[i].kill(t)
			reading[i] = read(i)
			restarted++
		}
	}
	for _, p := range writing {
		p.kill(t)
	}

	states := map[types.Snowflake]string{} // the last
	var newest types.Snowflake
	for _, p := range all {
		for _, line := range p.lines() {
			words := strings.Fields(line)
			keys, err := parseKeys(words[1:])
			must(t, err)
			for _, id := range keys {
				states[id], newest = words[0], max(newest, id)
			}
		}
	}
	horizon(t, f, newest) // the server has noticed that the last writers are gone
	want := d.after(table, 0)
	there := make(map[types.Snowflake]bool, len(want))
	for _, id := range want {
		there[id] = true
		if s := states[id]; s != committed && s != ending {
			t.Errorf("the row %d is there; its writer has noted %q", id, s)
		}
	}
	for id, s := range states {
		if s == committed && !there[id] {
			t.Errorf("the row %d, which was committed, is not there", id)
		}
	}
	for i, p := range reading {
		for end := time.Now().Add(patience); len(p.lines()) < len(want) && time.Now().Before(end); {
			time.Sleep(10 * time.Millisecond)
		}
		p.kill(t)
		got, err := parseKeys(p.lines())
		must(t, err)
		if !slices.Equal(got, want) {
			missed, extra := difference(want, got), difference(got, want)
			t.Errorf("the reader %d has read %d keys, the table has %d; missed %d %v, not in the table %d %v; sorted: %v",
				i, len(got), len(want), len(missed), head(missed), len(extra), head(extra), slices.IsSorted(got))
		}
	}
	until, _ := slices.BinarySearch(want, last(naive)+1)
	missed := difference(want[:until], naive)
	t.Logf("%d rows read by %d readers, killed %d times; id > last missed %d of %d; transactions: %d committed, %d rolled back or refused, %d ended by a kill in the middle",
		len(want), readers, restarted, len(missed), until, count(committed), count(aborted), killed)
}
