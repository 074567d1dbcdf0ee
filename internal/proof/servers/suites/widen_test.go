package servers

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

// What a Helper or the plugin has read of a table saves a query, and decides nothing: the rows of a program
// that has read another type of a column are stored as those of one that has started since, or the
// database refuses both.

type widened[T any] struct {
	types.Model
	V T `db:"v"`
}

// A widening is a column that gets another type while a program runs, with a value that the two types store
// differently.
type widening struct {
	from, to string
	value    any
	rows     any // many of them, for a Helper
}

func widen[T any](from, to string, v T) widening {
	return widening{from, to, v, slices.Repeat([]widened[T]{{V: v}}, 20)}
}

func widenings() []widening {
	noon := time.Date(2024, 2, 29, 12, 34, 56, 789_000_000, time.UTC)
	return []widening{
		widen("numeric(10,1)", "numeric(10,2)", "1.25"),
		widen("numeric(10,1)", "numeric(10,2)", 1.25),
		widen("varchar(5)", "varchar(10)", "AB-1234"),
		widen("integer", "bigint", int64(1)<<40),
		widen("real", "double precision", float64(float32(0.1))),
		widen("real", "numeric", float64(float32(0.1))),
		widen("double precision", "integer", 7.5), // which an array of the old type would round
		widen("double precision", "bigint", 7.0),  // both of which are eight bytes in the binary format
		widen("char(5)", "text", "ab   "),
		widen("name", "text", "a name of more than sixty-three bytes, which is what this type keeps of it"),
		widen("date", "timestamp", noon),
		widen("timestamp", "timestamptz", noon),
		widen("timestamptz", "timestamp", noon),
		widen("jsonb", "json", `{"b": 1, "a": 2}`),
		widen("uuid", "text", "6BA7B810-9DAD-11D1-80B4-00C04FD430C8"),
	}
}

// A history is what happens to a table before its types are read, and between that and an insert. In its statements
// $table, $from, $to and $other are the table, its types and a second schema; what begins with "tx:" runs in the
// transaction of the insert, and what else does not.
type history struct {
	name      string
	isolation sql.IsolationLevel // of a transaction of the caller, or -1 for none
	before    []string
	meanwhile []string
}

const widenTable = "CREATE TABLE $table (id bigint PRIMARY KEY, v $from)"

var (
	// alterings are right for all widenings.
	alterings = []history{
		{"altered", -1, []string{widenTable}, []string{"ALTER TABLE $table ALTER v TYPE $to USING v::$to"}},
		{"altered during a transaction", sql.LevelReadCommitted, []string{widenTable, "tx:SELECT 1"}, []string{"ALTER TABLE $table ALTER v TYPE $to USING v::$to"}},
		{"altered after the snapshot", sql.LevelRepeatableRead, []string{widenTable, "tx:SELECT 1"}, []string{"ALTER TABLE $table ALTER v TYPE $to USING v::$to"}},
	}
	// exchanges lead the name to another table than before.
	exchanges = []history{
		{"search_path", 0, []string{widenTable, "CREATE SCHEMA $other CREATE TABLE $table (id bigint, v $to)"}, []string{"tx:SET LOCAL search_path = $other"}},
		{"exchanged", 0, []string{widenTable, "CREATE SCHEMA $other CREATE TABLE $table (id bigint, v $to)"}, []string{"tx:ALTER TABLE $table RENAME TO old", "tx:ALTER TABLE $other.$table SET SCHEMA $schema"}},
		{"temporary", 0, []string{widenTable}, []string{"tx:CREATE TEMPORARY TABLE $table (id bigint PRIMARY KEY, v $to) ON COMMIT DROP"}},
	}
	// rollbacks undo what only their transaction has seen.
	rollbacks = []history{
		{"altered and rolled back", 0, []string{"CREATE TABLE $table (id bigint PRIMARY KEY, v $to)", "tx:ALTER TABLE $table ALTER v TYPE $from USING v::$from"}, []string{"tx:ROLLBACK"}},
		{"altered under a savepoint and rolled back", 0, []string{
			"CREATE TABLE $table (id bigint PRIMARY KEY, v $to)", "tx:CREATE TABLE first (id bigint)", "tx:SAVEPOINT before", "tx:ALTER TABLE $table ALTER v TYPE $from USING v::$from",
		}, []string{"tx:ROLLBACK"}},
		{"created anew and rolled back", 0, []string{"CREATE TABLE $table (id bigint PRIMARY KEY, v $to)", "tx:DROP TABLE $table", "tx:" + widenTable}, []string{"tx:ROLLBACK"}},
		{"a temporary table and rolled back", 0, []string{"CREATE TABLE $table (id bigint PRIMARY KEY, v $to)", "tx:CREATE TEMPORARY TABLE $table (id bigint, v $from)"}, []string{"tx:ROLLBACK"}},
	}
)

