package zklease

import (
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/go-zookeeper/zk"

	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/internal/base/wait"
)

// A Conn is a connection to ZooKeeper, as [*zk.Conn] is one; its methods are described there.
//
// It must be safe for concurrent use, and must send each request at most once. A wrapper that
// repeats a write meets the write's own first version, and the write is reported as refused
// although it was done.
type Conn interface {
	SessionID() int64
	Get(path string) ([]byte, *zk.Stat, error)
	Set(path string, data []byte, version int32) (*zk.Stat, error)
	Create(path string, data []byte, flags int32, acl []zk.ACL) (string, error)
	Children(path string) ([]string, *zk.Stat, error)
	Multi(ops ...any) ([]zk.MultiResponse, error)
}

var _ Conn = (*zk.Conn)(nil)

// A pending is a call under way.
//
// The calls of a Conn take no context and may block for long: while the client has no
// connection, it keeps some requests to send them later, and blocks the callers of others.
// Each call therefore runs in a goroutine of its own, which ends when the server answers, when
// the connection breaks, when the client has tried every server without success, or when the client is
// closed.
//
// Its caller may leave earlier, with no knowledge of the outcome. That is harmless, because a
// row is only written, and rows are only made, if a znode still has the version that was read.
type pending[T any] struct {
	what   string
	answer func(context.Context) (T, error)
}

// start begins a call, unless ctx has ended.
func start[T any](ctx context.Context, what string, call func() (T, error)) pending[T] {
	if err := ctx.Err(); err != nil {
		call = func() (none T, _ error) { return none, err }
	}
	return pending[T]{what, wait.Start(call)}
}

// wait returns the result of the call, or the error of ctx if ctx ends first.
func (p pending[T]) wait(ctx context.Context) (T, error) {
	value, err := p.answer(ctx)
	if err == nil {
		return value, nil
	}
	err = fmt.Errorf("zklease: %s: %w", p.what, err)
	if errors.Is(err, zk.ErrNoAuth) || errors.Is(err, zk.ErrInvalidACL) {
		err = leasestore.Permanent(err)
	}
	var none T
	return none, err
}

// A node is a znode as it was read.
type node struct {
	exists   bool
	data     []byte
	version  int32
	children int32
}

// errVersions is returned for a znode that was written 2,147,483,647 times, which takes fifty
// years at one write each 0.75 s. Its next versions are negative, and in a request ZooKeeper
// takes -1 for "any version".
var errVersions = errors.New("the znode has run out of versions")

// get reads a znode. A follower that lags may answer, so that the data may be old, and a znode
// that is reported missing may exist.
func (r *register) get(ctx context.Context, path string) pending[node] {
	return start(ctx, "get "+path, func() (node, error) {
		data, stat, err := r.conn.Get(path)
		switch {
		case errors.Is(err, zk.ErrNoNode):
			return node{}, nil
		case err != nil:
			return node{}, err
		case stat.Version < 0:
			return node{}, errVersions
		}
		return node{true, data, stat.Version, stat.NumChildren}, nil
	})
}

// tick returns the store's clock.
//
// ZooKeeper has no command for the time, but the leader stamps every write with its own clock,
// and the reply to a set contains the stamp, mtime. A small znode is therefore set for the sake
// of its stamp. Rejected were the servers' command srvr, which needs another connection and is
// often forbidden; the dates of other znodes, which tell when somebody else has written; and
// the stamp of the row's own write, which comes after the decision what to write.
//
// The reply also proves that there was a leader with a majority, and that the server on this
// connection has applied everything up to the stamp.
//
// All spaces below the prefix share the znode. It is set at any version, so that no two
// processes are in each other's way and an overflow of its version is harmless. A thousand
// leases with a window of a minute set it 67 times per second.
func (r *register) tick(ctx context.Context) pending[leasestore.Millis] {
	return start(ctx, "set "+r.clock, func() (leasestore.Millis, error) {
		for {
			stat, err := r.conn.Set(r.clock, []byte{}, -1)
			switch {
			case err == nil:
				return leasestore.Millis(stat.Mtime), nil
			case !errors.Is(err, zk.ErrNoNode):
				return 0, err
			}
			if err := r.create(ctx, r.clock, []byte{}); err != nil {
				return 0, err
			}
		}
	})
}

// create makes a persistent znode and its missing ancestors. It runs within a call, and sends
// nothing once ctx has ended.
//
// It works from the bottom up, because a user without rights in / could not even find out
// that the upper part of the path exists.
func (r *register) create(ctx context.Context, name string, data []byte) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		_, err := r.conn.Create(name, data, zk.FlagPersistent, r.acl)
		switch parent := path.Dir(name); {
		case err == nil || errors.Is(err, zk.ErrNodeExists):
			return nil
		case !errors.Is(err, zk.ErrNoNode) || parent == "/":
			return fmt.Errorf("create %s: %w", name, err)
		default:
			if err := r.create(ctx, parent, []byte{}); err != nil {
				return err
			}
		}
	}
}
