package sqlxhelper_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/jmoiron/sqlx"

	"github.com/snowkey/snowkey/internal/proof/cases/sqlxcases"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

// pairUnnest is the only statement for many rows of pair.
var pairUnnest = `INSERT INTO "t" ("id", "n") SELECT unnest($1::bigint[]), unnest($2::integer[])` + guard("n", 23)

// guard is the condition by which the server checks the types of the table t, with a second column
// besides the key.
func guard(column string, oid int) string {
	return fmt.Sprintf(` WHERE CAST(CASE WHEN CAST(pg_catalog.to_regclass('"t"') AS oid) = 4711`+
		` AND CAST(pg_catalog.pg_typeof((CAST(NULL AS public.t))."id") AS oid) = 20`+
		` AND CAST(pg_catalog.pg_typeof((CAST(NULL AS public.t))."%s") AS oid) = %d`+
		` THEN '1' ELSE 'snowkey: the table was altered' END AS integer) = 1`, column, oid)
}

// described is the answer to the query for the types of a table.
func described() *sqlmock.Rows {
	return sqlmock.NewRows([]string{"attname", "type", "oid", "enum", "copies", "lasts", "cuts", "table", "name"})
}

// expectDescribe expects that table t is asked for, and says that it has the
// columns of pair.
func expectDescribe(mock sqlmock.Sqlmock) { expectDescribeBy(mock, true) }

// expectDescribeBy is expectDescribe by a driver that cuts times, or does not.
func expectDescribeBy(mock sqlmock.Sqlmock, cuts bool) {
	mock.ExpectQuery(sqlxhelper.DescribeText).WithArgs(`"t"`, sqlmock.AnyArg(), sqlmock.AnyArg()).WillReturnRows(
		described().AddRow("id", "bigint", 20, false, true, true, cuts, 4711, "public.t").AddRow("n", "integer", 23, false, true, true, cuts, 4711, "public.t"))
}

func TestManyRowsOnPostgresAreArrays(t *testing.T) {
	db, mock := newMock(t)
	h := newHelper(sqlxhelper.PostgreSQL)
	expectDescribe(mock)
	mock.ExpectExec(pairUnnest).WithArgs("{1,2,3,4,5,6,7,8,9,10,11}", "{0,1,2,3,4,5,6,7,8,9,10}").WillReturnResult(done(11))
	rows := make([]pair, 11)
	for i := range rows {
		rows[i].N = i
	}
	if err := h.InsertMany(ctx, db, "t", rows); err != nil {
		t.Errorf("InsertMany() = %v; want nil", err)
	}
	// The types are known now, and few rows do not need them.
	mock.ExpectExec(manyText(10)).WillReturnResult(done(10))
	mock.ExpectExec(pairUnnest).WillReturnResult(done(12))
	if err := errors.Join(h.InsertMany(ctx, db, "t", make([]pair, 10)), h.InsertMany(ctx, db, "t", make([]pair, 12))); err != nil {
		t.Errorf("InsertMany() = %v; want nil", err)
	}
}

func TestTypesAreReadAgainAfterAnError(t *testing.T) {
	db, mock := newMock(t)
	h := newHelper(sqlxhelper.PostgreSQL)
	expectDescribe(mock)
	for i, result := range []error{nil, errMine, nil} {
		if i == 2 {
			expectDescribe(mock)
		}
		if result != nil {
			mock.ExpectExec(pairUnnest).WillReturnError(result)
		} else {
			mock.ExpectExec(pairUnnest).WillReturnResult(done(11))
		}
		if err := h.InsertMany(ctx, db, "t", make([]pair, 11)); !errors.Is(err, result) {
			t.Errorf("InsertMany() = %v; want %v", err, result)
		}
	}
}

