package servers

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/core/segment/sqlsegment"
	"github.com/snowkey/snowkey/core/serial"
	"github.com/snowkey/snowkey/core/serial/sqlserial"
	"github.com/snowkey/snowkey/core/sqlstore"
)

// columnTargets are the servers with each setting that decides how an integer is sent and
// whether one that is too large is refused or cut.
func columnTargets(t *testing.T, f func(t *testing.T, g leaseTarget)) {
	t.Helper()
	byWays(t, []string{"pgx", "pgx simple protocol", "pq", "pq binary"}, func(t *testing.T, w way) { f(t, w.target(t)) })
	byWays(t, []string{"MariaDB", "MariaDBInterpolated", "MySQL", "MySQLInterpolated"}, func(t *testing.T, w way) {
		for _, mode := range []string{"", "STRICT_ALL_TABLES"} {
			t.Run(fmt.Sprintf("sql_mode=%q", mode), func(t *testing.T) { f(t, w.target(t, "sql_mode", "'"+mode+"'")) })
		}
	})
}

// integerTypes are the types of a key, or of max_id in a table that another program has made.
func (g leaseTarget) integerTypes() []string {
	if g.dialect() == sqlstore.PostgreSQL {
		return []string{"INT", "BIGINT", "NUMERIC", "NUMERIC(20)", "NUMERIC(12, 2)"}
	}
	return []string{"INT", "INT UNSIGNED", "BIGINT", "BIGINT UNSIGNED", "DECIMAL(20)", "DECIMAL(12, 2)"}
}

func TestKeysOfEveryIntegerTypeAreMovedInFrom(t *testing.T) {
	columnTargets(t, func(t *testing.T, g leaseTarget) {
		s := g.segments(t, g.open(t), "")
		must(t, s.CreateTables(t.Context()))
		for i, kind := range g.integerTypes() {
			table := fmt.Sprint("keys_", i)
			g.exec(t, "CREATE TABLE "+table+" (id "+kind+")")
			column := sqlsegment.Column{Table: table, Name: "id"}
			if n, err := s.Floor(column)(t.Context()); n != 0 || err != nil {
				t.Errorf("Floor of an empty %s = %d, %v; want 0", kind, n, err)
			}
			g.exec(t, "INSERT INTO "+table+" VALUES (9), (41), (10), (NULL)")
			if n, err := s.Floor(column)(t.Context()); n != 41 || err != nil {
				t.Errorf("Floor of %s = %d, %v; want 41", kind, n, err)
			}
			must(t, s.Create(t.Context(), segment.Row{Tag: table, Next: 1, Step: 10, Stride: 1}))
			if row, err := s.RaiseAboveMax(t.Context(), table, column); row.Next != 42 || err != nil {
				t.Errorf("RaiseAboveMax of %s = %+v, %v; want next = 42", kind, row, err)
			}
			if r, err := s.Take(t.Context(), segment.Take{Tag: table}); r.First != 42 || err != nil {
				t.Errorf("Take above %s = %+v, %v; want 42", kind, r, err)
			}
		}
	})
}

// The greatest of several texts is the last in the order of texts: 9, and not 41.
func TestColumnsWhoseGreatestIsNoIntegerAreRefused(t *testing.T) {
	columnTargets(t, func(t *testing.T, g leaseTarget) {
		s := g.segments(t, g.open(t), "")
		must(t, s.CreateTables(t.Context()))
		kinds := map[string]string{"VARCHAR(20)": "'9'), ('41'", "CHAR(4)": "'9'), ('41'", "DOUBLE PRECISION": "41.5", "DECIMAL(5, 1)": "41), (41.5", "DECIMAL(20)": "9223372036854775808"}
		if g.dialect() == sqlstore.MySQL {
			kinds["BIGINT UNSIGNED"], kinds["VARBINARY(20)"], kinds["ENUM('41', '9')"] = "18446744073709551615", "'9'), ('41'", "'9'), ('41'"
		} else {
			kinds["NUMERIC"], kinds["TEXT"] = "'NaN'", "'9'), ('41'"
		}
		tables := 0
		for kind, values := range kinds {
			tables++
			table := fmt.Sprint("keys_", tables)
			g.exec(t, "CREATE TABLE "+table+" (id "+kind+")")
			g.exec(t, "INSERT INTO "+table+" VALUES ("+values+")")
			n, err := s.Floor(sqlsegment.Column{Table: table, Name: "id"})(t.Context())
			var value *core.ValueError
			if n != 0 || !errors.As(err, &value) || !strings.Contains(err.Error(), "column id") {
				t.Errorf("Floor of %s with %s = %d, %v; want a *ValueError of column id", kind, values, n, err)
			}
		}
	})
}

