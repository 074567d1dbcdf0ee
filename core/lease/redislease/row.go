package redislease

import (
	"fmt"
	"regexp"
	"strconv"

	"github.com/snowkey/snowkey/core/lease"
)

// most is the largest number, either way, that a script may be given or may find in a
// row. Lua counts in doubles, which are exact up to 2^53. The scripts add up to four of
// these. In milliseconds it is 71,000 years.
const most = 1 << 51

// rowText is the pattern of common.lua: both must call the same rows damaged.
var rowText = regexp.MustCompile(`^(\d+),([^,]*),([^,]*),(-?\d+),(\d+),(-?\d+),([ -~]*)$`)

// parseRow reads what common.lua writes: the row, and its limit as the last write
// found it.
func parseRow(worker int64, text string) (row lease.Row, before lease.Millis, err error) {
	fields := rowText.FindStringSubmatch(text)
	if fields == nil {
		return lease.Row{}, 0, damagedRow(worker, text)
	}
	var n [4]int64
	for i, field := range [...]string{fields[1], fields[4], fields[5], fields[6]} {
		if n[i], err = strconv.ParseInt(field, 10, 64); err != nil || n[i] < -most || n[i] > most {
			return lease.Row{}, 0, damagedRow(worker, text)
		}
	}
	return lease.Row{
		Worker:   worker,
		Epoch:    n[0],
		Owner:    fields[2],
		Nonce:    fields[3],
		Until:    lease.Millis(n[1]),
		Renewals: n[2],
		Holder:   fields[7],
	}, lease.Millis(n[3]), nil
}

func damagedRow(worker int64, text string) error {
	const enough = 160
	if len(text) > enough {
		text = text[:enough] + "…"
	}
	return lease.Permanent(fmt.Errorf("%w: the row of worker %d is %q: want epoch,owner,nonce,until,renewals,before,holder with numbers up to %d",
		ErrDamaged, worker, text, int64(most)))
}
