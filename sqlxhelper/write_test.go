package sqlxhelper_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

var errMine = errors.New("mine")

func TestSingleStatementOnAPoolHasNoTransaction(t *testing.T) {
	for d, text := range map[sqlxhelper.Dialect]string{
		sqlxhelper.PostgreSQL: manyText(3),
		sqlxhelper.MySQL:      "INSERT INTO `t` (`id`, `n`) VALUES (?, ?), (?, ?), (?, ?)",
	} {
		db, mock := newMock(t)
		mock.ExpectExec(text).WithArgs(1, 4, 2, 5, 3, 6).WillReturnResult(done(3))
		if err := newHelper(d).InsertMany(ctx, db, "t", []pair{{N: 4}, {N: 5}, {N: 6}}); err != nil {
			t.Errorf("InsertMany(%v) = %v; want nil", d, err)
		}
	}
	// SQLite may keep rows of a failed statement, even the only one, so it has one.
	for n := range 2 {
		db, mock := newMock(t)
		mock.ExpectBegin()
		mock.ExpectExec(sqliteText(n + 1)).WillReturnResult(done(int64(n + 1)))
		mock.ExpectCommit()
		if err := newHelper(sqlxhelper.SQLite).InsertMany(ctx, db, "t", make([]pair, n+1)); err != nil {
			t.Errorf("InsertMany(SQLite, %d rows) = %v; want nil", n+1, err)
		}
	}
}

func TestSeveralFullChunksArePreparedOnce(t *testing.T) {
	db, mock := newMock(t)
	mock.ExpectBegin()
	prepared := mock.ExpectPrepare(sqliteText(150)).WillBeClosed()
	prepared.ExpectExec().WillReturnResult(done(150))
	prepared.ExpectExec().WillReturnResult(done(150))
	mock.ExpectExec(sqliteText(19)).WillReturnResult(done(19))
	mock.ExpectCommit()
	if err := newHelper(sqlxhelper.SQLite).InsertMany(ctx, db, "t", make([]pair, 319)); err != nil {
		t.Errorf("InsertMany() = %v; want nil", err)
	}
}

// All rows are sent as the driver sends a statement that was not prepared.
func TestStatementIsPreparedOnlyWhereThatChangesNoValue(t *testing.T) {
	const question = "SELECT ? + 0.2 = 0.3"
	for _, c := range []struct {
		name     string
		dialect  sqlxhelper.Dialect
		decimal  any // what MySQL answers, or an error
		prepares bool
	}{
		{"PostgreSQL", sqlxhelper.PostgreSQL, nil, false},
		{"MySQL", sqlxhelper.MySQL, int64(0), true},
		{"MySQL, values in the text", sqlxhelper.MySQL, int64(1), false},
		{"MySQL, no number", sqlxhelper.MySQL, "x", false},
		{"MySQL, no answer", sqlxhelper.MySQL, errMine, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			db, mock := newMock(t)
			full, tail := manyText(1500), manyText(1)
			mock.ExpectBegin()
			if c.dialect == sqlxhelper.MySQL {
				full, tail = mysqlText(1500), mysqlText(1)
				if asked := mock.ExpectQuery(question).WithArgs(0.1); c.decimal == errMine {
					asked.WillReturnError(errMine)
				} else {
					asked.WillReturnRows(sqlmock.NewRows([]string{"decimal"}).AddRow(c.decimal))
				}
			}
			if c.prepares {
				prepared := mock.ExpectPrepare(full).WillBeClosed()
				prepared.ExpectExec().WillReturnResult(done(1500))
				prepared.ExpectExec().WillReturnResult(done(1500))
			} else {
				mock.ExpectExec(full).WillReturnResult(done(1500))
				mock.ExpectExec(full).WillReturnResult(done(1500))
			}
			mock.ExpectExec(tail).WillReturnResult(done(1))
			mock.ExpectCommit()
			if err := newHelper(c.dialect).InsertMany(ctx, db, "t", make([]pair, 3001)); err != nil {
				t.Errorf("InsertMany() = %.200v; want nil", err)
			}
		})
	}
}

func TestSingleFullChunkIsNotPrepared(t *testing.T) {
	db, mock := newMock(t)
	mock.ExpectExec(manyText(1500)).WillReturnResult(done(1500))
	if err := newHelper(sqlxhelper.PostgreSQL).InsertMany(ctx, db, "t", make([]pair, 1500)); err != nil {
		t.Errorf("InsertMany() = %v; want nil", err)
	}
}

