package sqlxhelper

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/outcome"
	"github.com/snowkey/snowkey/internal/base/pgtext"
)

// bulk returns the senders that are faster than VALUES on PostgreSQL, the best one first. Each
// carries rows up to the first one that it cannot carry.
func (a *attempt) bulk(s session, l *load) ([]sender, error) {
	t := a.described[l.name]
	arrays := encoders(t, l.columns, t.Array())
	if arrays == nil {
		return nil, nil
	}
	// COPY carries microseconds. With a driver that has the server round times, the other senders
	// would store other ones.
	rounds := !t.CutsTimes && slices.ContainsFunc(arrays, func(e encoder) bool { return e.kind.MayBeTime() })
	if a.config.copier == nil || len(l.rows) < a.config.copyRows || !t.Copies || rounds || l.upsert != nil {
		return []sender{newUnnest(a.dialect, l, arrays, t)}, nil
	}
	if !s.inTx {
		return nil, errSeveral
	}
	copyIn := func(f pgtext.Format) sender {
		return &copying{attempt: a, load: l, encoders: encoders(t, l.columns, f), in: f, table: t}
	}
	if slices.ContainsFunc(arrays, func(e encoder) bool { return !e.Type.Binary(e.kind) }) {
		return []sender{copyIn(pgtext.Copy)}, nil
	}
	return []sender{copyIn(pgtext.Binary), copyIn(pgtext.Copy)}, nil
}

// An encoder writes the values of a column.
type encoder struct {
	*column
	pgtext.Encoder
}

// encoders returns the encoders of the columns, or nil if one of them can only go by VALUES.
func encoders(t *pgtext.Table, columns []column, f pgtext.Format) []encoder {
	encoders := make([]encoder, len(columns))
	for i := range columns {
		c := &columns[i]
		typ := t.Columns[c.name].Type
		if typ == 0 || !typ.Takes(c.kind) {
			return nil
		}
		encoders[i] = encoder{c, pgtext.Encoder{Type: typ, Format: f}}
	}
	return encoders
}

// append appends the value of a row. If the value has to go by VALUES, ok is false, and b may
// have grown.
func (e *encoder) append(b []byte, row reflect.Value) (_ []byte, ok bool) {
	if e.kind != pgtext.ValueKind {
		return e.Type.AppendField(b, e.kind, e.in(row), e.Format)
	}
	v, err := e.argument(row)
	if err != nil {
		return b, false // VALUES meets the same error, and names the row
	}
	return e.Append(b, v)
}

// describe reads the tables that get many rows, before anything is sent. On a pool it runs
// before the transaction begins, when there may still be a second connection; in a transaction
// it runs under the savepoint of the call, to which a failure rolls back. The rows of a table
// that cannot be read go by VALUES.
func (a *attempt) describe(ctx context.Context) {
	for i := range a.loads {
		l := &a.loads[i]
		if !a.dialect.Arrays || len(l.rows) < pgtext.ManyRows || a.described[l.name] != nil {
			continue
		}
		var t *pgtext.Table
		if known, ok := a.memory.tables.Load(l.name); ok {
			t = known.(*pgtext.Table)
		} else {
			var err error
			if t, err = describe(ctx, a.conn.cancels, a.conn.db, a.dialect.Quote(l.name)); err != nil {
				t = &pgtext.Table{Lasts: true}
				if a.conn.pool == nil {
					// If this fails, so does the next statement.
					_, _ = outcome.Exec(ctx, a.conn.cancels, a.conn.db, "ROLLBACK TO SAVEPOINT "+savepointName)
				}
			}
		}
		if a.described == nil {
			a.described = map[string]*pgtext.Table{}
		}
		a.described[l.name] = t
	}
}

// describe reads one table, whose name is quoted.
func describe(ctx context.Context, c outcome.Cancels, db dialect.Queryer, table string) (*pgtext.Table, error) {
	return outcome.Call(ctx, c, func() (*pgtext.Table, error) { return pgtext.Describe(ctx, db, table) }, nil)
}

// learn remembers a table of an attempt that has ended with err. After an error the table may
// have changed, and the next attempt reads it again.
func (m *memory) learn(name string, t *pgtext.Table, err error) {
	if err == nil && t.Lasts {
		m.tables.Store(name, t)
	} else {
		m.tables.Delete(name)
	}
}

// ErrTableChanged means that rows were sent in the form of column types that the table no longer
// has: by a COPY, or by several statements in a row while the table was altered again and again.
// Nothing of the call is stored, and the next call reads the types again.
var ErrTableChanged = errors.New("sqlxhelper: table was altered")

// unchanged returns nil if the table of a COPY is still the one that was read. In the binary
// format, bigint and double precision are both eight bytes, and the server would take one for
// the other; arrays hold texts, which it converts or refuses. The check comes after the COPY,
// which holds a lock on the table until the transaction ends.
func (w *writer) unchanged(ctx context.Context, s session, l *load, t *pgtext.Table) error {
	now, err := describe(ctx, s.cancels, s.db, w.dialect.Quote(l.name))
	if err != nil {
		return fmt.Errorf("sqlxhelper: insert into %s: read its columns again: %w", l.name, err)
	}
	for _, c := range l.columns {
		if now.Columns[c.name] != t.Columns[c.name] || !now.Copies {
			return fmt.Errorf("%w: column %s of %s was %s when the types were read; they are read again in the next call", ErrTableChanged, c.name, l.name, t.Columns[c.name].Name)
		}
	}
	return nil
}

// Describe reads the column types of a table, which unnest and COPY need on PostgreSQL. Without
// it, the first call with many rows for the table does so, by one more query. On other
// databases Describe does nothing.
//
// The Helper keeps the types for its life, or until a call with that table fails, but not those
// of a table that is temporary or was created or altered in the same transaction. A Helper is
// therefore for one database and one search_path.
//
// If a column has changed its type since, PostgreSQL refuses the first statement with many rows;
// the call reads the types again and sends its rows once more. A COPY fails with an error that
// matches [ErrTableChanged], or with one of the server. Call Describe again if the table gets rules
// or row level security while the program runs.
//
// table is written as in [Helper.Insert]. Errors match [ErrDB], [ErrDriver], [ErrName] or, if
// there is no such table, [ErrArgument], or wrap the error of the database. They leave a
// transaction usable.
func (h *Helper) Describe(ctx context.Context, db DB, table string) error {
	c, err := h.connect(db)
	if err != nil {
		return err
	}
	if problem := tableProblem(table); problem != "" {
		return fmt.Errorf("%w: %s", ErrName, problem)
	}
	if !c.dialect.Arrays {
		return nil
	}
	read := func() error {
		exists, err := outcome.Call(ctx, c.cancels, func() (exists bool, err error) {
			err = db.QueryRowxContext(ctx, "SELECT pg_catalog.to_regclass($1) IS NOT NULL", c.dialect.Quote(table)).Scan(&exists)
			return exists, err
		}, nil)
		if err != nil {
			return fmt.Errorf("sqlxhelper: describe %s: %w", table, err)
		}
		if !exists {
			return fmt.Errorf("%w: Describe: there is no table %s", ErrArgument, table)
		}
		t, err := describe(ctx, c.cancels, db, c.dialect.Quote(table))
		if err != nil {
			return fmt.Errorf("sqlxhelper: describe %s: %w", table, err)
		}
		h.learn(table, t, nil)
		return nil
	}
	if c.pool != nil {
		return read()
	}
	return inSavepoint(ctx, db, c.cancels, savepointName, read)
}
