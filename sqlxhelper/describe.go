package sqlxhelper

import (
	"context"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/internal/pgtext"
)

// A description is what unnest and COPY have to know of a table of PostgreSQL. With
// the zero description all rows go by VALUES.
type description struct {
	columns map[string]columnType
	// copies: COPY does what INSERT would do. It refuses row level security. Nor
	// does it where the session has another encoding: a character may then end in
	// the byte of a backslash or a tab.
	copies bool
	// lasts: others see the table so too, now and later.
	lasts bool
}

// A columnType is the type of a column that takes rows by unnest and COPY.
type columnType struct {
	name string // for a cast
	typ  pgtext.Type
}

// describeText reads all about a table at once. The result has no rows if there is
// no such table, or if rows can only go there by VALUES:
//
//   - A view, a foreign table and a table with rules may do anything with an
//     INSERT. A rule may run its own statements with the rows.
//   - A transaction with a snapshot may see the table as it was before it was
//     altered. COPY and INSERT meet the present one. Most changes of a type give
//     the table another file, and pg_relation_filenode returns the present one.
//   - With array_nulls off, a NULL in an array is a text of four letters.
//
// Columns of these kinds are left out too:
//
//   - A domain and a composite type look like their parts to some drivers and
//     not to others; a range is rare.
//   - unnest would take an array apart to its elements.
//   - The elements of a box[] are separated by semicolons.
//   - For a type with a modifier such as a length, as bit(3), COPY passes the
//     modifier to the type's input function. VALUES and unnest do not. The errors
//     differ then, and interval minute to second reads '1:30' otherwise than
//     interval does. For the character types, numeric and timestamps it makes no
//     difference.
//   - A generated column refuses values from INSERT. So does GENERATED ALWAYS AS
//     IDENTITY, which COPY would fill. VALUES brings the error.
//
// format_type has two ways to leave out the length. With NULL for it, char(3)
// becomes "character", and a cast to character[] cuts all strings to one byte,
// silently. With -1 it becomes bpchar, which has no length. The assignment to the
// column then refuses long strings as it does with VALUES.
//
// The last column, lasts, is false for a temporary table. It is false for a column
// that the transaction itself has created or altered, since that may be rolled
// back. A transaction without a number has done neither. All that it writes later
// has that number, or a later one under a savepoint. age counts back from the
// number.
const describeText = `SELECT a.attname, pg_catalog.format_type(a.atttypid, -1), t.oid::bigint, t.typtype = 'e', ` +
	`NOT c.relrowsecurity AND pg_catalog.current_setting('client_encoding') IN ('UTF8', 'SQL_ASCII'), ` +
	`c.relpersistence <> 't' AND (pg_catalog.txid_current_if_assigned() IS NULL OR pg_catalog.age(a.xmin) > 0) ` +
	`FROM pg_catalog.pg_class c ` +
	`JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid ` +
	`JOIN pg_catalog.pg_type t ON t.oid = a.atttypid ` +
	`WHERE c.oid = pg_catalog.to_regclass($1) AND c.relkind IN ('r', 'p') AND NOT c.relhasrules ` +
	`AND pg_catalog.pg_relation_filenode(c.oid) IS NOT DISTINCT FROM NULLIF(c.relfilenode, 0) ` +
	`AND pg_catalog.current_setting('array_nulls') = 'on' ` +
	`AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' AND a.attidentity <> 'a' ` +
	`AND t.typtype IN ('b', 'e') AND t.typcategory <> 'A' AND t.typarray <> 0 AND t.typdelim = ',' ` +
	`AND (a.atttypmod = -1 OR t.oid IN (1042, 1043, 1114, 1184, 1700))`

// describe reads a table. The error is that of the database. A table that does not
// exist has no columns.
func describe(ctx context.Context, db sqlx.QueryerContext, name string) (*description, error) {
	rows, err := db.QueryContext(ctx, describeText, PostgreSQL.Quote(name))
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // where Next has not come to the end
	t := &description{columns: map[string]columnType{}, lasts: true}
	for rows.Next() {
		var column, typ string
		var oid int64
		var enum, lasts bool
		if err := rows.Scan(&column, &typ, &oid, &enum, &t.copies, &lasts); err != nil {
			return nil, err
		}
		t.lasts = t.lasts && lasts
		t.columns[column] = columnType{typ, pgtext.TypeOf(oid, enum)}
	}
	return t, rows.Err()
}

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
		if len(l.rows) < bulkRows || w.tables[l.table] != nil {
			continue
		}
		var t *description
		if known, ok := w.memory.tables.Load(l.table); ok {
			t = known.(*description)
		} else {
			var err error
			if t, err = describe(ctx, c.db, l.table); err != nil {
				t = &description{lasts: true}
				if c.pool == nil {
					// If this fails the connection is gone, as the next
					// statement will say.
					_, _ = c.db.ExecContext(ctx, "ROLLBACK TO SAVEPOINT "+savepointName)
				}
			}
		}
		if w.tables == nil {
			w.tables = map[string]*description{}
		}
		w.tables[l.table] = t
	}
}

// learn remembers the tables of a call that has ended with err. After an error they
// are forgotten, because a table may have changed. The next call looks again.
func (w *writer) learn(err error) {
	for name, t := range w.tables {
		w.memory.learn(name, t, err)
	}
}

func (m *memory) learn(name string, t *description, err error) {
	if err == nil && t.lasts {
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
func (w *writer) unchanged(ctx context.Context, s session, l *load, t *description) error {
	now, err := describe(ctx, s.db, l.table)
	if err != nil {
		return fmt.Errorf("sqlxhelper: insert into %s: read its columns again: %w", l.table, err)
	}
	for _, c := range l.columns {
		if now.columns[c.name] != t.columns[c.name] || !now.copies {
			return fmt.Errorf("%w: column %s of %s was %s when the types were read; they are read again in the next call", ErrTableChanged, c.name, l.table, t.columns[c.name].name)
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
		var exists bool
		err := db.QueryRowxContext(ctx, "SELECT pg_catalog.to_regclass($1) IS NOT NULL", PostgreSQL.Quote(table)).Scan(&exists)
		if err != nil {
			return fmt.Errorf("sqlxhelper: describe %s: %w", table, err)
		}
		if !exists {
			return fmt.Errorf("%w: Describe: there is no table %s", ErrArgument, table)
		}
		t, err := describe(ctx, db, table)
		if err != nil {
			return fmt.Errorf("sqlxhelper: describe %s: %w", table, err)
		}
		h.memory.learn(table, t, nil)
		return nil
	}
	if c.pool != nil {
		return read()
	}
	return inSavepoint(ctx, db, savepointName, read)
}
