package sqllease

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/DATA-DOG/go-sqlmock"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/base/dialect/dialecttest"
	"github.com/snowkey/snowkey/internal/base/sqlrow"
)

// newMock returns a pool that takes exactly the statements that are expected, in
// their order. Of one that ends in "…" only the beginning is compared.
func newMock(t *testing.T) (*sql.DB, sqlmock.Sqlmock) {
	t.Helper()
	db, mock, err := sqlmock.New(sqlmock.QueryMatcherOption(sqlmock.QueryMatcherFunc(func(want, got string) error {
		if begin, cut := strings.CutSuffix(want, "…"); cut && strings.HasPrefix(got, begin) {
			return nil
		}
		return sqlmock.QueryMatcherEqual.Match(want, got)
	})))
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

func mockStore(t *testing.T, db *sql.DB, d sqlstore.Dialect) *Store {
	t.Helper()
	s, err := New(db, sqlstore.Config{Dialect: d, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	db, _ := newMock(t)
	for _, test := range []struct {
		db     *sql.DB
		config sqlstore.Config
		want   string
	}{
		{nil, sqlstore.Config{Dialect: sqlstore.SQLite}, "sqllease: db is nil"},
		{db, sqlstore.Config{}, "sqllease: Config.Dialect is Dialect(0): want SQLite, PostgreSQL or MySQL"},
		{db, sqlstore.Config{Dialect: 4}, "sqllease: Config.Dialect is Dialect(4)"},
		{db, sqlstore.Config{Dialect: sqlstore.MySQL, Table: "a b"}, `sqllease: Config.Table is "a b": want 1..58 letters`},
		{db, sqlstore.Config{Dialect: sqlstore.MySQL, Table: strings.Repeat("x", 1000)}, `sqllease: Config.Table is "` + strings.Repeat("x", 64) + `": want 1..58 letters`},
	} {
		s, err := New(test.db, test.config)
		if s != nil || !errors.As(err, new(*core.ValueError)) || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("New(%v, %+v) = %v, %v; want nil, %q", test.db != nil, test.config, s, err, test.want)
		}
	}
	for _, d := range []sqlstore.Dialect{sqlstore.SQLite, sqlstore.PostgreSQL, sqlstore.MySQL} {
		if s, err := New(db, sqlstore.Config{Dialect: d}); err != nil || s.db.Names[0] != DefaultTable {
			t.Errorf("New(db, %v) = %+v, %v; want table %s", d, s, err, DefaultTable)
		}
	}
}

// What is sent to the server, word by word. The first two are for package sqlrow.
const (
	openMySQL      = "SELECT @@innodb_lock_wait_timeout, …"
	openPostgreSQL = "SELECT pg_is_in_recovery() …"

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
	return sqlmock.NewRows([]string{"wait", "read_only", "flush", "dolt", "now"}).AddRow(wait, 0, 1, 0, 1_000_010)
}

func postgresSettings(refuses bool, fsync string) *sqlmock.Rows {
	return sqlmock.NewRows([]string{"1", "2", "3", "4", "5", "6", "7"}).AddRow(refuses, fsync, nil, nil, nil, nil, 1_000_010)
}

var heldUpdate = []driver.Value{7, "me", "new", 1_060_010, 10, "host", "shop", 2, 3, 7, "me", "old", 1_040_000, 9}

// The server is a mock that says what Dolt says of itself.
func TestDoltIsRefusedForGood(t *testing.T) {
	db, mock := newMock(t)
	s, err := New(db, sqlstore.Config{Dialect: sqlstore.MySQL})
	if err != nil {
		t.Fatal(err)
	}
	mock.ExpectBegin()
	mock.ExpectQuery(openMySQL).WillReturnRows(sqlmock.NewRows([]string{"wait", "read_only", "flush", "dolt", "now"}).AddRow(50, 0, 1, 1, 1_000_010))
	mock.ExpectRollback()
	if _, err := s.Renew(t.Context(), heldRenewal()); !errors.Is(err, sqlstore.ErrDolt) || !errors.Is(err, lease.ErrPermanent) {
		t.Errorf("Renew on Dolt = %v; want %v, which is permanent", err, sqlstore.ErrDolt)
	}
}

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
	if got, err := renewWithin15s(t, mockStore(t, db, sqlstore.MySQL)); err != nil || got != want {
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
	if _, err := renewWithin15s(t, mockStore(t, db, sqlstore.PostgreSQL)); err != nil {
		t.Errorf("Renew() = %v; want nil", err)
	}
}

func definiteError(err error) bool {
	return errors.Is(err, lease.ErrLost) || errors.Is(err, lease.ErrNoFreeWorker) || errors.Is(err, lease.ErrLayout) || errors.Is(err, lease.ErrClockSkew)
}

// A row that could not be read is not a row that is gone.
func TestAnswerThatBreaksOffLosesNoRow(t *testing.T) {
	failure := errors.New("cut off")
	db, mock := newMock(t)
	mock.ExpectBegin()
	mock.ExpectQuery(openPostgreSQL).WithArgs("").WillReturnRows(postgresSettings(false, "on"))
	mock.ExpectQuery(postgresRow).WithArgs("shop", 2, 3).WillReturnRows(heldRow().RowError(0, failure))
	mock.ExpectRollback()
	if _, err := mockStore(t, db, sqlstore.PostgreSQL).Renew(t.Context(), heldRenewal()); !errors.Is(err, failure) || definiteError(err) {
		t.Errorf("Renew(), the row breaks off = %v; want %v", err, failure)
	}
}

// After an error of the COMMIT the lease may be renewed, or not.
func TestErrorOfTheCommitSaysNothingAboutTheLease(t *testing.T) {
	for _, failure := range []error{errors.New("no answer"), driver.ErrBadConn, dialecttest.MySQL(1180), context.DeadlineExceeded} {
		db, mock := newMock(t)
		expectMySQL(mock)
		mock.ExpectExec(mysqlUpdate).WithArgs(heldUpdate...).WillReturnResult(sqlmock.NewResult(0, 1))
		mock.ExpectCommit().WillReturnError(failure)
		mock.ExpectClose()
		got, err := renewWithin15s(t, mockStore(t, db, sqlstore.MySQL))
		if got != (lease.Reply{}) || !errors.Is(err, failure) || definiteError(err) || !strings.Contains(err.Error(), "sqllease: renew: commit, outcome unknown: ") {
			t.Errorf("Renew() with COMMIT = %v: %+v, %v; want it in an error that says the outcome is unknown", failure, got, err)
		}
	}
}

func TestARenewalWithoutItsRowIsLost(t *testing.T) {
	db, mock := newMock(t)
	mock.ExpectBegin()
	mock.ExpectQuery(openMySQL).WillReturnRows(mysqlSettings(50))
	mock.ExpectQuery(mysqlRow).WithArgs("shop", 2, 3).WillReturnRows(sqlmock.NewRows(rowNames))
	mock.ExpectRollback()
	_, err := mockStore(t, db, sqlstore.MySQL).Renew(t.Context(), heldRenewal())
	renewal := heldRenewal()
	if want := renewal.Lost(lease.Gone); err == nil || err.Error() != want.Error() {
		t.Errorf("Renew() without the row = %v; want %v", err, want)
	}
}

// Whether a transaction begins anew is for package sqlrow. Here is what its errors mean
// for a lease.
func TestFaultsAreToldApart(t *testing.T) {
	db, _ := newMock(t)
	s := mockStore(t, db, sqlstore.PostgreSQL)
	state, number := dialecttest.Postgres, dialecttest.MySQL
	renewal := heldRenewal()
	kinds := []error{sqlstore.ErrNoTable, sqlstore.ErrSchema, sqlstore.ErrReadOnly, lease.ErrLost, lease.ErrPermanent}
	for _, test := range []struct {
		err  error
		want []error // of kinds
	}{
		{driver.ErrBadConn, nil},
		{fmt.Errorf("%w: %w", sqlrow.ErrCommit, state("42P01")), nil},
		{fmt.Errorf("%w: %w", state("42P01"), driver.ErrBadConn), nil},
		{state("40001"), nil},
		{state("57014"), nil}, // statement timeout
		{number(1021), nil},   // disk full
		{context.Canceled, nil},
		{state("42P01"), []error{sqlstore.ErrNoTable, lease.ErrPermanent}},
		{number(1146), []error{sqlstore.ErrNoTable, lease.ErrPermanent}},
		{state("42703"), []error{sqlstore.ErrSchema, lease.ErrPermanent}},
		{number(1054), []error{sqlstore.ErrSchema, lease.ErrPermanent}},
		{state("42501"), []error{lease.ErrPermanent}},
		{number(1142), []error{lease.ErrPermanent}},
		{fmt.Errorf("%w: it is on NFS", sqlstore.ErrNotDurable), []error{lease.ErrPermanent}},
		{fmt.Errorf("%w: %w", sqlstore.ErrReadOnly, state("25006")), []error{sqlstore.ErrReadOnly}},
		{renewal.Lost(lease.Gone), []error{lease.ErrLost}},
	} {
		got := s.explain("renew", s.db.Explain(test.err))
		for _, kind := range kinds {
			if want := slices.Contains(test.want, kind); errors.Is(got, kind) != want {
				t.Errorf("explain(%v) = %v; want it to match %v: %v", test.err, got, kind, want)
			}
		}
		if table := errors.As(got, new(*sqlstore.TableError)); !table && !errors.Is(got, test.err) || !strings.Contains(got.Error(), test.err.Error()) {
			t.Errorf("explain(%v) = %v; want it in there", test.err, got)
		}
	}
}

func TestServerThatMayForgetIsWarnedOfOnce(t *testing.T) {
	var log bytes.Buffer
	db, mock := newMock(t)
	s, err := New(db, sqlstore.Config{Dialect: sqlstore.PostgreSQL, Logger: slog.New(slog.NewTextHandler(&log, nil))})
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
	if got := log.String(); strings.Count(got, "numbers may then repeat") != 1 || !strings.Contains(got, "setting=fsync value=off want=on") {
		t.Errorf("log = %q; want one warning about fsync", got)
	}
}

func TestPoolOfOneIsWarnedOfOnce(t *testing.T) {
	var log bytes.Buffer
	db := sql.OpenDB(unreachable{})
	s, err := New(db, sqlstore.Config{Dialect: sqlstore.PostgreSQL, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ connections, warnings int }{{0, 0}, {2, 0}, {1, 1}, {1, 1}} {
		db.SetMaxOpenConns(test.connections)
		_, err := s.Claim(t.Context(), lease.Claim{Space: heldRenewal().Space})
		if n := strings.Count(log.String(), "the pool has one connection"); err == nil || n != test.warnings {
			t.Errorf("Claim() with %d connections = %v, %d warnings; want an error, %d warnings", test.connections, err, n, test.warnings)
		}
	}
}

type unreachable struct{}

func (unreachable) Connect(context.Context) (driver.Conn, error) { return nil, errors.New("no") }
func (unreachable) Driver() driver.Driver                        { return nil }

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
	_, err := renewWithin15s(t, mockStore(t, db, sqlstore.MySQL))
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
		if _, err := renewWithin15s(t, mockStore(t, db, sqlstore.MySQL)); err == nil || definiteError(err) {
			t.Errorf("Renew() = %v; want an error that is none of the four", err)
		}
	}
}

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
		x := &transaction{Tx: &sqlrow.Tx{Asked: began.Add(test.asked), Answered: began.Add(test.answered)}, now: 1_000_000 + test.store}
		err := x.checkClock(lease.Claim{Now: 1_000_000, Skew: 5_000}, began)
		if refused := errors.Is(err, lease.ErrClockSkew); refused != test.refused {
			t.Errorf("checkClock(asked after %v, answered after %v, store %+d ms) = %v; want refused %v", test.asked, test.answered, test.store, err, test.refused)
		}
	}
}