// The first statement after the change is refused by the guard, and the call reads the types and
// sends its rows again.
func TestRowsAreSentAgainWithTheTypesOfAnAlteredTable(t *testing.T) {
	db, mock := newMock(t)
	h := newHelper(sqlxhelper.PostgreSQL)
	refused := errors.New(`invalid input syntax for type integer: "snowkey: the table was altered"`)
	expectDescribe(mock)
	mock.ExpectExec(pairUnnest).WillReturnResult(done(11))
	mock.ExpectExec(pairUnnest).WillReturnError(refused)
	mock.ExpectQuery(sqlxhelper.DescribeText).WillReturnRows(described().AddRow("id", "bigint", 20, false, true, true, true, 4711, "public.t").AddRow("n", "bigint", 20, false, true, true, true, 4711, "public.t"))
	mock.ExpectExec(`INSERT INTO "t" ("id", "n") SELECT unnest($1::bigint[]), unnest($2::bigint[])` + guard("n", 20)).WillReturnResult(done(11))
	if err := errors.Join(h.InsertMany(ctx, db, "t", make([]pair, 11)), h.InsertMany(ctx, db, "t", make([]pair, 11))); err != nil {
		t.Errorf("InsertMany() = %v; want nil", err)
	}
	for range 9 { // it is altered after each look
		expectDescribe(mock)
		mock.ExpectExec(pairUnnest).WillReturnError(refused)
	}
	if err := newHelper(sqlxhelper.PostgreSQL).InsertMany(ctx, db, "t", make([]pair, 11)); !errors.Is(err, sqlxhelper.ErrTableChanged) || !errors.Is(err, refused) {
		t.Errorf("InsertMany() = %v; want ErrTableChanged", err)
	}
}

// lib/pq sends nine digits, which the server rounds. COPY has six here.
func TestManyRowsOfADriverThatDoesNotCutTimesAreArraysWithAllDigits(t *testing.T) {
	type at struct {
		types.Model
		At time.Time `db:"at"`
	}
	db, mock := newMock(t)
	mock.ExpectQuery(sqlxhelper.DescribeText).WillReturnRows(described().
		AddRow("id", "bigint", 20, false, true, true, false, 4711, "public.t").AddRow("at", "timestamp with time zone", 1184, false, true, true, false, 4711, "public.t"))
	mock.ExpectExec(`INSERT INTO "t" ("id", "at") SELECT unnest($1::bigint[]), unnest($2::timestamp with time zone[])`+guard("at", 1184)).
		WithArgs(sqlmock.AnyArg(), `{"2024-02-29 00:00:00.123456789+00"`+strings.Repeat(`,"2024-02-29 00:00:00.123456789+00"`, 10)+`}`).WillReturnResult(done(11))
	rows := slices.Repeat([]at{{At: time.Date(2024, 2, 29, 0, 0, 0, 123456789, time.UTC)}}, 11)
	if err := newHelper(sqlxhelper.PostgreSQL).With(sqlxhelper.WithCopy(&fakeCopier{}, 11)).InsertMany(ctx, db, "t", rows); err != nil {
		t.Errorf("InsertMany() = %v; want nil", err)
	}
}

func TestTypesAreReadUnderTheSavepointOfTheCall(t *testing.T) {
	db, mock := newMock(t)
	tx := newTx(t, db, mock)
	mock.ExpectExec("SAVEPOINT snowkey_insert").WillReturnResult(done(0))
	mock.ExpectQuery(sqlxhelper.DescribeText).WillReturnError(errMine)
	mock.ExpectExec("ROLLBACK TO SAVEPOINT snowkey_insert").WillReturnResult(done(0))
	mock.ExpectExec(manyText(11)).WillReturnResult(done(11))
	mock.ExpectExec("RELEASE SAVEPOINT snowkey_insert").WillReturnResult(done(0))
	if err := newHelper(sqlxhelper.PostgreSQL).InsertMany(ctx, tx, "t", make([]pair, 11)); err != nil {
		t.Errorf("InsertMany(types cannot be read) = %v; want nil", err)
	}
}

