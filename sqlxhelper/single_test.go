package sqlxhelper

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/internal/base/outcome"
	"github.com/snowkey/snowkey/types"
)

// wrapped is a pool of a program's own, whose statements *sql.DB may send twice.
type wrapped struct{ *sqlx.DB }

var (
	errDial    = &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	lateSend   = fate{late: 1, err: driver.ErrBadConn}
	sendLost   = fate{err: driver.ErrBadConn}
	sendBroken = fate{applied: true, err: io.ErrUnexpectedEOF}
)

// A statement on a pool is stored, not stored, or unknown, and nothing else.
func TestStatementOnAPoolHasOneOutcome(t *testing.T) {
	for _, c := range []struct {
		name    string
		db      *faulty
		preset  bool // the caller has set the keys
		wrap    bool // the pool is the program's own
		dialect Dialect
		want    []error // what the error matches; none for nil
		never   error
		rows    []int64
		sends   int
		looks   int
	}{
		{name: "Stored", db: &faulty{}, rows: []int64{7, 8}, sends: 1},
		{name: "AnswerLost", db: &faulty{sends: []fate{answerLost}}, rows: []int64{7, 8}, sends: 1, looks: 1},
		{name: "AnswerBroken", db: &faulty{sends: []fate{sendBroken}}, rows: []int64{7, 8}, sends: 1, looks: 1},
		{name: "StatementLost", db: &faulty{sends: []fate{sendLost}}, rows: []int64{7, 8}, sends: 2, looks: 1},
		{name: "StatementLate", db: &faulty{sends: []fate{lateSend}}, rows: []int64{7, 8}, sends: 2, looks: 2},
		{name: "StatementLostThenAnswerLost", db: &faulty{sends: []fate{sendLost, answerLost}}, rows: []int64{7, 8}, sends: 2, looks: 2},
		{name: "StatementLostForEver", db: &faulty{sends: repeat(sendLost, 9)}, want: []error{ErrCommitUnknown, driver.ErrBadConn}, sends: 3, looks: 3},
		{name: "StatementLostAndServerGone", db: &faulty{sends: []fate{sendLost}, begins: repeat[error](errDial, 999)}, want: []error{ErrCommitUnknown, driver.ErrBadConn}, sends: 1},
		{name: "StatementLostThenRefused", db: &faulty{sends: []fate{sendLost, refuses(postgres("23514"))}}, want: []error{postgres("23514")}, never: ErrCommitUnknown, sends: 2, looks: 4},
		{name: "StatementLostThenTimedOut", db: &faulty{sends: []fate{sendLost, refuses(postgres("57014"))}}, want: []error{ErrCommitUnknown, postgres("57014"), driver.ErrBadConn}, sends: 2, looks: 4},
		{name: "StatementLostThenAnothersDuplicate", db: &faulty{sends: []fate{sendLost, refuses(postgres("23505"))}}, want: []error{ErrDuplicateKey}, never: ErrCommitUnknown, sends: 2, looks: 4},

		{name: "StatementLostWhereRowsAreHidden", db: &faulty{sends: []fate{sendLost}, hidden: "rows"}, rows: []int64{7, 8}, sends: 2, looks: 1},
		{name: "AnswerLostWhereRowsAreHidden", db: &faulty{sends: []fate{answerLost}, hidden: "rows", blind: true}, want: []error{ErrCommitUnknown, ErrDuplicateKey, outcome.ErrHidden}, rows: []int64{7, 8}, sends: 2, looks: 2},
		{name: "StatementLostWhereTwoTablesHaveTheName", db: &faulty{sends: []fate{sendLost}, hidden: "names"}, want: []error{ErrCommitUnknown, outcome.ErrNames}, sends: 1, looks: 1},

		{name: "Duplicate", db: &faulty{stored: map[int64]bool{8: true}}, want: []error{ErrDuplicateKey}, never: ErrCommitUnknown, rows: []int64{8}, sends: 1},
		{name: "Refused", db: &faulty{sends: []fate{refuses(postgres("23514"))}}, want: []error{postgres("23514")}, never: ErrCommitUnknown, sends: 1},
		{name: "DiskFull", db: &faulty{sends: []fate{refuses(postgres("53100"))}}, want: []error{postgres("53100")}, never: ErrCommitUnknown, sends: 1},
		{name: "NoConnection", db: &faulty{connects: repeat[error](errDial, 9)}, want: []error{errDial}, never: ErrCommitUnknown},
		{name: "NotEncoded", db: &faulty{sends: []fate{refuses(errors.New("failed to encode args[1]: unable"))}}, never: ErrCommitUnknown, want: []error{errors.New("args[1]")}, sends: 1},
		{name: "PoolerSaysThatTheServerIsGone", db: &faulty{sends: []fate{{applied: true, err: postgres("08P01")}}}, rows: []int64{7, 8}, sends: 1, looks: 1},
		{name: "InternalErrorOfADatabaseThatHasStoredIt", db: &faulty{sends: []fate{{applied: true, err: postgres("XX000")}}}, rows: []int64{7, 8}, sends: 1, looks: 1},
		{name: "InternalError", db: &faulty{sends: []fate{refuses(postgres("XX000"))}}, want: []error{postgres("XX000")}, never: ErrCommitUnknown, sends: 1, looks: 2},

		{name: "PresetAnswerLost", preset: true, db: &faulty{sends: []fate{answerLost}}, want: []error{ErrCommitUnknown, errWhose}, rows: []int64{7, 8}, sends: 1, looks: 1},
		{name: "PresetStatementLost", preset: true, db: &faulty{sends: []fate{sendLost}}, rows: []int64{7, 8}, sends: 2, looks: 1},
		{name: "PresetStatementLate", preset: true, db: &faulty{sends: []fate{lateSend}}, rows: []int64{7, 8}, sends: 2, looks: 2},
		{name: "PresetDuplicate", preset: true, db: &faulty{stored: map[int64]bool{7: true}}, want: []error{ErrDuplicateKey}, never: ErrCommitUnknown, rows: []int64{7}, sends: 1},
		{name: "PresetStatementLostAndAReplicaAnswers", preset: true, db: &faulty{sends: []fate{sendLost}, replica: 2}, rows: []int64{7, 8}, sends: 2, looks: 3},

		// database/sql sends it again, and gets a duplicate.
		{name: "WrappedAnswerLost", wrap: true, db: &faulty{sends: []fate{answerLost}}, rows: []int64{7, 8}, sends: 2, looks: 1},
		{name: "WrappedDuplicate", wrap: true, db: &faulty{stored: map[int64]bool{7: true}}, want: []error{ErrDuplicateKey}, never: ErrCommitUnknown, rows: []int64{7}, sends: 1, looks: 2},
		// There is a transaction around it.
		{name: "WrappedPreset", wrap: true, preset: true, db: &faulty{}, rows: []int64{7, 8}},
		{name: "WrappedPresetAnswerLost", wrap: true, preset: true, db: &faulty{commits: []fate{answerLost}}, rows: []int64{7, 8}, looks: 1},

		// Its driver reports that only for statements that never left it.
		{name: "MySQLBadConnection", dialect: MySQL, db: &faulty{sends: []fate{sendLost}}, rows: []int64{7, 8}, sends: 2},
		{name: "MySQLAnswerLostThenBadConnections", dialect: MySQL, db: &faulty{sends: append([]fate{{err: errors.New("invalid connection")}}, repeat(sendLost, 9)...)}, want: []error{ErrCommitUnknown, errors.New("invalid connection")}, sends: 3, looks: 1},
		{name: "MySQLAnswerLost", dialect: MySQL, db: &faulty{sends: []fate{{applied: true, err: errors.New("invalid connection")}}}, rows: []int64{7, 8}, sends: 1, looks: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if c.dialect == 0 {
					c.dialect = PostgreSQL
				}
				next := types.Snowflake(6)
				h := New(SourceFunc(func(context.Context) (types.Snowflake, error) { next++; return next, nil }), WithDialect(c.dialect))
				db := c.db.open(t)
				var pool DB = db
				if c.wrap {
					pool = wrapped{db}
				}
				rows := make([]types.Model, 2)
				if c.preset {
					rows[0].ID, rows[1].ID = 7, 8
				}
				err := h.InsertMany(t.Context(), pool, "orders", rows)
				if (err == nil) != (c.want == nil) {
					t.Errorf("InsertMany() = %v; want %v", err, c.want)
				}
				for _, want := range c.want {
					wantIn(t, err, want)
				}
				if c.never != nil && errors.Is(err, c.never) {
					t.Errorf("InsertMany() = %v; want nothing of %v", err, c.never)
				}
				var unknown *UnknownError
				if errors.As(err, &unknown) && !slices.Equal(unknown.Rows, []StoredRow{{Table: "orders", Column: "id", Key: 8}}) {
					t.Errorf("Rows = %v; want the last key", unknown.Rows)
				}
				if err != nil && !errors.As(err, new(*InsertError)) {
					t.Errorf("InsertMany() = %v; want an InsertError", err)
				}
				if got := c.db.rows(); !slices.Equal(got, c.rows) {
					t.Errorf("rows = %v; want %v", got, c.rows)
				}
				if c.db.sendCount != c.sends || c.db.lookCount != c.looks {
					t.Errorf("%d sends and %d looks; want %d and %d", c.db.sendCount, c.db.lookCount, c.sends, c.looks)
				}
				if n := db.Stats().InUse; n != 0 {
					t.Errorf("%d connections are in use; want none", n)
				}
			})
		})
	}
}

