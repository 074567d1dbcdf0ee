package serial

import (
	"os"
	"strings"
	"testing"
)

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