// histories are the histories of a widening: two show all that comes of another
// table.
func (w widening) histories(more ...history) []history {
	if w.from == "date" || w.to == "integer" {
		return slices.Concat(alterings, more)
	}
	return alterings
}

// A widenedTable is a table with a history.
type widenedTable struct {
	*testing.T
	db    *sqlx.DB
	tx    func(text string) // runs a statement in the transaction of the insert
	name  string
	names *strings.Replacer
}

// widenedTable names a table that no other has: pgx keeps the types of the parameters of a statement by its text.
func (w widening) table(t *testing.T, db *sqlx.DB) *widenedTable {
	t.Helper()
	var schema string
	must(t, db.Get(&schema, "SELECT quote_ident(current_schema())"))
	name := "widened_" + strings.ToLower(rand.Text())
	t.Cleanup(func() { execSqlx(t, db, "DROP SCHEMA IF EXISTS other_"+name+" CASCADE") })
	return &widenedTable{t, db, nil, name, strings.NewReplacer("$table", name, "$from", w.from, "$to", w.to, "$other", "other_"+name, "$schema", schema)}
}

func (wt *widenedTable) run(texts []string) {
	wt.Helper()
	for _, text := range texts {
		if own, ok := strings.CutPrefix(wt.names.Replace(text), "tx:"); ok {
			wt.tx(own)
		} else {
			execSqlx(wt.T, wt.db, own)
		}
	}
}

// selecting is a pool or a transaction of sqlx.
type selecting interface {
	Select(dest any, query string, args ...any) error
}

// stored returns what the table has after an insert that has ended with err, or the class of err.
func (wt *widenedTable) stored(db selecting, err error) (stored []string) {
	wt.Helper()
	if err != nil {
		return []string{"error " + sqlState(err)}
	}
	must(wt.T, db.Select(&stored, "SELECT v || ' in ' || count(*) || ' rows' FROM (SELECT v::text FROM "+wt.name+") s GROUP BY v"))
	return stored
}

// widenZones are parameters of a session whose zone is not that of times.
func widenZones(w way) []string {
	return []string{map[string]string{"pgx": "timezone", "postgres": "TimeZone"}[w.driver], "America/New_York"}
}

func TestColumnThatIsAlteredWhileAProgramRunsStoresWhatItStoresForANewOne(t *testing.T) {
	t.Parallel()
	for _, mode := range waysTo("PostgreSQL") {
		t.Run(mode.name, func(t *testing.T) {
			t.Parallel()
			d := mode.place(t, widenZones(mode)...).sqlx(t)
			for way := range mode.helpers() {
				for _, w := range widenings() {
					t.Run(way+", "+w.from+" to "+w.to, func(t *testing.T) { w.alike(t, d.DB, way, func() *sqlxhelper.Helper { return mode.helpers()[way] }) })
				}
			}
		})
	}
}

// alike fails the test unless all histories store the same by a Helper that knows the table as by one that does not.
func (w widening) alike(t *testing.T, db *sqlx.DB, way string, fresh func() *sqlxhelper.Helper) {
	t.Helper()
	plain := w.table(t, db)
	execSqlx(t, db, "CREATE TABLE "+plain.name+" (id bigint PRIMARY KEY, v "+w.to+")")
	want := plain.stored(db, fresh().InsertMany(t.Context(), db, plain.name, w.rows))
	if strings.HasPrefix(want[0], "error") && w.to != "integer" {
		t.Fatalf("stored by a new Helper: %q; want rows", want)
	}
	for _, h := range w.histories(slices.Concat(exchanges, rollbacks)...) {
		if got := w.store(t, db, h, fresh(), way == "COPY"); !slices.Equal(got, want) {
			t.Errorf("%s: stored by a Helper that knows %s: %q; want %q as by one that does not", h.name, w.from, got, want)
		}
	}
}

// store stores the rows with a Helper that has read the table before, and returns what is stored. A COPY may be refused,
// once.
func (w widening) store(t *testing.T, db *sqlx.DB, h history, helper *sqlxhelper.Helper, refused bool) []string {
	t.Helper()
	wt := w.table(t, db)
	var into interface {
		sqlxhelper.DB
		selecting
	} = db
	var tx *sqlx.Tx
	if h.isolation >= 0 {
		var err error
		tx, err = db.BeginTxx(t.Context(), &sql.TxOptions{Isolation: h.isolation})
		must(t, err)
		defer func() { _ = tx.Rollback() }()
		into = tx
	}
	wt.tx = func(text string) {
		if text == "ROLLBACK" {
			must(t, tx.Rollback())
			into = db
			return
		}
		tx.MustExec(text)
	}
	wt.run(h.before)
	must(t, helper.Describe(t.Context(), into, wt.name))
	wt.run(h.meanwhile)
	err := helper.InsertMany(t.Context(), into, wt.name, w.rows)
	if refused && (errors.Is(err, sqlxhelper.ErrTableChanged) || err != nil && sqlState(err) != "client") {
		err = helper.InsertMany(t.Context(), into, wt.name, w.rows)
	}
	return wt.stored(into, err)
}

