package servers

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/internal/proof/cases/sqlxcases"
	"github.com/snowkey/snowkey/internal/proof/servers/faultproxy"
	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

// A loss is what becomes of the first commit that goes through a losing proxy.
type loss int

const (
	answerLost loss = iota // it arrives, and the connection breaks before the answer
	commitLost             // the connection breaks before it arrives
	commitLate             // the connection breaks, and it arrives later
	silence                // it arrives, and nobody is ever answered from then on
)

// A losing is a proxy before a database server. It loses one commit, of clients
// that speak no TLS, or another statement.
type losing struct {
	what loss
	// at is the text of the statement that is lost, or several with | between them; a commit if it is
	// empty.
	at string
	// until is a part of the statement that makes a late commit arrive, or several with | between
	// them.
	until string
	// hold is when it arrives by itself, if it is set.
	hold time.Duration

	*faultproxy.Proxy
	reached <-chan struct{} // closed when the statement has come to the proxy; of answerLost, when its answer has
}

// start returns the address of the proxy, which ends with the test.
func (l *losing) start(t *testing.T, protocol faultproxy.Protocol, server string) string {
	t.Helper()
	l.Proxy = faultproxy.Start(t, protocol, server)
	l.DropCancels()
	f := faultproxy.Fault{On: anyOf(cmp.Or(l.at, "commit"), faultproxy.Running), For: l.hold}
	switch l.what {
	case answerLost:
		f.On, f.Do = faultproxy.AnswerTo(f.On), faultproxy.CutBefore
	case commitLost:
		f.Do = faultproxy.CutBefore
	case commitLate:
		f.Do = faultproxy.Late
		if l.until != "" {
			f.Until = anyOf(l.until, func(text string) func(faultproxy.Message) bool { return faultproxy.Sending(faultproxy.Client, text) })
		}
	case silence:
		f.Do = faultproxy.Silence
	}
	l.reached = l.Arm(f)
	return l.Addr()
}

// lost reports whether the proxy has lost something.
func (l *losing) lost() bool {
	select {
	case <-l.reached:
		return true
	default:
		return false
	}
}

// anyOf matches what one of the texts matches, which have | between them.
func anyOf(texts string, match func(text string) func(faultproxy.Message) bool) func(faultproxy.Message) bool {
	var all []func(faultproxy.Message) bool
	for text := range strings.SplitSeq(texts, "|") {
		all = append(all, match(text))
	}
	return func(m faultproxy.Message) bool {
		return slices.ContainsFunc(all, func(matches func(faultproxy.Message) bool) bool { return matches(m) })
	}
}

// behind returns a way to the database of the test through a proxy, and one
// around it.
type behind func(t *testing.T, l *losing) (through, around sqlxcases.Database)

func postgresBehind(driver string, parameters ...string) behind {
	return func(t *testing.T, l *losing) (through, around sqlxcases.Database) {
		around = sqlxPostgres(t, driver)
		var schema string
		must(t, around.DB.Get(&schema, "SELECT current_schema()"))
		u, err := url.Parse(servertest.PostgreSQL(t))
		if err != nil {
			t.Fatal("the URL of PostgreSQL cannot be parsed")
		}
		query := u.Query()
		parameters := append([]string{"search_path", schema, "sslmode", "disable"}, parameters...)
		for i := 0; i < len(parameters); i += 2 {
			query.Set(parameters[i], parameters[i+1])
		}
		u.Host, u.RawQuery = l.start(t, faultproxy.PostgreSQL, net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "5432"))), query.Encode()
		return sqlxcases.Database{DB: openSqlx(t, driver, u.String()), Dialect: sqlxhelper.PostgreSQL}, around
	}
}

// mysqlBehind does so for MariaDB or MySQL.
func mysqlBehind(dsn string, changes ...func(*mysql.Config)) behind {
	return func(t *testing.T, l *losing) (through, around sqlxcases.Database) {
		t.Helper()
		var config *mysql.Config
		around = sqlxMySQL(t, dsn, func(c *mysql.Config) { config = c })
		config = config.Clone()
		config.Addr = l.start(t, faultproxy.MySQL, config.Addr)
		for _, change := range changes {
			change(config)
		}
		return sqlxcases.Database{DB: openSqlx(t, "mysql", config.FormatDSN()), Dialect: sqlxhelper.MySQL}, around
	}
}

// An inTxOutcome is what comes of InTx when its COMMIT is lost.
type inTxOutcome struct {
	unknown    bool
	runs, rows int
}

// of runs fn in a transaction of a plugin, with keys after last, and fails the test unless the outcome is o.
func (o inTxOutcome) of(t *testing.T, p txPlugin, db *sqlx.DB, last types.Snowflake, rows func() int, fn func(tx pluginTx) error) {
	t.Helper()
	o.within(t.Context(), t, p, db, last, rows, fn)
}

