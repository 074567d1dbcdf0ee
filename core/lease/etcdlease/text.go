package etcdlease

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// ErrDamaged is matched by the error of an operation that found something in its keys
// that this package does not write, or keys that do not fit together. Claims pass over
// such a row, and a lease that has one takes another.
var ErrDamaged = errors.New("the keys hold what this package did not write")

// The values are JSON, for those who look at them with etcdctl. What is read is written
// again and must come out the same, byte for byte. So there is one spelling of each
// value, and nothing that a later version may add is overlooked.

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

// A storedText is the value of a row's key. Before is Until as the last write found it, for
// those who look at the row after something went wrong.
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

// decodeFresh reads the list of the workers of a block that were never claimed.
func decodeFresh(text []byte, block int64) (workers []int64, ok bool) {
	ok = decode(text, &workers) && workers != nil
	for i, worker := range workers {
		ok = ok && worker >= 0 && worker%blocks == block && (i == 0 || workers[i-1] < worker)
	}
	return workers, ok
}

func encode(value any) string {
	text, _ := json.Marshal(value) // which never fails for these types
	return string(text)
}

// decode reports whether text is what encode writes of some value, and reads that.
func decode[T any](text []byte, value *T) bool {
	return json.Unmarshal(text, value) == nil && bytes.Equal([]byte(encode(*value)), text)
}

// damage returns the error for a key, and what is wrong with it.
func damage(key, format string, args ...any) error {
	return leasestore.Permanent(fmt.Errorf("%w: %s %s", ErrDamaged, key, fmt.Sprintf(format, args...)))
}
