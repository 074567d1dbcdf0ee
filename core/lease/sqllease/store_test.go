package sqllease

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/internal/sqlxcases/sqlite"
)

// newMock returns a pool that takes exactly the statements that are expected, in
// their order.
func newMock(t *testing.T) (*sql.DB, sqlmock.Sqlmock) {
	t.Helper()
	db, mock, err := sqlmock.New(sqlmock.QueryMatcherOption(sqlmock.QueryMatcherEqual))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := mock.ExpectationsWereMet(); err != nil {
			t.Error(err)
		}
	})
	return db, mock
}

func mockStore(t *testing.T, db *sql.DB, d Dialect) *Store {
	t.Helper()
	s, err := New(db, Config{Dialect: d, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	db, _ := newMock(t)
	for _, test := range []struct {
		db     *sql.DB
		config Config
		want   string
	}{
		{nil, Config{Dialect: SQLite}, "sqllease: New(db) is nil"},
		{db, Config{}, "sqllease: Config.Dialect is Dialect(0): want SQLite, PostgreSQL or MySQL"},
		{db, Config{Dialect: 4}, "sqllease: Config.Dialect is Dialect(4)"},
		{db, Config{Dialect: MySQL, Table: "a b"}, `sqllease: Config.Table is "a b": want 1..58 letters`},
	} {
		s, err := New(test.db, test.config)
		if s != nil || !errors.As(err, new(*lease.ValueError)) || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("New(%v, %+v) = %v, %v; want nil, %q", test.db != nil, test.config, s, err, test.want)
		}
	}
	for _, d := range []Dialect{SQLite, PostgreSQL, MySQL} {
		if s, err := New(db, Config{Dialect: d}); err != nil || s.table != DefaultTable {
			t.Errorf("New(db, %v) = %+v, %v; want table %s", d, s, err, DefaultTable)
		}
	}
}

func TestTableNameIsPlain(t *testing.T) {
	for _, name := range []string{"a", "_", "Leases2", "app.leases", "ORDER", strings.Repeat("x", 58), strings.Repeat("s", 63) + "." + strings.Repeat("x", 58)} {
		if err := checkTable(name); err != nil {
			t.Errorf("checkTable(%q) = %v; want nil", name, err)
		}
	}
	for _, name := range []string{"", " ", "a b", `a"b`, "a`b", "a'b", "a;b", "a;DROP TABLE x", "a--", "1a", "a.", ".a", "a.b.c", "a$", "a?", "ä", "a\x00", "a\n", strings.Repeat("x", 59), strings.Repeat("s", 64) + ".x", strings.Repeat("x", 1<<20)} {
		err := checkTable(name)
		if !errors.As(err, new(*lease.ValueError)) || len(err.Error()) > 600 {
			t.Errorf("checkTable(%.70q) = %v; want a short *lease.ValueError", name, err)
		}
	}
}

// The law: a name that is accepted appears in the statements in quotes and cannot
// end them.
func FuzzTableName(f *testing.F) {
	for _, seed := range []string{"snowkey_leases", "app.leases", `x" (y) --`, "`", "a.b.c", "", "Ünïcode", "a\x00b", "x;DROP TABLE orders", "?", "$1"} {
		f.Add(seed)
	}
	plain := regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]{0,62}\.)?[A-Za-z_][A-Za-z0-9_]{0,57}$`)
	f.Fuzz(func(t *testing.T, name string) {
		err := checkTable(name)
		if accepted := err == nil; accepted != plain.MatchString(name) || strings.HasSuffix(name, "\n") && accepted {
			t.Fatalf("checkTable(%q) = %v; want %v", name, err, plain)
		}
		if err != nil {
			return
		}
		for _, d := range []Dialect{SQLite, PostgreSQL, MySQL} {
			mark := `"`
			if d == MySQL {
				mark = "`"
			}
			for _, text := range textsOf(d, name).create {
				quoted := 1 + strings.Count(name, ".")
				if d == SQLite {
					quoted = 2 // always with its schema
				}
				if marks := strings.Count(text, mark); marks != 2*quoted {
					t.Errorf("%v: %d quotes in %q; want those around the name", d, marks, text)
				}
			}
		}
	})
}

