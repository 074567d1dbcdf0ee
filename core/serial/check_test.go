package serial

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// Numbers of the standards, of banks and of tax offices, with their check digits.
func TestCheckDigitsAreThoseOfTheStandards(t *testing.T) {
	for _, tt := range []struct {
		check Check
		text  string
		want  int
	}{
		{Luhn, "7992739871", 3},      // Wikipedia, Luhn algorithm
		{Luhn, "411111111111111", 1}, // a number for tests of Visa
		{Luhn, "37828224631000", 5},  // of American Express
		{Luhn, "", 0},
		{Luhn, "0", 0},
		{Mod11_10, "0794", 5},       // ISO/IEC 7064, 9.2
		{Mod11_10, "8609574271", 9}, // German tax number 86095742719
		{Mod11_10, "4703689281", 6}, // German tax number 47036892816
		{Mod97_10, "794", 44},       // ISO/IEC 7064, 7
	} {
		if got := tt.check.digits([]byte(tt.text)); got != tt.want {
			t.Errorf("%v of %q = %d; want %d", tt.check, tt.text, got, tt.want)
		}
	}
}

// The file was written by a library, see checkdigits.py beside it.
func TestCheckDigitsAreThoseOfALibrary(t *testing.T) {
	text, err := os.ReadFile("testdata/checkdigits.txt")
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if fields[0] == "#" {
			continue
		}
		for i, check := range []Check{Luhn, Mod11_10, Mod97_10} {
			want := fields[1+i]
			if want == "-" {
				continue
			}
			compared++
			if got := string(appendDigits(nil, int64(check.digits([]byte(fields[0]))), check.width())); got != want {
				t.Errorf("%v of %s = %s; want %s", check, fields[0], got, want)
			}
		}
	}
	if compared != 3500 {
		t.Errorf("%d check digits were compared; want 3500", compared)
	}
}

// An IBAN has its country and check digits in front: they move behind the number.
func TestCheckDigitsOfBankAccountsAreFound(t *testing.T) {
	for _, iban := range []string{"GB82WEST12345698765432", "DE89370400440532013000", "FR1420041010050500013M02606", "NO9386011117947"} {
		want, err := strconv.Atoi(iban[2:4])
		if err != nil {
			t.Fatal(err)
		}
		if got := Mod97_10.digits([]byte(iban[4:] + iban[:2])); got != want {
			t.Errorf("Mod97_10 of %s = %d; want %d", iban, got, want)
		}
	}
}

func TestOtherBytesDoNotCount(t *testing.T) {
	for _, tt := range []struct {
		check      Check
		text, same string
	}{
		{Luhn, "A/79.92-739871", "7992739871"},
		{Mod11_10, "A/07-94", "0794"},
		{Mod97_10, "7/9-4.", "794"},
	} {
		if got, want := tt.check.digits([]byte(tt.text)), tt.check.digits([]byte(tt.same)); got != want {
			t.Errorf("%v of %q = %d; want %d, as of %q", tt.check, tt.text, got, want, tt.same)
		}
	}
	if Mod97_10.digits([]byte("A1")) == Mod97_10.digits([]byte("B1")) {
		t.Error("Mod97_10 of A1 and of B1 are equal; want letters to count")
	}
}

// All numbers of three digits with their check digits, all wrong digits, and all swaps of
// neighbours that the standard promises to find.
func TestMistypedNumbersAreFound(t *testing.T) {
	for _, check := range []Check{Luhn, Mod11_10, Mod97_10} {
		valid := func(text []byte) bool {
			end := len(text) - check.width()
			n, err := strconv.Atoi(string(text[end:]))
			return err == nil && check.digits(text[:end]) == n
		}
		missed := 0
		for n := range 1000 {
			body := fmt.Sprintf("%03d", n)
			text := []byte(body + fmt.Sprintf("%0*d", check.width(), check.digits([]byte(body))))
			if !valid(text) {
				t.Fatalf("%v: %s is not valid", check, text)
			}
			for i, right := range text {
				for d := byte('0'); d <= '9'; d++ {
					if text[i] = d; d != right && valid(text) {
						t.Errorf("%v: digit %d of %s is not found to be wrong", check, i+1, text)
					}
				}
				text[i] = right
				if i == 0 || text[i-1] == right {
					continue
				}
				text[i-1], text[i] = right, text[i-1]
				zeroAndNine := text[i-1]+text[i] == '0'+'9' && (text[i] == '0' || text[i] == '9')
				if valid(text) {
					if missed++; check == Mod97_10 || check == Luhn && !zeroAndNine {
						t.Errorf("%v: the swap of digits %d and %d of %s is not found", check, i, i+1, text)
					}
				}
				text[i-1], text[i] = text[i], text[i-1]
			}
		}
		t.Logf("%v: %d swaps of neighbours are not found", check, missed)
	}
}