// The statement may have been answered as a success, because PostgreSQL stops waiting for
// its standby when it is told to.
func TestContextThatEndsDuringAStatementOnAPoolLeavesNoWrongAnswer(t *testing.T) {
	for _, c := range []struct {
		name    string
		fate    fate
		ensures []error
		want    []error
	}{
		{"Stored", fate{applied: true, cancel: true}, nil, nil},
		{"StoredButNotOnTheStandby", fate{applied: true, cancel: true}, repeat(io.EOF, 999), []error{ErrCommitUnknown, context.Canceled}},
		{"AnswerLost", fate{applied: true, cancel: true, err: context.Canceled}, nil, nil},
		{"StatementThatTheServerIsAt", fate{late: 1, cancel: true, err: context.Canceled}, nil, nil},
		{"StatementLost", fate{cancel: true, err: context.Canceled}, nil, []error{ErrCommitUnknown, context.Canceled, errUnsettled}},
		{"Refused", fate{cancel: true, err: postgres("57014")}, nil, []error{context.Canceled, postgres("57014")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				f := &faulty{sends: []fate{c.fate}, ensures: c.ensures, cancel: cancel, landsAt: 3}
				h := New(SourceFunc(func(context.Context) (types.Snowflake, error) { return 7, nil }))
				began := time.Now()
				err := h.Insert(ctx, f.open(t), "orders", &types.Model{})
				if (err == nil) != (c.want == nil) {
					t.Errorf("Insert() = %v; want %v", err, c.want)
				}
				for _, want := range c.want {
					wantIn(t, err, want)
				}
				if errors.Is(err, ErrCommitUnknown) != slices.Contains(c.want, ErrCommitUnknown) {
					t.Errorf("Insert() = %v; matches ErrCommitUnknown: %v", err, errors.Is(err, ErrCommitUnknown))
				}
				if took := time.Since(began); took > time.Second {
					t.Errorf("Insert() returned %v after its context had ended; want 1s at most", took)
				}
			})
		})
	}
}

