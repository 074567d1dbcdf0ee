// Package sqlerror says what the error of a database means. It knows every driver that
// snowkey is used with, without importing one. A driver in go.mod would be every user's
// driver, and the same driver comes in several packages.
//
// Each question looks at err and at all that it wraps. An error that no driver is known
// to make answers no question: false means "not known to be so".
package sqlerror
