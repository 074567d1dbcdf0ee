package outcome

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/DATA-DOG/go-sqlmock"

	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/wait"
	"github.com/snowkey/snowkey/internal/proof/servers/drivererrors"
)

// A slow transaction takes an hour to begin, to commit and to roll back.
type slow struct {
	Tx
	rolledBack bool
}

func (s *slow) begin(context.Context, *sql.TxOptions) (Tx, error) {
	time.Sleep(time.Hour)
	return s, nil
}
func (s *slow) Commit() error { time.Sleep(time.Hour); return nil }
func (s *slow) Rollback() error {
	time.Sleep(time.Hour)
	s.rolledBack = true
	return nil
}

func succeeds(Tx) error { return nil }

// SQLite has no server that could leave a call waiting.
func TestEndOfATransactionOnSQLiteIsWaitedFor(t *testing.T) {
	errFailed := errors.New("failed")
	for want, fn := range map[End]func(Tx) error{Committed: succeeds, RolledBack: func(Tx) error { return errFailed }} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			on := &Database{Dialect: dialect.SQLite, Cancels: CancelsAll, Begin: func(context.Context, *sql.TxOptions) (Tx, error) { return &slow{}, nil }}
			o, err := (&Transaction{Database: on}).Run(ctx, fn)
			if o != want || (err == nil) != (want == Committed) {
				t.Errorf("Run(transaction whose end takes an hour) = %v, %v; want %v", o, err, want)
			}
		})
	}
}

// What a driver does after its caller has gone is rolled back when it is done.
func TestTransactionThatIsLeftBehindIsRolledBack(t *testing.T) {
	for name, c := range map[string]struct {
		begin func(s *slow) func(context.Context, *sql.TxOptions) (Tx, error)
		want  End
		err   error
	}{
		"as it begins": {func(s *slow) func(context.Context, *sql.TxOptions) (Tx, error) { return s.begin }, RolledBack, context.DeadlineExceeded},
		"in a call": {func(s *slow) func(context.Context, *sql.TxOptions) (Tx, error) {
			return func(context.Context, *sql.TxOptions) (Tx, error) { return s, nil }
		}, Abandoned, ErrBusy},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			s := &slow{}
			o, err := (&Transaction{Database: &Database{Begin: c.begin(s)}}).Run(ctx, func(Tx) error { return wait.ErrNoAnswer })
			if o != c.want || !errors.Is(err, c.err) {
				t.Errorf("Run(transaction that hangs %s) = %v, %v; want %v, %v", name, o, err, c.want, c.err)
			}
			time.Sleep(24 * time.Hour)
			if !s.rolledBack {
				t.Errorf("the transaction that hung %s is not rolled back", name)
			}
		})
	}
}

func (s *slow) ExecContext(context.Context, string, ...any) (sql.Result, error) {
	time.Sleep(time.Hour)
	return nil, nil //nolint:nilnil // nobody waits for it
}

// No call of a driver that does not end with its context lasts much longer than that.
func TestNoCallLastsMuchLongerThanItsContext(t *testing.T) {
	commits := func(begin func(context.Context, *sql.TxOptions) (Tx, error)) func(ctx context.Context) error {
		return func(ctx context.Context) error {
			_, err := (&Transaction{Database: &Database{Begin: begin}}).Run(ctx, succeeds)
			return err
		}
	}
	for name, call := range map[string]func(ctx context.Context) error{
		"Begin":  commits((&slow{}).begin),
		"Commit": commits(func(context.Context, *sql.TxOptions) (Tx, error) { return &slow{}, nil }),
		"Exec": func(ctx context.Context) error {
			_, err := Exec(ctx, 0, &slow{}, "")
			return err
		},
		"look": func(ctx context.Context) error {
			_, err := (Pending{Database: &Database{Begin: (&slow{}).begin}, Answered: true}).Settle(ctx)
			return err
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			began := time.Now()
			if err := call(ctx); err == nil || time.Since(began) > 2*time.Minute {
				t.Errorf("%s that takes an hour = %v after %v; want an error after a minute", name, err, time.Since(began))
			}
			time.Sleep(24 * time.Hour)
		})
	}
}

