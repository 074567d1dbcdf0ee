package faultproxy

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// pg returns a message of PostgreSQL, or the first one of a client if kind is 0.
func pg(kind byte, body string) []byte {
	b := make([]byte, 5, 5+len(body))
	b[0] = kind
	binary.BigEndian.PutUint32(b[1:], uint32(4+len(body)))
	b = append(b, body...)
	if kind == 0 {
		return b[1:]
	}
	return b
}

// my returns a packet of MySQL.
func my(number byte, body string) []byte {
	return append([]byte{byte(len(body)), byte(len(body) >> 8), byte(len(body) >> 16), number}, body...)
}

// A piece is what one side sends.
type piece struct {
	from Side
	raw  []byte
}

const (
	pgStart = "\x00\x03\x00\x00user\x00root\x00\x00"
	myStart = "\x85\xa2\x0e\x00\x00\x00\x00\x01" // capabilities without TLS and compression
	prepOK  = "\x00\x07\x00\x00\x00\x01\x00\x01\x00\x00\x00\x00"
)

func TestMessagesAreNamed(t *testing.T) {
	for name, test := range map[string]struct {
		protocol Protocol
		pieces   []piece
		want     []string
	}{
		"PostgreSQL": {PostgreSQL, []piece{
			{Client, pg(0, pgStart)},
			{Server, pg('R', "\x00\x00\x00\x00")},
			{Server, pg('Z', "I")},
			{Client, pg('P', "s1\x00INSERT INTO t VALUES ($1)\x00\x00\x00")},
			{Client, pg('D', "Ss1\x00")},
			{Client, pg('B', "\x00s1\x00\x00\x00\x00\x00\x00\x00")},
			{Client, pg('E', "\x00\x00\x00\x00\x00")},
			{Client, pg('S', "")},
			{Server, pg('1', "")},
			{Server, pg('E', "SERROR\x00C40001\x00Mno\x00\x00")},
			{Server, pg('C', "INSERT 0 1\x00")},
			{Server, pg('Z', "T")},
			{Client, pg('Q', "COMMIT\x00")},
			{Client, pg('d', "data")},
			{Client, pg('X', "")},
		}, []string{
			"client StartupMessage", "server answer 'R'", "server answer 'Z'",
			`client Parse "INSERT INTO t VALUES ($1)"`, "client Describe",
			`client Bind "INSERT INTO t VALUES ($1)"`, `client Execute "INSERT INTO t VALUES ($1)"`, "client Sync",
			"server answer '1'", "server answer 'E'", "server answer 'C'", "server answer 'Z'", `client Query "COMMIT"`, "client CopyData", "client Terminate",
		}},
		"MySQL": {MySQL, []piece{
			{Server, my(0, "\x0a11.4\x00")},
			{Client, my(1, myStart)},
			{Server, my(2, "\xfecaching_sha2_password\x00")},
			{Client, my(3, "secret")},
			{Server, my(4, "\x00\x00\x00\x02\x00\x00\x00")},
			{Client, my(0, "\x03COMMIT")},
			{Server, my(1, "\x00\x00\x00\x02\x00\x00\x00")},
			{Client, my(0, "\x16INSERT INTO t VALUES (?)")},
			{Server, my(1, prepOK)},
			{Server, my(2, "\x03def")},
			{Server, my(3, "\xfe\x00\x00\x02\x00")},
			{Client, my(0, "\x17\x07\x00\x00\x00\x00\x01\x00\x00\x00")},
			{Server, my(1, "\xff\xbd\x04#40001Deadlock")},
			{Client, my(0, "\x03SELECT 1")},
			{Server, my(1, "\x01")},
			{Server, my(2, "\x03def")},
			{Server, my(3, "\xfe\x00\x00\x02\x00")},
			{Server, my(4, "\x00\x00\x0b")},
			{Server, my(5, "\xfe\x00\x00\x02\x00")},
			{Client, my(1, "\x01")}, // continues a full packet
			{Client, my(0, "\x01")},
		}, []string{
			"server Answer", "client HandshakeResponse", "server Answer", "client Data", "server Answer",
			`client COM_QUERY "COMMIT"`, "server Answer", `client COM_STMT_PREPARE "INSERT INTO t VALUES (?)"`,
			`server Answer "INSERT INTO t VALUES (?)"`, "server Data", "server Data",
			`client COM_STMT_EXECUTE "INSERT INTO t VALUES (?)"`, "server Answer", `client COM_QUERY "SELECT 1"`,
			"server Answer", "server Data", "server Data", "server Data", "server Data", "client Data", "client COM_QUIT",
		}},
	} {
		p := test.protocol()
		var got []string
		for _, piece := range test.pieces {
			m, raw, err := p.read(piece.from, bufio.NewReader(iotest.OneByteReader(bytes.NewReader(piece.raw))))
			if err != nil || !bytes.Equal(raw, piece.raw) {
				t.Errorf("%s: read(%q) = %q, %v; want all of it", name, piece.raw, raw, err)
			}
			got = append(got, m.String())
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: messages =\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(test.want, "\n"))
		}
	}
}

func TestWhatCannotBeFollowedIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		protocol Protocol
		from     Side
		raw      []byte
	}{
		"TLS of PostgreSQL":         {PostgreSQL, Client, pg(0, "\x04\xd2\x16\x2f")},
		"GSSAPI of PostgreSQL":      {PostgreSQL, Client, pg(0, "\x04\xd2\x16\x30")},
		"protocol 2":                {PostgreSQL, Client, pg(0, "\x00\x02\x00\x00")},
		"unknown type":              {PostgreSQL, Client, append(pg(0, pgStart), pg('?', "")...)},
		"length without itself":     {PostgreSQL, Server, []byte("Z\x00\x00\x00\x03")},
		"length of two gigabytes":   {PostgreSQL, Server, []byte("Z\x80\x00\x00\x00")},
		"TLS of MySQL":              {MySQL, Client, my(1, "\x00\x0a\x00\x00")},
		"compression of MySQL":      {MySQL, Client, my(1, "\x20\x02\x00\x00")},
		"startup without a version": {PostgreSQL, Client, pg(0, "")},
	} {
		var err error
		for p, r := test.protocol(), bufio.NewReader(bytes.NewReader(test.raw)); err == nil; {
			_, _, err = p.read(test.from, r)
		}
		if !errors.Is(err, errProtocol) {
			t.Errorf("read(%s) = %v; want errProtocol", name, err)
		}
	}
}
