package sqlrow

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/DATA-DOG/go-sqlmock"

	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/standby"
	"github.com/snowkey/snowkey/internal/base/wait"
	"github.com/snowkey/snowkey/internal/proof/servers/drivererrors"
	"github.com/snowkey/snowkey/internal/proof/servers/drivererrors/sqlite"
)

// newMock returns a pool that takes exactly the statements that are expected, in
// their order.
func newMock(t *testing.T) (*sql.DB, sqlmock.Sqlmock) {
	t.Helper()
	pool, mock, err := sqlmock.New(sqlmock.QueryMatcherOption(sqlmock.QueryMatcherEqual))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := mock.ExpectationsWereMet(); err != nil {
			t.Error(err)
		}
	})
	return pool, mock
}

// errVerdict is what a body says about the rows.
var errVerdict = errors.New("the counter is not for you")

// newDB returns a DB for a table t. What it warns of is appended to warnings.
func newDB(pool *sql.DB, d dialect.Dialect, warnings *[]string) *DB {
	return New(pool, Config{
		Dialect: d,
		Table:   "t",
		Verdict: func(err error) bool { return errors.Is(err, errVerdict) },
		Warn: func(_ context.Context, risk string, args ...any) {
			if warnings != nil {
				*warnings = append(*warnings, fmt.Sprint(risk, args))
			}
		},
		Now: time.Now,
	})
}

const (
	selectN = "SELECT n FROM t"
	updateN = "UPDATE t SET n = n + 1"
)

// bump raises a counter, and returns what it is then.
func bump(ctx context.Context, d *DB) (int64, error) {
	return Do(ctx, d, func(t *Tx) (n int64, err error) {
		if err := t.Each(ctx, func(scan func(...any) error) error { return scan(&n) }, selectN); err != nil {
			return 0, err
		}
		_, err = t.Exec(ctx, updateN)
		return n + 1, err
	})
}

// bumpWithin15s has a deadline, by a clock that stands. A loaded machine would leave less
// than 15 s for the server's limits.
func bumpWithin15s(t *testing.T, d *DB) (n int64, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
		defer cancel()
		n, err = bump(ctx, d)
	})
	return n, err
}

func mysqlSettings(lock int, readOnly bool, flush int) *sqlmock.Rows {
	return sqlmock.NewRows([]string{"lock", "read_only", "flush", "dolt", "tidb", "now"}).AddRow(lock, readOnly, flush, 0, 0, 1_000_010)
}

func postgresSettings(refuses bool, fsync string) *sqlmock.Rows {
	return sqlmock.NewRows([]string{"1", "2", "3", "4", "5", "6", "7"}).AddRow(refuses, fsync, nil, nil, nil, nil, 1_000_010)
}

func seven() *sqlmock.Rows { return sqlmock.NewRows([]string{"n"}).AddRow(7) }

// expectMySQL expects what bump sends up to its UPDATE, with a deadline.
func expectMySQL(mock sqlmock.Sqlmock) {
	mock.ExpectBegin()
	mock.ExpectQuery(openMySQL).WillReturnRows(mysqlSettings(50, false, 1))
	mock.ExpectExec("SET SESSION innodb_lock_wait_timeout = 15").WillReturnResult(driver.ResultNoRows)
	mock.ExpectQuery(selectN).WillReturnRows(seven())
}

func expectRestore(mock sqlmock.Sqlmock) {
	mock.ExpectExec("SET SESSION innodb_lock_wait_timeout = 50").WillReturnResult(driver.ResultNoRows)
}

func TestTransactionOnMySQLSendsThisAndSetsTheSettingBack(t *testing.T) {
	pool, mock := newMock(t)
	expectMySQL(mock)
	mock.ExpectExec(updateN).WillReturnResult(sqlmock.NewResult(0, 1))
	mock.ExpectCommit()
	expectRestore(mock)
	if n, err := bumpWithin15s(t, newDB(pool, dialect.MySQL, nil)); n != 8 || err != nil {
		t.Errorf("Do() = %d, %v; want 8", n, err)
	}
}

