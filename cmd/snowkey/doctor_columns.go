package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"gorm.io/driver/mysql"
	"gorm.io/driver/postgres"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	"gorm.io/gorm/schema"

	"github.com/snowkey/snowkey/core/keysql"
	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/core/segment/sqlsegment"
	"github.com/snowkey/snowkey/core/serial/sqlserial"
	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/gormplugin/schemacheck"
	"github.com/snowkey/snowkey/types"
)

// column looks at a column of keys: what the findings say of its type, its ends, and who made the keys.
func (e *examination) column(ctx context.Context, c keyColumn, findings []schemacheck.Finding) error {
	usable, err := e.typeOf(c, findings)
	if err != nil || !usable {
		return err
	}
	first, last, some, err := e.ends(ctx, c)
	if err != nil || !some {
		return err
	}
	if err := e.span(c, first, last); err != nil {
		return err
	}
	if err := e.unique(ctx, c); err != nil {
		return err
	}
	return e.makers(ctx, c)
}

// unique counts the keys of several rows, unless an index of the column alone excludes them. It reads the
// whole table.
func (e *examination) unique(ctx context.Context, c keyColumn) error {
	table, column := e.quoted(c)
	schema, name := c.schema()
	var query string
	var args []any
	switch e.d.dialect {
	case keysql.PostgreSQL:
		query = "SELECT count(*) FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]" +
			" WHERE i.indrelid = to_regclass($1) AND a.attname = $2 AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indnkeyatts = 1"
		args = []any{table, c.column}
	case keysql.MySQL:
		query = "SELECT count(*) FROM (SELECT MAX(column_name) AS name FROM information_schema.statistics WHERE table_schema = COALESCE(NULLIF(?, ''), DATABASE()) AND table_name = ?" +
			" GROUP BY index_name HAVING MAX(non_unique) = 0 AND COUNT(*) = 1) AS single WHERE name = ?"
		args = []any{schema, name, c.column}
	case keysql.SQLite:
		query = "SELECT (SELECT count(*) FROM pragma_table_info(?1) WHERE name = ?2 COLLATE NOCASE AND pk = 1 AND (SELECT max(pk) FROM pragma_table_info(?1)) = 1)" +
			` + (SELECT count(*) FROM pragma_index_list(?1) AS l WHERE l."unique" AND NOT l.partial AND (SELECT count(*) = 1 AND max(name) = ?2 COLLATE NOCASE FROM pragma_index_info(l.name)))`
		args = []any{name, c.column}
	}
	var n, twice int64
	if err := e.d.QueryRowContext(ctx, query, args...).Scan(&n); err != nil || n > 0 {
		return e.d.hide(err)
	}
	if err := e.d.QueryRowContext(ctx, fmt.Sprintf("SELECT count(*) FROM (SELECT %[1]s FROM %[2]s GROUP BY %[1]s HAVING count(*) > 1) AS several", column, table)).Scan(&twice); err != nil {
		return e.d.hide(err)
	}
	if twice > 0 {
		return e.find(sick, c.name, fmt.Sprintf("%d keys are those of several rows each, and no unique index refuses them", twice),
			fmt.Sprintf("Give all rows but one a new key, with the rows that refer to them, and the column a unique index.\n  SELECT %[1]s, count(*) FROM %[2]s GROUP BY %[1]s HAVING count(*) > 1;", column, table))
	}
	return e.find(warning, c.name, "no unique index of the column alone refuses a key that repeats",
		fmt.Sprintf("Make it the primary key, or give it an index.\n  CREATE UNIQUE INDEX %s ON %s (%s);", e.d.dialect.Quote(name+"_"+c.column+"_key"), table, column))
}

// primaryKey returns the column that is the primary key of a table.
func (e *examination) primaryKey(ctx context.Context, table string) (string, error) {
	var all []string
	err := e.d.each(ctx, func(rows *sql.Rows) error {
		var name string
		err := rows.Scan(&name)
		all = append(all, name)
		return err
	}, map[keysql.Dialect]string{
		keysql.PostgreSQL: "SELECT a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey) WHERE i.indrelid = to_regclass(quote_ident($1)) AND i.indisprimary",
		keysql.MySQL:      "SELECT column_name FROM information_schema.statistics WHERE table_schema = DATABASE() AND table_name = ? AND index_name = 'PRIMARY'",
		keysql.SQLite:     "SELECT name FROM pragma_table_info(?) WHERE pk > 0",
	}[e.d.dialect], table)
	if err != nil {
		return "", err
	}
	if len(all) != 1 {
		return "", usagef("table %s: its primary key has %d columns, or it is not there: want a column such as %[1]s.id", table, len(all))
	}
	return all[0], nil
}

