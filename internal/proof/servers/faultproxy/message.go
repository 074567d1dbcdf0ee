package faultproxy

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

// A Side is an end of a connection.
type Side int

const (
	// Client sends requests.
	Client Side = iota
	// Server sends answers.
	Server
)

func (s Side) String() string { return [...]string{"client", "server"}[s] }

// A Message is one message of a protocol, or one packet of MySQL's.
type Message struct {
	Conn int // which connection of the proxy, from 1
	From Side
	// Name is the protocol's of a request, such as Parse or COM_QUERY.
	Name string
	// Text is the SQL of a request, also of those that run a prepared statement.
	Text string
	// Raw are its bytes. Proxy.Messages leaves them out.
	Raw string
}

func (m Message) String() string {
	if m.Text == "" {
		return fmt.Sprintf("%s %s", m.From, m.Name)
	}
	return fmt.Sprintf("%s %s %q", m.From, m.Name, m.Text)
}

// Sending matches messages that have text among their bytes, in any case: a value that is bound too.
func Sending(from Side, text string) func(Message) bool {
	text = strings.ToLower(text)
	return func(m Message) bool { return m.From == from && strings.Contains(strings.ToLower(m.Raw), text) }
}

// Running matches the message that runs a statement with text in it, in any case, and not the one that
// prepares it.
func Running(text string) func(Message) bool {
	text = strings.ToLower(text)
	return func(m Message) bool {
		switch m.Name {
		case "Query", "Execute", "COM_QUERY", "COM_STMT_EXECUTE":
			return strings.Contains(strings.ToLower(m.Text), text)
		}
		return false
	}
}

// AnswerTo matches the first answer to each message that on matches. It is for one Fault.
func AnswerTo(on func(Message) bool) func(Message) bool {
	asked := map[int]bool{} // by connection
	return func(m Message) bool {
		if m.From == Server {
			defer delete(asked, m.Conn)
			return asked[m.Conn]
		}
		asked[m.Conn] = asked[m.Conn] || on(m)
		return false
	}
}

// Trips returns how many round trips messages took: how often a server answered what was sent before.
func Trips(messages []Message) (n int) {
	asks := map[int]bool{} // by connection
	for _, m := range messages {
		if m.From == Server && asks[m.Conn] {
			n++
		}
		asks[m.Conn] = m.From == Client
	}
	return n
}

// From matches all messages of one side.
func From(from Side) func(Message) bool {
	return func(m Message) bool { return m.From == from }
}

// Nth matches the n-th message, counted from 1, that on matches. It counts once: it is
// for one Fault.
func Nth(n int, on func(Message) bool) func(Message) bool {
	return func(m Message) bool {
		if on(m) {
			n--
			return n == 0
		}
		return false
	}
}

// A Protocol makes what finds and names the messages of a connection.
type Protocol func() parser

var (
	// PostgreSQL is its protocol 3.
	PostgreSQL = Protocol(func() parser { return newPostgres() })
	// MySQL is the protocol of MySQL and MariaDB.
	MySQL = Protocol(func() parser { return newMySQL() })
	// Pieces is any other protocol in which a client waits for an answer before it sends more. A
	// message is what arrives in one piece.
	Pieces = Protocol(func() parser { return pieces{} })
)

type pieces struct{}

func (pieces) read(from Side, r *bufio.Reader) (Message, []byte, error) {
	if _, err := r.Peek(1); err != nil {
		return Message{}, nil, err
	}
	raw, err := more(nil, r, r.Buffered())
	return Message{From: from, Name: "Piece"}, raw, err
}

// A parser reads the messages of one connection. Each side is read by one goroutine.
type parser interface {
	// read returns the next message and its bytes. At the end of the stream, also
	// within a message, the error matches io.EOF or io.ErrUnexpectedEOF.
	read(from Side, r *bufio.Reader) (Message, []byte, error)
}

// errProtocol is a stream that a parser cannot read.
var errProtocol = errors.New("faultproxy: not understood")

// longest is the longest message that PostgreSQL accepts.
const longest = 1 << 30

// more appends n bytes of r to b. What a broken length announces is not allocated before
// it has come.
func more(b []byte, r *bufio.Reader, n int) ([]byte, error) {
	buffer := bytes.NewBuffer(b)
	_, err := io.CopyN(buffer, r, int64(n))
	if errors.Is(err, io.EOF) && buffer.Len() > 0 {
		err = io.ErrUnexpectedEOF
	}
	return buffer.Bytes(), err
}

// word cuts b after the text that ends in a zero byte.
func word(b []byte) (text string, rest []byte) {
	before, after, _ := bytes.Cut(b, []byte{0})
	return string(before), after
}