func (o inTxOutcome) within(ctx context.Context, t *testing.T, p txPlugin, db *sqlx.DB, last types.Snowflake, rows func() int, fn func(tx pluginTx) error) {
	t.Helper()
	runs := 0
	err := p.on(t, db, last)(ctx, func(tx pluginTx) error { runs++; return fn(tx) })
	if n := rows(); runs != o.runs || n != o.rows || errors.Is(err, sqlxhelper.ErrCommitUnknown) != o.unknown || !o.unknown && err != nil {
		t.Errorf("InTx() = %v after %d runs with %d rows; want ErrCommitUnknown: %v, after %d with %d", err, runs, n, o.unknown, o.runs, o.rows)
	}
}

// counting returns a function that counts rows.
func counting(t *testing.T, db *sqlx.DB, from string) func() int {
	return func() (n int) {
		t.Helper()
		must(t, db.Get(&n, "SELECT COUNT(*) FROM "+from))
		return n
	}
}

// onCommitProxies runs test for each server and driver, before which a proxy may lose a
// commit.
func onCommitProxies(t *testing.T, test func(t *testing.T, open behind)) {
	t.Helper()
	t.Run("PostgresByPgx", func(t *testing.T) { test(t, postgresBehind("pgx")) })
	t.Run("PostgresByPq", func(t *testing.T) { test(t, postgresBehind("postgres")) })
	onMariaDBAndMySQL(t, func(t *testing.T, dsn string) { test(t, mysqlBehind(dsn)) })
}

func TestLostCommitIsNeitherLostNorDoneTwice(t *testing.T) {
	outside := func(ctx context.Context) func(tx pluginTx) error {
		rows := make([]suppressed, 3)
		return func(tx pluginTx) error { return tx.insert(ctx, rows) }
	}
	inside := func(ctx context.Context) func(tx pluginTx) error {
		return func(tx pluginTx) error { return tx.insert(ctx, make([]suppressed, 3)) }
	}
	without := func(ctx context.Context) func(tx pluginTx) error {
		return func(tx pluginTx) error {
			return tx.exec(ctx, "INSERT INTO suppressed VALUES (1000001, 0), (1000002, 0), (1000003, 0)")
		}
	}
	const never = time.Hour
	onCommitProxies(t, func(t *testing.T, open behind) {
		onTxPlugins(t, func(t *testing.T, p txPlugin) {
			for _, c := range []struct {
				name  string
				proxy losing
				fn    func(ctx context.Context) func(tx pluginTx) error
				want  inTxOutcome
			}{
				{"AnswerLost", losing{what: answerLost}, outside, inTxOutcome{false, 1, 3}},
				{"AnswerLostRowsMadeInside", losing{what: answerLost}, inside, inTxOutcome{false, 1, 3}},
				{"AnswerLostRowsOfRawSQL", losing{what: answerLost}, without, inTxOutcome{true, 1, 3}},
				{"CommitLost", losing{what: commitLost}, outside, inTxOutcome{false, 2, 3}},
				{"CommitLostRowsMadeInside", losing{what: commitLost}, inside, inTxOutcome{false, 2, 3}},
				{"CommitLate", losing{what: commitLate, until: "SELECT 1 FROM|txid_status"}, outside, inTxOutcome{false, 1, 3}}, // as MySQL, and PostgreSQL, is asked
				{"CommitHeldBack", losing{what: commitLate, hold: 300 * time.Millisecond}, outside, inTxOutcome{false, 1, 3}},
				{"CommitHeldBackForLongRowsMadeInside", losing{what: commitLate, hold: 2 * time.Second}, inside, inTxOutcome{false, 1, 3}},
				// The server still believes in the connection when the context ends.
				{"CommitThatNeverArrives", losing{what: commitLate, hold: never}, outside, inTxOutcome{true, 1, 0}},
			} {
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					through, around := open(t, &c.proxy)
					execSqlx(t, around.DB, "CREATE TABLE suppressed (id BIGINT PRIMARY KEY, n BIGINT)")
					ctx := t.Context()
					if c.proxy.hold == never {
						ctx = expiring{t.Context(), c.proxy.reached}
					}
					last := types.Snowflake(time.Now().UnixNano()) // in no database of another test, where MySQL would be in doubt
					c.want.within(ctx, t, p, through.DB, last, counting(t, around.DB, "suppressed"), c.fn(t.Context()))
					if !c.proxy.lost() {
						t.Error("the proxy has lost nothing")
					}
				})
			}
		})
	})
}

