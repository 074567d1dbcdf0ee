package servers

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/types"
)

// With WithUnnest many rows go to PostgreSQL as arrays, and the others by VALUES. The
// tests here store the same rows with the option and without. Then they compare the
// tables, what is in memory, and the errors.

// unnestPool opens GORM on a pool, with the plugin and its options. It returns how many
// inserts had arrays so far.
func unnestPool(t *testing.T, pool gorm.ConnPool, config *gorm.Config, options ...gormplugin.Option) (*gorm.DB, func() int) {
	t.Helper()
	log := &statementLog{Interface: logger.Discard}
	config.Logger = log
	db, err := gorm.Open(postgres.New(postgres.Config{Conn: pool}), config)
	must(t, err)
	must(t, db.Use(newPlugin(options...)))
	return db, func() int { return log.count(") SELECT unnest(") }
}

// A statementLog is a logger that keeps statements.
type statementLog struct {
	logger.Interface
	mu    sync.Mutex
	texts []string
}

func (l *statementLog) LogMode(logger.LogLevel) logger.Interface { return l }

func (l *statementLog) Trace(_ context.Context, _ time.Time, fc func() (string, int64), _ error) {
	text, _ := fc()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.texts = append(l.texts, text)
}

// count returns how many statements have a part.
func (l *statementLog) count(part string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, text := range l.texts {
		if strings.Contains(text, part) {
			n++
		}
	}
	return n
}

func TestGormStoresValuesAsArraysAsItDoesByValues(t *testing.T) {
	values := bulkValues()
	list := slices.SortedFunc(maps.Keys(values), func(a, b reflect.Type) int { return strings.Compare(a.String(), b.String()) })
	for name, mode := range bulkModes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := sqlxPostgres(t, mode.driver, mode.parameters...)
			bulkTable(t, d.DB)
			plain, _ := unnestPool(t, d.DB.DB, &gorm.Config{})
			db, arrays := unnestPool(t, d.DB.DB, &gorm.Config{}, gormplugin.WithUnnest())
			random := bulkRandom(name)
			pairs := random.Perm(len(list) * len(bulkColumns))
			if *bulkPairs > 0 {
				pairs = pairs[:min(*bulkPairs, len(pairs))]
			}
			for _, column := range []string{"timestamptz", "timestamp", "date"} { // where most differs
				pairs = append(pairs, slices.Index(list, reflect.TypeFor[time.Time]())*len(bulkColumns)+slices.Index(bulkColumns, column))
			}
			for _, pair := range pairs {
				typ, column := list[pair/len(bulkColumns)], pair%len(bulkColumns)
				unnestPair(t, random, plain, db, typ, values[typ], column)
			}
			if n := arrays(); n < len(pairs)/20 {
				t.Errorf("seed %d: %d pairs, %d inserts with arrays; want more", *bulkSeed, len(pairs), n)
			}
		})
	}
}

// unnestPair stores values in a column, with the option and without.
func unnestPair(t *testing.T, random *rand.Rand, plain, db *gorm.DB, typ reflect.Type, values []any, column int) {
	t.Helper()
	var good, bad []any
	for _, v := range values {
		if _, err := unnestStored(t, plain, []any{v}, column); err == nil {
			good = append(good, v)
		} else {
			bad = append(bad, v)
		}
	}
	try := func(list []any) {
		want, wantErr := unnestStored(t, plain, list, column)
		got, err := unnestStored(t, db, list, column)
		if !slices.Equal(got, want) || sqlState(err) != sqlState(wantErr) {
			t.Errorf("%v (%#v) to %s with the option = %q, %v; want %q, %v as without", typ, list, bulkColumns[column], got, err, want, wantErr)
		}
	}
	if len(good) > 0 {
		try(slices.Repeat(good, 1+12/len(good)))
	}
	if *bulkPairs > 0 && len(bad) > 3 {
		random.Shuffle(len(bad), reflect.Swapper(bad))
		bad = bad[:3]
	}
	for _, v := range bad {
		list := slices.Repeat([]any{v}, 12)
		for i := range min(11, len(good)) {
			list[i] = good[i]
		}
		try(list)
	}
}

