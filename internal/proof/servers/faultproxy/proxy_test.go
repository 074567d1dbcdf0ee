package faultproxy

import (
	"bufio"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"time"
)

// A peer is a server that answers every Query.
type peer struct {
	listener net.Listener
	mu       sync.Mutex
	asked    []string // the text of each Query
	open     int      // connections whose client has not ended them
	changed  chan struct{}
}

func startPeer(t *testing.T) *peer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	p := &peer{listener: listener, changed: make(chan struct{}, 100)}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { p.serve(c) })
		}
	})
	t.Cleanup(func() { listener.Close(); wg.Wait() })
	return p
}

func (p *peer) serve(c net.Conn) {
	defer c.Close()
	p.change(func() { p.open++ })
	defer p.change(func() { p.open-- })
	parser, r := newPostgres(), bufio.NewReader(c)
	for {
		m, _, err := parser.read(Client, r)
		if err != nil {
			return
		}
		if m.Name == "Query" {
			p.change(func() { p.asked = append(p.asked, m.Text) })
			_, _ = c.Write(slices.Concat(pg('C', m.Text+"\x00"), pg('Z', "I")))
		}
	}
}

func (p *peer) change(f func()) {
	p.mu.Lock()
	f()
	p.mu.Unlock()
	p.changed <- struct{}{}
}

func (p *peer) texts() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked)
}

// until waits until the peer has been asked that, on so many open connections.
func (p *peer) until(t *testing.T, open int, asked ...string) {
	t.Helper()
	timeout := time.After(10 * time.Second)
	for {
		p.mu.Lock()
		gotOpen, got := p.open, slices.Clone(p.asked)
		p.mu.Unlock()
		if gotOpen == open && slices.Equal(got, asked) {
			return
		}
		select {
		case <-p.changed:
		case <-timeout:
			t.Fatalf("the server was asked %q, on %d open connections; want %q, %d", got, gotOpen, asked, open)
		}
	}
}

// A user is a client of PostgreSQL.
type user struct {
	t    *testing.T
	conn net.Conn
	r    *bufio.Reader
}

func connect(t *testing.T, p *Proxy) user {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	must(t, err)
	t.Cleanup(func() { c.Close() })
	u := user{t, c, bufio.NewReader(c)}
	u.send(pg(0, pgStart))
	return u
}

func (u user) send(raw []byte) {
	u.t.Helper()
	if _, err := u.conn.Write(raw); err != nil {
		u.t.Fatal(err)
	}
}

func (u user) ask(text string) { u.t.Helper(); u.send(pg('Q', text+"\x00")) }

// hears returns the next answer, "end" or, when none begins within a time, "nothing".
func (u user) hears(within time.Duration) string {
	_ = u.conn.SetReadDeadline(time.Now().Add(within))
	_, err := u.r.Peek(1)
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return "nothing"
	}
	_ = u.conn.SetReadDeadline(time.Time{}) // nor may it end in the middle of an answer
	m, raw, err := newPostgres().read(Server, u.r)
	if err != nil {
		return "end"
	}
	text, _ := word(raw[5:])
	return m.Name + " " + text
}

// wantHears compares the answers, in order.
func (u user) wantHears(want ...string) {
	u.t.Helper()
	for _, w := range want {
		within := 10 * time.Second // for an answer that comes; the machine may be busy
		if w == "nothing" {
			within = 100 * time.Millisecond
		}
		if got := u.hears(within); got != w {
			u.t.Fatalf("the client hears %q; want %q", got, w)
		}
	}
}

// arm asks a first question, which passes, and then lets a fault happen.
func arm(t *testing.T, f Fault) (*peer, *Proxy, user) {
	t.Helper()
	server := startPeer(t)
	proxy := Start(t, PostgreSQL, server.listener.Addr().String())
	u := connect(t, proxy)
	u.ask("one")
	u.wantHears("answer 'C' one", "answer 'Z' I")
	hit := proxy.Arm(f)
	select {
	case <-hit:
		t.Error("the fault has hit before its message came")
	default:
	}
	u.ask("commit")
	select {
	case <-hit:
	case <-time.After(10 * time.Second):
		t.Fatal("the fault has not hit")
	}
	return server, proxy, u
}