// The isolation level, which no mock shows, is another one from then on.
func TestTheFirstTransactionOnTiDBBeginsAnew(t *testing.T) {
	pool, mock := newMock(t)
	d := newDB(pool, dialect.MySQL, nil)
	for i := range 3 {
		mock.ExpectBegin()
		mock.ExpectQuery(openMySQL).WillReturnRows(sqlmock.NewRows([]string{"lock", "read_only", "flush", "dolt", "tidb", "now"}).AddRow(50, 0, 1, 0, 1, 1_000_010))
		if i == 0 {
			mock.ExpectRollback()
			continue
		}
		mock.ExpectQuery(selectN).WillReturnRows(seven())
		mock.ExpectExec(updateN).WillReturnResult(sqlmock.NewResult(0, 1))
		mock.ExpectCommit()
	}
	for range 2 {
		if n, err := bump(t.Context(), d); n != 8 || err != nil {
			t.Errorf("Do() on TiDB = %d, %v; want 8", n, err)
		}
	}
}

// opens returns the text of openPostgreSQL that is sent, with its limit.
func opens(limit string) string { return strings.Replace(openPostgreSQL, "?", "E'"+limit+"'", 1) }

func TestTransactionOnPostgreSQLSendsThis(t *testing.T) {
	pool, mock := newMock(t)
	mock.ExpectBegin()
	mock.ExpectQuery(opens("15000")).WithoutArgs().WillReturnRows(postgresSettings(false, "on"))
	mock.ExpectQuery(selectN).WillReturnRows(seven())
	mock.ExpectExec(updateN).WillReturnResult(sqlmock.NewResult(0, 1))
	mock.ExpectCommit()
	if n, err := bumpWithin15s(t, newDB(pool, dialect.PostgreSQL, nil)); n != 8 || err != nil {
		t.Errorf("Do() = %d, %v; want 8", n, err)
	}
}

func TestWithoutDeadlineTheServersLimitsStay(t *testing.T) {
	for d, open := range map[dialect.Dialect]func(sqlmock.Sqlmock){
		dialect.MySQL: func(mock sqlmock.Sqlmock) {
			mock.ExpectQuery(openMySQL).WillReturnRows(mysqlSettings(50, false, 1))
		},
		dialect.PostgreSQL: func(mock sqlmock.Sqlmock) {
			mock.ExpectQuery(opens("")).WithoutArgs().WillReturnRows(postgresSettings(false, "on"))
		},
	} {
		pool, mock := newMock(t)
		mock.ExpectBegin()
		open(mock)
		mock.ExpectQuery(selectN).WillReturnRows(seven())
		mock.ExpectExec(updateN).WillReturnResult(sqlmock.NewResult(0, 1))
		mock.ExpectCommit()
		if _, err := bump(t.Context(), newDB(pool, d, nil)); err != nil {
			t.Errorf("Do() on %v = %v; want nil", d, err)
		}
	}
}

func TestTheServersClockIsTold(t *testing.T) {
	pool, mock := newMock(t)
	mock.ExpectBegin()
	mock.ExpectQuery(openMySQL).WillReturnRows(mysqlSettings(50, false, 1))
	mock.ExpectRollback()
	now, err := Do(t.Context(), newDB(pool, dialect.MySQL, nil), func(tx *Tx) (time.Time, error) { return tx.Now, nil })
	if err != nil || now.UnixMilli() != 1_000_010 {
		t.Errorf("Do() = %v, %v; want the server's clock", now, err)
	}
}

