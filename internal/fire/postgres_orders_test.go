//go:build linux

package fire

import (
	"database/sql"
	"testing"
	"time"

	gormpostgres "gorm.io/driver/postgres"
	"gorm.io/gorm"

	"github.com/snowkey/snowkey/sqlxhelper"
)

func init() {
	shops["PostgreSQL"] = shop{
		Dialect: sqlxhelper.PostgreSQL,
		Open: func(dsn string) (*sql.DB, error) {
			db, err := sql.Open("pgx", dsn)
			if err == nil {
				db.SetMaxOpenConns(4)
			}
			return db, err
		},
		GORM: func(db *sql.DB) gorm.Dialector { return gormpostgres.New(gormpostgres.Config{Conn: db}) },
	}
}

func TestOrdersOnASynchronousStandbyAreWholeOrAbsent(t *testing.T) {
	needPostgres(t)
	c := newPostgres(t, NewNetwork(t), true, "on")
	Orders{Shop: "PostgreSQL", DSN: c.dsn(), Network: c.network, Strike: c.failover(0, 3*time.Second)}.Run(t).Whole(t)
}

// The run that shows that orders which are lost would be found: commits do not wait.
func TestOrdersThatNoStandbyHasAreMissed(t *testing.T) {
	needPostgres(t)
	c := newPostgres(t, NewNetwork(t), true, "local")
	r := Orders{Shop: "PostgreSQL", DSN: c.dsn(), Network: c.network, Strike: c.failover(time.Second, 3*time.Second)}.Run(t)
	if len(r.Problems) == 0 {
		t.Errorf("no problem with %d orders; want some that were lost, or the check finds nothing", r.Orders)
	}
}
