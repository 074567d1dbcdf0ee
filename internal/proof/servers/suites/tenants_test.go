package servers

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	"github.com/snowkey/snowkey/core/feed"
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
	admin *sqlx.DB // of whom no policy is
	role  string
	pool  *sqlx.DB
	orm   *gorm.DB
	gen   *core.Generator
	begin func(tenant string) string // what each transaction sends first
	count func(tenant string) (orders, lines int)
}

// tenantsOf makes the tables by statements of the administrator. The program is a role to which row
// level security applies.
func tenantsOf(t *testing.T, statements func(role string) []string) *tenants {
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
	s := &tenants{admin: openSqlx(t, "pgx", g.dsn), role: role, pool: openSqlx(t, "pgx", u.String())}
	var err error
	s.gen, err = snowkey.Open(t.Context(), s.pool.DB, snowkey.Config{Table: "public.snowkey_leases"})
	must(t, err)
	t.Cleanup(func() { _ = s.gen.Close(context.Background()) })
	s.orm, err = gorm.Open(postgres.New(postgres.Config{Conn: s.pool.DB}), &gorm.Config{Logger: logger.Discard})
	must(t, err)
	must(t, s.orm.Use(gormplugin.New(s.gen)))
	s.count = func(tenant string) (orders, lines int) {
		t.Helper()
		must(t, sqlxhelper.InTx(t.Context(), s.pool, nil, func(tx *sqlx.Tx) error {
			if _, err := tx.Exec(s.begin(tenant)); err != nil {
				return err
			}
			return tx.QueryRow("SELECT (SELECT count(*) FROM orders), (SELECT count(*) FROM lines)").Scan(&orders, &lines)
		}))
		return orders, lines
	}
	return s
}

// sqlx stores an order of a tenant.
func (s *tenants) sqlx(ctx context.Context, tenant string, h *sqlxhelper.Helper, f func(h *sqlxhelper.Helper, tx *sqlx.Tx) error) error {
	return sqlxhelper.InTx(ctx, s.pool, nil, func(tx *sqlx.Tx) error {
		if _, err := tx.Exec(s.begin(tenant)); err != nil {
			return err
		}
		return f(h, tx)
	})
}

// serve does what programs do for each tenant, and sees that nothing goes to another one.
func (s *tenants) serve(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	h := sqlxhelper.New(s.gen)
	names := []string{"tenant_a", "tenant_b"}
	for n, tenant := range names {
		number := func(i int) string { return fmt.Sprint(tenant, " ", i) }
		// sqlx: a graph, and an upsert that meets its row.
		order := tenantOrder{Number: number(1), Lines: make([]tenantLine, 2)}
		must(t, s.sqlx(ctx, tenant, h, func(h *sqlxhelper.Helper, tx *sqlx.Tx) error { return h.InsertGraph(ctx, tx, "orders", &order) }))
		again := tenantOrder{Number: number(1)}
		must(t, s.sqlx(ctx, tenant, h.With(sqlxhelper.OnConflictDoNothing("number")), func(h *sqlxhelper.Helper, tx *sqlx.Tx) error {
			return h.Insert(ctx, tx, "orders", &again)
		}))
		if again.ID != order.ID {
			t.Errorf("an upsert of %s has the key %d; want the stored %d", tenant, again.ID, order.ID)
		}
		// GORM: the same.
		third := tenantOrder{Number: number(2), Lines: make([]tenantLine, 3)}
		must(t, gormplugin.InTx(ctx, s.orm, nil, func(tx *gorm.DB) error {
			if err := tx.Exec(s.begin(tenant)).Error; err != nil {
				return err
			}
			if err := tx.Create(&third).Error; err != nil {
				return err
			}
			met := tenantOrder{Number: number(1), Lines: make([]tenantLine, 1)}
			if err := tx.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "number"}}, DoNothing: true}).Create(&met).Error; err != nil {
				return err
			}
			if met.ID != order.ID || met.Lines[0].OrderID != order.ID {
				t.Errorf("a create of %s met the key %d, its line %d; want %d", tenant, met.ID, met.Lines[0].OrderID, order.ID)
			}
			return nil
		}))
		// COPY, or VALUES where PostgreSQL refuses COPY, which the Helper finds out by itself.
		many := make([]tenantOrder, 60)
		for i := range many {
			many[i].Number = number(100 + i)
		}
		must(t, s.sqlx(ctx, tenant, h.With(sqlxhelper.WithCopy(pgxcopy.Copier{}, 20)), func(h *sqlxhelper.Helper, tx *sqlx.Tx) error {
			return h.InsertMany(ctx, tx, "orders", many)
		}))
		if orders, lines := s.count(tenant); orders != 62 || lines != 6 {
			t.Errorf("%s has %d orders and %d lines; want 62 and 6", tenant, orders, lines)
		}
		if n == 0 {
			if orders, lines := s.count(names[1]); orders+lines != 0 {
				t.Errorf("%s has %d orders and %d lines before its first; want none", names[1], orders, lines)
			}
		}
	}
}