// everyKeyQueries return the tables and columns of primary keys that are one integer, with "", and of
// those of several columns, with "+"; those that a foreign key binds to a column, with the name of that
// one; and all integers of fewer than 64 bits, with "?". SQLite, whose integers all have 64 bits, has
// neither "+" nor "?".
var everyKeyQueries = map[keysql.Dialect]string{
	keysql.PostgreSQL: `WITH named AS (
	SELECT c.oid, CASE WHEN pg_table_is_visible(c.oid) THEN c.relname ELSE n.nspname || '.' || c.relname END AS name
	FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND n.nspname NOT LIKE 'pg\_%' AND n.nspname <> 'information_schema')
SELECT t.name, a.attname, CASE WHEN i.indnkeyatts = 1 THEN '' ELSE '+' END FROM pg_index i JOIN named t ON t.oid = i.indrelid
	JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY ((i.indkey::smallint[])[0:i.indnkeyatts - 1])
	WHERE i.indisprimary AND a.atttypid::regtype::text IN ('smallint', 'integer', 'bigint')
UNION ALL
SELECT t.name, a.attname, r.name || '.' || b.attname FROM pg_constraint k JOIN named t ON t.oid = k.conrelid JOIN named r ON r.oid = k.confrelid
	CROSS JOIN LATERAL unnest(k.conkey, k.confkey) AS pair (own, other)
	JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = pair.own JOIN pg_attribute b ON b.attrelid = k.confrelid AND b.attnum = pair.other
	WHERE k.contype = 'f' AND a.atttypid::regtype::text IN ('smallint', 'integer', 'bigint')
UNION ALL
SELECT t.name, a.attname, '?' FROM named t JOIN pg_attribute a ON a.attrelid = t.oid
	WHERE a.attnum > 0 AND NOT a.attisdropped AND a.atttypid::regtype::text IN ('smallint', 'integer')
ORDER BY 1, 2`,
	keysql.MySQL: `SELECT s.table_name, s.column_name, CASE WHEN EXISTS (SELECT 1 FROM information_schema.statistics o
	WHERE o.table_schema = s.table_schema AND o.table_name = s.table_name AND o.index_name = 'PRIMARY' AND o.seq_in_index = 2) THEN '+' ELSE '' END FROM information_schema.statistics s
	JOIN information_schema.columns c ON c.table_schema = s.table_schema AND c.table_name = s.table_name AND c.column_name = s.column_name
	WHERE s.table_schema = DATABASE() AND s.index_name = 'PRIMARY' AND c.data_type LIKE '%int'
UNION ALL
SELECT k.table_name, k.column_name, CONCAT(k.referenced_table_name, '.', k.referenced_column_name) FROM information_schema.key_column_usage k
	JOIN information_schema.columns c ON c.table_schema = k.table_schema AND c.table_name = k.table_name AND c.column_name = k.column_name
	WHERE k.table_schema = DATABASE() AND k.referenced_table_name IS NOT NULL AND c.data_type LIKE '%int'
UNION ALL
SELECT c.table_name, c.column_name, '?' FROM information_schema.columns c JOIN information_schema.tables t ON t.table_schema = c.table_schema AND t.table_name = c.table_name
	WHERE c.table_schema = DATABASE() AND t.table_type = 'BASE TABLE' AND c.data_type LIKE '%int' AND c.data_type <> 'bigint'
ORDER BY 1, 2`,
	keysql.SQLite: `SELECT m.name, p.name, '' FROM sqlite_master m, pragma_table_info(m.name) p
	WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite\_%' ESCAPE '\' AND p.pk = 1 AND p.type LIKE '%INT%' AND (SELECT max(pk) FROM pragma_table_info(m.name)) = 1
UNION ALL
SELECT m.name, f."from", f."table" || COALESCE('.' || f."to", '') FROM sqlite_master m, pragma_foreign_key_list(m.name) f, pragma_table_info(m.name) p
	WHERE m.type = 'table' AND p.name = f."from" AND p.type LIKE '%INT%'
ORDER BY 1, 2`,
}