// The table of segments has max_id of another type, as that of a program that was moved in.
// What a Take returns is stored, so no number comes twice, also at the end of the type.
func TestNumbersThatTheColumnDoesNotKeepAreNotReturned(t *testing.T) {
	columnTargets(t, func(t *testing.T, g leaseTarget) {
		for i, kind := range g.integerTypes() {
			table := fmt.Sprint("segments_", i)
			g.exec(t, "CREATE TABLE "+table+" (biz_tag VARCHAR(128) NOT NULL PRIMARY KEY, max_id "+kind+" NOT NULL DEFAULT 1, step INT NOT NULL,"+
				" description VARCHAR(256), update_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,"+
				" version "+kind+" NOT NULL DEFAULT 0, number_offset INT NOT NULL DEFAULT 0, stride INT NOT NULL DEFAULT 1)")
			s := g.segments(t, g.open(t), table)
			if err := s.CreateTables(t.Context()); err != nil {
				t.Errorf("CreateTables where a table with max_id %s is = %v; want nil", kind, err)
			}
			must(t, s.Create(t.Context(), segment.Row{Tag: "orders", Next: 1, Step: 10, Stride: 1}))
			if rows, err := s.Rows(t.Context()); err != nil || len(rows) != 1 || rows[0].Next != 1 {
				t.Errorf("Rows with max_id %s = %+v, %v; want next = 1", kind, rows, err)
			}
			if r, err := s.Take(t.Context(), segment.Take{Tag: "orders"}); r.First != 1 || err != nil {
				t.Errorf("Take with max_id %s = %+v, %v; want 1", kind, r, err)
			}
			must(t, s.GiveBack(t.Context(), segment.GiveBack{Tag: "orders", First: 5, End: 11, Version: 1}))
			last := int64(4)
			for _, near := range []int64{1<<31 - 15, 1<<32 - 15, 99_9999_9999 - 14} { // the ends of INT, INT UNSIGNED and DECIMAL(12, 2)
				_, _ = s.Raise(t.Context(), "orders", near) // or it is refused
				for range 4 {
					r, err := s.Take(t.Context(), segment.Take{Tag: "orders"})
					if err != nil {
						continue
					}
					if r.First <= last {
						t.Fatalf("Take with max_id %s = %+v after %d was given; want larger numbers or an error", kind, r, last)
					}
					last = r.Last
				}
			}
			rows, err := s.Rows(t.Context())
			if err != nil || rows[0].Next != last+1 {
				t.Errorf("Rows with max_id %s = %+v, %v; want next = %d, as the last Take has left it", kind, rows, err, last+1)
			}
			// A value that does not fit is refused, and the row is unchanged.
			if kind == "INT" || kind == "INT UNSIGNED" || kind == "DECIMAL(12, 2)" {
				if row, err := s.Raise(t.Context(), "orders", 1<<40); err == nil {
					t.Errorf("Raise of max_id %s to 1<<40 = %+v; want an error", kind, row)
				}
				if err := s.Create(t.Context(), segment.Row{Tag: "other", Next: 1 << 40, Step: 10, Stride: 1}); err == nil {
					t.Errorf("Create with max_id %s of 1<<40 = nil; want an error", kind)
				}
				if again, err := s.Rows(t.Context()); err != nil || len(again) != 1 || again[0] != rows[0] {
					t.Errorf("Rows after what was refused = %+v, %v; want %+v", again, err, rows)
				}
			}
		}
	})
}

// The counter of a series is an INT, in a table that somebody has made by hand. Its last
// number is the end of the type.
func TestNumbersThatTheCounterDoesNotKeepAreNotReturned(t *testing.T) {
	columnTargets(t, func(t *testing.T, g leaseTarget) {
		if g.dialect() != sqlstore.MySQL {
			t.Skip("PostgreSQL refuses such a column at the first number")
		}
		db := g.open(t)
		store, err := sqlserial.New(db, g.config(sqlserial.DefaultTable))
		must(t, err)
		must(t, store.CreateTables(t.Context()))
		g.exec(t, "ALTER TABLE snowkey_counters MODIFY last INT NOT NULL")
		const end = 1<<31 - 1
		at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
		next := func(s serial.Series) (int64, error) {
			tx, err := db.BeginTx(t.Context(), nil)
			must(t, err)
			defer func() { _ = tx.Rollback() }()
			n, err := store.NextIn(t.Context(), tx, s, at)
			if err != nil {
				return 0, err
			}
			return n.N, tx.Commit()
		}
		one, many := serial.Series{Name: "one", Prefix: "ONE", Digits: 12}, serial.Series{Name: "many", Prefix: "MANY", Digits: 12}
		for _, s := range []serial.Series{one, many} {
			must(t, store.Define(t.Context(), s))
			must(t, store.MoveIn(t.Context(), s.Name, "", end-3))
		}
		for want := int64(end - 2); want <= end; want++ {
			if n, err := next(one); n != want || err != nil {
				t.Errorf("NextIn = %d, %v; want %d", n, err, want)
			}
		}
		refused := func(err error) bool { // by strict mode, or by the store
			return strings.Contains(fmt.Sprint(err), "Out of range") || errors.Is(err, sqlstore.ErrSchema)
		}
		for range 2 {
			if n, err := next(one); !refused(err) {
				t.Errorf("NextIn after the last number that the column keeps = %d, %v; want %v", n, err, sqlstore.ErrSchema)
			}
			if first, err := store.Take(t.Context(), many.Name, "", at, 100); !refused(err) {
				t.Errorf("Take of more numbers than the column keeps = %d, %v; want %v", first, err, sqlstore.ErrSchema)
			}
		}
		if first, err := store.Take(t.Context(), many.Name, "", at, 3); first != end-2 || err != nil {
			t.Errorf("Take of those that it keeps = %d, %v; want %d", first, err, end-2)
		}
		if first, err := store.Take(t.Context(), many.Name, "", at, 1); !refused(err) {
			t.Errorf("Take behind them = %d, %v; want %v", first, err, sqlstore.ErrSchema)
		}
		fresh := serial.Series{Name: "fresh", Prefix: "FRESH", Digits: 12}
		must(t, store.Define(t.Context(), fresh))
		if err := store.MoveIn(t.Context(), fresh.Name, "", 1<<39); !refused(err) {
			t.Errorf("MoveIn of more than the column keeps = %v; want %v", err, sqlstore.ErrSchema)
		}
	})
}
