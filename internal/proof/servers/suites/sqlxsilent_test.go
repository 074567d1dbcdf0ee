package servers

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"
	"gorm.io/gorm"

	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/internal/proof/cases/sqlxcases"
	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
	"github.com/snowkey/snowkey/sqlxhelper"
)

// What a server of a test gets before it falls silent.
var silentAt = map[string]string{"Begin": "begin|start transaction", "Savepoint": "savepoint snow", "Insert": "insert into", "Look": " where ", "Release": "release", "Commit": "commit"}

// Every call that takes a context ends with it, though the server falls silent in the middle of it,
// whatever the driver makes of that. That it does so within a second is a claim of sqlxhelper's own tests,
// in simulated time.
func TestCallsEndWithTheirContextsThoughTheServerIsSilent(t *testing.T) {
	drivers := map[string]func(t *testing.T) behind{
		"Pq":        func(*testing.T) behind { return postgresBehind("postgres") },
		"PqBinary":  func(*testing.T) behind { return postgresBehind("postgres", "binary_parameters", "yes") },
		"Pgx":       func(*testing.T) behind { return postgresBehind("pgx") },
		"PgxSimple": func(*testing.T) behind { return postgresBehind("pgx", "default_query_exec_mode", "simple_protocol") },
		"MariaDB":   func(t *testing.T) behind { return mysqlBehind(servertest.MariaDB(t)) },
		"MySQL":     func(t *testing.T) behind { return mysqlBehind(servertest.MySQL(t)) },
		"MySQLInterpolating": func(t *testing.T) behind {
			return mysqlBehind(servertest.MySQL(t), func(c *mysql.Config) { c.InterpolateParams = true })
		},
	}
	many := make([]suppressed, 3)
	seq := func(yield func(suppressed, error) bool) {
		for range 3 {
			if !yield(suppressed{}, nil) {
				return
			}
		}
	}
	calls := map[string]struct {
		at   []string
		call func(ctx context.Context, h *sqlxhelper.Helper, db *sqlx.DB, tx *sqlx.Tx) error
	}{
		"Insert": {[]string{"Insert"}, func(ctx context.Context, h *sqlxhelper.Helper, db *sqlx.DB, _ *sqlx.Tx) error {
			return h.Insert(ctx, db, "suppressed", &suppressed{})
		}},
		"InsertPreset": {[]string{"Insert"}, func(ctx context.Context, h *sqlxhelper.Helper, db *sqlx.DB, _ *sqlx.Tx) error {
			row := suppressed{}
			row.ID = 7
			return h.Insert(ctx, db, "suppressed", &row)
		}},
		"InsertMany": {[]string{"Begin", "Insert", "Commit"}, func(ctx context.Context, h *sqlxhelper.Helper, db *sqlx.DB, _ *sqlx.Tx) error {
			return h.InsertMany(ctx, db, "suppressed", make([]suppressed, 33000))
		}},
		"Upsert": {[]string{"Begin", "Insert", "Look", "Commit"}, func(ctx context.Context, h *sqlxhelper.Helper, db *sqlx.DB, _ *sqlx.Tx) error {
			return h.With(sqlxhelper.ConflictTarget("id"), sqlxhelper.OnConflictUpdate("n")).InsertMany(ctx, db, "suppressed", many)
		}},
		"Returning": {[]string{"Begin", "Insert", "Look", "Commit"}, func(ctx context.Context, h *sqlxhelper.Helper, db *sqlx.DB, _ *sqlx.Tx) error {
			return h.With(sqlxhelper.Returning("n")).InsertMany(ctx, db, "suppressed", many)
		}},
		"InsertSeq": {[]string{"Begin", "Savepoint", "Insert", "Release", "Commit"}, func(ctx context.Context, h *sqlxhelper.Helper, db *sqlx.DB, _ *sqlx.Tx) error {
			_, err := sqlxhelper.InsertSeq(ctx, h, db, "suppressed", seq)
			return err
		}},
		"InsertManyInTransaction": {[]string{"Savepoint", "Insert", "Release"}, func(ctx context.Context, h *sqlxhelper.Helper, _ *sqlx.DB, tx *sqlx.Tx) error {
			return h.InsertMany(ctx, tx, "suppressed", many)
		}},
		"InsertSeqInTransaction": {[]string{"Savepoint", "Insert", "Release"}, func(ctx context.Context, h *sqlxhelper.Helper, _ *sqlx.DB, tx *sqlx.Tx) error {
			_, err := sqlxhelper.InsertSeq(ctx, h, tx, "suppressed", seq)
			return err
		}},
		"InTx": {[]string{"Begin", "Insert", "Commit"}, func(ctx context.Context, h *sqlxhelper.Helper, db *sqlx.DB, _ *sqlx.Tx) error {
			return sqlxhelper.InTx(ctx, db, nil, func(tx *sqlx.Tx) error { return h.InsertMany(ctx, tx, "suppressed", many) })
		}},
		// lib/pq waits for the answer to an insert.
		"GormInTx": {[]string{"Begin", "Commit"}, func(ctx context.Context, _ *sqlxhelper.Helper, db *sqlx.DB, _ *sqlx.Tx) error {
			g, err := gormOn(db, sqlxcases.NewCounter(0))
			if err != nil {
				return err
			}
			return gormplugin.InTx(ctx, g, nil, func(tx *gorm.DB) error { return tx.Table("suppressed").Create(make([]suppressed, 3)).Error })
		}},
		"InTxWithoutHelper": {[]string{"Begin", "Commit"}, func(ctx context.Context, _ *sqlxhelper.Helper, db *sqlx.DB, _ *sqlx.Tx) error {
			return sqlxhelper.InTx(ctx, db, nil, func(tx *sqlx.Tx) error { return nil })
		}},
	}
	for driver, open := range drivers {
		t.Run(driver, func(t *testing.T) {
			open := open(t)
			cells := newCrowd(t, 8)
			defer cells.wait()
			for name, c := range calls {
				for _, at := range c.at {
					cells.run(name+at, func(t *testing.T) {
						text := silentAt[at]
						proxy := &losing{what: silence, at: text}
						through, around := open(t, proxy)
						t.Cleanup(proxy.Stop) // before the pool is closed, whose driver may wait
						execSqlx(t, around.DB, "CREATE TABLE suppressed (id BIGINT PRIMARY KEY, n BIGINT)")
						var tx *sqlx.Tx
						if strings.HasSuffix(name, "InTransaction") {
							tx = through.DB.MustBegin()
						}
						ctx := expiring{t.Context(), proxy.reached}
						failed := make(chan error, 1)
						go func() { failed <- c.call(ctx, sqlxhelper.New(sqlxcases.NewCounter(0)), through.DB, tx) }()
						select {
						case err := <-failed:
							if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() == nil {
								t.Errorf("%s = %v; want the deadline", name, err)
							}
							if unknown := errors.Is(err, sqlxhelper.ErrCommitUnknown); unknown != (at == "Commit" || name == "Insert" || name == "InsertPreset") {
								t.Errorf("%s = %v; matches ErrCommitUnknown: %v", name, err, unknown)
							}
						case <-time.After(hangs):
							t.Errorf("%s has not returned after %v; want it to end with its context", name, hangs)
						}
					})
				}
			}
		})
	}
}
