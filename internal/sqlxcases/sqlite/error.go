// Package sqlite has the error of modernc.org/sqlite, for tests that must not
// depend on that driver: which database an error is from is told by the package
// that its type comes from.
package sqlite

import "fmt"

// An Error has a result code.
type Error struct{ Result int }

func (e *Error) Error() string { return fmt.Sprintf("result code %d", e.Result) }

// Code returns the result code, which modernc.org/sqlite asks for in its
// extended form.
func (e *Error) Code() int { return e.Result }

// A Typed error is as of ncruces/go-sqlite3, whose codes have types of their own.
func Typed(code uint16) error {
	type Error struct{ typed }
	return &Error{typed(code)}
}

type typed uint16

func (e typed) Error() string       { return fmt.Sprintf("result code %d", uint16(e)) }
func (e typed) ExtendedCode() typed { return e }

// A RefusedError is of a package whose name is alike, and has another code.
type RefusedError int

func (e RefusedError) Error() string { return "refused" }

// Code returns a number that is no result code.
func (e RefusedError) Code() int { return int(e) }
