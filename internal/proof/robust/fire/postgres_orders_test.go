//go:build linux

package fire

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	gormpostgres "gorm.io/driver/postgres"
	"gorm.io/gorm"

	"github.com/snowkey/snowkey/core"
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

// What it must find is TestOrdersThatNoStandbyHasAreMissed.
func TestOrdersOnASynchronousStandbyAreWholeOrAbsent(t *testing.T) {
	needPostgres(t)
	c := newPostgres(t, NewNetwork(t), true, "on")
	Orders{Shop: "PostgreSQL", DSN: c.dsn(), Network: c.network, Strike: c.failover(0, 3*time.Second)}.Run(t).Whole(t)
}

// The run that shows that orders which are lost would be found: commits do not wait.
func TestOrdersThatNoStandbyHasAreMissed(t *testing.T) {
	Nightly(t)
	needPostgres(t)
	c := newPostgres(t, NewNetwork(t), true, "local")
	r := Orders{Shop: "PostgreSQL", DSN: c.dsn(), Network: c.network, Strike: c.failover(2*time.Second, 3*time.Second), Once: true}.Run(t)
	if len(r.Problems) == 0 {
		t.Errorf("no problem with %d orders; want some that were lost, or the check finds nothing", r.Orders)
	}
}

// PostgreSQL shows a row whose commit was cut off before the standby had it. pgx returns an
// error then, and lib/pq none.
func TestTransactionThatNoStandbyHasIsUnknown(t *testing.T) {
	needPostgres(t)
	c := newPostgres(t, NewNetwork(t), true, "on")
	for _, s := range orderTables {
		if err := c.primary.exec(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	g, err := core.New(core.Config{Worker: core.StaticWorker(1)})
	if err != nil {
		t.Fatal(err)
	}
	c.detach()
	for _, name := range []string{"pgx", "postgres"} {
		db, err := sqlx.Open(name, c.dsn())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = db.Close() }()
		o := &order{Number: name, LineCount: 1, Lines: []orderLine{{Quantity: 1}}}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		err = sqlxhelper.InTx(ctx, db, nil, func(tx *sqlx.Tx) error {
			return sqlxhelper.New(g).InsertGraph(ctx, tx, "fire_orders", o)
		})
		cancel()
		if !errors.Is(err, sqlxhelper.ErrCommitUnknown) {
			t.Errorf("by %s: InTx of what no standby has = %v; want %v", name, err, sqlxhelper.ErrCommitUnknown)
		}
		var seen int
		if err := c.primary.admin.QueryRowContext(t.Context(), "SELECT count(*) FROM fire_orders WHERE number = $1", name).Scan(&seen); err != nil || seen != 1 {
			t.Errorf("by %s: the primary shows %d orders, %v; want the one, or the test shows nothing", name, seen, err)
		}
	}
}