// What is sent to the server, word by word.
const (
	mysqlRow    = "SELECT worker, epoch, owner, nonce, reserved_until, renewals, holder FROM `snowkey_leases` WHERE namespace = ? AND datacenter = ? AND worker = ? FOR UPDATE"
	mysqlUpdate = "UPDATE `snowkey_leases` SET epoch = ?, owner = ?, nonce = ?, reserved_until = ?, renewals = ?, holder = ? WHERE namespace = ? AND datacenter = ?" +
		" AND worker = ? AND epoch = ? AND owner = ? AND nonce = ? AND reserved_until = ? AND renewals = ?"
	postgresRow    = `SELECT worker, epoch, owner, nonce, reserved_until, renewals, holder FROM "snowkey_leases" WHERE namespace = $1 AND datacenter = $2 AND worker = $3 FOR UPDATE`
	postgresUpdate = `UPDATE "snowkey_leases" SET epoch = $1, owner = $2, nonce = $3, reserved_until = $4, renewals = $5, holder = $6 WHERE namespace = $7 AND datacenter = $8` +
		` AND worker = $9 AND epoch = $10 AND owner = $11 AND nonce = $12 AND reserved_until = $13 AND renewals = $14`
)

// heldRenewal is a renewal at 1,000,000 ms of the row that heldRow returns.
func heldRenewal() lease.Renewal {
	return lease.Renewal{
		Space: lease.Space{Namespace: "shop", Datacenter: 2, Workers: 4, Layout: "l"}, Worker: 3, Epoch: 7, Owner: "me",
		Known: []string{"old"}, Nonce: "new", Next: 1_000_000, Until: 1_040_000, Window: 60_000, Now: 1_000_000, Skew: 5_000,
	}
}

var rowNames = []string{"worker", "epoch", "owner", "nonce", "reserved_until", "renewals", "holder"}

func heldRow() *sqlmock.Rows {
	return sqlmock.NewRows(rowNames).AddRow(3, 7, "me", "old", 1_040_000, 9, "host")
}

func mysqlSettings(wait int) *sqlmock.Rows {
	return sqlmock.NewRows([]string{"wait", "read_only", "flush", "now"}).AddRow(wait, 0, 1, 1_000_010)
}

func postgresSettings(refuses bool, fsync string) *sqlmock.Rows {
	return sqlmock.NewRows([]string{"1", "2", "3", "4", "5", "6", "7"}).AddRow(refuses, fsync, nil, nil, nil, nil, 1_000_010)
}

var heldUpdate = []driver.Value{7, "me", "new", 1_060_010, 10, "host", "shop", 2, 3, 7, "me", "old", 1_040_000, 9}

// expectMySQL expects a renewal up to its UPDATE, with a deadline.
func expectMySQL(mock sqlmock.Sqlmock) {
	mock.ExpectBegin()
	mock.ExpectQuery(openMySQL).WillReturnRows(mysqlSettings(50))
	mock.ExpectExec("SET SESSION innodb_lock_wait_timeout = 15").WillReturnResult(driver.ResultNoRows)
	mock.ExpectQuery(mysqlRow).WithArgs("shop", 2, 3).WillReturnRows(heldRow())
}

// renewWithin15s renews with a deadline, by a clock that stands. A loaded machine would
// leave less than 15 s for the server's limits.
func renewWithin15s(t *testing.T, s *Store) (reply lease.Reply, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
		defer cancel()
		reply, err = s.Renew(ctx, heldRenewal())
	})
	return reply, err
}

func TestRenewalOnMySQLSendsThisAndSetsTheSettingBack(t *testing.T) {
	db, mock := newMock(t)
	expectMySQL(mock)
	mock.ExpectExec(mysqlUpdate).WithArgs(heldUpdate...).WillReturnResult(sqlmock.NewResult(0, 1))
	mock.ExpectCommit()
	mock.ExpectExec("SET SESSION innodb_lock_wait_timeout = 50").WillReturnResult(driver.ResultNoRows)

	want := lease.Reply{Row: lease.Row{Worker: 3, Epoch: 7, Owner: "me", Nonce: "new", Until: 1_060_010, Renewals: 10, Holder: "host"}, Before: 1_040_000, Now: 1_000_010}
	if got, err := renewWithin15s(t, mockStore(t, db, MySQL)); err != nil || got != want {
		t.Errorf("Renew() = %+v, %v; want %+v", got, err, want)
	}
}

