package pgtext

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/snowkey/snowkey/internal/base/dialect"
)

// ManyRows is the number of rows from which on unnest or COPY replaces VALUES. On loopback,
// statements of 10 rows cost the same either way; over a network, where the round trip dominates,
// both take one.
const ManyRows = 11

// A Table holds the facts about a table of PostgreSQL that unnest and COPY need. With the zero
// Table all rows are sent by VALUES.
type Table struct {
	Columns map[string]Column
	OID     int64
	// Name is quoted, and has the schema.
	Name string
	// Copies reports that COPY does the same as INSERT. It does not with row level security,
	// which it refuses, and in a session with another encoding, where a character may end in
	// the byte of a backslash or a tab.
	Copies bool
	// Lasts reports that other sessions see the table in this form too, now and later.
	Lasts bool
	// CutsTimes reports that the driver truncates times to microseconds, as pgx does. With
	// others, such as lib/pq, the server rounds.
	CutsTimes bool
}

// Array returns the format of arrays that stores times as the driver would.
func (t *Table) Array() Format {
	if t.CutsTimes {
		return Array
	}
	return ArrayOfNanos
}

// A Column is the type of a column that unnest and COPY can fill.
type Column struct {
	Name string // of the type, for a cast
	Type Type
	OID  int64 // of the type
}

// DescribeText is the query for a [Table]. Its result has no rows if the table does not exist, or
// if only VALUES can be relied on:
//
//   - A view, a foreign table and a table with rules may do anything with an INSERT. A rule may
//     run statements of its own with the rows.
//   - A transaction with a snapshot may see the table as it was before it was altered, while
//     COPY and INSERT use the present one. Most changes of a type give the table another file,
//     and pg_relation_filenode returns the present one.
//   - With array_nulls off, a NULL in an array is the text "NULL".
//
// It leaves out columns of these kinds:
//
//   - Domains and composite types, which some drivers treat like their parts, and ranges, which
//     are rare.
//   - Arrays, because unnest would take them apart into their elements, and box, because the
//     elements of box[] are separated by semicolons.
//   - Types with a modifier, as bit(3), because COPY passes the modifier to the type's input
//     function, while VALUES and unnest do not: their errors differ, and "interval minute to
//     second" reads '1:30' differently. Character types, numeric and timestamps are not
//     affected.
//   - Generated columns and GENERATED ALWAYS AS IDENTITY, which refuse the values of an INSERT.
//     COPY would fill the latter, while VALUES returns the error.
//
// format_type can leave out the length in two ways. With NULL for it, char(3) becomes "character",
// and a cast to character[] silently truncates every string to one byte. With -1 it becomes
// bpchar, which has no length, and the assignment to the column refuses long strings as it does
// with VALUES.
//
// The column for Lasts is false for a temporary table and for a column that the transaction itself
// has created or altered, which may be rolled back. A transaction without an ID has done neither.
// What a transaction writes has its ID, or a later one under a savepoint, and age counts back from
// the former.
//
// The last two parameters detect CutsTimes; the first is 600 ns after the second.
const DescribeText = `SELECT a.attname, pg_catalog.format_type(a.atttypid, -1), t.oid::bigint, t.typtype = 'e', ` +
	`NOT c.relrowsecurity AND pg_catalog.current_setting('client_encoding') IN ('UTF8', 'SQL_ASCII'), ` +
	`c.relpersistence <> 't' AND (pg_catalog.txid_current_if_assigned() IS NULL OR pg_catalog.age(a.xmin) > 0), ` +
	`CAST($2 AS timestamptz) = CAST($3 AS timestamptz), c.oid::bigint, ` +
	`(SELECT pg_catalog.format('%I.%I', n.nspname, c.relname) FROM pg_catalog.pg_namespace n WHERE n.oid = c.relnamespace) ` +
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

// Describe reads the table with the given name, which is quoted where SQL requires it. A table that
// does not exist has no columns. Errors of the database are returned unchanged.
func Describe(ctx context.Context, db dialect.Queryer, name string) (*Table, error) {
	t := &Table{Columns: map[string]Column{}, Lasts: true}
	err := dialect.Each(ctx, db, func(rows *sql.Rows) error {
		var column, typ string
		var oid int64
		var enum, lasts bool
		err := rows.Scan(&column, &typ, &oid, &enum, &t.Copies, &lasts, &t.CutsTimes, &t.OID, &t.Name)
		t.Lasts = t.Lasts && lasts
		t.Columns[column] = Column{typ, TypeOf(oid, enum), oid}
		return err
	}, DescribeText, DescribeArgs(name)...)
	return t, err
}

// WriteUnnest writes what follows the list of columns in an INSERT of arrays into the table called
// name, which is quoted where SQL requires it: SELECT unnest($1::bigint[]), … WHERE and the
// [Table.Guard]. bind writes the parameter of a column.
//
// The calls are in the select list, where they advance together, row by row. After FROM each would
// first be written to a table of its own, which takes a fifth more time.
func (t *Table) WriteUnnest(b *strings.Builder, name string, columns []string, bind func(column int)) {
	for i, c := range columns {
		b.WriteString([...]string{" SELECT unnest(", ", unnest("}[min(i, 1)])
		bind(i)
		b.WriteString("::" + t.Columns[c].Name + "[])")
	}
	b.WriteString(" WHERE " + t.Guard(name, columns))
}

// altered is what the server says when a Guard does not hold.
const altered = "snowkey: the table was altered"

// Guard returns a condition for a statement that casts to the types of t and inserts into the table
// called name, which is quoted where SQL requires it. It is true if the name still leads to t, and
// the columns still have those types; otherwise the server refuses the statement, with an error
// that matches [Altered].
//
// Without it, a value would be converted by a type that the column no longer has: date keeps no
// time of day, timestamp no zone, and char no spaces at the end. To read the types once more before
// each statement would cost a query, and prove less: they may change between the two, and a
// transaction that has a snapshot reads the catalog as it was. The server looks up the type of
// (NULL::t).c while it holds the lock for the insert, as it does for the insert itself, and a
// table exchanged for another one of its name has another OID.
func (t *Table) Guard(name string, columns []string) string {
	conditions := []string{fmt.Sprintf("CAST(pg_catalog.to_regclass('%s') AS oid) = %d", strings.ReplaceAll(name, "'", "''"), t.OID)}
	for _, c := range columns {
		conditions = append(conditions, fmt.Sprintf(`CAST(pg_catalog.pg_typeof((CAST(NULL AS %s))."%s") AS oid) = %d`, t.Name, c, t.Columns[c].OID))
	}
	return "CAST(CASE WHEN " + strings.Join(conditions, " AND ") + " THEN '1' ELSE '" + altered + "' END AS integer) = 1"
}

// Altered reports whether err, the error of a statement, comes from a Guard.
func Altered(err error) bool { return err != nil && strings.Contains(err.Error(), altered) }
