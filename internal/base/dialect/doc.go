// Package dialect holds what the library knows of each database by name: how it writes
// identifiers and parameters, what the errors of its drivers mean, and what its columns
// store of a value.
//
// Errors are recognized by their shape, without importing a driver: a driver in go.mod would
// be every user's driver, and one driver is published as several packages. Each question
// examines err and everything that it wraps. An error of unknown origin answers no question,
// so false means "not known to be so".
package dialect