func TestRenewalOnPostgreSQLSendsThis(t *testing.T) {
	db, mock := newMock(t)
	mock.ExpectBegin()
	mock.ExpectQuery(openPostgreSQL).WithArgs("15000").WillReturnRows(postgresSettings(false, "on"))
	mock.ExpectQuery(postgresRow).WithArgs("shop", 2, 3).WillReturnRows(heldRow())
	mock.ExpectExec(postgresUpdate).WithArgs(heldUpdate...).WillReturnResult(sqlmock.NewResult(0, 1))
	mock.ExpectCommit()
	if _, err := renewWithin15s(t, mockStore(t, db, PostgreSQL)); err != nil {
		t.Errorf("Renew() = %v; want nil", err)
	}
}

func TestWithoutDeadlineTheServersLimitsStay(t *testing.T) {
	db, mock := newMock(t)
	mock.ExpectBegin()
	mock.ExpectQuery(openMySQL).WillReturnRows(mysqlSettings(50))
	mock.ExpectQuery(mysqlRow).WithArgs("shop", 2, 3).WillReturnRows(sqlmock.NewRows(rowNames))
	mock.ExpectRollback()
	_, err := mockStore(t, db, MySQL).Renew(t.Context(), heldRenewal())
	renewal := heldRenewal()
	if want := renewal.Lost(lease.Gone); err == nil || err.Error() != want.Error() {
		t.Errorf("Renew() without the row = %v; want %v", err, want)
	}
	db, mock = newMock(t)
	mock.ExpectBegin()
	mock.ExpectQuery(openPostgreSQL).WithArgs("").WillReturnRows(postgresSettings(false, "on"))
	mock.ExpectQuery(postgresRow).WithArgs("shop", 2, 3).WillReturnRows(sqlmock.NewRows(rowNames))
	mock.ExpectRollback()
	if _, err := mockStore(t, db, PostgreSQL).Renew(t.Context(), heldRenewal()); !errors.Is(err, lease.ErrLost) {
		t.Errorf("Renew() without the row = %v; want ErrLost", err)
	}
}

func definiteError(err error) bool {
	return errors.Is(err, lease.ErrLost) || errors.Is(err, lease.ErrNoFreeWorker) || errors.Is(err, lease.ErrLayout) || errors.Is(err, lease.ErrClockSkew)
}

// Not even a deadlock or a broken connection is excepted. At the COMMIT it comes too
// late to mean "not done", and the operation must not be begun anew.
func TestErrorOfTheCommitIsUnknownAndEndsTheConnection(t *testing.T) {
	for _, failure := range []error{errors.New("no answer"), driver.ErrBadConn, &MySQLError{1213}, context.DeadlineExceeded} {
		db, mock := newMock(t)
		expectMySQL(mock)
		mock.ExpectExec(mysqlUpdate).WithArgs(heldUpdate...).WillReturnResult(sqlmock.NewResult(0, 1))
		mock.ExpectCommit().WillReturnError(failure)
		mock.ExpectClose()
		_, err := renewWithin15s(t, mockStore(t, db, MySQL))
		if !errors.Is(err, failure) || definiteError(err) || !strings.Contains(err.Error(), "outcome unknown") {
			t.Errorf("Renew() with COMMIT = %v: %v; want it in an error that says the outcome is unknown", failure, err)
		}
		if open := db.Stats().OpenConnections; open != 0 {
			t.Errorf("after COMMIT = %v: %d connections open; want 0", failure, open)
		}
	}
}

func TestConnectionWhoseSettingsCannotBeSetBackIsClosed(t *testing.T) {
	db, mock := newMock(t)
	expectMySQL(mock)
	mock.ExpectExec(mysqlUpdate).WithArgs(heldUpdate...).WillReturnResult(sqlmock.NewResult(0, 1))
	mock.ExpectCommit()
	mock.ExpectExec("SET SESSION innodb_lock_wait_timeout = 50").WillReturnError(errors.New("no"))
	mock.ExpectClose()
	if _, err := renewWithin15s(t, mockStore(t, db, MySQL)); err != nil {
		t.Errorf("Renew() = %v; want nil, it is done", err)
	}
	if open := db.Stats().OpenConnections; open != 0 {
		t.Errorf("%d connections open; want 0", open)
	}
}

