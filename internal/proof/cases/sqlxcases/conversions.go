package sqlxcases

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

// measured has a unique column whose type stores something else than is sent.
type measured struct {
	types.Model
	V any `db:"v"`
	N int `db:"n"`
}

// conversions are column types with values that they round, pad or convert.
func (d Database) conversions() map[string][]any {
	at := time.Date(2024, 2, 29, 23, 59, 58, 654_321_987, time.UTC)
	list := map[string][]any{
		"DECIMAL(10,2)": {1.236, decimal("-7.015"), "3.333", 12, 100.0},
		"DATE":          {at},
		"CHAR(5)":       {"ab", "cd  "},
		"VARCHAR(20)":   {"x", level("y"), "z "},
		"BIGINT":        {5, int32(-7)},
	}
	switch d.Dialect {
	case sqlxhelper.PostgreSQL:
		maps.Copy(list, map[string][]any{
			"TIMESTAMPTZ": {at}, "TIMESTAMPTZ(0)": {at}, "TIMESTAMP(3)": {at}, "REAL": {0.1, 2.5}, "DOUBLE PRECISION": {0.1},
			"NUMERIC": {"1.2360"},
		})
	case sqlxhelper.MySQL:
		maps.Copy(list, map[string][]any{
			"DATETIME": {at}, "DATETIME(3)": {at, "2024-02-29 12:00:00.0009"}, "TIMESTAMP": {at}, "TIME": {"12:30:45.6"}, "TIME(2)": {"12:30:45.678"},
			"FLOAT": {0.1, 2.5}, "DOUBLE": {0.1, ".5", "1e2", "+3", "  7"}, "DECIMAL(12,2)": {".5", "1e2", "+3", "  7", decimal("4e-1")}, "DECIMAL(8,1) UNSIGNED": {7.77, "7.34"}, "BINARY(5)": {[]byte("ab")}, "VARBINARY(5)": {[]byte("ab")},
			"VARCHAR(30)": {5, 6.5}, "CHAR(6) CHARACTER SET latin1": {"ä"}, "INT": {"42", decimal("43")}, "YEAR": {2024},
			"ENUM('low','high')": {"low", level("high")},
		})
	case sqlxhelper.SQLite:
		maps.Copy(list, map[string][]any{
			"INTEGER": {"42", 7.0}, "TEXT": {5, 6.5}, "REAL": {5, "2.5"}, "TIMESTAMP": {at}, "BLOB": {[]byte("ab"), "ab"}, "NUMERIC": {"12", "x"},
		})
	}
	return list
}

// The second call meets the rows of the first by what the column has made of their
// values.
func (d Database) upsertConverted(t *testing.T) {
	tables := 0
	for typ, values := range d.conversions() {
		for action, options := range map[string][]sqlxhelper.Option{
			"DoNothing": {sqlxhelper.OnConflictDoNothing("v")},
			"Update":    {sqlxhelper.OnConflictUpdate("n"), sqlxhelper.ConflictTarget("v")},
		} {
			t.Run(typ+" "+action, func(t *testing.T) {
				tables++
				table := fmt.Sprint("measureds", tables)
				d.tables(t, "CREATE TABLE "+table+" (id BIGINT PRIMARY KEY, v "+typ+" UNIQUE, n INTEGER)")
				var rows []measured
				for _, v := range values {
					rows = append(rows, measured{V: v})
				}
				rows = append(rows, measured{}) // NULL
				if err := sqlxhelper.New(NewCounter(0)).InsertMany(ctx, d.DB, table, rows); err != nil {
					t.Skipf("InsertMany(%v) = %v", values, err) // not by this driver
				}
				for _, set := range []types.Snowflake{0, 1000} {
					for _, single := range []bool{true, false} {
						again := make([]measured, len(values))
						for i, v := range values {
							if at, ok := v.(time.Time); ok && (typ == "TIMESTAMPTZ" || typ == "DATETIME(3)") {
								v = at.In(time.FixedZone("", 3600)) // is the same moment
							}
							again[i].V = v
							if set > 0 {
								again[i].ID = set + types.Snowflake(i)
							}
						}
						h := sqlxhelper.New(NewCounter(1000), options...)
						var err error
						for i := range again {
							if single && err == nil {
								err = h.Insert(ctx, d.DB, table, &again[i])
							}
						}
						if !single {
							err = h.InsertMany(ctx, d.DB, table, again)
						}
						for i := range again {
							if err != nil || again[i].ID != rows[i].ID {
								t.Errorf("upsert of %T %v = key %d, %v; want %d", values[i], values[i], again[i].ID, err, rows[i].ID)
							}
						}
					}
				}
				d.wantCount(t, table, len(rows))
				d.wantCount(t, fmt.Sprintf("%s WHERE id <= %d", table, len(rows)), len(rows))
			})
		}
	}
}