// namedLikeReference matches column names that end as those of references do: order_id, orderId, orderID.
var namedLikeReference = regexp.MustCompile(`_(?i:id)$|[a-z0-9]I[dD]$`)

// everyKey looks at the types of all primary keys, and before them of what refers to them. Programs
// that declare no foreign keys have references too, which only their names show.
func (e *examination) everyKey(ctx context.Context) error {
	var keys, parts, references, named []keyColumn
	known, targets := map[string]bool{}, map[string]bool{}
	err := e.d.each(ctx, func(rows *sql.Rows) error {
		var c keyColumn
		var to string
		err := rows.Scan(&c.table, &c.column, &to)
		c.name = c.table + "." + c.column
		switch to {
		case "":
			keys = append(keys, c)
		case "+":
			parts = append(parts, c)
			return err
		case "?":
			named = append(named, c)
			return err
		default:
			references = append(references, c)
			references[len(references)-1].name += ", which refers to " + to
			targets[to] = true
		}
		known[c.name] = true
		return err
	}, everyKeyQueries[e.d.dialect])
	if err != nil {
		return err
	}
	// A line number is part of a key too, and no key by itself.
	parts = slices.DeleteFunc(parts, func(c keyColumn) bool { return known[c.name] || !targets[c.name] && !strings.EqualFold(c.column, "id") })
	for _, c := range parts {
		known[c.name] = true
	}
	named = slices.DeleteFunc(named, func(c keyColumn) bool { return known[c.name] || !namedLikeReference.MatchString(c.column) })
	for i := range named {
		named[i].name, named[i].guessed = named[i].name+", which is named like a reference", true
	}
	for i, c := range parts {
		parts[i].name, parts[i].guessed = c.name+", which is part of a primary key", !targets[c.name]
	}
	// The columns of the command line come first, because they are printed first.
	findings, err := e.compare(ctx, slices.Concat(e.columns, references, named, parts, keys))
	if err != nil {
		return err
	}
	before := e.found
	for _, group := range []struct {
		columns  []keyColumn
		problems []schemacheck.Problem
	}{
		{references, []schemacheck.Problem{schemacheck.NarrowColumn, schemacheck.WrongType}},
		{slices.Concat(named, parts), []schemacheck.Problem{schemacheck.NarrowColumn}},
		{keys, []schemacheck.Problem{schemacheck.NarrowColumn, schemacheck.WrongType, schemacheck.Counted}},
	} {
		for _, c := range group.columns {
			if _, err := e.typeOf(c, findings, group.problems...); err != nil {
				return err
			}
		}
	}
	mend := ""
	if e.found > before {
		mend = "Stop the programs that let the database count before you run statements that widen keys or end the counting: on MySQL and MariaDB one does both, and an insert without a key fails afterwards. On PostgreSQL the counters may stay until the new program has run for some days. Leave a column that is only named like a reference, if it holds no keys of these tables."
	}
	return e.find(note, "tables", fmt.Sprintf("primary keys that are one integer: %d; columns that refer to one: %d; narrow columns named so: %d", len(keys), len(references), len(named)), mend)
}

// A named table is one whose name is not that of its model.
type namedTable struct {
	schema.NamingStrategy
	name string
}

func (n namedTable) TableName(string) string { return n.name }

