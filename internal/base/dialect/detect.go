package dialect

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// Detect asks the database behind db what it is. The driver's type tells nothing, because
// programs wrap drivers for tracing and metrics.
//
// It asks for version() first: PostgreSQL names itself in the answer, MySQL and MariaDB answer
// with a number and know @@version_comment as well, and SQLite has no such function. Servers
// that speak the protocol of one of them but name themselves otherwise, such as CockroachDB,
// are not guessed at.
func Detect(ctx context.Context, db *sql.DB) (Dialect, error) {
	// A server that cannot be reached is no unknown database.
	if err := db.PingContext(ctx); err != nil {
		return 0, err
	}
	var version, comment string
	err := db.QueryRowContext(ctx, "SELECT version()").Scan(&version)
	switch {
	case err != nil:
		if lite := db.QueryRowContext(ctx, "SELECT sqlite_version()").Scan(&version); lite != nil {
			return 0, fmt.Errorf("not recognized as PostgreSQL, MySQL, MariaDB or SQLite (Config.Dialect names the SQL of another database): %w", err)
		}
		return SQLite, nil
	case strings.HasPrefix(version, "PostgreSQL "):
		return PostgreSQL, nil
	case version != "" && version[0] >= '0' && version[0] <= '9':
		if err := db.QueryRowContext(ctx, "SELECT @@version_comment").Scan(&comment); err == nil {
			return MySQL, nil
		}
	}
	return 0, fmt.Errorf("not recognized as PostgreSQL, MySQL, MariaDB or SQLite (Config.Dialect names the SQL of another database): its version is %.64q", version)
}
