//go:build unix

package servers

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/snowkey/snowkey/core/lease/sqllease"
	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/core/segment/sqlsegment"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/gormplugin/schemacheck"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/sqlxhelper/pgxcopy"
	"github.com/snowkey/snowkey/types"
)

// What the errors advise.
const (
	adviceOnDriver = "(behind a pooler, set default_query_exec_mode=exec (pgx) or binary_parameters=yes (lib/pq))"
	adviceOnPooler = "(a pooler in statement mode does that: set it to transaction or session mode)"
)

// plugin returns a plugin that shares its source of keys with all other calls.
func (p pooler) plugin() *gormplugin.Plugin {
	return gormplugin.New(gormplugin.SourceFunc(func(ctx context.Context) (types.Snowflake, error) {
		var id [1]types.Snowflake
		err := p.keys.Fill(ctx, id[:])
		return id[0], err
	}))
}

// pooledCalls are what a program does through a pooler, each once.
func pooledCalls(t *testing.T, p pooler, name string) map[string]func(ctx context.Context) error {
	t.Helper()
	g := leaseTarget{place: p.in(t, name)}
	pool := g.open(t)
	db := sqlx.NewDb(pool, g.driver)
	leases, err := sqllease.New(pool, sqlstore.Config{Dialect: g.dialect(), Logger: quiet})
	must(t, err)
	segments, err := sqlsegment.New(pool, sqlstore.Config{Dialect: g.dialect(), Logger: quiet})
	must(t, err)
	orm := func(pool *sql.DB, prepared, alone bool) *gorm.DB {
		orm, err := gorm.Open(postgres.New(postgres.Config{Conn: pool}), &gorm.Config{Logger: logger.Discard, PrepareStmt: prepared, SkipDefaultTransaction: alone})
		must(t, err)
		must(t, orm.Use(p.plugin()))
		return orm
	}
	boxes := 0
	create := func(orm *gorm.DB) func(ctx context.Context) error {
		return func(ctx context.Context) error {
			boxes++
			b := box{Name: fmt.Sprint(name, boxes), Things: []thing{{Name: "x"}}}
			return orm.WithContext(ctx).Create(&b).Error
		}
	}
	h := sqlxhelper.New(p.keys)
	return map[string]func(ctx context.Context) error{
		"lease": func(ctx context.Context) error {
			c := newLease()
			r, err := leases.Claim(ctx, c)
			if err == nil {
				_, err = leases.Renew(ctx, leaseRenewal(c, r))
			}
			return err
		},
		"tables": leases.CreateTables,
		"segment": func(ctx context.Context) error {
			_, err := segments.Take(ctx, segment.Take{Tag: "orders"})
			return err
		},
		"Insert":     func(ctx context.Context) error { return h.Insert(ctx, db, "notes", &bulkNote{}) },
		"InsertMany": func(ctx context.Context) error { return h.InsertMany(ctx, db, "notes", make([]bulkNote, 5)) },
		"arrays":     func(ctx context.Context) error { return h.InsertMany(ctx, db, "notes", make([]bulkNote, 200)) },
		"several": func(ctx context.Context) error { // statements: an array column goes by VALUES
			return h.InsertMany(ctx, db, "listed", make([]bulkListed, 3300))
		},
		"COPY": func(ctx context.Context) error {
			return h.With(sqlxhelper.WithCopy(pgxcopy.Copier{}, 11)).InsertMany(ctx, db, "notes", make([]bulkNote, 200))
		},
		"InTx": func(ctx context.Context) error {
			return sqlxhelper.InTx(ctx, db, nil, func(tx *sqlx.Tx) error {
				if err := h.Insert(ctx, tx, "notes", &bulkNote{}); err != nil {
					return err
				}
				if err := h.Insert(ctx, tx, "notes", &bulkNote{ID: 1}); sqlState(err) != "23505" {
					return fmt.Errorf("a duplicate under a savepoint = %w; want 23505", err)
				}
				return h.InsertMany(ctx, tx, "notes", make([]bulkNote, 200))
			})
		},
		"GORM":                     create(orm(pool, false, false)),
		"GORM without transaction": create(orm(pool, false, true)),
		"GORM with PrepareStmt":    create(orm(pool, true, false)),
		"schemacheck": func(ctx context.Context) error {
			_, err := schemacheck.Check(ctx, orm(pool, false, false), &box{}, &thing{})
			return err
		},
	}
}

type bulkListed struct {
	bulkNote
	List []string `db:"list"`
}

// prepare makes the tables of pooledCalls, past the pooler.
func (p pooler) prepare(t *testing.T) {
	t.Helper()
	execSqlx(t, p.admin, "CREATE TABLE notes (id bigint PRIMARY KEY, note text)")
	execSqlx(t, p.admin, "INSERT INTO notes VALUES (1, 'the duplicate')")
	execSqlx(t, p.admin, "CREATE TABLE listed (id bigint PRIMARY KEY, note text, list text[])")
	g := leaseTarget{place: p.in(t, "pgx")}
	g.store(t, p.admin.DB)
	s := g.segments(t, p.admin.DB, "")
	must(t, s.CreateTables(t.Context()))
	must(t, s.Create(t.Context(), segment.Row{Tag: "orders", Next: 1, Step: 5, Stride: 1}))
	orm, err := gorm.Open(postgres.New(postgres.Config{Conn: p.admin.DB}), &gorm.Config{Logger: logger.Discard})
	must(t, err)
	must(t, orm.AutoMigrate(&box{}, &thing{}))
}

