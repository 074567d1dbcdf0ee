package sqlrow

import (
	"context"
	"fmt"

	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/wait"
)

// A statement for [DB.Write] is AloneBegin, an UPDATE or INSERT that has AloneFrom in its
// FROM and AloneIf among its conditions. It has the settings of a transaction of [Do], which
// end with it, and writes nothing on a server that is not as [Tx.Alone] has found it. Its first
// two parameters belong to Write.
const (
	AloneBegin = "WITH settings AS (SELECT " + raiseCommit + ", CASE WHEN CAST(? AS TEXT) <> '' THEN set_config('lock_timeout', CAST(? AS TEXT), true) END) "
	AloneFrom  = "settings"
	AloneIf    = alone
)

// Write runs a statement of PostgreSQL by itself, in one round trip, and returns how many rows
// it has written.
//
// The row count comes before the commit, but drivers read on until the server is ready again.
// An error is [ErrCommit] unless the server's answer proves that nothing is stored.
func (d *DB) Write(ctx context.Context, text string, args ...any) (int64, error) {
	limit := lockLimit(ctx)
	text, args, err := d.Bind(text, append([]any{limit, limit}, args...)...)
	if err != nil {
		return 0, err
	}
	n, err := wait.Call(ctx, &d.calls, func() (int64, error) {
		conn, err := d.connect(ctx)
		if err != nil {
			return 0, err
		}
		var n int64
		result, err := conn.ExecContext(ctx, text, args...)
		if err == nil {
			n, err = result.RowsAffected()
		}
		if err == nil {
			err = ctx.Err() // as after the COMMIT of a transaction
		}
		if err != nil {
			if !dialect.NotStored(err) {
				err = fmt.Errorf("%w: %w", ErrCommit, err)
			}
			discard(conn)
		}
		_ = conn.Close() // gives it back; nothing is left that could be lost
		return n, err
	}, nil)
	if err != nil {
		return 0, d.explain(ctx, err)
	}
	return n, nil
}
