package filelease

import (
	"bytes"
	"encoding/binary"
	"hash/crc64"
	"slices"
	"strings"
	"testing"

	"github.com/snowkey/snowkey/core/lease/leasestore"
)

var sample = record{
	sequence: 7, identity: identity{1, 2, 3}, namespace: "orders", datacenter: 3, held: true,
	row: leasestore.Row{Worker: 5, Epoch: 9, Owner: strings.Repeat("a", 32), Nonce: strings.Repeat("b", 32), Until: 1_800_000_000_000, Renewals: 11},
}

func mustEncode(t testing.TB, r record) []byte {
	t.Helper()
	b, err := r.encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestARecordIsReadAsItWasWritten(t *testing.T) {
	widest := sample
	widest.sequence, widest.datacenter, widest.row.Until = 1<<64-1, 1<<63-1, -1<<63
	widest.namespace, widest.row.Owner, widest.row.Nonce = strings.Repeat("n", maxName), strings.Repeat("o", maxToken), strings.Repeat("c", maxToken)
	free := sample
	free.held = false
	for _, r := range []record{sample, widest, free, {}} {
		if got, ok := decode(mustEncode(t, r)); !ok || got != r {
			t.Errorf("decode(encode(%+v)) = %+v, %v; want the same", r, got, ok)
		}
	}
}

func TestARecordOfWhichOneBitHasChangedIsNone(t *testing.T) {
	b := mustEncode(t, sample)
	for i := range 8 * len(b) {
		b[i/8] ^= 1 << (i % 8)
		if r, ok := decode(b); ok {
			t.Errorf("decode with bit %d of byte %d changed = %+v; want none", i%8, i/8, r)
		}
		b[i/8] ^= 1 << (i % 8)
	}
}

func TestARecordOfAnotherLengthIsNone(t *testing.T) {
	b := append(mustEncode(t, sample), 0)
	for n := range len(b) + 1 {
		if _, ok := decode(b[:n]); ok != (n == recordSize) {
			t.Errorf("decode of %d bytes = %v; want %v", n, ok, n == recordSize)
		}
	}
}

func TestTooLongATokenIsNotWritten(t *testing.T) {
	for _, r := range []record{
		{row: leasestore.Row{Owner: strings.Repeat("o", maxToken+1)}},
		{row: leasestore.Row{Nonce: strings.Repeat("o", maxToken+1)}},
		{namespace: strings.Repeat("o", maxName+1)},
	} {
		if _, err := r.encode(); err == nil {
			t.Errorf("encode(%+v) = error nil; want one", r)
		}
	}
}

func TestTheNewestValidRecordWins(t *testing.T) {
	at := func(sequence uint64) record {
		r := sample
		r.sequence = sequence
		return r
	}
	type place struct {
		place    int
		sequence uint64
		torn     bool
	}
	for _, tt := range []struct {
		name   string
		places []place
		want   uint64
		ok     bool
	}{
		{"the first", []place{{0, 0, false}}, 0, true},
		{"in order", []place{{0, 4, false}, {1, 5, false}}, 5, true},
		{"around", []place{{0, 6, false}, {1, 5, false}}, 6, true},
		{"newest torn", []place{{0, 6, false}, {1, 7, true}}, 6, true},
		{"oldest torn", []place{{0, 6, true}, {1, 7, false}}, 7, true},
		{"both torn", []place{{0, 6, true}, {1, 7, true}}, 0, false},
		{"in the wrong place", []place{{0, 6, false}, {1, 8, false}}, 6, true},
		{"none", nil, 0, false},
	} {
		b := make([]byte, slotSize)
		for _, p := range tt.places {
			copy(b[p.place*placeSize:], mustEncode(t, at(p.sequence)))
			if p.torn {
				clear(b[p.place*placeSize+recordSize/2:][:recordSize/2])
			}
		}
		if got, ok := newest(b); ok != tt.ok || ok && got.sequence != tt.want {
			t.Errorf("%s: newest(%+v) = record %d, %v; want %d, %v", tt.name, tt.places, got.sequence, ok, tt.want, tt.ok)
		}
		if _, ok := newest(b[:slotSize-1]); ok {
			t.Errorf("%s: newest of a file cut short = true; want false", tt.name)
		}
	}
}

// FuzzRecord: whatever decodes encodes to the same bytes again. A record for which the fuzzer,
// not encode, has computed the checksum yields no row that could not be written back.
func FuzzRecord(f *testing.F) {
	f.Add(mustEncode(f, sample))
	f.Add(mustEncode(f, record{}))
	f.Add(make([]byte, recordSize))
	f.Fuzz(func(t *testing.T, b []byte) {
		before := slices.Clone(b)
		for _, b := range [][]byte{b, withChecksum(b)} {
			r, ok := decode(b)
			if !ok {
				continue
			}
			if again := mustEncode(t, r); !bytes.Equal(again, b) {
				t.Errorf("encode(decode(b)) = %x; want b, %x", again, b)
			}
		}
		if !bytes.Equal(b, before) {
			t.Error("decode has changed its argument")
		}
	})
}

// FuzzSlot: no content of a slot file makes newest panic or return a record that is not in it.
func FuzzSlot(f *testing.F) {
	f.Add(mustEncode(f, sample), uint8(1), uint16(100))
	f.Add(mustEncode(f, sample), uint8(0), uint16(slotSize))
	f.Fuzz(func(t *testing.T, b []byte, place uint8, size uint16) {
		file := make([]byte, slotSize)
		copy(file[int(place)%places*placeSize:], withChecksum(b))
		r, ok := newest(file)
		if ok && !bytes.Equal(mustEncode(t, r), file[r.place():][:recordSize]) {
			t.Errorf("newest = %+v, which is not at %d", r, r.place())
		}
		cut := int(size) % slotSize
		if _, ok := newest(file[:cut]); ok {
			t.Errorf("newest of %d bytes = true; want false", cut)
		}
	})
}

// withChecksum returns b as a record with a valid checksum.
func withChecksum(b []byte) []byte {
	r := make([]byte, recordSize)
	copy(r, b)
	binary.LittleEndian.PutUint64(r[atCRC:], crc64.Checksum(r[:atCRC], crcTable))
	return r
}