func TestTenantsWithASchemaEachShareLeasesAndNothingElse(t *testing.T) {
	t.Parallel()
	s := tenantsOf(t, func(role string) (all []string) {
		for _, tenant := range []string{"tenant_a", "tenant_b"} {
			all = append(all, "CREATE TABLE "+tenant+".orders (id bigint PRIMARY KEY, number text UNIQUE)",
				"CREATE TABLE "+tenant+".lines (id bigint PRIMARY KEY, order_id bigint NOT NULL REFERENCES "+tenant+".orders)",
				"GRANT USAGE ON SCHEMA "+tenant+" TO "+role, "GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA "+tenant+" TO "+role)
		}
		return all
	})
	s.begin = func(tenant string) string { return "SET LOCAL search_path TO " + tenant }
	a, b := s.feed(t, s.admin, "tenant_a.orders", "mail"), s.feed(t, s.admin, "tenant_b.orders", "mail")
	must(t, errors.Join(a.Install(t.Context()), b.Install(t.Context())))
	s.serve(t)
	s.numbers(t, "tenant_a", "tenant_b")
	s.reads(t, a, "tenant_a.orders", 62)
	s.reads(t, b, "tenant_b.orders", 62)
}

func TestTenantsOfRowLevelSecuritySeeTheirRowsAlone(t *testing.T) {
	t.Parallel()
	_, blocks := onPage(t, "tenants.md")
	lines := strings.NewReplacer("orders", "lines", "number text", "order_id bigint NOT NULL REFERENCES orders").Replace(blocks[0])
	s := tenantsOf(t, func(role string) []string {
		return []string{blocks[0], "ALTER TABLE orders ADD UNIQUE (number)", lines, "GRANT SELECT, INSERT, UPDATE ON orders, lines TO " + role}
	})
	s.begin = func(tenant string) string { return "SELECT set_config('app.tenant', '" + tenant + "', true)" }
	all := s.feed(t, s.admin, "public.orders", "mail")
	must(t, all.Install(t.Context()))
	s.serve(t)
	s.numbers(t, "tenant_a", "tenant_b")

	// A reader whose role has no BYPASSRLS skips what it does not see.
	s.reads(t, all, "public.orders", 124)
	execSqlx(t, s.admin, "GRANT ALL ON ALL TABLES IN SCHEMA public TO "+s.role)
	execSqlx(t, s.admin, "GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO "+s.role)
	if keys, err := s.feed(t, s.pool, "public.orders", "web").Keys(t.Context(), 0, 1000); len(keys) != 0 || err != nil {
		t.Errorf("the feed of a role with row level security = %d keys, %v; want none without a tenant", len(keys), err)
	}

	// After COMMIT the setting is '' on this connection, and not missing as on a fresh one.
	s.pool.SetMaxOpenConns(1)
	order := tenantOrder{Number: "nobody's"}
	must(t, s.sqlx(t.Context(), "tenant_a", nil, func(_ *sqlxhelper.Helper, tx *sqlx.Tx) error { return nil }))
	for call, err := range map[string]error{
		"Insert": sqlxhelper.New(s.gen).Insert(t.Context(), s.pool, "orders", &order),
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
	err := s.sqlx(t.Context(), "tenant_b", sqlxhelper.New(s.gen, sqlxhelper.OnConflictDoNothing("number")), func(h *sqlxhelper.Helper, tx *sqlx.Tx) error {
		return h.Insert(t.Context(), tx, "orders", &tenantOrder{Number: "tenant_a 1"})
	})
	if !errors.Is(err, sqlxhelper.ErrUnresolved) {
		t.Errorf("an upsert that meets a row of another tenant = %v; want ErrUnresolved", err)
	}
}

// feed returns a feed of a table, which db reads.
func (s *tenants) feed(t *testing.T, db *sqlx.DB, table, reader string) *feed.Feed {
	t.Helper()
	f, err := feed.New(feed.Config{DB: db.DB, Dialect: feed.PostgreSQL, Table: table, Reader: reader})
	must(t, err)
	return f
}

// reads fails the test unless f gives all keys of a table, of which there are n.
func (s *tenants) reads(t *testing.T, f *feed.Feed, table string, n int) {
	t.Helper()
	var want, got []types.Snowflake
	must(t, s.admin.Select(&want, "SELECT id FROM "+table+" ORDER BY id"))
	for end := time.Now().Add(hangs); len(got) < n && time.Now().Before(end); time.Sleep(20 * time.Millisecond) { // the slack, and the transactions of others
		last := types.Snowflake(0)
		if len(got) > 0 {
			last = got[len(got)-1]
		}
		keys, err := f.Keys(t.Context(), last, 1000)
		must(t, err)
		got = append(got, keys...)
	}
	if len(want) != n || !slices.Equal(got, want) {
		t.Errorf("the feed of %s gives %d keys; want the %d that it has, which are %d", table, len(got), n, len(want))
	}
}

// numbers takes serial numbers of a series for each tenant, in the transactions of the tenants.
func (s *tenants) numbers(t *testing.T, names ...string) {
	t.Helper()
	store, err := sqlserial.New(s.pool.DB, sqlstore.Config{Dialect: sqlstore.PostgreSQL, Table: "public.snowkey_counters", Logger: quiet})
	must(t, err)
	must(t, store.CreateTables(t.Context()))
	for _, tenant := range names {
		series := serial.Series{Name: tenant, Scope: tenant, Digits: 3} // the texts of two tenants may be equal
		must(t, store.Define(t.Context(), series))
		for i := range 2 {
			must(t, s.sqlx(t.Context(), tenant, nil, func(_ *sqlxhelper.Helper, tx *sqlx.Tx) error {
				n, err := store.NextIn(t.Context(), tx, series, time.Now())
				if err == nil && n.N != int64(i+1) {
					t.Errorf("number %d of %s is %d", i+1, tenant, n.N)
				}
				return err
			}))
		}
	}
}
