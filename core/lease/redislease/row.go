package redislease

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// most is the largest absolute value of a number in a row. find.lua compares sums of two of
// them as doubles, which are exact up to 2^53. In milliseconds, most is 71,000 years.
const most = 1 << 51

// parseRow parses a row: epoch,owner,nonce,until,renewals,before,holder. There may be 65,536 of
// them, for which a regular expression is too slow.
func parseRow(worker int64, text string) (leasestore.Row, error) {
	fields := strings.SplitN(text, ",", 7)
	if len(fields) != 7 || strings.ContainsFunc(fields[6], func(r rune) bool { return r < ' ' || r > '~' }) {
		return leasestore.Row{}, damagedRow(worker, text)
	}
	var n [4]int64
	for i, field := range [...]string{fields[0], fields[3], fields[4], fields[5]} {
		var err error
		n[i], err = strconv.ParseInt(field, 10, 64)
		signed := i == 1 || i == 3 // until and before
		if err != nil || n[i] < -most || n[i] > most || field[0] == '+' || field[0] == '-' && !signed {
			return leasestore.Row{}, damagedRow(worker, text)
		}
	}
	return leasestore.Row{
		Worker:   worker,
		Epoch:    n[0],
		Owner:    fields[1],
		Nonce:    fields[2],
		Until:    leasestore.Millis(n[1]),
		Renewals: n[2],
		Holder:   fields[6],
	}, nil
}

// formatRow returns the text of a row, or a *core.ValueError if that would not be read back as
// the same row.
func formatRow(row leasestore.Row, before leasestore.Millis) (string, error) {
	text := fmt.Sprintf("%d,%s,%s,%d,%d,%d,%s", row.Epoch, row.Owner, row.Nonce, row.Until, row.Renewals, before, row.Holder)
	if again, err := parseRow(row.Worker, text); err != nil || again != row || row.Nonce == "" || len(row.Owner) > 64 || len(row.Nonce) > 64 {
		return "", invalid("Row", fmt.Sprintf("%+v", row),
			fmt.Sprintf("tokens of 32 hexadecimal digits, and numbers of %d..%d, which Lua's numbers hold exactly", int64(-most), int64(most)))
	}
	return text, nil
}

func damagedRow(worker int64, text string) error {
	const enough = 160
	if len(text) > enough {
		text = text[:enough] + "…"
	}
	return leasestore.Permanent(fmt.Errorf("%w: the row of worker %d is %q: want epoch,owner,nonce,until,renewals,before,holder with numbers up to %d",
		ErrDamaged, worker, text, int64(most)))
}
