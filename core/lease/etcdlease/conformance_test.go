package etcdlease

import (
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/lease/leasetest"
	"github.com/snowkey/snowkey/internal/servertest"
)

func TestStoreConforms(t *testing.T) {
	leasetest.Run(t, func(t *testing.T) leasetest.Harness {
		p := shared(t)
		return leasetest.Harness{
			Seed:     1, // the same in every run: a release must not depend on luck
			Open:     func(t *testing.T) leasetest.Store { return p.store(t) },
			SetUntil: p.setUntil,
			Delete:   p.delete,
		}
	})
}

func TestRegisterConforms(t *testing.T) {
	leasetest.RunRegister(t, func(t *testing.T) leasetest.RegisterHarness {
		p := shared(t)
		return leasetest.RegisterHarness{
			Open:   func(t *testing.T) leasestore.Register { return p.store(t).Register() },
			Delete: p.delete,
		}
	})
}

// The test has a server of its own, which it can stop and which requires a password.
func TestStoreConformsWhileItsServerFails(t *testing.T) {
	const secret = "correct horse"
	s := ownServer(t)
	s.protect(t, secret)
	leasetest.Run(t, func(t *testing.T) leasetest.Harness {
		p := s.place
		p.prefix += "-" + token()
		return leasetest.Harness{
			Seed:     1, // as above
			Open:     func(t *testing.T) leasetest.Store { return p.store(t) },
			SetUntil: p.setUntil,
			Delete:   p.delete,
			Restart: func(t *testing.T) {
				s.kill()
				s.start(t)
			},
			Stall: func(t *testing.T) func() { return servertest.Stall(t, s.cmd.Process) },
			LosesReplies: func(t *testing.T) leasetest.Store {
				store, kv := p.hook(t)
				kv.after = func(c call, reply *clientv3.TxnResponse, err error) (*clientv3.TxnResponse, error) {
					if c.writes() && err == nil {
						return nil, rpctypes.ErrTimeoutDueToConnectionLost
					}
					return reply, err
				}
				return store
			},
			Unreachable: func(t *testing.T) leasetest.Store {
				client := p.client(t)
				client.SetEndpoints("127.0.0.1:1")
				return p.storeOn(t, client)
			},
			Secret: secret,
		}
	})
}