func TestATransactionThatOnlyReadsIsRolledBack(t *testing.T) {
	pool, mock := newMock(t)
	mock.ExpectBegin()
	mock.ExpectQuery(openMySQL).WillReturnRows(mysqlSettings(50, false, 1))
	mock.ExpectQuery(selectN).WillReturnRows(seven())
	mock.ExpectRollback()
	d := newDB(pool, dialect.MySQL, nil)
	n, err := Do(t.Context(), d, func(tx *Tx) (n int64, err error) {
		err = tx.Each(t.Context(), func(scan func(...any) error) error { return scan(&n) }, selectN)
		return n, err
	})
	if n != 7 || err != nil {
		t.Errorf("Do() = %d, %v; want 7", n, err)
	}
}

// The standby that COMMIT has waited for may not have the transaction: see package standby.
func TestCommitOnPostgreSQLCountsOnceItsStandbyHasIt(t *testing.T) {
	for _, has := range []bool{true, false} {
		pool, mock, err := sqlmock.New()
		if err != nil {
			t.Fatal(err)
		}
		mock.ExpectBegin()
		mock.ExpectQuery(regexp.QuoteMeta(opens(""))).WithoutArgs().WillReturnRows(
			sqlmock.NewRows([]string{"1", "2", "3", "4", "5", "6", "7"}).AddRow(false, "on", 42, nil, nil, nil, 1_000_010))
		mock.ExpectQuery("SELECT n").WillReturnRows(seven())
		mock.ExpectExec("UPDATE t").WillReturnResult(sqlmock.NewResult(0, 1))
		mock.ExpectCommit()
		server := 42
		if !has {
			server = 43 // a failover has come between
		}
		mock.ExpectQuery("pg_stat_replication").WillReturnRows(sqlmock.NewRows([]string{"1", "2", "3", "4"}).AddRow(server, "0/700028", true, true))
		if !has {
			mock.ExpectClose()
		}
		n, err := bump(t.Context(), newDB(pool, dialect.PostgreSQL, nil))
		if has && (n != 8 || err != nil) || !has && (n != 0 || !errors.Is(err, ErrCommit) || !errors.Is(err, standby.ErrUnknown)) {
			t.Errorf("Do() whose standby has it: %t = %d, %v; want 8, or an unknown outcome", has, n, err)
		}
		if err := mock.ExpectationsWereMet(); err != nil {
			t.Error(err)
		}
	}
}

// PostgreSQL sends the row before it commits.
func TestARowOfReturningIsNoResultUntilTheCommitIsDone(t *testing.T) {
	const returning = "UPDATE t SET n = n + 1 RETURNING n"
	for _, failure := range []error{nil, errors.New("the standby did not answer")} {
		pool, mock := newMock(t)
		mock.ExpectBegin()
		mock.ExpectQuery(opens("")).WithoutArgs().WillReturnRows(postgresSettings(false, "on"))
		mock.ExpectQuery(returning).WillReturnRows(seven())
		mock.ExpectCommit().WillReturnError(failure)
		var want int64
		if failure == nil {
			want = 7
		} else {
			mock.ExpectClose()
		}
		n, err := Do(t.Context(), newDB(pool, dialect.PostgreSQL, nil), func(tx *Tx) (n int64, err error) {
			err = tx.Returning(t.Context(), []any{&n}, returning)
			return n, err
		})
		if n != want || !errors.Is(err, failure) || (err != nil) != errors.Is(err, ErrCommit) {
			t.Errorf("Do() with COMMIT = %v: %d, %v; want %d", failure, n, err, want)
		}
	}
}

func TestReturningWithoutARowSaysSo(t *testing.T) {
	pool, mock := newMock(t)
	mock.ExpectBegin()
	mock.ExpectQuery(opens("")).WithoutArgs().WillReturnRows(postgresSettings(false, "on"))
	mock.ExpectQuery(selectN).WillReturnRows(sqlmock.NewRows([]string{"n"}))
	mock.ExpectRollback()
	_, err := Do(t.Context(), newDB(pool, dialect.PostgreSQL, nil), func(tx *Tx) (n int64, err error) {
		return n, tx.Returning(t.Context(), []any{&n}, selectN)
	})
	if !errors.Is(err, sql.ErrNoRows) {
		t.Errorf("Do() without a row = %v; want sql.ErrNoRows", err)
	}
}

