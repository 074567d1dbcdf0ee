package etcdlease

import (
	"flag"
	"path"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/lease/leasetest"
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

			LosesReplies: p.losesReplies,
		}
	})
}

// losesReplies returns a store that writes and does not learn of it.
func (p place) losesReplies(t *testing.T) leasetest.Store {
	store, kv := p.hook(t)
	kv.after = func(c call, reply *clientv3.TxnResponse, err error) (*clientv3.TxnResponse, error) {
		if c.writes() && err == nil {
			return nil, rpctypes.ErrTimeoutDueToConnectionLost
		}
		return reply, err
	}
	return store
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

// suiteAll is for the night.
var suiteAll = flag.Bool("suite.all", false, "run the whole suite on the server that fails too, and not only what needs such a server")

// onItsOwn skips what the suite checks on the shared server too, unless the flag is set. It takes
// the name of a claim that needs a server of the test's own off the list.
func onItsOwn(t *testing.T, needs *[]string) {
	t.Helper()
	i := slices.Index(*needs, path.Base(t.Name()))
	if i >= 0 {
		*needs = slices.Delete(*needs, i, i+1)
	} else if !*suiteAll {
		t.Skip("TestStoreConforms checks this; here it runs with -suite.all")
	}
}

// wantNone fails the test if names are left on the list, which the suite has no more. With a slash,
// -run has chosen among them.
func wantNone(t *testing.T, needs []string) {
	t.Helper()
	if len(needs) > 0 && !strings.Contains(flag.Lookup("test.run").Value.String(), "/") {
		t.Errorf("the suite has not run %q; want these names, or their new ones", needs)
	}
}

// The test has a server of its own, which it can stop and which requires a password.
func TestStoreConformsWhileItsServerFails(t *testing.T) {
	const secret = "correct horse"
	s := ownServer(t)
	s.protect(t, secret)
	needs := []string{"EndingContextEndsTheCall", "RowsSurviveARestart", "UnreachableStoreKeepsItsSecret"}
	leasetest.Run(t, func(t *testing.T) leasetest.Harness {
		onItsOwn(t, &needs)
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
			Stall:        func(t *testing.T) func() { return servertest.Stall(t, s.cmd.Process) },
			LosesReplies: p.losesReplies,
			Unreachable: func(t *testing.T) leasetest.Store {
				client := p.client(t)
				client.SetEndpoints("127.0.0.1:1")
				return p.storeOn(t, client)
			},
			Secret: secret,
		}
	})
	wantNone(t, needs)
}
