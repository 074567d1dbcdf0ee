package zklease

import (
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/go-zookeeper/zk"

	"github.com/snowkey/snowkey/core/lease"
)

// A Conn is a connection to ZooKeeper. [*zk.Conn] is one; see there for what the
// methods do. It must be safe for concurrent use, and send a request once at most. A
// write that a wrapper repeats meets its own first version. It would be reported as
// refused though it was done.
type Conn interface {
	Get(path string) ([]byte, *zk.Stat, error)
	Set(path string, data []byte, version int32) (*zk.Stat, error)
	Create(path string, data []byte, flags int32, acl []zk.ACL) (string, error)
	Children(path string) ([]string, *zk.Stat, error)
	Multi(ops ...any) ([]zk.MultiResponse, error)
}

var _ Conn = (*zk.Conn)(nil)

// A pending is a call on its way.
//
// The calls of a Conn know no context, and may take long. While the client has no
// connection it keeps some requests, to send them when it has one again. The callers of
// other requests wait until theirs are kept. So each call runs in a goroutine of its
// own, which ends when the call does. A call ends when there is an answer, when the
// connection breaks, when all servers have been tried in vain, or when the client is
// closed.
//
// Its caller may leave earlier. What the call then does is unknown to the caller, and
// harmless. A late write of a row names the version that it was meant for, and so does
// a late making of rows.
type pending[T any] struct {
	what string
	done chan outcome[T] // has room: the goroutine never waits for a reader
}

type outcome[T any] struct {
	value T
	err   error
}

// start begins a call, unless ctx has ended.
func start[T any](ctx context.Context, what string, call func() (T, error)) pending[T] {
	p := pending[T]{what: what, done: make(chan outcome[T], 1)}
	if err := ctx.Err(); err != nil {
		p.done <- outcome[T]{err: err}
		return p
	}
	go func() {
		value, err := call()
		p.done <- outcome[T]{value, err}
	}()
	return p
}

// wait returns what the call has returned, or the error of ctx.
func (p pending[T]) wait(ctx context.Context) (T, error) {
	var o outcome[T]
	select {
	case o = <-p.done:
	case <-ctx.Done():
		o.err = ctx.Err()
	}
	if o.err != nil {
		var none T
		err := fmt.Errorf("zklease: %s: %w", p.what, o.err)
		if errors.Is(err, zk.ErrNoAuth) || errors.Is(err, zk.ErrInvalidACL) {
			err = lease.Permanent(err)
		}
		return none, err
	}
	return o.value, nil
}

// A node is a znode as it was read.
type node struct {
	exists  bool
	data    []byte
	version int32
}

// errVersions is the end of a znode's version numbers. To ZooKeeper -1 means "any
// version". Negative numbers come after the 2,147,483,647th write, which is fifty years
// of one each 0.75 s.
var errVersions = errors.New("the znode has run out of versions")

// get reads a znode. A follower that is behind may answer. What is read may be old, and
// what is missing may exist by now.
func (s *Store) get(ctx context.Context, path string) pending[node] {
	return start(ctx, "get "+path, func() (node, error) {
		data, stat, err := s.conn.Get(path)
		switch {
		case errors.Is(err, zk.ErrNoNode):
			return node{}, nil
		case err != nil:
			return node{}, err
		case stat.Version < 0:
			return node{}, errVersions
		}
		return node{true, data, stat.Version}, nil
	})
}

// set writes a znode if it has the version. An error that matches
// zk.ErrBadVersion or zk.ErrNoNode is certain: nothing was written.
func (s *Store) set(ctx context.Context, path string, data []byte, version int32) error {
	_, err := start(ctx, "set "+path, func() (*zk.Stat, error) {
		return s.conn.Set(path, data, version)
	}).wait(ctx)
	return err
}

// confirm asks whether a znode has the version, -1 for any, by a transaction. A
// follower answers a read from what it happens to know. A transaction is decided by the
// leader and a majority. nil, zk.ErrBadVersion and zk.ErrNoNode are certain answers.
//
// Sync and a second read would be the other way. It is no better where it matters. A
// leader that was deposed and does not know it yet may answer a sync. A session that is
// replaced in between may go on at a server that is behind.
func (s *Store) confirm(ctx context.Context, path string, version int32) error {
	_, err := start(ctx, "check "+path, func() ([]zk.MultiResponse, error) {
		return s.conn.Multi(&zk.CheckVersionRequest{Path: path, Version: version})
	}).wait(ctx)
	return err
}

// tick returns the store's clock.
//
// ZooKeeper has no command for the time. But the leader stamps every write with its own
// clock, and the reply to a set has that stamp, mtime. So a small znode is set for the
// sake of the stamp. Three other ways were rejected. The servers' command srvr takes
// another connection, and is often forbidden. The dates of other znodes tell when
// somebody else has written. The stamp of the write of the row itself comes too late,
// as the time is needed to decide what to write.
//
// The reply also says that there was a leader with a majority just now. And the server
// on this connection has seen everything up to then. So what is read after it, in the
// same session, is at least as new.
//
// All spaces below Base share the znode. It is set at any version, so nobody stands in
// another's way. Nor does it matter when its version overflows. A thousand leases with
// a window of a minute set it 67 times per second.
func (s *Store) tick(ctx context.Context) pending[lease.Millis] {
	return start(ctx, "set "+s.clock, func() (lease.Millis, error) {
		for {
			stat, err := s.conn.Set(s.clock, []byte{}, -1)
			switch {
			case err == nil:
				return lease.Millis(stat.Mtime), nil
			case !errors.Is(err, zk.ErrNoNode):
				return 0, err
			}
			if err := s.create(ctx, s.clock, []byte{}); err != nil {
				return 0, err
			}
		}
	})
}

// create makes a persistent znode, and those above it, where they do not exist yet. It
// is called within a call, and sends nothing once ctx has ended.
//
// It works from the bottom up. A user who may not create anything in / could otherwise
// not even find out that the upper part of the path is there.
func (s *Store) create(ctx context.Context, name string, data []byte) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		_, err := s.conn.Create(name, data, zk.FlagPersistent, s.acl)
		switch parent := path.Dir(name); {
		case err == nil || errors.Is(err, zk.ErrNodeExists):
			return nil
		case !errors.Is(err, zk.ErrNoNode) || parent == "/":
			return fmt.Errorf("create %s: %w", name, err)
		default:
			if err := s.create(ctx, parent, []byte{}); err != nil {
				return err
			}
		}
	}
}
