package etcdlease

import (
	"bytes"
	"context"
	crand "crypto/rand"
	"encoding/hex"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
)

// A place is a server and a prefix that no other test uses on it.
type place struct {
	clientv3.Config
	prefix string
}

// shared returns a place on the server that all tests share.
func shared(t testing.TB) place {
	t.Helper()
	p := place{clientv3.Config{Endpoints: []string{servertest.Etcd(t)}}, "snowkey-test-" + token()}
	t.Cleanup(func() {
		_, err := p.client(t).Delete(context.WithoutCancel(t.Context()), p.prefix, clientv3.WithPrefix())
		if err != nil {
			t.Errorf("the keys of the test remain: %v", err)
		}
	})
	return p
}

// client returns a separate client, which the test closes.
func (p place) client(t testing.TB) *clientv3.Client {
	t.Helper()
	config := p.Config
	config.Logger = zap.NewNop()
	client, err := clientv3.New(config)
	if err != nil {
		t.Fatalf("clientv3.New = %v; want a client", err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func (p place) store(t testing.TB) *Store { return p.storeOn(t, p.client(t)) }

func (p place) storeOn(t testing.TB, client *clientv3.Client) *Store {
	t.Helper()
	s, err := New(client, Config{Prefix: p.prefix})
	if err != nil {
		t.Fatalf("New = %v; want a store", err)
	}
	return s
}

// A hooked KV calls hook before each transaction, and again with its result.
type hooked struct {
	clientv3.KV
	before func(call)
	after  func(call, *clientv3.TxnResponse, error) (*clientv3.TxnResponse, error)
	twice  bool // each write is sent twice, and the first answer is lost
}

// A call is a transaction.
type call struct {
	then []clientv3.Op
}

// writes reports whether the call may write.
func (c call) writes() bool { return slices.ContainsFunc(c.then, clientv3.Op.IsPut) }

type hookedTxn struct {
	clientv3.Txn
	kv   *hooked
	call call
}

func (kv *hooked) Txn(ctx context.Context) clientv3.Txn {
	return &hookedTxn{Txn: kv.KV.Txn(ctx), kv: kv}
}

func (t *hookedTxn) If(all ...clientv3.Cmp) clientv3.Txn { t.Txn = t.Txn.If(all...); return t }

func (t *hookedTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	t.Txn, t.call.then = t.Txn.Then(ops...), ops
	return t
}

func (t *hookedTxn) Else(ops ...clientv3.Op) clientv3.Txn { t.Txn = t.Txn.Else(ops...); return t }

func (t *hookedTxn) Commit() (*clientv3.TxnResponse, error) {
	if t.kv.before != nil {
		t.kv.before(t.call)
	}
	if t.kv.twice && t.call.writes() {
		_, _ = t.Txn.Commit()
	}
	reply, err := t.Txn.Commit()
	if t.kv.after != nil {
		return t.kv.after(t.call, reply, err)
	}
	return reply, err
}

// hook returns a store whose transactions go through a hooked KV.
func (p place) hook(t testing.TB) (*Store, *hooked) {
	client := p.client(t)
	kv := &hooked{KV: client.KV}
	client.KV = kv
	return p.storeOn(t, client), kv
}

// get returns the value of a key.
func (p place) get(t testing.TB, key string) string {
	t.Helper()
	reply, err := p.client(t).Get(t.Context(), key)
	if err != nil || len(reply.Kvs) != 1 {
		t.Fatalf("Get(%s) = %v, %v; want a value", key, reply, err)
	}
	return string(reply.Kvs[0].Value)
}

// put writes a key by hand.
func (p place) put(t testing.TB, key, value string) {
	t.Helper()
	if _, err := p.client(t).Put(t.Context(), key, value); err != nil {
		t.Fatalf("Put(%s) = %v; want no error", key, err)
	}
}

// remove deletes a key by hand.
func (p place) remove(t testing.TB, key string) {
	t.Helper()
	if reply, err := p.client(t).Delete(t.Context(), key); err != nil || reply.Deleted != 1 {
		t.Fatalf("Delete(%s) = %v, %v; want it gone", key, reply, err)
	}
}

// keys names the keys of a space.
func (p place) keys() *register { return &register{prefix: p.prefix} }

// inside returns the register of a store.
func inside(s *Store) *register { return s.Register().(*register) }

// setUntil rewrites a row by hand.
func (p place) setUntil(t *testing.T, sp leasestore.Space, worker int64, until leasestore.Millis) {
	t.Helper()
	key := p.keys().rowKey(sp, worker)
	row, before, ok := decodeRow([]byte(p.get(t, key)))
	if !ok {
		t.Fatalf("the value of %s is %q; want a row", key, p.get(t, key))
	}
	row.Until = until
	p.put(t, key, encodeRow(row, before))
}

// delete deletes a row by hand: its key, or its entry in the list of fresh workers.
func (p place) delete(t *testing.T, sp leasestore.Space, worker int64) {
	t.Helper()
	key := p.keys().freshKey(sp, worker%blocks)
	fresh, ok := decodeFresh([]byte(p.get(t, key)), worker%blocks)
	if i := slices.Index(fresh, worker); ok && i >= 0 {
		p.put(t, key, encode(slices.Delete(fresh, i, i+1)))
		return
	}
	p.remove(t, p.keys().rowKey(sp, worker))
}

func token() string {
	var b [16]byte
	_, _ = crand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

// A server is an etcd of its test's own.
type server struct {
	place
	args []string
	cmd  *exec.Cmd
}

// ownServer starts an etcd on free ports with additional arguments, or skips the test and says
// so.
func ownServer(t *testing.T, args ...string) *server {
	t.Helper()
	return startServer(t, "http", clientv3.Config{}, args...)
}

func startServer(t *testing.T, scheme string, config clientv3.Config, args ...string) *server {
	t.Helper()
	if _, err := exec.LookPath("etcd"); err != nil {
		servertest.Missing(t, "SKIPPED: no etcd to start: ", err)
	}
	clients, peers := scheme+"://127.0.0.1:"+servertest.Port(t), "http://127.0.0.1:"+servertest.Port(t)
	config.Endpoints = []string{clients}
	s := &server{
		place: place{config, "snowkey-test"},
		args: append([]string{
			"--name", "own", "--data-dir", filepath.Join(t.TempDir(), "etcd"), "--bcrypt-cost", "4",
			"--listen-client-urls", clients, "--advertise-client-urls", clients,
			"--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers, "--initial-cluster", "own=" + peers,
		}, args...),
	}
	t.Cleanup(s.kill)
	s.start(t)
	return s
}

func (s *server) start(t *testing.T) {
	t.Helper()
	var output bytes.Buffer // read when the server has ended
	// Not t.Context: the server has to outlive it, because Cleanup stops it.
	s.cmd = exec.CommandContext(context.WithoutCancel(t.Context()), "etcd", s.args...)
	s.cmd.Stdout, s.cmd.Stderr = &output, &output
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	anybody := s.place
	anybody.Username = ""
	client := anybody.client(t)
	for giveUp := time.Now().Add(3 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		_, err := client.Status(ctx, s.Endpoints[0])
		cancel()
		if err == nil {
			return
		}
		if time.Now().After(giveUp) {
			s.kill()
			t.Fatalf("etcd on %s does not answer for three minutes: %v\n%s", s.Endpoints[0], err, &output)
		}
	}
}

// kill ends the server as a crash would.
func (s *server) kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill() // it may have ended
		_ = s.cmd.Wait()         // it was killed
		s.cmd = nil
	}
}

// protect admits only root, with this password.
func (s *server) protect(t *testing.T, password string) {
	t.Helper()
	client := s.client(t)
	_, err := client.UserAdd(t.Context(), "root", password)
	if err == nil {
		_, err = client.UserGrantRole(t.Context(), "root", "root")
	}
	if err == nil {
		_, err = client.AuthEnable(t.Context())
	}
	if err != nil {
		t.Fatalf("a password cannot be set: %v", err)
	}
	s.Username, s.Password = "root", password
}

const minute = leasestore.Millis(60_000)

var four = leasestore.Space{Namespace: "shop", Datacenter: 3, Workers: 4, Layout: "41/5/5/12"}

func claimOf(sp leasestore.Space, only ...int64) leasestore.Claim {
	return leasestore.Claim{
		Space: sp, Only: only, Owner: token(), Nonce: token(), Holder: "web-1",
		Window: minute, Now: leasestore.MillisOf(time.Now()), Skew: minute,
	}
}

func renewalOf(c leasestore.Claim, r leasestore.Reply) leasestore.Renewal {
	now := leasestore.MillisOf(time.Now())
	return leasestore.Renewal{
		Space: c.Space, Worker: r.Row.Worker, Epoch: r.Row.Epoch, Owner: c.Owner,
		Known: []string{r.Row.Nonce}, Nonce: token(), Next: now, Until: r.Row.Until, Window: minute, Now: now, Skew: minute,
	}
}

func releaseOf(c leasestore.Claim, r leasestore.Reply) leasestore.Release {
	return leasestore.Release{
		Space: c.Space, Worker: r.Row.Worker, Epoch: r.Row.Epoch, Owner: c.Owner,
		Known: []string{r.Row.Nonce}, Nonce: token(), End: r.Now + 1,
	}
}

func hold(t *testing.T, s *Store, c leasestore.Claim) leasestore.Reply {
	t.Helper()
	r, err := s.Claim(t.Context(), c)
	if err != nil {
		t.Fatalf("Claim(%+v) = %v; want a row", c, err)
	}
	return r
}

func rowsOf(t *testing.T, s *Store, sp leasestore.Space) []leasestore.Row {
	t.Helper()
	rows, _, err := s.Rows(t.Context(), sp)
	if err != nil {
		t.Fatalf("Rows(%+v) = %v; want rows", sp, err)
	}
	return rows
}
