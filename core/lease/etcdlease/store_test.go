package etcdlease

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
)

func TestNewRefusesWhatCannotWork(t *testing.T) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	for _, test := range []struct {
		name   string
		client *clientv3.Client
		prefix string
		want   string
	}{
		{"no client", nil, "", "client"},
		{"a space", client, "a b", "Config.Prefix"},
		{"a letter of others", client, "é", "Config.Prefix"},
		{"a slash at the end", client, "a/", "Config.Prefix"},
		{"a long prefix", client, strings.Repeat("a", 65), "Config.Prefix"},
		{"a very long prefix", client, strings.Repeat("a", 999), "Config.Prefix"},
	} {
		s, err := New(test.client, Config{Prefix: test.prefix})
		var invalid *core.ValueError
		if s != nil || !errors.As(err, &invalid) || invalid.Name != test.want || !strings.HasPrefix(err.Error(), "etcdlease: ") || len(err.Error()) > 200 {
			t.Errorf("New with %s = %v, %v; want nil, a *core.ValueError about %s", test.name, s, err, test.want)
		}
	}
	if _, err := New(client, Config{Prefix: strings.Repeat("/aZ0._-:", 8)}); err != nil {
		t.Errorf("New with a prefix of 64 = %v; want a store", err)
	}
}

// once returns a hook that calls do before the first write of a row.
func once(do func()) func(call) {
	var first sync.Once
	return func(c call) {
		if c.writes() {
			first.Do(do)
		}
	}
}

// A claim is delayed while its row is claimed by another process and deleted. It must not make
// the row anew, because what the row had reserved would be forgotten.
func TestLateFirstClaimDoesNotMakeADeletedRowAnew(t *testing.T) {
	p := shared(t)
	other := p.store(t)
	hold(t, other, claimOf(four, 0)) // makes the space
	s, kv := p.hook(t)
	kv.before = once(func() {
		hold(t, other, claimOf(four, 2))
		p.remove(t, p.keys().rowKey(four, 2))
	})
	if r, err := s.Claim(t.Context(), claimOf(four, 2)); !errors.Is(err, leasestore.ErrNoFreeWorker) {
		t.Errorf("Claim(Only 2) of a row that was deleted meanwhile = %+v, %v; want no free worker", r, err)
	}
	if rows := rowsOf(t, s, four); len(rows) != 3 {
		t.Errorf("Rows = %+v; want 3, and none of worker 2", rows)
	}
}

// The key of a row is deleted and made anew while a renewal is under way, which leaves its
// version unchanged.
func TestKeyThatWasMadeAnewIsNotTheOneThatWasRead(t *testing.T) {
	p := shared(t)
	c := claimOf(four, 1)
	s, kv := p.hook(t)
	r := hold(t, s, c)
	key := p.keys().rowKey(four, 1)
	another := r.Row
	another.Owner, another.Epoch = token(), another.Epoch+1
	kv.before = once(func() {
		p.remove(t, key)
		p.put(t, key, encodeRow(another, 0))
	})
	var lost *leasestore.LostError
	if _, err := s.Renew(t.Context(), renewalOf(c, r)); !errors.As(err, &lost) || lost.Reason != leasestore.TakenOver {
		t.Errorf("Renew of a key that was made anew = %v; want the row lost: %s", err, leasestore.TakenOver)
	}
	if rows := rowsOf(t, s, four); rows[1] != another {
		t.Errorf("Rows[1] = %+v; want %+v", rows[1], another)
	}
}

// A serializable read could be answered by a member of the cluster that lags.
func TestNoReadIsSerializable(t *testing.T) {
	p := shared(t)
	s, kv := p.hook(t)
	reads := 0
	kv.before = func(c call) {
		for _, op := range c.then {
			if op.IsGet() {
				reads++
			}
			if op.IsSerializable() {
				t.Errorf("a read of %s is serializable; want it linearizable", op.KeyBytes())
			}
		}
	}
	c := claimOf(four)
	r := hold(t, s, c)
	if _, err := s.Renew(t.Context(), renewalOf(c, r)); err != nil {
		t.Errorf("Renew = %v; want no error", err)
	}
	rowsOf(t, s, four)
	if err := s.Fence(t.Context(), leasestore.Fencing{Space: four, Nonce: token()}); err != nil {
		t.Errorf("Fence = %v; want no error", err)
	}
	if reads < 10 {
		t.Errorf("%d reads were seen; want at least 10", reads)
	}
}

