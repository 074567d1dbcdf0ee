package servers

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/internal/conformance/sqlxcases"
	"github.com/snowkey/snowkey/internal/servertest"
	"github.com/snowkey/snowkey/sqlxhelper"
)

// waitingPostgres starts a PostgreSQL whose commits wait for a synchronous standby that is
// away. It returns its URL, and a pool whose commits do not wait.
func waitingPostgres(t *testing.T) (dsn string, admin *sqlx.DB) {
	t.Helper()
	dsn, _ = servertest.StartPostgreSQL(t)
	admin, err := sqlx.Connect("pgx", dsn+"&synchronous_commit=local")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admin.Close() })
	execSqlx(t, admin, "CREATE TABLE suppressed (id BIGINT PRIMARY KEY, n BIGINT)")
	execSqlx(t, admin, "ALTER SYSTEM SET synchronous_standby_names = 'away'")
	execSqlx(t, admin, "SELECT pg_reload_conf()")
	for away := false; !away; time.Sleep(10 * time.Millisecond) {
		if err := admin.Get(&away, "SELECT current_setting('synchronous_standby_names') = 'away'"); err != nil {
			t.Fatal(err)
		}
	}
	return dsn, admin
}

// waitingCalls are calls that commit on PostgreSQL.
var waitingCalls = map[string]func(ctx context.Context, h *sqlxhelper.Helper, db *sqlx.DB) error{
	"Insert": func(ctx context.Context, h *sqlxhelper.Helper, db *sqlx.DB) error {
		return h.Insert(ctx, db, "suppressed", &suppressed{})
	},
	"InsertMany": func(ctx context.Context, h *sqlxhelper.Helper, db *sqlx.DB) error {
		return h.With(sqlxhelper.Returning("n")).InsertMany(ctx, db, "suppressed", make([]suppressed, 3))
	},
	"InsertSeq": func(ctx context.Context, h *sqlxhelper.Helper, db *sqlx.DB) error {
		_, err := sqlxhelper.InsertSeq(ctx, h, db, "suppressed", func(yield func(suppressed, error) bool) { yield(suppressed{}, nil) })
		return err
	},
	"InTx": func(ctx context.Context, h *sqlxhelper.Helper, db *sqlx.DB) error {
		return sqlxhelper.InTx(ctx, db, nil, func(tx *sqlx.Tx) error { return h.Insert(ctx, tx, "suppressed", &suppressed{}) })
	},
}

// A commit that no standby has is not a success, whoever ends its wait.
func TestCommitThatTheStandbyLacksIsNoSuccess(t *testing.T) {
	dsn, admin := waitingPostgres(t)
	keys := sqlxcases.NewCounter(0)
	h := sqlxhelper.New(keys)
	var ran atomic.Int32 // none, if -run names subtests of others
	each := func(name string, limit time.Duration, check func(t *testing.T, name string, err error)) {
		t.Run(name, func(t *testing.T) {
			cells := newCrowd(t, 2*len(waitingCalls))
			defer cells.wait()
			for _, driver := range []string{"pgx", "postgres"} {
				for name, call := range waitingCalls {
					cells.run(driver+name, func(t *testing.T) {
						ctx, cancel := context.WithTimeout(t.Context(), limit)
						defer cancel()
						ran.Add(1)
						check(t, name, call(ctx, h, openSqlx(t, driver, dsn)))
					})
				}
			}
		})
	}
	unknown := func(t *testing.T, name string, err error) {
		t.Helper()
		if !errors.Is(err, sqlxhelper.ErrCommitUnknown) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s = %v; want ErrCommitUnknown and the deadline", name, err)
		}
	}
	each("ContextEnds", 500*time.Millisecond, unknown)

	operator, stop := context.WithCancel(t.Context())
	cancelled := cancelWaits(operator, admin)
	each("Cancelled", 5*time.Second, unknown)

	// The standby is given up after the first waits were cancelled.
	time.AfterFunc(2500*time.Millisecond, func() {
		stop()
		admin.MustExec("ALTER SYSTEM SET synchronous_standby_names = ''")
		admin.MustExec("SELECT pg_reload_conf()")
	})
	each("GivenUp", 60*time.Second, func(t *testing.T, name string, err error) {
		if err != nil {
			t.Errorf("%s = %v; want nil, since the server waits for no standby any more", name, err)
		}
	})
	if n := <-cancelled; ran.Load() > 0 && n < 4*len(waitingCalls) {
		t.Errorf("%d waits were cancelled; want %d or more", n, 4*len(waitingCalls))
	}
}

// cancelWaits is an operator who cancels each wait that has lasted for a while, until ctx
// ends.
func cancelWaits(ctx context.Context, admin *sqlx.DB) <-chan int {
	count := make(chan int, 1)
	go func() {
		n := 0
		for ctx.Err() == nil {
			var pids []int
			_ = admin.Select(&pids, "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query_start < clock_timestamp() - interval '1.2 s'")
			for _, pid := range pids {
				if _, err := admin.Exec("SELECT pg_cancel_backend($1)", pid); err == nil {
					n++
				}
			}
			time.Sleep(50 * time.Millisecond)
		}
		count <- n
	}()
	return count
}
