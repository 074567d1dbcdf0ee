package serial

import (
	"slices"
	"strconv"
)

// A Check selects the check digits that end a text. They are computed over all digits before them,
// including those of the prefix. Other bytes are skipped.
type Check int

const (
	// NoCheck adds no digit.
	NoCheck Check = iota

	// Luhn is one digit, as on credit cards (ISO/IEC 7812-1, annex B). It detects every single
	// wrong digit, and every swap of neighbours except 0 and 9.
	Luhn

	// Mod11_10 is one digit (ISO/IEC 7064, MOD 11,10), as in German tax numbers. It detects every
	// single wrong digit, and most swaps of neighbours.
	Mod11_10

	// Mod97_10 is two digits (ISO/IEC 7064, MOD 97-10), as in an IBAN. It covers letters too, from
	// A = 10 to Z = 35, and detects every single wrong digit or letter, and every swap of
	// neighbours.
	Mod97_10
)

// String returns the name of the constant.
func (c Check) String() string {
	if c < NoCheck || c > Mod97_10 {
		return "Check(" + strconv.Itoa(int(c)) + ")"
	}
	return [...]string{"NoCheck", "Luhn", "Mod11_10", "Mod97_10"}[c]
}

// width returns the number of check digits. c was validated.
func (c Check) width() int { return [...]int{0, 1, 1, 2}[c] }

// digits returns the check digits of a text as a number.
func (c Check) digits(text []byte) int {
	switch c {
	case Luhn:
		return luhn(text)
	case Mod11_10:
		return mod11And10(text)
	case Mod97_10:
		return mod97And10(text)
	}
	return 0
}

// luhn doubles every second digit from the last one on, and completes the sum of the digits to a
// multiple of ten.
func luhn(text []byte) int {
	sum, double := 0, true
	for _, b := range slices.Backward(text) {
		if !isDigit(b) {
			continue
		}
		d := int(b - '0')
		if double {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum, double = sum+d, !double
	}
	return (10 - sum%10) % 10
}

// mod11And10 is the recursion of ISO/IEC 7064, 9.2: a product modulo 11 of a sum modulo 10.
func mod11And10(text []byte) int {
	product := 10
	for _, b := range text {
		if !isDigit(b) {
			continue
		}
		sum := (product + int(b-'0')) % 10
		if sum == 0 {
			sum = 10
		}
		product = sum * 2 % 11
	}
	return (11 - product) % 10
}

// mod97And10 returns the digits that make the whole number 1 modulo 97.
func mod97And10(text []byte) int {
	rest := 0
	for _, b := range text {
		switch {
		case isDigit(b):
			rest = (rest*10 + int(b-'0')) % 97
		case 'A' <= b && b <= 'Z':
			rest = (rest*100 + int(b-'A') + 10) % 97
		}
	}
	return 98 - rest*100%97
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }
