package faultproxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// An Action is what becomes of a message and its connection.
type Action int

const (
	pass Action = iota

	// CutBefore ends the connection in place of the message, for both sides.
	CutBefore

	// CutAfter passes the message, and then ends the connection for both sides. After a
	// request, the server does what it was asked to, and nobody hears of it.
	CutAfter

	// Late ends the connection for the client, and later passes the message to the
	// server, with all that the client has sent. Of an answer it is CutBefore.
	Late

	// Delay keeps the connection, and passes the message later. If the client gives the
	// connection up in between, the message arrives nonetheless.
	Delay

	// Swallow passes neither this message nor any other of its side, nor that the side
	// has closed the connection. It stays open, and no answer ever comes.
	Swallow

	// Silence passes the message, and then no answer of any connection. So nobody gets further
	// on a new one than to wait for the server's word.
	Silence
)

func (a Action) String() string {
	return [...]string{"pass", "cut before", "cut after", "late", "delay", "swallow", "silence"}[a]
}

// A Fault is what happens to one message.
type Fault struct {
	// On tells which message it is: the first for which it returns true. It is called for
	// each message in turn, never twice at the same time.
	On func(Message) bool
	Do Action
	// For is how long Late and Delay hold the message. 0 means until Release.
	For time.Duration
	// Until, if not nil, ends that earlier: with the first message of another connection for
	// which it returns true.
	Until func(Message) bool
	// Again is set for a fault that hits every message for which On returns true.
	Again bool
}

// A Proxy passes messages between clients and a server. It is safe for concurrent use.
type Proxy struct {
	t        testing.TB
	protocol Protocol
	server   string
	listener net.Listener
	wg       sync.WaitGroup
	stopped  context.Context // ends with Stop
	stop     func()
	silent   context.Context // ends when no answer passes any more
	silence  func()

	mu     sync.Mutex // guards what follows
	opened int
	conns  map[*conn]struct{}
	fault  *Fault // nil if there is none, or it has hit
	hit    chan struct{}
	seen   []Message
}

// Start starts a proxy before the server at address. It ends with the test, and fails it
// if it did not understand a message.
func Start(t testing.TB, protocol Protocol, address string) *Proxy {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(context.WithoutCancel(t.Context()), "tcp", "127.0.0.1:0")
	must(t, err)
	p := &Proxy{t: t, protocol: protocol, server: address, listener: listener, conns: map[*conn]struct{}{}}
	p.stopped, p.stop = context.WithCancel(context.Background())
	p.silent, p.silence = context.WithCancel(context.Background())
	p.wg.Go(p.accept)
	t.Cleanup(p.Stop)
	return p
}

// Stop ends the proxy before the test does, for a client that waits for answers when it is closed.
func (p *Proxy) Stop() {
	_ = p.listener.Close()
	p.mu.Lock()
	p.stop()
	for c := range p.conns {
		c.close()
	}
	p.mu.Unlock()
	p.wg.Wait()
}

// Silent returns a channel that is closed when the proxy falls silent.
func (p *Proxy) Silent() <-chan struct{} { return p.silent.Done() }

// Addr returns the host:port for clients.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Arm waits for the message of f, in place of any fault before it, and forgets the
// messages that were seen. The channel is closed when f hits. A Fault without On only
// forgets.
func (p *Proxy) Arm(f Fault) (hit <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault, p.hit, p.seen = &f, make(chan struct{}), nil
	if f.On == nil {
		p.fault = nil
	}
	return p.hit
}

// Messages returns the messages since Arm, of all connections. Those that came to a
// connection after its fault are left out if they were not passed on.
func (p *Proxy) Messages() []Message {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.seen)
}

// patience is how long a server may take to end a connection that its client has ended, on a busy machine.
const patience = time.Minute

// Release ends the connections that were hit, after what was held has arrived. It returns
// when the server has ended them as well, and so has done all that it was sent.
func (p *Proxy) Release() error {
	p.mu.Lock()
	var hit []*conn
	for c := range p.conns {
		if c.hit {
			hit = append(hit, c)
		}
	}
	p.mu.Unlock()
	timeout := time.After(patience)
	for _, c := range hit {
		c.letGo()
	}
	for _, c := range hit {
		select {
		case <-c.over:
		case <-timeout:
			return fmt.Errorf("faultproxy: the server still keeps a connection %v after its client has closed it", patience)
		}
	}
	return nil
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := new(net.Dialer).Dial("tcp", p.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.opened++
		c := &conn{
			proxy:  p,
			number: p.opened,
			client: client.(*net.TCPConn),
			server: server.(*net.TCPConn),
			parser: p.protocol(),
			over:   make(chan struct{}),
		}
		c.released, c.release = context.WithCancel(p.stopped)
		p.conns[c] = struct{}{}
		if p.stopped.Err() != nil {
			c.close()
		}
		p.mu.Unlock()
		p.wg.Go(c.passRequests)
		p.wg.Go(c.passAnswers)
	}
}

