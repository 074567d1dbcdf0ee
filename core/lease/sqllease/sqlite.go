package sqllease

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"

	"github.com/snowkey/snowkey/core/lease"
)

// beginSQLite begins a transaction by hand, as database/sql has no way to say
// IMMEDIATE. A transaction that begins with a read can only fail if somebody else has
// written since.
//
// SQLite's own wait for a lock does not end with ctx. So it is turned off, and transact
// does the waiting.
func (t *transaction) beginSQLite(ctx context.Context) error {
	t.executor = t.conn
	schema, _, qualified := strings.Cut(t.s.table, ".")
	if !qualified {
		schema = "main"
	}
	of := t.s.dialect.Quote(schema) + "."

	var timeout, safety int64
	if err := t.pragma(ctx, "busy_timeout", &timeout); err != nil {
		return err
	}
	if timeout != 0 {
		if err := t.setPragma(ctx, "busy_timeout", 0, timeout); err != nil {
			return err
		}
	}
	file, err := t.checkFile(ctx, schema, of)
	if err != nil {
		return err
	}
	if err := t.pragma(ctx, of+"synchronous", &safety); err != nil {
		return err
	}
	// EXTRA is FULL and, in DELETE mode, a sync of the directory after the journal is
	// unlinked. That unlink is the commit: a journal that comes back with the power
	// takes the commit back. EXTRA cannot be set in a transaction.
	const extra = 3
	if safety < extra {
		if err := t.setPragma(ctx, of+"synchronous", extra, safety); err != nil {
			return err
		}
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
	t.commit = func() error {
		for {
			_, err := t.conn.ExecContext(ctx, "COMMIT")
			if err == nil {
				return t.s.file.check(file) // or it is written where nobody will read it
			}
			// With a rollback journal, readers are in the way of a commit. The
			// transaction is then as before, and can be committed again.
			if !busy(err) || !pause(ctx) {
				return err
			}
		}
	}
	return t.timed(func() error {
		t.now = lease.MillisOf(t.s.now())
		return nil
	})
}

// checkFile returns the path of the database. It refuses one that would forget, cannot
// be written, or is not the one of before.
func (t *transaction) checkFile(ctx context.Context, schema, of string) (file string, err error) {
	err = each(ctx, t.conn, func(scan func(...any) error) error {
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
	if file == "" {
		return "", lease.Permanent(fmt.Errorf("%w: %s is in memory, or not attached; use a file, best one for the leases alone", ErrNotDurable, schema))
	}
	if err := t.s.file.check(file); err != nil {
		return "", err
	}
	var mode string
	if err := t.pragma(ctx, of+"journal_mode", &mode); err != nil {
		return "", err
	}
	if mode == "off" || mode == "memory" {
		return "", lease.Permanent(fmt.Errorf("%w: journal_mode is %s; want wal, delete, truncate or persist", ErrNotDurable, mode))
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
func (t *transaction) pragma(ctx context.Context, name string, dest any) error {
	if err := scan(ctx, t.conn, []any{dest}, "PRAGMA "+name); err != nil {
		return fmt.Errorf("PRAGMA %s: %w", name, err)
	}
	return nil
}

// setPragma changes a setting until the end of the attempt.
func (t *transaction) setPragma(ctx context.Context, name string, value, before int64) error {
	text := "PRAGMA " + name + " = "
	t.restore = append(t.restore, text+strconv.FormatInt(before, 10))
	if err := each(ctx, t.conn, func(func(...any) error) error { return nil }, text+strconv.FormatInt(value, 10)); err != nil {
		return fmt.Errorf("%s%d: %w", text, value, err)
	}
	return nil
}
