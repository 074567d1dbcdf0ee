package filelease

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc64"

	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// A slot file has two places for a record, each at the start of its own block, so that a disk
// that tears a write or spoils the surrounding sector damages one record and not both. Record n
// is written into place n%2, so the newest record is never overwritten; see [slot.write].
const (
	recordSize = 512
	placeSize  = 4096
	places     = 2
	slotSize   = places * placeSize

	maxToken = 63 // bytes of an owner or a nonce
	maxName  = 64 // bytes of a namespace or a holder
)

// A layout is a record on the disk. Numbers are little-endian, and unused bytes are 0.
type layout struct {
	Magic      [8]byte
	Version    uint16
	Held       bool
	_          [5]byte
	Sequence   uint64
	Identity   identity
	Datacenter int64
	Worker     int64
	Epoch      int64
	Until      int64
	Renewals   int64
	Owner      [1 + maxToken]byte // its length, then its bytes, like every text
	Nonce      [1 + maxToken]byte
	Namespace  [1 + maxName]byte
	_          [7]byte
	Holder     [1 + maxName]byte
	_          [159]byte
	CRC        uint64 // of all before it
}

const atCRC = recordSize - 8

var (
	magic    = [8]byte([]byte("snowslot"))
	crcTable = crc64.MakeTable(crc64.ECMA)
)

const version = 1

// An identity is the random name of a space. It tells a slot file from a copy that belongs
// elsewhere, even under the same namespace and number.
type identity [16]byte

// A record is one version of a row, as a slot file has it.
type record struct {
	sequence   uint64 // grows by one with each record
	identity   identity
	namespace  string
	datacenter int64
	held       bool // the owner has the holder's lock; see Store.hold
	row        leasestore.Row
}

// place returns the offset in a slot file at which r belongs.
func (r *record) place() int64 { return int64(r.sequence%places) * placeSize }

// encode returns r as a slot file has it.
func (r *record) encode() ([]byte, error) {
	l := layout{
		Magic: magic, Version: version, Held: r.held, Sequence: r.sequence, Identity: r.identity, Datacenter: r.datacenter,
		Worker: r.row.Worker, Epoch: r.row.Epoch, Until: int64(r.row.Until), Renewals: r.row.Renewals,
	}
	for _, s := range []struct {
		name, text string
		to         []byte
	}{
		{"owner", r.row.Owner, l.Owner[:]},
		{"nonce", r.row.Nonce, l.Nonce[:]},
		{"namespace", r.namespace, l.Namespace[:]},
		{"holder", r.row.Holder, l.Holder[:]},
	} {
		if len(s.text) >= len(s.to) {
			return nil, fmt.Errorf("filelease: %s has %d bytes: want at most %d", s.name, len(s.text), len(s.to)-1)
		}
		s.to[0] = byte(len(s.text))
		copy(s.to[1:], s.text)
	}
	b, err := binary.Append(make([]byte, 0, recordSize), binary.LittleEndian, &l)
	if err != nil {
		return nil, fmt.Errorf("filelease: encode a record: %w", err)
	}
	binary.LittleEndian.PutUint64(b[atCRC:], crc64.Checksum(b[:atCRC], crcTable))
	return b, nil
}

// decode returns the record in b, and false if there is none. Bytes that encode would not have
// written are no record, whatever their checksum.
func decode(b []byte) (record, bool) {
	var l layout
	if n, err := binary.Decode(b, binary.LittleEndian, &l); err != nil || n != len(b) {
		return record{}, false
	}
	text := func(b []byte) string { return string(b[1:][:min(int(b[0]), len(b)-1)]) }
	r := record{
		sequence: l.Sequence, identity: l.Identity, namespace: text(l.Namespace[:]), datacenter: l.Datacenter, held: l.Held,
		row: leasestore.Row{
			Worker: l.Worker, Epoch: l.Epoch, Owner: text(l.Owner[:]), Nonce: text(l.Nonce[:]),
			Until: leasestore.Millis(l.Until), Renewals: l.Renewals, Holder: text(l.Holder[:]),
		},
	}
	// If this gives the same bytes, the checksum, magic, version, lengths and padding are
	// right.
	again, err := r.encode()
	return r, err == nil && bytes.Equal(again, b)
}

// newest returns the record that was written to a slot file last, and false if there is none. A
// place without a record, or with one that belongs into the other place, was being written when
// the machine stopped, or was never written; the other place then has the record before.
func newest(b []byte) (last record, found bool) {
	if len(b) != slotSize {
		return record{}, false
	}
	for place := int64(0); place < slotSize; place += placeSize {
		r, ok := decode(b[place:][:recordSize])
		if ok && r.place() == place && (!found || r.sequence > last.sequence) {
			last, found = r, true
		}
	}
	return last, found
}