// Not even a broken connection is excepted. At the COMMIT it comes too late to mean "not
// done", and the transaction must not be begun anew. 1180 is what a Galera node says that
// loses its cluster in the middle.
func TestErrorOfTheCommitIsUnknownAndEndsTheConnection(t *testing.T) {
	for _, failure := range []error{errors.New("no answer"), driver.ErrBadConn, drivererrors.MySQL(1180), context.DeadlineExceeded} {
		pool, mock := newMock(t)
		expectMySQL(mock)
		mock.ExpectExec(updateN).WillReturnResult(sqlmock.NewResult(0, 1))
		mock.ExpectCommit().WillReturnError(failure)
		mock.ExpectClose()
		n, err := bumpWithin15s(t, newDB(pool, dialect.MySQL, nil))
		if n != 0 || !errors.Is(err, failure) || !errors.Is(err, ErrCommit) || !strings.Contains(err.Error(), "outcome unknown") {
			t.Errorf("Do() with COMMIT = %v: %d, %v; want it in an error that says the outcome is unknown", failure, n, err)
		}
		if open := pool.Stats().OpenConnections; open != 0 {
			t.Errorf("after COMMIT = %v: %d connections open; want 0", failure, open)
		}
	}
}

// Galera, the group replication and TiDB find out at the COMMIT that another one was first.
func TestTransactionThatLosesAtTheCommitIsTriedAgain(t *testing.T) {
	for _, lost := range []error{
		drivererrors.MySQL(1213), drivererrors.MySQL(3101), drivererrors.MySQL(9007),
		&drivererrors.MySQLError{Number: 1180, Message: "Got error 149 - 'Lock deadlock; Retry transaction' during COMMIT"},
	} {
		pool, mock := newMock(t)
		for _, failure := range []error{lost, nil} {
			expectMySQL(mock)
			mock.ExpectExec(updateN).WillReturnResult(sqlmock.NewResult(0, 1))
			mock.ExpectCommit().WillReturnError(failure)
			expectRestore(mock)
		}
		if n, err := bumpWithin15s(t, newDB(pool, dialect.MySQL, nil)); n != 8 || err != nil {
			t.Errorf("Do() after COMMIT = %v: %d, %v; want 8", lost, n, err)
		}
	}
}

// A balancer, or a DSN of several servers, may lead a new connection to another server.
func TestConnectionToAServerThatTakesNoWritesIsClosed(t *testing.T) {
	for _, failure := range []error{drivererrors.MySQL(1047), drivererrors.MySQL(1290)} {
		pool, mock := newMock(t)
		expectMySQL(mock)
		mock.ExpectExec(updateN).WillReturnError(failure)
		mock.ExpectRollback()
		expectRestore(mock)
		mock.ExpectClose()
		if _, err := bumpWithin15s(t, newDB(pool, dialect.MySQL, nil)); !errors.Is(err, failure) || errors.Is(err, ErrCommit) {
			t.Errorf("Do() on a server that says %v = %v; want that", failure, err)
		}
		if open := pool.Stats().OpenConnections; open != 0 {
			t.Errorf("after %v: %d connections open; want 0", failure, open)
		}
	}
}

// A commit that returns because ctx has ended may not have waited for the replicas.
func TestCommitDuringWhichTheContextEndsIsUnknown(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	x := Tx{wrote: true, rollback: func() error { return nil }, commit: func() error { cancel(); return nil }}
	err, clean := x.end(ctx, nil)
	if !errors.Is(err, ErrCommit) || !errors.Is(err, context.Canceled) || clean {
		t.Errorf("end() = %v, %t; want a commit of unknown outcome, and the connection closed", err, clean)
	}
}