// compare asks package schemacheck about models that have the columns as their keys. It looks at all of
// them at once, because the statements of a finding may mend others, and then says so.
func (e *examination) compare(ctx context.Context, columns []keyColumn) ([]schemacheck.Finding, error) {
	dialector := map[keysql.Dialect]gorm.Dialector{
		keysql.PostgreSQL: postgres.New(postgres.Config{Conn: e.d.DB}),
		keysql.MySQL:      mysql.New(mysql.Config{Conn: e.d.DB}),
		keysql.SQLite:     sqlite.New(sqlite.Config{Conn: e.d.DB}),
	}[e.d.dialect]
	db, err := gorm.Open(dialector, &gorm.Config{Logger: logger.Discard})
	if err == nil {
		err = db.Use(gormplugin.New(gormplugin.SourceFunc(func(context.Context) (types.Snowflake, error) {
			return 0, errors.New("doctor makes no keys")
		})))
	}
	if err != nil {
		return nil, e.d.hide(err)
	}
	var models []any
	for _, c := range columns {
		unsigned, err := e.unsigned(ctx, c)
		if err != nil {
			return nil, e.d.hide(err)
		}
		key := reflect.StructField{
			Name: "ID", Type: reflect.TypeFor[types.Snowflake](),
			Tag: reflect.StructTag(fmt.Sprintf(`gorm:"primaryKey;autoIncrement:false;snowflake;column:%s" table:"%s"`, c.column, c.table)), // no two tables have one model
		}
		if unsigned {
			key.Type = reflect.TypeFor[uint64]()
		}
		model := reflect.New(reflect.StructOf([]reflect.StructField{key})).Interface()
		// Check gets the parsed model, with its table, from the cache of db.
		of := db.Session(&gorm.Session{NewDB: true})
		of.NamingStrategy = namedTable{name: c.table}
		if err := (&gorm.Statement{DB: of}).Parse(model); err != nil {
			return nil, err
		}
		models = append(models, model)
	}
	findings, err := schemacheck.Check(ctx, db, models...)
	return findings, e.d.hide(err)
}

// unsigned reports whether a column is unsigned, as GORM makes it of a uint. It holds every key, and
// keeps its sign when it is widened.
func (e *examination) unsigned(ctx context.Context, c keyColumn) (is bool, err error) {
	if e.d.dialect != keysql.MySQL {
		return false, nil
	}
	schema, table := c.schema()
	err = e.d.QueryRowContext(ctx, "SELECT count(*) FROM information_schema.columns WHERE table_schema = COALESCE(NULLIF(?, ''), DATABASE()) AND table_name = ? AND column_name = ? AND column_type LIKE '%unsigned%'",
		schema, table, c.column).Scan(&is)
	return is, err
}

// typeOf reports those of findings that are on c, each once. The column is not usable if it is missing,
// or not a number. If problems are named, others are left out.
func (e *examination) typeOf(c keyColumn, findings []schemacheck.Finding, problems ...schemacheck.Problem) (usable bool, err error) {
	usable = true
	for _, f := range findings {
		switch {
		case f.Table != "" && f.Table != c.table, f.Column != "" && f.Column != c.column:
			continue
		case len(problems) > 0 && !slices.Contains(problems, f.Problem), f.Problem == schemacheck.SharedTable: // of two columns of a table
			continue
		}
		s := warning
		switch f.Problem {
		case schemacheck.MissingTable, schemacheck.MissingColumn, schemacheck.WrongType:
			s, usable = sick, false
		case schemacheck.NarrowColumn:
			if !c.guessed {
				s = sick
			}
		case schemacheck.NoRowID, schemacheck.ExpressionIndex:
			s = note
		}
		told := fmt.Sprintf("%s.%s: %s: %s", c.table, c.column, f.Problem, f.Is)
		if e.told[told] {
			continue
		}
		e.told[told] = true
		reason := string(f.Problem)
		if f.Is != "" {
			reason += ": " + f.Is
		}
		if f.Want != "" {
			reason += "; want " + f.Want
		}
		mend := sqliteLines(f.Fix)
		if f.Problem == schemacheck.MissingTable || f.Problem == schemacheck.MissingColumn {
			mend = "Is the name right, and is it in this database? On PostgreSQL a schema stands before it."
		}
		if len(f.SQL) > 0 {
			mend = strings.TrimSpace(mend + "\n  " + strings.Join(f.SQL, ";\n  ") + ";")
		}
		if err := e.find(s, c.name, reason, mend); err != nil {
			return false, err
		}
	}
	return usable, nil
}

// quoted returns the table and the column as SQL.
func (e *examination) quoted(c keyColumn) (table, column string) {
	return e.d.dialect.Quote(c.table), e.d.dialect.Quote(c.column)
}

