package servers

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	"github.com/snowkey/snowkey/types"
)

// rowLocks matches what InnoDB's status says about a transaction. The view innodb_trx cannot be
// used, because it is up to 100 ms old.
const rowLocks = `(\d+) row lock\(s\)[^\n]*\n(?:MariaDB|MySQL) thread id %d,`

// lockCount returns how many locks the transaction tx holds. On PostgreSQL it leaves
// out the weakest, as the insert has a stronger one on each table.
func lockCount(t *testing.T, tx *gorm.DB) (n int) {
	t.Helper()
	if tx.Name() == "postgres" {
		must(t, tx.Raw("SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND mode <> 'AccessShareLock'").Scan(&n).Error)
		return n
	}
	var id int
	var kind, name, status string
	must(t, tx.Raw("SELECT CONNECTION_ID()").Scan(&id).Error)
	must(t, tx.Raw("SHOW ENGINE INNODB STATUS").Row().Scan(&kind, &name, &status))
	found := regexp.MustCompile(fmt.Sprintf(rowLocks, id)).FindStringSubmatch(status)
	if found == nil {
		t.Fatalf("SHOW ENGINE INNODB STATUS has no locks of connection %d:\n%s", id, status)
	}
	n, err := strconv.Atoi(found[1])
	must(t, err)
	return n
}

// A reader has two unique columns beside its key.
type reader struct {
	ID    types.Snowflake
	Email string `gorm:"size:40;uniqueIndex"`
	Phone string `gorm:"size:40;uniqueIndex"`
}

// readers returns n of them. Their keys are set if first is not zero.
func readers(n int, first types.Snowflake) []reader {
	list := make([]reader, n)
	for i := range list {
		list[i] = reader{Email: fmt.Sprintf("reader-%06d@example.org", i), Phone: fmt.Sprintf("+49-30-%07d", i)}
		if first != 0 {
			list[i].ID = first + types.Snowflake(i)
		}
	}
	return list
}

// The plugin looks for the rows that an upsert met. It must not keep others away from
// more rows than the upsert does.
func TestGormPluginLocksNoMoreThanTheUpsert(t *testing.T) {
	for _, target := range gormTargets {
		if target.name == "SQLite" { // which locks the database
			continue
		}
		t.Run(target.name, func(t *testing.T) {
			open := opener(t, target.dialector(t))
			plain, keyed := open(&gorm.Config{Logger: logger.Discard}), open(&gorm.Config{Logger: logger.Discard})
			must(t, keyed.Use(newPlugin()))
			must(t, keyed.AutoMigrate(&reader{}))
			stored := readers(200, 1)
			must(t, plain.Create(&stored).Error)
			locks := func(db *gorm.DB, n int) (count int) {
				for range 2 { // the first time reads the catalog
					tx := db.Begin()
					must(t, tx.Error)
					list := readers(n, 0)
					if db == plain {
						list = readers(n, 1<<50)
					}
					must(t, tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&list).Error)
					count = lockCount(t, tx)
					must(t, tx.Rollback().Error)
				}
				return count
			}
			for _, n := range []int{1, 100, 300} { // all of them stored, but for the last 100
				if got, want := locks(keyed, n), locks(plain, n); float64(got) > 1.1*float64(want) {
					t.Errorf("locks after an upsert of %d rows = %d; want at most 1.1 times the %d without the plugin", n, got, want)
				} else {
					t.Logf("%d rows: %d locks, and %d without the plugin", n, got, want)
				}
			}
		})
	}
}

// A copyOfBook is unique by two columns.
type copyOfBook struct {
	ID     types.Snowflake
	Title  string `gorm:"uniqueIndex:copy"`
	Number int    `gorm:"uniqueIndex:copy"`
}

// PostgreSQL keeps the plan of a prepared statement, also one that reads the whole table because that had
// one row. Where it then compares each row with each value, 10,000 of both take 15 seconds.
func TestALookByAListIsHashedOrByIndexThoughItsPlanIsFromWhenTheTableHadOneRow(t *testing.T) {
	target := gormTargets[slices.IndexFunc(gormTargets, func(t gormTarget) bool { return t.name == "PostgreSQL" })]
	db := opener(t, target.dialector(t))(&gorm.Config{Logger: logger.Discard})
	must(t, db.Use(newPlugin()))
	must(t, db.AutoMigrate(&reader{}, &copyOfBook{}))
	pool, err := db.DB()
	must(t, err)
	pool.SetMaxOpenConns(1) // which keeps its statements prepared
	must(t, db.Exec("SET plan_cache_mode = force_generic_plan").Error)
	one, of := reader{Email: "a@example.org", Phone: "1"}, copyOfBook{Title: "Middlemarch", Number: 1}
	must(t, db.Create(&one).Error)
	must(t, db.Create(&of).Error)
	must(t, db.Exec("ANALYZE").Error)
	again, copies := slices.Repeat([]reader{{Email: one.Email, Phone: one.Phone}}, 30), slices.Repeat([]copyOfBook{{Title: of.Title, Number: of.Number}}, 30)
	must(t, db.Clauses(clause.OnConflict{DoNothing: true}).Create(&again).Error)
	must(t, db.Clauses(clause.OnConflict{DoNothing: true}).Create(&copies).Error)

	var names []string
	must(t, db.Raw("SELECT name FROM pg_prepared_statements WHERE statement LIKE '%unnest(CAST($%' AND statement NOT LIKE '%pg_prepared%'").Scan(&names).Error)
	if len(names) != 2 {
		t.Fatalf("%d statements with a list are prepared; want 2", len(names))
	}
	for _, name := range names {
		var types string
		must(t, db.Raw("SELECT parameter_types FROM pg_prepared_statements WHERE name = ?", name).Scan(&types).Error)
		arguments := strings.TrimSuffix(strings.Repeat("'{}', ", 1+strings.Count(types, ",")), ", ")
		var plan []string
		must(t, db.Raw("EXPLAIN EXECUTE \""+name+"\" ("+arguments+")").Scan(&plan).Error)
		text := strings.Join(plan, "\n")
		if !strings.Contains(text, "Hash Cond") && !strings.Contains(text, "Index Cond") || strings.Contains(text, "Join Filter") {
			t.Errorf("the plan compares each row with each value:\n%s", text)
		}
	}
}
