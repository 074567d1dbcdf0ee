package etcdlease

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// ErrDamaged is matched by the error of an operation that found keys which this package did not
// write or which do not fit together. Claims pass over such a row, and a lease that holds one
// claims another.
var ErrDamaged = errors.New("the keys hold what this package did not write")

// The values are JSON, for people who read them with etcdctl. A value that is read must encode
// to the same bytes again, so every value has one spelling, and no field of a later version is
// overlooked.

// A rowText is a [leasestore.Row].
type rowText struct {
	Worker   int64             `json:"worker"`
	Epoch    int64             `json:"epoch"`
	Owner    string            `json:"owner"`
	Nonce    string            `json:"nonce"`
	Until    leasestore.Millis `json:"until"`
	Renewals int64             `json:"renewals"`
	Holder   string            `json:"holder"`
}

// A storedText is the value of a row's key. Before is the limit that the last write found, for
// people who look at the row after a failure.
type storedText struct {
	rowText
	Before leasestore.Millis `json:"before"`
}

func encodeRow(row leasestore.Row, before leasestore.Millis) string {
	return encode(storedText{rowText(row), before})
}

func decodeRow(text []byte) (row leasestore.Row, before leasestore.Millis, ok bool) {
	var t storedText
	ok = decode(text, &t) && t.Worker >= 0 && t.Epoch >= 0 && t.Renewals >= 0
	return leasestore.Row(t.rowText), t.Before, ok
}

// decodeFresh reads the list of a block's workers that were never claimed.
func decodeFresh(text []byte, block int64) (workers []int64, ok bool) {
	ok = decode(text, &workers) && workers != nil
	for i, worker := range workers {
		ok = ok && worker >= 0 && worker%blocks == block && (i == 0 || workers[i-1] < worker)
	}
	return workers, ok
}

func encode(value any) string {
	text, _ := json.Marshal(value) // never fails for these types
	return string(text)
}

// decode reads text into value, and reports whether encoding the value yields text again.
func decode[T any](text []byte, value *T) bool {
	return json.Unmarshal(text, value) == nil && bytes.Equal([]byte(encode(*value)), text)
}

// damage returns the error for a damaged key, with the reason.
func damage(key, format string, args ...any) error {
	return leasestore.Permanent(fmt.Errorf("%w: %s %s", ErrDamaged, key, fmt.Sprintf(format, args...)))
}