// unnestStored creates rows with the values in a column. It returns what is stored, as
// text and in bytes, and takes it back.
func unnestStored(t *testing.T, db *gorm.DB, values []any, column int) (texts []string, failed error) {
	t.Helper()
	rows := make([]map[string]any, len(values))
	name := fmt.Sprintf("c%d", column)
	for i, v := range values {
		rows[i] = map[string]any{"id": i, name: v}
	}
	tx := db.Begin()
	must(t, tx.Error)
	defer tx.Rollback()
	if err := tx.Table("bulk").Create(rows).Error; err != nil {
		return nil, err
	}
	must(t, tx.Table("bulk").Order("id").Pluck(fmt.Sprintf("COALESCE('=' || %s::text, 'NULL')", name), &texts).Error)
	return texts, nil
}

// unnestPostgres opens GORM on a database of the test's own, with the option.
func unnestPostgres(t *testing.T, driver string, config *gorm.Config) (*gorm.DB, func() int) {
	t.Helper()
	db, arrays := unnestPool(t, sqlxPostgres(t, driver).DB.DB, config, gormplugin.WithUnnest())
	must(t, db.AutoMigrate(&box{}, &thing{}))
	return db, arrays
}

// boxes returns new boxes with a thing in each.
func boxes(n int) []box {
	list := make([]box, n)
	for i := range list {
		list[i] = box{Name: fmt.Sprintf("box %d of %d", i, n), Things: []thing{{Name: "thing"}}}
	}
	return list
}

func wantRows(t *testing.T, db *gorm.DB, table string, want int64) {
	t.Helper()
	var n int64
	if err := db.Table(table).Count(&n).Error; err != nil || n != want {
		t.Errorf("rows of %s = %d, %v; want %d", table, n, err, want)
	}
}

func wantArrays(t *testing.T, arrays func() int, want int) {
	t.Helper()
	if n := arrays(); n != want {
		t.Errorf("inserts with arrays so far = %d; want %d", n, want)
	}
}

func TestGormCreatesMoreValuesThanAStatementTakesParameters(t *testing.T) {
	db, arrays := unnestPostgres(t, "pgx", &gorm.Config{})
	must(t, db.Create(boxes(30_000)).Error)
	wantRows(t, db, "boxes", 30_000)
	wantRows(t, db, "things", 30_000)
	wantArrays(t, arrays, 2)
}

func TestGormSendsFewRowsAndDryRunsByValues(t *testing.T) {
	db, arrays := unnestPostgres(t, "pgx", &gorm.Config{})
	must(t, db.Create(boxes(10)).Error)
	must(t, db.Create(boxes(11)).Error)
	wantArrays(t, arrays, 2)
	list := boxes(12)
	tx := db.Session(&gorm.Session{DryRun: true}).Create(&list)
	must(t, tx.Error)
	if text := tx.Statement.SQL.String(); !strings.Contains(text, ") VALUES (") {
		t.Errorf("dry run = %s; want VALUES", text)
	}
	wantRows(t, db, "boxes", 21)
}

// Triggers, sequences and RETURNING see the rows in the order of the slice.
func TestGormKeepsTheOrderOfRowsInArrays(t *testing.T) {
	db, arrays := unnestPostgres(t, "pgx", &gorm.Config{})
	type counted struct {
		ID   int64
		Name string
	}
	must(t, db.AutoMigrate(&counted{}))
	list := make([]counted, 5000)
	for i := range list {
		list[i].Name = fmt.Sprint(i)
	}
	must(t, db.Create(&list).Error)
	wantArrays(t, arrays, 1)
	for i := range list {
		if list[i].ID != int64(i+1) {
			t.Fatalf("key of row %d = %d; want %d", i, list[i].ID, i+1)
		}
	}
	var wrong int64
	must(t, db.Model(&counted{}).Where("name::bigint <> id - 1").Count(&wrong).Error)
	if wrong != 0 {
		t.Errorf("rows under the key of another = %d; want 0", wrong)
	}
}

// A tenantBox is stored in the table that the statement names.
type tenantBox struct {
	ID   types.Snowflake
	Name string
}

