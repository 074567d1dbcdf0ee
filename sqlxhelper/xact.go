package sqlxhelper

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/standby"
)

// An xact identifies a transaction of PostgreSQL. The zero value identifies none.
//
// Its ID tells what became of it without a look at its rows, which row level security, a view, a
// missing privilege or another search_path may hide from the connection that looks. The server
// tells that of the latest two billion transactions.
type xact struct {
	id int64
	// run is the run of the server that has given out the ID. Elsewhere the ID means nothing: a
	// standby that is promoted without the transaction, and a server that crashes before the ID
	// is on disk, give it to another one.
	run string
}

// serverRun is an expression for a run of a server. If a process of the server dies, the others
// start anew under the same postmaster, and only the position at which the recovery has ended
// shows it.
const serverRun = "CAST(" + standby.ThisServer + " AS TEXT) || ' ' || COALESCE(CAST(pg_catalog.pg_last_wal_replay_lsn() AS TEXT), '')"

// identify returns the xact of the transaction of db, in which a write comes next: it would get
// an ID then. On a standby there is none.
//
// The function has this name since PostgreSQL 10, and in later versions too, which have others
// beside it.
func identify(ctx context.Context, db queryer) (x xact, err error) {
	var id sql.NullInt64
	err = each(ctx, db, func(rows *sql.Rows) error { return rows.Scan(&id, &x.run) },
		"SELECT CASE WHEN NOT pg_catalog.pg_is_in_recovery() THEN pg_catalog.txid_current() END, "+serverRun)
	x.id = id.Int64
	if err != nil || x.id == 0 {
		x = xact{}
	}
	return x, err
}

// The states of an xact.
const (
	xactCommitted = "committed"
	xactAborted   = "aborted"
)

// state returns xactCommitted, xactAborted, another text while the transaction is open, or "" if
// this server cannot tell.
func (x xact) state(ctx context.Context, tx *sqlx.Tx) (string, error) {
	var (
		version string
		state   sql.NullString
	)
	err := tx.QueryRowContext(ctx, "SELECT version(), CASE WHEN NOT pg_catalog.pg_is_in_recovery() AND "+serverRun+
		" = $1 THEN pg_catalog.txid_status(CAST($2 AS BIGINT)) END", x.run, x.id).Scan(&version, &state)
	if err != nil || !postgresVersion.MatchString(version) {
		return "", err
	}
	return state.String, nil
}

// identify notes the xact of the transaction of an InTx or InsertSeq before a Helper writes in it
// for the first time. That costs a round trip, and another one on a server without IDs, where it
// rolls back to the savepoint of the call.
//
// It comes before the COMMIT because a COMMIT that is not answered cannot be asked, and not right
// before it because a failure would end a transaction that has done all its work. A transaction
// that a call of a Helper begins for itself is not identified: it is never run again, so that
// rows which may be hidden cost an ErrCommitUnknown and nothing else.
func (w *writer) identify(ctx context.Context, c conn) error {
	r := recordOf(c.db)
	if !w.dialect.identifies || w.memory == nil || w.memory.anonymous.Load() || !r.unidentified() {
		return nil
	}
	x, err := answered(ctx, c.honors, func() (xact, error) { return identify(ctx, c.db) }, nil)
	switch {
	case err == nil:
		r.identify(x)
	case dialect.NoFunction(err), dialect.Denied(err):
		w.memory.anonymous.Store(true)
		_, err = execute(ctx, c.honors, c.db, "ROLLBACK TO SAVEPOINT "+savepointName)
	}
	if err != nil {
		return fmt.Errorf("sqlxhelper: ID of the transaction: %w", err)
	}
	return nil
}