func TestFailedFullChunkEndsTheCall(t *testing.T) {
	db, mock := newMock(t)
	mock.ExpectBegin()
	mock.ExpectExec(manyText(1500)).WillReturnError(errMine)
	mock.ExpectRollback()
	if err := newHelper(sqlxhelper.PostgreSQL).InsertMany(ctx, db, "t", make([]pair, 1501)); !errors.Is(err, errMine) {
		t.Errorf("InsertMany() = %v; want %v", err, errMine)
	}
}

func TestFailedPrepareRollsBack(t *testing.T) {
	db, mock := newMock(t)
	mock.ExpectBegin()
	mock.ExpectPrepare(sqliteText(150)).WillReturnError(errMine)
	mock.ExpectRollback()
	if err := newHelper(sqlxhelper.SQLite).InsertMany(ctx, db, "t", make([]pair, 300)); !errors.Is(err, errMine) {
		t.Errorf("InsertMany() = %v; want %v", err, errMine)
	}
}

func TestErrorOfTheDatabaseNamesTableAndRows(t *testing.T) {
	db, mock := newMock(t)
	mock.ExpectBegin()
	mock.ExpectExec(manyText(32)).WillReturnResult(done(32))
	mock.ExpectExec(manyText(8)).WillReturnError(errMine)
	mock.ExpectRollback()
	err := newHelper(sqlxhelper.PostgreSQL).InsertMany(ctx, db, "t", make([]pair, 40))
	if want := "sqlxhelper: insert into t, rows 33 to 40 of 40: mine"; !errors.Is(err, errMine) || err.Error() != want {
		t.Errorf("InsertMany() = %v; want %q", err, want)
	}
}

// Fewer rows than were given is how sqlx's own expansion loses rows.
func TestRowsAffectedMustBeTheRowsGiven(t *testing.T) {
	for _, affected := range []int64{0, 2, 4} {
		db, mock := newMock(t)
		tx := newTx(t, db, mock)
		mock.ExpectExec("SAVEPOINT snowkey_insert").WillReturnResult(done(0))
		mock.ExpectExec(manyText(3)).WillReturnResult(sqlmock.NewResult(0, affected))
		mock.ExpectExec("ROLLBACK TO SAVEPOINT snowkey_insert").WillReturnResult(done(0))
		mock.ExpectExec("RELEASE SAVEPOINT snowkey_insert").WillReturnResult(done(0))
		err := newHelper(sqlxhelper.PostgreSQL).InsertMany(ctx, tx, "t", make([]pair, 3))
		var count *sqlxhelper.CountError
		if !errors.As(err, &count) || *count != (sqlxhelper.CountError{Table: "t", Rows: 3, Affected: affected}) {
			t.Fatalf("InsertMany(3 rows, %d affected) = %#v; want a CountError with both", affected, err)
		}
		if want := fmt.Sprintf("sqlxhelper: insert into t: rows affected: %d, rows given: 3", affected); err.Error() != want {
			t.Errorf("InsertMany(3 rows) = %q; want %q", err, want)
		}
	}
}

func TestDriverThatCannotCountIsAnError(t *testing.T) {
	db, mock := newMock(t)
	mock.ExpectExec(pairText).WillReturnResult(sqlmock.NewErrorResult(errMine))
	if err := newHelper(sqlxhelper.PostgreSQL).Insert(ctx, db, "t", &pair{}); !errors.Is(err, errMine) {
		t.Errorf("Insert() = %v; want %v", err, errMine)
	}
}

func TestEveryStatementInATransactionIsUnderASavepoint(t *testing.T) {
	for _, d := range []sqlxhelper.Dialect{sqlxhelper.SQLite, sqlxhelper.PostgreSQL, sqlxhelper.MySQL} {
		db, mock := newMock(t)
		tx := newTx(t, db, mock)
		text := strings.ReplaceAll(oneRow[d], "`s`.", "")
		text = strings.ReplaceAll(text, `"s".`, "")
		for _, failing := range []error{errMine, nil} {
			mock.ExpectExec("SAVEPOINT snowkey_insert").WillReturnResult(done(0))
			if failing != nil {
				mock.ExpectExec(text).WillReturnError(failing)
				mock.ExpectExec("ROLLBACK TO SAVEPOINT snowkey_insert").WillReturnResult(done(0))
			} else {
				mock.ExpectExec(text).WillReturnResult(done(1))
			}
			mock.ExpectExec("RELEASE SAVEPOINT snowkey_insert").WillReturnResult(done(0))
			if err := newHelper(d).Insert(ctx, tx, "t", &pair{}); !errors.Is(err, failing) {
				t.Errorf("Insert(%v) = %v; want %v", d, err, failing)
			}
		}
	}
}

