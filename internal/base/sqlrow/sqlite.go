package sqlrow

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"time"

	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/filesystem"
	"github.com/snowkey/snowkey/internal/base/wait"
)

// beginSQLite begins a transaction by hand, because database/sql cannot express IMMEDIATE. A
// transaction that begins with a read can only fail if another connection has written since.
func (t *Tx) beginSQLite(ctx context.Context) error {
	t.executor = t.conn
	of := t.db.schemaDot()
	file, err := t.openSQLite(ctx, true)
	if err != nil {
		return err
	}
	// EXTRA is FULL and, in DELETE mode, a sync of the directory after the journal is
	// unlinked. That unlink is the commit: a journal that comes back with the power
	// takes the commit back. EXTRA cannot be set in a transaction.
	const extra = 3
	if err := t.needPragma(ctx, of+"synchronous", func(n int64) bool { return n >= extra }, extra); err != nil {
		return err
	}
	if _, err := t.conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		// A driver may report that ctx has ended although the statement was executed, and the
		// program must not get a connection with this transaction in it.
		t.dirty = !busy(err)
		return fmt.Errorf("begin: %w", err)
	}
	// Without ctx, which may have ended. A rollback never waits, and no other connection can
	// write while the transaction is open.
	t.rollback = t.rollsBack(ctx)
	t.commit = func() error { return t.commitSQLite(ctx, of, file) }
	if err := t.db.file.still(ctx, file); err != nil { // by now the connection has the log open
		return err
	}
	t.Now = t.db.config.Now()
	return nil
}

// openSQLite returns the file of the database, which it checks. If the transaction writes into a
// write-ahead log, it has the lock of the folder.
func (t *Tx) openSQLite(ctx context.Context, writes bool) (openFile, error) {
	// SQLite's own wait for a lock does not end with ctx, so it is turned off, and Do waits.
	if err := t.needPragma(ctx, "busy_timeout", func(n int64) bool { return n == 0 }, 0); err != nil {
		return openFile{}, err
	}
	schema := t.db.schema()
	path, err := File(ctx, t.executor, schema)
	if err != nil {
		return openFile{}, err
	}
	if path == "" {
		return openFile{}, fmt.Errorf("%w: %s is in memory; use a file", ErrNotDurable, schema)
	}
	file, err := t.checkFile(ctx, path, t.db.schemaDot())
	if err != nil || !writes || !file.wal {
		return file, err
	}
	// Not before, because a connection has its log open when it waits for the lock, and must have its mark.
	if t.unlock, err = filesystem.TryLock(filepath.Dir(path)); err == nil && t.unlock == nil {
		err = fmt.Errorf("%w: %s", errLocked, filepath.Dir(path))
	}
	return file, err
}

// commitSQLite commits. With a rollback journal, a reader can prevent that; the transaction is
// then unchanged and can be committed again.
//
// A log that was removed during the transaction is copied into the file nevertheless. While the folder is
// locked, no one else has written such rows since, but the last connection of this process copies the log
// when it is closed, and by then others have.
func (t *Tx) commitSQLite(ctx context.Context, of string, file openFile) error {
	for {
		_, err := t.conn.ExecContext(ctx, "COMMIT")
		if err == nil {
			break
		}
		if !busy(err) || !pause(ctx) {
			return err
		}
	}
	if file.wal {
		t.checkpoint(ctx, of)
	}
	return t.db.file.still(ctx, file) // otherwise the write has gone where no process reads it
}

// checkpoint copies the write-ahead log into the file, because what is acknowledged must
// survive the removal of the log and be in a copy of the file alone. The transaction is stored
// whether the copy succeeds or not.
//
// PASSIVE does not wait: it stops at a reader of an older state, and does nothing while another
// connection runs a checkpoint. Both usually last a moment, for which checkpoint waits. A
// reader that takes longer keeps the rest in the log.
func (t *Tx) checkpoint(ctx context.Context, of string) {
	const tries, maxPause = 20, 2 * time.Millisecond
	want := int64(-1) // how much of the log there was
	for range tries {
		var busy, size, done int64
		if dialect.One(ctx, t.conn, []any{&busy, &size, &done}, "PRAGMA "+of+"wal_checkpoint(PASSIVE)") != nil {
			return
		}
		if want < 0 {
			want = size
		}
		if busy == 0 && (done == size || done >= want) || wait.Sleep(ctx, rand.N(maxPause)) != nil {
			return
		}
	}
}