func TestConnectionIsClosedIfItCannotBeginRollBackOrBeSetBack(t *testing.T) {
	no := errors.New("no")
	for name, test := range map[string]struct {
		expect func(sqlmock.Sqlmock)
		want   error // nil: it is done
	}{
		"begin": {func(mock sqlmock.Sqlmock) {
			mock.ExpectBegin().WillReturnError(no) // after the statement that sets the level
		}, no},
		"roll back": {func(mock sqlmock.Sqlmock) {
			expectMySQL(mock)
			mock.ExpectExec(updateN).WillReturnError(io.ErrShortWrite)
			mock.ExpectRollback().WillReturnError(no)
		}, io.ErrShortWrite},
		"be set back": {func(mock sqlmock.Sqlmock) {
			expectMySQL(mock)
			mock.ExpectExec(updateN).WillReturnResult(sqlmock.NewResult(0, 1))
			mock.ExpectCommit()
			mock.ExpectExec("SET SESSION innodb_lock_wait_timeout = 50").WillReturnError(no)
		}, nil},
	} {
		pool, mock := newMock(t)
		test.expect(mock)
		mock.ExpectClose()
		if _, err := bumpWithin15s(t, newDB(pool, dialect.MySQL, nil)); !errors.Is(err, test.want) || errors.Is(err, ErrCommit) {
			t.Errorf("Do() on a connection that cannot %s = %v; want %v", name, err, test.want)
		}
		if open := pool.Stats().OpenConnections; open != 0 {
			t.Errorf("cannot %s: %d connections open; want 0", name, open)
		}
	}
}

// A brokenConn is a connection whose server is gone: it cannot roll back.
type brokenConn struct{}

func (brokenConn) Prepare(string) (driver.Stmt, error) { return nil, driver.ErrBadConn }
func (brokenConn) Close() error                        { return nil }
func (brokenConn) Begin() (driver.Tx, error)           { return brokenConn{}, nil }
func (brokenConn) Commit() error                       { return driver.ErrBadConn }
func (brokenConn) Rollback() error                     { return driver.ErrBadConn }

type connector struct{ driver.Conn }

func (c connector) Connect(context.Context) (driver.Conn, error) { return c.Conn, nil }
func (connector) Driver() driver.Driver                          { return nil }

// The two must meet within nanoseconds. Under the race detector one try of some hundred
// does, and the test fails without the recovery. Otherwise it is one of 100,000.
func TestConnectionIsDiscardedWhileDatabaseSQLClosesIt(t *testing.T) {
	pool := sql.OpenDB(connector{brokenConn{}})
	ends := make(chan context.CancelFunc)
	defer close(ends)
	go func() {
		for end := range ends {
			end()
			for range 20 { // let database/sql's goroutine run here
				runtime.Gosched()
			}
		}
	}()
	for range 10_000 {
		ctx, end := context.WithCancel(t.Context())
		conn, err := pool.Conn(ctx)
		if err != nil {
			t.Fatal(err)
		}
		tx, err := conn.BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		ends <- end
		<-ctx.Done()
		for began, wait := time.Now(), rand.N(2*time.Microsecond); time.Since(began) < wait; {
		}
		if tx.Rollback() != nil {
			discard(conn)
		}
		_ = conn.Close()
	}
	for tries := 0; pool.Stats().OpenConnections != 0; tries++ { // database/sql may be at it
		if tries == 1000 {
			t.Fatalf("%d connections open; want 0", pool.Stats().OpenConnections)
		}
		time.Sleep(time.Millisecond)
	}
}

