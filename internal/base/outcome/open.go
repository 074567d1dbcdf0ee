package outcome

import (
	"context"

	"github.com/snowkey/snowkey/internal/base/dialect"
)

// InTransaction reports whether a statement has begun a transaction on a connection, and leaves
// that open. On SQLite, which refuses to begin a second one, it reports false.
func InTransaction(ctx context.Context, d dialect.Dialect, c dialect.Executor) (open bool, err error) {
	switch d {
	case dialect.PostgreSQL:
		// No function tells. A setting that is local to a transaction lasts until the next
		// query only within one. The times of the statement and the transaction prove nothing,
		// because each message of the extended protocol sets the former.
		if _, err := c.ExecContext(ctx, "SELECT pg_catalog.set_config('snowkey.begun', 'yes', true)"); err != nil {
			return false, err
		}
		err = dialect.One(ctx, c, []any{&open}, "SELECT COALESCE(pg_catalog.current_setting('snowkey.begun', true), '') = 'yes'")
	case dialect.MySQL:
		// The first comment is SQL for TiDB, where it begins another one that takes the rest.
		err = dialect.One(ctx, c, []any{&open}, "SELECT /*T! @@tidb_current_ts > 0 -- */ @@in_transaction")
		if dialect.UnknownVariable(err) {
			// MySQL lacks it, but refuses to set how the next transaction begins while one is
			// open, with an error that changes nothing.
			_, err = c.ExecContext(ctx, "SET @@transaction_read_only = @@session.transaction_read_only")
			if open = dialect.InTransaction(err); open {
				err = nil
			}
		}
	}
	return open, err
}
