package serial

import "errors"

// ErrCheckDigit is within the error of [Codec.Parse] for a text whose check digits are
// wrong. Somebody has mistyped it, as a rule.
var ErrCheckDigit = errors.New("serial: wrong check digits")

// A ValueError says which setting, key or part of a text is not accepted.
type ValueError struct {
	Name  string // "Format.Zone", "hour"
	Value string // what it was, cut to 64 bytes
	Want  string // the range or the form that is accepted
	Err   error  // ErrCheckDigit, an error of core, or nil
}

// Error implements error.
func (e *ValueError) Error() string {
	return "serial: " + e.Name + " is " + e.Value + ": want " + e.Want
}

// Unwrap returns Err.
func (e *ValueError) Unwrap() error { return e.Err }