func release(t *testing.T, p *Proxy) {
	t.Helper()
	if err := p.Release(); err != nil {
		t.Errorf("Release() = %v; want nil", err)
	}
}

// Each fault hits the question "commit", or its answer. Then the client asks "two", and goes.
func TestAFaultDoesWhatItsNameSays(t *testing.T) {
	const heard, end, nothing = "answer 'C' commit", "end", "nothing"
	for _, test := range []struct {
		name   string
		side   Side
		do     Action
		hears  []string
		before []string // what the server was asked when the client has gone
		after  []string // and after Release
	}{
		{"a request that is cut before does not arrive", Client, CutBefore, []string{end}, nil, []string{"one"}},
		{"a request that is cut after arrives and is not answered", Client, CutAfter, []string{end}, nil, []string{"one", "commit"}},
		{"a late request arrives after its client has gone, with all that was sent", Client, Late, []string{end}, []string{"one"}, []string{"one", "commit", "two"}},
		{"a delayed request arrives though its client has gone", Client, Delay, []string{nothing}, []string{"one"}, []string{"one", "commit", "two"}},
		{"neither a swallowed request nor the end of its client arrives", Client, Swallow, []string{nothing}, []string{"one"}, []string{"one"}},
		{"an answer that is cut before is not heard", Server, CutBefore, []string{end}, nil, []string{"one", "commit"}},
		{"a late answer is not heard", Server, Late, []string{end}, nil, []string{"one", "commit"}},
		{"an answer that is cut after is the last", Server, CutAfter, []string{heard, end}, nil, []string{"one", "commit"}},
		{"a swallowed answer is not heard, and requests still arrive", Server, Swallow, []string{nothing}, nil, []string{"one", "commit", "two"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			server, proxy, u := arm(t, Fault{On: Sending(test.side, "COMMIT"), Do: test.do})
			cuts := slices.Contains(test.hears, end)
			if !cuts || test.do == Late && test.side == Client {
				u.ask("two")
			}
			u.wantHears(test.hears...)
			if test.side == Client {
				u.conn.Close()
			} else if cuts {
				_, _ = u.conn.Write(pg('Q', "more\x00")) // reaches nobody
			}
			if test.before != nil {
				time.Sleep(50 * time.Millisecond) // for what should not arrive
				server.until(t, 1, test.before...)
			}
			release(t, proxy)
			server.until(t, 0, test.after...)
		})
	}
}

func TestRequestIsDelayedForATime(t *testing.T) {
	for _, side := range []Side{Client, Server} {
		const delay = 150 * time.Millisecond
		began := time.Now()
		server, _, u := arm(t, Fault{On: Sending(side, "COMMIT"), Do: Delay, For: delay})
		server.until(t, 1, "one", "commit")
		u.ask("two")
		u.wantHears("answer 'C' commit")
		if took := time.Since(began); took < delay { // not how much longer: the machine may be busy
			t.Errorf("the client hears of the COMMIT after %v; want it no earlier than after %v", took, delay)
		}
		u.wantHears("answer 'Z' I", "answer 'C' two", "answer 'Z' I")
	}
}

func TestTheClientDoesNotHearThatAServerEndsWhichIsSwallowed(t *testing.T) {
	server, proxy, u := arm(t, Fault{On: Sending(Server, "commit"), Do: Swallow})
	must(t, u.conn.(*net.TCPConn).CloseWrite())
	server.until(t, 0, "one", "commit") // it has closed the connection
	u.wantHears("nothing")
	release(t, proxy)
}

func TestAfterASilenceRequestsArriveAndNobodyIsAnswered(t *testing.T) {
	server, proxy, u := arm(t, Fault{On: Sending(Client, "COMMIT"), Do: Silence})
	u.ask("two")
	u.wantHears("nothing")
	server.until(t, 1, "one", "commit", "two")
	select {
	case <-proxy.Silent():
	default:
		t.Error("Silent() is open after a silence; want it closed")
	}
	other := connect(t, proxy)
	other.wantHears("nothing")
	proxy.Stop()
	u.wantHears("end")
	server.until(t, 0, "one", "commit", "two")
}

