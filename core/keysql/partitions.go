package keysql

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/snowkey/snowkey/types"
)

// Partitions writes the statements that divide a table by the time of its keys, on PostgreSQL and
// MySQL. [Column.Partitions] creates it; the zero value is not usable. It is immutable and safe
// for concurrent use. Bounds come from the layout, never from arithmetic in SQL.
//
// On PostgreSQL the table is made with PARTITION BY RANGE (id), or by [Partitions.Convert] from
// one that is there. Every partition is a table, and a key that no partition holds is an error
// for its writer. On MySQL the first [Partitions.Create] divides the table, and a last partition,
// pmax, holds the keys after the others.
//
// Every unique index of the table must contain the key. MySQL has no foreign keys from or to a
// table with partitions.
type Partitions struct {
	column Column
	table  string
	every  Period
	zone   *time.Location
}

// A Partition is a range of keys.
type Partition struct {
	Name        string          // such as orders_p202605, and p202605 on MySQL
	From, Until time.Time       // a half-open span of time, in the zone
	First, Last types.Snowflake // its keys, as core.Layout.Between
}

// maxPartitions is MySQL's limit. PostgreSQL has none, and plans slowly long before.
const maxPartitions = 8192

// checkCount returns a *core.ValueError for a number of partitions out of range.
func checkCount(name string, n, least int) error {
	if n < least || n > maxPartitions {
		return invalid(name, strconv.Itoa(n), fmt.Sprintf("%d..%d", least, maxPartitions))
	}
	return nil
}