// A proxy sends each write twice and drops the first answer. The write might as well come from
// a copy of the process, so the outcome is unknown, and the lease remembers the nonce.
func TestWriteThatIsSentTwiceIsDoneOnceAndUnknown(t *testing.T) {
	p := shared(t)
	s, kv := p.hook(t)
	c := claimOf(four, 1)
	claimed := hold(t, s, c)
	unknown := func(name string, err error) {
		t.Helper()
		if err == nil || errors.Is(err, leasestore.ErrLost) || errors.Is(err, leasestore.ErrNoFreeWorker) {
			t.Errorf("%s = error %v; want its outcome unknown", name, err)
		}
	}
	kv.twice = true
	again := claimOf(four, 2)
	_, err := s.Claim(t.Context(), again)
	unknown("Claim", err)
	r := renewalOf(c, claimed)
	_, err = s.Renew(t.Context(), r)
	unknown("Renew", err)
	kv.twice = false
	next := renewalOf(c, claimed)
	next.Known = append(next.Known, r.Nonce)
	renewed, err := s.Renew(t.Context(), next)
	if err != nil || renewed.Row.Renewals != 3 {
		t.Fatalf("Renew(%+v) by who knows the nonce of the last = %+v, %v; want the third write", next, renewed, err)
	}
	kv.twice = true
	unknown("Release", s.Release(t.Context(), releaseOf(c, renewed)))
	rows := rowsOf(t, s, four)
	if row := rows[1]; row.Owner != "" || row.Epoch != 2 || row.Renewals != 4 {
		t.Errorf("the row is %+v; want it written four times", row)
	}
	if row := rows[2]; row.Owner != again.Owner || row.Renewals != 1 {
		t.Errorf("the row of the claim is %+v; want it claimed once", row)
	}
}

// A request without a nonce cannot be told from a row that was never written.
func TestRequestWithoutNonceIsNotTakenForDone(t *testing.T) {
	p := shared(t)
	s := p.store(t)
	hold(t, s, claimOf(four, 0))
	r := leasestore.Renewal{Space: four, Worker: 1, Owner: "me", Epoch: 1, Window: minute}
	if reply, err := s.Renew(t.Context(), r); !errors.Is(err, leasestore.ErrLost) {
		t.Errorf("Renew(%+v) of a row that was never claimed = %+v, %v; want it lost", r, reply, err)
	}
}

// A fence raises every row while some of them change.
func TestFenceOfManyRowsMeetsWriters(t *testing.T) {
	p := shared(t)
	sp := four
	sp.Workers = 2000
	other := p.store(t)
	s, kv := p.hook(t)
	var first sync.Once
	kv.before = func(c call) {
		// Skip the write that makes the space: only those that fence are of interest.
		if c.writes() && len(c.then) < 3 {
			first.Do(func() { hold(t, other, claimOf(sp, 1999)) })
		}
	}
	f := leasestore.Fencing{Space: sp, Nonce: token(), Until: leasestore.MillisOf(time.Now()) + minute}
	if err := s.Fence(t.Context(), f); err != nil {
		t.Fatalf("Fence = %v; want no error", err)
	}
	rows := rowsOf(t, s, sp)
	for i, row := range rows {
		if row.Worker != int64(i) || row.Owner != "" || row.Nonce != f.Nonce || row.Until < f.Until {
			t.Fatalf("row %d after Fence = %+v; want it fenced until %d", i, row, f.Until)
		}
	}
	if len(rows) != 2000 || rows[1999].Epoch != 2 {
		t.Errorf("Rows = %d rows, row 1999 %+v; want 2,000, and the epochs of a claim and a fence", len(rows), rows[1999])
	}
}

// A handle that was open before its server restarted goes on, although the server has forgotten
// who had logged in.
func TestStoreGoesOnAfterARestart(t *testing.T) {
	server := ownServer(t)
	server.protect(t, "sesame")
	s := server.store(t)
	c := claimOf(four)
	r := hold(t, s, c)
	server.kill()
	if _, err := s.Renew(t.Context(), renewalOf(c, r)); err == nil || errors.Is(err, leasestore.ErrLost) || errors.Is(err, leasestore.ErrPermanent) {
		t.Errorf("Renew without a server = %v; want an error that says nothing of the row", err)
	}
	server.start(t)
	for giveUp := time.Now().Add(3 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		_, err := s.Renew(t.Context(), renewalOf(c, r))
		if err == nil {
			return
		}
		if errors.Is(err, leasestore.ErrLost) || errors.Is(err, leasestore.ErrPermanent) || time.Now().After(giveUp) {
			t.Fatalf("Renew after a restart = %v; want it done within three minutes", err)
		}
	}
}

