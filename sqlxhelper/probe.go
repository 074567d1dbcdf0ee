package sqlxhelper

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

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
func look(ctx context.Context, db beginner, proofs []proof) (found bool, err error) {
	tx, err := db.BeginTxx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer func() { _ = tx.Rollback() }() // it has only read
	for _, p := range proofs {
		var one int
		switch err := tx.QueryRowContext(ctx, p.text(), p.key).Scan(&one); {
		case err == nil:
			return true, nil
		case !errors.Is(err, sql.ErrNoRows):
			return false, err
		}
	}
	return false, nil
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
