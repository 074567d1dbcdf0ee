package feed

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/snowkey/snowkey/internal/base/sqlrow"
	"github.com/snowkey/snowkey/types"
)

// sqlite keeps the fence in a row. SQLite has one writer at a time, which sees what the one before it
// has committed. When the fence is raised, the earlier writers have therefore ended, and the later ones
// see it.
type sqlite struct{ names }

func (s sqlite) statements() []string {
	// A trigger with a schema is not valid where the file is attached under another name.
	table, fence := sqlrow.Name{Table: s.name.Table}.Quote(SQLite), sqlrow.Name{Table: s.name.Table + "_feed"}.Quote(SQLite)
	refuse := func(condition string) string {
		return " WHEN " + condition + "NEW." + s.column + " < (SELECT closed FROM " + fence + ")" +
			" AND NOT EXISTS (SELECT 1 FROM " + table + " WHERE " + s.column + " = NEW." + s.column + ")" + // an upsert
			" BEGIN SELECT RAISE(ABORT, '" + refusal + "'); END"
	}
	return []string{
		"CREATE TABLE IF NOT EXISTS " + s.fence + " (one INTEGER PRIMARY KEY, closed INTEGER NOT NULL)",
		"INSERT OR IGNORE INTO " + s.fence + " VALUES (1, 0)",
		"CREATE TABLE IF NOT EXISTS " + s.readers + " (feed INTEGER PRIMARY KEY, closed INTEGER NOT NULL)",
		"INSERT OR IGNORE INTO " + s.readers + " VALUES (0, 0), (1, 0)",
		"CREATE TRIGGER IF NOT EXISTS " + s.insert + " BEFORE INSERT ON " + table + refuse(""),
		"CREATE TRIGGER IF NOT EXISTS " + s.update + " BEFORE UPDATE ON " + table + refuse("NEW."+s.column+" <> OLD."+s.column+" AND "),
	}
}

func (s sqlite) check(ctx context.Context, db session) error {
	var n int
	err := db.QueryRowContext(ctx, "SELECT count(*) FROM main.sqlite_master WHERE type = 'trigger' AND tbl_name = ?1 COLLATE NOCASE AND name IN (?1 || '_feed_insert', ?1 || '_feed_update')"+
		" OR type = 'table' AND name = ?1 || '_feed_readers' COLLATE NOCASE", s.name.Table).Scan(&n)
	if err == nil && n != 3 {
		err = fmt.Errorf("%w: the table has no fence; call Install", ErrUnknownHorizon)
	}
	return err
}

// now is the clock of the machine, which both have.
func (s sqlite) now(context.Context, session) (time.Time, error) { return time.Now(), nil }

func (s sqlite) begin(ctx context.Context, db session) (*sql.Tx, error) {
	return beginWith(ctx, db, "UPDATE "+s.readers+" SET closed = closed WHERE feed = 0 RETURNING closed")
}

func (s sqlite) raise(ctx context.Context, tx *sql.Tx, key types.Snowflake) (after types.Snowflake, err error) {
	err = tx.QueryRowContext(ctx, "UPDATE "+s.fence+" SET closed = max(closed, ?) RETURNING closed", int64(key)).Scan((*int64)(&after))
	return after, err
}

func (s sqlite) open(context.Context, session) (map[string]struct{}, bool, error) {
	return nil, true, nil
}
