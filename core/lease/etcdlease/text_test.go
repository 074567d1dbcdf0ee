package etcdlease

import (
	"math"
	"slices"
	"testing"

	"github.com/snowkey/snowkey/core/lease/leasestore"
)

func TestRowsAreReadableAndComeBack(t *testing.T) {
	for _, test := range []struct {
		row    leasestore.Row
		before leasestore.Millis
		text   string
	}{
		{
			leasestore.Row{Worker: 7, Until: 5}, 0,
			`{"worker":7,"epoch":0,"owner":"","nonce":"","until":5,"renewals":0,"holder":"","before":0}`,
		},
		{
			leasestore.Row{Worker: 1023, Epoch: 3, Owner: "00ff", Nonce: "ab12", Until: 1735689600000, Renewals: 12, Holder: "web-1"}, 1735689540000,
			`{"worker":1023,"epoch":3,"owner":"00ff","nonce":"ab12","until":1735689600000,"renewals":12,"holder":"web-1","before":1735689540000}`,
		},
		{
			leasestore.Row{Worker: math.MaxInt64, Epoch: math.MaxInt64, Until: -1, Renewals: math.MaxInt64, Holder: `a"<b>`}, -2,
			`{"worker":9223372036854775807,"epoch":9223372036854775807,"owner":"","nonce":"","until":-1,"renewals":9223372036854775807,"holder":"a\"\u003cb\u003e","before":-2}`,
		},
	} {
		if got := encodeRow(test.row, test.before); got != test.text {
			t.Errorf("encodeRow(%+v, %d) = %s; want %s", test.row, test.before, got, test.text)
		}
		if got, before, ok := decodeRow([]byte(test.text)); got != test.row || before != test.before || !ok {
			t.Errorf("decodeRow(%s) = %+v, %d, %v; want %+v, %d, true", test.text, got, before, ok, test.row, test.before)
		}
	}
}

// Each text differs from a valid one in something that a lenient reader would forgive.
func TestOnlyOneSpellingIsRead(t *testing.T) {
	const end = `"renewals":1,"holder":"","before":0}`
	for _, text := range []string{
		``, `{}`, `null`, `[]`, `x`,
		`{"worker":7,"epoch":3,"owner":"a","nonce":"b","until":5,"renewals":1,"holder":""}`,
		`{"worker":7,"epoch":3,"owner":"a","nonce":"b","until":5,` + end + ` `,
		`{"worker":7,"epoch":3,"owner":"a","nonce":"b","until":5,` + end + `{}`,
		` {"worker":7,"epoch":3,"owner":"a","nonce":"b","until":5,` + end,
		`{"Worker":7,"epoch":3,"owner":"a","nonce":"b","until":5,` + end,
		`{"epoch":3,"worker":7,"owner":"a","nonce":"b","until":5,` + end,
		`{"worker":7,"worker":7,"epoch":3,"owner":"a","nonce":"b","until":5,` + end,
		`{"worker":7,"epoch":3,"owner":"a","nonce":"b","until":5,"more":1,` + end,
		`{"worker":7.0,"epoch":3,"owner":"a","nonce":"b","until":5,` + end,
		`{"worker":-7,"epoch":3,"owner":"a","nonce":"b","until":5,` + end,
		`{"worker":7,"epoch":-3,"owner":"a","nonce":"b","until":5,` + end,
		`{"worker":7,"epoch":9223372036854775808,"owner":"a","nonce":"b","until":5,` + end,
		`{"worker":7,"epoch":3,"owner":"\u0061","nonce":"b","until":5,` + end,
		`{"worker":7,"epoch":3,"owner":"` + "\xff" + `","nonce":"b","until":5,` + end,
	} {
		if got, _, ok := decodeRow([]byte(text)); ok {
			t.Errorf("decodeRow(%q) = %+v, true; want false", text, got)
		}
	}
	for _, text := range []string{``, `null`, `{}`, `[3, 67]`, `[67,3]`, `[3,3]`, `[4]`, `[-61]`, `[3`, `["3"]`, `[3.0]`} {
		if got, ok := decodeFresh([]byte(text), 3); ok {
			t.Errorf("decodeFresh(%q, 3) = %v, true; want false", text, got)
		}
	}
	for _, text := range []string{`[]`, `[3]`, `[3,67,1027]`} {
		if got, ok := decodeFresh([]byte(text), 3); !ok || encode(got) != text {
			t.Errorf("decodeFresh(%q, 3) = %v, %v; want it read", text, got, ok)
		}
	}
}

// The law: a value that is read encodes to the text that it was read from.
func FuzzDecodeRow(f *testing.F) {
	f.Add([]byte(`{"worker":7,"epoch":3,"owner":"00ff","nonce":"ab12","until":1735689600000,"renewals":12,"holder":"web-1","before":1735689540000}`))
	f.Add([]byte(`{"worker":7,"epoch":0,"owner":"","nonce":"","until":0,"renewals":0,"holder":"","before":0}`))
	f.Add([]byte(`{"Worker":7}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		row, before, ok := decodeRow(text)
		if !ok {
			return
		}
		if got := encodeRow(row, before); got != string(text) {
			t.Errorf("encodeRow(%+v, %d) = %q; want as read, %q", row, before, got, text)
		}
		if row.Worker < 0 || row.Epoch < 0 || row.Renewals < 0 {
			t.Errorf("decodeRow(%q) = %+v; want no negative number", text, row)
		}
	})
}

func FuzzDecodeFresh(f *testing.F) {
	f.Add([]byte(`[5,69,133]`), int64(5))
	f.Add([]byte(`[]`), int64(0))
	f.Add([]byte(`[5, 69]`), int64(5))
	f.Fuzz(func(t *testing.T, text []byte, block int64) {
		workers, ok := decodeFresh(text, block)
		if !ok {
			return
		}
		if got := encode(workers); got != string(text) {
			t.Errorf("encode(%v) = %q; want as read, %q", workers, got, text)
		}
		for _, worker := range workers {
			if worker < 0 || worker%blocks != block {
				t.Errorf("decodeFresh(%q, %d) = %v; want workers of the block", text, block, workers)
			}
		}
		if !slices.IsSorted(workers) || len(slices.Compact(slices.Clone(workers))) != len(workers) {
			t.Errorf("decodeFresh(%q, %d) = %v; want each worker once, in order", text, block, workers)
		}
	})
}