// After a deadlock the server commits by itself whatever a function sends that has
// not noticed it.
func TestInTxDoesNotGoOnWithATransactionThatTheServerEndedOnMariaDBAndMySQL(t *testing.T) {
	onMariaDBAndMySQL(t, func(t *testing.T, dsn string) {
		for name, end := range map[string]func(err error) error{
			"swallowed":  func(error) error { return nil },
			"deadlocked": func(err error) error { return errors.Join(&mysql.MySQLError{Number: 1213}, err) },
		} {
			d := sqlxMySQL(t, dsn, func(*mysql.Config) {})
			execSqlx(t, d.DB, "CREATE TABLE suppressed (id BIGINT PRIMARY KEY, n BIGINT)")
			h := sqlxhelper.New(sqlxcases.NewCounter(0))
			runs := 0
			err := sqlxhelper.InTx(t.Context(), d.DB, nil, func(tx *sqlx.Tx) error {
				runs++
				must(t, h.Insert(t.Context(), tx, "suppressed", &suppressed{}))
				err := h.Insert(t.Context(), endingTx{tx}, "suppressed", &suppressed{})
				if late := h.Insert(t.Context(), tx, "suppressed", &suppressed{}); !errors.Is(late, sqlxhelper.ErrTxBroken) {
					t.Errorf("Insert(after that) = %v; want ErrTxBroken", late)
				}
				return end(err)
			})
			if !errors.Is(err, sqlxhelper.ErrTxBroken) || runs != 1 {
				t.Errorf("%s: InTx() = %v after %d runs; want ErrTxBroken after 1", name, err, runs)
			}
			var stored []int
			if err := d.DB.Select(&stored, "SELECT id FROM suppressed"); err != nil || len(stored) != 1 || stored[0] != 2 {
				t.Errorf("%s: rows = %v, %v; want 2 alone, which the server has committed by itself", name, stored, err)
			}
			twice := endingTx{d.DB.MustBegin()}
			defer func() { _ = twice.Rollback() }()
			err = h.Insert(t.Context(), twice, "suppressed", &suppressed{Model: types.Model{ID: 2}})
			var number *mysql.MySQLError
			if !errors.Is(err, sqlxhelper.ErrTxBroken) || !errors.As(err, &number) || number.Number != 1062 {
				t.Errorf("Insert(duplicate, transaction ended) = %v; want ErrTxBroken and error 1062 in it", err)
			}
		}
	})
}

// endingTx ends the transaction in the server before each insert, as a deadlock does.
type endingTx struct{ *sqlx.Tx }

func (e endingTx) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if len(args) > 0 {
		if _, err := e.Tx.ExecContext(ctx, "ROLLBACK"); err != nil {
			return nil, err
		}
	}
	return e.Tx.ExecContext(ctx, query, args...)
}

// The context of a call may end at any time. If the transaction is lost with it,
// the error says so. Which statement it hits is chance, and the claim holds for
// all.
func TestCallThatIsCanceledSaysWhetherTheTransactionGoesOn(t *testing.T) {
	databases := map[string]func(t *testing.T) sqlxcases.Database{
		"PostgresByPgx": func(t *testing.T) sqlxcases.Database { return sqlxPostgres(t, "pgx") },
		"PostgresByPgxSimple": func(t *testing.T) sqlxcases.Database {
			return sqlxPostgres(t, "pgx", "default_query_exec_mode", "simple_protocol")
		},
		"PostgresByPq": func(t *testing.T) sqlxcases.Database { return sqlxPostgres(t, "postgres") },
		"MariaDB":      func(t *testing.T) sqlxcases.Database { return sqlxMariaDB(t, func(*mysql.Config) {}) },
		"MariaDBInterpolating": func(t *testing.T) sqlxcases.Database {
			return sqlxMariaDB(t, func(c *mysql.Config) { c.InterpolateParams = true })
		},
		"MySQL": func(t *testing.T) sqlxcases.Database {
			return sqlxMySQL(t, servertest.MySQL(t), func(*mysql.Config) {})
		},
		"MySQLInterpolating": func(t *testing.T) sqlxcases.Database {
			return sqlxMySQL(t, servertest.MySQL(t), func(c *mysql.Config) { c.InterpolateParams = true })
		},
	}
	for name, open := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := open(t)
			execSqlx(t, d.DB, "CREATE TABLE suppressed (id BIGINT PRIMARY KEY, n BIGINT)")
			h := sqlxhelper.New(sqlxcases.NewCounter(0))
			outcomes := map[string]int{}
			for i := range 20 {
				tx := d.DB.MustBegin()
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*100*time.Microsecond)
				err := h.InsertMany(ctx, tx, "suppressed", make([]suppressed, 3))
				cancel()
				_, next := tx.Exec("SELECT 1")
				switch {
				case errors.Is(err, sqlxhelper.ErrTxBroken):
					outcomes["broken"]++
					if next == nil || !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("InsertMany() = %v, and the next statement %v; want context.DeadlineExceeded and an error", err, next)
					}
				case next != nil:
					t.Errorf("InsertMany() = %v, and the next statement %v; want ErrTxBroken", err, next)
				case err != nil:
					outcomes["failed"]++
					if !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("InsertMany() = %v; want context.DeadlineExceeded", err)
					}
				default:
					outcomes["inserted"]++
				}
				_ = tx.Rollback() // which fails on a connection that is gone
			}
			t.Logf("%v", outcomes)
		})
	}
}