// ends returns the smallest and the greatest key, and whether there is one. A bad value is a finding.
func (e *examination) ends(ctx context.Context, c keyColumn) (first, last int64, some bool, err error) {
	table, column := e.quoted(c)
	// Two queries: each reads one end of an index on every database.
	for i, at := range []*int64{&first, &last} {
		var text sql.NullString
		query := fmt.Sprintf("SELECT %s(%s) FROM %s", []string{"min", "max"}[i], column, table)
		if err := e.d.QueryRowContext(ctx, query).Scan(&text); err != nil {
			return 0, 0, false, e.d.hide(err)
		}
		if !text.Valid {
			return 0, 0, false, nil
		}
		if *at, err = strconv.ParseInt(text.String, 10, 64); err != nil {
			return 0, 0, false, e.find(sick, c.name, fmt.Sprintf("its %s value is %.64q, which is no key", []string{"smallest", "greatest"}[i], text.String),
				fmt.Sprintf("Keys are whole numbers up to %d. Programs cannot read such a row.", int64(math.MaxInt64)))
		}
	}
	return first, last, true, nil
}

// span finds keys that are not of the layout, or not of the past.
func (e *examination) span(c keyColumn, first, last int64) error {
	table, column := e.quoted(c)
	l := e.layout()
	counted := int64(l.Min(l.Epoch.Add(24 * time.Hour)))
	limit := int64(l.Max(e.now.Add(time.Minute)))
	if first <= 0 {
		if err := e.find(sick, c.name, fmt.Sprintf("there is the key %d, and no generator makes one that is not above 0", first),
			fmt.Sprintf("Look at the rows, and give them keys.\n  SELECT * FROM %s WHERE %s <= 0;", table, column)); err != nil {
			return err
		}
	}
	switch {
	case last > limit:
		reason := fmt.Sprintf("the greatest key, %d, would be of %s, which is in the future", last, stamp(l.Parts(types.Snowflake(last)).Time))
		mend := fmt.Sprintf("If the layout is right, a clock was wrong, and new rows sort before these until then.\n  SELECT * FROM %s WHERE %s > %d;", table, column, limit)
		if fits := e.otherLayouts(first, last); len(fits) > 0 && !e.layoutNamed() && e.l == nil {
			mend = "The keys would fit the layout " + strings.Join(fits, ", or ") + ".\n" + mend
		} else if len(fits) > 0 {
			mend = "The keys would fit another layout, " + strings.Join(fits, ", or ") + ": two layouts in one table repeat keys.\n" + mend
		}
		return e.find(sick, c.name, reason, mend)
	case first > 0 && first < counted && last < counted:
		return e.find(warning, c.name, fmt.Sprintf("its keys, up to %d, were counted, and made by no generator", last), "A program stores rows without a key, or the plugin is not installed in it. If the table has just moved in, the next rows have longer keys.")
	case first > 0 && first < counted:
		return e.find(note, c.name, fmt.Sprintf("it has keys from %d on that were counted", first), "They stay valid, and generators never make them.")
	}
	return nil
}

// otherLayouts names the layouts in which keys are of a time between a day after the epoch and now.
func (e *examination) otherLayouts(first, last int64) (fits []string) {
	for i, l := range e.options.layout.values {
		if l != e.layout() && types.Snowflake(last) <= l.Max(e.now.Add(time.Minute)) && types.Snowflake(first) >= l.Min(l.Epoch.Add(24*time.Hour)) {
			fits = append(fits, e.options.layout.names[i])
		}
	}
	return fits
}

// newest is how many keys are looked at without -full, and how many a query returns.
const newest = 10_000

// A maker is a worker number with the keys that it made while it had no holder.
type maker struct {
	holderKey
	count int64
	last  types.Snowflake
}

