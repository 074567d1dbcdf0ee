package pgtext

import (
	"context"
	"database/sql"
	"time"
)

// ManyRows is the number of rows from which on PostgreSQL gets them by another path
// than VALUES. On loopback, statements of 10 rows cost the same either way. Over a
// network the round trip counts, and both take one.
const ManyRows = 11

// A Table is what unnest and COPY have to know of a table of PostgreSQL. With the zero
// Table all rows go by VALUES.
type Table struct {
	Columns map[string]Column
	// Copies: COPY does what INSERT would do. It refuses row level security. Nor
	// does it where the session has another encoding: a character may then end in
	// the byte of a backslash or a tab.
	Copies bool
	// Lasts: others see the table so too, now and later.
	Lasts bool
	// CutsTimes: the driver cuts times to microseconds on their way to a timestamp, as
	// pgx does. With others, such as lib/pq, the server rounds.
	CutsTimes bool
}

// Array returns the format of arrays that store what the driver would store.
func (t *Table) Array() Format {
	if t.CutsTimes {
		return Array
	}
	return ArrayOfNanos
}

// A Column is the type of a column that takes rows by unnest and COPY.
type Column struct {
	Name string // of the type, for a cast
	Type Type
}

// DescribeText reads all about a table at once. The result has no rows if there is
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
// The column lasts is false for a temporary table. It is false for a column
// that the transaction itself has created or altered, since that may be rolled
// back. A transaction without a number has done neither. All that it writes later
// has that number, or a later one under a savepoint. age counts back from the
// number.
//
// The last two parameters tell CutsTimes: the first is 600 ns after the second.
const DescribeText = `SELECT a.attname, pg_catalog.format_type(a.atttypid, -1), t.oid::bigint, t.typtype = 'e', ` +
	`NOT c.relrowsecurity AND pg_catalog.current_setting('client_encoding') IN ('UTF8', 'SQL_ASCII'), ` +
	`c.relpersistence <> 't' AND (pg_catalog.txid_current_if_assigned() IS NULL OR pg_catalog.age(a.xmin) > 0), ` +
	`CAST($2 AS timestamptz) = CAST($3 AS timestamptz) ` +
	`FROM pg_catalog.pg_class c ` +
	`JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid ` +
	`JOIN pg_catalog.pg_type t ON t.oid = a.atttypid ` +
	`WHERE c.oid = pg_catalog.to_regclass($1) AND c.relkind IN ('r', 'p') AND NOT c.relhasrules ` +
	`AND pg_catalog.pg_relation_filenode(c.oid) IS NOT DISTINCT FROM NULLIF(c.relfilenode, 0) ` +
	`AND pg_catalog.current_setting('array_nulls') = 'on' ` +
	`AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' AND a.attidentity <> 'a' ` +
	`AND t.typtype IN ('b', 'e') AND t.typcategory <> 'A' AND t.typarray <> 0 AND t.typdelim = ',' ` +
	`AND (a.atttypmod = -1 OR t.oid IN (1042, 1043, 1114, 1184, 1700))`

// DescribeArgs returns the parameters of DescribeText.
func DescribeArgs(name string) []any {
	second := time.Unix(1e9, 0).UTC()
	return []any{name, second.Add(600), second}
}

// A DB is the part of a pool or transaction that reads a table, under a savepoint or not.
type DB interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// Describe reads a table, whose name is as SQL has it. The error is that of the
// database. A table that does not exist has no columns.
func Describe(ctx context.Context, db DB, name string) (*Table, error) {
	rows, err := db.QueryContext(ctx, DescribeText, DescribeArgs(name)...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // where Next has not come to the end
	t := &Table{Columns: map[string]Column{}, Lasts: true}
	for rows.Next() {
		var column, typ string
		var oid int64
		var enum, lasts bool
		if err := rows.Scan(&column, &typ, &oid, &enum, &t.Copies, &lasts, &t.CutsTimes); err != nil {
			return nil, err
		}
		t.Lasts = t.Lasts && lasts
		t.Columns[column] = Column{typ, TypeOf(oid, enum)}
	}
	return t, rows.Err()
}
