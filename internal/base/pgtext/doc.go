// Package pgtext writes Go values in the forms that PostgreSQL reads in arrays and in COPY.
//
// It writes a value only if every driver, in every mode, would store the same for a parameter of
// INSERT, and reports false for all others, which the caller then sends as parameters. It
// therefore checks numbers for their range, strings for NUL and times for their year, although
// PostgreSQL would refuse these values too, because some drivers refuse them first.
package pgtext