func TestErrorOfABeginIsExplained(t *testing.T) {
	refused, explained := errors.New("refused"), errors.New("explained")
	on := &Database{
		Begin:       func(context.Context, *sql.TxOptions) (Tx, error) { return nil, refused },
		BeginFailed: func(_ context.Context, err error) error { return errors.Join(explained, err) },
	}
	for range 2 {
		if o, err := (&Transaction{Database: on}).Run(t.Context(), succeeds); o != RolledBack || !errors.Is(err, refused) || errors.Is(err, explained) != (on.BeginFailed != nil) {
			t.Errorf("Run(begin refused) = %v, %v; want RolledBack, and why", o, err)
		}
		on.BeginFailed = nil
	}
}

// Only PostgreSQL's commits wait for a standby, and may be cut off. Of one that has written nothing nothing is lost.
func TestCommitOfATransactionThatOnlyReadsIsNotCutOff(t *testing.T) {
	for d, want := range map[dialect.Dialect]bool{dialect.PostgreSQL: true, dialect.MySQL: false, dialect.SQLite: false} {
		if got := Cut(t.Context(), d, time.Hour); got != want {
			t.Errorf("Cut(%v, 1h) = %v; want %v", d, got, want)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		on := &Database{Dialect: dialect.PostgreSQL, Cancels: CancelsAll, Begin: (&slow{}).begin}
		if o, err := (&Transaction{Database: on, Opts: &sql.TxOptions{ReadOnly: true}}).Run(t.Context(), succeeds); o != Committed || err != nil {
			t.Errorf("Run(slow transaction that only reads) = %v, %v; want Committed", o, err)
		}
	})
}

func TestUnknownErrorNamesTheRows(t *testing.T) {
	errDuplicate := errors.New("duplicate")
	for pkg, begins := range map[string]string{"": ErrCommitUnknown.Error(), "shop": "shop: not known whether the transaction is committed"} {
		d := &Database{Package: pkg, Duplicate: errDuplicate}
		err := d.Unknown(t.Context(), io.EOF, ErrOpen, []Proof{{KeyColumn{Table: "orders", Column: "id"}, 5}, {KeyColumn{Table: "items", Column: "key"}, 7}})
		if want := begins + ": EOF; " + ErrOpen.Error() + "; all is stored if one of these is: id 5 of orders, key 7 of items"; err.Error() != want {
			t.Errorf("Unknown() = %q; want %q", err, want)
		}
		if !AtCommit(err) || AtCommit(io.EOF) {
			t.Errorf("AtCommit(unknown, another error) = %v, %v; want true, false", AtCommit(err), AtCommit(io.EOF))
		}
		for state, want := range map[string]bool{"23505": true, "23503": false} {
			if err := error(&commitError{drivererrors.Postgres(state), d}); errors.Is(err, errDuplicate) != want || !AtCommit(err) {
				t.Errorf("COMMIT with %s is a duplicate: %v; want %v", state, errors.Is(err, errDuplicate), want)
			}
		}
	}
}

// The first attempt is lost, and known to be rolled back. If the second one meets its rows all the same, that is
// said.
func TestDuplicateAfterALostAttemptIsLookedInto(t *testing.T) {
	errDuplicate := errors.New("duplicate")
	for name, c := range map[string]struct {
		failed  error
		state   string // of the first attempt's transaction, once more; none: nobody looks
		unknown bool
	}{
		"of the driver":          {drivererrors.Postgres("23505"), xactCommitted, true},
		"of the package":         {errDuplicate, xactCommitted, true},
		"of somebody else's row": {errDuplicate, xactAborted, false},
		"that is none":           {io.EOF, "", false},
	} {
		db, mock, err := sqlmock.New()
		if err != nil {
			t.Fatal(err)
		}
		look := func(state string) {
			mock.ExpectBegin()
			mock.ExpectQuery("txid_status").WillReturnRows(sqlmock.NewRows([]string{"version", "state"}).AddRow(postgres, state))
			if state == xactCommitted {
				mock.ExpectExec("pg_logical_emit_message").WillReturnResult(sqlmock.NewResult(0, 0))
				mock.ExpectCommit()
				return
			}
			mock.ExpectRollback()
		}
		mock.ExpectBegin()
		mock.ExpectCommit().WillReturnError(io.ErrUnexpectedEOF)
		look(xactAborted)
		mock.ExpectBegin()
		mock.ExpectRollback()
		if c.state != "" {
			look(c.state)
		}
		runs := 0
		a := &Attempts{Database: &Database{Begin: begin(db), Dialect: dialect.PostgreSQL, Cancels: CancelsAll, Duplicate: errDuplicate}, Fn: func(_ Tx, r *Record) error {
			if runs++; runs == 1 {
				r.Identify(Xact{730, "1 0/70"})
				return nil
			}
			return c.failed
		}}
		if err := a.Run(t.Context()); runs != 2 || !errors.Is(err, c.failed) || errors.Is(err, ErrCommitUnknown) != c.unknown {
			t.Errorf("duplicate %s: Run() = %v after %d runs; want %v, unknown: %v, after 2", name, err, runs, c.failed, c.unknown)
		}
		mock.ExpectClose()
		if err := errors.Join(db.Close(), mock.ExpectationsWereMet()); err != nil {
			t.Errorf("duplicate %s: %v", name, err)
		}
	}
}

