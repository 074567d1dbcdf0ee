package servers

import (
	"database/sql"
	"testing"

	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/proof/cases/serialcases"
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