func TestAnswerThatBreaksOffIsAnError(t *testing.T) {
	failure := errors.New("cut off")
	pool, mock := newMock(t)
	mock.ExpectBegin()
	mock.ExpectQuery(opens("")).WithoutArgs().WillReturnRows(postgresSettings(false, "on"))
	mock.ExpectQuery(selectN).WillReturnRows(seven().RowError(0, failure))
	mock.ExpectRollback()
	if n, err := bump(t.Context(), newDB(pool, dialect.PostgreSQL, nil)); n != 0 || !errors.Is(err, failure) {
		t.Errorf("Do(), the row breaks off = %d, %v; want %v", n, err, failure)
	}
}

// A driver may have words of its own for the end of ctx.
func TestErrorMatchesThatOfTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	failure := errors.New("canceling statement due to user request")
	pool := sql.OpenDB(connecting(func() error { cancel(); return failure }))
	if _, err := bump(ctx, newDB(pool, dialect.PostgreSQL, nil)); !errors.Is(err, context.Canceled) || !errors.Is(err, failure) {
		t.Errorf("Do(), ctx ends and the driver says %q = %v; want it to match Canceled too", failure, err)
	}
}

func TestNothingIsSentWhenTheContextHasEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	pool, _ := newMock(t)
	if _, err := bump(ctx, newDB(pool, dialect.PostgreSQL, nil)); !errors.Is(err, context.Canceled) {
		t.Errorf("Do() = %v; want Canceled", err)
	}
}

// connecting is a driver.Connector that connects to nothing.
type connecting func() error

func (c connecting) Connect(context.Context) (driver.Conn, error) { return nil, c() }
func (connecting) Driver() driver.Driver                          { return nil }

// Before the COMMIT nothing is done, and the transaction begins anew.
func TestFaultBeforeTheCommitIsTriedAgain(t *testing.T) {
	for _, failure := range []error{drivererrors.MySQL(1213), drivererrors.MySQL(1205), drivererrors.MySQL(1020), ErrConflict, fmt.Errorf("wrapped: %w", drivererrors.MySQL(1213))} {
		pool, mock := newMock(t)
		expectMySQL(mock)
		mock.ExpectExec(updateN).WillReturnError(failure)
		mock.ExpectRollback()
		expectRestore(mock)
		expectMySQL(mock)
		mock.ExpectExec(updateN).WillReturnResult(sqlmock.NewResult(0, 1))
		mock.ExpectCommit()
		expectRestore(mock)
		if n, err := bumpWithin15s(t, newDB(pool, dialect.MySQL, nil)); n != 8 || err != nil {
			t.Errorf("Do() after %v = %d, %v; want 8", failure, n, err)
		}
	}
}

func TestAVerdictIsReturnedAsItIs(t *testing.T) {
	pool, mock := newMock(t)
	mock.ExpectBegin()
	mock.ExpectQuery(openMySQL).WillReturnRows(mysqlSettings(50, false, 1))
	mock.ExpectRollback()
	ctx, cancel := context.WithCancel(t.Context())
	verdict := fmt.Errorf("%w: password=sesame", errVerdict)
	n, err := Do(ctx, newDB(pool, dialect.MySQL, nil), func(*Tx) (int, error) {
		cancel()
		return 7, verdict
	})
	if n != 0 || err != verdict {
		t.Errorf("Do() = %d, %v; want 0, %v", n, err, verdict)
	}
}