// The rows before go as arrays, and in the order in which they were given.
func TestRowThatDoesNotFitGoesByValuesWithThoseAfterIt(t *testing.T) {
	rows := make([]pair, 6050)
	rows[6010].N = 1 << 40 // not an integer
	db, mock := newMock(t)
	tx := newTx(t, db, mock)
	mock.ExpectExec("SAVEPOINT snowkey_insert").WillReturnResult(done(0))
	expectDescribe(mock)
	mock.ExpectExec(pairUnnest).WillReturnResult(done(6000))
	mock.ExpectExec(pairUnnest).WithArgs("{6001,6002,6003,6004,6005,6006,6007,6008,6009,6010}", "{0,0,0,0,0,0,0,0,0,0}").WillReturnResult(done(10))
	mock.ExpectExec(manyText(32)).WillReturnResult(done(32))
	mock.ExpectExec(manyText(8)).WillReturnResult(done(8))
	mock.ExpectExec("RELEASE SAVEPOINT snowkey_insert").WillReturnResult(done(0))
	if err := newHelper(sqlxhelper.PostgreSQL).InsertMany(ctx, tx, "t", rows); err != nil {
		t.Errorf("InsertMany() = %v; want nil", err)
	}
}

// Without an array of nothing before it.
func TestFirstRowThatDoesNotFitGoesByValues(t *testing.T) {
	rows := make([]pair, 20)
	rows[0].N = 1 << 40
	db, mock := newMock(t)
	tx := newTx(t, db, mock)
	mock.ExpectExec("SAVEPOINT snowkey_insert").WillReturnResult(done(0))
	expectDescribe(mock)
	mock.ExpectExec(manyText(20)).WillReturnResult(done(20))
	mock.ExpectExec("RELEASE SAVEPOINT snowkey_insert").WillReturnResult(done(0))
	if err := newHelper(sqlxhelper.PostgreSQL).InsertMany(ctx, tx, "t", rows); err != nil {
		t.Errorf("InsertMany() = %v; want nil", err)
	}
}

func TestSeveralChunksOfArraysRunInATransaction(t *testing.T) {
	db, mock := newMock(t)
	expectDescribe(mock)
	mock.ExpectBegin()
	mock.ExpectExec(pairUnnest).WillReturnResult(done(6000))
	mock.ExpectExec(pairUnnest).WillReturnResult(done(1))
	mock.ExpectCommit()
	if err := newHelper(sqlxhelper.PostgreSQL).InsertMany(ctx, db, "t", make([]pair, 6001)); err != nil {
		t.Errorf("InsertMany() = %v; want nil", err)
	}
	// One statement needs none, and a row that does not fit sends all by VALUES.
	rows := make([]pair, 20)
	rows[19].N = 1 << 40
	h := newHelper(sqlxhelper.PostgreSQL)
	expectDescribe(mock)
	mock.ExpectExec(manyText(20)).WillReturnResult(done(20))
	if err := h.InsertMany(ctx, db, "t", rows); err != nil {
		t.Errorf("InsertMany() = %v; want nil", err)
	}
}

// A calledBack calls a function when its value is asked for.
type calledBack struct{ call func() }

func (c calledBack) Value() (driver.Value, error) {
	if c.call != nil {
		c.call()
	}
	return int64(1), nil
}

type callingPair struct {
	ID types.Snowflake `db:"id"`
	N  calledBack      `db:"n"`
}

// newBlockedMock returns a mock of PostgreSQL that calls wait before it takes arrays.
func newBlockedMock(t *testing.T, wait func() error) (*sqlx.DB, sqlmock.Sqlmock) {
	t.Helper()
	matcher := sqlmock.QueryMatcherFunc(func(want, got string) error {
		if want == pairUnnest {
			if err := wait(); err != nil {
				return err
			}
		}
		return sqlmock.QueryMatcherEqual.Match(want, got)
	})
	db, mock, err := sqlmock.New(sqlmock.QueryMatcherOption(matcher))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() }) // which the mock does not expect
	return sqlx.NewDb(db, "sqlmock"), mock
}

