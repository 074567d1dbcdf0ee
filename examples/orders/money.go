package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Money is an amount in 1/100 cent: 10000 is 1.00. It is an integer, because a
// float64 has no 0.10, and sums of what it has instead drift. The unit is 1/100
// cent and not a cent, because a price in whole cents less a discount in whole
// percent is then a whole number again, and nothing is ever rounded.
//
// The zero value is 0.00. In SQL it is an integer, in JSON decimal text, since
// many JSON readers would turn a number into a float64.
type Money int64

// The limits of the input. With them one line is at most 10^15, so that its
// product cannot overflow 64 bits; sums are checked where they are made.
const (
	cent         Money = 100
	maxPrice     Money = 1_000_000 * 100 * cent
	maxQuantity        = 100_000
	wholePercent       = 100
)

// lineTotal is price × quantity × (1 − discount), exactly: price is in whole
// cents, so it is a multiple of 100 and the division by 100 leaves no rest.
func lineTotal(price Money, quantity, discountPercent int64) Money {
	return price / wholePercent * Money(quantity*(wholePercent-discountPercent))
}

// plus adds two amounts that are not negative. The second result is false where
// the sum does not fit.
func (m Money) plus(n Money) (Money, bool) {
	if m > math.MaxInt64-n {
		return 0, false
	}
	return m + n, true
}

// String writes whole cents with two decimals and anything finer with four:
// 14.00, 1863.4075.
func (m Money) String() string {
	sign := ""
	units := uint64(m)
	if m < 0 {
		sign, units = "-", -units // also right for the smallest int64
	}
	text := fmt.Sprintf("%s%d.%04d", sign, units/10000, units%10000)
	return strings.TrimSuffix(text, "00")
}

// MarshalText makes Money decimal text in JSON.
func (m Money) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

var errNotDecimal = errors.New("not a decimal number")

// parseHundredths reads decimal text such as 14, 14.5 or 0.15 as a whole number
// of hundredths: cents of an amount, percent of a fraction. More decimals are
// accepted only as zeros, as in 14.0000. No sign, no exponent, no separators.
//
// strconv.ParseFloat would be one line, and would read 0.29 as
// 0.28999999999999998.
func parseHundredths(text string) (int64, error) {
	whole, fraction, point := strings.Cut(text, ".")
	if !isDigits(whole) || point && !isDigits(fraction) {
		return 0, errNotDecimal
	}
	fraction = strings.TrimRight(fraction, "0")
	if len(fraction) > 2 {
		return 0, errors.New("more than two decimals")
	}
	n, err := strconv.ParseInt(whole+(fraction + "00")[:2], 10, 64)
	if err != nil {
		return 0, errors.New("too large")
	}
	return n, nil
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
