package servers

import (
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/snowkey/snowkey/core/serial"
	"github.com/snowkey/snowkey/core/serial/sqlserial"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/proof/cases/serialcases"
	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
)

// levels are those that a server has.
func levels(t *testing.T, g leaseTarget) []sql.IsolationLevel {
	t.Helper()
	all := []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable}
	switch {
	case g.dialect() == sqlstore.MySQL && isTiDB(t, g.open(t)):
		all = all[:2]
	case g.dialect() == sqlstore.MySQL:
		all = append(all, sql.LevelReadUncommitted)
	}
	return all
}

func serials(t *testing.T, g leaseTarget, levels ...sql.IsolationLevel) {
	t.Parallel() // most of the time they wait for disks
	serialcases.Run(t, serialcases.Target{
		Dialect: g.dialect(), Driver: g.driver, Levels: levels, Refuses: g.dialect() == sqlstore.PostgreSQL,
		Open: func(t *testing.T) *sql.DB { t.Helper(); return g.open(t) },
	})
}

func TestServersPassTheCasesOfSerials(t *testing.T) {
	t.Parallel()
	leaseTargets(t, func(t *testing.T, g leaseTarget) { serials(t, g, levels(t, g)...) })
}

// What a program may have set must not matter.
func TestServersPassTheCasesOfSerialsUnderOtherSettings(t *testing.T) {
	t.Parallel()
	for name, target := range map[string]func(t *testing.T) leaseTarget{
		"SimpleProtocol": func(t *testing.T) leaseTarget { return wayTo("pgx simple protocol").target(t) },
		"ClientFoundRows": func(t *testing.T) leaseTarget {
			return wayTo("MariaDBInterpolated").target(t, "clientFoundRows", "true")
		},
		"AnsiQuotes": func(t *testing.T) leaseTarget {
			return wayTo("MariaDB").target(t, "sql_mode", "'ANSI,PIPES_AS_CONCAT'")
		},
	} {
		t.Run(name, func(t *testing.T) { serials(t, target(t), sql.LevelDefault) })
	}
}

// In a transaction of GORM, its connections are one. Outside, they are a pool.
func TestNumbersAreTakenInsideOfTransactionsOfGORMAlone(t *testing.T) {
	series := serial.Series{Name: "gorm", Digits: 3}
	for _, target := range gormTargets {
		for _, prepare := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/prepared=%t", target.name, prepare), func(t *testing.T) {
				db, err := gorm.Open(target.dialector(t)(), &gorm.Config{PrepareStmt: prepare, Logger: logger.Discard})
				must(t, err)
				pool, err := db.DB()
				must(t, err)
				t.Cleanup(func() { _ = pool.Close() })
				dialect := map[string]sqlstore.Dialect{"sqlite": sqlstore.SQLite, "postgres": sqlstore.PostgreSQL, "mysql": sqlstore.MySQL}[db.Name()]
				table := ""
				if dialect != sqlstore.SQLite {
					table, err = servertest.Table(pool, sqlserial.DefaultTable)
					must(t, err)
				}
				store, err := sqlserial.New(pool, sqlstore.Config{Dialect: dialect, Table: table, Logger: quiet})
				must(t, err)
				must(t, store.CreateTables(t.Context()))
				must(t, store.Define(t.Context(), series))
				undone := errors.New("undone")
				want := int64(1)
				for _, end := range []error{undone, undone, nil, undone, nil} {
					err := db.WithContext(t.Context()).Transaction(func(tx *gorm.DB) error {
						n, err := store.NextIn(t.Context(), tx.Statement.ConnPool, series, time.Now())
						if err != nil || n.N != want {
							t.Errorf("NextIn in a transaction of GORM = %+v, %v; want %d", n, err, want)
						}
						return end
					})
					if !errors.Is(err, end) {
						t.Errorf("Transaction = %v; want %v", err, end)
					}
					if end == nil {
						want++
					}
				}
				if n, err := store.NextIn(t.Context(), db.Statement.ConnPool, series, time.Now()); !errors.Is(err, serial.ErrNotInTransaction) || n != (serial.Number{}) {
					t.Errorf("NextIn with GORM's pool, %T = %+v, %v; want %v", db.Statement.ConnPool, n, err, serial.ErrNotInTransaction)
				}
			})
		}
	}
}