// makers asks the leases about the worker numbers of the keys.
func (e *examination) makers(ctx context.Context, c keyColumn) error {
	if e.l == nil {
		return nil
	}
	table, column := e.quoted(c)
	l := e.layout()
	below := int64(l.Max(e.now.Add(time.Minute))) // later ones have been reported
	counted := int64(l.Min(l.Epoch.Add(24 * time.Hour)))
	of := int64(newest)
	if e.full {
		if err := e.d.QueryRowContext(ctx, "SELECT count(*) FROM "+table).Scan(&of); err != nil {
			return e.d.hide(err)
		}
	}
	p := newProgress(of, "keys of "+c.name)
	defer p.clear()
	unknown := map[holderKey]*maker{}
	for done := int64(0); done < of; {
		p.show(done)
		ids, err := e.page(ctx, fmt.Sprintf("SELECT %[1]s FROM %[2]s WHERE %[1]s <= %[3]d AND %[1]s >= %[4]d ORDER BY %[1]s DESC LIMIT %[5]d", column, table, below, counted, newest))
		if err != nil {
			return err
		}
		for _, id := range ids {
			parts := l.Parts(id)
			k := holderKey{parts.Datacenter, parts.Worker}
			spans, err := e.holders(ctx, k)
			if err != nil {
				return err
			}
			if len(at(spans, parts.Time, l.Unit)) > 0 {
				continue
			}
			if unknown[k] == nil {
				unknown[k] = &maker{holderKey: k, last: id}
			}
			unknown[k].count++
		}
		if len(ids) < newest {
			break
		}
		done += newest
		below = int64(ids[newest-1]) - 1
	}
	p.clear()
	for _, m := range slices.SortedFunc(maps.Values(unknown), func(a, b *maker) int {
		return cmp.Or(cmp.Compare(a.datacenter, b.datacenter), cmp.Compare(a.worker, b.worker))
	}) {
		if err := e.strange(ctx, c, *m); err != nil {
			return err
		}
	}
	return nil
}

func (e *examination) page(ctx context.Context, query string) (ids []types.Snowflake, err error) {
	err = e.d.each(ctx, func(rows *sql.Rows) error {
		var id types.Snowflake
		err := rows.Scan(&id)
		ids = append(ids, id)
		return err
	}, query)
	return ids, err
}

// strange reports the keys of a worker number that had no holder then.
func (e *examination) strange(ctx context.Context, c keyColumn, m maker) error {
	spans, err := e.holders(ctx, m.holderKey)
	if err != nil {
		return err
	}
	reason := fmt.Sprintf("%d keys, the last of them %d, are of worker %d of datacenter %d, which no lease had at their time", m.count, m.last, m.worker, m.datacenter)
	mend := "A program makes keys with a fixed number, or its leases are elsewhere, or the keys have another layout. Find it, because two with one number repeat keys."
	at := slices.IndexFunc(e.l.spaces, func(s leasestore.Space) bool { return s.Datacenter == m.datacenter })
	switch {
	case at < 0:
		mend += " No program with a lease in this store has the datacenter."
	case m.worker >= e.l.spaces[at].Workers:
		mend += " No lease gives this number out."
	case len(spans) == 0:
		mend += fmt.Sprintf("\nIf it must be fixed, keep the leases from giving it out:\n  snowkey workers -namespace %s -datacenter %d -reason 'who has it' retire %d", e.l.spaces[at].Namespace, m.datacenter, m.worker)
	default:
		mend += " Leases have had it at other times, the last one of " + spans[len(spans)-1].String() + "."
	}
	return e.find(warning, c.name, reason, mend)
}

// segment compares the row of a tag with the greatest number in a column.
func (e *examination) segment(ctx context.Context, c countedColumn) error {
	store, err := sqlsegment.New(e.d.DB, (&options{}).store(e.d.dialect))
	if err != nil {
		return e.d.hide(err)
	}
	rows, err := store.Rows(ctx)
	if err != nil {
		return e.d.notThere("segments", err)
	}
	at := slices.IndexFunc(rows, func(r segment.Row) bool { return r.Tag == c.name })
	if at < 0 {
		return fmt.Errorf("%w: %s", segment.ErrNoTag, c.name)
	}
	_, last, some, err := e.ends(ctx, c.keyColumn)
	if err != nil || !some {
		return err
	}
	if row := rows[at]; row.After(last) > row.Next {
		return e.find(sick, c.keyColumn.name, fmt.Sprintf("the greatest number is %d, and the tag %s will give numbers up to it again", last, c.name),
			fmt.Sprintf("Raise the row above the column.\n  snowkey segments move %s %s", c.name, c.keyColumn.name))
	}
	return nil
}

