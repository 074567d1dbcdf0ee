package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

const (
	rowBatch = 1_000
	note     = "'order number 123456'"
)

// A rowTable has a key of one kind, one or five columns with an index each, and a note.
type rowTable struct {
	*servers
	*server
	name, kind string
	parents    []key // what the five columns refer to; nil: there is one, a number
}

// BenchmarkRows inserts b.N rows into a new table. Rows are inserted 1,000 at a time, one
// transaction each, over one connection, and what is sent is in the form of the wire
// before the time begins.
func BenchmarkRows(b *testing.B) {
	eachKind(b, func(b *testing.B, s *servers, db *server, kind string) {
		orders := &rowTable{s, db, "orders", kind, nil}
		orders.create(b)
		defer orders.drop(b)
		orders.insert(b, rowKeys(b, kind, b.N))
	})
}

// BenchmarkReferences inserts b.N rows with five foreign keys each, to random ones of twice
// as many rows.
func BenchmarkReferences(b *testing.B) {
	eachKind(b, func(b *testing.B, s *servers, db *server, kind string) {
		keys := rowKeys(b, kind, 3*b.N)
		parents := &rowTable{s, db, "parents", kind, nil}
		parents.create(b)
		defer parents.drop(b)
		parents.insert(b, keys[:2*b.N])
		children := &rowTable{s, db, "children", kind, keys[:2*b.N]}
		children.create(b)
		defer children.drop(b)
		children.insert(b, keys[2*b.N:])
	})
}

// BenchmarkLarge inserts b.N rows into a table of a million, which is larger than the memory
// of its server. It is filled first; then the server restarts with little memory.
func BenchmarkLarge(b *testing.B) {
	s, filled := startServers(b), 1_000_000
	if testing.Short() {
		filled = 2 * rowBatch
	}
	for _, db := range []*server{s.postgres, s.mariaDB} {
		tables, keys := map[string]*rowTable{}, map[string][]key{}
		for _, k := range rowKinds {
			t := &rowTable{s, db, "large_" + strings.ReplaceAll(k.name, "-", "_"), k.name, nil}
			all := rowKeys(b, k.name, filled+50*rowBatch)
			t.create(b)
			t.insert(b, all[:filled])
			tables[k.name], keys[k.name] = t, all[filled:]
		}
		db.restart(b)
		for _, i := range rand.Perm(len(rowKinds)) {
			kind := rowKinds[i].name
			b.Run(db.name+"/"+kind, func(b *testing.B) {
				tables[kind].insert(b, keys[kind][:b.N])
				keys[kind] = keys[kind][b.N:]
			})
		}
	}
}

// eachKind runs a benchmark with each kind of key on both databases, in random order.
func eachKind(b *testing.B, benchmark func(b *testing.B, s *servers, db *server, kind string)) {
	s := startServers(b)
	for _, db := range []*server{s.postgres, s.mariaDB} {
		for _, i := range rand.Perm(len(rowKinds)) {
			kind := rowKinds[i].name
			b.Run(db.name+"/"+kind, func(b *testing.B) { benchmark(b, s, db, kind) })
		}
	}
}

// rowKeys makes n keys of a kind. Those of identity are what the database will make.
func rowKeys(t testing.TB, kind string, n int) []key {
	t.Helper()
	keys := make([]key, n)
	for i := range keys {
		keys[i].number = int64(i) + 1
	}
	for _, w := range ways() {
		if w.name != kind {
			continue
		}
		take, end, err := w.open(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(take(t.Context(), keys), end(t.Context())); err != nil {
			t.Fatal(err)
		}
		for i := range keys {
			if kind != "snowflake-fixed" {
				keys[i].number = 0
			}
		}
	}
	return keys
}

func (t *rowTable) drop(b *testing.B) {
	if _, err := t.ExecContext(b.Context(), "DROP TABLE "+t.name); err != nil {
		b.Fatal(err)
	}
}

// types are those of a key, of the columns besides it, and of the keys that the database
// makes.
func (t *rowTable) types() (key, column, made string) {
	uuid, made := "BINARY(16)", "BIGINT AUTO_INCREMENT"
	if t.server == t.postgres {
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
func (t *rowTable) columns() []string {
	if t.parents == nil {
		return []string{"customer"}
	}
	return []string{"customer", "seller", "product", "shop", "parcel"}
}

func (t *rowTable) create(tb testing.TB) {
	tb.Helper()
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
		if _, err := t.ExecContext(tb.Context(), text); err != nil {
			tb.Fatal(text, err)
		}
	}
}

// insert inserts rows, and reports what that took.
func (t *rowTable) insert(b *testing.B, keys []key) {
	b.Helper()
	random := rand.New(rand.NewPCG(1, 1)) // the same columns for each kind
	type statement struct {
		text string
		args []any
	}
	var batches []statement
	for part := range slices.Chunk(keys, rowBatch) {
		columns := [][]key{part}
		for range t.columns() {
			column := make([]key, len(part))
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
		text, bind := t.statement(len(part))
		batches = append(batches, statement{text, bind(columns)})
	}
	used := t.cpu(t.server.name)
	b.ResetTimer()
	for _, s := range batches {
		if err := t.send(b.Context(), s.text, s.args); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	used = t.cpu(t.server.name) - used
	table, index, err := t.size(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(len(keys))/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(float64(used.Microseconds())/float64(len(keys)), "server-µs/row")
	b.ReportMetric(table/1e6, "table-MB")
	b.ReportMetric(index/1e6, "index-MB")
}

// send inserts a batch. PostgreSQL returns the keys that it has made, and MariaDB the first
// of them.
func (t *rowTable) send(ctx context.Context, text string, args []any) (err error) {
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

// statement returns the INSERT of so many rows, and what makes its arguments of columns: arrays
// for PostgreSQL, and values one by one for MariaDB.
func (t *rowTable) statement(rows int) (text string, bind func([][]key) []any) {
	names := append([]string{"id"}, t.columns()...)
	if t.kind == identity {
		names = names[1:]
	}
	insert := fmt.Sprintf("INSERT INTO %s (%s, note) ", t.name, strings.Join(names, ", "))
	if t.server == t.mariaDB {
		row := "(" + strings.Repeat("?,", len(names)) + note + ")"
		return insert + "VALUES " + row + strings.Repeat(","+row, rows-1), valuesOf
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
func (t *rowTable) size(ctx context.Context) (table, index float64, err error) {
	if t.server == t.postgres {
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