func TestConnectionThatCannotRollBackIsClosed(t *testing.T) {
	db, mock := newMock(t)
	expectMySQL(mock)
	mock.ExpectExec(mysqlUpdate).WithArgs(heldUpdate...).WillReturnError(errors.New("disk full"))
	mock.ExpectRollback().WillReturnError(errors.New("no"))
	mock.ExpectClose()
	if _, err := renewWithin15s(t, mockStore(t, db, MySQL)); err == nil || !strings.Contains(err.Error(), "disk full") || definiteError(err) {
		t.Errorf("Renew() = %v; want disk full", err)
	}
	if open := db.Stats().OpenConnections; open != 0 {
		t.Errorf("%d connections open; want 0", open)
	}
}

// A row that could not be read is not a row that is gone.
func TestAnswerThatBreaksOffLosesNoRow(t *testing.T) {
	failure := errors.New("cut off")
	db, mock := newMock(t)
	mock.ExpectBegin()
	mock.ExpectQuery(openPostgreSQL).WithArgs("").WillReturnRows(postgresSettings(false, "on"))
	mock.ExpectQuery(postgresRow).WithArgs("shop", 2, 3).WillReturnRows(heldRow().RowError(0, failure))
	mock.ExpectRollback()
	if _, err := mockStore(t, db, PostgreSQL).Renew(t.Context(), heldRenewal()); !errors.Is(err, failure) || definiteError(err) {
		t.Errorf("Renew(), the row breaks off = %v; want %v", err, failure)
	}
}

// A commit that returns because ctx has ended may not have waited for the replicas.
func TestCommitDuringWhichTheContextEndsIsUnknown(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	x := transaction{wrote: true, rollback: func() error { return nil }, commit: func() error { cancel(); return nil }}
	err, clean := x.end(ctx, nil)
	if !errors.As(err, new(*commitError)) || !errors.Is(err, context.Canceled) || clean {
		t.Errorf("end() = %v, %t; want a commit of unknown outcome, and the connection closed", err, clean)
	}
}

func TestConnectionThatCannotBeginIsClosed(t *testing.T) {
	db, mock := newMock(t)
	mock.ExpectBegin().WillReturnError(errors.New("no")) // after the statement that sets the level
	mock.ExpectClose()
	if _, err := renewWithin15s(t, mockStore(t, db, MySQL)); err == nil || definiteError(err) {
		t.Errorf("Renew() = %v; want an error that says nothing", err)
	}
	if open := db.Stats().OpenConnections; open != 0 {
		t.Errorf("%d connections open; want 0", open)
	}
}

// A driver may have words of its own for the end of ctx.
func TestErrorMatchesThatOfTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	failure := errors.New("canceling statement due to user request")
	db := sql.OpenDB(ending{cancel, failure})
	if _, err := mockStore(t, db, PostgreSQL).Renew(ctx, heldRenewal()); !errors.Is(err, context.Canceled) {
		t.Errorf("Renew(), ctx ends and the driver says %q = %v; want it to match Canceled", failure, err)
	}
}

type ending struct {
	end func()
	err error
}

func (e ending) Connect(context.Context) (driver.Conn, error) {
	e.end()
	return nil, e.err
}
func (ending) Driver() driver.Driver { return nil }

// MySQLError and stated are errors as the drivers of MySQL and PostgreSQL have them.
type MySQLError struct{ Number uint16 }

func (e *MySQLError) Error() string { return fmt.Sprintf("Error %d", e.Number) }

type stated string

func (e stated) Error() string    { return "ERROR: " + string(e) }
func (e stated) SQLState() string { return string(e) }

// Before the COMMIT nothing is done, and the operation begins anew.
func TestFaultBeforeTheCommitIsTriedAgain(t *testing.T) {
	for _, failure := range []error{&MySQLError{1213}, &MySQLError{1205}, &MySQLError{1020}, fmt.Errorf("wrapped: %w", &MySQLError{1213})} {
		db, mock := newMock(t)
		expectMySQL(mock)
		mock.ExpectExec(mysqlUpdate).WithArgs(heldUpdate...).WillReturnError(failure)
		mock.ExpectRollback()
		mock.ExpectExec("SET SESSION innodb_lock_wait_timeout = 50").WillReturnResult(driver.ResultNoRows)
		expectMySQL(mock)
		mock.ExpectExec(mysqlUpdate).WithArgs(heldUpdate...).WillReturnResult(sqlmock.NewResult(0, 1))
		mock.ExpectCommit()
		mock.ExpectExec("SET SESSION innodb_lock_wait_timeout = 50").WillReturnResult(driver.ResultNoRows)
		if _, err := renewWithin15s(t, mockStore(t, db, MySQL)); err != nil {
			t.Errorf("Renew() after %v = %v; want nil", failure, err)
		}
	}
}