// firstError calls f ten times, or until it fails.
func firstError(t *testing.T, f func(ctx context.Context) error) error {
	t.Helper()
	for range 10 {
		ctx, cancel := context.WithTimeout(t.Context(), hangs)
		err := f(ctx)
		cancel()
		if err != nil {
			return err
		}
	}
	return nil
}

// chance is for a call that the statements of others may or may not let through.
const chance = "?"

// wantRefused makes all calls in a mode of a driver. refused are those that fail, by a
// part of what they say. The others succeed.
func wantRefused(t *testing.T, p pooler, name string, refused map[string]string) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		for call, f := range pooledCalls(t, p, name) {
			want, fails := refused[call]
			if want == chance {
				continue
			}
			err := firstError(t, f)
			switch {
			case !fails && err != nil:
				t.Errorf("%s = %v; want nil", call, err)
			case fails && (err == nil || !strings.Contains(err.Error(), want)):
				t.Errorf("%s = %v; want %q", call, err, want)
			case fails && (errors.Is(err, context.DeadlineExceeded) || strings.Count(err.Error(), want) > 1):
				t.Errorf("%s = %v; want %q once, and before the context ends", call, err, want)
			}
		}
	})
}

func TestPgBouncerInTransactionMode(t *testing.T) {
	p := newPooler(t, "transaction")
	p.prepare(t)
	const prepared = "prepared statement"
	// Nothing is kept on a connection, and parameters go with the statement.
	wantRefused(t, p, "pgx exec", map[string]string{"GORM with PrepareStmt": chance})
	wantRefused(t, p, "pgx simple protocol", map[string]string{"GORM with PrepareStmt": chance})
	wantRefused(t, p, "pgx cache describe", map[string]string{"GORM with PrepareStmt": chance})
	wantRefused(t, p, "pq binary", map[string]string{"GORM with PrepareStmt": chance, "COPY": "the driver is not pgx"})
	// A statement is prepared on one connection, and run on another. In a transaction
	// there is one connection.
	for _, name := range []string{"pgx describe exec", "pq"} {
		wantRefused(t, p, name, map[string]string{"Insert": chance, "InsertMany": chance, "arrays": chance, "COPY": chance,
			"GORM without transaction": chance, "GORM with PrepareStmt": chance, "schemacheck": chance})
		fresh := newPooler(t, "transaction")
		fresh.prepare(t)
		for _, call := range []string{"Insert", "InsertMany"} {
			if err := pooledCalls(t, fresh, name)[call](t.Context()); err == nil || !strings.HasSuffix(err.Error(), adviceOnDriver) {
				t.Errorf("%s: %s = %v; want %q", name, call, err, adviceOnDriver)
			}
		}
	}
	// The default: it is kept prepared on connections that others use. A lease begins anew in a
	// transaction, which may come through.
	wantRefused(t, p, "pgx", map[string]string{
		"lease": chance, "tables": adviceOnDriver, "segment": adviceOnDriver,
		"Insert": adviceOnDriver, "InsertMany": adviceOnDriver, "arrays": adviceOnDriver, "several": adviceOnDriver, "COPY": adviceOnDriver, "InTx": adviceOnDriver,
		"GORM": prepared, "GORM without transaction": prepared, "GORM with PrepareStmt": chance, "schemacheck": adviceOnDriver})
}

func TestPgBouncerInStatementMode(t *testing.T) {
	p := newPooler(t, "statement")
	p.prepare(t)
	const said = "transaction blocks not allowed in statement pooling mode"
	refused := map[string]string{
		"lease": adviceOnPooler, "tables": adviceOnPooler, "segment": adviceOnPooler,
		"several": adviceOnPooler, "COPY": adviceOnPooler, "InTx": adviceOnPooler,
		"GORM": said, "GORM with PrepareStmt": said,
	}
	wantRefused(t, p, "pgx exec", refused)
	wantRefused(t, p, "pgx simple protocol", refused)
	for _, call := range []string{"GORM", "GORM with PrepareStmt"} {
		refused[call] = "bad connection" // lib/pq keeps the reason to itself
	}
	wantRefused(t, p, "pq binary", refused)
}

// lib/pq sends a statement and its parameters apart, unless binary_parameters is on. A
// pooler brings the parameters to a connection that may have the statement of another
// client. That is the reason for what the pages say.
func TestPgBouncerLetsLibPQRunTheStatementOfAnother(t *testing.T) {
	p := newPooler(t, "transaction")
	for _, table := range []string{"a", "b"} {
		execSqlx(t, p.admin, "CREATE TABLE "+table+" (id bigint PRIMARY KEY, note text)")
	}
	db := p.in(t, "pq").open(t)
	strayed := 0
	for id := 1; id < 200 && strayed == 0; id++ {
		// A statement without a name stays on its connection until the next one.
		_, _ = db.Exec("INSERT INTO a VALUES ($1, $2)", id*2, "a")
		for range id % 8 {
			_, _ = db.Exec("SELECT 1")
		}
		_, _ = db.Exec("INSERT INTO b VALUES ($1, $2)", id*2+1, "b")
		must(t, p.admin.Get(&strayed, "SELECT count(*) FROM a WHERE note = 'b'"))
	}
	if strayed == 0 {
		t.Error("no row has got into another table; want one, or the pages need not warn")
	}
}

// The whole suites, in the mode that the pages name first.
func TestStoresPassTheirSuitesThroughPgBouncer(t *testing.T) {
	p := newPooler(t, "transaction")
	g := leaseTarget{place: p.in(t, "pgx exec"), admin: p.admin.DB}
	t.Run("leases", g.run)
	t.Run("segments", g.runSegments)
}
