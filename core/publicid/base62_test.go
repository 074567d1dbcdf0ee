package publicid

import (
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/snowkey/snowkey/types"
)

// spell writes n with math/big, whose digits are 0-9a-zA-Z.
func spell(n *big.Int) string {
	const bigDigits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	s := strings.Map(func(r rune) rune { return rune(digits[strings.IndexRune(bigDigits, r)]) }, n.Text(62))
	return strings.Repeat("0", max(0, blockDigits-len(s))) + s
}

func number(hi, lo uint64) *big.Int {
	n := new(big.Int).Lsh(new(big.Int).SetUint64(hi), 64)
	return n.Or(n, new(big.Int).SetUint64(lo))
}

// numbers are the ends of the words and of the pieces, and random ones.
func numbers() []*big.Int {
	var list []*big.Int
	p := new(big.Int).SetUint64(piece)
	for _, base := range []*big.Int{
		new(big.Int), number(1, 0), p, new(big.Int).Mul(p, p), new(big.Int).Mul(p, big.NewInt(61)), number(math.MaxUint64, math.MaxUint64),
		number(piece, 0), number(piece-1, math.MaxUint64), number(math.MaxUint64, 0), number(1<<63, 0), number(1<<63-1, math.MaxUint64),
	} {
		for d := int64(-3); d <= 3; d++ {
			if n := new(big.Int).Add(base, big.NewInt(d)); n.Sign() >= 0 && n.BitLen() <= 128 {
				list = append(list, n)
			}
		}
	}
	r := rand.New(rand.NewPCG(27, 2))
	for range 20_000 {
		n := number(r.Uint64(), r.Uint64())
		list = append(list, n.Rsh(n, uint(r.IntN(128))))
	}
	return list
}

func TestDigitsAgreeWithBigIntAndComeBack(t *testing.T) {
	mask := new(big.Int).SetUint64(math.MaxUint64)
	for _, n := range numbers() {
		hi, lo := new(big.Int).Rsh(n, 64).Uint64(), new(big.Int).And(n, mask).Uint64()
		want := spell(n)
		if got := string(appendDigits([]byte("x"), hi, lo)); got != "x"+want {
			t.Fatalf("appendDigits(x, %d, %d) = %q; want x%s", hi, lo, got, want)
		}
		if h, l, ok := parseDigits(want); h != hi || l != lo || !ok {
			t.Fatalf("parseDigits(%q) = %d, %d, %v; want %d, %d, true", want, h, l, ok, hi, lo)
		}
	}
}

func TestTheAlphabetIsThatOfBase62OfTypes(t *testing.T) {
	for n := range types.Snowflake(62) {
		if got := n.Base62()[10]; got != digits[n] {
			t.Errorf("digit %d = %q; want %q, as Base62 writes it", n, digits[n], got)
		}
	}
	if new(big.Int).Exp(big.NewInt(62), big.NewInt(pieceDigits), nil).Cmp(new(big.Int).SetUint64(piece)) != 0 {
		t.Errorf("piece = %d; want 62^%d", uint64(piece), pieceDigits)
	}
}

// Every number from 2^128 on that 22 digits can spell is the second spelling of another.
func TestNumbersAbove128BitsAreRefused(t *testing.T) {
	limit, all := number(1, 0), new(big.Int).Exp(big.NewInt(62), big.NewInt(blockDigits), nil)
	limit.Lsh(limit, 64)
	r := rand.New(rand.NewPCG(27, 3))
	span := new(big.Int).Sub(all, limit)
	list := []*big.Int{limit, new(big.Int).Add(limit, big.NewInt(1)), new(big.Int).Sub(all, big.NewInt(1))}
	for k := int64(2); k < 8; k++ { // where a sum that wraps is small again
		for d := int64(-2); d <= 2; d++ {
			list = append(list, new(big.Int).Add(new(big.Int).Mul(limit, big.NewInt(k)), big.NewInt(d)))
		}
	}
	for range 20_000 {
		n := new(big.Int).Lsh(new(big.Int).SetUint64(r.Uint64()), 67)
		list = append(list, n.Or(n, new(big.Int).SetUint64(r.Uint64())).Mod(n, span).Add(n, limit))
	}
	for _, n := range list {
		if n.Cmp(all) >= 0 {
			continue
		}
		if hi, lo, ok := parseDigits(spell(n)); ok {
			t.Fatalf("parseDigits(%q) = %d, %d, true; want false: it is %v", spell(n), hi, lo, n)
		}
	}
}

// Law: what is accepted is what appendDigits writes, and math/big agrees.
func FuzzDigits(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string) {
		hi, lo, ok := parseDigits(text)
		if ok && string(appendDigits(nil, hi, lo)) != text {
			t.Fatalf("parseDigits(%q) = %d, %d, whose text is %q; want the input", text, hi, lo, appendDigits(nil, hi, lo))
		}
		const bigDigits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
		n, want := new(big.Int), len(text) == blockDigits && strings.Trim(text, digits) == ""
		if want {
			n.SetString(strings.Map(func(r rune) rune { return rune(bigDigits[strings.IndexRune(digits, r)]) }, text), 62)
			want = n.BitLen() <= 128
		}
		if ok != want || ok && number(hi, lo).Cmp(n) != 0 {
			t.Fatalf("parseDigits(%q) = %d, %d, %v; want %v, accepted: %v", text, hi, lo, ok, n, want)
		}
	})
}
