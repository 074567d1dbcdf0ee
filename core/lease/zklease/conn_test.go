package zklease

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// A hook makes a call of a Conn, or not, sooner or later, and returns its error or another one. The
// call is named by what it does to a path: get, list, set or create, and of transactions swap,
// which writes a row, make, which makes rows, and prune, which deletes records.
type hook func(name string, call func() error) error

// A faulty Conn makes its calls through a hook.
type faulty struct {
	Conn
	hook hook
}

func (c faulty) Get(path string) (data []byte, stat *zk.Stat, err error) {
	err = c.hook("get "+path, func() error {
		data, stat, err = c.Conn.Get(path)
		return err
	})
	return data, stat, err
}

func (c faulty) Children(path string) (names []string, stat *zk.Stat, err error) {
	err = c.hook("list "+path, func() error {
		names, stat, err = c.Conn.Children(path)
		return err
	})
	return names, stat, err
}

func (c faulty) Set(path string, data []byte, version int32) (stat *zk.Stat, err error) {
	err = c.hook("set "+path, func() error {
		stat, err = c.Conn.Set(path, data, version)
		return err
	})
	return stat, err
}

func (c faulty) Create(path string, data []byte, flags int32, acl []zk.ACL) (made string, err error) {
	err = c.hook("create "+path, func() error {
		made, err = c.Conn.Create(path, data, flags, acl)
		return err
	})
	return made, err
}

func (c faulty) Multi(ops ...any) (replies []zk.MultiResponse, err error) {
	var name string
	switch op := ops[min(1, len(ops)-1)].(type) { // the first one may compare a version
	case *zk.SetDataRequest:
		name = "swap " + op.Path
	case *zk.CreateRequest:
		name = "make " + op.Path
	case *zk.DeleteRequest:
		name = "prune " + op.Path
	}
	err = c.hook(name, func() error {
		replies, err = c.Conn.Multi(ops...)
		return err
	})
	return replies, err
}

// A fault is what goes wrong with one call.
type fault func(call func() error) error

// unsent is a call that has no effect.
func unsent(err error) fault { return func(func() error) error { return err } }

// unanswered is a call that takes effect, which its caller does not learn.
func unanswered(err error) fault {
	return func(call func() error) error {
		_ = call()
		return err
	}
}

// after is a call that takes effect once do has returned.
func after(do func()) fault {
	return func(call func() error) error {
		do()
		return call()
	}
}

// at has one call go wrong.
func at(name string, f fault) hook {
	return func(n string, call func() error) error {
		if n == name {
			return f(call)
		}
		return call()
	}
}

// A canned Conn has the answers of a server on which nothing changes: no write does anything.
type canned struct {
	nodes   map[string][]byte // by path
	version int32             // of each
	session atomic.Int64
}

func (c *canned) SessionID() int64 { return c.session.Load() }

func (c *canned) Get(path string) ([]byte, *zk.Stat, error) {
	data, ok := c.nodes[path]
	if !ok {
		return nil, nil, zk.ErrNoNode
	}
	return data, &zk.Stat{Version: c.version}, nil
}

func (c *canned) Set(string, []byte, int32) (*zk.Stat, error) {
	return &zk.Stat{Mtime: time.Now().UnixMilli()}, nil
}

func (c *canned) Create(path string, _ []byte, _ int32, _ []zk.ACL) (string, error) { return path, nil }
func (c *canned) Children(string) ([]string, *zk.Stat, error)                       { return nil, nil, nil }
func (c *canned) Multi(...any) ([]zk.MultiResponse, error)                          { return nil, nil }

// holding returns a Conn for the prefix /snowkey with a complete space, in which the first rows are
// held: that of worker 0 by c, which has won it with r.
func holding(sp leasestore.Space, held int64) (conn *canned, c leasestore.Claim, r leasestore.Reply) {
	c = claimOf(sp, "me", 0)
	conn = &canned{nodes: map[string][]byte{
		"/snowkey/shop":   encodeLayout(sp.Layout),
		"/snowkey/shop/3": meta{sp.Workers, complete}.encode(),
	}}
	conn.session.Store(1)
	for worker := range sp.Workers {
		row := leasestore.Row{Worker: worker}
		if worker < held {
			row, _ = c.Apply(row, c.Now)
		}
		if worker == 0 {
			r = leasestore.Reply{Row: row, Now: c.Now}
		}
		conn.nodes[fmt.Sprintf("/snowkey/shop/3/%d", worker)] = encodeRow(row)
	}
	return conn, c, r
}
