package feed

import (
	"context"
	"fmt"
	"time"

	"github.com/snowkey/snowkey/types"
)

// sqlite keeps the fence in a row. SQLite has one writer at a time, which sees what the one before it
// has committed. When the fence is raised, the earlier writers have therefore ended, and the later ones
// see it.
type sqlite struct{ names }

func (s sqlite) statements() []string {
	refuse := func(condition string) string {
		return " WHEN " + condition + "NEW." + s.column + " < (SELECT closed FROM " + s.fence + ")" +
			" AND NOT EXISTS (SELECT 1 FROM " + s.table + " WHERE " + s.column + " = NEW." + s.column + ")" + // an upsert
			" BEGIN SELECT RAISE(ABORT, '" + refusal + "'); END"
	}
	return []string{
		"CREATE TABLE IF NOT EXISTS " + s.fence + " (one INTEGER PRIMARY KEY, closed INTEGER NOT NULL)",
		"INSERT OR IGNORE INTO " + s.fence + " VALUES (1, 0)",
		"CREATE TRIGGER IF NOT EXISTS " + s.insert + " BEFORE INSERT ON " + s.table + refuse(""),
		"CREATE TRIGGER IF NOT EXISTS " + s.update + " BEFORE UPDATE ON " + s.table + refuse("NEW."+s.column+" <> OLD."+s.column+" AND "),
	}
}

func (s sqlite) check(ctx context.Context, db session) error {
	var n int
	err := db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_master WHERE type = 'trigger' AND tbl_name = ? COLLATE NOCASE AND name IN (?, ?)",
		s.plain, s.plain+"_feed_insert", s.plain+"_feed_update").Scan(&n)
	if err == nil && n != 2 {
		err = fmt.Errorf("%w: the table has no fence; call Install", ErrUnknownHorizon)
	}
	return err
}

// now is the clock of the machine, which both have.
func (s sqlite) now(context.Context, session) (time.Time, error) { return time.Now(), nil }

func (s sqlite) raise(ctx context.Context, db session, key types.Snowflake) (before, after types.Snowflake, err error) {
	return raiseRow(ctx, db, "UPDATE "+s.fence+" SET closed = closed RETURNING closed", "UPDATE "+s.fence+" SET closed = ?", key)
}

func (s sqlite) open(context.Context, session) (map[string]struct{}, bool, error) {
	return nil, true, nil
}