// An operator may cancel a COMMIT that waits for the standby. It then succeeds, and all
// that can be seen is how long it took.
func TestCommitThatTookLongIsConfirmedByOneThatDidNot(t *testing.T) {
	long := fate{applied: true, took: slow}
	insert := map[string]func(t *testing.T, db *sqlx.DB) error{
		"Insert": func(t *testing.T, db *sqlx.DB) error {
			return New(nil).Insert(t.Context(), db, "orders", &types.Model{ID: 7})
		},
		"Transaction": func(t *testing.T, db *sqlx.DB) error {
			return New(nil).Insert(t.Context(), wrapped{db}, "orders", &types.Model{ID: 7})
		},
		"InsertSeq": func(t *testing.T, db *sqlx.DB) error {
			_, err := InsertSeq(t.Context(), New(nil), db, "orders", func(yield func(types.Model, error) bool) { yield(types.Model{ID: 7}, nil) })
			return err
		},
		"InTx": func(t *testing.T, db *sqlx.DB) error {
			return InTx(t.Context(), db, nil, func(tx *sqlx.Tx) error { return New(nil).Insert(t.Context(), tx, "orders", &types.Model{ID: 7}) })
		},
		"InTxWithoutHelper": func(t *testing.T, db *sqlx.DB) error {
			return InTx(t.Context(), db, nil, func(tx *sqlx.Tx) error { _, err := tx.Exec("INSERT", int64(7)); return err })
		},
	}
	for name, call := range insert {
		for _, c := range []struct {
			name    string
			fate    fate
			took    []time.Duration // of the confirmations
			left    int             // of took
			unknown bool
		}{
			{"Quick", fate{applied: true, took: slow - 1}, make([]time.Duration, 3), 3, false},
			{"Long", long, make([]time.Duration, 3), 2, false},
			{"ConfirmedAtTheThirdTime", long, []time.Duration{slow, slow, 0, 0}, 1, false},
			{"NeverConfirmed", long, repeat(slow, 99), -1, true},
		} {
			t.Run(name+c.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := &faulty{sends: []fate{c.fate}, commits: []fate{c.fate}, ensureTook: c.took}
					err := call(t, f.open(t))
					if errors.Is(err, ErrCommitUnknown) != c.unknown || !c.unknown && err != nil {
						t.Errorf("%s() = %v; want ErrCommitUnknown: %v", name, err, c.unknown)
					}
					time.Sleep(2 * slow) // for a confirmation that was left
					if c.left >= 0 && len(f.ensureTook) != c.left {
						t.Errorf("%d of %d confirmations are left; want %d", len(f.ensureTook), len(c.took), c.left)
					}
				})
			})
		}
	}
}

