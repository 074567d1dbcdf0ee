package sqlxhelper

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/internal/sqlerror"
	"github.com/snowkey/snowkey/internal/wait"
	"github.com/snowkey/snowkey/types"
)

// probeTimeout bounds the look for a row after a commit in doubt. It runs when
// the caller's context may have ended, and lasts long enough for a server that
// restarts.
const probeTimeout = 10 * time.Second

// errNoProof is why nothing can be looked for.
var errNoProof = errors.New("no row was inserted by a Helper that could tell")

// stored reports whether the transaction of r is committed. It looks for the rows
// that the transaction has inserted. All of them are there or none. The last row of
// each table is looked for. A function may have rolled back a part of its work by a
// savepoint of its own.
//
// False means that it was not committed at that moment. It may be later.
func (r *record) stored(ctx context.Context, db beginner) (bool, error) {
	proofs := r.proofs()
	if len(proofs) == 0 {
		return false, errNoProof
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTimeout)
	defer cancel()
	for n := 1; ; n++ {
		found, err := look(ctx, db, proofs)
		if err == nil {
			return found, nil
		}
		if sqlerror.Refused(err) || wait.Sleep(ctx, delay(n)) != nil {
			return false, fmt.Errorf("looking for the row: %w", err)
		}
	}
}

// look tells whether one of the rows is there.
//
// It asks in a transaction. The broken connection is not used again, because its
// driver has reported it. A proxy that sends reads to replicas sends a transaction
// that may write to the primary. A replica that answers does no harm. What it has
// is committed. If it lacks a committed row, the next attempt meets that as a
// duplicate key.
//
// On PostgreSQL a row that is found may still be lost: see ensure.
func look(ctx context.Context, db beginner, proofs []proof) (found bool, err error) {
	tx, err := db.BeginTxx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer func() { _ = tx.Rollback() }() // it has only read, or has ended
	for _, p := range proofs {
		var one int
		switch err := tx.QueryRowContext(ctx, p.text(), p.key).Scan(&one); {
		case err == nil:
			err := ensure(ctx, tx, traitsOf(p.dialect).ensures)
			return err == nil, err
		case !errors.Is(err, sql.ErrNoRows):
			return false, err
		}
	}
	return false, nil
}

// ensure commits a transaction that has seen a row. If it returns nil, whoever takes the
// server's place has the row as well.
//
// A commit of PostgreSQL waits for its synchronous standby. If that wait is cut off, by
// the cancel request of a driver whose context has ended or by the end of the server,
// others see the rows at once. A failover loses them. This commit comes later and waits
// for all before it. So it has to write something: one that has only read waits for
// nothing.
func ensure(ctx context.Context, tx *sqlx.Tx, text string) error {
	if text == "" {
		return nil
	}
	if _, err := tx.ExecContext(ctx, text); err != nil {
		if sqlerror.NoFunction(err) {
			return nil // a database that is like PostgreSQL, and has no such standby
		}
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	return ctx.Err() // see attempts.try
}

// A proof is a row that is there if and only if its transaction is committed.
type proof struct {
	place
	key types.Snowflake
}

// text returns the statement that looks for the row. The names have passed the
// checks of insertHead.
func (p place) text() string {
	d := p.dialect
	return "SELECT 1 FROM " + d.Quote(p.table) + " WHERE " + d.Quote(p.column) + " = " + d.Placeholder(1) + traitsOf(d).forShare
}
