// Package errtext gives errors another text, and leaves what errors.Is and errors.As find in them.
package errtext

import "strings"

// Reword returns an error that says text and wraps err.
func Reword(text string, err error) error { return &reworded{text, err} }

// Prefix returns an error that says prefix before the text of err, and wraps err. If that text begins
// with once, such as the name of a package that prefix has already, it is not said twice.
func Prefix(prefix, once string, err error) error {
	return Reword(prefix+strings.TrimPrefix(err.Error(), once), err)
}

// Cut returns text, or the beginning of it and … if it is too long for an error.
func Cut(text string) string {
	const enough = 64
	if len(text) > enough {
		return strings.ToValidUTF8(text[:enough], "") + "…"
	}
	return text
}

type reworded struct {
	text string
	err  error
}

func (e *reworded) Error() string { return e.text }
func (e *reworded) Unwrap() error { return e.err }