func TestErrorOfAnEndedContextIsNamed(t *testing.T) {
	server := ownServer(t)
	s := server.store(t)
	inside(s).clock = func(context.Context) (time.Time, error) { return time.Now(), nil } // so that only the client is used
	c := claimOf(four)
	r := hold(t, s, c)
	resume := servertest.Stall(t, server.cmd.Process)
	defer resume()
	for name, limit := range map[string]func() (context.Context, context.CancelFunc, error){
		"deadline": func() (context.Context, context.CancelFunc, error) {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			return ctx, cancel, context.DeadlineExceeded
		},
		"cancel": func() (context.Context, context.CancelFunc, error) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(50*time.Millisecond, cancel)
			return ctx, cancel, context.Canceled
		},
		"done": func() (context.Context, context.CancelFunc, error) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			return ctx, cancel, context.Canceled
		},
	} {
		ctx, cancel, want := limit()
		_, err := s.Renew(ctx, renewalOf(c, r))
		cancel()
		if !errors.Is(err, want) || !strings.HasPrefix(err.Error(), "etcdlease: ") {
			t.Errorf("%s: Renew = %v; want an error that matches %v", name, err, want)
		}
	}
}

func TestUserWithoutRightsIsAPermanentError(t *testing.T) {
	server := ownServer(t)
	client := server.client(t)
	_, err := client.UserAdd(t.Context(), "joe", "open sesame")
	server.protect(t, "secret")
	if err != nil {
		t.Fatal(err)
	}
	joe := server.place
	joe.Username, joe.Password = "joe", "open sesame"
	_, err = joe.store(t).Claim(t.Context(), claimOf(four))
	if !errors.Is(err, leasestore.ErrPermanent) || !strings.HasPrefix(err.Error(), "etcdlease: find: ") || strings.Contains(err.Error(), "sesame") {
		t.Errorf("Claim by a user without rights = %v; want an error that matches lease.ErrPermanent", err)
	}
	nobody := server.place
	nobody.Username, nobody.Password = "", ""
	if _, err := nobody.store(t).Claim(t.Context(), claimOf(four)); !errors.Is(err, leasestore.ErrPermanent) {
		t.Errorf("Claim by nobody = %v; want an error that matches lease.ErrPermanent", err)
	}

	// The role that the package comment describes.
	root := server.client(t)
	_, err = root.RoleAdd(t.Context(), "leases")
	if err == nil {
		_, err = root.RoleGrantPermission(t.Context(), "leases", server.prefix+"/", clientv3.GetPrefixRangeEnd(server.prefix+"/"), clientv3.PermissionType(clientv3.PermReadWrite))
	}
	if err == nil {
		_, err = root.UserGrantRole(t.Context(), "joe", "leases")
	}
	if err != nil {
		t.Fatal(err)
	}
	s := joe.store(t)
	c := claimOf(four)
	r := hold(t, s, c)
	if err := s.Release(t.Context(), releaseOf(c, r)); err != nil {
		t.Errorf("Release by a user with the role = %v; want no error", err)
	}
	rowsOf(t, s, four)
}

func TestServersThatTakeNoWritesAreAClearError(t *testing.T) {
	server := ownServer(t, "--quota-backend-bytes", "100000")
	s := server.store(t)
	c := claimOf(four)
	r := hold(t, s, c)
	// The server updates the size of its file when it commits, every 100 ms, in which a fast
	// machine writes many times the quota.
	client := server.client(t)
	var full error
	for full == nil {
		_, full = client.Put(t.Context(), "other", strings.Repeat("x", 10_000))
	}
	if !errors.Is(full, rpctypes.ErrNoSpace) {
		t.Fatalf("Put into a full server = %v; want %v", full, rpctypes.ErrNoSpace)
	}
	if _, err := s.Renew(t.Context(), renewalOf(c, r)); !errors.Is(err, ErrReadOnly) || errors.Is(err, leasestore.ErrLost) {
		t.Errorf("Renew without space = %v; want an error that matches ErrReadOnly", err)
	}
	if rows := rowsOf(t, s, four); !slices.Contains(rows, r.Row) {
		t.Errorf("Rows without space = %+v; want %+v among them", rows, r.Row)
	}
}

func TestServerWithSmallTransactionsIsAPermanentError(t *testing.T) {
	s := ownServer(t, "--max-txn-ops", "20").store(t)
	sp := four
	sp.Workers = 1024
	if _, err := s.Claim(t.Context(), claimOf(sp)); !errors.Is(err, leasestore.ErrPermanent) || !strings.Contains(err.Error(), "max-txn-ops") {
		t.Errorf("Claim with --max-txn-ops 20 = %v; want an error that names it and matches lease.ErrPermanent", err)
	}
}
