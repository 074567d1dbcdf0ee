// Package standby tells whether a commit of PostgreSQL has reached the synchronous standby, to
// which a failover would go.
//
// COMMIT waits for the standby. That wait is cut off by an operator's pg_cancel_backend, and by
// the cancel request that a driver sends when its context ends. The server then reports that the
// transaction is committed, which is true for as long as it lives, and adds a warning that
// database/sql does not pass on. A failover loses such a transaction. (statement_timeout does
// not end the wait.)
//
// [Server.Commit] takes three ways to find out, in this order:
//
//   - The driver shows the warning. pgx does, unless the program has wrapped its connections.
//     Without a warning nothing more is sent.
//   - The server shows how far the standby has got, to a superuser or a member of pg_monitor.
//     This proves it on every driver, however far away the standby is.
//   - A second write commits, which waits for all writes before it. It can be cut off too, and
//     therefore counts only without a warning or, where the driver hides warnings, within
//     100 ms.
//
// [Cut] and [Ensure] serve callers that share their connections with the program: a commit is in
// doubt only if it took a second, and then a second write has to come back sooner.
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

// A commit whose warnings cannot be heard counts if it came back before anything that cuts off
// waits acts, see mayBeCut. A commit takes milliseconds, and a tenth of a second if its standby
// is on another continent.
const (
	// quick is the limit for a write that proves a commit of a lease or a counter. A tool that
	// cuts off whatever waits does so at intervals, and the write begins just after it has
	// acted, so that the write lasts for a whole interval. A longer limit would miss tools with
	// shorter intervals. Under this one, a standby further away proves nothing, and the error
	// asks for the warnings or for pg_monitor.
	quick = 100 * time.Millisecond

	// Slow is the limit for commits of the program's own transactions, whose standby may be
	// anywhere, and which may have no other proof. An operator takes longer.
	Slow = time.Second
)

// mayBeCut reports whether a commit that took so long may have been cut off while it waited for
// the standby: by a tool or an operator, or by the driver because ctx has ended.
func mayBeCut(ctx context.Context, took, limit time.Duration) bool {
	return took >= limit || ctx.Err() != nil
}

// Cut reports whether a commit of the program may have been cut off while it waited for the
// standby. [Ensure] then proves it.
func Cut(ctx context.Context, took time.Duration) bool { return mayBeCut(ctx, took, Slow) }

// A Tx is a transaction, such as a *sql.Tx.
type Tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	Commit() error
}

// Ensure writes in tx and commits it. If it returns nil, the standby has all that the server
// has committed before: the commit waits for all commits before it, unless the server has no
// standby. A transaction that has only read would wait for none. The write is one to the log,
// which changes no table and needs no privilege.
//
// The error is [ErrSlow] if this commit may have been cut off too. On an error before the
// commit, the caller ends the transaction.
func Ensure(ctx context.Context, tx Tx) error {
	const write = "SELECT CASE WHEN current_setting('synchronous_standby_names', true) <> '' THEN pg_logical_emit_message(true, 'snowkey', '') END"
	if _, err := tx.ExecContext(ctx, write); err != nil {
		if dialect.NoFunction(err) {
			return nil // a database that speaks like PostgreSQL, and has no such standby
		}
		return err
	}
	began := time.Now()
	if err := tx.Commit(); err != nil {
		return err
	}
	if ctx.Err() == nil && Cut(ctx, time.Since(began)) {
		return ErrSlow
	}
	return ctx.Err()
}

// ThisServer is an expression that identifies a server, because a pooler may lead one connection
// to a server and, after a failover, to its successor.
const ThisServer = "CAST(extract(epoch FROM pg_postmaster_start_time()) * 1000000 AS BIGINT)"

// Columns are for the list of a SELECT in the transaction that is to be committed. The first is
// the ID of a [Server], or NULL if its commits wait for no standby. The second has the server
// send its warning, and its value is of no use.
const Columns = "CASE WHEN current_setting('synchronous_standby_names', true) <> '' THEN " + ThisServer + " END, " + warn