// What each error is, is for package sqlerror; here is what follows.
func TestFaultsAreToldApart(t *testing.T) {
	db, _ := newMock(t)
	s := mockStore(t, db, PostgreSQL)
	for _, test := range []struct {
		err   error
		first bool  // it is tried again after the first attempt
		last  bool  // and after the last
		want  error // of explain, that matches this
	}{
		{driver.ErrBadConn, true, false, driver.ErrBadConn},
		{io.ErrUnexpectedEOF, true, false, io.ErrUnexpectedEOF},
		{&connectError{driver.ErrBadConn}, false, false, driver.ErrBadConn},
		{&commitError{stated("40001")}, false, false, stated("40001")},
		{&commitError{stated("42P01")}, false, false, stated("42P01")},
		{errConflict, true, false, errConflict},
		{&MySQLError{1213}, true, true, nil},
		{stated("40001"), true, true, stated("40001")},
		{stated("55P03"), true, true, stated("55P03")},
		{&sqlite.Error{Result: 5}, true, true, nil},
		{stated("23505"), true, false, stated("23505")},
		{stated("42710"), true, false, stated("42710")}, // the type of the row of a table that another is making
		{&MySQLError{1062}, true, false, nil},
		{stated("25006"), false, false, ErrReadOnly},
		{&MySQLError{1290}, false, false, ErrReadOnly},
		{stated("42P01"), false, false, ErrNoTable},
		{&MySQLError{1146}, false, false, ErrNoTable},
		{stated("42703"), false, false, ErrSchema},
		{&MySQLError{1054}, false, false, ErrSchema},
		{stated("42501"), false, false, lease.ErrPermanent},
		{&MySQLError{1142}, false, false, lease.ErrPermanent},
		{stated("57014"), false, false, stated("57014")}, // statement timeout
		{&MySQLError{1021}, false, false, nil},           // disk full
		{context.Canceled, false, false, context.Canceled},
	} {
		if first, last := retries(test.err, 1), retries(test.err, maxAttempts); first != test.first || last != test.last {
			t.Errorf("retries(%v, first and last) = %t, %t; want %t, %t", test.err, first, last, test.first, test.last)
		}
		if test.want == nil {
			test.want = test.err
		}
		if got := s.explain(t.Context(), "renew", test.err); !errors.Is(got, test.want) || definite(got) != errors.As(got, new(*TableError)) {
			t.Errorf("explain(%v) = %v; want %v in it", test.err, got, test.want)
		}
	}
}

func TestRowThatWasChangedMeanwhileIsReadAgain(t *testing.T) {
	db, mock := newMock(t)
	expectMySQL(mock)
	mock.ExpectExec(mysqlUpdate).WithArgs(heldUpdate...).WillReturnResult(sqlmock.NewResult(0, 0))
	mock.ExpectRollback()
	mock.ExpectExec("SET SESSION innodb_lock_wait_timeout = 50").WillReturnResult(driver.ResultNoRows)
	mock.ExpectBegin()
	mock.ExpectQuery(openMySQL).WillReturnRows(mysqlSettings(50))
	mock.ExpectExec("SET SESSION innodb_lock_wait_timeout = 15").WillReturnResult(driver.ResultNoRows)
	mock.ExpectQuery(mysqlRow).WithArgs("shop", 2, 3).WillReturnRows(sqlmock.NewRows(rowNames).AddRow(3, 8, "other", "x", 2_000_000, 10, "host"))
	mock.ExpectRollback()
	mock.ExpectExec("SET SESSION innodb_lock_wait_timeout = 50").WillReturnResult(driver.ResultNoRows)
	_, err := renewWithin15s(t, mockStore(t, db, MySQL))
	renewal := heldRenewal()
	if want := renewal.Lost(lease.TakenOver); err == nil || err.Error() != want.Error() {
		t.Errorf("Renew() = %v; want %v", err, want)
	}
}

func TestMoreThanOneRowAffectedIsRolledBack(t *testing.T) {
	for _, result := range []driver.Result{sqlmock.NewResult(0, 2), sqlmock.NewErrorResult(errors.New("unknown"))} {
		db, mock := newMock(t)
		expectMySQL(mock)
		mock.ExpectExec(mysqlUpdate).WithArgs(heldUpdate...).WillReturnResult(result)
		mock.ExpectRollback()
		mock.ExpectExec("SET SESSION innodb_lock_wait_timeout = 50").WillReturnResult(driver.ResultNoRows)
		if _, err := renewWithin15s(t, mockStore(t, db, MySQL)); err == nil || definiteError(err) {
			t.Errorf("Renew() = %v; want an error that is none of the four", err)
		}
	}
}

