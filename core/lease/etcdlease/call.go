package etcdlease

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/internal/base/wait"
)

// ErrReadOnly is matched by the error of an operation on servers that take no writes, because
// their space is used up or their data is corrupt. An operator has to disarm the alarm.
var ErrReadOnly = errors.New("the servers take no writes")

// commit runs a transaction that executes then if every comparison in same holds, and otherwise
// the operations in otherwise. An error leaves open whether it was executed.
//
// The client sends a write once, and again only if it had no connection the first time. A
// server without a leader must refuse at once, so that the client asks another one. The call
// ends with ctx and leaves nothing behind.
func (r *register) commit(ctx context.Context, what string, same []clientv3.Cmp, then, otherwise []clientv3.Op) (*clientv3.TxnResponse, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("etcdlease: %s: %w", what, err)
	}
	reply, err := r.kv.Txn(clientv3.WithRequireLeader(ctx)).If(same...).Then(then...).Else(otherwise...).Commit()
	switch {
	case err == nil:
		return reply, nil
	case errors.Is(err, rpctypes.ErrNoSpace), errors.Is(err, rpctypes.ErrCorrupt):
		err = fmt.Errorf("%w: %w", ErrReadOnly, err)
	case errors.Is(err, rpctypes.ErrTooManyOps):
		err = leasestore.Permanent(fmt.Errorf("%w: want the servers' --max-txn-ops to be 128, its default, or more", err))
	case errors.Is(err, rpctypes.ErrPermissionDenied), errors.Is(err, rpctypes.ErrUserEmpty), errors.Is(err, rpctypes.ErrAuthFailed):
		err = leasestore.Permanent(err)
	}
	return nil, fmt.Errorf("etcdlease: %s: %w", what, wait.Cause(ctx, err))
}