// most is how much is read at once.
const most = 1 << 16

// meet notes a message, and returns what becomes of it.
func (p *Proxy) meet(c *conn, m *Message) (Action, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m.Conn = c.number
	seen := *m
	seen.Raw = ""
	p.seen = append(p.seen, seen)
	for other := range p.conns {
		if other != c && other.until != nil && other.until(*m) {
			other.until = nil
			other.letGo()
		}
	}
	f := p.fault
	if f == nil || !f.On(*m) {
		return pass, 0
	}
	if !f.Again {
		p.fault = nil
	}
	if c.hit = true; p.hit != nil {
		close(p.hit)
		p.hit = nil
	}
	c.until = f.Until
	return f.Do, f.For
}

// ended fails the test if a stream has ended because it was not understood.
func (p *Proxy) ended(err error) {
	if errors.Is(err, errProtocol) {
		p.t.Error(err)
	}
}

// A conn is a connection through the proxy. passRequests ends when the client does, and
// then ends the side of the server that it writes to. The server answers by its own end,
// and then passAnswers ends the rest.
type conn struct {
	proxy          *Proxy
	number         int
	client, server *net.TCPConn
	parser         parser

	deaf atomic.Bool // what the client sends is dropped
	mute atomic.Bool // what the server sends is dropped

	released context.Context // ends with letGo, or Stop
	release  func()
	over     chan struct{}      // closed when the server has ended the connection
	hit      bool               // guarded by the Proxy's mu
	until    func(Message) bool // of its fault, guarded by the Proxy's mu
}

func (c *conn) close() { _, _ = c.client.Close(), c.server.Close() }

// letGo lets what is held pass. What the client has sent already follows.
func (c *conn) letGo() {
	c.release()
	const enough = 50 * time.Millisecond // for what is in the buffers of this machine
	_ = c.client.SetReadDeadline(time.Now().Add(enough))
}

// hold waits for a time, or until the connection is released if that is 0.
func (c *conn) hold(d time.Duration) {
	var after <-chan time.Time
	if d > 0 {
		after = time.After(d)
	}
	select {
	case <-after:
	case <-c.released.Done():
	}
}

func (c *conn) passRequests() {
	defer func() { _ = c.server.CloseWrite() }()
	r := bufio.NewReaderSize(c.client, most)
	for {
		m, raw, err := c.parser.read(Client, r)
		if err != nil {
			c.proxy.ended(err)
			return
		}
		if c.deaf.Load() {
			continue
		}
		if m.Name == "CancelRequest" { // pgx sends one for a connection that breaks, and it would meet a COMMIT that is late
			return
		}
		m.Raw = string(raw)
		action, d := c.proxy.meet(c, &m)
		switch action {
		case CutBefore:
			c.cut()
			return
		case CutAfter:
			c.cut() // before the server can answer
			_, _ = c.server.Write(raw)
			return
		case Late:
			c.mute.Store(true)
			_ = c.client.CloseWrite()
			c.hold(d)
		case Delay:
			c.hold(d)
		case Swallow:
			c.hold(0)
			return
		case Silence:
			c.proxy.silence()
		}
		if _, err := c.server.Write(raw); err != nil {
			return
		}
	}
}

// cut ends the connection for the client. The answers that are on their way are read,
// so that the server is not ended by a reset before it has done its work.
func (c *conn) cut() {
	c.mute.Store(true)
	_ = c.client.Close()
}

func (c *conn) passAnswers() {
	swallows := false
	r := bufio.NewReaderSize(c.server, most)
	for {
		m, raw, err := c.parser.read(Server, r)
		if err != nil {
			c.proxy.ended(err)
			break
		}
		if c.mute.Load() || c.proxy.silent.Err() != nil {
			continue
		}
		m.Raw = string(raw)
		action, d := c.proxy.meet(c, &m)
		switch action {
		case CutBefore, Late:
			c.cut()
			_ = c.server.CloseWrite()
			continue
		case CutAfter:
			c.deaf.Store(true)
			c.mute.Store(true)
			_, _ = c.client.Write(raw)
			_ = c.client.CloseWrite() // not Close, which may take back what was written
			_ = c.server.CloseWrite()
			continue
		case Delay:
			c.hold(d)
		case Swallow:
			swallows = true
			c.mute.Store(true)
			continue
		}
		if _, err := c.client.Write(raw); err != nil {
			c.mute.Store(true)
		}
		if action == Silence {
			c.proxy.silence()
		}
	}
	close(c.over)
	if swallows {
		c.hold(0)
	}
	c.close()
	c.proxy.mu.Lock()
	delete(c.proxy.conns, c)
	c.proxy.mu.Unlock()
}

// must ends the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
