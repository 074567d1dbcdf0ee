package zklease

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// ErrDamaged is matched by the error for a znode whose data this package did not write:
// another program wrote it, or a later version of this package. A claim passes over such a
// row, and a lease that has one takes another row.
var ErrDamaged = errors.New("zklease: unreadable znode")

// Znodes hold text, for people who look at them with zkCli. Each form begins with its version
// and has exactly one spelling: text that was read is written again and must come out the
// same, byte for byte. That settles all questions about spaces, signs, leading zeros, escapes
// and trailing bytes, and makes it safe to parse with fmt, which is lenient about them.
const (
	layoutForm = "v1 layout=%q"
	metaForm   = "v1 workers=%d state=%s"
	rowForm    = "v1 worker=%d epoch=%d owner=%q nonce=%q until=%d renewals=%d holder=%q"
)

func encodeLayout(layout string) []byte { return fmt.Appendf(nil, layoutForm, layout) }

func decodeLayout(data []byte) (layout string, ok bool) {
	_, err := fmt.Sscanf(string(data), layoutForm, &layout)
	return layout, err == nil && bytes.Equal(encodeLayout(layout), data)
}

// A meta is the content of a datacenter's znode.
type meta struct {
	workers int64 // the number of rows, once all are made
	state   string
}

// The states of a datacenter. It never goes back from complete to filling.
const (
	filling  = "filling"  // rows are being made, none has been claimed
	complete = "complete" // rows may be claimed, none is ever made
)

func (m meta) encode() []byte { return fmt.Appendf(nil, metaForm, m.workers, m.state) }

func decodeMeta(data []byte) (m meta, ok bool) {
	_, err := fmt.Sscanf(string(data), metaForm, &m.workers, &m.state)
	return m, err == nil && bytes.Equal(m.encode(), data) &&
		m.workers >= 1 && m.workers <= maxWorkers && (m.state == filling || m.state == complete)
}

func encodeRow(r leasestore.Row) []byte {
	return fmt.Appendf(nil, rowForm, r.Worker, r.Epoch, r.Owner, r.Nonce, r.Until, r.Renewals, r.Holder)
}

func decodeRow(data []byte) (r leasestore.Row, ok bool) {
	_, err := fmt.Sscanf(string(data), rowForm, &r.Worker, &r.Epoch, &r.Owner, &r.Nonce, &r.Until, &r.Renewals, &r.Holder)
	return r, err == nil && bytes.Equal(encodeRow(r), data) && r.Worker >= 0 && r.Epoch >= 0 && r.Renewals >= 0
}

// damage returns the error for a znode that cannot be decoded.
func damage(path string, data []byte, form string) error {
	return leasestore.Permanent(fmt.Errorf("%w: %s holds %s: want the form %s", ErrDamaged, path, quote(string(data)), form))
}
