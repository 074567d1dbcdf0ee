package servers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jmoiron/sqlx"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	"github.com/snowkey/snowkey"
	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/serial"
	"github.com/snowkey/snowkey/core/serial/sqlserial"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/sqlxhelper/pgxcopy"
	"github.com/snowkey/snowkey/types"
)

type (
	tenantOrder struct {
		ID     types.Snowflake `db:"id"`
		Number string          `db:"number" gorm:"uniqueIndex"`
		Lines  []tenantLine    `db:"-" snowkey:"lines,fk=order_id" gorm:"foreignKey:OrderID"`
	}
	tenantLine struct {
		ID      types.Snowflake `db:"id"`
		OrderID types.Snowflake `db:"order_id"`
	}
)

func (tenantOrder) TableName() string { return "orders" }
func (tenantLine) TableName() string  { return "lines" }

// tenants is what a program has that serves two tenants on one pool, as docs/tenants.md says.
type tenants struct {
	pool    *sqlx.DB
	orm     *gorm.DB
	gen     *core.Generator
	serials *sqlserial.Store
	begin   func(tenant string) string // what each transaction sends first
}

// tenantsOf makes the tables by statements of the administrator. The program is a role to which row
// level security applies.
func tenantsOf(t *testing.T, statements func(role string) []string, begin func(tenant string) string) tenants {
	t.Helper()
	g := namesPostgres(t)
	role := newRole(t, g.admin)
	g.exec(t, statements(role)...)
	g.exec(t, "GRANT CREATE, USAGE ON SCHEMA public TO "+role)
	u := parsed(t, g.dsn)
	query := u.Query()
	query.Del("search_path")
	query.Set("role", role)
	u.RawQuery = query.Encode()
	s := tenants{pool: openSqlx(t, "pgx", u.String()), begin: begin}
	var err error
	s.gen, err = snowkey.Open(t.Context(), s.pool.DB, snowkey.Config{Table: "public.snowkey_leases", Logger: quiet})
	must(t, err)
	t.Cleanup(func() { _ = s.gen.Close(context.Background()) })
	s.orm, err = gorm.Open(postgres.New(postgres.Config{Conn: s.pool.DB}), &gorm.Config{Logger: logger.Discard})
	must(t, err)
	must(t, s.orm.Use(gormplugin.New(s.gen)))
	s.serials, err = sqlserial.New(s.pool.DB, sqlstore.Config{Dialect: sqlstore.PostgreSQL, Table: "public.snowkey_counters", Logger: quiet})
	must(t, err)
	must(t, s.serials.CreateTables(t.Context()))
	return s
}

// in runs a function in a transaction of a tenant.
func (s tenants) in(t *testing.T, tenant string, f func(tx *sqlx.Tx) error) error {
	return sqlxhelper.InTx(t.Context(), s.pool, nil, func(tx *sqlx.Tx) error {
		if _, err := tx.Exec(s.begin(tenant)); err != nil {
			return err
		}
		return f(tx)
	})
}

// serve does what programs do for each tenant, and sees that nothing goes to another one.
func (s tenants) serve(t *testing.T) {
	t.Helper()
	h := sqlxhelper.New(s.gen)
	for _, tenant := range []string{"tenant_a", "tenant_b"} {
		series := serial.Series{Name: tenant, Scope: tenant, Digits: 3} // the texts of two tenants may be equal
		must(t, s.serials.Define(t.Context(), series))
		order, again := tenantOrder{Number: tenant, Lines: make([]tenantLine, 2)}, tenantOrder{Number: tenant}
		must(t, s.in(t, tenant, func(tx *sqlx.Tx) error {
			n, err := s.serials.NextIn(t.Context(), tx, series, time.Now())
			if n.N != 1 {
				t.Errorf("the first number of %s is %d", tenant, n.N)
			}
			many := make([]tenantOrder, 60) // by COPY, or VALUES where PostgreSQL refuses that, which the Helper finds out
			for i := range many {
				many[i].Number = fmt.Sprint(tenant, i)
			}
			return errors.Join(err, h.InsertGraph(t.Context(), tx, "orders", &order),
				h.With(sqlxhelper.OnConflictDoNothing("number")).Insert(t.Context(), tx, "orders", &again),
				h.With(sqlxhelper.WithCopy(pgxcopy.Copier{}, 20)).InsertMany(t.Context(), tx, "orders", many))
		}))
		met := tenantOrder{Number: tenant, Lines: make([]tenantLine, 1)}
		must(t, gormplugin.InTx(t.Context(), s.orm, nil, func(tx *gorm.DB) error {
			upsert := clause.OnConflict{Columns: []clause.Column{{Name: "number"}}, DoNothing: true}
			return errors.Join(tx.Exec(s.begin(tenant)).Error, tx.Clauses(upsert).Create(&met).Error)
		}))
		if again.ID != order.ID || met.ID != order.ID || met.Lines[0].OrderID != order.ID {
			t.Errorf("upserts of %s have met %d and %d, with a line of %d; want %d", tenant, again.ID, met.ID, met.Lines[0].OrderID, order.ID)
		}
		must(t, s.in(t, tenant, func(tx *sqlx.Tx) (err error) {
			var orders, lines int
			if err = tx.QueryRow("SELECT (SELECT count(*) FROM orders), (SELECT count(*) FROM lines)").Scan(&orders, &lines); orders != 61 || lines != 3 {
				t.Errorf("%s has %d orders and %d lines; want its own, 61 and 3", tenant, orders, lines)
			}
			return err
		}))
	}
}

