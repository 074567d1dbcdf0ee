package faultproxy

import (
	"bufio"
	"encoding/binary"
	"fmt"
)

// cancelRequest stands in place of a version in the first message of a client, as the codes of TLS and GSSAPI do.
const cancelRequest = 80877102

// postgresRequests are the messages of a client by their type.
var postgresRequests = map[byte]string{
	'B': "Bind", 'C': "Close", 'D': "Describe", 'E': "Execute", 'F': "FunctionCall", 'H': "Flush",
	'P': "Parse", 'Q': "Query", 'S': "Sync", 'X': "Terminate", 'c': "CopyDone", 'd': "CopyData",
	'f': "CopyFail", 'p': "Password",
}

// A postgres reads messages of a type byte, a length that counts itself, and a body. The
// first one of a client has no type. All fields are the client's.
type postgres struct {
	started    bool
	statements map[string]string // SQL by name
	portals    map[string]string
}

func newPostgres() *postgres {
	return &postgres{statements: map[string]string{}, portals: map[string]string{}}
}

func (p *postgres) read(from Side, r *bufio.Reader) (Message, []byte, error) {
	head := 5
	if from == Client && !p.started {
		head = 4
	}
	raw, err := more(nil, r, head)
	if err != nil {
		return Message{}, nil, err
	}
	n := binary.BigEndian.Uint32(raw[head-4:])
	if n < 4 || n > longest {
		return Message{}, nil, fmt.Errorf("%w: %s message of length %d", errProtocol, from, n)
	}
	if raw, err = more(raw, r, int(n)-4); err != nil {
		return Message{}, nil, err
	}
	m := Message{From: from}
	if head == 4 {
		p.started = true
		m.Name, err = startup(raw[4:])
		return m, raw, err
	}
	if from == Server {
		m.Name = fmt.Sprintf("answer %q", raw[0])
		return m, raw, nil
	}
	if m.Name = postgresRequests[raw[0]]; m.Name == "" {
		return Message{}, nil, fmt.Errorf("%w: message of type %q", errProtocol, raw[0])
	}
	m.Text = p.request(raw[0], raw[5:])
	return m, raw, nil
}

func startup(body []byte) (string, error) {
	if len(body) < 4 {
		return "", fmt.Errorf("%w: no version", errProtocol)
	}
	switch code := binary.BigEndian.Uint32(body); {
	case code == cancelRequest:
		return "CancelRequest", nil
	case code>>16 != 3:
		return "", fmt.Errorf("%w: version %d.%d; 1234 is encryption: connect with sslmode=disable", errProtocol, code>>16, code&0xffff)
	}
	return "StartupMessage", nil
}

// request returns the SQL that a request is about.
func (p *postgres) request(kind byte, body []byte) string {
	name, rest := word(body)
	switch kind {
	case 'Q':
		return name
	case 'P':
		p.statements[name], _ = word(rest)
		return p.statements[name]
	case 'B':
		statement, _ := word(rest)
		p.portals[name] = p.statements[statement]
		return p.portals[name]
	case 'E':
		return p.portals[name]
	}
	return ""
}
