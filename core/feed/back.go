package feed

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/types"
)

// Each reader has a row in a table of the database, found by its name, with the greatest horizon that it was
// given. The row is written after all rows below that horizon were committed, and before the reader gets
// the first of them. A database that has the row therefore has everything that the reader has read below
// the horizon, and a reader whose position is not below it has read what the database has lost. That holds
// whatever other readers have done since, and although no Feed has lived through the restore.
//
// The fence would prove less: the first Feed after a restore raises it above the positions of all readers,
// and transactions with keys below it may have been open when the backup was made.
//
// Each Feed has a row too, with the place where it has left the fence. It shows the Feed that the
// transactions for which it waits are another time's, which no position shows.
//
// Two rows belong to all of them. When somebody acknowledges that the database went back, the rows of readers
// begin anew, at 0, and until a reader is given a horizon again, each position below the fence is good for it.
const (
	backRow         = 0 // the key to which the database went back, or 0
	acknowledgedRow = 1 // where the fence was when somebody acknowledged that last
	firstFeed       = 2
)

// rowOf returns the row of a reader, below all others.
func rowOf(reader string) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(reader)) // it never fails
	return ^int64(h.Sum64() >> 1)
}

// forgotten is how long a Feed may be silent before its row is removed.
const forgotten = 24 * time.Hour

// stored is what the fence and the table of readers and Feeds have.
type stored struct {
	fence, newest      types.Snowflake // newest is where a Feed has left the fence last, 0 if none has
	own                types.Snowflake // 0 if there is no row
	given, settled     types.Snowflake // what this reader was given, and the most that any was; 0 for nothing
	named              bool            // the reader has a row
	back, acknowledged types.Snowflake
}

// from returns the key from which on a database may have lost rows, if the Feed was ahead of it by a key.
func (r stored) from(ahead types.Snowflake) types.Snowflake {
	return max(1, min(ahead, cmp.Or(r.given, r.settled, r.acknowledged)))
}

func (f *Feed) stored(ctx context.Context, q querier) (r stored, err error) {
	position := "closed"
	if f.config.Dialect == PostgreSQL {
		position = "last_value"
	}
	greatest := func(rows string, missing int) string {
		return fmt.Sprintf(", COALESCE(MAX(CASE WHEN feed %s THEN closed END), %d)", rows, missing)
	}
	of := func(row int64, missing int) string { return greatest("= "+strconv.FormatInt(row, 10), missing) }
	err = q.QueryRowContext(ctx, "SELECT (SELECT "+position+" FROM "+f.names.fence+")"+greatest(">= "+strconv.Itoa(firstFeed), 0)+of(f.row, 0)+
		of(f.reader, -1)+greatest("< 0", 0)+of(backRow, 0)+of(acknowledgedRow, 0)+" FROM "+f.readers).
		Scan((*int64)(&r.fence), (*int64)(&r.newest), (*int64)(&r.own), (*int64)(&r.given), (*int64)(&r.settled), (*int64)(&r.back), (*int64)(&r.acknowledged))
	r.named, r.given = r.given >= 0, max(r.given, 0)
	return r, err
}

// raise raises the fence to a key, never lowers it, and returns where it is, for a reader that has read
// up to a position. It returns an error that matches ErrWentBack if the database has gone back, now
// or before, and no call has acknowledged it.
func (f *Feed) raise(ctx context.Context, s session, key, read types.Snowflake) (after types.Snowflake, err error) {
	var r stored
	again := false
	err = f.within(ctx, s, func(tx *sql.Tx) error {
		set := func(row int64, to types.Snowflake) error {
			_, err := tx.ExecContext(ctx, fmt.Sprintf("UPDATE %s SET closed = %d WHERE feed = %d", f.readers, to, row))
			return err
		}
		insert := func(row int64, to types.Snowflake) error {
			_, err := tx.ExecContext(ctx, fmt.Sprintf("INSERT INTO %s VALUES (%d, %d)", f.readers, row, to))
			return err
		}
		if r, err = f.stored(ctx, tx); err != nil {
			return err
		}
		if r.back == 0 {
			ahead := f.wentBack(r)
			if ahead == 0 && read >= max(cmp.Or(r.given, r.acknowledged), 1) {
				// A position that was never read must not stop the other readers.
				if read >= key || r.given == 0 && (read < r.newest || r.newest == 0) {
					return fmt.Errorf("%w, or the reader %q never got to the position %d: the database has given it keys below %d, and no reader any from %d on; a reader that is new and begins there calls Horizon with 0 first, until it returns a greater key",
						ErrWentBack, f.config.Reader, read, r.given, r.newest)
				}
				ahead = read
			}
			if ahead != 0 {
				// The sequence of PostgreSQL is raised for good before the commit, so this is before that.
				again = true
				return set(backRow, r.from(ahead))
			}
		}
		if after, err = f.fence.raise(ctx, tx, max(key, r.newest)); err != nil {
			return err
		}
		if r.own != 0 {
			err = set(f.row, after)
		} else if _, err = tx.ExecContext(ctx, fmt.Sprintf("DELETE FROM %s WHERE feed >= %d AND closed < %d", f.readers, firstFeed, f.dayBefore(after))); err == nil {
			err = insert(f.row, after)
		}
		if err == nil && !r.named {
			err = insert(f.reader, 0)
		}
		return err
	})
	switch {
	case err != nil:
		return 0, err
	case again:
		return f.raise(ctx, s, key, read)
	case r.back != 0:
		f.known = known{} // it begins anew when that is acknowledged
		return 0, fmt.Errorf("%w: compare the rows of %s from the key %d on with what was read, then call Acknowledge", ErrWentBack, f.name, r.back)
	}
	f.raised, f.given = after, r.given
	return after, nil
}