func TestNextArraysAreMadeWhileTheServerWorks(t *testing.T) {
	made := make(chan struct{})
	rows := make([]callingPair, 6001)
	rows[6000].N.call = func() { close(made) }
	db, mock := newBlockedMock(t, func() error {
		select {
		case <-made:
			return nil
		case <-time.After(time.Minute): // only if the test fails
			return errors.New("the arrays of the next statement are not made")
		}
	})
	expectDescribe(mock)
	mock.ExpectBegin()
	mock.ExpectExec(pairUnnest).WillReturnResult(done(6000))
	mock.ExpectExec(pairUnnest).WithArgs("{6001}", "{1}").WillReturnResult(done(1))
	mock.ExpectCommit()
	if err := newHelper(sqlxhelper.PostgreSQL).InsertMany(ctx, db, "t", rows); err != nil {
		t.Errorf("InsertMany() = %v; want nil", err)
	}
	if err := mock.ExpectationsWereMet(); err != nil {
		t.Error(err)
	}
}

// The race detector sees it if they are.
func TestRowsAreNotReadAfterAStatementThatFails(t *testing.T) {
	for name, fail := range map[string]func() error{
		"error": func() error { return errMine },
		"panic": func() error { panic(errMine) },
	} {
		t.Run(name, func(t *testing.T) {
			reads := make(chan struct{})
			rows := make([]callingPair, 12000)
			rows[6000].N.call = func() { close(reads) }
			db, mock := newBlockedMock(t, func() error { <-reads; return fail() })
			expectDescribe(mock)
			mock.ExpectBegin()
			mock.ExpectExec(pairUnnest)
			func() {
				defer func() { _ = recover() }()
				if err := newHelper(sqlxhelper.PostgreSQL).InsertMany(ctx, db, "t", rows); err == nil {
					t.Error("InsertMany() = nil; want an error")
				}
			}()
			for i := range rows {
				rows[i].ID = 0
			}
		})
	}
}

func TestValueOfALaterStatementThatEndsItsGoroutineEndsTheCall(t *testing.T) {
	rows := make([]callingPair, 6001)
	rows[6000].N.call = runtime.Goexit
	db, mock := newMock(t)
	expectDescribe(mock)
	mock.ExpectBegin()
	mock.ExpectExec(pairUnnest).WillReturnResult(done(6000))
	mock.ExpectRollback()
	returned, ended := false, make(chan struct{})
	go func() {
		defer close(ended)
		_ = newHelper(sqlxhelper.PostgreSQL).InsertMany(ctx, db, "t", rows)
		returned = true
	}()
	if <-ended; returned {
		t.Error("InsertMany() returned; want it to end its goroutine")
	}
}

func TestValueThatEndsTheGoroutineOfTheNextArraysIsAskedAgain(t *testing.T) {
	rows := make([]callingPair, 6004)
	asked := 0
	rows[6002].N.call = func() {
		if asked++; asked == 1 {
			runtime.Goexit()
		}
	}
	db, mock := newMock(t)
	expectDescribe(mock)
	mock.ExpectBegin()
	mock.ExpectExec(pairUnnest).WillReturnResult(done(6000))
	mock.ExpectExec(pairUnnest).WithArgs("{6001,6002,6003,6004}", "{1,1,1,1}").WillReturnResult(done(4))
	mock.ExpectCommit()
	if err := newHelper(sqlxhelper.PostgreSQL).InsertMany(ctx, db, "t", rows); err != nil {
		t.Errorf("InsertMany() = %v; want nil", err)
	}
}

type wideText struct {
	ID types.Snowflake `db:"id"`
	N  string          `db:"n"`
}

