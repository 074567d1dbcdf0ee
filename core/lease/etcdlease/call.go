package etcdlease

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/internal/wait"
)

// ErrReadOnly is matched by the error of an operation on servers that take no writes.
// Their space is used up, or their data is corrupt, and an operator has to disarm the
// alarm.
var ErrReadOnly = errors.New("the servers take no writes")

var (
	readOnly  = []error{rpctypes.ErrNoSpace, rpctypes.ErrCorrupt}
	permanent = []error{rpctypes.ErrPermissionDenied, rpctypes.ErrUserEmpty, rpctypes.ErrAuthFailed}
)

// commit runs a transaction: then if all of same hold, otherwise else. Its errors say
// nothing about whether it was done.
//
// The client sends a write once. It sends it again only if it had no connection the first
// time. A server that has no leader must refuse at once, so that the client asks another.
// The call ends with ctx, and leaves nothing behind.
func (s *Store) commit(ctx context.Context, what string, same []clientv3.Cmp, then, otherwise []clientv3.Op) (*clientv3.TxnResponse, error) {
	err := ctx.Err()
	if err == nil {
		var reply *clientv3.TxnResponse
		reply, err = s.kv.Txn(clientv3.WithRequireLeader(ctx)).If(same...).Then(then...).Else(otherwise...).Commit()
		if err == nil {
			return reply, nil
		}
	}
	matches := func(target error) bool { return errors.Is(err, target) }
	switch {
	case slices.ContainsFunc(readOnly, matches):
		err = fmt.Errorf("%w: %w", ErrReadOnly, err)
	case matches(rpctypes.ErrTooManyOps):
		err = lease.Permanent(fmt.Errorf("%w: want the servers' --max-txn-ops to be 128, its default, or more", err))
	case slices.ContainsFunc(permanent, matches):
		err = lease.Permanent(err)
	}
	return nil, fmt.Errorf("etcdlease: %s: %w", what, wait.Cause(ctx, err))
}
