package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"time"
)

const (
	rowCount  = 200_000
	rowBatch  = 1_000
	rowRounds = 3
)

// measureRows inserts rows with keys of each shape, in several rounds. The keys of a
// sequence table are those of segments in one process.
func measureRows(ctx context.Context, p *places, out io.Writer) error {
	shapes := map[string][]key{"uuid-v4": nil, "uuid-v7": nil, "segments-postgresql": nil, "snowflake-fixed": nil, "redis-pipelined": nil}
	for _, w := range ways() {
		if _, ok := shapes[w.name]; !ok {
			continue
		}
		keys, err := w.keys(ctx, p)
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		shapes[w.name] = keys
	}
	if err := p.warm(ctx); err != nil {
		return err
	}
	for range rowRounds {
		for name, keys := range shapes { // in random order
			name = strings.TrimSuffix(name, "-postgresql")
			if err := p.rowsPostgres(ctx, name, keys, out); err != nil {
				return fmt.Errorf("%s in PostgreSQL: %w", name, err)
			}
			if err := p.rowsMariaDB(ctx, name, keys, out); err != nil {
				return fmt.Errorf("%s in MariaDB: %w", name, err)
			}
		}
	}
	return nil
}

// keys takes as many as there are rows. An UUID is all zeros if the keys are numbers.
func (w way) keys(ctx context.Context, p *places) ([]key, error) {
	take, end, err := w.open(ctx, p)
	if err != nil {
		return nil, err
	}
	keys := make([]key, rowCount)
	for i := 0; i < rowCount; i += rowBatch {
		if err := take(ctx, keys[i:i+rowBatch]); err != nil {
			return nil, err
		}
	}
	return keys, end(ctx)
}

// customers returns the same random customers for each table.
func customers() func() int64 {
	random := rand.New(rand.NewPCG(1, 1))
	return func() int64 { return random.Int64N(10_000) }
}

func isUUID(keys []key) bool { return keys[0].number == 0 }

func (p *places) rowsPostgres(ctx context.Context, name string, keys []key, out io.Writer) error {
	kind := "BIGINT"
	if isUUID(keys) {
		kind = "UUID"
	}
	for _, text := range []string{
		"DROP TABLE IF EXISTS orders",
		"CREATE TABLE orders (id " + kind + " PRIMARY KEY, customer BIGINT NOT NULL, note VARCHAR(40) NOT NULL)",
		"CREATE INDEX orders_customer ON orders (customer)",
	} {
		if _, err := p.postgres.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	insert := "INSERT INTO orders SELECT k, c, 'order number ' || c FROM unnest($1::" + kind + "[], $2::bigint[]) AS t(k, c)"
	random := customers()
	before, err := p.cpu(ctx, "PostgreSQL")
	if err != nil {
		return err
	}
	began := time.Now()
	for i := 0; i < len(keys); i += rowBatch {
		var list any
		if isUUID(keys) {
			texts := make([]string, rowBatch)
			for j := range texts {
				texts[j] = keys[i+j].uuid.String()
			}
			list = texts
		} else {
			numbers := make([]int64, rowBatch)
			for j := range numbers {
				numbers[j] = keys[i+j].number
			}
			list = numbers
		}
		buyers := make([]int64, rowBatch)
		for j := range buyers {
			buyers[j] = random()
		}
		if _, err := p.postgres.ExecContext(ctx, insert, list, buyers); err != nil {
			return err
		}
	}
	took := time.Since(began)
	after, err := p.cpu(ctx, "PostgreSQL")
	if err != nil {
		return err
	}
	var table, index int64
	err = p.postgres.QueryRowContext(ctx, "SELECT pg_table_size('orders'), pg_indexes_size('orders')").Scan(&table, &index)
	if err != nil {
		return err
	}
	return reportRows(out, "PostgreSQL", name, took, after-before, table, index)
}

func (p *places) rowsMariaDB(ctx context.Context, name string, keys []key, out io.Writer) error {
	kind := "BIGINT"
	if isUUID(keys) {
		kind = "BINARY(16)"
	}
	for _, text := range []string{
		"DROP TABLE IF EXISTS orders",
		"CREATE TABLE orders (id " + kind + " PRIMARY KEY, customer BIGINT NOT NULL, note VARCHAR(40) NOT NULL, KEY orders_customer (customer))",
	} {
		if _, err := p.mariaDB.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	insert := "INSERT INTO orders VALUES " + strings.TrimSuffix(strings.Repeat("(?,?,?),", rowBatch), ",")
	random := customers()
	before, err := p.cpu(ctx, "MariaDB")
	if err != nil {
		return err
	}
	began := time.Now()
	for i := 0; i < len(keys); i += rowBatch {
		args := make([]any, 0, 3*rowBatch)
		for _, k := range keys[i : i+rowBatch] {
			var id any = k.number
			if isUUID(keys) {
				id = k.uuid[:]
			}
			buyer := random()
			args = append(args, id, buyer, fmt.Sprintf("order number %d", buyer))
		}
		if _, err := p.mariaDB.ExecContext(ctx, insert, args...); err != nil {
			return err
		}
	}
	took := time.Since(began)
	after, err := p.cpu(ctx, "MariaDB")
	if err != nil {
		return err
	}
	if _, err := p.mariaDB.ExecContext(ctx, "ANALYZE TABLE orders"); err != nil {
		return err
	}
	var table, index int64
	err = p.mariaDB.QueryRowContext(ctx,
		// data_length has the pages that are reserved, 64 at a time.
		"SELECT SUM(IF(index_name = 'PRIMARY', stat_value, 0)) * @@innodb_page_size, SUM(IF(index_name = 'PRIMARY', 0, stat_value)) * @@innodb_page_size "+
			"FROM mysql.innodb_index_stats WHERE database_name = DATABASE() AND table_name = 'orders' AND stat_name = 'n_leaf_pages'").Scan(&table, &index)
	if err != nil {
		return err
	}
	return reportRows(out, "MariaDB", name, took, after-before, table, index)
}

func reportRows(out io.Writer, server, name string, took, cpu time.Duration, table, index int64) error {
	_, err := fmt.Fprintf(out, "BenchmarkRows/%s/%s %d %.0f ns/op %.0f rows/s %.2f server-µs/row %.1f table-MB %.1f index-MB\n",
		server, name, rowCount, float64(took.Nanoseconds())/rowCount, rowCount/took.Seconds(), float64(cpu.Microseconds())/rowCount, float64(table)/1e6, float64(index)/1e6)
	return err
}
