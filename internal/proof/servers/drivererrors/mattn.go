//go:build cgo

package drivererrors

import "github.com/mattn/go-sqlite3"

// Mattn returns an error of SQLite as mattn/go-sqlite3 has it, with an extended result
// code.
func Mattn(extended sqlite3.ErrNoExtended) error {
	return sqlite3.Error{Code: sqlite3.ErrNo(extended & 0xff), ExtendedCode: extended}
}
