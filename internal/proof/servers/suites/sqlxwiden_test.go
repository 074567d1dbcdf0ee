package servers

import (
	"crypto/rand"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/snowkey/snowkey/internal/proof/cases/sqlxcases"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/sqlxhelper/pgxcopy"
	"github.com/snowkey/snowkey/types"
)

type widened[T any] struct {
	types.Model
	V T `db:"v"`
}

// A widening is a column that a new release gives another type while an old program runs, with a
// value that the two types store differently.
type widening struct {
	from, to string
	value    any
	// insert stores the value in many rows.
	insert func(t *testing.T, h *sqlxhelper.Helper, db sqlxhelper.DB, table string) error
}

func widen[T any](from, to string, v T) widening { return widening{from, to, v, insertWidened(v)} }

func widenings() []widening {
	noon := time.Date(2024, 2, 29, 12, 34, 56, 789_000_000, time.UTC)
	return []widening{
		widen("numeric(10,1)", "numeric(10,2)", "1.25"),
		widen("numeric(10,1)", "numeric(10,2)", 1.25),
		widen("varchar(5)", "varchar(10)", "AB-1234"),
		widen("integer", "bigint", int64(1)<<40),
		widen("real", "double precision", float64(float32(0.1))),
		widen("real", "numeric", float64(float32(0.1))),
		widen("double precision", "integer", 7.5),
		widen("char(5)", "text", "ab   "),
		widen("name", "text", "a name of more than sixty-three bytes, which is what this type keeps of it"),
		widen("date", "timestamp", noon),
		widen("timestamp", "timestamptz", noon),
		widen("timestamptz", "timestamp", noon),
		widen("jsonb", "json", `{"b": 1, "a": 2}`),
		widen("uuid", "text", "6BA7B810-9DAD-11D1-80B4-00C04FD430C8"),
	}
}

func insertWidened[T any](v T) func(*testing.T, *sqlxhelper.Helper, sqlxhelper.DB, string) error {
	return func(t *testing.T, h *sqlxhelper.Helper, db sqlxhelper.DB, table string) error {
		t.Helper()
		rows := make([]widened[T], 20)
		for i := range rows {
			rows[i].V = v
		}
		return h.InsertMany(t.Context(), db, table, rows)
	}
}

// What a Helper has read of a table saves a query, and decides nothing: the rows of a program that
// ran before the column was altered are stored as those of one that has started since, or the
// database refuses both. A COPY may be refused, once.
func TestColumnThatIsAlteredWhileAProgramRunsStoresWhatItStoresForANewOne(t *testing.T) {
	for name, mode := range bulkModes {
		for way := range mode.ways() {
			t.Run(name+" by "+way, func(t *testing.T) {
				t.Parallel()
				zone := []string{"timezone", "America/New_York"}
				if mode.driver == "postgres" {
					zone[0] = "TimeZone"
				}
				d := sqlxPostgres(t, mode.driver, append(zone, mode.parameters...)...)
				fresh := func() *sqlxhelper.Helper {
					h := sqlxhelper.New(sqlxcases.NewCounter(0))
					if way == "COPY" {
						h = h.With(sqlxhelper.WithCopy(pgxcopy.Copier{}, 11))
					}
					return h
				}
				for _, w := range widenings() {
					t.Run(w.from+" to "+w.to, func(t *testing.T) {
						want := w.store(t, d.DB, nil, fresh())
						if strings.HasPrefix(want[0], "error") && w.to != "integer" {
							t.Fatalf("stored by a new Helper: %q; want rows", want)
						}
						for _, isolation := range []sql.IsolationLevel{-1, sql.LevelReadCommitted, sql.LevelRepeatableRead} {
							got := w.store(t, d.DB, &isolation, fresh())
							if way == "COPY" && strings.HasPrefix(got[0], "error") {
								continue // ErrTableChanged, or the server's refusal
							}
							if !slices.Equal(got, want) {
								t.Errorf("isolation %d: stored by a Helper that knows %s: %q; want %q as by one that does not", isolation, w.from, got, want)
							}
						}
					})
				}
			})
		}
	}
}