// What each error is, is for package sqlerror; here is what follows.
func TestFaultsAreToldApart(t *testing.T) {
	state, number := drivererrors.Postgres, drivererrors.MySQL
	commit := func(err error) error { return fmt.Errorf("%w: %w", ErrCommit, err) }
	d := newDB(nil, dialect.PostgreSQL, nil)
	for _, test := range []struct {
		err         error
		first, last bool // it is tried again after the first attempt, after the last
		readOnly    bool
	}{
		{err: driver.ErrBadConn, first: true},
		{err: io.ErrUnexpectedEOF, first: true},
		{err: fmt.Errorf("%w: %w", errConnect, driver.ErrBadConn)},
		{err: commit(state("40001"))},
		{err: commit(state("25006"))},
		{err: ErrConflict, first: true},
		{err: number(1213), first: true, last: true},
		{err: state("40001"), first: true, last: true},
		{err: state("55P03"), first: true, last: true},
		{err: &sqlite.Error{Result: 5}, first: true, last: true},
		{err: state("23505"), first: true},
		{err: state("42710"), first: true}, // the type of the row of a table that another is making
		{err: number(1062), first: true},
		{err: state("25006"), readOnly: true},
		{err: number(1290), readOnly: true},
		{err: state("42P01")},
		{err: state("42501")},
		{err: state("57014")}, // statement timeout
		{err: number(1021)},   // disk full
		{err: context.Canceled},
	} {
		if first, last := retries(test.err, 1), retries(test.err, maxAttempts); first != test.first || last != test.last {
			t.Errorf("retries(%v, first and last) = %t, %t; want %t, %t", test.err, first, last, test.first, test.last)
		}
		if got := d.explain(t.Context(), test.err); !errors.Is(got, test.err) || errors.Is(got, ErrReadOnly) != test.readOnly {
			t.Errorf("explain(%v) = %v; want it in there, read-only %t", test.err, got, test.readOnly)
		}
	}
}

func TestReplicaIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		dialect dialect.Dialect
		expect  func(sqlmock.Sqlmock)
	}{
		"MySQL": {dialect.MySQL, func(mock sqlmock.Sqlmock) {
			mock.ExpectBegin()
			mock.ExpectQuery(openMySQL).WillReturnRows(mysqlSettings(50, true, 1))
			mock.ExpectRollback()
		}},
		"PostgreSQL": {dialect.PostgreSQL, func(mock sqlmock.Sqlmock) {
			mock.ExpectBegin()
			mock.ExpectQuery(opens("")).WithoutArgs().WillReturnRows(postgresSettings(true, "on"))
			mock.ExpectRollback()
		}},
		"lib/pq": {dialect.PostgreSQL, func(mock sqlmock.Sqlmock) {
			mock.ExpectBegin().WillReturnError(drivererrors.Postgres("0A000"))
		}},
	} {
		pool, mock := newMock(t)
		test.expect(mock)
		if _, err := bump(t.Context(), newDB(pool, test.dialect, nil)); !errors.Is(err, ErrReadOnly) {
			t.Errorf("Do() on a replica, %s = %v; want ErrReadOnly", name, err)
		}
	}
}

func TestServerThatMayForgetIsWarnedOfOnce(t *testing.T) {
	for want, expect := range map[string]func(sqlmock.Sqlmock){
		"[setting fsync value off want on]": func(mock sqlmock.Sqlmock) {
			mock.ExpectQuery(opens("")).WithoutArgs().WillReturnRows(postgresSettings(false, "off"))
		},
		"[setting innodb_flush_log_at_trx_commit value 2 want 1]": func(mock sqlmock.Sqlmock) {
			mock.ExpectQuery(openMySQL).WillReturnRows(mysqlSettings(50, false, 2))
		},
	} {
		d := dialect.PostgreSQL
		if strings.Contains(want, "innodb") {
			d = dialect.MySQL
		}
		pool, mock := newMock(t)
		var warnings []string
		rows := newDB(pool, d, &warnings)
		for range 2 {
			mock.ExpectBegin()
			expect(mock)
			mock.ExpectQuery(selectN).WillReturnRows(seven())
			mock.ExpectExec(updateN).WillReturnResult(sqlmock.NewResult(0, 1))
			mock.ExpectCommit()
			if _, err := bump(t.Context(), rows); err != nil {
				t.Errorf("Do() = %v; want nil", err)
			}
		}
		if len(warnings) != 1 || !strings.HasSuffix(warnings[0], want) {
			t.Errorf("warnings = %q; want one, %q", warnings, want)
		}
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
		pool := sql.OpenDB(connecting(func() error { return failure }))
		_, err := bump(t.Context(), newDB(pool, dialect.PostgreSQL, nil))
		if !errors.Is(err, failure) || strings.Contains(strings.ReplaceAll(err.Error(), " ", ""), "sesame") {
			t.Errorf("Do(), connecting fails with %q = %v; want the password left out", text, err)
		}
	}
}