func TestReplicaIsRefused(t *testing.T) {
	t.Run("MySQL", func(t *testing.T) {
		db, mock := newMock(t)
		mock.ExpectBegin()
		mock.ExpectQuery(openMySQL).WillReturnRows(sqlmock.NewRows([]string{"1", "2", "3", "4"}).AddRow(50, 1, 1, 0))
		mock.ExpectRollback()
		if _, err := mockStore(t, db, MySQL).Renew(t.Context(), heldRenewal()); !errors.Is(err, ErrReadOnly) || definiteError(err) {
			t.Errorf("Renew() = %v; want ErrReadOnly", err)
		}
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		db, mock := newMock(t)
		mock.ExpectBegin()
		mock.ExpectQuery(openPostgreSQL).WithArgs("").WillReturnRows(postgresSettings(true, "on"))
		mock.ExpectRollback()
		if _, err := mockStore(t, db, PostgreSQL).Renew(t.Context(), heldRenewal()); !errors.Is(err, ErrReadOnly) || definiteError(err) {
			t.Errorf("Renew() = %v; want ErrReadOnly", err)
		}
	})
	t.Run("lib/pq", func(t *testing.T) {
		db, mock := newMock(t)
		mock.ExpectBegin().WillReturnError(stated("0A000"))
		if _, err := mockStore(t, db, PostgreSQL).Renew(t.Context(), heldRenewal()); !errors.Is(err, ErrReadOnly) {
			t.Errorf("Renew() = %v; want ErrReadOnly", err)
		}
	})
}

