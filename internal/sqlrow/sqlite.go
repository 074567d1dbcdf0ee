package sqlrow

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/snowkey/snowkey/internal/dialect"
)

// beginSQLite begins a transaction by hand, as database/sql has no way to say
// IMMEDIATE. A transaction that begins with a read can only fail if somebody else has
// written since.
func (t *Tx) beginSQLite(ctx context.Context) error {
	t.executor = t.conn
	schema := t.db.schema()
	of := dialect.SQLite.Quote(schema) + "."

	// SQLite's own wait for a lock does not end with ctx. So it is turned off, and Do
	// does the waiting.
	if err := t.needPragma(ctx, "busy_timeout", func(n int64) bool { return n == 0 }, 0); err != nil {
		return err
	}
	file, err := t.checkFile(ctx, schema, of)
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
		// A driver may say that ctx has ended though the statement was done. The
		// program must not get a connection with our transaction in it.
		t.dirty = !busy(err)
		return fmt.Errorf("begin: %w", err)
	}
	// Without ctx, which may have ended. It takes no waiting, and nobody else can write
	// while the transaction is open.
	t.rollback = func() error {
		_, err := t.conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		return err
	}
	t.commit = func() error { return t.commitSQLite(ctx, file) }
	t.Asked = time.Now()
	t.Now = t.db.config.Now()
	t.Answered = time.Now()
	return nil
}

// commitSQLite commits. With a rollback journal, readers are in the way of that. The
// transaction is then as before, and can be committed again.
func (t *Tx) commitSQLite(ctx context.Context, file string) error {
	for {
		_, err := t.conn.ExecContext(ctx, "COMMIT")
		if err == nil {
			return t.db.file.check(ctx, file) // or it is written where nobody will read it
		}
		if !busy(err) || !pause(ctx) {
			return err
		}
	}
}

// schema returns the name that SQLite has for the file of the table.
func (d *DB) schema() string {
	schema, _, _ := strings.Cut(withSchema(d.config.Table), ".")
	return schema
}

// file returns the path of a database, or "" for one in memory.
func (t *Tx) file(ctx context.Context, schema string) (file string, err error) {
	err = each(ctx, t.executor, func(scan func(...any) error) error {
		var (
			name string
			path sql.NullString
		)
		err := scan(new(any), &name, &path)
		if name == schema {
			file = path.String
		}
		return err
	}, "PRAGMA database_list")
	if err != nil {
		return "", fmt.Errorf("PRAGMA database_list: %w", err)
	}
	return file, nil
}

// checkFile returns the path of the database. It refuses one that would forget, cannot
// be written, or is not the one of before.
func (t *Tx) checkFile(ctx context.Context, schema, of string) (file string, err error) {
	if file, err = t.file(ctx, schema); err != nil {
		return "", err
	}
	if file == "" {
		return "", fmt.Errorf("%w: %s is in memory, or not attached; use a file", ErrNotDurable, schema)
	}
	if err := t.db.file.check(ctx, file); err != nil {
		return "", err
	}
	var mode string
	if err := t.pragma(ctx, of+"journal_mode", &mode); err != nil {
		return "", err
	}
	if mode == "off" || mode == "memory" {
		return "", fmt.Errorf("%w: journal_mode is %s; want wal, delete, truncate or persist", ErrNotDurable, mode)
	}
	var refuses bool
	if err := t.pragma(ctx, "query_only", &refuses); err != nil {
		return "", err
	}
	if refuses {
		return "", fmt.Errorf("%w: query_only is on", ErrReadOnly)
	}
	return file, nil
}

// pragma reads a setting.
func (t *Tx) pragma(ctx context.Context, name string, dest any) error {
	if err := scan(ctx, t.conn, []any{dest}, "PRAGMA "+name); err != nil {
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
