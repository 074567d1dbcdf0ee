package faultproxy

import (
	"bufio"
	"encoding/binary"
	"fmt"
)

// cancelRequest stands in place of a version in the first message of a client, as the codes of TLS and GSSAPI do.
const cancelRequest = 80877102

var postgresNames = [...]map[byte]string{
	Client: {
		'B': "Bind", 'C': "Close", 'D': "Describe", 'E': "Execute", 'F': "FunctionCall", 'H': "Flush",
		'P': "Parse", 'Q': "Query", 'S': "Sync", 'X': "Terminate", 'c': "CopyDone", 'd': "CopyData",
		'f': "CopyFail", 'p': "Password",
	},
	Server: {
		'1': "ParseComplete", '2': "BindComplete", '3': "CloseComplete", 'A': "NotificationResponse",
		'C': "CommandComplete", 'D': "DataRow", 'E': "ErrorResponse", 'G': "CopyInResponse",
		'H': "CopyOutResponse", 'I': "EmptyQueryResponse", 'K': "BackendKeyData", 'N': "NoticeResponse",
		'R': "Authentication", 'S': "ParameterStatus", 'T': "RowDescription", 'V': "FunctionCallResponse",
		'W': "CopyBothResponse", 'Z': "ReadyForQuery", 'c': "CopyDone", 'd': "CopyData", 'n': "NoData",
		's': "PortalSuspended", 't': "ParameterDescription", 'v': "NegotiateProtocolVersion",
	},
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
	m.Name = postgresNames[from][raw[0]]
	if m.Name == "" {
		return Message{}, nil, fmt.Errorf("%w: %s message of type %q", errProtocol, from, raw[0])
	}
	if from == Client {
		m.Text = p.request(raw[0], raw[5:])
	}
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