func TestServerThatMayForgetIsWarnedOfOnce(t *testing.T) {
	var log bytes.Buffer
	db, mock := newMock(t)
	s, err := New(db, Config{Dialect: PostgreSQL, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		mock.ExpectBegin()
		mock.ExpectQuery(openPostgreSQL).WithArgs("").WillReturnRows(postgresSettings(false, "off"))
		mock.ExpectQuery(postgresRow).WithArgs("shop", 2, 3).WillReturnRows(sqlmock.NewRows(rowNames))
		mock.ExpectRollback()
		if _, err := s.Renew(t.Context(), heldRenewal()); !errors.Is(err, lease.ErrLost) {
			t.Errorf("Renew() = %v; want ErrLost", err)
		}
	}
	if n := strings.Count(log.String(), "setting=fsync value=off"); n != 1 {
		t.Errorf("log = %q; want one warning about fsync", log.String())
	}
}

func TestPasswordIsNotInErrors(t *testing.T) {
	for _, text := range []string{
		"cannot connect to postgres://joe:sesame@db/x?sslmode=disable",
		"cannot connect to postgres://joe:se/sa:me@sesame@db:5432/x",
		"cannot parse `host=db password=sesame user=joe`",
		"cannot parse host=db password = 'ses\\'sesame' user=joe",
		"dial root:sesame@tcp(127.0.0.1:3306)/test",
		"dial root:se@sesame@unix(/tmp/mysql.sock)/test",
		"file:x.db?_auth_user=joe&_auth_pass=sesame",
		`config {"Password":"sesame","User":"joe"}`,
		"PGPASSWORD=sesame",
		`parse "postgres://joe:se same@sesame@db/x": net/url: invalid userinfo`,
		`parse "postgres://joe:\"se same@db/x": net/url: invalid userinfo`,
		`parse "postgres://joe:sesame/x@db/x": invalid port ":sesame" after host`,
		`missing "=" after "sesame" in connection info string`,
	} {
		failure := errors.New(text)
		db := sql.OpenDB(unreachable{failure})
		s := mockStore(t, db, PostgreSQL)
		_, err := s.Renew(t.Context(), heldRenewal())
		if !errors.Is(err, failure) || strings.Contains(strings.ReplaceAll(err.Error(), " ", ""), "sesame") {
			t.Errorf("Renew(), connecting fails with %q = %v; want the password left out", text, err)
		}
	}
}

func TestErrorsStillSayWhetherAPasswordWasSent(t *testing.T) {
	for _, text := range []string{
		"Error 1045 (28000): Access denied for user 'joe'@'localhost' (using password: NO)",
		"Error 1045 (28000): Access denied for user 'joe'@'localhost' (using password: YES)",
	} {
		db := sql.OpenDB(unreachable{errors.New(text)})
		if _, err := mockStore(t, db, MySQL).Renew(t.Context(), heldRenewal()); err == nil || !strings.HasSuffix(err.Error(), text) {
			t.Errorf("Renew(), connecting fails with %q = %v; want that at the end", text, err)
		}
	}
}

type unreachable struct{ err error }

func (u unreachable) Connect(context.Context) (driver.Conn, error) { return nil, u.err }
func (unreachable) Driver() driver.Driver                          { return nil }

// A driver that does not heed ctx does not keep the caller.
func TestDriverThatHangsIsLeft(t *testing.T) {
	resume := make(chan struct{})
	defer close(resume)
	db := sql.OpenDB(hanging{resume, new(atomic.Int64)})
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := mockStore(t, db, PostgreSQL).Renew(ctx, heldRenewal()); !errors.Is(err, context.DeadlineExceeded) || definiteError(err) {
		t.Errorf("Renew() = %v; want DeadlineExceeded", err)
	}
}

// Each call that hangs keeps a connection and goroutines. There must be an end to that.
func TestCallsThatHangInTheDriverDoNotPileUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hanging{make(chan struct{}), new(atomic.Int64)}
		db := sql.OpenDB(h)
		defer db.Close()
		s := mockStore(t, db, PostgreSQL)
		for range 2 * maxLeft {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := s.Renew(ctx, heldRenewal()); err == nil || definiteError(err) {
				t.Errorf("Renew() = %v; want an error that says nothing about the outcome", err)
			}
		}
		if got := h.calls.Load(); got != maxLeft {
			t.Errorf("calls of the driver = %d; want %d, and no more while they hang", got, maxLeft)
		}
		begun := time.Now()
		_, err := s.Renew(t.Context(), heldRenewal())
		if err == nil || !strings.Contains(err.Error(), "still hang in the driver") || time.Since(begun) > 0 {
			t.Errorf("Renew() after %v = %v; want at once that others hang", time.Since(begun), err)
		}
		close(h.resume)
		synctest.Wait()
		if _, err := s.Renew(t.Context(), heldRenewal()); err == nil || h.calls.Load() == maxLeft {
			t.Errorf("Renew() when the driver has come back = %v, after %d calls; want it tried", err, h.calls.Load())
		}
	})
}

type hanging struct {
	resume chan struct{}
	calls  *atomic.Int64
}

func (h hanging) Connect(context.Context) (driver.Conn, error) {
	h.calls.Add(1)
	<-h.resume
	return nil, errors.New("too late")
}
func (hanging) Driver() driver.Driver { return nil }

// The clocks are compared at the moment when the store's was read.
func TestWaitingIsNoClockSkew(t *testing.T) {
	began := time.Now()
	for _, test := range []struct {
		asked, answered time.Duration
		store           lease.Millis // relative to the claimant's
		refused         bool
	}{
		{0, 0, 0, false},
		{0, 0, 5_000, false},
		{0, 0, 5_002, true},
		{0, 0, -5_001, true},
		{20 * time.Second, 20 * time.Second, 20_000, false},
		{20 * time.Second, 20 * time.Second, 0, true},
		{20 * time.Second, 30 * time.Second, 20_000, false},
		{20 * time.Second, 30 * time.Second, 35_000, false},
		{20 * time.Second, 30 * time.Second, 35_002, true},
		{20 * time.Second, 30 * time.Second, 14_999, true},
	} {
		x := &transaction{now: 1_000_000 + test.store, asked: began.Add(test.asked), answered: began.Add(test.answered)}
		err := x.checkClock(lease.Claim{Now: 1_000_000, Skew: 5_000}, began)
		if refused := errors.Is(err, lease.ErrClockSkew); refused != test.refused {
			t.Errorf("checkClock(asked after %v, answered after %v, store %+d ms) = %v; want refused %v", test.asked, test.answered, test.store, err, test.refused)
		}
	}
}