func TestGormSendsArraysWhereATableIsATable(t *testing.T) {
	db, arrays := unnestPostgres(t, "pgx", &gorm.Config{})
	var other string
	must(t, db.Raw("SELECT current_schema() || '_2'").Scan(&other).Error)
	must(t, db.Exec(`CREATE SCHEMA "`+other+`"`).Error)
	t.Cleanup(func() { must(t, db.Exec(`DROP SCHEMA "`+other+`" CASCADE`).Error) })
	for _, text := range []string{
		`CREATE TABLE "` + other + `".tenant (id bigint, name text)`,
		`CREATE TABLE parts (id bigint, name text) PARTITION BY HASH (id)`,
		`CREATE TABLE part PARTITION OF parts DEFAULT`, `CREATE TABLE plain (id bigint, name text)`, `CREATE VIEW seen AS SELECT * FROM plain`,
		`CREATE TABLE "Odd" (id bigint, name text, "a.b" text)`,
	} {
		must(t, db.Exec(strings.Replace(text, " DEFAULT", " FOR VALUES WITH (MODULUS 1, REMAINDER 0)", 1)).Error)
	}
	want := 0
	for _, test := range []struct {
		table string
		sends bool
	}{{other + ".tenant", true}, {"parts", true}, {"plain", true}, {"seen", false}, {"Odd", true}} {
		for range 2 { // the second time the types are known
			must(t, db.Table(test.table).Create(make([]tenantBox, 20)).Error)
			if test.sends {
				want++
			}
		}
		wantArrays(t, arrays, want)
	}
	wantRows(t, db, other+".tenant", 40)
	wantRows(t, db, "parts", 40)
	wantRows(t, db, "plain", 80)
	must(t, db.Table("plain").Clauses(clause.Insert{Modifier: "/* hint */"}).Create(make([]tenantBox, 20)).Error)
	must(t, db.Table("plain AS p").Create(make([]tenantBox, 20)).Error)
	must(t, db.Table("plain").Clauses(clause.Insert{Table: clause.Table{Name: "parts"}}).Create(make([]tenantBox, 20)).Error)
	wantArrays(t, arrays, want+1)
	wantRows(t, db, "parts", 60)
}

// What a transaction has altered may be rolled back. The pool would then find another
// type. Numbers in an array of double precision would be rounded on their way into an
// integer. By VALUES they are refused.
func TestGormKeepsNoTypesThatOthersDoNotSee(t *testing.T) {
	db, _ := unnestPostgres(t, "postgres", &gorm.Config{})
	type amount struct {
		ID types.Snowflake
		N  float64 `gorm:"type:integer"`
	}
	must(t, db.AutoMigrate(&amount{}))
	amounts := func() []amount { return slices.Repeat([]amount{{N: 0.5}}, 20) }
	for _, text := range []string{"ALTER TABLE amounts ALTER n TYPE double precision", "CREATE TEMPORARY TABLE amounts (id bigint, n double precision) ON COMMIT DROP"} {
		tx := db.Begin()
		must(t, tx.Exec(text).Error)
		must(t, tx.Create(amounts()).Error)
		must(t, tx.Rollback().Error)
		if err := db.Create(amounts()).Error; err == nil {
			t.Errorf("after %s: Create(0.5 into integer) = nil; want an error", text)
		}
	}
}

// A new release alters the table between two creates. An array of the old type would be
// converted: without the time of day, in the zone of the session, or without blanks.
func TestGormSendsArraysOfTheTypesThatATableHasNow(t *testing.T) {
	type reading struct {
		ID types.Snowflake
		At time.Time `gorm:"type:date"`
		On time.Time `gorm:"type:timestamp"`
		S  string    `gorm:"type:char(4)"`
	}
	at := time.Date(2026, 3, 1, 10, 30, 0, 0, time.UTC)
	for _, settings := range []gorm.Config{{}, {SkipDefaultTransaction: true}, {PrepareStmt: true}} {
		for _, driver := range []string{"pgx", "postgres"} {
			config := settings
			db, arrays := unnestPostgres(t, driver, &config)
			pool, err := db.DB()
			must(t, err)
			pool.SetMaxOpenConns(1) // of which the zone is set
			must(t, db.AutoMigrate(&reading{}))
			list := func() []reading { return slices.Repeat([]reading{{At: at, On: at, S: "a "}}, 20) }
			must(t, db.Create(list()).Error)
			must(t, db.Exec("SET timezone TO 'Asia/Tokyo'").Error)
			must(t, db.Exec("ALTER TABLE readings ALTER at TYPE timestamp, ALTER \"on\" TYPE timestamptz, ALTER s TYPE text").Error)
			must(t, db.Exec("DELETE FROM readings").Error)
			must(t, db.Create(list()).Error)
			wantArrays(t, arrays, 2)
			var stored []reading
			must(t, db.Find(&stored).Error)
			for _, r := range stored {
				if !r.At.Equal(at) || !r.On.Equal(at) || r.S != "a " {
					t.Fatalf("%s, %+v: stored %+v; want %v twice and a blank", driver, settings, r, at)
				}
			}
		}
	}
}

