package keysql

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/snowkey/snowkey/core"
)

// Functions returns the statements that install functions for the keys of a layout on PostgreSQL
// and MySQL, so that people who read tables need no arithmetic:
//
//   - id_time(id): when the key was made, to the tick
//   - id_worker(id), id_sequence(id), for a layout with datacenters id_datacenter(id), and for one
//     with shards id_shard(id)
//   - id_min(t), id_max(t): the smallest and the largest key of the tick that contains a time, as
//     core.Layout.Min and Max; a time outside the layout counts as its first or last tick
//
// NULL gives NULL everywhere. A condition such as
//
//	id >= id_min(now() - interval '1 day')
//
// uses the index of the key and skips partitions. MySQL, unlike MariaDB, plans without the values
// of functions, and reads the whole table unless the call is in a subquery that aggregates:
//
//	id >= (SELECT max(id_min('2026-05-04')))
//
// id_time(id) >= t selects the same rows, but reads the whole table on every database, and so
// does a condition with any other function of id.
//
// Times are a timestamptz on PostgreSQL, where the session's time zone completes a text without
// one, and a DATETIME(6) in UTC on MySQL, where UTC_TIMESTAMP(6) is the present. MySQL with a
// binary log wants log_bin_trust_function_creators, or the privilege SUPER, for CREATE FUNCTION.
//
// The functions are in the given schema, or in the first of the search path (on MySQL, in the
// current database) if it is "". Functions of these names are replaced, so tables with keys of
// two layouts need two schemas. Running the statements again changes nothing.
//
// It returns a [*core.ValueError] for SQLite and the warehouses, which have no functions in SQL,
// for a layout that [New] refuses, and for a schema with a dot or a quotation mark.
func Functions(d Dialect, l core.Layout, schema string) ([]string, error) {
	id, err := New(d, l, "id")
	if err != nil {
		return nil, err
	}
	if d != PostgreSQL && d != MySQL {
		return nil, invalid("dialect", d.String(), "PostgreSQL or MySQL; elsewhere use View")
	}
	if schema != "" {
		if err := checkName("schema", schema); err != nil {
			return nil, err
		}
		schema = d.Quote(schema) + "."
	}
	layout := fmt.Sprintf("keys with %d bits of time in ticks of %v since %s, %d of datacenter, %d of worker and %d of sequence",
		l.TimeBits, l.Unit, l.Epoch.UTC().Format(time.RFC3339Nano), l.DatacenterBits, l.WorkerBits, l.SequenceBits)
	if l.ShardBits > 0 {
		layout += fmt.Sprintf(", the last %d of shard", l.ShardBits)
	}
	key, moment, fast := "bigint", "timestamptz", "id >= id_min(t)"
	if d == MySQL {
		key, moment, fast = "BIGINT", "DATETIME(6)", "id >= (SELECT max(id_min(t)))"
	}
	slow := ". A condition on it reads the whole table, " + fast + " uses the index. For " + layout
	fast = ". " + fast + " uses the index of id. For " + layout
	first, low := id.first("at"), int64(1)<<id.timeShift()-1
	functions := []function{
		{"id_time", "id", key, moment, id.exactTime(), "When the key was made" + slow},
		{"id_worker", "id", key, key, id.Worker(), "The worker that made the key" + slow},
		{"id_sequence", "id", key, key, id.Sequence(), "The number of the key among those of its worker in the tick" + slow},
		{"id_min", "at", moment, key, first, "The smallest key of the tick of a time" + fast},
		{"id_max", "at", moment, key, fmt.Sprintf("(%s) + %d", first, low), "The largest key of the tick of a time" + fast},
	}
	if l.DatacenterBits > 0 {
		functions = append(functions, function{"id_datacenter", "id", key, key, id.Datacenter(), "The datacenter of the key" + slow})
	}
	if l.ShardBits > 0 {
		functions = append(functions, function{"id_shard", "id", key, key, id.Shard(), "The shard of the key" + slow})
	}
	var statements []string
	for _, f := range functions {
		f.name = schema + d.Quote(f.name)
		f.parameter = d.Quote(f.parameter)
		if d == PostgreSQL {
			statements = append(statements, f.postgreSQL()...)
		} else {
			statements = append(statements, f.mySQL()...)
		}
	}
	return statements, nil
}

// A function of a key or a time.
type function struct{ name, parameter, takes, returns, value, comment string }

// postgreSQL declares every function IMMUTABLE, because each is one: what PostgreSQL calls STABLE
// in the arithmetic of timestamptz are days and months in the session's time zone, and so the
// functions take a time to UTC, which no setting changes, before they take it apart.
//
// The planner then puts the expression in the place of a call, and id_min of a literal is a
// literal for it, with which it chooses partitions. It does not so for a function that is STRICT.
// Where the argument is a subquery the call stays, and a VOLATILE one would not use the index.
func (f function) postgreSQL() []string {
	return []string{
		fmt.Sprintf("CREATE OR REPLACE FUNCTION %s(%s %s) RETURNS %s\nLANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$\nSELECT %s\n$$",
			f.name, f.parameter, f.takes, f.returns, f.value),
		fmt.Sprintf("COMMENT ON FUNCTION %s(%s) IS '%s'", f.name, f.takes, f.comment),
	}
}

