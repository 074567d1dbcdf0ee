package redislease_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/lease/redislease"
	"github.com/snowkey/snowkey/internal/proof/servers/faultproxy"
)

// The types that the comment of Client lists.
var (
	_ redislease.Client = (*redis.Client)(nil)
	_ redislease.Client = (*redis.ClusterClient)(nil)
	_ redislease.Client = (*redis.Ring)(nil)
	_ redislease.Client = redis.UniversalClient(nil)
)

func TestNewRefusesWhatCannotWork(t *testing.T) {
	client := redis.NewClient(&redis.Options{})
	defer client.Close()
	for _, test := range []struct {
		name   string
		client redislease.Client
		prefix string
		want   string
	}{
		{"no client", nil, "", "client"},
		{"a nil client", (*redis.Client)(nil), "", "client"},
		{"a pipeline", client.Pipeline(), "", "client"},
		{"a transaction", client.TxPipeline(), "", "client"},
		{"a brace", client, "a{b", "Config.Prefix"},
		{"a closing brace", client, "a}b", "Config.Prefix"},
		{"a space", client, "a b", "Config.Prefix"},
		{"a letter of others", client, "é", "Config.Prefix"},
		{"a long prefix", client, strings.Repeat("a", 65), "Config.Prefix"},
	} {
		s, err := redislease.New(test.client, redislease.Config{Prefix: test.prefix})
		var invalid *core.ValueError
		if s != nil || !errors.As(err, &invalid) || invalid.Name != test.want || !strings.HasPrefix(err.Error(), "redislease: ") {
			t.Errorf("New with %s = %v, %v; want nil, a *core.ValueError about %s", test.name, s, err, test.want)
		}
	}
	if _, err := redislease.New(client, redislease.Config{Prefix: strings.Repeat("aZ0._-:/", 8)}); err != nil {
		t.Errorf("New with a prefix of 64 = %v; want a store", err)
	}
}

func TestStoreSaysThatItLosesWrites(t *testing.T) {
	if s := (place{redis.Options{}, "x"}).store(t); !s.LosesWrites() {
		t.Error("LosesWrites() = false; want true")
	}
}

func TestServerThatEvictsRowsIsRefused(t *testing.T) {
	server := ownServer(t)
	s := server.store(t)
	in := space("n", 2)
	for _, policy := range []string{"allkeys-lru", "allkeys-lfu", "allkeys-random"} {
		server.do(t, "CONFIG", "SET", "maxmemory-policy", policy)
		if _, err := s.Claim(t.Context(), newClaim(in)); !errors.Is(err, redislease.ErrEvicts) || !errors.Is(err, leasestore.ErrPermanent) || !strings.Contains(err.Error(), policy) {
			t.Errorf("Claim under %s = %v; want an error that matches ErrEvicts and names it", policy, err)
		}
		if rows := rowsOf(t, s, in); len(rows) != 0 {
			t.Errorf("rows after a refused claim = %+v; want none", rows)
		}
	}
	for i, policy := range []string{"noeviction", "volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl"} {
		server.do(t, "CONFIG", "SET", "maxmemory-policy", policy)
		if _, err := s.Claim(t.Context(), newClaim(space(fmt.Sprint("n", i), 1))); err != nil {
			t.Errorf("Claim under %s = %v; want a row", policy, err)
		}
	}
}

