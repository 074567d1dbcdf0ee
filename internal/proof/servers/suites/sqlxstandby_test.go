package servers

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"gorm.io/gorm"

	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/internal/proof/cases/sqlxcases"
	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

// waitingPostgres starts a PostgreSQL whose commits wait for a synchronous standby that is
// away. It returns its URL, and a pool whose commits do not wait.
func waitingPostgres(t *testing.T) (dsn string, admin *sqlx.DB) {
	t.Helper()
	dsn, _ = servertest.StartPostgreSQL(t)
	admin, err := sqlx.Connect("pgx", dsn+"&synchronous_commit=local")
	must(t, err)
	t.Cleanup(func() { _ = admin.Close() })
	execSqlx(t, admin, "CREATE TABLE suppressed (id BIGINT PRIMARY KEY, n BIGINT)")
	execSqlx(t, admin, "ALTER SYSTEM SET synchronous_standby_names = 'away'")
	execSqlx(t, admin, "SELECT pg_reload_conf()")
	for away := false; !away; time.Sleep(10 * time.Millisecond) {
		must(t, admin.Get(&away, "SELECT current_setting('synchronous_standby_names') = 'away'"))
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
	"GormInTx": func(ctx context.Context, _ *sqlxhelper.Helper, db *sqlx.DB) error {
		// Keys that no other call has.
		g, err := gormOn(db, sqlxcases.NewCounter(types.Snowflake(time.Now().UnixNano())))
		if err != nil {
			return err
		}
		return gormplugin.InTx(ctx, g, nil, func(tx *gorm.DB) error { return tx.Table("suppressed").Create(&suppressed{}).Error })
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
	// The context of a call ends when arrived, with the name by which the server knows the call, returns true.
	each := func(name string, arrived func(ctx context.Context, name string) bool, check func(t *testing.T, name string, err error)) {
		t.Run(name, func(t *testing.T) {
			cells := newCrowd(t, 2*len(waitingCalls))
			defer cells.wait()
			for _, driver := range []string{"pgx", "pq"} {
				for call, f := range waitingCalls {
					cells.run(driver+call, func(t *testing.T) {
						name, over := name+driver+call, make(chan struct{})
						go func() {
							if arrived(t.Context(), name) {
								close(over)
							}
						}()
						check(t, call, f(expiring{t.Context(), over}, h, openSqlx(t, driver, dsn+"&application_name="+name)))
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
	each("ContextEnds", func(ctx context.Context, name string) bool {
		return poll(ctx, func() bool {
			var waits bool
			err := admin.GetContext(ctx, &waits, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND application_name = $1)", name)
			return err == nil && waits
		})
	}, unknown)

	working, stop := context.WithCancel(t.Context())
	op := &operator{cancelled: map[string]int{}}
	var work sync.WaitGroup
	work.Go(func() { op.work(working, admin) })
	defer work.Wait()
	defer stop()
	each("Cancelled", func(ctx context.Context, name string) bool { // the COMMIT, and the write that is to prove it
		return poll(ctx, func() bool { return op.of(name) >= 2 })
	}, unknown)

	// The standby is given up when the COMMIT of each call was cancelled.
	var left atomic.Int32
	each("GivenUp", func(ctx context.Context, name string) bool {
		left.Add(1)
		if poll(ctx, func() bool { return op.of(name) >= 1 }) && left.Add(-1) == 0 {
			stop()
			admin.MustExec("ALTER SYSTEM SET synchronous_standby_names = ''")
			admin.MustExec("SELECT pg_reload_conf()")
		}
		return false
	}, func(t *testing.T, name string, err error) {
		if err != nil {
			t.Errorf("%s = %v; want nil, since the server waits for no standby any more", name, err)
		}
	})
}

// An operator cancels each wait for the standby that has lasted for a while.
type operator struct {
	mu        sync.Mutex
	cancelled map[string]int // waits, by the application_name of the session
}

// of returns how many waits of a session were cancelled.
func (o *operator) of(name string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.cancelled[name]
}

// work cancels waits until ctx ends.
func (o *operator) work(ctx context.Context, admin *sqlx.DB) {
	for ; ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		var names []string
		_ = admin.SelectContext(ctx, &names, "SELECT application_name FROM (SELECT application_name, pg_cancel_backend(pid) AS met FROM pg_stat_activity"+
			" WHERE wait_event = 'SyncRep' AND query_start < clock_timestamp() - interval '1.2 s') s WHERE met")
		o.mu.Lock()
		for _, name := range names {
			o.cancelled[name]++
		}
		o.mu.Unlock()
	}
}
