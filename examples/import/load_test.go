package main

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/sqlxhelper"
)

func TestAFillAfterARollbackStartsAnew(t *testing.T) {
	keys, err := core.New(core.Config{Worker: core.StaticWorker(1)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = keys.Close(context.Background()) }()
	var out bytes.Buffer
	l := &loader{
		files:  os.DirFS("testdata"),
		keys:   keys,
		helper: sqlxhelper.New(keys),
		bar:    newBar(&out, time.Now),
		now:    time.Now,
	}
	total, err := size(l.files)
	if err != nil {
		t.Fatal(err)
	}
	file := dbFile(t)
	busy := errors.New("busy")
	err = inDatabase(t.Context(), file, func(db *sqlx.DB) error {
		for _, end := range []error{busy, nil} {
			err := sqlxhelper.InTx(t.Context(), db, nil, func(tx *sqlx.Tx) error {
				steps, err := l.fill(t.Context(), tx, total)
				if len(steps) != 5 || steps[3].rows != 7 {
					t.Errorf("fill = %v; want four tables, the last with 7 rows, and indexes", steps)
				}
				return errors.Join(err, end)
			})
			if end == nil && err != nil || end != nil && !errors.Is(err, end) {
				t.Errorf("InTx = %v; want %v", err, end)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want(t, raw(t, file), "4", "SELECT count(*) FROM orders")
	want(t, raw(t, file), "7", "SELECT count(*) FROM order_lines")
	if got := strings.Count(out.String(), "100 %"); got != 2 {
		t.Errorf("progress %q reaches the end %d times; want 2", &out, got)
	}
}

func TestTheReaderHasEndedWhenTheLoopHas(t *testing.T) {
	running := false // without a lock: the race detector looks on
	endless := func(yield func(int, error) bool) {
		running = true
		defer func() { running = false }()
		for yield(0, nil) {
		}
	}
	seen := 0
	for _, err := range ahead(iter.Seq2[int, error](endless)) {
		if err != nil {
			t.Fatal(err)
		}
		if seen++; seen == 10 {
			break
		}
	}
	if running {
		t.Error("the reader runs on after the loop; want it to have ended")
	}
}

func TestADatabaseThatAppearsMeanwhileIsNotReplaced(t *testing.T) {
	file := dbFile(t)
	err := inDatabase(t.Context(), file, func(db *sqlx.DB) error {
		if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("os.Stat during the load = %v; want %v", err, os.ErrNotExist)
		}
		if _, err := db.ExecContext(t.Context(), "CREATE TABLE ours (x)"); err != nil {
			return err
		}
		return os.WriteFile(file, []byte("theirs"), 0o600)
	})
	if !errors.Is(err, os.ErrExist) {
		t.Errorf("inDatabase = %v; want %v", err, os.ErrExist)
	}
	wantUnchanged(t, file, map[string]string{"import.db": "theirs"})
}

func TestADatabaseKeepsItsJournalMode(t *testing.T) {
	file := prepare(t, "PRAGMA journal_mode = WAL; CREATE TABLE notes (text TEXT)")
	runOK(t, "-db", file, "-data", "testdata")
	want(t, raw(t, file), "wal", "PRAGMA journal_mode")
	want(t, raw(t, file), "7", "SELECT count(*) FROM order_lines")
	if got := len(content(t, file)); got > 3 { // the log and its index while it is open
		t.Errorf("files = %d; want at most the database, its log and the index of that", got)
	}
}

func TestAFileNameIsNoURL(t *testing.T) {
	file := dbFile(t) + "?mode=memory&x=%41"
	runOK(t, "-db", file, "-data", "testdata")
	before := content(t, file)
	if before[filepath.Base(file)] == "" {
		t.Errorf("there is no file %s", file)
	}
	var out bytes.Buffer
	err := run(t.Context(), []string{"-db", file, "-data", "testdata"}, &out, &out)
	if want := "in the database already"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("second run = %v; want %s", err, want)
	}
	wantUnchanged(t, file, before)
}

func TestTheRollbackIsOverBeforeTheProgramIs(t *testing.T) {
	file := prepare(t, "CREATE TABLE notes (text TEXT); INSERT INTO notes VALUES ('a')")
	before := content(t, file)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	err := inDatabase(ctx, file, func(db *sqlx.DB) error {
		tx, err := db.BeginTxx(ctx, nil) // and no Rollback: that of InTx can be too late
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "UPDATE notes SET text = 'b'"); err != nil {
			return err
		}
		if len(content(t, file)) != 2 {
			t.Error("there is no journal; want one, or the test tests nothing")
		}
		stop()
		return ctx.Err()
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("inDatabase = %v; want %v", err, context.Canceled)
	}
	wantUnchanged(t, file, before)
}
