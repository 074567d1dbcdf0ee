package sqlxhelper

import (
	"context"
	"errors"
	"fmt"

	"github.com/snowkey/snowkey/internal/base/pgtext"
)

// describe reads those tables of w that get many rows. It is called before anything
// is sent. On a pool it runs before the transaction begins, because later there may
// be no second connection. In a transaction it runs under the savepoint of the
// call, which takes back a failure. A table that cannot be read is no error: its
// rows go by VALUES.
func (w *writer) describe(ctx context.Context, c conn) {
	if !w.dialect.arrays || w.memory == nil {
		return
	}
	for i := range w.loads {
		l := &w.loads[i]
		if len(l.rows) < pgtext.ManyRows || w.tables[l.table] != nil {
			continue
		}
		var t *pgtext.Table
		if known, ok := w.memory.tables.Load(l.table); ok {
			t = known.(*pgtext.Table)
		} else {
			var err error
			if t, err = describe(ctx, c.heeds, c.db, l.table); err != nil {
				t = &pgtext.Table{Lasts: true}
				if c.pool == nil {
					// If this fails the connection is gone, as the next
					// statement will say.
					_, _ = execute(ctx, c.heeds, c.db, "ROLLBACK TO SAVEPOINT "+savepointName)
				}
			}
		}
		if w.tables == nil {
			w.tables = map[string]*pgtext.Table{}
		}
		w.tables[l.table] = t
	}
}

// describe reads one table.
func describe(ctx context.Context, h heeding, db pgtext.DB, table string) (*pgtext.Table, error) {
	return answered(ctx, h, func() (*pgtext.Table, error) { return pgtext.Describe(ctx, db, PostgreSQL.Quote(table)) }, nil)
}

// learn remembers the tables of a call that has ended with err. After an error they
// are forgotten, because a table may have changed. The next call looks again.
func (w *writer) learn(err error) {
	for name, t := range w.tables {
		w.memory.learn(name, t, err)
	}
}

func (m *memory) learn(name string, t *pgtext.Table, err error) {
	if err == nil && t.Lasts {
		m.tables.Store(name, t)
	} else {
		m.tables.Delete(name)
	}
}

// ErrTableChanged means that a COPY has sent rows in the form of column types that
// the table no longer has. Nothing of the call is stored. The next call reads the
// types again.
var ErrTableChanged = errors.New("sqlxhelper: table was altered")

// unchanged makes sure that a COPY has met the table that it was made for. In the
// binary form a bigint and a double precision are both eight bytes. The server
// would take one for the other. An array holds texts under a type, which the server
// converts or refuses. The check comes after the COPY, whose lock keeps the table
// as it is until the transaction ends.
func (w *writer) unchanged(ctx context.Context, s session, l *load, t *pgtext.Table) error {
	now, err := describe(ctx, s.heeds, s.db, l.table)
	if err != nil {
		return fmt.Errorf("sqlxhelper: insert into %s: read its columns again: %w", l.table, err)
	}
	for _, c := range l.columns {
		if now.Columns[c.name] != t.Columns[c.name] || !now.Copies {
			return fmt.Errorf("%w: column %s of %s was %s when the types were read; they are read again in the next call", ErrTableChanged, c.name, l.table, t.Columns[c.name].Name)
		}
	}
	return nil
}

// Describe reads the column types of a table, which unnest and COPY need on
// PostgreSQL. Without it, the first call with many rows for a table does so, by one
// more query. On other databases Describe does nothing.
//
// The Helper keeps what it knows of a table for its life, or until a call with that
// table fails. It does not keep it if the table is temporary, or created or altered
// in the same transaction. So one Helper serves one database and one search_path.
//
// Call Describe again if a column gets another type while a program runs, or a
// table gets rules or row level security. Otherwise PostgreSQL takes the values as
// of the old type and converts them. COPY would not, and fails with an error that
// matches [ErrTableChanged].
//
// table is written as in [Helper.Insert]. Errors match [ErrDB], [ErrDriver],
// [ErrName] or [ErrArgument], the latter if there is no such table, or wrap what
// the database said. A transaction is usable after them.
func (h *Helper) Describe(ctx context.Context, db DB, table string) error {
	c, d, err := h.target(db, table)
	if err != nil || !d.arrays {
		return err
	}
	read := func() error {
		exists, err := answered(ctx, c.heeds, func() (exists bool, err error) {
			err = db.QueryRowxContext(ctx, "SELECT pg_catalog.to_regclass($1) IS NOT NULL", PostgreSQL.Quote(table)).Scan(&exists)
			return exists, err
		}, nil)
		if err != nil {
			return fmt.Errorf("sqlxhelper: describe %s: %w", table, err)
		}
		if !exists {
			return fmt.Errorf("%w: Describe: there is no table %s", ErrArgument, table)
		}
		t, err := describe(ctx, c.heeds, db, table)
		if err != nil {
			return fmt.Errorf("sqlxhelper: describe %s: %w", table, err)
		}
		h.memory.learn(table, t, nil)
		return nil
	}
	if c.pool != nil {
		return read()
	}
	return inSavepoint(ctx, db, c.heeds, savepointName, read)
}