func TestSavepointThatCannotBeRolledBackIsReported(t *testing.T) {
	gone := errors.New("savepoint does not exist")
	for name, expect := range map[string]func(sqlmock.Sqlmock){
		"Rollback": func(mock sqlmock.Sqlmock) {
			mock.ExpectExec(pairText).WillReturnError(errMine)
			mock.ExpectExec("ROLLBACK TO SAVEPOINT snowkey_insert").WillReturnError(gone)
		},
		"ReleaseAfterRollback": func(mock sqlmock.Sqlmock) {
			mock.ExpectExec(pairText).WillReturnError(errMine)
			mock.ExpectExec("ROLLBACK TO SAVEPOINT snowkey_insert").WillReturnResult(done(0))
			mock.ExpectExec("RELEASE SAVEPOINT snowkey_insert").WillReturnError(gone)
		},
		"Release": func(mock sqlmock.Sqlmock) {
			mock.ExpectExec(pairText).WillReturnResult(done(1))
			mock.ExpectExec("RELEASE SAVEPOINT snowkey_insert").WillReturnError(errMine)
			mock.ExpectExec("ROLLBACK TO SAVEPOINT snowkey_insert").WillReturnError(gone)
		},
	} {
		t.Run(name, func(t *testing.T) {
			db, mock := newMock(t)
			tx := newTx(t, db, mock)
			mock.ExpectExec("SAVEPOINT snowkey_insert").WillReturnResult(done(0))
			expect(mock)
			err := newHelper(sqlxhelper.PostgreSQL).Insert(ctx, tx, "t", &pair{})
			for _, want := range []error{errMine, sqlxhelper.ErrTxBroken, gone} {
				if !errors.Is(err, want) {
					t.Errorf("Insert() = %v; want %v in it", err, want)
				}
			}
		})
	}
	db, mock := newMock(t)
	tx := newTx(t, db, mock)
	mock.ExpectExec("SAVEPOINT snowkey_insert").WillReturnError(errMine)
	if err := newHelper(sqlxhelper.PostgreSQL).Insert(ctx, tx, "t", &pair{}); !errors.Is(err, errMine) {
		t.Errorf("Insert(no savepoint) = %v; want %v", err, errMine)
	}
}

// effect calls a function when it is bound.
type effect struct{ do func() }

func (e effect) Value() (driver.Value, error) {
	if e.do != nil {
		e.do()
	}
	return int64(1), nil
}

type effectRow struct {
	ID types.Snowflake `db:"id"`
	N  effect          `db:"n"`
}

func TestPanicOfAValueIsAnErrorThatNamesIt(t *testing.T) {
	insert := func(db sqlxhelper.DB) {
		t.Helper()
		rows := make([]effectRow, 33)
		rows[32].N.do = func() { panic(errMine) }
		err := newHelper(sqlxhelper.PostgreSQL).InsertMany(ctx, db, "t", rows)
		var in *sqlxhelper.InsertError
		if !errors.As(err, &in) || in.Row != 32 || in.Field != "N" || in.Key != rows[32].ID {
			t.Fatalf("InsertMany() = %#v; want an InsertError about N of row 32", err)
		}
		if want := "sqlxhelper: insert into t, sqlxhelper_test.effectRow[32].N (id " + in.Key.String() + "): panic in Value: mine"; err.Error() != want {
			t.Errorf("InsertMany() = %q; want %q", err, want)
		}
	}
	db, mock := newMock(t)
	mock.ExpectBegin()
	mock.ExpectExec(manyText(32)).WillReturnResult(done(32))
	mock.ExpectRollback()
	insert(db)
	tx := newTx(t, db, mock)
	mock.ExpectExec("SAVEPOINT snowkey_insert").WillReturnResult(done(0))
	mock.ExpectExec(manyText(32)).WillReturnResult(done(32))
	mock.ExpectExec("ROLLBACK TO SAVEPOINT snowkey_insert").WillReturnResult(done(0))
	mock.ExpectExec("RELEASE SAVEPOINT snowkey_insert").WillReturnResult(done(0))
	insert(tx)
}

