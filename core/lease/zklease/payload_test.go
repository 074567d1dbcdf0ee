package zklease

import (
	"math"
	"testing"

	"github.com/snowkey/snowkey/core/lease/leasestore"
)

func TestRowsAreReadableAndComeBack(t *testing.T) {
	for _, test := range []struct {
		row  leasestore.Row
		text string
	}{
		{leasestore.Row{Worker: 7}, `v1 worker=7 epoch=0 owner="" nonce="" until=0 renewals=0 holder=""`},
		{
			leasestore.Row{Worker: 1023, Epoch: 3, Owner: "00ff", Nonce: "ab12", Until: 1735689600000, Renewals: 12, Holder: "web-1"},
			`v1 worker=1023 epoch=3 owner="00ff" nonce="ab12" until=1735689600000 renewals=12 holder="web-1"`,
		},
		{
			leasestore.Row{Worker: math.MaxInt64, Epoch: math.MaxInt64, Owner: "a\" b\n\x00\xffü", Until: -1, Renewals: math.MaxInt64},
			`v1 worker=9223372036854775807 epoch=9223372036854775807 owner="a\" b\n\x00\xffü" nonce="" until=-1 renewals=9223372036854775807 holder=""`,
		},
	} {
		if got := string(encodeRow(test.row)); got != test.text {
			t.Errorf("encodeRow(%+v) = %s; want %s", test.row, got, test.text)
		}
		if got, ok := decodeRow([]byte(test.text)); got != test.row || !ok {
			t.Errorf("decodeRow(%s) = %+v, %v; want %+v, true", test.text, got, ok, test.row)
		}
	}
}

// Each text differs from a valid row in something that a lenient reader would forgive.
func TestOnlyOneSpellingIsRead(t *testing.T) {
	for _, text := range []string{
		``,
		`v1`,
		`v2 worker=7 epoch=3 owner="a" nonce="b" until=5 renewals=1 holder=""`,
		`v1 worker=7 epoch=3 owner="a" nonce="b" until=5 renewals=1 holder="" `,
		`v1 worker=7 epoch=3 owner="a" nonce="b" until=5 renewals=1 holder=""x`,
		"v1 worker=7 epoch=3 owner=\"a\" nonce=\"b\" until=5 renewals=1 holder=\"\"\n",
		` v1 worker=7 epoch=3 owner="a" nonce="b" until=5 renewals=1 holder=""`,
		`v1  worker=7 epoch=3 owner="a" nonce="b" until=5 renewals=1 holder=""`,
		`v1 worker= 7 epoch=3 owner="a" nonce="b" until=5 renewals=1 holder=""`,
		`v1 worker=+7 epoch=3 owner="a" nonce="b" until=5 renewals=1 holder=""`,
		`v1 worker=07 epoch=3 owner="a" nonce="b" until=5 renewals=1 holder=""`,
		`v1 worker=1_0 epoch=3 owner="a" nonce="b" until=5 renewals=1 holder=""`,
		`v1 worker=0x7 epoch=3 owner="a" nonce="b" until=5 renewals=1 holder=""`,
		`v1 worker=-7 epoch=3 owner="a" nonce="b" until=5 renewals=1 holder=""`,
		`v1 worker=7 epoch=-3 owner="a" nonce="b" until=5 renewals=1 holder=""`,
		`v1 worker=7 epoch=3 owner="a" nonce="b" until=5 renewals=-1 holder=""`,
		`v1 worker=7 epoch=9223372036854775808 owner="a" nonce="b" until=5 renewals=1 holder=""`,
		`v1 worker=7 epoch=3 owner=a nonce="b" until=5 renewals=1 holder=""`,
		"v1 worker=7 epoch=3 owner=`a` nonce=\"b\" until=5 renewals=1 holder=\"\"",
		`v1 worker=7 epoch=3 owner="\x61" nonce="b" until=5 renewals=1 holder=""`,
		`v1 worker=7 epoch=3 owner="a" until=5 nonce="b" renewals=1 holder=""`,
		`v1 worker=7 epoch=3 owner="a" nonce="b" until=5`,
	} {
		if got, ok := decodeRow([]byte(text)); ok {
			t.Errorf("decodeRow(%q) = %+v, true; want false", text, got)
		}
	}
	for _, text := range []string{
		``, `v1 workers=4`, `v1 workers=0 state=complete`, `v1 workers=65537 state=complete`, `v1 workers=4 state=`,
		`v1 workers=4 state=Complete`, `v1 workers=4 state=complete `, `v1 workers=04 state=complete`, `v2 workers=4 state=complete`,
	} {
		if got, ok := decodeMeta([]byte(text)); ok {
			t.Errorf("decodeMeta(%q) = %+v, true; want false", text, got)
		}
	}
	for _, text := range []string{``, `41/5/5/12`, `v1 layout=a`, `v1 layout="a" `, `v2 layout="a"`, `v1 layout="\x61"`} {
		if got, ok := decodeLayout([]byte(text)); ok {
			t.Errorf("decodeLayout(%q) = %q, true; want false", text, got)
		}
	}
}

