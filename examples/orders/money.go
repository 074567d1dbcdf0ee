package main

import (
	"fmt"
	"strings"
)

// Money is an amount in 1/100 cent: 10000 is 1.00. It is an integer, because a
// float64 cannot hold 0.10 exactly. The unit is 1/100 cent and not a cent: a price
// in whole cents less a discount in whole percent is then a whole number, and
// nothing is rounded.
//
// The zero value is 0.00. In SQL it is an integer. In JSON it is decimal text,
// since many readers would turn a number into a float64.
type Money int64

const cent Money = 100

// lineTotal returns price × quantity × (1 − discount). It is exact: price is in
// whole cents, so the division by 100 leaves no rest. Within the limits of the
// input it is at most 10^15.
func lineTotal(price Money, quantity, discountPercent int64) Money {
	return price / 100 * Money(quantity*(100-discountPercent))
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
