package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"time"
)

const (
	rowBatch  = 1_000
	rowRounds = 3
	identity  = "identity" // keys that the database makes
	note      = "'order number 123456'"
)

// rowKinds are the keys of rows, by the names of their ways.
var rowKinds = []struct{ name, title string }{
	{"uuid-v4", "UUID, version 4"},
	{"uuid-v7", "UUID, version 7"},
	{identity, "identity, `AUTO_INCREMENT`"},
	{"snowflake-fixed", "**Snowflake**"},
}

// A table has a key of one kind, one or five columns with an index each, and a note.
type table struct {
	*servers
	*database
	name, kind string
	parents    []key // what the five columns refer to; nil: there is one, a number
}

// measureRows inserts n rows into a new table, a quarter of n into a table with five foreign
// keys, and a tenth into a table of 5n rows, which is larger than its server's memory.
func measureRows(ctx context.Context, s *servers, n int, out io.Writer) error {
	all, err := rowKeys(ctx, s, 5*n+rowRounds*n/10)
	if err != nil {
		return err
	}
	for _, db := range []*database{s.postgres, s.mariaDB} {
		for range rowRounds {
			for kind, keys := range all { // in random order
				if err := measureNew(ctx, s, db, kind, keys[:n], out); err != nil {
					return fmt.Errorf("%s: %s: %w", db.name, kind, err)
				}
			}
		}
		if err := measureLarge(ctx, s, db, all, 5*n, n/10, out); err != nil {
			return fmt.Errorf("%s, larger than memory: %w", db.name, err)
		}
	}
	return nil
}

// rowKeys makes n keys of each kind. Those of identity are what the database will make.
func rowKeys(ctx context.Context, s *servers, n int) (map[string][]key, error) {
	numbers := make([]key, n)
	for i := range numbers {
		numbers[i].number = int64(i) + 1
	}
	all := map[string][]key{identity: numbers}
	for _, w := range ways() {
		for _, kind := range rowKinds {
			if w.name != kind.name {
				continue
			}
			take, end, err := w.open(ctx, s)
			if err != nil {
				return nil, err
			}
			all[w.name] = make([]key, n)
			if err := errors.Join(take(ctx, all[w.name]), end(ctx)); err != nil {
				return nil, fmt.Errorf("%s: %w", w.name, err)
			}
		}
	}
	return all, nil
}

// measureNew inserts rows into new tables.
func measureNew(ctx context.Context, s *servers, db *database, kind string, keys []key, out io.Writer) error {
	half, quarter := len(keys)/2, len(keys)/4
	orders := &table{s, db, "orders", kind, nil}
	parents := &table{s, db, "parents", kind, nil}
	children := &table{s, db, "children", kind, keys[:half]}
	for _, step := range []struct {
		table *table
		keys  []key
		out   io.Writer
		name  string
	}{{orders, keys, out, "Rows"}, {parents, keys[:half], io.Discard, ""}, {children, keys[half:][:quarter], out, "References"}} {
		if err := step.table.create(ctx); err != nil {
			return err
		}
		if err := step.table.insert(ctx, step.name, step.keys, step.out); err != nil {
			return err
		}
	}
	_, err := db.ExecContext(ctx, "DROP TABLE orders, children, parents")
	return err
}

// measureLarge fills tables while there is memory, and inserts more with little of it.
func measureLarge(ctx context.Context, s *servers, db *database, all map[string][]key, filled, more int, out io.Writer) error {
	var tables []*table
	for kind, keys := range all {
		t := &table{s, db, "large_" + strings.ReplaceAll(kind, "-", "_"), kind, nil}
		if err := t.create(ctx); err != nil {
			return err
		}
		if err := t.insert(ctx, "", keys[:filled], io.Discard); err != nil {
			return err
		}
		tables = append(tables, t)
	}
	if err := db.restart(ctx); err != nil {
		return err
	}
	for round := range rowRounds {
		rand.Shuffle(len(tables), func(i, j int) { tables[i], tables[j] = tables[j], tables[i] })
		for _, t := range tables {
			if err := t.insert(ctx, "Large", all[t.kind][filled+round*more:][:more], out); err != nil {
				return err
			}
		}
	}
	return nil
}

// types are those of a key, of the columns besides it, and of the keys that the database
// makes.
func (t *table) types() (key, column, made string) {
	uuid, made := "BINARY(16)", "BIGINT AUTO_INCREMENT"
	if t.database == t.postgres {
		uuid, made = "UUID", "BIGINT GENERATED ALWAYS AS IDENTITY"
	}
	key, column = "BIGINT", "BIGINT"
	if strings.HasPrefix(t.kind, "uuid") {
		key = uuid
	}
	if t.parents != nil {
		column = key
	}
	return key, column, made
}

// columns are the names of the indexed ones besides the key.
func (t *table) columns() []string {
	if t.parents == nil {
		return []string{"customer"}
	}
	return []string{"customer", "seller", "product", "shop", "parcel"}
}