// warn is for programs that have turned warnings off.
const warn = "CASE WHEN current_setting('client_min_messages') IN ('error', 'fatal', 'panic') THEN set_config('client_min_messages', 'warning', true) END"

var (
	// ErrUnknown means that the transaction is committed on the server, and that a failover may
	// lose it.
	ErrUnknown = errors.New("committed, but perhaps not on the synchronous standby")

	// ErrSlow is the error of [Ensure] for a commit that proves nothing.
	ErrSlow = errors.New("a commit took so long that it may have been cut off while it waited for the synchronous standby")
)

var (
	errCut       = errors.New("the wait for the standby was cut off")
	errLags      = errors.New("the standby does not have it yet")
	errSlow      = fmt.Errorf("no write came back within %v, and the driver hides whether its wait was cut off; use pgx unwrapped, or grant pg_monitor", quick)
	errElsewhere = errors.New("another server answers now")
)

// A Server commits transactions that wait for a standby.
type Server struct {
	ID   int64     // from the first of Columns
	Conn *sql.Conn // to it
}

// Commit commits the transaction that is open on the connection. It returns nil if the standby
// has the transaction, the error of commit unchanged, or an error that matches [ErrUnknown] if
// commit has returned nil.
func (s Server) Commit(ctx context.Context, commit func() error) error {
	ear := listen(s.Conn)
	err := commit()
	heard := ear.stop()
	// Without a warning the standby has it, even if ctx ends now.
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

// progress asks whether as many standbys as COMMIT waits for have what the server had on disk at
// $1 or, for "", has now. Its columns are the server, its position, whether the user may see the
// rest, and the answer. If an operator has let the server go on without a standby meanwhile,
// commits wait for none, and the answer is yes.
const progress = "SELECT " + ThisServer + `, at, pg_has_role(current_user, 'pg_read_all_stats', 'USAGE'),
	current_setting('synchronous_standby_names') = '' OR (SELECT count(*) FROM pg_stat_replication
		WHERE sync_state IN ('sync', 'quorum') AND flush_lsn >= CAST(at AS pg_lsn))
		>= CAST(coalesce(substring(current_setting('synchronous_standby_names') FROM '(?i)^\s*(?:first\s+|any\s+)?([0-9]+)\s*\('), '1') AS INT)
	FROM (SELECT coalesce(nullif(CAST($1 AS TEXT), ''), CAST(pg_current_wal_flush_lsn() AS TEXT)) AS at) AS p`

// shown waits until the server shows that the standby has everything. It returns false if the
// user may not see that.
func (s Server) shown(ctx context.Context) (bool, error) {
	at := ""
	for n := 1; ; n++ {
		var (
			id        int64
			sees, has bool
		)
		// Outside of a transaction, within which the view need not change.
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

// write commits a transaction that changes no table and needs no privilege. If it returns nil,
// the standby has it and all before it.
func (s Server) write(ctx context.Context) error {
	tx, err := s.Conn.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return err
	}
	var id int64
	err = tx.QueryRowContext(ctx, "SELECT "+ThisServer+", "+warn+
		", CASE WHEN current_setting('synchronous_commit') IN ('off', 'local', 'remote_write') THEN set_config('synchronous_commit', 'on', true) END"+
		", CAST(pg_logical_emit_message(true, 'snowkey', '') AS TEXT)").Scan(&id, new(any), new(any), new(any))
	if err == nil && id != s.ID {
		err = errElsewhere
	}
	if err != nil {
		_ = tx.Rollback() // it has written nothing to a table
		return err
	}
	ear, began := listen(s.Conn), time.Now()
	err = tx.Commit()
	switch heard := ear.stop(); {
	case err != nil || heard == nothing:
		return err
	case heard == warning:
		return errCut
	case !mayBeCut(ctx, time.Since(began), quick):
		return nil
	case ctx.Err() != nil: // which may have cut it off
		return ctx.Err()
	}
	return errSlow
}