func TestChunksOfArraysAreBoundedInBytes(t *testing.T) {
	db, mock := newMock(t)
	rows := make([]wideText, 50)
	for i := range rows {
		rows[i].N = strings.Repeat("x", 1<<18)
	}
	mock.ExpectQuery(sqlxhelper.DescribeText).WillReturnRows(
		described().AddRow("id", "bigint", 20, false, true, true, true, 4711, "public.t").AddRow("n", "text", 25, false, true, true, true, 4711, "public.t"))
	mock.ExpectBegin()
	for n := 50; n > 0; n -= 8 {
		mock.ExpectExec(`INSERT INTO "t" ("id", "n") SELECT unnest($1::bigint[]), unnest($2::text[])` + guard("n", 25)).WillReturnResult(done(int64(min(n, 8))))
	}
	mock.ExpectCommit()
	if err := newHelper(sqlxhelper.PostgreSQL).InsertMany(ctx, db, "t", rows); err != nil {
		t.Errorf("InsertMany(50 rows of 256 KiB) = %v; want nil", err)
	}
}

func TestContextIsLookedAtBetweenArrays(t *testing.T) {
	// A transaction of another context: database/sql would roll back its own in a
	// goroutine, which nothing waits for.
	db, mock := newMock(t)
	tx := newTx(t, db, mock)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	mock.ExpectExec("SAVEPOINT snowkey_insert").WillReturnResult(done(0))
	expectDescribe(mock)
	mock.ExpectExec(pairUnnest).WillReturnResult(done(6000))
	mock.ExpectExec("ROLLBACK TO SAVEPOINT snowkey_insert").WillReturnResult(done(0))
	mock.ExpectExec("RELEASE SAVEPOINT snowkey_insert").WillReturnResult(done(0))
	h := newHelper(sqlxhelper.PostgreSQL).With(sqlxhelper.OnProgress(func(int, int) { cancel() }))
	var e *sqlxhelper.InsertError
	if err := h.InsertMany(ctx, tx, "t", make([]pair, 6001)); !errors.Is(err, context.Canceled) || !errors.As(err, &e) || e.First != 6000 || e.Last != 6000 {
		t.Errorf("InsertMany(context that ends) = %v; want context.Canceled, before row 6000", err)
	}
}

// fakeCopier takes what it is given.
type fakeCopier struct {
	statements []string
	data       []string
	err        error // instead
}

func (c *fakeCopier) Copy(_ context.Context, _ sqlx.ExecerContext, statement string, rows io.Reader) (int64, error) {
	if c.err != nil {
		return 0, c.err
	}
	c.statements = append(c.statements, statement)
	b, err := io.ReadAll(rows)
	c.data = append(c.data, string(b))
	n := strings.Count(string(b), "\n")
	if strings.HasSuffix(statement, "binary)") {
		n = (len(b) - 19 - 2) / 22 // 2 columns: 2 + 4+8 + 4+4
	}
	return int64(n), err
}

// Also by a driver that does not cut times, since the rows have none.
func TestCopyIsUsedFromItsNumberOfRowsOnInATransaction(t *testing.T) {
	db, mock := newMock(t)
	c := &fakeCopier{}
	h := newHelper(sqlxhelper.PostgreSQL).With(sqlxhelper.WithCopy(c, 20))
	expectDescribeBy(mock, false)
	mock.ExpectExec(pairUnnest).WillReturnResult(done(19))
	mock.ExpectBegin()
	expectDescribeBy(mock, false)
	mock.ExpectCommit()
	if err := errors.Join(h.InsertMany(ctx, db, "t", make([]pair, 19)), h.InsertMany(ctx, db, "t", make([]pair, 20))); err != nil {
		t.Fatalf("InsertMany() = %v; want nil", err)
	}
	if want := `COPY "t" ("id", "n") FROM STDIN (FORMAT binary)`; len(c.statements) != 1 || c.statements[0] != want {
		t.Errorf("COPY statements = %q; want %q", c.statements, want)
	}
	mock.ExpectExec(pairUnnest).WillReturnResult(done(20))
	if err := h.With(sqlxhelper.WithCopy(c, 0)).InsertMany(ctx, db, "t", make([]pair, 20)); err != nil || len(c.statements) != 1 {
		t.Errorf("InsertMany(20 rows, COPY from the default on) = %v, and COPY %q; want nil, and no other COPY", err, c.statements)
	}
	if want := 19 + 20*22 + 2; len(c.data[0]) != want || !strings.HasPrefix(c.data[0], "PGCOPY\n\xff\r\n\x00") || !strings.HasSuffix(c.data[0], "\xff\xff") {
		t.Errorf("COPY data = %q; want %d bytes, from the header to the trailer", c.data[0], want)
	}
}