func TestTenantsWithASchemaEachShareLeasesAndNothingElse(t *testing.T) {
	t.Parallel()
	tenantsOf(t, func(role string) (all []string) {
		for _, tenant := range []string{"tenant_a", "tenant_b"} {
			all = append(all, "CREATE TABLE "+tenant+".orders (id bigint PRIMARY KEY, number text UNIQUE)",
				"CREATE TABLE "+tenant+".lines (id bigint PRIMARY KEY, order_id bigint NOT NULL REFERENCES "+tenant+".orders)",
				"GRANT USAGE ON SCHEMA "+tenant+" TO "+role, "GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA "+tenant+" TO "+role)
		}
		return all
	}, func(tenant string) string { return "SET LOCAL search_path TO " + tenant }).serve(t)
}

func TestTenantsOfRowLevelSecuritySeeTheirRowsAlone(t *testing.T) {
	t.Parallel()
	_, blocks := onPage(t, "tenants.md")
	lines := strings.NewReplacer("orders", "lines", "number text", "order_id bigint NOT NULL REFERENCES orders").Replace(blocks[0])
	s := tenantsOf(t, func(role string) []string {
		return []string{blocks[0], "ALTER TABLE orders ADD UNIQUE (number)", lines, "GRANT SELECT, INSERT, UPDATE ON orders, lines TO " + role}
	}, func(tenant string) string { return "SELECT set_config('app.tenant', '" + tenant + "', true)" })
	s.serve(t)

	// After COMMIT the setting is '' on this connection, and not missing as on a fresh one.
	s.pool.SetMaxOpenConns(1)
	must(t, s.in(t, "tenant_a", func(*sqlx.Tx) error { return nil }))
	for call, err := range map[string]error{
		"Insert": sqlxhelper.New(s.gen).Insert(t.Context(), s.pool, "orders", &tenantOrder{Number: "nobody's"}),
		"Create": s.orm.WithContext(t.Context()).Create(&tenantOrder{Number: "nobody's, of GORM"}).Error,
	} {
		var refused *pgconn.PgError
		if !errors.As(err, &refused) || refused.Code != "42501" {
			t.Errorf("%s on the pool, without a tenant = %v; want that PostgreSQL refuses the row, 42501", call, err)
		}
	}
	var seen int
	if err := s.pool.Get(&seen, "SELECT count(*) FROM orders"); err != nil || seen != 0 {
		t.Errorf("a SELECT without a tenant sees %d orders, %v; want none", seen, err)
	}

	// A unique index sees the rows of all tenants. One that is met and hidden is an error that says so.
	err := s.in(t, "tenant_b", func(tx *sqlx.Tx) error {
		return sqlxhelper.New(s.gen, sqlxhelper.OnConflictDoNothing("number")).Insert(t.Context(), tx, "orders", &tenantOrder{Number: "tenant_a"})
	})
	if !errors.Is(err, sqlxhelper.ErrUnresolved) || !strings.Contains(err.Error(), "row level security may hide it") {
		t.Errorf("an upsert that meets a row of another tenant = %v; want ErrUnresolved that names row level security", err)
	}
}
