package serial

import "time"

// The fields that a CodecConfig and a Series have in common.

func validatePrefix(field, prefix string) error {
	const most = 16
	wrong := len(prefix) > most
	for _, b := range []byte(prefix) {
		wrong = wrong || !isDigit(b) && (b < 'A' || b > 'Z') && b != '-' && b != '/' && b != '.'
	}
	if wrong {
		return invalid(field, quote(prefix), "0 to 16 characters of A to Z, 0 to 9, -, / and .")
	}
	return nil
}

func validateCheck(field string, check Check) error {
	if check < NoCheck || check > Mod97_10 {
		return invalid(field, check.String(), "NoCheck, Luhn, Mod11_10 or Mod97_10")
	}
	return nil
}

// validateZone accepts nil, which is UTC.
func validateZone(field string, zone *time.Location) error {
	if zone == time.Local { //nolint:gosmopolitan // to refuse it
		return invalid(field, "time.Local", "a zone by its name, which is the same on every machine")
	}
	return nil
}

// appendDigits appends n in width digits, with leading zeros.
func appendDigits(b []byte, n int64, width int) []byte {
	const zeros = "0000000000000000000" // as many digits as 62 bits have
	b = append(b, zeros[:width]...)
	for i := len(b) - 1; n > 0; i-- {
		b[i] = byte('0' + n%10)
		n /= 10
	}
	return b
}