// Partitions returns the Partitions of a table whose key is the Column: one for each period in
// the civil time of a zone, such as a day in Berlin, which has 23, 24 or 25 hours.
//
// It returns a [*core.ValueError] for a period that is not one of the constants, a nil zone, a
// dialect other than PostgreSQL and MySQL, a table or column whose name is empty or contains one
// of the characters ' " ` \ $, and a table whose name is so long that PostgreSQL would cut those
// of its partitions.
func (c Column) Partitions(table string, every Period, zone *time.Location) (Partitions, error) {
	none := Partitions{}
	if every < Hour || every > Year {
		return none, invalid("period", every.String(), "Hour, Day, Week, Month or Year")
	}
	if zone == nil {
		return none, invalid("zone", "nil", "a time.Location, such as time.UTC")
	}
	parts := strings.Split(table, ".")
	for _, part := range append(parts, c.name) {
		if part == "" || strings.ContainsAny(part, `'\$`) || part != c.name && strings.ContainsAny(part, "\"`\x00") {
			return none, invalid("table or column name", strconv.Quote(part), "a name without any of ' \" ` \\ $")
		}
	}
	if len(parts) > 2 {
		return none, invalid("table name", strconv.Quote(table), "a name such as orders or shop.orders")
	}
	switch c.dialect {
	case MySQL:
	case PostgreSQL:
		longest := Hour.name(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
		if most := 63 - len("_p"+longest); len(parts[len(parts)-1]) > most {
			return none, invalid("table name", strconv.Quote(table), fmt.Sprintf("at most %d bytes, so that the names of partitions fit", most))
		}
	default:
		return none, invalid("dialect", "one without partitions", "PostgreSQL or MySQL")
	}
	return Partitions{c, table, every, zone}, nil
}

// List returns the partitions of a span of time, from the one that contains from to the one that
// contains the last moment before until. They have no gap and no overlap, and their names sort as
// they do. Parts of the span that are outside the layout have none.
//
// It returns a [*core.ValueError] for a span that ends before it begins, for one of more than
// 8,192 partitions, and for times after the year 9999.
func (p Partitions) List(from, until time.Time) ([]Partition, error) {
	if until.Before(from) {
		return nil, invalid("span", from.Format(time.RFC3339)+" to "+until.Format(time.RFC3339), "an end that is not before the beginning")
	}
	if until.UTC().Year() > 9998 {
		return nil, invalid("end of the span", until.Format(time.RFC3339), "a time before the year 9999")
	}
	if from.Before(p.column.layout.Epoch) {
		from = p.column.layout.Epoch
	}
	var list []Partition
	civil := p.every.civilAt(from, p.zone)
	for begin := start(civil, p.zone); begin.Before(until); {
		next := p.every.add(civil, 1)
		end := start(next, p.zone)
		// Empty if the clocks skip the period, or the layout has ended.
		if first, last := p.column.layout.Between(begin, end); first <= last {
			if len(list) == maxPartitions {
				return nil, invalid("span", from.Format(time.RFC3339)+" to "+until.Format(time.RFC3339),
					fmt.Sprintf("at most %d partitions: a shorter span or a longer period", maxPartitions))
			}
			list = append(list, Partition{p.prefix() + p.every.name(civil), begin, end, first, last})
		} else if begin.After(p.column.layout.Epoch) && begin.Before(end) {
			break
		}
		civil, begin = next, end
	}
	return list, nil
}

// prefix is what the names of partitions begin with: tables on PostgreSQL share one name space.
func (p Partitions) prefix() string {
	if p.postgreSQL() {
		return p.table[strings.LastIndexByte(p.table, '.')+1:] + "_p"
	}
	return "p"
}

func (p Partitions) postgreSQL() bool { return p.column.dialect == PostgreSQL }

// quoted is the table.
func (p Partitions) quoted() string { return p.column.dialect.Quote(p.table) }

// sibling quotes the name of a table beside the table, as partitions on PostgreSQL are.
func (p Partitions) sibling(name string) string {
	return p.column.dialect.Quote(p.table[:strings.LastIndexByte(p.table, '.')+1] + name)
}

// key is the column without its table.
func (p Partitions) key() string {
	return p.column.name[strings.LastIndexByte(p.column.name, '.')+1:]
}

// after returns the first bound after a key. The last key of 63 bits has none.
func after(last types.Snowflake) string {
	if last == math.MaxInt64 {
		return "MAXVALUE"
	}
	return strconv.FormatInt(int64(last)+1, 10)
}

// An Existing is a row of the query that [Partitions.Existing] returns.
type Existing struct {
	Name        string
	From, Until string // bounds, as the database shows them
}

// Existing returns a query for the partitions that the table has. It takes no parameters, and its
// columns are the fields of an [Existing], all text. On MySQL it also finds the foreign keys that
// exclude partitions.
func (p Partitions) Existing() string {
	schema, table, qualified := strings.Cut(p.table, ".")
	if p.postgreSQL() {
		bound := func(word string) string {
			return fmt.Sprintf(`coalesce(substring(b FROM '%s \(''?([^'')]+)'), '')`, word)
		}
		return fmt.Sprintf(`SELECT c.relname::text, %s, %s
FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid, pg_get_expr(c.relpartbound, c.oid) AS b
WHERE i.inhparent = '%s'::regclass ORDER BY c.relname`, bound("FROM"), bound("TO"), p.quoted())
	}
	if !qualified {
		schema, table = "DATABASE()", schema
	} else {
		schema = "'" + schema + "'"
	}
	return fmt.Sprintf(`SELECT partition_name, '', partition_description FROM (
SELECT partition_name, partition_description, partition_ordinal_position AS n FROM information_schema.partitions
WHERE table_schema = %[1]s AND table_name = '%[2]s' AND partition_name IS NOT NULL
UNION ALL
SELECT CONCAT(constraint_schema, '.', table_name, '.', constraint_name), '%[3]s', 0 FROM information_schema.referential_constraints
WHERE constraint_schema = %[1]s AND table_name = '%[2]s' OR unique_constraint_schema = %[1]s AND referenced_table_name = '%[2]s'
) AS existing ORDER BY n`, schema, table, foreignKey)
}

const foreignKey = "FOREIGN KEY"

// A held range of keys has a partition already.
type held struct {
	name        string
	first, last int64
	rest        bool // holds what no other does: DEFAULT on PostgreSQL, pmax on MySQL
}

// read takes rows of the query apart, and refuses what this Partitions cannot have made.
func (p Partitions) read(existing []Existing) ([]held, error) {
	var all []held
	next := int64(math.MinInt64)
	for _, e := range existing {
		h := held{name: e.Name, first: next, last: math.MaxInt64}
		switch {
		case e.Until == foreignKey:
			return nil, invalid("foreign key", e.Name, "none from or to "+p.table+", because MySQL divides no table that has one: drop it, or leave the table whole")
		case p.postgreSQL() && e.From == "" && e.Until == "", !p.postgreSQL() && e.Until == "MAXVALUE":
			h.rest = true
			all = append(all, h)
			continue
		}
		var err error
		if p.postgreSQL() {
			if h.first, err = p.bound(e.Name, e.From); err != nil {
				return nil, err
			}
		}
		if e.Until != "MAXVALUE" {
			until, err := p.bound(e.Name, e.Until)
			if err != nil {
				return nil, err
			}
			h.last, next = until-1, until
		}
		all = append(all, h)
	}
	return all, nil
}

// bound reads a bound, which must be the beginning of an hour in the zone. That of another layout
// is one only by chance, and so is one from arithmetic by hand.
func (p Partitions) bound(name, text string) (int64, error) {
	if text == "MINVALUE" {
		return math.MinInt64, nil
	}
	l := p.column.layout
	n, err := strconv.ParseInt(text, 10, 64)
	if err == nil && n == int64(l.Max(l.Exhausted()))+1 {
		return n, nil
	}
	if err == nil && n >= 0 && n <= int64(l.Max(l.Exhausted())) {
		tick := l.Parts(types.Snowflake(n)).Time
		hour := start(Hour.civilAt(tick.Add(l.Unit-1), p.zone), p.zone)
		if int64(l.Min(hour)) == n {
			return n, nil
		}
	}
	return 0, invalid("bound of the partition "+name, strconv.Quote(text), "the beginning of an hour in "+p.zone.String()+
		" as a key: the table has keys of another layout, or bounds made by hand or for another zone")
}
