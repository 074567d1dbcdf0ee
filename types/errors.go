package types

import (
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The errors that a [*ValueError] wraps, for errors.Is.
var (
	// ErrSyntax means that the input is not a number in the expected form, or is of a type
	// that cannot hold one, or that the destination is a nil pointer.
	ErrSyntax = errors.New("types: not a snowflake")
	// ErrRange means that the input is a whole number outside 0..9223372036854775807.
	ErrRange = errors.New("types: snowflake out of range")
	// ErrNull means SQL NULL for a [Snowflake]; [NullSnowflake] accepts it.
	ErrNull = errors.New("types: NULL is not a Snowflake")
)

// ErrClosed is matched by the error of every call after Close: of a generator, a lease, an allocator
// and a counter. Each of their packages has one of this name, whose text says what is closed. This
// text has no package, because it stands at the end of theirs.
var ErrClosed = errors.New("closed")

// An ArgumentError reports a field of a configuration, an argument or a part of an ID that is
// refused. It is in this package, and not where generators are, because packages that know none
// return it too. core.ValueError is the same type.
type ArgumentError struct {
	Package string // the package that refuses the value
	Name    string // the field or argument, as a Go reader writes it: "Config.Datacenter"
	Value   string // what it held, without passwords; empty: not shown
	Want    string // the range or form that is accepted
	Err     error  // an error that this one also matches, or nil
}

func (e *ArgumentError) Error() string {
	text := e.Package + ": " + e.Name
	if e.Value != "" {
		text += " is " + e.Value
	}
	return text + ": want " + e.Want
}

// Unwrap returns e.Err.
func (e *ArgumentError) Unwrap() error { return e.Err }

// The accepted forms that the ValueErrors of this package name.
const (
	wantDecimal = "a decimal integer 0..9223372036854775807"
	wantJSON    = "a JSON string or integer 0..9223372036854775807"

	wantGraphQL = "a string or integer 0..9223372036854775807"

	wantMapstructure = "an integer or decimal text 0..9223372036854775807, or a whole float64 below 9007199254740992"

	wantReceiver = "a receiver that is not a nil pointer"
)

// maxQuoted is how many bytes of a rejected value an error repeats.
const maxQuoted = 64

// A ValueError reports a value that could not be parsed as, or written as, an ID.
type ValueError struct {
	Op    string // what was tried: "parse", "scan", "decode", …
	Type  string // what should have received it: "Snowflake", "NullSnowflake"; "text", "binary" or "SQL" for a marshaler
	Value string // the value as a reader would write it, cut to at most 64 bytes of the input
	Want  string // the accepted form
	Err   error  // ErrSyntax, ErrRange or ErrNull
}

func (e *ValueError) Error() string {
	return "types: cannot " + e.Op + " " + e.Value + " into " + e.Type + ": want " + e.Want
}

// Unwrap returns ErrSyntax, ErrRange or ErrNull.
func (e *ValueError) Unwrap() error { return e.Err }

// quote quotes rejected input, cut so that a megabyte of it does not become a megabyte of
// log.
func quote[S string | []byte](s S) string {
	if len(s) > maxQuoted {
		return strconv.Quote(string(s[:maxQuoted])) + "… (" + strconv.Itoa(len(s)) + " bytes)"
	}
	return strconv.Quote(string(s))
}

// quoteJSON returns rejected JSON as it stands in the document, where a string has quotes already.
func quoteJSON(data []byte) string {
	shown, rest := string(data), ""
	if len(data) > maxQuoted {
		shown, rest = string(data[:maxQuoted]), "… ("+strconv.Itoa(len(data))+" bytes)"
	}
	unprintable := func(r rune) bool { return r == utf8.RuneError || !strconv.IsPrint(r) }
	if shown == "" || strings.ContainsFunc(shown, unprintable) {
		return quote(data)
	}
	return shown + rest
}

func fail(op, into, value, want string, err error) error {
	return &ValueError{Op: op, Type: into, Value: value, Want: want, Err: err}
}

// negative is the error of Value and of every marshaler for a value that no parser would
// accept.
func (s Snowflake) negative(form string) error {
	return &ValueError{Op: "marshal Snowflake", Type: form, Value: s.String(), Want: "0..9223372036854775807", Err: ErrRange}
}