// serial compares the counters of a series with the texts in a column.
func (e *examination) serial(ctx context.Context, c countedColumn) error {
	store, err := sqlserial.New(e.d.DB, (&options{}).store(e.d.dialect))
	if err != nil {
		return e.d.hide(err)
	}
	series, err := store.Lookup(ctx, c.name)
	if err != nil {
		return e.d.notThere("counters", err)
	}
	// numbers reads the texts: per period the numbers, and those that are no number of the series.
	numbers := func() (of map[string][]int64, bad []string, err error) {
		table, column := e.quoted(c.keyColumn)
		of = map[string][]int64{}
		err = e.d.each(ctx, func(rows *sql.Rows) error {
			var text string
			if err := rows.Scan(&text); err != nil {
				return err
			}
			if n, err := series.Parse(text); err != nil {
				bad = append(bad, text)
			} else {
				of[n.Period] = append(of[n.Period], n.N)
			}
			return nil
		}, fmt.Sprintf("SELECT %[1]s FROM %[2]s WHERE %[1]s IS NOT NULL", column, table))
		for _, all := range of {
			slices.Sort(all)
		}
		return of, bad, err
	}
	all, bad, err := numbers()
	if err != nil {
		return err
	}
	if len(bad) > 0 {
		if err := e.find(warning, c.keyColumn.name, fmt.Sprintf("%d texts, such as %.64q, are no numbers of the series %s", len(bad), bad[0], c.name), "Another program has written them, or the series is another one."); err != nil {
			return err
		}
	}
	counters, err := store.Rows(ctx)
	if err != nil {
		return e.d.hide(err)
	}
	for _, row := range counters {
		if row.Series == c.name && row.Counted && all[row.Period] == nil {
			all[row.Period] = []int64{}
		}
	}
	for _, period := range slices.Sorted(maps.Keys(all)) {
		// Gaps reads the counter first, and the texts after it, so that what is stored meanwhile is
		// not missing.
		var failed error
		gaps, err := store.Gaps(ctx, c.name, period, func(yield func(int64) bool) {
			now, _, err := numbers()
			failed = err
			for _, n := range now[period] {
				if !yield(n) {
					return
				}
			}
		})
		if err := cmp.Or(failed, err); err != nil {
			return e.d.hide(err)
		}
		if err := e.gaps(c, period, gaps); err != nil {
			return err
		}
	}
	return nil
}

// gaps reports what is wrong with the numbers of a period.
func (e *examination) gaps(c countedColumn, period string, gaps []sqlserial.Gap) error {
	of := "the series " + c.name
	if period != "" {
		of = "the period " + period + " of " + of
	}
	mends := map[sqlserial.Kind]string{
		sqlserial.Missing:  "A row was deleted, or the number is in another table, or the transaction of a fast series was lost. Auditors ask why.",
		sqlserial.Repeated: "Find out which row is right. A unique index on the column refuses the second one.",
		sqlserial.Foreign:  fmt.Sprintf("The counter will give these numbers again, as after a restore. Stop the programs of the series, and raise it above them.\n  snowkey serials -reason 'numbers on paper' raise %s", c.name),
	}
	for _, kind := range slices.Sorted(maps.Keys(mends)) {
		mend := mends[kind]
		var spans []string
		greatest := int64(0)
		for _, g := range gaps {
			if g.Kind == kind {
				spans = append(spans, strings.TrimSuffix(fmt.Sprintf("%d-%d", g.First, g.Last), fmt.Sprintf("-%d", g.First)))
				greatest = max(greatest, g.Last)
			}
		}
		if len(spans) == 0 {
			continue
		}
		if kind == sqlserial.Foreign {
			mend = strings.TrimRight(mend+" "+period, " ") + " " + strconv.FormatInt(greatest, 10)
		}
		if more := len(spans) - 10; more > 0 {
			spans = append(spans[:10], fmt.Sprintf("and %d more", more))
		}
		s := sick
		if kind == sqlserial.Missing {
			s = warning
		}
		if err := e.find(s, c.keyColumn.name, fmt.Sprintf("numbers of %s are %s: %s", of, strings.ToLower(kind.String()), strings.Join(spans, ", ")), mend); err != nil {
			return err
		}
	}
	return nil
}
