package zklease

import (
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/lease/leasetest"
	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
)

func TestRegisterPassesTheSuite(t *testing.T) {
	addr := servertest.ZooKeeper(t)
	leasetest.RunRegister(t, func(t *testing.T) leasetest.RegisterHarness {
		p := newSite(t)
		return leasetest.RegisterHarness{
			Open: func(t *testing.T) leasestore.Register { return newStore(t, connect(t, addr), p.config).Register() },
			Delete: func(_ *testing.T, sp leasestore.Space, worker int64) {
				p.remove(p.row(sp, worker))
			},
		}
	})
}

func TestStorePassesTheSuite(t *testing.T) {
	addr := servertest.ZooKeeper(t)
	leasetest.Run(t, func(t *testing.T) leasetest.Harness {
		const secret = "sesame"
		login := loginAs(t, "snowkey", secret+"-open")
		p := newSite(t, login)
		p.config.ACL = zk.DigestACL(zk.PermAll, "snowkey", secret+"-open")
		open := func(t *testing.T) *Store { return newStore(t, connect(t, addr, login), p.config) }
		return leasetest.Harness{
			Seed: 1, // the same in every run: a release must not depend on luck
			Open: func(t *testing.T) leasetest.Store { return open(t) },
			SetUntil: func(_ *testing.T, sp leasestore.Space, worker int64, until leasestore.Millis) {
				p.change(p.row(sp, worker), func(row *leasestore.Row) { row.Until = until })
			},
			Delete: func(_ *testing.T, sp leasestore.Space, worker int64) {
				p.remove(p.row(sp, worker))
			},
			LosesReplies: func(t *testing.T) leasetest.Store {
				deaf := p
				deaf.conn = connect(t, addr, login)
				return deaf.open(func(name string, call func() error) error {
					if strings.HasPrefix(name, "swap ") {
						return unanswered(zk.ErrConnectionClosed)(call)
					}
					return call()
				})
			},
			Unreachable: func(t *testing.T) leasetest.Store {
				return newStore(t, dial(t, "127.0.0.1:1"), p.config)
			},
			Secret: secret,
		}
	})
}