// One connection has no other to look on.
func TestLostAnswerOnOneConnectionIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &faulty{sends: []fate{answerLost}}
		c, err := f.open(t).Connx(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		err = New(SourceFunc(func(context.Context) (types.Snowflake, error) { return 7, nil })).Insert(t.Context(), OnConn(c, "pgx"), "orders", &types.Model{})
		wantIn(t, err, ErrCommitUnknown)
		wantIn(t, err, outcome.ErrOneConn)
		if f.sendCount != 1 || f.lookCount != 0 {
			t.Errorf("%d sends and %d looks; want 1 and none", f.sendCount, f.lookCount)
		}
	})
}

// The connection that has answered late is there, and confirms what it has said.
func TestLateAnswerOnOneConnectionIsConfirmedOnIt(t *testing.T) {
	h := New(SourceFunc(func(context.Context) (types.Snowflake, error) { return 7, nil }))
	for name, call := range map[string]func(ctx context.Context, db DB) error{
		"Insert": func(ctx context.Context, db DB) error { return h.Insert(ctx, db, "orders", &types.Model{}) },
		"InsertSeq": func(ctx context.Context, db DB) error {
			_, err := InsertSeq(ctx, h, db, "orders", func(yield func(types.Model, error) bool) { yield(types.Model{}, nil) })
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				long := fate{applied: true, took: slow}
				f := &faulty{sends: []fate{long}, commits: []fate{long}, ensureTook: make([]time.Duration, 1)}
				c, err := f.open(t).Connx(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = c.Close() }()
				if err := call(t.Context(), OnConn(c, "pgx")); err != nil || len(f.ensureTook) != 0 {
					t.Errorf("%s() = %v, with %d confirmations left; want nil and none", name, err, len(f.ensureTook))
				}
			})
		})
	}
}