// store stores the rows after the column was altered, and returns what is stored, or the class of
// the error. With isolation, the Helper has used the table before, and isolation is that of the
// caller's transaction, or -1 for a call on the pool.
func (w widening) store(t *testing.T, db *sqlx.DB, isolation *sql.IsolationLevel, h *sqlxhelper.Helper) (stored []string) {
	t.Helper()
	// pgx keeps the types of the parameters of a statement by its text.
	table := "widened_" + strings.ToLower(rand.Text())
	execSqlx(t, db, "CREATE TABLE "+table+" (id bigint PRIMARY KEY, v "+w.from+")")
	alter := func() {
		t.Helper()
		execSqlx(t, db, "ALTER TABLE "+table+" ALTER v TYPE "+w.to+" USING v::"+w.to)
	}
	var into sqlxhelper.DB = db
	var tx *sqlx.Tx
	if isolation != nil {
		must(t, h.Describe(t.Context(), db, table))
		if *isolation >= 0 {
			var err error
			tx, err = db.BeginTxx(t.Context(), &sql.TxOptions{Isolation: *isolation})
			must(t, err)
			defer func() { _ = tx.Rollback() }()
			var one int
			must(t, tx.Get(&one, "SELECT 1")) // takes the snapshot
			into = tx
		}
	}
	alter()
	err := w.insert(t, h, into, table)
	if tx != nil {
		must(t, tx.Commit())
	}
	if err != nil {
		return []string{"error " + sqlState(err)}
	}
	must(t, db.Select(&stored, "SELECT DISTINCT v::text FROM "+table))
	var n int
	must(t, db.Get(&n, "SELECT count(*) FROM "+table))
	return append(stored, fmt.Sprint(n, " rows"))
}

// A name may lead to another table than in the call before, by search_path or because two tables
// were exchanged. "line" is also the name of a type.
func TestTableThatANameLeadsToNowGetsItsOwnTypes(t *testing.T) {
	noon := time.Date(2024, 2, 29, 12, 34, 56, 0, time.UTC)
	for _, driver := range []string{"pgx", "postgres"} {
		for way, change := range map[string][]string{
			"search_path": {`SET LOCAL search_path = "%s tenant"`},
			"exchange":    {`ALTER TABLE line RENAME TO old`, `ALTER TABLE "%s tenant".line SET SCHEMA "%s"`},
			"temporary":   {`CREATE TEMPORARY TABLE line (id bigint PRIMARY KEY, v timestamp)`},
		} {
			t.Run(driver+" "+way, func(t *testing.T) {
				d := sqlxPostgres(t, driver)
				var schema string
				must(t, d.DB.Get(&schema, "SELECT current_schema()"))
				execSqlx(t, d.DB, `CREATE TABLE line (id bigint PRIMARY KEY, v date)`)
				execSqlx(t, d.DB, `CREATE SCHEMA "`+schema+` tenant" CREATE TABLE line (id bigint, v timestamp)`)
				t.Cleanup(func() { execSqlx(t, d.DB, `DROP SCHEMA "`+schema+` tenant" CASCADE`) })
				h := sqlxhelper.New(sqlxcases.NewCounter(0))
				must(t, insertWidened(noon)(t, h, d.DB, "line"))
				tx := d.DB.MustBegin()
				defer func() { _ = tx.Rollback() }()
				for _, text := range change {
					tx.MustExec(strings.ReplaceAll(text, "%s", schema))
				}
				must(t, insertWidened(noon)(t, h, tx, "line"))
				var stored []string
				if err := tx.Select(&stored, "SELECT DISTINCT v::text FROM line"); err != nil || !slices.Equal(stored, []string{"2024-02-29 12:34:56"}) {
					t.Errorf("stored %q, %v; want the time of day", stored, err)
				}
			})
		}
	}
}