func TestErrorsStillSayWhetherAPasswordWasSent(t *testing.T) {
	for _, text := range []string{
		"Error 1045 (28000): Access denied for user 'joe'@'localhost' (using password: NO)",
		"Error 1045 (28000): Access denied for user 'joe'@'localhost' (using password: YES)",
	} {
		pool := sql.OpenDB(connecting(func() error { return errors.New(text) }))
		if _, err := bump(t.Context(), newDB(pool, dialect.MySQL, nil)); err == nil || !strings.HasSuffix(err.Error(), text) {
			t.Errorf("Do(), connecting fails with %q = %v; want that at the end", text, err)
		}
	}
}

// A driver that does not heed ctx does not keep the caller. Each call that hangs keeps a
// connection and goroutines. There must be an end to that.
func TestCallsThatHangInTheDriverAreLeftAndDoNotPileUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		resume := make(chan struct{})
		pool := sql.OpenDB(connecting(func() error {
			calls.Add(1)
			<-resume
			return errors.New("too late")
		}))
		defer pool.Close()
		d := newDB(pool, dialect.PostgreSQL, nil)
		for i := range 2 * maxHang {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := bump(ctx, d); err == nil || errors.Is(err, wait.ErrNoAnswer) != (i < maxHang) {
				t.Errorf("Do() of call %d = %v; want ErrNoAnswer for the first %d", i, err, maxHang)
			}
		}
		if got := calls.Load(); got != maxHang {
			t.Errorf("calls of the driver = %d; want %d, and no more while they hang", got, maxHang)
		}
		begun := time.Now()
		_, err := bump(t.Context(), d)
		if err == nil || !strings.Contains(err.Error(), "still hang") || time.Since(begun) > 0 {
			t.Errorf("Do() after %v = %v; want at once that others hang", time.Since(begun), err)
		}
		close(resume)
		synctest.Wait()
		if _, err := bump(t.Context(), d); err == nil || calls.Load() == maxHang {
			t.Errorf("Do() when the driver has come back = %v, after %d calls; want it tried", err, calls.Load())
		}
	})
}

func TestAPoolOfOneConnectionIsKnown(t *testing.T) {
	pool, _ := newMock(t)
	d := newDB(pool, dialect.MySQL, nil)
	var got []bool
	for _, n := range []int{0, 1, 2} {
		pool.SetMaxOpenConns(n)
		got = append(got, d.Single())
	}
	if want := []bool{false, true, false}; !slices.Equal(got, want) {
		t.Errorf("Single() with no limit, 1 and 2 connections = %v; want %v", got, want)
	}
}

// A lateContext ends at once, and a connection of the pool comes back when it is asked why.
type lateContext struct {
	context.Context
	back func()
}

func (c lateContext) Err() error {
	c.back()
	return c.Context.Err()
}

func TestAPoolThatIsUsedUpIsNamedThoughAConnectionComesBackMeanwhile(t *testing.T) {
	pool, _ := newMock(t)
	pool.SetMaxOpenConns(1)
	held, err := pool.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	late := lateContext{ctx, func() {
		if ctx.Err() != nil {
			_ = held.Close()
		}
	}}
	go func() {
		defer close(ended)
		for pool.Stats().WaitCount == 0 { // connect does not wait yet
			runtime.Gosched()
		}
		cancel()
	}()
	_, err = newDB(pool, dialect.MySQL, nil).connect(late)
	<-ended
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "the pool's 1 connections are all in use") || pool.Stats().InUse != 0 {
		t.Errorf("connect() = %v with %d connections in use; want that they were, and 0 now", err, pool.Stats().InUse)
	}
}