func TestUnknownEvictionPolicyIsAWarning(t *testing.T) {
	server := ownServer(t)
	// The commands that the package comment lists, except INFO.
	server.do(t, "ACL", "SETUSER", "joe", "on", ">secret", "~snowkey:*", "+eval", "+evalsha",
		"+hdel", "+hexists", "+hget", "+hgetall", "+hmget", "+hset", "+exists", "+time")
	options := server.options
	options.Username, options.Password = "joe", "secret"
	joe := place{options, server.prefix}
	var log bytes.Buffer
	s, err := redislease.New(joe.client(t), redislease.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		in := space("n", 2)
		c := newClaim(in)
		back := release(c, mustRenew(t, s, renewal(c, mustClaim(t, s, c))))
		back.Known = nil
		if err := s.Release(t.Context(), back); !errors.Is(err, leasestore.ErrLost) {
			t.Errorf("Release(%+v) = %v; want an error that matches lease.ErrLost", back, err)
		}
		rowsOf(t, s, in)
	}
	if got := log.String(); strings.Count(got, "level=WARN") != 1 || !strings.Contains(got, "maxmemory-policy") {
		t.Errorf("log after 2 claims = %q; want one warning about the maxmemory-policy", got)
	}

	log.Reset()
	s, err = redislease.New(server.client(t), redislease.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	mustClaim(t, s, newClaim(space("n2", 2)))
	if log.Len() > 0 {
		t.Errorf("log of a claim that could read the policy = %q; want none", log.String())
	}
}

// Redis refuses writes when its memory is full, but not to a script that has written before, as
// the write that changes nothing does. This is welcome, because a lease must not end when
// others fill the server.
func TestFullMemoryStopsNoLease(t *testing.T) {
	server := ownServer(t)
	s := server.store(t)
	in := space("n", 2)
	c := newClaim(in)
	held := mustClaim(t, s, c)
	server.do(t, "CONFIG", "SET", "maxmemory", "1")
	if err := server.client(t).Set(t.Context(), "a", "b", 0).Err(); err == nil || !strings.Contains(err.Error(), "OOM") {
		t.Fatalf("SET with the memory full = %v; want OOM, or the test shows nothing", err)
	}
	mustRenew(t, s, renewal(c, held))
	mustClaim(t, s, newClaim(in))
}

// With this setting a primary that is cut off from its replicas refuses writes.
func TestPrimaryWithoutReplicasRefusesIfToldSo(t *testing.T) {
	server := ownServer(t)
	s := server.store(t)
	in := space("n", 2)
	c := newClaim(in)
	held := mustClaim(t, s, c)
	before := rowsOf(t, s, in)
	server.do(t, "CONFIG", "SET", "min-replicas-to-write", "1")
	stranger := renewal(c, held)
	stranger.Owner = token()
	_, claim := s.Claim(t.Context(), newClaim(in))
	_, renew := s.Renew(t.Context(), renewal(c, held))
	_, lost := s.Renew(t.Context(), stranger)
	for call, err := range map[string]error{
		"Claim": claim, "Renew": renew, "Renew by a stranger": lost, "Release": s.Release(t.Context(), release(c, held)),
	} {
		if err == nil || definite(err) || !strings.Contains(err.Error(), "NOREPLICAS") {
			t.Errorf("%s without replicas = %v; want the error of the server, NOREPLICAS", call, err)
		}
	}
	server.do(t, "CONFIG", "SET", "min-replicas-to-write", "0")
	if after := rowsOf(t, s, in); !slices.Equal(after, before) {
		t.Errorf("rows = %+v; want them as before, %+v", after, before)
	}
}

func TestForgottenScriptIsSentAgain(t *testing.T) {
	server := ownServer(t)
	s := server.store(t)
	in := space("n", 2)
	c := newClaim(in)
	held := mustClaim(t, s, c)
	server.do(t, "SCRIPT", "FLUSH")
	r := renewal(c, held)
	renewed := mustRenew(t, s, r)
	server.do(t, "SCRIPT", "FLUSH")
	back := release(c, renewed)
	if err := s.Release(t.Context(), back); err != nil {
		t.Errorf("Release(%+v) after SCRIPT FLUSH = %v; want it released", back, err)
	}
	server.do(t, "SCRIPT", "FLUSH")
	// That the server did not know the script at the first attempt leaves no doubt about the
	// second.
	if err := s.Release(t.Context(), release(c, renewed)); !errors.Is(err, leasestore.ErrLost) {
		t.Errorf("second Release after SCRIPT FLUSH = %v; want an error that matches lease.ErrLost", err)
	}
	server.do(t, "SCRIPT", "FLUSH")
	rowsOf(t, s, in)
}

// errorsOf returns the errors of all calls of a store that cannot be reached.
func errorsOf(t *testing.T, s *redislease.Store) []error {
	in := space("n", 2)
	c := newClaim(in)
	_, claim := s.Claim(t.Context(), c)
	_, renew := s.Renew(t.Context(), renewal(c, leasestore.Reply{}))
	release := s.Release(t.Context(), release(c, leasestore.Reply{}))
	_, _, rows := s.Rows(t.Context(), in)
	return []error{claim, renew, release, rows}
}

func TestErrorsHoldNoPassword(t *testing.T) {
	const secret = "correct-horse-battery"
	server := ownServer(t, "--requirepass", "another")
	wrong := server.place
	wrong.options.Password = secret
	named := wrong
	named.options.Username = "joe"
	nobody := wrong
	nobody.options.Addr = "127.0.0.1:1"
	nobody.options.MaxRetries = -1
	fromURL := server.place
	options, err := redis.ParseURL("redis://joe:" + secret + "@" + server.options.Addr + "/3")
	if err != nil {
		t.Fatal(err)
	}
	fromURL.options = *options
	// A server without these commands quotes their arguments.
	deaf := ownServer(t, "--rename-command", "AUTH", "", "--rename-command", "HELLO", "").place
	deaf.options.Password = secret
	deafNamed := deaf
	deafNamed.options.Username = "joe"
	for name, p := range map[string]place{
		"a wrong password": wrong, "an unknown user": named, "no server": nobody,
		"a URL": fromURL, "no AUTH": deaf, "no AUTH, a user": deafNamed,
	} {
		for _, err := range errorsOf(t, p.store(t)) {
			if err == nil || !strings.HasPrefix(err.Error(), "redislease: ") {
				t.Errorf("with %s: error = %v; want one that begins with redislease", name, err)
			}
			for ; err != nil; err = errors.Unwrap(err) {
				if strings.Contains(err.Error(), secret) || strings.Contains(fmt.Sprintf("%#v", err), secret) {
					t.Errorf("with %s: an error of the chain holds the password: %v", name, err)
				}
			}
		}
	}
	// Some of the reason must remain.
	if err := errorsOf(t, deaf.store(t))[0]; !strings.Contains(err.Error(), "unknown command") {
		t.Errorf("Claim on a server without AUTH = %v; want it to say so", err)
	}
}

// replyToAWrite matches the reply to a script that writes.
func replyToAWrite() func(faultproxy.Message) bool {
	evaluates := faultproxy.Sending(faultproxy.Client, "\neval")
	layouts := regexp.MustCompile(`\n(a layout|epoch 20\d\d)`) // an argument that only requests which write have
	reply := faultproxy.AnswerTo(func(m faultproxy.Message) bool { return evaluates(m) && layouts.MatchString(m.Raw) })
	return func(m faultproxy.Message) bool { return reply(m) && !strings.HasPrefix(m.Raw, "-NOSCRIPT") }
}

// losingReplies returns the address of a proxy that does this to each reply to a script that writes.
func losingReplies(t *testing.T, server string, do faultproxy.Action) string {
	proxy := faultproxy.Start(t, faultproxy.Pieces, server)
	proxy.Arm(faultproxy.Fault{On: replyToAWrite(), Do: do, Again: true})
	return proxy.Addr()
}

// The connection breaks after the script was run and before its reply came, and go-redis sends
// the script again on another.
func TestRequestSentAgainIsDoneOnce(t *testing.T) {
	p := shared(t)
	breaking := p
	proxy := faultproxy.Start(t, faultproxy.Pieces, p.options.Addr)
	breaking.options.Addr = proxy.Addr()
	breaks := func() (hit <-chan struct{}) {
		return proxy.Arm(faultproxy.Fault{On: replyToAWrite(), Do: faultproxy.CutBefore})
	}
	s, direct := breaking.store(t), p.store(t)
	in := space("n", 64)
	c := newClaim(in)
	mustClaim(t, s, newClaim(in))

	hit := breaks()
	held := mustClaim(t, s, c)
	select {
	case <-hit:
	default:
		t.Fatal("the connection did not break")
	}
	owned := slices.DeleteFunc(rowsOf(t, direct, in), func(row leasestore.Row) bool { return row.Owner != c.Owner })
	if len(owned) != 1 || owned[0] != held.Row || held.Row.Renewals != 1 || held.Before != 0 {
		t.Errorf("claim sent again: reply %+v, rows %+v; want one row, of the first write", held, owned)
	}

	before := held.Row.Until
	breaks()
	r := renewal(c, held)
	renewed := mustRenew(t, s, r)
	if renewed.Row.Renewals != 2 || renewed.Row.Nonce != r.Nonce || renewed.Before != before {
		t.Errorf("renewal sent again: reply %+v; want the second write, Before %d", renewed, before)
	}

	breaks()
	back := release(c, renewed)
	if err := s.Release(t.Context(), back); err != nil {
		t.Errorf("release sent again = %v; want it released", err)
	}
	if row := rowsOf(t, direct, in)[held.Row.Worker]; row.Renewals != 3 || row.Nonce != back.Nonce || row.Until != back.End {
		t.Errorf("row after a release sent again = %+v; want the third write, of %+v", row, back)
	}
}

func definite(err error) bool {
	return errors.Is(err, leasestore.ErrNoFreeWorker) || errors.Is(err, leasestore.ErrLost) ||
		errors.Is(err, leasestore.ErrLayout) || errors.Is(err, leasestore.ErrClockSkew)
}

func TestBrokenConnectionIsUnknown(t *testing.T) {
	p := shared(t)
	breaking := p
	breaking.options.Addr = losingReplies(t, p.options.Addr, faultproxy.CutBefore)
	breaking.options.MaxRetries = -1
	if _, err := breaking.store(t).Claim(t.Context(), newClaim(space("n", 2))); err == nil || definite(err) {
		t.Errorf("Claim with a connection that breaks: error = %v; want one that is none of the four", err)
	}
	// The rows were made nevertheless.
	if rows := rowsOf(t, p.store(t), space("n", 2)); len(rows) != 2 {
		t.Errorf("rows = %+v; want two", rows)
	}
}

// A claim may wait for a connection, or for a reply that does not come, and that time is no
// difference between clocks.
func TestWaitingIsNotClockSkew(t *testing.T) {
	p := shared(t)
	slow := p
	slow.options.PoolSize = 1
	slow.options.PoolTimeout = time.Minute
	client := slow.client(t)
	s := p.storeOn(t, client)
	in := space("n", 8)
	mustClaim(t, s, newClaim(in))
	// A process may be descheduled between reading its clock and the call, and its clock is
	// then behind by as much. A refusal is therefore a fault of the store only if it comes
	// however long the skew is.
	for skew := leasestore.Millis(200); ; skew *= 4 {
		conn := client.Conn() // its first command takes the only connection of the pool
		if err := conn.Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		c := newClaim(in)
		c.Skew = skew
		time.AfterFunc((skew + skew/2).Duration(), func() { conn.Close() })
		reply, err := s.Claim(t.Context(), c)
		if errors.Is(err, leasestore.ErrClockSkew) && skew < 10_000 {
			continue
		}
		if err != nil {
			t.Errorf("Claim that has waited longer than Skew = %v; want a row", err)
		}
		if waited := reply.Now - c.Now; err == nil && waited <= c.Skew {
			t.Errorf("Claim has waited %d ms; want more than %d, or the test shows nothing", waited, c.Skew)
		}
		return
	}
}

// go-redis itself would wait for the reply until its ReadTimeout.
func TestCallEndsWithItsContextThoughNoReplyComes(t *testing.T) {
	p := shared(t)
	silent := p
	proxy := faultproxy.Start(t, faultproxy.Pieces, p.options.Addr)
	held := proxy.Arm(faultproxy.Fault{On: replyToAWrite(), Do: faultproxy.Delay}) // until the test ends
	silent.options.Addr = proxy.Addr()
	silent.options.ReadTimeout = time.Hour
	s := silent.store(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	returned := make(chan error)
	go func() {
		_, err := s.Claim(ctx, newClaim(space("n", 2)))
		returned <- err
	}()
	<-held
	cancel()
	select {
	case err := <-returned:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("Claim whose context has ended = %v; want an error that matches context.Canceled", err)
		}
	case <-time.After(3 * time.Minute):
		t.Error("Claim whose context has ended does not return; want it to before the reply comes")
	}
	// The rows were made nevertheless. The goroutine of the call keeps the connection until the
	// reply comes, and the proxy ends with the test.
	if rows := rowsOf(t, p.store(t), space("n", 2)); len(rows) != 2 {
		t.Errorf("rows = %+v; want two", rows)
	}
}

// counter is a hook that counts commands.
type counter struct{ count atomic.Int64 }

func (c *counter) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *counter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.count.Add(1)
		return next(ctx, cmd)
	}
}

