//go:build unix

package feedcases

import (
	"bytes"
	"context"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
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
	"github.com/snowkey/snowkey/internal/proof/robust/role"
	"github.com/snowkey/snowkey/types"
)

// A task is what a process does that [Processes] starts, until it is killed.
type task struct {
	Database
	Writer  bool // or else a reader
	Crashes bool // the server does, and statements fail
	Table   string
	Worker  int64
	Journal string // what a writer has done, or the keys that a reader has read
}

const runSlack = 150 * time.Millisecond

// Role is the name of what these processes do, which is [Play]: a program whose tests call Processes tells
// package role of it.
const Role = "feed"

// Play does the task of an order.
func Play(order []byte) error {
	var r task
	if err := json.Unmarshal(order, &r); err != nil {
		return err
	}
	return r.play(context.Background())
}

func (r task) play(ctx context.Context) error {
	journal, err := os.OpenFile(r.Journal, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err == nil {
		err = r.connect(func(func()) {})
	}
	if err != nil {
		return err
	}
	if !r.Writer {
		return r.read(ctx, journal)
	}
	g, err := core.New(core.Config{Worker: core.StaticWorker(r.Worker)})
	if err != nil {
		return err
	}
	for ; err == nil || r.Crashes; time.Sleep(rand.N(5 * time.Millisecond)) {
		err = r.write(ctx, journal, g)
	}
	return err
}

// What a writer notes of a transaction before it goes on, the last note of which counts.
const (
	begun      = "begun"
	refused    = "refused"
	rolledBack = "rolled-back"
	severed    = "severed"  // its session, before COMMIT
	prepared   = "prepared" // or about to be
	ending     = "ending"
	committed  = "committed"
)

// mayBeThere are the notes after which rows may be in the table. After committed they must be.
var mayBeThere = []string{severed, prepared, ending, committed}

// write is one transaction.
func (r task) write(ctx context.Context, journal *os.File, g *core.Generator) error {
	keys := make([]types.Snowflake, 1+rand.IntN(3))
	if err := g.Fill(ctx, keys); err != nil {
		return err
	}
	if rand.IntN(8) == 0 {
		time.Sleep(3 * runSlack) // the keys grow old
	}
	conn, err := r.DB.Conn(ctx)
	if err != nil {
		return err
	}
	whole := false
	defer func() {
		if !whole { // without its connection the transaction is rolled back, unless it is prepared
			_ = conn.Raw(func(any) error { return driver.ErrBadConn })
		}
		_ = conn.Close()
	}()
	say := func(text string) {
		if err == nil {
			_, err = conn.ExecContext(ctx, text)
		}
	}
	note := func(state string) {
		for _, id := range keys {
			state += " " + id.String()
		}
		if err == nil {
			_, err = journal.WriteString(state + "\n")
		}
	}
	pause := func(times int, longest time.Duration) { // one of so many times
		if r.Dialect == feed.SQLite {
			longest /= 20 // the others wait for the lock
		}
		if rand.IntN(times) == 0 {
			time.Sleep(rand.N(longest))
		}
	}

	begin, name := "BEGIN", preparedPrefix+keys[0].String()
	twoPhase := r.Prepare != nil && rand.IntN(10) == 0
	if twoPhase {
		begin = fmt.Sprintf(r.Prepare[0], name)
	}
	note(begun)
	level := []string{"READ COMMITTED", "REPEATABLE READ"}[rand.IntN(2)]
	switch r.Dialect {
	case feed.PostgreSQL:
		say("SET default_transaction_isolation = '" + level + "'")
	case feed.MySQL:
		say("SET SESSION TRANSACTION ISOLATION LEVEL " + level)
	}
	say(begin)
	for _, id := range keys {
		pause(4, 100*time.Millisecond)
		say(insert(r.Table, id))
	}
	pause(4, 100*time.Millisecond)
	pause(25, 2*time.Second)
	if err != nil && strings.Contains(err.Error(), "below the horizon") {
		err = nil
		note(refused)
		return err
	}
	switch n := rand.IntN(20); {
	case twoPhase:
		note(prepared)
		for _, text := range r.Prepare[1:] {
			say(fmt.Sprintf(text, name))
		}
		pause(1, 400*time.Millisecond)
		if err != nil || n%2 == 0 { // and the connection goes away
			return err
		}
		if _, failed := conn.ExecContext(ctx, fmt.Sprintf(r.Commit, name)); failed != nil { // Processes was first
			return nil
		}
		note(committed)
	case n < 2:
		say("ROLLBACK")
		note(rolledBack)
	case n < 4 && r.Kill != "":
		var self int
		if err == nil {
			err = conn.QueryRowContext(ctx, r.Self).Scan(&self)
		}
		note(severed)
		if err == nil {
			_, err = r.DB.ExecContext(ctx, fmt.Sprintf(r.Kill, self))
		}
		_, _ = conn.ExecContext(ctx, "COMMIT")
		return err
	default:
		note(ending)
		say("COMMIT")
		note(committed)
	}
	whole = err == nil
	return err
}

// read reads on from the last key in its journal, which has each key that was read.
func (r task) read(ctx context.Context, journal *os.File) error {
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
	f, err := feed.New(r.config(filepath.Base(r.Journal), r.Table, runSlack))
	if err != nil {
		return err
	}
	for at := last(keys); err == nil || r.Crashes; time.Sleep(rand.N(5 * time.Millisecond)) {
		if keys, err = f.Keys(ctx, at, 1+rand.IntN(200)); len(keys) == 0 {
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

// A process is one that has a task.
type process struct {
	task
	cmd *exec.Cmd
}

func start(t *testing.T, of task) *process {
	t.Helper()
	cmd := role.Command(t, Role, of)
	cmd.Stderr = os.Stderr
	must(t, cmd.Start())
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_, _ = cmd.Process.Kill(), cmd.Wait()
		}
	})
	return &process{of, cmd}
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
	text, _ := os.ReadFile(p.Journal) // there is none before the first line
	lines := strings.Split(string(text), "\n")
	return lines[:len(lines)-1]
}

// inTransaction reports whether the last that a writer has noted is that it has begun, or prepared.
func (p *process) inTransaction() bool {
	lines := p.lines()
	if len(lines) == 0 {
		return false
	}
	state, _, _ := strings.Cut(lines[len(lines)-1], " ")
	return state == begun || state == prepared
}

// Processes has programs write and programs read, all of which are killed, most of the writers in the middle of
// a transaction. The writers draw keys early, hold transactions open, commit out of order, roll back, prepare,
// and have the server end their sessions. A reader goes on where the one before it was killed. It must
// have read each committed row once and in order, and no other. The run goes on until everything has happened, and a
// reader of id > last beside them has missed a row.
func Processes(t *testing.T, d Database, span time.Duration) {
	const (
		readers      = 2
		least        = 3 // of everything
		killedWriter = "writer killed in a transaction"
		killedReader = "reader killed"
		handedOver   = "prepared, ended by another"
		crash        = "crash of the server"
		missed       = "missed by id > last"
	)
	writers := 10
	if d.Dialect == feed.SQLite {
		writers = 4 // one at a time
	}
	own := map[string]int{refused: 0, rolledBack: 0, committed: 0, killedWriter: 0, killedReader: 0, missed: 0}
	if d.Kill != "" {
		own[severed] = 0
	}
	if d.Prepare != nil {
		own[prepared], own[handedOver] = 0, 0
	}
	if d.Crash != nil {
		own[crash] = 0
	}
	must(t, d.connect(t.Cleanup))
	table, f := d.install(t, runSlack)
	folder, worker := t.TempDir(), int64(0)
	var all []*process // writers, also those that were killed
	play := func(journal string, writer bool) *process {
		return start(t, task{d, writer, d.Crash != nil, table, worker, filepath.Join(folder, journal)})
	}
	write := func() *process {
		p := play("writer"+strconv.FormatInt(worker, 10), true)
		worker++
		all = append(all, p)
		return p
	}
	read := func(i int) *process { return play("reader"+strconv.Itoa(i), false) }
	var writing, reading []*process
	for range writers {
		writing = append(writing, write())
	}
	for i := range readers {
		reading = append(reading, read(i))
	}

	count := func() map[string]int {
		n := maps.Clone(own)
		for _, p := range all {
			for _, line := range p.lines() {
				state, _, _ := strings.Cut(line, " ")
				n[state]++
			}
		}
		return n
	}
	enough := func() bool { return slices.Min(slices.Collect(maps.Values(count()))) >= least }
	var naive []types.Snowflake // what a reader of id > last reads
	began := time.Now()
	for crashed, before := began, 0; time.Since(began) < span || !enough(); time.Sleep(rand.N(20 * time.Millisecond)) {
		if t.Failed() || time.Since(began) > span+patience {
			t.Fatalf("after %v: %v; want %d of each", time.Since(began), count(), least)
		}
		naive = append(naive, d.after(table, last(naive))...)
		var rows int
		if d.DB.QueryRow(fmt.Sprintf("SELECT count(*) FROM %s WHERE id <= %d", table, int64(last(naive)))).Scan(&rows) == nil {
			own[missed] = rows - len(naive)
		}
		if i := rand.IntN(writers); rand.IntN(writers) == 0 && writing[i].inTransaction() && worker < 1024 {
			writing[i].kill(t)
			if writing[i].inTransaction() { // still
				own[killedWriter]++
			}
			writing[i] = write()
		}
		if i := rand.IntN(readers); rand.IntN(20) == 0 && (rand.IntN(4) == 0 || len(reading[i].lines()) > 0) {
			reading[i].kill(t)
			reading[i] = read(i)
			own[killedReader]++
		}
		if d.Prepare != nil && rand.IntN(20) == 0 {
			own[handedOver] += d.endPrepared()
		}
		if d.Crash != nil && time.Since(crashed) > span/4 {
			var pid int
			// Otherwise it has not come back for long enough.
			if n := count()[committed]; n > before && d.DB.QueryRow(d.Self).Scan(&pid) == nil {
				d.Crash(pid)
				own[crash]++
				before = n
			}
			crashed = time.Now()
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
	// Until the server has noticed that the last writers are gone.
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		d.endPrepared()
		h, err := f.Horizon(t.Context(), 0)
		if err == nil && h > newest {
			break
		}
		if err != nil && d.Crash == nil || time.Now().After(end) {
			t.Fatalf("Horizon() after the writers were killed = %d, %v; want it past %d", h, err, newest)
		}
	}
	want := d.after(table, 0)
	for _, id := range want {
		if !slices.Contains(mayBeThere, states[id]) {
			t.Errorf("the row %d is there; its writer has noted %q", id, states[id])
		}
	}
	for id, s := range states {
		if _, there := slices.BinarySearch(want, id); s == committed && !there {
			t.Errorf("the row %d, which was committed, is not there", id)
		}
	}
	for i, p := range reading {
		got := func() []types.Snowflake {
			keys, err := parseKeys(p.lines())
			must(t, err)
			return keys
		}
		for end := time.Now().Add(patience); last(got()) < last(want) && time.Now().Before(end); {
			time.Sleep(10 * time.Millisecond)
		}
		p.kill(t)
		if got := got(); !slices.Equal(got, want) {
			lost, extra := difference(want, got), difference(got, want)
			t.Errorf("the reader %d has read %d keys, the table has %d; missed %d %v, not in the table %d %v; sorted: %v",
				i, len(got), len(want), len(lost), head(lost), len(extra), head(extra), slices.IsSorted(got))
		}
	}
	t.Logf("%d rows read; %v", len(want), count())
}

// difference returns the keys of a that are not in b.
func difference(a, b []types.Snowflake) []types.Snowflake {
	return slices.DeleteFunc(slices.Clone(a), func(id types.Snowflake) bool { return slices.Contains(b, id) })
}

func head(keys []types.Snowflake) []types.Snowflake { return keys[:min(3, len(keys))] }
