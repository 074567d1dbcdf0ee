// Package standby tells whether a commit of PostgreSQL has reached the synchronous
// standby, to which a failover would go.
//
// COMMIT waits for the standby. That wait can be cut off: by an operator's
// pg_cancel_backend, and by the cancel request that a driver sends when its context ends.
// The server then says that it has committed, which is true as long as it lives, and adds
// a warning that database/sql does not pass on. A failover forgets such a commit.
//
// There are three ways to know better, tried in this order:
//
//   - The driver shows the warning. pgx does, unless the program has wrapped its
//     connections. Without a warning nothing more is sent.
//   - The server shows how far the standby has got, to a superuser or a member of
//     pg_monitor. This proves it on every driver, however far away the standby is.
//   - A second write commits. It waits for all before it, but can be cut off like them. So
//     it counts only without a warning, or, where the driver hides that, if it came back
//     sooner than anybody cuts it off: within 100 ms.
//
// Nothing is sent where synchronous_standby_names is empty.
package standby

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/wait"
)

// thisServer tells one server from another, such as the one that a failover has put in its
// place. A pooler may lead one connection to both, one after the other.
const thisServer = "CAST(extract(epoch FROM pg_postmaster_start_time()) * 1000000 AS BIGINT)"

// Columns are for the list of a SELECT in the transaction that is to be committed. The
// first is the ID of a [Server], or NULL if its commits wait for no standby. The second is
// of no use; it has the server send its warning.
const Columns = "CASE WHEN current_setting('synchronous_standby_names', true) <> '' THEN " + thisServer + " END, " + warn

// warn is for programs that have turned warnings off.
const warn = "CASE WHEN current_setting('client_min_messages') IN ('error', 'fatal', 'panic') THEN set_config('client_min_messages', 'warning', true) END"

// quick is how long a write may take to count though nobody would hear a warning.
//
// A tool that cuts off whatever waits does so at intervals, and the write begins when it
// has just done so: it lasts for a whole interval. An operator takes seconds. Under a
// longer limit, tools with shorter intervals would pass. Under a shorter one, standbys that
// are far away would fail.
const quick = 100 * time.Millisecond

// ErrUnknown means that the transaction is committed on the server, and that a failover
// may forget it.
var ErrUnknown = errors.New("committed, but perhaps not on the synchronous standby")

var (
	errCut       = errors.New("the wait for the standby was cut off")
	errLags      = errors.New("the standby does not have it yet")
	errSlow      = fmt.Errorf("no write came back within %v, and the driver hides whether its wait was cut off; use pgx as it is, or grant pg_monitor", quick)
	errElsewhere = errors.New("another server answers now")
)

// A Server commits transactions that wait for a standby.
type Server struct {
	ID   int64     // from the first of Columns
	Conn *sql.Conn // to it
}

// Commit commits the transaction that is open on the connection, and returns nil if the
// standby has it. An error of commit comes as it is. One that matches [ErrUnknown] means
// that commit has returned nil.
func (s Server) Commit(ctx context.Context, commit func() error) error {
	ear := listen(s.Conn)
	err := commit()
	heard := ear.stop()
	// Without a warning it is done, even if ctx ends now.
	if err != nil || heard == nothing {
		return err
	}
	if err := s.confirm(ctx); err != nil {
		return fmt.Errorf("%w: %w", ErrUnknown, wait.Cause(ctx, err))
	}
	return nil
}

// confirm returns nil once the standby has all that the server has committed before.
func (s Server) confirm(ctx context.Context) error {
	if shown, err := s.shown(ctx); err != nil || shown {
		return err
	}
	for why := errCut; ; {
		err := s.write(ctx)
		if !errors.Is(err, errCut) && !errors.Is(err, errSlow) {
			if err != nil && ctx.Err() != nil {
				err = fmt.Errorf("%w: %w", why, err)
			}
			return err
		}
		why = err
		if ctx.Err() != nil {
			return err
		}
	}
}

// progress asks whether as many standbys as COMMIT waits for have what the server had on
// its disk at $1, or, for "", has now. In order: which server it is, what it had, whether
// the user may see the rest, and the answer. Where the operator lets the server go on
// without a standby meanwhile, commits wait for none.
const progress = "SELECT " + thisServer + `, at, pg_has_role(current_user, 'pg_read_all_stats', 'USAGE'),
	current_setting('synchronous_standby_names') = '' OR (SELECT count(*) FROM pg_stat_replication
		WHERE sync_state IN ('sync', 'quorum') AND flush_lsn >= CAST(at AS pg_lsn))
		>= CAST(coalesce(substring(current_setting('synchronous_standby_names') FROM '(?i)^\s*(?:first\s+|any\s+)?([0-9]+)\s*\('), '1') AS INT)
	FROM (SELECT coalesce(nullif(CAST($1 AS TEXT), ''), CAST(pg_current_wal_flush_lsn() AS TEXT)) AS at) AS p`

// shown waits until the server shows that the standby has all. It returns false if the
// user may not see that.
func (s Server) shown(ctx context.Context) (bool, error) {
	at := ""
	for n := 1; ; n++ {
		var (
			id        int64
			sees, has bool
		)
		// Outside of a transaction: within one, what is shown need not change.
		switch err := s.Conn.QueryRowContext(ctx, progress, at).Scan(&id, &at, &sees, &has); {
		case dialect.NoFunction(err):
			return false, nil // before PostgreSQL 10
		case err != nil:
			return false, err
		case id != s.ID:
			return false, errElsewhere
		case !sees, has:
			return has && sees, nil
		}
		if err := wait.Sleep(ctx, min(time.Duration(5*n)*time.Millisecond, quick)); err != nil {
			return false, fmt.Errorf("%w: %w", errLags, err)
		}
	}
}

// write commits a transaction that writes nothing to any table, and needs no privilege. If
// it returns nil, the standby has it and all before it.
func (s Server) write(ctx context.Context) error {
	tx, err := s.Conn.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return err
	}
	var id int64
	err = tx.QueryRowContext(ctx, "SELECT "+thisServer+", "+warn+
		", CASE WHEN current_setting('synchronous_commit') IN ('off', 'local', 'remote_write') THEN set_config('synchronous_commit', 'on', true) END"+
		", CAST(pg_logical_emit_message(true, 'snowkey', '') AS TEXT)").Scan(&id, new(any), new(any), new(any))
	if err == nil && id != s.ID {
		err = errElsewhere
	}
	if err != nil {
		_ = tx.Rollback() // there is nothing to be lost
		return err
	}
	ear, began := listen(s.Conn), time.Now()
	err = tx.Commit()
	switch heard := ear.stop(); {
	case err != nil || heard == nothing:
		return err
	case heard == warning:
		return errCut
	case ctx.Err() != nil: // which has cut it off
		return ctx.Err()
	case time.Since(began) >= quick:
		return errSlow
	}
	return nil
}