func (c *counter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func TestEachOperationIsTwoRoundTrips(t *testing.T) {
	p := shared(t)
	client := p.client(t)
	s := p.storeOn(t, client)
	in := space("n", 1024)
	c := newClaim(in)
	held := mustClaim(t, s, c)
	mustRenew(t, s, renewal(c, held)) // now the server knows the scripts
	var commands counter
	client.AddHook(&commands)

	c = newClaim(in)
	held = mustClaim(t, s, c)
	if n := commands.count.Swap(0); n != 2 {
		t.Errorf("Claim sends %d commands; want 2", n)
	}
	mustRenew(t, s, renewal(c, held))
	if n := commands.count.Swap(0); n != 2 {
		t.Errorf("Renew sends %d commands; want 2", n)
	}
}

func TestClusterClientServes(t *testing.T) {
	server := ownServer(t, "--cluster-enabled", "yes")
	for first := 0; first < 16384; first += 1024 {
		slots := []any{"CLUSTER", "ADDSLOTS"}
		for slot := range 1024 {
			slots = append(slots, first+slot)
		}
		server.do(t, slots...)
	}
	for giveUp := time.Now().Add(3 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		info, _ := server.do(t, "CLUSTER", "INFO").(string)
		if strings.Contains(info, "cluster_state:ok") {
			break
		}
		if time.Now().After(giveUp) {
			t.Fatalf("CLUSTER INFO after three minutes = %q; want the state ok", info)
		}
	}
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{server.options.Addr}})
	defer client.Close()
	s := server.storeOn(t, client)
	serves(t, s)
	if spaces, err := s.Spaces(t.Context()); len(spaces) != 2 || err != nil {
		t.Errorf("Spaces() = %+v, %v; want those of two datacenters", spaces, err)
	}
}