// within commits what do writes, or nothing on an error.
func (f *Feed) within(ctx context.Context, s session, do func(tx *sql.Tx) error) error {
	tx, err := f.fence.begin(ctx, s)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after Commit it does nothing
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// give notes that the reader is given the horizon.
func (f *Feed) give(ctx context.Context, s session) error {
	return f.within(ctx, s, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, fmt.Sprintf("UPDATE %s SET closed = %d WHERE feed = %d AND closed < %[2]d", f.readers, f.horizon, f.reader))
		return err
	})
}

// wentBack returns the key to which the fence has gone back since the last call, or 0.
func (f *Feed) wentBack(r stored) types.Snowflake {
	if f.raised > r.own && f.raised <= max(r.acknowledged, f.dayBefore(r.newest)) {
		f.known = known{} // its row may be gone for a reason that was acknowledged, or with those of silent Feeds
	}
	switch {
	case r.fence < r.newest: // somebody has removed the fence and put it back
		return r.fence
	case f.raised > r.newest:
		return max(r.newest, 1)
	case f.raised > r.own: // and another Feed has raised the fence since
		return max(r.own, 1)
	}
	return 0
}

func (f *Feed) dayBefore(key types.Snowflake) types.Snowflake {
	l := f.config.Layout
	return l.Min(l.Parts(key).Time.Add(-forgotten))
}

// WentBack returns the key to which the database has gone back, or 0 if it never did or a call has
// acknowledged it. It does not look whether it has: Horizon and Keys do.
func (f *Feed) WentBack(ctx context.Context) (from types.Snowflake, err error) {
	s, err := f.session(ctx)
	if err != nil {
		return 0, fmt.Errorf("feed: WentBack: %w", err)
	}
	defer func() { _ = s.Close() }() // it goes back to the pool
	r, err := f.stored(ctx, s)
	if err != nil {
		return 0, fmt.Errorf("feed: WentBack: %w", err)
	}
	return r.back, nil
}

// Acknowledge ends [ErrWentBack] for all Feeds of the table. Call it when a person has compared the rows
// from the key in the text of the error on with what the readers have read. They go on from their
// positions. Another key gives a [*core.ValueError], because the database may have gone back again.
func (f *Feed) Acknowledge(ctx context.Context, from types.Snowflake) error {
	s, err := f.session(ctx)
	if err == nil {
		defer func() { _ = s.Close() }() // it goes back to the pool
		err = f.within(ctx, s, func(tx *sql.Tx) error {
			r, err := f.stored(ctx, tx)
			if err != nil {
				return err
			}
			if from == 0 || from != r.back {
				want := r.back.String() + ", to which the database has gone back"
				if r.back == 0 {
					want = "no call: the database has not gone back, or somebody has acknowledged it"
				}
				return &core.ValueError{Package: "feed", Name: "from", Value: from.String(), Want: want}
			}
			_, err = tx.ExecContext(ctx, fmt.Sprintf("UPDATE %s SET closed = CASE WHEN feed = %d THEN %d ELSE 0 END WHERE feed < %d", f.readers, acknowledgedRow, r.newest, firstFeed))
			return err
		})
	}
	if err == nil || errors.As(err, new(*core.ValueError)) {
		return err
	}
	return fmt.Errorf("feed: Acknowledge: %w", err)
}