func TestEndedContextAssignsNothingAndSendsNothing(t *testing.T) {
	db, _ := newMock(t)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	p := pair{}
	if err := newHelper(sqlxhelper.PostgreSQL).Insert(ended, db, "t", &p); !errors.Is(err, context.Canceled) || p.ID != 0 {
		t.Errorf("Insert(ended context) = %v, key %d; want context.Canceled, none", err, p.ID)
	}
}

// The transaction began under another context and has to survive this one.
func TestContextIsLookedAtBetweenChunks(t *testing.T) {
	db, mock := newMock(t)
	tx := newTx(t, db, mock)
	mock.ExpectExec("SAVEPOINT snowkey_insert").WillReturnResult(done(0))
	mock.ExpectExec(sqliteText(150)).WillDelayFor(20 * time.Millisecond).WillReturnResult(done(150))
	mock.ExpectExec("ROLLBACK TO SAVEPOINT snowkey_insert").WillReturnResult(done(0))
	mock.ExpectExec("RELEASE SAVEPOINT snowkey_insert").WillReturnResult(done(0))
	ending, cancel := context.WithCancel(ctx)
	rows := make([]effectRow, 151)
	rows[149].N.do = cancel
	err := newHelper(sqlxhelper.SQLite).InsertMany(ending, tx, "t", rows)
	if !errors.Is(err, context.Canceled) || errors.Is(err, sqlxhelper.ErrTxBroken) || !strings.Contains(err.Error(), "rows 151 to 151 of 151") {
		t.Errorf("InsertMany(context that ends in the first chunk) = %v; want context.Canceled before row 151", err)
	}
}

// during calls a function while a statement is looked at.
type during func()

func (d during) Match(driver.Value) bool {
	d()
	return true
}

// The mock looks at the context that it is given while it waits.
func TestStatementIsGivenTheContextOnServers(t *testing.T) {
	const long = time.Hour
	db, mock := newMock(t)
	tx := newTx(t, db, mock)
	ending, cancel := context.WithCancel(ctx)
	mock.ExpectExec("SAVEPOINT snowkey_insert").WillReturnResult(done(0))
	mock.ExpectExec(pairText).WithArgs(1, during(cancel)).WillDelayFor(long).WillReturnResult(done(1))
	mock.ExpectExec("ROLLBACK TO SAVEPOINT snowkey_insert").WillReturnResult(done(0))
	mock.ExpectExec("RELEASE SAVEPOINT snowkey_insert").WillReturnResult(done(0))
	if err := newHelper(sqlxhelper.PostgreSQL).Insert(ending, tx, "t", &pair{}); !errors.Is(err, sqlmock.ErrCancelled) {
		t.Errorf("Insert(PostgreSQL, context that ends) = %v; want it cancelled", err)
	}
}

// A caller's transaction may be long, and would hold the statement until its end.
func TestPreparedStatementIsClosedWithinTheTransaction(t *testing.T) {
	db, mock := newMock(t)
	tx := newTx(t, db, mock)
	mock.ExpectExec("SAVEPOINT snowkey_insert").WillReturnResult(done(0))
	prepared := mock.ExpectPrepare(sqliteText(150)).WillBeClosed()
	prepared.ExpectExec().WillReturnResult(done(150))
	prepared.ExpectExec().WillReturnResult(done(150))
	mock.ExpectExec("RELEASE SAVEPOINT snowkey_insert").WillReturnResult(done(0))
	if err := newHelper(sqlxhelper.SQLite).InsertMany(ctx, tx, "t", make([]pair, 300)); err != nil {
		t.Errorf("InsertMany() = %v; want nil", err)
	}
	if err := mock.ExpectationsWereMet(); err != nil {
		t.Error(err)
	}
}

func mysqlText(n int) string { return strings.ReplaceAll(sqliteText(n), `"`, "`") }

func sqliteText(n int) string {
	return `INSERT INTO "t" ("id", "n") VALUES ` + strings.Repeat("(?, ?), ", n-1) + "(?, ?)"
}
