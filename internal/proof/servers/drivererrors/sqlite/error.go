// Package sqlite has the error of modernc.org/sqlite, for tests that must not
// depend on that driver. The package of an error's type tells which database it is
// from.
package sqlite

import "fmt"

// An Error has a result code.
type Error struct{ Result int }

func (e *Error) Error() string { return fmt.Sprintf("result code %d", e.Result) }

// Code returns the result code. modernc.org/sqlite asks for its extended form.
func (e *Error) Code() int { return e.Result }

// A Typed error is like those of ncruces/go-sqlite3. Its codes have types of their
// own.
func Typed(code uint16) error {
	type Error struct{ typed }
	return &Error{typed(code)}
}

type typed uint16

func (e typed) Error() string       { return fmt.Sprintf("result code %d", uint16(e)) }
func (e typed) ExtendedCode() typed { return e }

// A RefusedError is of a package with a similar name, and has another code.
type RefusedError int

func (e RefusedError) Error() string { return "refused" }

// Code returns a number that is no result code.
func (e RefusedError) Code() int { return int(e) }
