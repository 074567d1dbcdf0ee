package servers

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"

	mysqldriver "github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"
	"gorm.io/driver/mysql"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/internal/proof/cases/sqlxcases"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

// A txPlugin is one of the two that have InTx, with the same claims.
type txPlugin struct {
	name string
	// on returns InTx on a pool, with keys after last.
	on func(t *testing.T, db *sqlx.DB, last types.Snowflake) inTxFunc
}

type inTxFunc func(ctx context.Context, fn func(tx pluginTx) error) error

// A pluginTx is a transaction of either.
type pluginTx interface {
	// insert inserts rows under keys of the plugin.
	insert(ctx context.Context, rows []suppressed) error
	// exec sends a statement by itself.
	exec(ctx context.Context, text string) error
	// conn is for statements that the plugin does not see.
	conn() *sql.Tx
}

var txPlugins = []txPlugin{
	{"Sqlx", func(_ *testing.T, db *sqlx.DB, last types.Snowflake) inTxFunc {
		h := sqlxhelper.New(sqlxcases.NewCounter(last))
		return func(ctx context.Context, fn func(pluginTx) error) error {
			return sqlxhelper.InTx(ctx, db, nil, func(tx *sqlx.Tx) error { return fn(sqlxTx{tx, h}) })
		}
	}},
	{"Gorm", func(t *testing.T, db *sqlx.DB, last types.Snowflake) inTxFunc {
		t.Helper()
		return gormIn(t, db, last, &gorm.Session{})
	}},
	{"GormPrepared", func(t *testing.T, db *sqlx.DB, last types.Snowflake) inTxFunc {
		t.Helper()
		return gormIn(t, db, last, &gorm.Session{PrepareStmt: true})
	}},
}

func gormIn(t *testing.T, db *sqlx.DB, last types.Snowflake, session *gorm.Session) inTxFunc {
	t.Helper()
	g, err := gormOn(db, sqlxcases.NewCounter(last))
	must(t, err)
	g = g.Session(session)
	return func(ctx context.Context, fn func(pluginTx) error) error {
		return gormplugin.InTx(ctx, g, nil, func(tx *gorm.DB) error { return fn(gormTx{tx}) })
	}
}

// onTxPlugins runs test for all.
func onTxPlugins(t *testing.T, test func(t *testing.T, p txPlugin)) {
	t.Helper()
	for _, p := range txPlugins {
		t.Run(p.name, func(t *testing.T) { test(t, p) })
	}
}

// gormOn returns a pool with the plugin, and sends nothing.
func gormOn(db *sqlx.DB, src gormplugin.Source) (*gorm.DB, error) {
	dialector := postgres.New(postgres.Config{Conn: db.DB})
	if db.DriverName() == "mysql" {
		dialector = mysql.New(mysql.Config{Conn: db.DB, SkipInitializeWithVersion: true, DisableWithReturning: true})
	}
	g, err := gorm.Open(dialector, &gorm.Config{Logger: logger.Discard, DisableAutomaticPing: true, SkipDefaultTransaction: true})
	if err != nil {
		return nil, err
	}
	return g, g.Use(gormplugin.New(src))
}

type sqlxTx struct {
	*sqlx.Tx
	h *sqlxhelper.Helper
}

func (tx sqlxTx) insert(ctx context.Context, rows []suppressed) error {
	return tx.h.InsertMany(ctx, tx.Tx, "suppressed", rows)
}

func (tx sqlxTx) exec(ctx context.Context, text string) error {
	_, err := tx.ExecContext(ctx, text)
	return err
}

func (tx sqlxTx) conn() *sql.Tx { return tx.Tx.Tx }

type gormTx struct{ *gorm.DB }

func (tx gormTx) insert(ctx context.Context, rows []suppressed) error {
	return tx.WithContext(ctx).Table("suppressed").Create(rows).Error
}

func (tx gormTx) exec(ctx context.Context, text string) error {
	if text == "" { // which GORM does not send
		return nil
	}
	return tx.WithContext(ctx).Exec(text).Error
}

func (tx gormTx) conn() *sql.Tx {
	if prepared, ok := tx.Statement.ConnPool.(*gorm.PreparedStmtTX); ok {
		return prepared.Tx.(*sql.Tx)
	}
	return tx.Statement.ConnPool.(*sql.Tx)
}

var errUndone = errors.New("undone")

// undone runs fn in a nested transaction that is rolled back.
func undone(tx *gorm.DB, fn func(tx *gorm.DB) error) error {
	err := tx.Transaction(func(tx *gorm.DB) error {
		if err := fn(tx); err != nil {
			return err
		}
		return errUndone
	})
	if errors.Is(err, errUndone) {
		return nil
	}
	return err
}

// After a deadlock MySQL and MariaDB commit by themselves what is sent next.
func TestInTxOfGormDoesNotGoOnAfterADeadlockOnMariaDBAndMySQL(t *testing.T) {
	onMariaDBAndMySQL(t, func(t *testing.T, w way) {
		g := w.target(t, "interpolateParams", "true")
		g.exec(t, "CREATE TABLE suppressed (id BIGINT PRIMARY KEY, n BIGINT)")
		ended := &endedConnector{Connector: g.connector(t)}
		pool := sqlx.NewDb(g.pool(t, ended), g.driver)
		db, err := gormOn(pool, sqlxcases.NewCounter(100))
		must(t, err)
		// lose makes the transaction the victim of a deadlock.
		lose := func(tx *gorm.DB) error {
			ended.before = func(conn driver.Conn, _ bool) error {
				ended.before = nil
				return rollback(t, conn)
			}
			return tx.Exec("UPDATE suppressed SET n = n + 1 WHERE id = 1").Error
		}
		for name, c := range map[string]struct {
			goesOn func(tx *gorm.DB, deadlock error) error
			want   error
			rows   int // that the server has committed by itself
		}{
			"returned": {func(_ *gorm.DB, deadlock error) error { return deadlock }, nil, 0},
			"ignored":  {func(*gorm.DB, error) error { return nil }, gormplugin.ErrTxBroken, 0},
			"then a create": {func(tx *gorm.DB, _ error) error {
				return tx.Table("suppressed").Create(&suppressed{N: 7}).Error
			}, gormplugin.ErrTxBroken, 0},
			"then raw SQL": {func(tx *gorm.DB, deadlock error) error {
				must(t, tx.Exec("INSERT INTO suppressed VALUES (50, 7)").Error)
				return deadlock
			}, &mysqldriver.MySQLError{Number: 1213}, 1},
		} {
			g.exec(t, "DELETE FROM suppressed")
			runs := 0
			err := gormplugin.InTx(t.Context(), db, nil, func(tx *gorm.DB) error {
				if runs++; runs == 1 {
					return c.goesOn(tx, lose(tx))
				}
				return tx.Table("suppressed").Create(&suppressed{N: 8}).Error
			})
			if !errors.Is(err, c.want) || c.want == nil && (err != nil || runs != 2) || c.want != nil && runs != 1 {
				t.Errorf("InTx(deadlock %s) = %v after %d runs; want %v", name, err, runs, c.want)
			}
			if n := counting(t, pool, "suppressed WHERE n = 7")(); n != c.rows {
				t.Errorf("InTx(deadlock %s) has left %d rows; want %d", name, n, c.rows)
			}
		}
	})
}