type textPair struct {
	ID types.Snowflake `db:"id"`
	N  any             `db:"n"`
}

// Each way ends well where it can go no further, and the next one goes on.
func TestCopyGoesFromBinaryToTextToValues(t *testing.T) {
	db, mock := newMock(t)
	c := &fakeCopier{}
	h := newHelper(sqlxhelper.PostgreSQL).With(sqlxhelper.WithCopy(c, 20))
	rows := make([]textPair, 30)
	for i := range rows {
		rows[i].N = int64(i)
	}
	rows[10].N = "10" // the server reads it, as text
	rows[25].N = 25.0 // the driver knows what that means
	expectDescribe(mock)
	mock.ExpectBegin()
	expectDescribe(mock) // after each COPY
	expectDescribe(mock)
	mock.ExpectExec(manyText(5)).WillReturnResult(done(5))
	mock.ExpectCommit()
	var progress []int
	h = h.With(sqlxhelper.OnProgress(func(done, _ int) { progress = append(progress, done) }))
	if err := h.InsertMany(ctx, db, "t", rows); err != nil {
		t.Fatalf("InsertMany() = %v; want nil", err)
	}
	if len(c.data) != 2 || !strings.HasPrefix(c.data[1], "11\t10\n12\t11\n") || !strings.HasSuffix(c.data[1], "25\t24\n") {
		t.Errorf("COPY data = %q; want rows 11 to 25 as text after those before", c.data)
	}
	if len(progress) != 3 || progress[0] != 10 || progress[1] != 25 || progress[2] != 30 {
		t.Errorf("progress = %v; want 10, 25, 30", progress)
	}
}

func TestCopyIntoATableThatWasAlteredIsUndone(t *testing.T) {
	db, mock := newMock(t)
	h := newHelper(sqlxhelper.PostgreSQL).With(sqlxhelper.WithCopy(&fakeCopier{}, 20))
	for _, now := range []*sqlmock.Rows{
		described().AddRow("id", "bigint", 20, false, true, true, true, 4711, "public.t").AddRow("n", "real", 700, false, true, true, true, 4711, "public.t"),
		described(),
		// It has row level security now.
		described().AddRow("id", "bigint", 20, false, false, true, true, 4711, "public.t").AddRow("n", "integer", 23, false, false, true, true, 4711, "public.t"),
	} {
		expectDescribe(mock)
		mock.ExpectBegin()
		mock.ExpectQuery(sqlxhelper.DescribeText).WillReturnRows(now)
		mock.ExpectRollback()
		if err := h.InsertMany(ctx, db, "t", make([]pair, 20)); !errors.Is(err, sqlxhelper.ErrTableChanged) {
			t.Errorf("InsertMany() = %v; want ErrTableChanged", err)
		}
	}
}

func TestTypesThatOthersDoNotSeeAreReadInEveryCall(t *testing.T) {
	db, mock := newMock(t)
	h := newHelper(sqlxhelper.PostgreSQL)
	for _, lasts := range [][2]bool{{true, false}, {false, true}, {true, false}} {
		mock.ExpectQuery(sqlxhelper.DescribeText).WillReturnRows(described().
			AddRow("id", "bigint", 20, false, true, lasts[0], true, 4711, "public.t").AddRow("n", "integer", 23, false, true, lasts[1], true, 4711, "public.t"))
		mock.ExpectExec(pairUnnest).WillReturnResult(done(11))
		if err := h.InsertMany(ctx, db, "t", make([]pair, 11)); err != nil {
			t.Errorf("InsertMany() = %v; want nil", err)
		}
	}
}

