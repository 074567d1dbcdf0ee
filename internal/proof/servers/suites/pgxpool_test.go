package servers

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"

	"github.com/snowkey/snowkey"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

// A program that has only a pgxpool needs no second pool for its leases, GORM and sqlx.
func TestAPgxpoolIsEnoughForLeasesGORMAndSqlx(t *testing.T) {
	g := wayTo("pgx").target(t)
	g.exec(t, "CREATE TABLE suppressed (id bigint PRIMARY KEY, n bigint)")
	pool, err := pgxpool.New(t.Context(), g.dsn)
	must(t, err)
	defer pool.Close()
	db := stdlib.OpenDBFromPool(pool)
	defer func() { _ = db.Close() }()
	gen, err := snowkey.Open(t.Context(), db, g.opened(snowkey.Config{}))
	must(t, err)
	defer func() { must(t, gen.Close(t.Context())) }()
	orm, err := gormOn(sqlx.NewDb(db, "pgx"), gen)
	must(t, err)
	var a, b suppressed
	must(t, orm.Table("suppressed").Create(&a).Error)
	must(t, sqlxhelper.New(gen).Insert(t.Context(), sqlx.NewDb(db, "pgx"), "suppressed", &b))
	var stored [2]types.Snowflake
	must(t, pool.QueryRow(t.Context(), "SELECT min(id), max(id) FROM suppressed").Scan(&stored[0], &stored[1]))
	if a.ID == b.ID || stored != [2]types.Snowflake{a.ID, b.ID} {
		t.Errorf("the table has %v; want %d and %d", stored, a.ID, b.ID)
	}
}
