package servers

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
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

// unnestPostgres opens GORM on a database of the test's own, with the option.
func unnestPostgres(t *testing.T, driver string, config *gorm.Config) (*gorm.DB, func() int) {
	t.Helper()
	db, arrays := unnestPool(t, sqlxOn(t, driver).DB.DB, config, gormplugin.WithUnnest())
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
	for _, driver := range []string{"pgx", "pq"} {
		for _, config := range []gorm.Config{{}, {PrepareStmt: true}, {SkipDefaultTransaction: true}} {
			db, arrays := unnestPool(t, deafPool{sqlxOn(t, driver).DB.DB}, &config, gormplugin.WithUnnest())
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
