package redislease_test

import (
	"testing"
	"time"

	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/lease/leasetest"
	"github.com/snowkey/snowkey/internal/proof/servers/faultproxy"
	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
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

// TestDurableStoreConforms has a server of its own, which it can stop.
func TestDurableStoreConforms(t *testing.T) {
	const secret = "correct horse"
	s := ownServer(t, "--requirepass", secret, "--appendonly", "yes", "--appendfsync", "always")
	leasetest.Run(t, func(t *testing.T) leasetest.Harness {
		p := s.place
		p.prefix += "-" + token()
		return leasetest.Harness{
			Seed:     1, // the same in every run: a release must not depend on luck
			Open:     func(t *testing.T) leasetest.Store { return p.store(t) },
			SetUntil: p.setUntil,
			Delete:   p.delete,
			Restart: func(t *testing.T) {
				s.kill()
				s.start(t)
			},
			Stall: func(t *testing.T) func() { return servertest.Stall(t, s.cmd.Process) },
			LosesReplies: func(t *testing.T) leasetest.Store {
				silent := p
				silent.options.Addr = losingReplies(t, p.options.Addr, faultproxy.Swallow)
				silent.options.ReadTimeout = time.Minute // the context ends before
				silent.options.MaxRetries = -1
				return silent.store(t)
			},
			Unreachable: func(t *testing.T) leasetest.Store {
				wrong := p
				wrong.options.Password = secret + " battery"
				return wrong.store(t)
			},
			Secret: secret,
		}
	})
}
