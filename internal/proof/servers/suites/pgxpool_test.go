package servers

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/snowkey/snowkey"
	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

// A program that has only a pgxpool needs no second pool for its leases, GORM and sqlx.
func TestAPgxpoolIsEnoughForLeasesGORMAndSqlx(t *testing.T) {
	ctx := t.Context()
	pool, err := pgxpool.New(ctx, servertest.PostgreSQL(t))
	must(t, err)
	defer pool.Close()
	db := stdlib.OpenDBFromPool(pool)
	defer func() { _ = db.Close() }()
	table, err := servertest.Table(db, "snowkey_pgxpool")
	must(t, err)
	if _, err := pool.Exec(ctx, "CREATE TABLE "+table+" (id bigint PRIMARY KEY, number text)"); err != nil {
		t.Fatal(err)
	}
	defer func() {
		for _, suffix := range []string{"", "_leases", "_leases_meta", "_leases_past"} {
			if _, err := db.Exec("DROP TABLE " + table + suffix); err != nil {
				t.Error(err)
			}
		}
	}()
	gen, err := snowkey.Open(ctx, db, snowkey.Config{Table: table + "_leases"})
	must(t, err)
	defer func() { _ = gen.Close(ctx) }()

	type order struct {
		ID     types.Snowflake `db:"id"`
		Number string          `db:"number"`
	}
	orm, err := gorm.Open(postgres.New(postgres.Config{Conn: db}), &gorm.Config{Logger: logger.Discard})
	if err == nil {
		err = orm.Use(gormplugin.New(gen))
	}
	must(t, err)
	a, b := order{Number: "a"}, order{Number: "b"}
	if err := orm.Table(table).Create(&a).Error; err != nil {
		t.Errorf("Create = %v", err)
	}
	if err := sqlxhelper.New(gen).Insert(ctx, sqlx.NewDb(db, "pgx"), table, &b); err != nil {
		t.Errorf("Insert = %v", err)
	}
	var stored []int64
	rows, err := pool.Query(ctx, "SELECT id FROM "+table+" ORDER BY id")
	if err == nil {
		for rows.Next() {
			var id int64
			must(t, rows.Scan(&id))
			stored = append(stored, id)
		}
		err = rows.Err()
	}
	if err != nil || len(stored) != 2 || stored[0] != a.ID.Int64() || stored[1] != b.ID.Int64() {
		t.Errorf("the table has %v, %v; want %d and %d", stored, err, a.ID, b.ID)
	}
}