// The error of a COMMIT is of the rows as that of a statement is.
func TestDuplicateAtCommitIsADuplicate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := []fate{refuses(postgres("23505"))}
		next := types.Snowflake(0)
		h := New(SourceFunc(func(context.Context) (types.Snowflake, error) { next++; return next, nil }))
		for name, call := range map[string]func(db *sqlx.DB) error{
			"InsertMany": func(db *sqlx.DB) error {
				return h.InsertMany(t.Context(), wrapped{db}, "orders", []types.Model{{ID: 1}, {ID: 2}})
			},
			"InsertSeq": func(db *sqlx.DB) error {
				_, err := InsertSeq(t.Context(), h, db, "orders", func(yield func(types.Model, error) bool) {
					if yield(types.Model{}, nil) {
						yield(types.Model{}, nil)
					}
				})
				return err
			},
			"InTx": func(db *sqlx.DB) error {
				return InTx(t.Context(), db, &sql.TxOptions{}, func(tx *sqlx.Tx) error { return insert(tx, 1) })
			},
		} {
			err := call((&faulty{commits: slices.Clone(refused)}).open(t))
			if !errors.Is(err, ErrDuplicateKey) || errors.Is(err, ErrCommitUnknown) {
				t.Errorf("%s(duplicate at commit) = %v; want ErrDuplicateKey", name, err)
			}
			var e *InsertError
			if name != "InTx" && (!errors.As(err, &e) || e.Row != -1 || e.Rows != 2 || e.First != 0 || e.Last != 1) {
				t.Errorf("%s(duplicate at commit) = %v; want an InsertError with two rows, and none to blame", name, err)
			}
		}
	})
}

// A coordinator may have committed a part, whatever it says, and whatever row is there.
func TestErrorOfACommitProvesNothingWithPartialCommits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := types.Snowflake(0)
		source := SourceFunc(func(context.Context) (types.Snowflake, error) { next++; return next, nil })
		h := New(source, WithPartialCommits())
		runs := 0
		calls := map[string]func(db *sqlx.DB) error{
			"Insert": func(db *sqlx.DB) error { return h.Insert(t.Context(), db, "orders", &types.Model{}) },
			"InsertSeq": func(db *sqlx.DB) error {
				_, err := InsertSeq(t.Context(), h, db, "orders", func(yield func(types.Model, error) bool) { yield(types.Model{}, nil) })
				return err
			},
			"InTx": func(db *sqlx.DB) error {
				return h.InTx(t.Context(), db, nil, func(tx *sqlx.Tx) error { runs++; return insert(tx, 1) })
			},
		}
		for name, call := range calls {
			for _, c := range []fate{refuses(postgres("40001")), refuses(postgres("23505")), answerLost, commitLost} {
				f := &faulty{commits: []fate{c}}
				runs = 0
				err := call(f.open(t))
				var e *UnknownError
				if !errors.Is(err, ErrCommitUnknown) || !errors.Is(err, c.err) || !errors.As(err, &e) || len(e.Rows) != 1 || f.lookCount != 0 || runs > 1 {
					t.Errorf("%s(commit: %v) = %v after %d runs and %d looks; want ErrCommitUnknown with a key, no second run and no look", name, c.err, err, runs, f.lookCount)
				}
			}
			// What a statement says is said before anything is committed.
			refused := postgres("23514")
			f := &faulty{inserts: []error{refused}}
			if err := call(f.open(t)); !errors.Is(err, refused) || errors.Is(err, ErrCommitUnknown) {
				t.Errorf("%s(statement refused) = %v; want that, and no doubt", name, err)
			}
		}
	})
}

// wantIn fails the test if err neither matches want nor has its text.
func wantIn(t *testing.T, err, want error) {
	t.Helper()
	if err == nil || !errors.Is(err, want) && !strings.Contains(err.Error(), want.Error()) {
		t.Errorf("error = %v; want %v in it", err, want)
	}
}