func TestRingMustHaveOneServer(t *testing.T) {
	p := shared(t)
	one := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": p.options.Addr}})
	defer one.Close()
	s, err := redislease.New(one, redislease.Config{Prefix: p.prefix})
	if err != nil {
		t.Fatal(err)
	}
	serves(t, s)

	two := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": p.options.Addr, "b": p.options.Addr}})
	defer two.Close()
	var bad *core.ValueError
	if s, err := redislease.New(two, redislease.Config{}); s != nil || !errors.As(err, &bad) || !strings.Contains(err.Error(), "Ring of 2 servers") {
		t.Errorf("New(a Ring of two servers) = %v, %v; want a *ValueError that says so", s, err)
	}
}

// serves claims, renews and releases in two datacenters.
func serves(t *testing.T, s *redislease.Store) {
	t.Helper()
	for datacenter := range int64(2) {
		in := space("n", 8)
		in.Datacenter = datacenter
		c := newClaim(in)
		renewed := mustRenew(t, s, renewal(c, mustClaim(t, s, c)))
		if err := s.Release(t.Context(), release(c, renewed)); err != nil {
			t.Errorf("Release = %v; want it released", err)
		}
		if rows := rowsOf(t, s, in); len(rows) != 8 {
			t.Errorf("%d rows; want 8", len(rows))
		}
	}
}