func (t *table) create(ctx context.Context) error {
	key, column, made := t.types()
	if t.kind == identity {
		key = made
	}
	column += " NOT NULL"
	if t.parents != nil {
		column += " REFERENCES parents (id)"
	}
	texts := []string{fmt.Sprintf("CREATE TABLE %s (id %s PRIMARY KEY, %s %s, note VARCHAR(40) NOT NULL)",
		t.name, key, strings.Join(t.columns(), " "+column+", "), column)}
	for _, c := range t.columns() {
		texts = append(texts, fmt.Sprintf("CREATE INDEX %[1]s_%[2]s ON %[1]s (%[2]s)", t.name, c))
	}
	for _, text := range texts {
		if _, err := t.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

// insert inserts rows, and reports under a name what that took. What it sends is in the
// form of the wire before the time begins.
func (t *table) insert(ctx context.Context, name string, keys []key, out io.Writer) error {
	text, bind := t.statement()
	random := rand.New(rand.NewPCG(1, 1)) // the same columns for each kind
	var batches [][]any
	for len(keys) > 0 {
		n := min(rowBatch, len(keys))
		columns := [][]key{keys[:n]}
		for range t.columns() {
			column := make([]key, n)
			for i := range column {
				if t.parents == nil {
					column[i].number = 1 + random.Int64N(10_000)
				} else {
					column[i] = t.parents[random.IntN(len(t.parents))]
				}
			}
			columns = append(columns, column)
		}
		if t.kind == identity {
			columns = columns[1:]
		}
		batches = append(batches, bind(columns))
		keys = keys[n:]
	}
	used, began := t.cpu(t.database.name), time.Now()
	for _, args := range batches {
		if err := t.send(ctx, text, args); err != nil {
			return err
		}
	}
	took := time.Since(began)
	used = t.cpu(t.database.name) - used
	table, index, err := t.size(ctx)
	if err != nil {
		return err
	}
	n := float64(len(batches) * rowBatch)
	_, err = fmt.Fprintf(out, "Benchmark%s/%s/%s %.0f %.0f ns/op %.0f rows/s %.2f server-µs/row %.1f table-MB %.1f index-MB\n",
		name, t.database.name, t.kind, n, float64(took.Nanoseconds())/n, n/took.Seconds(), float64(used.Microseconds())/n, table/1e6, index/1e6)
	return err
}

// send inserts a batch. PostgreSQL returns the keys that it has made, and MariaDB the first
// of them.
func (t *table) send(ctx context.Context, text string, args []any) (err error) {
	rows, err := t.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var made int64
		if err := rows.Scan(&made); err != nil {
			return err
		}
	}
	return rows.Err()
}

// statement returns the INSERT of a batch, and what makes its arguments of columns: arrays
// for PostgreSQL, and values one by one for MariaDB.
func (t *table) statement() (text string, bind func([][]key) []any) {
	names := append([]string{"id"}, t.columns()...)
	if t.kind == identity {
		names = names[1:]
	}
	insert := fmt.Sprintf("INSERT INTO %s (%s, note) ", t.name, strings.Join(names, ", "))
	if t.database == t.mariaDB {
		row := "(" + strings.Repeat("?,", len(names)) + note + ")"
		return insert + "VALUES " + row + strings.Repeat(","+row, rowBatch-1), valuesOf
	}
	key, column, _ := t.types()
	var arrays []string
	for i, name := range names {
		kind := column
		if name == "id" {
			kind = key
		}
		arrays = append(arrays, fmt.Sprintf("$%d::%s[]", i+1, kind))
	}
	text = insert + "SELECT *, " + note + " FROM unnest(" + strings.Join(arrays, ", ") + ")"
	if t.kind == identity {
		text += " RETURNING id"
	}
	return text, arraysOf
}

// arraysOf makes an argument of each column. pgx sends both in binary.
func arraysOf(columns [][]key) (args []any) {
	for _, column := range columns {
		var (
			numbers []int64
			uuids   [][16]byte
		)
		for _, k := range column {
			if k.number == 0 {
				uuids = append(uuids, k.uuid)
			} else {
				numbers = append(numbers, k.number)
			}
		}
		if uuids != nil {
			args = append(args, uuids)
		} else {
			args = append(args, numbers)
		}
	}
	return args
}

// valuesOf makes an argument of each value, row by row.
func valuesOf(columns [][]key) (args []any) {
	for i := range columns[0] {
		for _, column := range columns {
			if k := column[i]; k.number == 0 {
				args = append(args, k.uuid[:])
			} else {
				args = append(args, k.number)
			}
		}
	}
	return args
}

// size returns the bytes of the table and of its indexes.
func (t *table) size(ctx context.Context) (table, index float64, err error) {
	if t.database == t.postgres {
		err = t.QueryRowContext(ctx, "SELECT pg_table_size($1), pg_indexes_size($1)", t.name).Scan(&table, &index)
		return table, index, err
	}
	if _, err := t.ExecContext(ctx, "ANALYZE TABLE "+t.name); err != nil {
		return 0, 0, err
	}
	// data_length has the pages that are reserved, 64 at a time.
	err = t.QueryRowContext(ctx,
		"SELECT SUM(IF(index_name = 'PRIMARY', stat_value, 0)) * @@innodb_page_size, SUM(IF(index_name = 'PRIMARY', 0, stat_value)) * @@innodb_page_size "+
			"FROM mysql.innodb_index_stats WHERE database_name = DATABASE() AND table_name = ? AND stat_name = 'n_leaf_pages'", t.name).Scan(&table, &index)
	return table, index, err
}
