package outcome

import (
	"context"
	"database/sql"

	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/standby"
)

// An Xact identifies a transaction of PostgreSQL. The zero value identifies none.
//
// Its ID tells what became of it without a look at its rows, which row level security, a view, a
// missing privilege or another search_path may hide from the connection that looks. The server
// tells that of the latest two billion transactions.
type Xact struct {
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

// IdentifyText is the query of [Identify].
const IdentifyText = "SELECT CASE WHEN NOT pg_catalog.pg_is_in_recovery() THEN pg_catalog.txid_current() END, " + serverRun

// Identify returns the Xact of the transaction of db, in which a write comes next: it would get
// an ID then. On a standby there is none. A server without IDs, and a user without the right, is
// dialect.NoFunction or dialect.Denied.
//
// It comes before the COMMIT because a COMMIT that is not answered cannot be asked, and not right
// before it because a failure would end a transaction that has done all its work.
//
// The function has this name since PostgreSQL 10, and in later versions too, which have others
// beside it.
func Identify(ctx context.Context, db dialect.Queryer) (x Xact, err error) {
	var id sql.NullInt64
	err = dialect.Each(ctx, db, func(rows *sql.Rows) error { return rows.Scan(&id, &x.run) }, IdentifyText)
	x.id = id.Int64
	if err != nil || x.id == 0 {
		x = Xact{}
	}
	return x, err
}

// The states of an Xact.
const (
	xactCommitted = "committed"
	xactAborted   = "aborted"
)

// state returns xactCommitted, xactAborted, another text while the transaction is open, or "" if
// this server cannot tell.
func (x Xact) state(ctx context.Context, tx Tx) (string, error) {
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
