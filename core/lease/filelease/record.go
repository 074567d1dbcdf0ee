package filelease

import (
	"encoding/binary"
	"fmt"
	"hash/crc64"

	"github.com/snowkey/snowkey/core/lease"
)

// A slot file has two places for a record, each at the start of a block of its own. A
// disk that tears a write, or spoils the sector around it, then spoils one record, not
// two. Records are written in turn, record n into place n%2, so that the newest is
// never overwritten; see [slot.write].
const (
	recordSize = 512
	placeSize  = 4096
	places     = 2
	slotSize   = places * placeSize

	maxToken     = 63 // bytes of an owner or a nonce
	maxNamespace = 64
	maxHolder    = 64
)

// The layout of a record; numbers are little-endian, and what is not used is 0.
const (
	atMagic      = 0 // 8 bytes
	atVersion    = 8 // 2 bytes
	atFlags      = 10
	atSequence   = 16
	atIdentity   = 24
	atDatacenter = 40
	atWorker     = 48
	atEpoch      = 56
	atUntil      = 64
	atRenewals   = 72
	atOwner      = 80  // a length and maxToken bytes
	atNonce      = 144 // likewise
	atNamespace  = 208 // a length and maxNamespace bytes
	atHolder     = 280 // a length and maxHolder bytes
	atCRC        = recordSize - 8

	magic   = "snowslot"
	version = 1

	flagHeld = 1
)

var crcTable = crc64.MakeTable(crc64.ECMA)

// An identity is the random name of a space. It tells a slot file from a copy of one
// that belongs elsewhere, even under the same namespace and number.
type identity [16]byte

// A record is one version of a row, as it is in a slot file.
type record struct {
	sequence   uint64 // grows by one with each record
	identity   identity
	namespace  string
	datacenter int64
	held       bool // the owner has the holder's lock; see Store.hold
	row        lease.Row
}

// place returns the offset in a slot file at which r belongs.
func (r *record) place() int64 { return int64(r.sequence%places) * placeSize }

// encode returns r as it is in a slot file.
func (r *record) encode() ([]byte, error) {
	b := make([]byte, recordSize)
	copy(b[atMagic:], magic)
	binary.LittleEndian.PutUint16(b[atVersion:], version)
	if r.held {
		b[atFlags] = flagHeld
	}
	binary.LittleEndian.PutUint64(b[atSequence:], r.sequence)
	copy(b[atIdentity:], r.identity[:])
	for _, n := range []struct {
		at int
		v  int64
	}{
		{atDatacenter, r.datacenter},
		{atWorker, r.row.Worker},
		{atEpoch, r.row.Epoch},
		{atUntil, int64(r.row.Until)},
		{atRenewals, r.row.Renewals},
	} {
		binary.LittleEndian.PutUint64(b[n.at:], uint64(n.v))
	}
	for _, s := range []struct {
		at, limit int
		name, v   string
	}{
		{atOwner, maxToken, "owner", r.row.Owner},
		{atNonce, maxToken, "nonce", r.row.Nonce},
		{atNamespace, maxNamespace, "namespace", r.namespace},
		{atHolder, maxHolder, "holder", r.row.Holder},
	} {
		if len(s.v) > s.limit {
			return nil, fmt.Errorf("filelease: %s has %d bytes: want at most %d", s.name, len(s.v), s.limit)
		}
		b[s.at] = byte(len(s.v))
		copy(b[s.at+1:], s.v)
	}
	binary.LittleEndian.PutUint64(b[atCRC:], crc64.Checksum(b[:atCRC], crcTable))
	return b, nil
}

// decode returns the record in b, and false if there is none. What encode would not
// have written is not a record, whatever its checksum.
func decode(b []byte) (record, bool) {
	if len(b) != recordSize {
		return record{}, false
	}
	number := func(at int) int64 { return int64(binary.LittleEndian.Uint64(b[at:])) }
	text := func(at, limit int) string { return string(b[at+1:][:min(int(b[at]), limit)]) }
	r := record{
		sequence:   binary.LittleEndian.Uint64(b[atSequence:]),
		identity:   identity(b[atIdentity:]),
		namespace:  text(atNamespace, maxNamespace),
		datacenter: number(atDatacenter),
		held:       b[atFlags]&flagHeld != 0,
		row: lease.Row{
			Worker:   number(atWorker),
			Epoch:    number(atEpoch),
			Owner:    text(atOwner, maxToken),
			Nonce:    text(atNonce, maxToken),
			Until:    lease.Millis(number(atUntil)),
			Renewals: number(atRenewals),
			Holder:   text(atHolder, maxHolder),
		},
	}
	// Checksum, magic, version, flags, lengths and padding are right if this gives
	// the same bytes.
	if again, err := r.encode(); err != nil || string(again) != string(b) {
		return record{}, false
	}
	return r, true
}

// newest returns the record of a slot file that was written last, and false if there is
// none. A place may hold no record, or one that belongs into the other place. It was
// then being written when the machine stopped, or was never written. The other place
// has the record before.
func newest(b []byte) (record, bool) {
	if len(b) != slotSize {
		return record{}, false
	}
	var last record
	found := false
	for place := int64(0); place < slotSize; place += placeSize {
		r, ok := decode(b[place:][:recordSize])
		if ok && r.place() == place && (!found || r.sequence > last.sequence) {
			last, found = r, true
		}
	}
	return last, found
}