// schema returns the name that SQLite has for the file of the table.
func (d *DB) schema() string { return NameOf(dialect.SQLite, d.config.Table).Schema }

// schemaDot begins the name of a setting or table of that file.
func (d *DB) schemaDot() string { return dialect.SQLite.Quote(d.schema()) + "." }

// File returns the path that SQLite has for the file of a database, such as main, or "" for one in
// memory. It is absolute, and SQLite has followed links. An answer that names no such database, or
// gives NULL as its file, does not come from SQLite and proves nothing, so it is an error that matches
// [ErrNotDurable].
func File(ctx context.Context, e dialect.Executor, schema string) (file string, err error) {
	var path sql.NullString
	err = dialect.Each(ctx, e, func(rows *sql.Rows) error {
		var (
			name string
			of   sql.NullString
		)
		err := rows.Scan(new(any), &name, &of)
		if name == schema {
			path = of
		}
		return err
	}, "PRAGMA database_list")
	if err != nil {
		return "", fmt.Errorf("PRAGMA database_list: %w", err)
	}
	if !path.Valid {
		return "", fmt.Errorf("%w: PRAGMA database_list names no file of %s, and not that it is in memory; is it attached?", ErrNotDurable, schema)
	}
	return path.String, nil
}

// checkFile returns the file of the database, at path. It refuses one that would forget, that cannot be
// written, or that has been replaced.
func (t *Tx) checkFile(ctx context.Context, path, of string) (openFile, error) {
	if err := t.db.file.check(ctx, path); err != nil {
		return openFile{}, err
	}
	t.dirty = true // until it has the mark of the log that it may open here, and not of a later one
	var mode string
	if err := t.pragma(ctx, of+"journal_mode", &mode); err != nil {
		return openFile{}, err
	}
	t.dirty = mode == "wal"
	if mode == "off" || mode == "memory" {
		return openFile{}, fmt.Errorf("%w: journal_mode is %s; want wal, delete, truncate or persist", ErrNotDurable, mode)
	}
	var refuses bool
	if err := t.pragma(ctx, "query_only", &refuses); err != nil {
		return openFile{}, err
	}
	if refuses {
		return openFile{}, fmt.Errorf("%w: query_only is on", ErrReadOnly)
	}
	file, err := t.opened(ctx, path, of, mode)
	t.dirty = err != nil
	return file, err
}

// opened returns the file at path as the connection has it open.
func (t *Tx) opened(ctx context.Context, path, of, mode string) (o openFile, err error) {
	o = openFile{path: path, wal: mode == "wal"}
	if o.mark, err = t.markLog(ctx, path, o.wal); err != nil || !o.wal {
		return o, err
	}
	indexed, _, err := identify(path+"-shm", new(filesystem.Identity))
	if err != nil || indexed {
		return o, err
	}
	var locking string
	err = t.pragma(ctx, of+"locking_mode", &locking)
	o.unshared = locking == "exclusive"
	return o, err
}

// checkCaller is checkFile for the transaction of a caller, whose connection may not have
// opened the log yet.
func (t *Tx) checkCaller(ctx context.Context) error {
	schema := t.db.schema()
	path, err := File(ctx, t.executor, schema)
	if err != nil || path == "" {
		return err
	}
	if err := t.db.file.check(ctx, path); err != nil {
		return err
	}
	var mode string
	of := t.db.schemaDot()
	if err := t.pragma(ctx, of+"journal_mode", &mode); err != nil {
		return err
	}
	file, err := t.opened(ctx, path, of, mode)
	if err != nil || file.mark == 0 {
		return err
	}
	return t.db.file.still(ctx, file)
}

// pragma reads a setting.
func (t *Tx) pragma(ctx context.Context, name string, dest any) error {
	if err := dialect.One(ctx, t.executor, []any{dest}, "PRAGMA "+name); err != nil {
		return fmt.Errorf("PRAGMA %s: %w", name, err)
	}
	return nil
}

// needPragma changes a setting to want until the end of the attempt, unless it is good.
func (t *Tx) needPragma(ctx context.Context, name string, good func(int64) bool, want int64) error {
	var before int64
	if err := t.pragma(ctx, name, &before); err != nil || good(before) {
		return err
	}
	text := "PRAGMA " + name + " = "
	t.restore = append(t.restore, text+strconv.FormatInt(before, 10))
	if _, err := t.conn.ExecContext(ctx, text+strconv.FormatInt(want, 10)); err != nil {
		return fmt.Errorf("%s%d: %w", text, want, err)
	}
	return nil
}
