package publicid

import "math/bits"

// A block is written as 22 digits of the alphabet of types.Base62, most significant digit first.
// 62^22 is nearly eight times 2^128, so most texts of that length stand for no block.
const (
	digits      = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	blockDigits = 22

	// piece is 62^10, the largest power of 62 in a uint64. Arithmetic is done on pieces of ten
	// digits: a division of 128 bits for each digit would take most of the time of a call.
	pieceDigits = 10
	piece       = 839299365868340224
)

// none is the value of a byte that is no digit.
const none = 0xFF

// values has the digit that a byte stands for, or none.
var values = func() (v [256]byte) {
	for i := range v {
		v[i] = none
	}
	for i := range len(digits) {
		v[digits[i]] = byte(i)
	}
	return v
}()

// appendDigits writes the number hi<<64 | lo.
func appendDigits(b []byte, hi, lo uint64) []byte {
	top, hi := hi/piece, hi%piece
	next, last := bits.Div64(hi, lo, piece)
	first, middle := bits.Div64(top, next, piece) // top < 2^64/piece, so the quotient fits
	var d [blockDigits]byte
	putDigits(d[:2], first)
	putDigits(d[2:2+pieceDigits], middle)
	putDigits(d[2+pieceDigits:], last)
	return append(b, d[:]...)
}

// putDigits fills d with the digits of n, two at a time: each step waits for the division before it.
func putDigits(d []byte, n uint64) {
	for i := len(d) - 2; i >= 0; i -= 2 {
		two := n % (62 * 62)
		n /= 62 * 62
		d[i], d[i+1] = digits[two/62], digits[two%62]
	}
}

// parseDigits reads what appendDigits writes, and reports whether text is a number below 2^128.
func parseDigits(text string) (hi, lo uint64, ok bool) {
	if len(text) != blockDigits {
		return 0, 0, false
	}
	first, ok1 := parsePiece(text[:2])
	middle, ok2 := parsePiece(text[2 : 2+pieceDigits])
	last, ok3 := parsePiece(text[2+pieceDigits:])
	if !ok1 || !ok2 || !ok3 {
		return 0, 0, false
	}
	// ((first * piece) + middle) * piece + last. The first sum is below 2^72.
	topHi, topLo := bits.Mul64(first, piece)
	topLo, carry := bits.Add64(topLo, middle, 0)
	topHi += carry
	hi, lo = bits.Mul64(topLo, piece)
	over, more := bits.Mul64(topHi, piece)
	lo, carry = bits.Add64(lo, last, 0)
	hi, carry = bits.Add64(hi, more, carry)
	return hi, lo, over == 0 && carry == 0
}

// parsePiece reads at most ten digits.
func parsePiece(text string) (n uint64, ok bool) {
	for i := range len(text) {
		d := values[text[i]]
		if d == none {
			return 0, false
		}
		n = n*62 + uint64(d)
	}
	return n, true
}