// mySQL drops a function first, because MySQL cannot replace one. DETERMINISTIC lets MariaDB use
// the value of a call when it plans, and both compute it once per query.
func (f function) mySQL() []string {
	return []string{
		"DROP FUNCTION IF EXISTS " + f.name,
		fmt.Sprintf("CREATE FUNCTION %s(%s %s) RETURNS %s\nDETERMINISTIC NO SQL SQL SECURITY INVOKER COMMENT '%s'\nRETURN %s",
			f.name, f.parameter, f.takes, f.returns, f.comment, f.value),
	}
}

// exactTime is Time, exact for as long as the database has times. PostgreSQL multiplies an
// interval by a float, which holds whole seconds for 18,000 years, and microseconds for 285.
func (c Column) exactTime() string {
	l := c.layout
	if c.dialect != PostgreSQL {
		return c.Time()
	}
	micros := scale(fmt.Sprintf("(%s >> %d)", c.name, c.timeShift()), l.Unit, time.Microsecond, "")
	return fmt.Sprintf("(timestamp '%s' + (%s / 1000000) * interval '1 second' + (%s %% 1000000) * interval '1 microsecond') AT TIME ZONE 'UTC'",
		moment(l.Epoch), micros, micros)
}

// first is Min of a parameter. On PostgreSQL it gives NULL for NULL, also takes infinity, and is
// exact on version 13, where extract returns a float, because it takes whole seconds alone.
func (c Column) first(at string) string {
	l := c.layout
	if c.dialect != PostgreSQL {
		return c.Min("`" + at + "`")
	}
	end := "infinity"
	if t := l.Exhausted(); t.Unix() < postgreSQLEnd {
		end = moment(t) + "Z"
	}
	since := fmt.Sprintf("(extract(epoch FROM date_trunc('second', %[1]q AT TIME ZONE 'UTC'))::bigint * 1000000 + extract(microseconds FROM %[1]q AT TIME ZONE 'UTC')::bigint %% 1000000 - %[2]d)",
		at, l.Epoch.UnixMicro())
	return fmt.Sprintf("CASE WHEN %[1]q < timestamptz '%[2]sZ' THEN 0 WHEN %[1]q >= timestamptz '%[3]s' THEN %[4]d ELSE %[5]s END << %[6]d",
		at, moment(l.Epoch), end, int64(1)<<l.TimeBits-1, scale(since, time.Microsecond, l.Unit, "/"), c.timeShift())
}

// postgreSQLEnd is when times end on PostgreSQL: before the year 294276.
const postgreSQLEnd = 9_200_000_000_000

// View returns the statements that make a view of a table with the parts of its keys before its
// own columns: id_time, as [Column.Time] returns it, id_worker, id_sequence, and for a layout
// with datacenters id_datacenter. The Column must be one of the table, such as id.
//
// A condition on the key uses its index through the view. A condition on id_time and the others
// reads the whole table. The view has the columns that the table has now; run the statements
// again after a change of the table. A view of that name is replaced.
//
// On PostgreSQL a view reads the table as the view's owner, row security included; from version
// 15 on, ALTER VIEW … SET (security_invoker = true) lets it read as the user.
//
// It returns a [*core.ValueError] for a name that is empty or contains a quotation mark, and
// for the dialects of warehouses.
func (c Column) View(name, table string) ([]string, error) {
	for _, n := range [...]struct{ what, name string }{{"view name", name}, {"table name", table}} {
		for part := range strings.SplitSeq(n.name, ".") {
			if err := checkName(n.what, part); err != nil {
				return nil, err
			}
		}
	}
	d, create := MySQL, []string{"CREATE OR REPLACE VIEW "}
	switch c.dialect {
	case PostgreSQL:
		d = PostgreSQL
	case MySQL:
		create[0] = "CREATE OR REPLACE SQL SECURITY INVOKER VIEW "
	case SQLite: // which takes backticks too
		create = []string{"DROP VIEW IF EXISTS " + d.Quote(name), "CREATE VIEW "}
	default:
		return nil, invalid("dialect", "that of a warehouse", "SQLite, PostgreSQL or MySQL")
	}
	columns := []string{c.exactTime() + " AS id_time", c.Worker() + " AS id_worker", c.Sequence() + " AS id_sequence"}
	if c.layout.DatacenterBits > 0 {
		columns = append(columns, c.Datacenter()+" AS id_datacenter")
	}
	if c.layout.ShardBits > 0 {
		columns = append(columns, c.Shard()+" AS id_shard")
	}
	last := len(create) - 1
	create[last] += fmt.Sprintf("%s AS\nSELECT %s, %s.*\nFROM %s", d.Quote(name), strings.Join(columns, ", "),
		d.Quote(table[strings.LastIndexByte(table, '.')+1:]), d.Quote(table))
	return create, nil
}

// checkName returns a *core.ValueError for a name that cannot be quoted or has a dot.
func checkName(what, name string) error {
	if name == "" || strings.ContainsAny(name, ".\"`\x00") {
		return invalid(what, strconv.Quote(name), "a name without quotation marks")
	}
	return nil
}