// An array of the old type would be converted: date has no time of day, and timestamp no zone. The server sees it while
// it holds the lock of the insert, and nothing is stored; the next create is one that begins after the change.
func TestGormStoresNothingByTypesThatWereAlteredAfterItReadThem(t *testing.T) {
	t.Parallel()
	for _, driver := range []string{"pgx", "pq"} {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			d := sqlxOn(t, driver, widenZones(wayTo(driver))...)
			plain, _ := openMeddled(t, d.DB, gorm.Config{})
			for _, w := range widenings() {
				t.Run(w.from+" to "+w.to, func(t *testing.T) {
					reference := w.table(t, d.DB)
					execSqlx(t, d.DB, "CREATE TABLE "+reference.name+" (id bigint PRIMARY KEY, v "+w.to+")")
					want := reference.stored(d.DB, plain.Table(reference.name).Create(gormRows(w.value)).Error)
					for _, h := range w.histories(exchanges...) {
						if got := w.create(t, d.DB, h); !slices.Equal(got, want) {
							t.Errorf("%s: stored: %q; want %q as by a create without the option", h.name, got, want)
						}
					}
				})
			}
		})
	}
}

// create stores the rows with a plugin that reads the types before the change, and again if the first create was refused.
func (w widening) create(t *testing.T, pool *sqlx.DB, h history) (stored []string) {
	t.Helper()
	db, m := openMeddled(t, pool, gorm.Config{SkipDefaultTransaction: h.isolation < 0}, gormplugin.WithUnnest())
	wt := w.table(t, pool)
	create := func(in *gorm.DB) error {
		m.meddle = func() { wt.run(h.meanwhile) }
		err := in.Table(wt.name).Create(gormRows(w.value)).Error
		m.meddle = nil
		return err
	}
	if h.isolation < 0 {
		wt.run(h.before)
		err := create(db)
		if errors.Is(err, gormplugin.ErrTableChanged) {
			wantRows(t, db, wt.name, 0)
			err = db.Table(wt.name).Create(gormRows(w.value)).Error
		}
		return wt.stored(pool, err)
	}
	tx := db.Begin(&sql.TxOptions{Isolation: h.isolation})
	must(t, tx.Error)
	defer tx.Rollback()
	own := tx.Statement.ConnPool.(*sql.Tx)
	wt.tx = func(text string) {
		_, err := own.Exec(text)
		must(t, err)
	}
	wt.run(h.before)
	wt.tx("SAVEPOINT before")
	err := create(tx)
	if errors.Is(err, gormplugin.ErrTableChanged) {
		wt.tx("ROLLBACK TO SAVEPOINT before") // and with it what the transaction itself has changed
		if strings.HasPrefix(h.meanwhile[0], "tx:") {
			wt.run(h.meanwhile)
		}
		wantRows(t, tx.Session(&gorm.Session{NewDB: true}), wt.name, 0)
		err = tx.Table(wt.name).Create(gormRows(w.value)).Error
	}
	return wt.stored(&sqlx.Tx{Tx: own, Mapper: pool.Mapper}, err)
}

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
func openMeddled(t *testing.T, pool *sqlx.DB, config gorm.Config, options ...gormplugin.Option) (*gorm.DB, *meddler) {
	t.Helper()
	m := &meddler{Interface: logger.Discard}
	config.Logger = m
	db, err := gorm.Open(postgres.New(postgres.Config{Conn: pool.DB}), &config)
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

func TestGormInTxRunsAgainWhereATableWasAlteredMeanwhile(t *testing.T) {
	d := sqlxOn(t, "pgx")
	execSqlx(t, d.DB, "CREATE TABLE line (id bigint PRIMARY KEY, v date)")
	db, m := openMeddled(t, d.DB, gorm.Config{}, gormplugin.WithUnnest())
	m.meddle = func() { execSqlx(t, d.DB, "ALTER TABLE line ALTER v TYPE timestamp") }
	runs := 0
	must(t, gormplugin.InTx(t.Context(), db, nil, func(tx *gorm.DB) error {
		runs++
		return tx.Table("line").Create(gormRows(time.Date(2024, 2, 29, 12, 34, 56, 0, time.UTC))).Error
	}))
	var stored []string
	must(t, d.DB.Select(&stored, "SELECT DISTINCT v::text FROM line"))
	if want := []string{"2024-02-29 12:34:56"}; runs != 2 || !slices.Equal(stored, want) {
		t.Errorf("InTx ran %d times and stored %q; want 2 runs and %q", runs, stored, want)
	}
}
