package servers

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/snowkey/snowkey/gormplugin"
)

// A meddler is a logger that runs a function once, after the plugin has read the types of a table.
type meddler struct {
	logger.Interface
	meddle func()
}

func (m *meddler) LogMode(logger.LogLevel) logger.Interface { return m }

func (m *meddler) Trace(_ context.Context, _ time.Time, fc func() (string, int64), _ error) {
	if text, _ := fc(); m.meddle != nil && strings.Contains(text, "pg_catalog.pg_attribute") {
		meddle := m.meddle
		m.meddle = nil
		meddle()
	}
}

// openMeddled opens a database on which something happens between the look at the types and the insert.
func openMeddled(t *testing.T, pool *sql.DB, config gorm.Config, options ...gormplugin.Option) (*gorm.DB, *meddler) {
	t.Helper()
	m := &meddler{Interface: logger.Discard}
	config.Logger = m
	db, err := gorm.Open(postgres.New(postgres.Config{Conn: pool}), &config)
	must(t, err)
	must(t, db.Use(newPlugin(options...)))
	return db, m
}

// gormRows returns many rows with a value.
func gormRows(value any) []map[string]any {
	rows := make([]map[string]any, 20)
	for i := range rows {
		rows[i] = map[string]any{"id": i, "v": value}
	}
	return rows
}

// storedOf returns what a table has after a create that has ended with err, or the class of err.
func storedOf(t *testing.T, db *gorm.DB, table string, err error) (stored []string) {
	t.Helper()
	if err != nil {
		stored = []string{"error " + sqlState(err)}
	}
	var values []string
	must(t, db.Raw("SELECT DISTINCT v::text FROM "+table).Scan(&values).Error)
	var n int64
	must(t, db.Raw("SELECT count(*) FROM "+table).Scan(&n).Error)
	return append(append(stored, values...), fmt.Sprint(n, " rows"))
}

// An array of the old type would be converted: date has no time of day, and timestamp no zone. The
// server sees it while it holds the lock of the insert, and nothing is stored; the next create is
// one that begins after the change.
func TestGormStoresNothingByTypesThatWereAlteredAfterItReadThem(t *testing.T) {
	for _, driver := range []string{"pgx", "postgres"} {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			zone := []string{"timezone", "America/New_York"}
			if driver == "postgres" {
				zone[0] = "TimeZone"
			}
			d := sqlxPostgres(t, driver, zone...)
			plain, _ := openMeddled(t, d.DB.DB, gorm.Config{})
			for _, w := range widenings() {
				t.Run(w.from+" to "+w.to, func(t *testing.T) {
					// pgx keeps the types of the parameters of a statement by its text.
					prepare := func(typ string) (table string) {
						table = "widened_" + strings.ToLower(rand.Text())
						execSqlx(t, d.DB, "CREATE TABLE "+table+" (id bigint PRIMARY KEY, v "+typ+")")
						return table
					}
					table := prepare(w.to)
					want := storedOf(t, plain, table, plain.Table(table).Create(gormRows(w.value)).Error)
					for name, create := range map[string]func(db *gorm.DB, table string) error{
						"pool":        func(db *gorm.DB, table string) error { return db.Table(table).Create(gormRows(w.value)).Error },
						"transaction": func(db *gorm.DB, table string) error { return db.Table(table).Create(gormRows(w.value)).Error },
						"snapshot": func(db *gorm.DB, table string) error {
							return db.Transaction(func(tx *gorm.DB) error {
								return errors.Join(tx.Exec("SELECT 1").Error, tx.Table(table).Create(gormRows(w.value)).Error)
							}, &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
						},
					} {
						db, m := openMeddled(t, d.DB.DB, gorm.Config{SkipDefaultTransaction: name == "pool"}, gormplugin.WithUnnest())
						table := prepare(w.from)
						m.meddle = func() {
							execSqlx(t, d.DB, "ALTER TABLE "+table+" ALTER v TYPE "+w.to+" USING v::"+w.to)
						}
						err := create(db, table)
						if errors.Is(err, gormplugin.ErrTableChanged) {
							wantRows(t, plain, table, 0)
							err = create(db, table)
						}
						if got := storedOf(t, plain, table, err); !slices.Equal(got, want) {
							t.Errorf("%s: stored: %q; want %q as by a create without the option", name, got, want)
						}
					}
				})
			}
		})
	}
}

func TestGormStoresNothingInATableThatANameLeadsToSinceItReadItsTypes(t *testing.T) {
	noon := time.Date(2024, 2, 29, 12, 34, 56, 0, time.UTC)
	for way, change := range map[string][]string{
		"search_path": {`SET LOCAL search_path = "%s tenant"`},
		"exchange":    {`ALTER TABLE line RENAME TO old`, `ALTER TABLE "%s tenant".line SET SCHEMA "%s"`},
		"temporary":   {`CREATE TEMPORARY TABLE line (id bigint PRIMARY KEY, v timestamp)`},
	} {
		t.Run(way, func(t *testing.T) {
			d := sqlxPostgres(t, "pgx")
			var schema string
			must(t, d.DB.Get(&schema, "SELECT current_schema()"))
			execSqlx(t, d.DB, `CREATE TABLE line (id bigint PRIMARY KEY, v date)`)
			execSqlx(t, d.DB, `CREATE SCHEMA "`+schema+` tenant" CREATE TABLE line (id bigint, v timestamp)`)
			t.Cleanup(func() { execSqlx(t, d.DB, `DROP SCHEMA "`+schema+` tenant" CASCADE`) })
			db, m := openMeddled(t, d.DB.DB, gorm.Config{}, gormplugin.WithUnnest())
			err := db.Transaction(func(tx *gorm.DB) error {
				m.meddle = func() {
					for _, text := range change {
						_, err := tx.Statement.ConnPool.ExecContext(t.Context(), strings.ReplaceAll(text, "%s", schema))
						must(t, err)
					}
				}
				return tx.Table("line").Create(gormRows(noon)).Error
			})
			if !errors.Is(err, gormplugin.ErrTableChanged) {
				t.Errorf("Create = %v; want ErrTableChanged", err)
			}
			for _, in := range []string{schema, schema + " tenant"} { // the change is undone
				wantRows(t, db, `"`+in+`".line`, 0)
			}
		})
	}
}

func TestGormInTxRunsAgainWhereATableWasAlteredMeanwhile(t *testing.T) {
	noon := time.Date(2024, 2, 29, 12, 34, 56, 0, time.UTC)
	d := sqlxPostgres(t, "pgx")
	execSqlx(t, d.DB, `CREATE TABLE line (id bigint PRIMARY KEY, v date)`)
	db, m := openMeddled(t, d.DB.DB, gorm.Config{}, gormplugin.WithUnnest())
	m.meddle = func() { execSqlx(t, d.DB, "ALTER TABLE line ALTER v TYPE timestamp") }
	runs := 0
	err := gormplugin.InTx(t.Context(), db, nil, func(tx *gorm.DB) error {
		runs++
		return tx.Table("line").Create(gormRows(noon)).Error
	})
	if got := storedOf(t, db, "line", err); runs != 2 || !slices.Equal(got, []string{"2024-02-29 12:34:56", "20 rows"}) {
		t.Errorf("InTx ran %d times and stored %q; want 2 runs and the time of day", runs, got)
	}
}