// A deafPool has a catalog that cannot be read.
type (
	deafPool struct{ *sql.DB }
	deafTx   struct{ *sql.Tx }
)

func deaf(query string) string {
	if strings.Contains(query, "to_regclass") {
		return "SELECT 1 / 0 WHERE $1 <> ''"
	}
	return query
}

func (p deafPool) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return p.DB.QueryContext(ctx, deaf(query), args...)
}

func (p *deafTx) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return p.Tx.QueryContext(ctx, deaf(query), args...)
}

// GetDBConn and BeginTx are what GORM looks for.
func (p deafPool) GetDBConn() (*sql.DB, error) { return p.DB, nil }

// BeginTx begins a transaction that is deaf too.
func (p deafPool) BeginTx(ctx context.Context, options *sql.TxOptions) (gorm.ConnPool, error) {
	tx, err := p.DB.BeginTx(ctx, options)
	return &deafTx{tx}, err
}

func TestGormGoesByValuesWhereTypesCannotBeRead(t *testing.T) {
	for _, driver := range []string{"pgx", "postgres"} {
		for _, config := range []gorm.Config{{}, {PrepareStmt: true}, {SkipDefaultTransaction: true}} {
			db, arrays := unnestPool(t, deafPool{sqlxPostgres(t, driver).DB.DB}, &config, gormplugin.WithUnnest())
			must(t, db.AutoMigrate(&box{}, &thing{}))
			must(t, db.Transaction(func(tx *gorm.DB) error {
				return errors.Join(tx.Create(boxes(20)).Error, tx.Create(boxes(21)).Error)
			}))
			must(t, db.Create(boxes(22)).Error)
			wantRows(t, db, "boxes", 63)
			wantArrays(t, arrays, 0)
		}
	}
}

func TestGormReadsTypesOnceForEachStatement(t *testing.T) {
	for _, prepare := range []bool{false, true} {
		db, arrays := unnestPostgres(t, "pgx", &gorm.Config{PrepareStmt: prepare})
		log := &statementLog{Interface: logger.Discard}
		db.Logger = log
		for n := 20; n < 25; n++ {
			must(t, db.Create(boxes(n)).Error)
		}
		if got := log.count("pg_catalog.pg_attribute"); got != 10 {
			t.Errorf("PrepareStmt %v: reads of types = %d; want 10, of two tables", prepare, got)
		}
		if got := log.count("SAVEPOINT"); got > 3 {
			t.Errorf("PrepareStmt %v: statements for a savepoint = %d; want at most those of the first read", prepare, got)
		}
		if got := log.count(") SELECT unnest("); got != 10 {
			t.Errorf("PrepareStmt %v: inserts with arrays = %d; want 10", prepare, got)
		}
		wantArrays(t, arrays, 0)
	}
}

// The option does nothing there.
func TestGormWithUnnestCreatesOnEveryDatabase(t *testing.T) {
	for _, target := range gormTargets {
		t.Run(target.name, func(t *testing.T) {
			log := &statementLog{Interface: logger.Discard}
			db := opener(t, target.dialector(t))(&gorm.Config{Logger: log})
			must(t, db.Use(newPlugin(gormplugin.WithUnnest())))
			must(t, db.AutoMigrate(&box{}, &thing{}))
			list := boxes(30)
			must(t, db.Create(&list).Error)
			must(t, db.Clauses(clause.OnConflict{DoNothing: true}).Create(boxes(30)[:20]).Error)
			wantRows(t, db, "boxes", 30)
			wantBox(t, db, list[29].Name, list[29].ID)
			if got := log.count(") SELECT unnest(") > 0; got != (target.name == "PostgreSQL") {
				t.Errorf("inserts with arrays: %v; want them on PostgreSQL alone", got)
			}
		})
	}
}
