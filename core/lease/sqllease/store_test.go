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
	"github.com/snowkey/snowkey/core/keysql"
	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/base/sqlrow"
	"github.com/snowkey/snowkey/internal/proof/servers/drivererrors"
)

// newMock returns a pool that accepts exactly the expected statements in their order. Of one
// that ends in "…" only the beginning is compared.
func newMock(t *testing.T) (*sql.DB, sqlmock.Sqlmock) {
	t.Helper()
	db, mock, err := sqlmock.New(sqlmock.QueryMatcherOption(sqlmock.QueryMatcherFunc(func(want, got string) error {
		if begin, end, cut := strings.Cut(want, "…"); cut && strings.HasPrefix(got, begin) && strings.HasSuffix(got, end) {
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
	s, err := New(db, sqlstore.Config{Dialect: d, Table: "shop." + DefaultTable, Logger: slog.New(slog.DiscardHandler)})
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
		{db, sqlstore.Config{Dialect: 99}, "sqllease: Config.Dialect is Dialect(99)"},
		{db, sqlstore.Config{Dialect: keysql.DuckDB}, "sqllease: Config.Dialect is DuckDB"}, // which only reads
		{db, sqlstore.Config{Dialect: sqlstore.MySQL, Table: "a b"}, `sqllease: Config.Table is "a b": want 1..58 letters`},
		{db, sqlstore.Config{Dialect: sqlstore.MySQL, Table: strings.Repeat("x", 1000)}, `sqllease: Config.Table is "` + strings.Repeat("x", 64) + `": want 1..58 letters`},
	} {
		s, err := New(test.db, test.config)
		if s != nil || !errors.As(err, new(*core.ValueError)) || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("New(%v, %+v) = %v, %v; want nil, %q", test.db != nil, test.config, s, err, test.want)
		}
	}
	for _, d := range []sqlstore.Dialect{sqlstore.SQLite, sqlstore.PostgreSQL, sqlstore.MySQL} {
		if s, err := New(db, sqlstore.Config{Dialect: d}); err != nil || !strings.HasSuffix(s.register.db.Names()[0], DefaultTable) {
			t.Errorf("New(db, %v) = %+v, %v; want table %s", d, s, err, DefaultTable)
		}
	}
}

// What is sent to the server, word by word. The statements that begin a transaction or a look
// are tested by package sqlrow.
const (
	openMySQL      = "SELECT @@innodb_lock_wait_timeout, …"
	openPostgreSQL = "SELECT pg_is_in_recovery() …"

	postgresLook = "SELECT s.*, (SELECT layout … AND r.worker = '3'"

	mysqlLevel = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"
	mysqlFind  = "SELECT s.*, (SELECT layout …) r ON 1 = 1 FOR UPDATE"
	mysqlLook  = "SELECT s.*, (SELECT layout … AND r.worker = 3 FOR UPDATE"
	mysqlMeta  = "SELECT datacenter, layout, schema_version FROM `shop`.`snowkey_leases_meta` WHERE namespace = ?"
	mysqlWrite = "UPDATE `shop`.`snowkey_leases` SET epoch = 7, owner = _ascii X'6d65', nonce = _ascii X'6e6577', reserved_until = 1060010, renewals = 10, holder = _ascii X'686f7374'" +
		" WHERE namespace = _ascii X'73686f70' AND datacenter = 2 AND worker = 3 AND epoch = 7 AND owner = _ascii X'6d65' AND nonce = _ascii X'6f6c64' AND reserved_until = 1040000 AND renewals = 9" +
		" AND EXISTS (SELECT 1 FROM `shop`.`snowkey_leases_meta` m WHERE m.namespace = _ascii X'73686f70' AND m.datacenter = 2 AND m.layout = _ascii X'6c')"
	postgresWrite = `WITH settings AS (SELECT CASE WHEN current_setting('synchronous_commit') IN ('off', 'local', 'remote_write') THEN set_config('synchronous_commit', 'on', true) END,` +
		` CASE WHEN CAST(E'7500' AS TEXT) <> '' THEN set_config('lock_timeout', CAST(E'7500' AS TEXT), true) END) ` + postgresSet + ` FROM settings` + postgresWhere +
		` AND (coalesce(current_setting('synchronous_standby_names', true), '') = '' AND current_setting('transaction_isolation') = 'read committed')`
	postgresSet   = `UPDATE "shop"."snowkey_leases" SET epoch = '7', owner = E'me', nonce = E'new', reserved_until = '1060010', renewals = '10', holder = E'host'`
	postgresWhere = ` WHERE namespace = E'shop' AND datacenter = '2' AND worker = '3' AND epoch = '7' AND owner = E'me' AND nonce = E'old' AND reserved_until = '1040000' AND renewals = '9'` +
		` AND EXISTS (SELECT 1 FROM "shop"."snowkey_leases_meta" m WHERE m.namespace = E'shop' AND m.datacenter = '2' AND m.layout = E'l')`
)

// heldRenewal is a renewal at 1,000,000 ms of the row that heldRow returns.
func heldRenewal() leasestore.Renewal {
	return leasestore.Renewal{
		Space: leasestore.Space{Namespace: "shop", Datacenter: 2, Workers: 4, Layout: "l"}, Worker: 3, Epoch: 7, Owner: "me",
		Known: []string{"old"}, Nonce: "new", Next: 1_000_000, Until: 1_040_000, Window: 60_000, Now: 1_000_000, Skew: 5_000,
	}
}

// sight returns the result of a look: columns about the server and the space, and one row.
func sight(server []driver.Value, space []driver.Value, row ...driver.Value) *sqlmock.Rows {
	values := slices.Concat(server, space, row)
	names := make([]string, len(values))
	return sqlmock.NewRows(names).AddRow(values...)
}

var (
	made     = []driver.Value{"l", 1, 1}
	unmade   = []driver.Value{nil, nil, nil}
	held     = []driver.Value{3, 7, "me", "old", 1_040_000, 9, "host"}
	taken    = []driver.Value{3, 8, "other", "x", 2_000_000, 10, "host"}
	noRow    = []driver.Value{nil, nil, nil, nil, nil, nil, nil}
	onMySQL  = []driver.Value{0, 1, 0, 1, 1_000_010}
	onDolt   = []driver.Value{0, 1, 1, 1, 1_000_010}
	forgets  = []driver.Value{false, "off", true, 1_000_010}
	standsBy = []driver.Value{false, "on", false, 1_000_010} // a write needs a transaction
	postgres = []driver.Value{false, "on", true, 1_000_010}
)

func mysqlSettings(wait int) *sqlmock.Rows {
	return sqlmock.NewRows([]string{"wait", "read_only", "flush", "dolt", "tidb", "now"}).AddRow(wait, 0, 1, 0, 0, 1_000_010)
}

func postgresSettings(refuses bool, fsync string) *sqlmock.Rows {
	return sqlmock.NewRows([]string{"1", "2", "3", "4", "5", "6", "7"}).AddRow(refuses, fsync, nil, nil, nil, nil, 1_000_010)
}

// The server is a mock that identifies itself as Dolt.
func TestDoltIsRefusedForGood(t *testing.T) {
	db, mock := newMock(t)
	s, err := New(db, sqlstore.Config{Dialect: sqlstore.MySQL, Table: "shop." + DefaultTable})
	if err != nil {
		t.Fatal(err)
	}
	mock.ExpectQuery(mysqlLook).WillReturnRows(sight(onDolt, made, held...))
	if _, err := s.Renew(t.Context(), heldRenewal()); !errors.Is(err, sqlstore.ErrDolt) || !errors.Is(err, leasestore.ErrPermanent) {
		t.Errorf("Renew on Dolt = %v; want %v, which is permanent", err, sqlstore.ErrDolt)
	}
}

// expectMySQL expects a renewal up to its UPDATE, with a deadline.
func expectMySQL(mock sqlmock.Sqlmock) {
	mock.ExpectQuery(mysqlLook).WithoutArgs().WillReturnRows(sight(onMySQL, made, held...))
	mock.ExpectBegin()
	mock.ExpectQuery(openMySQL).WillReturnRows(mysqlSettings(50))
	mock.ExpectExec("SET SESSION innodb_lock_wait_timeout = 8").WillReturnResult(driver.ResultNoRows)
}

// renewWithin15s renews with a deadline and a clock that stands still, because on a loaded
// machine less than 15 s would be left for the server's limits.
func renewWithin15s(t *testing.T, s *Store) (reply leasestore.Reply, err error) {
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
	mock.ExpectExec(mysqlWrite).WithoutArgs().WillReturnResult(sqlmock.NewResult(0, 1))
	mock.ExpectCommit()
	mock.ExpectExec("SET SESSION innodb_lock_wait_timeout = 50").WillReturnResult(driver.ResultNoRows)

	want := leasestore.Reply{Row: leasestore.Row{Worker: 3, Epoch: 7, Owner: "me", Nonce: "new", Until: 1_060_010, Renewals: 10, Holder: "host"}, Before: 1_040_000, Now: 1_000_010}
	if got, err := renewWithin15s(t, mockStore(t, db, sqlstore.MySQL)); err != nil || got != want {
		t.Errorf("Renew() = %+v, %v; want %+v", got, err, want)
	}
}

func TestRenewalOnPostgreSQLSendsThis(t *testing.T) {
	db, mock := newMock(t)
	mock.ExpectQuery(postgresLook).WithoutArgs().WillReturnRows(sight(postgres, made, held...))
	mock.ExpectExec(postgresWrite).WithoutArgs().WillReturnResult(sqlmock.NewResult(0, 1))
	if _, err := renewWithin15s(t, mockStore(t, db, sqlstore.PostgreSQL)); err != nil {
		t.Errorf("Renew() = %v; want nil", err)
	}
}

// A write that stands alone could not tell whether the standby has it, or finds another server
// than the one that was read.
func TestRenewalOnPostgreSQLTakesATransactionWhereItMust(t *testing.T) {
	for name, server := range map[string][]driver.Value{"standby": standsBy, "another server": postgres} {
		db, mock := newMock(t)
		mock.ExpectQuery(postgresLook).WillReturnRows(sight(server, made, held...))
		if name != "standby" {
			mock.ExpectExec("WITH settings AS …").WithoutArgs().WillReturnResult(sqlmock.NewResult(0, 0))
		}
		mock.ExpectBegin()
		mock.ExpectQuery(openPostgreSQL).WillReturnRows(postgresSettings(false, "on"))
		mock.ExpectExec(postgresSet + postgresWhere).WithoutArgs().WillReturnResult(sqlmock.NewResult(0, 1))
		mock.ExpectCommit()
		if _, err := mockStore(t, db, sqlstore.PostgreSQL).Renew(t.Context(), heldRenewal()); err != nil {
			t.Errorf("%s: Renew() = %v; want nil", name, err)
		}
	}
}

func definiteError(err error) bool {
	return errors.Is(err, leasestore.ErrLost) || errors.Is(err, leasestore.ErrNoFreeWorker) || errors.Is(err, leasestore.ErrLayout) || errors.Is(err, leasestore.ErrClockSkew)
}

// A row that could not be read is not a row that is gone.
func TestAnswerThatBreaksOffLosesNoRow(t *testing.T) {
	failure := errors.New("cut off")
	db, mock := newMock(t)
	mock.ExpectQuery(postgresLook).WillReturnRows(sight(postgres, made, held...).RowError(0, failure))
	if _, err := mockStore(t, db, sqlstore.PostgreSQL).Renew(t.Context(), heldRenewal()); !errors.Is(err, failure) || definiteError(err) {
		t.Errorf("Renew(), the row breaks off = %v; want %v", err, failure)
	}
}

// After an error of the COMMIT it is unknown whether the lease is renewed.
func TestErrorOfTheCommitSaysNothingAboutTheLease(t *testing.T) {
	for _, failure := range []error{errors.New("no answer"), driver.ErrBadConn, drivererrors.MySQL(1180), context.DeadlineExceeded} {
		db, mock := newMock(t)
		expectMySQL(mock)
		mock.ExpectExec(mysqlWrite).WithoutArgs().WillReturnResult(sqlmock.NewResult(0, 1))
		mock.ExpectCommit().WillReturnError(failure)
		mock.ExpectClose()
		got, err := renewWithin15s(t, mockStore(t, db, sqlstore.MySQL))
		if got != (leasestore.Reply{}) || !errors.Is(err, failure) || definiteError(err) || !strings.Contains(err.Error(), "sqllease: swap: commit, outcome unknown: ") {
			t.Errorf("Renew() with COMMIT = %v: %+v, %v; want it in an error that says the outcome is unknown", failure, got, err)
		}
	}
}

func TestARenewalWithoutItsRowIsLost(t *testing.T) {
	db, mock := newMock(t)
	mock.ExpectQuery(mysqlLook).WillReturnRows(sight(onMySQL, made, noRow...))
	_, err := mockStore(t, db, sqlstore.MySQL).Renew(t.Context(), heldRenewal())
	renewal := heldRenewal()
	if want := renewal.Lost(leasestore.Gone); err == nil || err.Error() != want.Error() {
		t.Errorf("Renew() without the row = %v; want %v", err, want)
	}
}

// Package sqlrow decides whether a transaction begins anew. These tests are about what its
// errors mean for a lease.
func TestFaultsAreToldApart(t *testing.T) {
	db, _ := newMock(t)
	s := mockStore(t, db, sqlstore.PostgreSQL)
	state, number := drivererrors.Postgres, drivererrors.MySQL
	renewal := heldRenewal()
	kinds := []error{sqlstore.ErrNoTable, sqlstore.ErrSchema, sqlstore.ErrReadOnly, leasestore.ErrLost, leasestore.ErrPermanent}
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
		{state("42P01"), []error{sqlstore.ErrNoTable, leasestore.ErrPermanent}},
		{number(1146), []error{sqlstore.ErrNoTable, leasestore.ErrPermanent}},
		{state("42703"), []error{sqlstore.ErrSchema, leasestore.ErrPermanent}},
		{number(1054), []error{sqlstore.ErrSchema, leasestore.ErrPermanent}},
		{state("42501"), []error{leasestore.ErrPermanent}},
		{number(1142), []error{leasestore.ErrPermanent}},
		{fmt.Errorf("%w: it is on NFS", sqlstore.ErrNotDurable), []error{leasestore.ErrPermanent}},
		{fmt.Errorf("%w: %w", sqlstore.ErrReadOnly, state("25006")), []error{sqlstore.ErrReadOnly}},
		{renewal.Lost(leasestore.Gone), []error{leasestore.ErrLost}},
	} {
		got := explain("renew", s.register.db.Explain(test.err))
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
	s, err := New(db, sqlstore.Config{Dialect: sqlstore.PostgreSQL, Table: "shop." + DefaultTable, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		mock.ExpectQuery(postgresLook).WillReturnRows(sight(forgets, made, noRow...))
		if _, err := s.Renew(t.Context(), heldRenewal()); !errors.Is(err, leasestore.ErrLost) {
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
		_, err := s.Claim(t.Context(), leasestore.Claim{Space: heldRenewal().Space})
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
	mock.ExpectExec(mysqlWrite).WithoutArgs().WillReturnResult(sqlmock.NewResult(0, 0))
	mock.ExpectCommit()
	mock.ExpectExec("SET SESSION innodb_lock_wait_timeout = 50").WillReturnResult(driver.ResultNoRows)
	mock.ExpectQuery(mysqlLook).WillReturnRows(sight(onMySQL, made, taken...))
	_, err := renewWithin15s(t, mockStore(t, db, sqlstore.MySQL))
	renewal := heldRenewal()
	if want := renewal.Lost(leasestore.TakenOver); err == nil || err.Error() != want.Error() {
		t.Errorf("Renew() = %v; want %v", err, want)
	}
}

func TestMoreThanOneRowAffectedIsRolledBack(t *testing.T) {
	for _, result := range []driver.Result{sqlmock.NewResult(0, 2), sqlmock.NewErrorResult(errors.New("unknown"))} {
		db, mock := newMock(t)
		expectMySQL(mock)
		mock.ExpectExec(mysqlWrite).WithoutArgs().WillReturnResult(result)
		mock.ExpectRollback()
		mock.ExpectExec("SET SESSION innodb_lock_wait_timeout = 50").WillReturnResult(driver.ResultNoRows)
		if _, err := renewWithin15s(t, mockStore(t, db, sqlstore.MySQL)); err == nil || definiteError(err) {
			t.Errorf("Renew() = %v; want an error that is none of the four", err)
		}
	}
}

func TestStatementsAreThoseThatCreateTheTables(t *testing.T) {
	db, _ := newMock(t)
	s := mockStore(t, db, sqlstore.MySQL)
	want := []string{
		"CREATE TABLE IF NOT EXISTS `shop`.`snowkey_leases_meta` (namespace VARCHAR(64) NOT NULL, datacenter BIGINT NOT NULL, layout VARCHAR(255) NOT NULL, schema_version BIGINT NOT NULL, PRIMARY KEY (namespace, datacenter)) ENGINE=InnoDB DEFAULT CHARACTER SET ascii COLLATE ascii_bin",
		"CREATE TABLE IF NOT EXISTS `shop`.`snowkey_leases` (namespace VARCHAR(64) NOT NULL, datacenter BIGINT NOT NULL, worker BIGINT NOT NULL, epoch BIGINT NOT NULL, owner VARCHAR(64) NOT NULL, nonce VARCHAR(64) NOT NULL, reserved_until BIGINT NOT NULL, renewals BIGINT NOT NULL, holder VARCHAR(64) NOT NULL, PRIMARY KEY (namespace, datacenter, worker)) ENGINE=InnoDB DEFAULT CHARACTER SET ascii COLLATE ascii_bin",
		"CREATE TABLE IF NOT EXISTS `shop`.`snowkey_leases_past` (namespace VARCHAR(64) NOT NULL, datacenter BIGINT NOT NULL, worker BIGINT NOT NULL, records TEXT NOT NULL, PRIMARY KEY (namespace, datacenter, worker)) ENGINE=InnoDB DEFAULT CHARACTER SET ascii COLLATE ascii_bin",
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

// Another process has made the rows meanwhile.
func TestFirstClaimThatComesSecondLooksAgain(t *testing.T) {
	const insert = "INSERT INTO `shop`.`snowkey_leases_meta` (namespace, datacenter, layout, schema_version) VALUES (?, ?, ?, 1)"
	db, mock := newMock(t)
	names := []string{"datacenter", "layout", "schema_version"}
	look := func(space, row []driver.Value) {
		mock.ExpectExec(mysqlLevel).WillReturnResult(driver.ResultNoRows)
		mock.ExpectQuery(mysqlFind).WithoutArgs().WillReturnRows(sight(onMySQL, space, row...))
	}
	look(unmade, noRow)
	mock.ExpectBegin()
	mock.ExpectQuery(openMySQL).WillReturnRows(mysqlSettings(50))
	mock.ExpectQuery(mysqlMeta).WithArgs("shop").WillReturnRows(sqlmock.NewRows(names))
	mock.ExpectExec(insert).WithArgs("shop", -1, "l").WillReturnError(drivererrors.MySQL(1062))
	mock.ExpectRollback()
	mock.ExpectBegin()
	mock.ExpectQuery(openMySQL).WillReturnRows(mysqlSettings(50))
	mock.ExpectQuery(mysqlMeta).WithArgs("shop").WillReturnRows(sqlmock.NewRows(names).AddRow(-1, "l", 1).AddRow(2, "l", 1))
	mock.ExpectRollback()
	look(made, noRow) // near a random place
	look(made, []driver.Value{3, 0, "", "", 0, 0, ""})
	mock.ExpectBegin()
	mock.ExpectQuery(openMySQL).WillReturnRows(mysqlSettings(50))
	mock.ExpectExec("UPDATE `shop`.`snowkey_leases` r LEFT JOIN `shop`.`snowkey_leases_past` p ON …").WithoutArgs().WillReturnResult(sqlmock.NewResult(0, 2))
	mock.ExpectCommit()
	c := leasestore.Claim{Space: heldRenewal().Space, Owner: "me", Nonce: "new", Window: 60_000, Now: 1_000_000, Skew: 5_000}
	if r, err := mockStore(t, db, sqlstore.MySQL).Claim(t.Context(), c); err != nil || r.Row.Worker != 3 {
		t.Errorf("Claim() = %+v, %v; want worker 3", r, err)
	}
}

// A claim that the clocks forbid makes no rows either.
func TestClocksAreComparedBeforeAnythingIsWritten(t *testing.T) {
	db, mock := newMock(t)
	mock.ExpectExec(mysqlLevel).WillReturnResult(driver.ResultNoRows)
	mock.ExpectQuery(mysqlFind).WillReturnRows(sight(onMySQL, unmade, noRow...))
	c := leasestore.Claim{Space: heldRenewal().Space, Window: 60_000, Now: 900_000, Skew: 5_000}
	if _, err := mockStore(t, db, sqlstore.MySQL).Claim(t.Context(), c); !errors.Is(err, leasestore.ErrClockSkew) {
		t.Errorf("Claim() = %v; want ErrClockSkew", err)
	}
}