func BenchmarkClaim(b *testing.B) {
	for _, workers := range []int64{1024, 1 << 16} {
		for _, free := range []string{"all", "half", "one", "none"} {
			b.Run(fmt.Sprintf("%d/%s free", workers, free), func(b *testing.B) {
				p := shared(b)
				client := p.client(b)
				s := p.storeOn(b, client)
				in := space("n", workers)
				c := newClaim(in)
				if _, err := s.Claim(b.Context(), c); err != nil {
					b.Fatal(err)
				}
				taken := map[string]int64{"all": 0, "half": workers / 2, "one": workers - 1, "none": workers}[free]
				later := leasestore.MillisOf(time.Now()) + 3_600_000
				pipe := client.Pipeline()
				for worker := range workers {
					text := "0,,,0,0,0,"
					if worker < taken {
						text = fmt.Sprintf("1,%s,%s,%d,1,0", token(), token(), later)
					}
					pipe.HSet(b.Context(), p.rowKey(in), worker, text)
				}
				if _, err := pipe.Exec(b.Context()); err != nil {
					b.Fatal(err)
				}
				for b.Loop() {
					c := newClaim(in)
					reply, err := s.Claim(b.Context(), c)
					if err == nil {
						err = s.Release(b.Context(), release(c, reply))
					}
					if err != nil && !errors.Is(err, leasestore.ErrNoFreeWorker) {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkFirstClaim(b *testing.B) {
	for _, workers := range []int64{1024, 1 << 16} {
		b.Run(fmt.Sprint(workers), func(b *testing.B) {
			p := shared(b)
			client := p.client(b)
			s := p.storeOn(b, client)
			in := space("n", workers)
			for b.Loop() {
				if _, err := s.Claim(b.Context(), newClaim(in)); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				client.Del(b.Context(), p.rowKey(in), p.settingsKey(in))
				b.StartTimer()
			}
		})
	}
}

// A user that lacks rights, or does not exist, is a permanent error.
func TestRightsThatAreMissingArePermanent(t *testing.T) {
	server := ownServer(t)
	server.do(t, "ACL", "SETUSER", "poor", "on", ">pw", "~*", "+evalsha", "+eval", "+time")
	options := server.options
	options.Username, options.Password = "poor", "pw"
	client := redis.NewClient(&options)
	defer client.Close()
	in := space("n", 1)
	if _, err := server.storeOn(t, client).Claim(t.Context(), newClaim(in)); !errors.Is(err, leasestore.ErrPermanent) {
		t.Errorf("Claim without the right to HSET = %v; want it to match lease.ErrPermanent", err)
	}
	options.Password = "wrong"
	stranger := redis.NewClient(&options)
	defer stranger.Close()
	if _, err := server.storeOn(t, stranger).Claim(t.Context(), newClaim(in)); !errors.Is(err, leasestore.ErrPermanent) {
		t.Errorf("Claim with a wrong password = %v; want it to match lease.ErrPermanent", err)
	}
	server.kill()
	if _, err := server.store(t).Claim(t.Context(), newClaim(in)); err == nil || errors.Is(err, leasestore.ErrPermanent) {
		t.Errorf("Claim without a server = %v; want an error that may pass", err)
	}
}