func TestStatementsAreThoseThatCreateTheTables(t *testing.T) {
	db, _ := newMock(t)
	s := mockStore(t, db, MySQL)
	want := []string{
		"CREATE TABLE IF NOT EXISTS `snowkey_leases_meta` (namespace VARCHAR(64) NOT NULL, datacenter BIGINT NOT NULL, layout VARCHAR(255) NOT NULL, schema_version BIGINT NOT NULL, PRIMARY KEY (namespace, datacenter)) ENGINE=InnoDB DEFAULT CHARACTER SET ascii COLLATE ascii_bin",
		"CREATE TABLE IF NOT EXISTS `snowkey_leases` (namespace VARCHAR(64) NOT NULL, datacenter BIGINT NOT NULL, worker BIGINT NOT NULL, epoch BIGINT NOT NULL, owner VARCHAR(64) NOT NULL, nonce VARCHAR(64) NOT NULL, reserved_until BIGINT NOT NULL, renewals BIGINT NOT NULL, holder VARCHAR(64) NOT NULL, PRIMARY KEY (namespace, datacenter, worker)) ENGINE=InnoDB DEFAULT CHARACTER SET ascii COLLATE ascii_bin",
	}
	got := s.Statements()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("Statements() = %q; want %q", got, want)
	}
	got[0] = ""
	if s.Statements()[0] != want[0] {
		t.Error("Statements() returns the Store's own slice; want a copy")
	}
}

// Two make a space. The second finds it made.
func TestFirstClaimThatComesSecondLooksAgain(t *testing.T) {
	const (
		meta   = "SELECT datacenter, layout, schema_version FROM `snowkey_leases_meta` WHERE namespace = ?"
		insert = "INSERT INTO `snowkey_leases_meta` (namespace, datacenter, layout, schema_version) VALUES (?, ?, ?, 1)"
		free   = "SELECT worker, epoch, owner, nonce, reserved_until, renewals, holder FROM `snowkey_leases` WHERE namespace = ? AND datacenter = ?" +
			" AND worker < ? AND (owner = '' AND reserved_until <= ? OR owner <> '' AND reserved_until <= ? OR owner = ?)" +
			" ORDER BY CASE WHEN owner = ? THEN 0 ELSE 1 END, RAND() LIMIT 16"
	)
	db, mock := newMock(t)
	names := []string{"datacenter", "layout", "schema_version"}
	mock.ExpectBegin()
	mock.ExpectQuery(openMySQL).WillReturnRows(mysqlSettings(50))
	mock.ExpectQuery(meta).WithArgs("shop").WillReturnRows(sqlmock.NewRows(names))
	mock.ExpectExec(insert).WithArgs("shop", -1, "l").WillReturnError(&MySQLError{1062})
	mock.ExpectRollback()
	mock.ExpectBegin()
	mock.ExpectQuery(openMySQL).WillReturnRows(mysqlSettings(50))
	mock.ExpectQuery(meta).WithArgs("shop").WillReturnRows(sqlmock.NewRows(names).AddRow(-1, "l", 1).AddRow(2, "l", 1))
	mock.ExpectQuery(free).WithArgs("shop", 2, 4, 1_005_010, 1_000_010, "me", "me").WillReturnRows(sqlmock.NewRows(rowNames).AddRow(3, 0, "", "", 0, 0, ""))
	mock.ExpectExec(mysqlUpdate).WithArgs(1, "me", "new", 1_060_010, 1, "", "shop", 2, 3, 0, "", "", 0, 0).WillReturnResult(sqlmock.NewResult(0, 1))
	mock.ExpectCommit()
	c := lease.Claim{Space: heldRenewal().Space, Owner: "me", Nonce: "new", Window: 60_000, Now: 1_000_000, Skew: 5_000}
	if r, err := mockStore(t, db, MySQL).Claim(t.Context(), c); err != nil || r.Row.Worker != 3 {
		t.Errorf("Claim() = %+v, %v; want worker 3", r, err)
	}
}

// A claim that the clocks forbid makes no rows either.
func TestClocksAreComparedBeforeAnythingIsWritten(t *testing.T) {
	db, mock := newMock(t)
	mock.ExpectBegin()
	mock.ExpectQuery(openMySQL).WillReturnRows(mysqlSettings(50))
	mock.ExpectRollback()
	c := lease.Claim{Space: heldRenewal().Space, Window: 60_000, Now: 900_000, Skew: 5_000}
	if _, err := mockStore(t, db, MySQL).Claim(t.Context(), c); !errors.Is(err, lease.ErrClockSkew) {
		t.Errorf("Claim() = %v; want ErrClockSkew", err)
	}
}