// What a statement has stored by itself would be stored once more.
func TestFunctionRunsAgainUnlessSomethingMayBeStored(t *testing.T) {
	altered := errors.New("ERROR: invalid input syntax for type integer: \"snowkey: the table was altered\"")
	for name, c := range map[string]struct {
		note func(r *Record)
		runs int
	}{
		"nothing":           {func(*Record) {}, 2},
		"no proof":          {(*Record).Wrote, 2},
		"a stray statement": {(*Record).Stray, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			runs := 0
			a := &Attempts{Database: &Database{Begin: (&slow{}).begin}, Fn: func(_ Tx, r *Record) error {
				if c.note(r); r.empty() != (name != "no proof") {
					t.Errorf("a record of %s is empty: %v", name, r.empty())
				}
				if runs++; runs == 1 {
					return altered
				}
				return nil
			}}
			if err := a.Run(t.Context()); runs != c.runs || (err == nil) != (c.runs == 2) {
				t.Errorf("Run(table altered, and %s) = %v after %d runs; want %d", name, err, runs, c.runs)
			}
		})
	}
}

func TestAnOpenTransactionIsTold(t *testing.T) {
	lacks, refused := drivererrors.MySQL(1193), drivererrors.MySQL(1045)
	is := func(open bool) *sqlmock.Rows { return sqlmock.NewRows([]string{"open"}).AddRow(open) }
	for name, c := range map[string]struct {
		dialect dialect.Dialect
		expect  func(m sqlmock.Sqlmock)
		open    bool
		err     error
	}{
		"PostgreSQL": {dialect.PostgreSQL, func(m sqlmock.Sqlmock) {
			m.ExpectExec("set_config").WillReturnResult(sqlmock.NewResult(0, 0))
			m.ExpectQuery("current_setting").WillReturnRows(is(true))
		}, true, nil},
		"PostgreSQL, refused": {dialect.PostgreSQL, func(m sqlmock.Sqlmock) { m.ExpectExec("set_config").WillReturnError(refused) }, false, refused},
		"MariaDB":             {dialect.MySQL, func(m sqlmock.Sqlmock) { m.ExpectQuery("@@in_transaction").WillReturnRows(is(true)) }, true, nil},
		"MariaDB, refused":    {dialect.MySQL, func(m sqlmock.Sqlmock) { m.ExpectQuery("@@in_transaction").WillReturnError(refused) }, false, refused},
		"MySQL, in one": {dialect.MySQL, func(m sqlmock.Sqlmock) {
			m.ExpectQuery("@@in_transaction").WillReturnError(lacks)
			m.ExpectExec("SET @@").WillReturnError(drivererrors.MySQL(1568))
		}, true, nil},
		"MySQL, in none": {dialect.MySQL, func(m sqlmock.Sqlmock) {
			m.ExpectQuery("@@in_transaction").WillReturnError(lacks)
			m.ExpectExec("SET @@").WillReturnResult(sqlmock.NewResult(0, 0))
		}, false, nil},
		"MySQL, refused": {dialect.MySQL, func(m sqlmock.Sqlmock) {
			m.ExpectQuery("@@in_transaction").WillReturnError(lacks)
			m.ExpectExec("SET @@").WillReturnError(refused)
		}, false, refused},
		"SQLite, which is silent": {dialect.SQLite, func(sqlmock.Sqlmock) {}, false, nil},
	} {
		db, mock, err := sqlmock.New()
		if err != nil {
			t.Fatal(err)
		}
		c.expect(mock)
		if open, err := InTransaction(t.Context(), c.dialect, db); open != c.open || !errors.Is(err, c.err) {
			t.Errorf("InTransaction(%s) = %v, %v; want %v, %v", name, open, err, c.open, c.err)
		}
		mock.ExpectClose()
		if err := errors.Join(db.Close(), mock.ExpectationsWereMet()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