func TestStatementsAreThoseThatCreateTheTables(t *testing.T) {
	db, _ := newMock(t)
	s := mockStore(t, db, sqlstore.MySQL)
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
		rows   = "SELECT worker, epoch, owner, nonce, reserved_until, renewals, holder FROM `snowkey_leases` WHERE namespace = ? AND datacenter = ?"
		isFree = " AND (owner = '' AND reserved_until <= ? OR owner <> '' AND reserved_until <= ? OR owner = ?)"
		near   = rows + " AND worker >= ? AND worker < ?" + isFree + " ORDER BY worker LIMIT 16"
		free   = rows + " AND worker < ?" + isFree + " ORDER BY CASE WHEN owner = ? THEN 0 ELSE 1 END, RAND() LIMIT 16"
	)
	db, mock := newMock(t)
	names := []string{"datacenter", "layout", "schema_version"}
	mock.ExpectBegin()
	mock.ExpectQuery(openMySQL).WillReturnRows(mysqlSettings(50))
	mock.ExpectQuery(meta).WithArgs("shop").WillReturnRows(sqlmock.NewRows(names))
	mock.ExpectExec(insert).WithArgs("shop", -1, "l").WillReturnError(dialecttest.MySQL(1062))
	mock.ExpectRollback()
	mock.ExpectBegin()
	mock.ExpectQuery(openMySQL).WillReturnRows(mysqlSettings(50))
	mock.ExpectQuery(meta).WithArgs("shop").WillReturnRows(sqlmock.NewRows(names).AddRow(-1, "l", 1).AddRow(2, "l", 1))
	mock.ExpectQuery(near).WithArgs("shop", 2, sqlmock.AnyArg(), 4, 1_005_010, 1_000_010, "me").WillReturnRows(sqlmock.NewRows(rowNames))
	mock.ExpectQuery(free).WithArgs("shop", 2, 4, 1_005_010, 1_000_010, "me", "me").WillReturnRows(sqlmock.NewRows(rowNames).AddRow(3, 0, "", "", 0, 0, ""))
	mock.ExpectExec(mysqlUpdate).WithArgs(1, "me", "new", 1_060_010, 1, "", "shop", 2, 3, 0, "", "", 0, 0).WillReturnResult(sqlmock.NewResult(0, 1))
	mock.ExpectCommit()
	c := lease.Claim{Space: heldRenewal().Space, Owner: "me", Nonce: "new", Window: 60_000, Now: 1_000_000, Skew: 5_000}
	if r, err := mockStore(t, db, sqlstore.MySQL).Claim(t.Context(), c); err != nil || r.Row.Worker != 3 {
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
	if _, err := mockStore(t, db, sqlstore.MySQL).Claim(t.Context(), c); !errors.Is(err, lease.ErrClockSkew) {
		t.Errorf("Claim() = %v; want ErrClockSkew", err)
	}
}
