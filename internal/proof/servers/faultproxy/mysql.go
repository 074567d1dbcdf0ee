package faultproxy

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"sync"
)

var commands = map[byte]string{
	0x01: "COM_QUIT", 0x02: "COM_INIT_DB", 0x03: "COM_QUERY", 0x09: "COM_STATISTICS", 0x0e: "COM_PING",
	0x11: "COM_CHANGE_USER", 0x16: "COM_STMT_PREPARE", 0x17: "COM_STMT_EXECUTE",
	0x18: "COM_STMT_SEND_LONG_DATA", 0x19: "COM_STMT_CLOSE", 0x1a: "COM_STMT_RESET",
	0x1b: "COM_SET_OPTION", 0x1c: "COM_STMT_FETCH", 0x1f: "COM_RESET_CONNECTION",
}

// Capabilities of a client that this proxy cannot follow.
const (
	clientCompress = 1 << 5
	clientSSL      = 1 << 11
)

// A mysqlConn reads packets of a length, a number and a payload. What a packet is
// depends on those before it. Numbers begin at 0 with each command, so what continues a full packet
// is no command.
type mysqlConn struct {
	mu         sync.Mutex
	ready      bool // the server has let the client in
	prepares   string
	statements map[uint32]string // SQL by number
}

func newMySQL() *mysqlConn { return &mysqlConn{statements: map[uint32]string{}} }

func (c *mysqlConn) read(from Side, r *bufio.Reader) (Message, []byte, error) {
	raw, err := more(nil, r, 4)
	if err != nil {
		return Message{}, nil, err
	}
	n := int(raw[0]) | int(raw[1])<<8 | int(raw[2])<<16
	if raw, err = more(raw, r, n); err != nil {
		return Message{}, nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	m := Message{From: from}
	if number, body := raw[3], raw[4:]; from == Client {
		m.Name, m.Text, err = c.request(number, body)
	} else {
		m.Name, m.Text = c.answer(number, body)
	}
	return m, raw, err
}

func (c *mysqlConn) request(number byte, body []byte) (name, text string, err error) {
	switch {
	case !c.ready && number == 1 && len(body) >= 4:
		if flags := binary.LittleEndian.Uint32(body); flags&(clientSSL|clientCompress) != 0 {
			return "", "", fmt.Errorf("%w: TLS or compression, capabilities %#x; connect without", errProtocol, flags)
		}
		return "HandshakeResponse", "", nil
	case !c.ready || number > 0 || len(body) == 0:
		return "Data", "", nil
	}
	name = commands[body[0]]
	switch command, rest := body[0], body[1:]; command {
	case 0x03:
		text = string(rest)
	case 0x16:
		text = string(rest)
		c.prepares = text
	case 0x17, 0x18, 0x19, 0x1a, 0x1c:
		if len(rest) >= 4 {
			text = c.statements[binary.LittleEndian.Uint32(rest)]
		}
	}
	if name == "" {
		return "", "", fmt.Errorf("%w: command %#x", errProtocol, body[0])
	}
	return name, text, nil
}

func (c *mysqlConn) answer(number byte, body []byte) (name, text string) {
	switch {
	case number > 1 && c.ready:
		return "Data", ""
	case len(body) > 0 && !c.ready:
		c.ready = number > 0 && body[0] == 0
	case c.prepares != "" && len(body) == 12 && body[0] == 0:
		c.statements[binary.LittleEndian.Uint32(body[1:])] = c.prepares
		text, c.prepares = c.prepares, ""
	}
	return "Answer", text
}