// It may be any of them, read by then or not.
func TestCopyThatFailsNamesAllItsRows(t *testing.T) {
	db, mock := newMock(t)
	refused := errors.New("refused")
	h := newHelper(sqlxhelper.PostgreSQL).With(sqlxhelper.WithCopy(&fakeCopier{err: refused}, 20))
	expectDescribe(mock)
	mock.ExpectBegin()
	mock.ExpectRollback()
	var e *sqlxhelper.InsertError
	if err := h.InsertMany(ctx, db, "t", make([]pair, 20)); !errors.Is(err, refused) || !errors.As(err, &e) || e.First != 0 || e.Last != 19 || e.Row != -1 {
		t.Errorf("InsertMany() = %v; want an InsertError of rows 0 to 19, and of no row", err)
	}
}

func TestCopyThatLosesRowsIsACountError(t *testing.T) {
	db, mock := newMock(t)
	h := newHelper(sqlxhelper.PostgreSQL).With(sqlxhelper.WithCopy(emptyCopier{}, 20))
	expectDescribe(mock)
	mock.ExpectBegin()
	mock.ExpectRollback()
	var count *sqlxhelper.CountError
	if err := h.InsertMany(ctx, db, "t", make([]pair, 20)); !errors.As(err, &count) || count.Rows != 20 || count.Affected != 0 {
		t.Errorf("InsertMany() = %v; want a CountError with 20 rows, 0 affected", err)
	}
}

type emptyCopier struct{}

func (emptyCopier) Copy(_ context.Context, _ sqlx.ExecerContext, _ string, rows io.Reader) (int64, error) {
	_, err := io.Copy(io.Discard, rows)
	return 0, err
}

func TestDescribePreloadsTypesAndFindsNoTable(t *testing.T) {
	db, mock := newMock(t)
	h := newHelper(sqlxhelper.PostgreSQL)
	const exists = "SELECT pg_catalog.to_regclass($1) IS NOT NULL"
	mock.ExpectQuery(exists).WithArgs(`"shop"."t"`).WillReturnRows(sqlmock.NewRows([]string{"exists"}).AddRow(false))
	if err := h.Describe(ctx, db, "shop.t"); !errors.Is(err, sqlxhelper.ErrArgument) {
		t.Errorf("Describe(no table) = %v; want ErrArgument", err)
	}
	mock.ExpectQuery(exists).WillReturnRows(sqlmock.NewRows([]string{"exists"}).AddRow(true))
	expectDescribe(mock)
	mock.ExpectExec(pairUnnest).WillReturnResult(done(11))
	if err := errors.Join(h.Describe(ctx, db, "t"), h.InsertMany(ctx, db, "t", make([]pair, 11))); err != nil {
		t.Errorf("Describe(), InsertMany() = %v; want nil", err)
	}
	if err := sqlxhelper.New(sqlxcases.NewCounter(0), sqlxhelper.WithDialect(sqlxhelper.MySQL)).Describe(ctx, db, "t"); err != nil {
		t.Errorf("Describe(MySQL) = %v; want nil, without a query", err)
	}
	if err := h.Describe(ctx, db, `"t"`); !errors.Is(err, sqlxhelper.ErrName) {
		t.Errorf("Describe(quoted name) = %v; want ErrName", err)
	}
}

func TestDescribeLeavesTheTransactionUsable(t *testing.T) {
	db, mock := newMock(t)
	tx := newTx(t, db, mock)
	mock.ExpectExec("SAVEPOINT snowkey_insert").WillReturnResult(done(0))
	mock.ExpectQuery("SELECT pg_catalog.to_regclass($1) IS NOT NULL").WillReturnError(errMine)
	mock.ExpectExec("ROLLBACK TO SAVEPOINT snowkey_insert").WillReturnResult(done(0))
	mock.ExpectExec("RELEASE SAVEPOINT snowkey_insert").WillReturnResult(done(0))
	if err := newHelper(sqlxhelper.PostgreSQL).Describe(ctx, tx, "t"); !errors.Is(err, errMine) {
		t.Errorf("Describe(tx) = %v; want %v", err, errMine)
	}
}