func TestLateRequestArrivesWithAMessageOfAnotherConnection(t *testing.T) {
	server, proxy, u := arm(t, Fault{On: Sending(Client, "COMMIT"), Do: Late, Until: Sending(Client, "Look")})
	u.wantHears("end")
	other := connect(t, proxy)
	other.ask("no such word")
	other.wantHears("answer 'C' no such word", "answer 'Z' I")
	server.until(t, 2, "one", "no such word")
	other.ask("look")
	other.wantHears("answer 'C' look", "answer 'Z' I")
	u.conn.Close()
	for len(server.texts()) < 4 {
		<-server.changed
	}
	if got := server.texts(); !slices.Contains(got, "commit") {
		t.Errorf("the server was asked %q; want the late COMMIT too", got)
	}
}

func TestOtherConnectionsPassUntouchedUnlessTheFaultIsSetForAll(t *testing.T) {
	for _, again := range []bool{false, true} {
		server, proxy, u := arm(t, Fault{On: AnswerTo(Running("COMMIT")), Do: CutBefore, Again: again})
		u.wantHears("end")
		other := connect(t, proxy)
		for _, text := range []string{"two", "commit"} {
			other.ask(text)
			if again && text == "commit" {
				other.wantHears("end")
			} else {
				other.wantHears("answer 'C' "+text, "answer 'Z' I")
			}
		}
		release(t, proxy)
		open := 1 // the other one
		if again {
			open = 0
		}
		server.until(t, open, "one", "commit", "two", "commit")
	}
}

func TestRequestsToCancelAreDropped(t *testing.T) {
	server := startPeer(t)
	proxy := Start(t, PostgreSQL, server.listener.Addr().String())
	c, err := net.Dial("tcp", proxy.Addr())
	must(t, err)
	defer c.Close()
	cancel := pg(0, "\x04\xd2\x16\x2e\x00\x00\x00\x01\x00\x00\x00\x02")
	if _, err := c.Write(cancel); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("Read() = nil; want the end")
	}
	if got := proxy.Messages(); len(got) > 0 {
		t.Errorf("Messages() = %v; want none, for it did not pass", got)
	}
}

func TestOtherProtocolsPassInPieces(t *testing.T) {
	server := startPeer(t)
	proxy := Start(t, Pieces, server.listener.Addr().String())
	u := connect(t, proxy)
	u.ask("one")
	u.wantHears("answer 'C' one", "answer 'Z' I")
	hit := proxy.Arm(Fault{On: Sending(Server, "COMMIT"), Do: CutBefore})
	u.ask("commit")
	u.wantHears("end")
	<-hit
	release(t, proxy)
	server.until(t, 0, "one", "commit")
}

func TestMessagesAndRoundTripsAreCountedSinceTheFaultWasArmed(t *testing.T) {
	_, proxy, u := arm(t, Fault{On: Nth(3, func(Message) bool { return true }), Do: Delay, For: time.Nanosecond})
	u.wantHears("answer 'C' commit", "answer 'Z' I")
	var got []string
	for _, m := range proxy.Messages() {
		got = append(got, m.String())
	}
	want := []string{`client Query "commit"`, "server answer 'C'", "server answer 'Z'"}
	if !slices.Equal(got, want) {
		t.Errorf("Messages() = %q; want %q", got, want)
	}
	other := connect(t, proxy)
	other.ask("two")
	other.wantHears("answer 'C' two", "answer 'Z' I")
	if got := Trips(proxy.Messages()); got != 2 {
		t.Errorf("Trips(%v) = %d; want 2", proxy.Messages(), got)
	}
	proxy.Arm(Fault{})
	if got := proxy.Messages(); len(got) > 0 {
		t.Errorf("Messages() after Arm = %v; want none", got)
	}
}

func TestAStreamThatIsNotUnderstoodFailsTheTest(t *testing.T) {
	failures := errorCounter{TB: t}
	proxy := Start(&failures, PostgreSQL, startPeer(t).listener.Addr().String())
	u := connect(t, proxy)
	u.send(pg('?', ""))
	u.wantHears("end")
	if proxy.Stop(); failures.n != 1 {
		t.Errorf("errors of the test = %d; want 1", failures.n)
	}
}

// An errorCounter is a test that counts its errors.
type errorCounter struct {
	testing.TB
	n int
}

func (c *errorCounter) Error(...any) { c.n++ }