// The law: a value that is read encodes to the text that it was read from.
func FuzzDecodeRow(f *testing.F) {
	f.Add([]byte(`v1 worker=7 epoch=3 owner="00ff" nonce="ab12" until=1735689600000 renewals=12 holder=""`))
	f.Add([]byte(`v1 worker=7 epoch=0 owner="" nonce="" until=0 renewals=0 holder=""`))
	f.Fuzz(func(t *testing.T, data []byte) {
		row, ok := decodeRow(data)
		if !ok {
			return
		}
		if got := encodeRow(row); string(got) != string(data) {
			t.Errorf("encodeRow(%+v) = %q; want as read, %q", row, got, data)
		}
		if row.Worker < 0 || row.Epoch < 0 || row.Renewals < 0 {
			t.Errorf("decodeRow(%q) = %+v; want no negative number", data, row)
		}
	})
}

func FuzzRowComesBack(f *testing.F) {
	f.Add(int64(7), int64(3), "00ff", "ab12", int64(1735689600000), int64(12), "web-1")
	f.Add(int64(0), int64(0), " \"\\\n", "\x00\xff\u2028\U0001f600", int64(-1), int64(math.MaxInt64), "")
	f.Fuzz(func(t *testing.T, worker, epoch int64, owner, nonce string, until, renewals int64, holder string) {
		row := leasestore.Row{Worker: worker, Epoch: epoch, Owner: owner, Nonce: nonce, Until: leasestore.Millis(until), Renewals: renewals, Holder: holder}
		got, ok := decodeRow(encodeRow(row))
		if want := worker >= 0 && epoch >= 0 && renewals >= 0; ok != want || ok && got != row {
			t.Errorf("decodeRow(%q) = %+v, %v; want %+v, %v", encodeRow(row), got, ok, row, want)
		}
	})
}

func FuzzDecodeMeta(f *testing.F) {
	f.Add([]byte(`v1 workers=1024 state=complete`))
	f.Add([]byte(`v1 workers=1 state=filling`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, ok := decodeMeta(data)
		if got := m.encode(); ok && string(got) != string(data) {
			t.Errorf("encode() of %+v = %q; want as read, %q", m, got, data)
		}
		if ok && (m.workers < 1 || m.workers > maxWorkers || m.state != filling && m.state != complete) {
			t.Errorf("decodeMeta(%q) = %+v; want 1..%d workers and a known state", data, m, maxWorkers)
		}
	})
}

func FuzzDecodeLayout(f *testing.F) {
	f.Add([]byte(`v1 layout="epoch 2020-01-01T00:00:00Z, unit 1ms, bits 41/5/5/12"`))
	f.Fuzz(func(t *testing.T, data []byte) {
		layout, ok := decodeLayout(data)
		if got := encodeLayout(layout); ok && string(got) != string(data) {
			t.Errorf("encodeLayout(%q) = %q; want as read, %q", layout, got, data)
		}
	})
}
