package servers

import (
	"testing"

	"gorm.io/driver/mysql"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"

	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/internal/proof/cases/gormcases"
)

func TestGormUpserts(t *testing.T) {
	t.Parallel()
	type way struct {
		gormTarget
		options []gormplugin.Option
	}
	var ways []way
	for _, target := range gormTargets[1:] { // SQLite is run by gormplugin
		ways = append(ways, way{gormTarget: target})
		if target.name == "MySQL" || target.name == "MariaDB" {
			// The driver writes the values into the statement, and RowsAffected counts the rows that were met.
			ways = append(ways, way{gormTarget: gormTarget{target.name + "InterpolatedThatCountsFoundRows", target.returning, func(t testing.TB) func() gorm.Dialector {
				t.Helper()
				dsn := target.dialector(t)().(*mysql.Dialector).DSN + "&interpolateParams=true&clientFoundRows=true"
				return func() gorm.Dialector { return mysql.New(mysql.Config{DSN: dsn}) }
			}}})
		}
	}
	for name, open := range map[string]func(dsn string) postgres.Config{
		"LibPq": func(dsn string) postgres.Config { return postgres.Config{DriverName: "postgres", DSN: dsn} },
		"SimpleProtocol": func(dsn string) postgres.Config {
			return postgres.Config{DSN: dsn, PreferSimpleProtocol: true}
		},
		"WithUnnest": func(dsn string) postgres.Config { return postgres.Config{DSN: dsn} },
	} {
		w := way{gormTarget: gormTarget{"PostgreSQL" + name, true, func(t testing.TB) func() gorm.Dialector {
			t.Helper()
			config := open(wayTo("pgx").place(t).dsn)
			return func() gorm.Dialector { return postgres.New(config) }
		}}}
		if name == "WithUnnest" {
			w.options = []gormplugin.Option{gormplugin.WithUnnest()}
		}
		ways = append(ways, w)
	}
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			cases := way.cases(t)
			cases.Options = way.options
			gormcases.RunUpserts(t, cases)
		})
	}
}
