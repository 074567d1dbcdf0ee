package feed

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/types"
)

// Each Feed has a row in a table of the database, with the place where it has left the fence. After the
// database has gone back, that row is gone or behind what the Feed remembers, whatever other Feeds have
// done with the fence since. The fence itself tells a Feed that has just started, and knows no more than a
// position.
//
// Two rows belong to all Feeds.
const (
	backRow         = 0 // the key to which the database went back, or 0
	acknowledgedRow = 1 // where the fence was when somebody acknowledged that last
	firstReader     = 2
)

// forgotten is how long a Feed may be silent before its row is removed.
const forgotten = 24 * time.Hour

// stored is what the fence and the table of the Feeds have.
type stored struct {
	fence, newest      types.Snowflake // newest is where a Feed has left the fence last, 0 if none has
	own                types.Snowflake // 0 if there is no row
	back, acknowledged types.Snowflake
}

func (f *Feed) stored(ctx context.Context, q querier) (r stored, err error) {
	n := f.config.names()
	position := "closed"
	if f.config.Dialect == PostgreSQL {
		position = "last_value"
	}
	of := func(row int64) string {
		return ", COALESCE(MAX(CASE WHEN feed = " + strconv.FormatInt(row, 10) + " THEN closed END), 0)"
	}
	err = q.QueryRowContext(ctx, fmt.Sprintf("SELECT (SELECT %s FROM %s), COALESCE(MAX(CASE WHEN feed >= %d THEN closed END), 0)", position, n.fence, firstReader)+
		of(f.reader)+of(backRow)+of(acknowledgedRow)+" FROM "+n.readers).
		Scan((*int64)(&r.fence), (*int64)(&r.newest), (*int64)(&r.own), (*int64)(&r.back), (*int64)(&r.acknowledged))
	return r, err
}

// raise raises the fence to a key, never lowers it, and returns where it is, for a reader that has read
// up to a position. It returns an error that matches ErrWentBack if the database has gone back, or had
// before and nobody has acknowledged it.
func (f *Feed) raise(ctx context.Context, s session, key, read types.Snowflake) (after types.Snowflake, err error) {
	tx, err := f.fence.begin(ctx, s)
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback() }() // after Commit it does nothing
	r, err := f.stored(ctx, tx)
	if err != nil {
		return 0, err
	}
	n := f.config.names()
	set := func(row int64, to types.Snowflake) error {
		_, err := tx.ExecContext(ctx, fmt.Sprintf("UPDATE %s SET closed = %d WHERE feed = %d", n.readers, to, row))
		return err
	}
	if r.back == 0 {
		from := f.wentBack(r)
		if from == 0 && r.newest != 0 && read >= r.newest {
			if read >= key { // no horizon has passed it, unless a clock is wrong
				return 0, fmt.Errorf("%w, or the position %d was never read: its fence is at %d; to begin anywhere, call Horizon before", ErrWentBack, read, r.newest)
			}
			from = r.newest
		}
		if from != 0 {
			// The sequence of PostgreSQL is raised for good before the commit, so this is before that.
			if err := set(backRow, from); err != nil {
				return 0, err
			}
			if err := tx.Commit(); err != nil {
				return 0, err
			}
			return f.raise(ctx, s, key, read)
		}
	}
	if after, err = f.fence.raise(ctx, tx, max(key, r.newest)); err != nil {
		return 0, err
	}
	if r.own != 0 {
		err = set(f.reader, after)
	} else if _, err = tx.ExecContext(ctx, fmt.Sprintf("DELETE FROM %s WHERE feed >= %d AND closed < %d", n.readers, firstReader, f.dayBefore(after))); err == nil {
		_, err = tx.ExecContext(ctx, fmt.Sprintf("INSERT INTO %s VALUES (%d, %d)", n.readers, f.reader, after))
	}
	if err == nil {
		err = tx.Commit()
	}
	if err != nil {
		return 0, err
	}
	if r.back != 0 {
		f.known = known{} // it begins anew when that is acknowledged
		return 0, fmt.Errorf("%w: compare the rows of %s from the key %d on with what was read, then call Acknowledge", ErrWentBack, f.config.Table, r.back)
	}
	f.raised = after
	return after, nil
}

// wentBack returns the key to which the database has gone back since the last call, or 0.
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

// WentBack returns the key to which the database has gone back, or 0 if it has not, or if somebody has
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

// Acknowledge ends [ErrWentBack] for all Feeds of the table. It is for a person, who has compared the rows
// from a key on, that in the text of the error, with what the readers have read. They go on from their
// positions. Another key gives a [*core.ValueError], because the database may have gone back again.
func (f *Feed) Acknowledge(ctx context.Context, from types.Snowflake) error {
	s, err := f.session(ctx)
	if err != nil {
		return fmt.Errorf("feed: Acknowledge: %w", err)
	}
	defer func() { _ = s.Close() }() // it goes back to the pool
	tx, err := f.fence.begin(ctx, s)
	if err != nil {
		return fmt.Errorf("feed: Acknowledge: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // after Commit it does nothing
	r, err := f.stored(ctx, tx)
	switch {
	case err != nil:
		return fmt.Errorf("feed: Acknowledge: %w", err)
	case from == 0 || from != r.back:
		want := r.back.String() + ", to which the database has gone back"
		if r.back == 0 {
			want = "no call: the database has not gone back, or somebody has acknowledged it"
		}
		return &core.ValueError{Package: "feed", Name: "from", Value: from.String(), Want: want}
	}
	_, err = tx.ExecContext(ctx, fmt.Sprintf("UPDATE %s SET closed = CASE WHEN feed = %d THEN %d ELSE 0 END WHERE feed < %d", f.config.names().readers, acknowledgedRow, r.newest, firstReader))
	if err == nil {
		err = tx.Commit()
	}
	if err != nil {
		return fmt.Errorf("feed: Acknowledge: %w", err)
	}
	return nil
}
