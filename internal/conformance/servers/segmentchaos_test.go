//go:build unix

package servers

import (
	"database/sql"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/snowkey/snowkey/core/segment/sqlsegment"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/segmentchaos"
	"github.com/snowkey/snowkey/internal/servertest"
)

func init() {
	segmentchaos.Main(map[string]segmentchaos.Open{
		"PostgreSQL": func(dsn string) (segmentchaos.Store, error) {
			return openChaosSegments("pgx", dsn, sqlstore.PostgreSQL)
		},
		"MariaDB": func(dsn string) (segmentchaos.Store, error) { return openChaosSegments("mysql", dsn, sqlstore.MySQL) },
		"MySQL":   func(dsn string) (segmentchaos.Store, error) { return openChaosSegments("mysql", dsn, sqlstore.MySQL) },
	})
}

func openChaosSegments(driver, dsn string, dialect sqlstore.Dialect) (*sqlsegment.Store, error) {
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(4)
	return sqlsegment.New(db, sqlstore.Config{Dialect: dialect, Logger: quiet})
}

// Five processes are killed, stopped, continued and restarted, and their requests get
// lost. With a longer -segmentchaos.for there is also a run that must repeat numbers.
func TestProcessesInChaosRepeatNoNumber(t *testing.T) {
	for name, target := range map[string]func(t *testing.T) leaseTarget{
		"PostgreSQL": func(t *testing.T) leaseTarget { return leasePostgres(t, pgxConnector) },
		"MariaDB":    func(t *testing.T) leaseTarget { return leaseMariaDB(t, func(*mysql.Config) {}) },
		"MySQL":      func(t *testing.T) leaseTarget { return leaseMySQL(t, servertest.MySQL(t), func(*mysql.Config) {}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, torn := range []bool{false, true} {
				if torn && !segmentchaos.Long() {
					return
				}
				g := target(t)
				s := g.segments(t, g.open(t), "")
				if err := s.CreateTables(t.Context()); err != nil {
					t.Fatal(err)
				}
				segmentchaos.Chaos{Name: name, DSN: g.dsn, Store: s, Torn: torn}.Run(t)
			}
		})
	}
}
