// Package pgtext writes Go values as PostgreSQL reads them in arrays and in COPY.
//
// It writes a value only if every driver, in every mode, stores the same for it as
// a parameter of INSERT. It reports false for all others. The caller sends those as
// parameters, and the driver decides about them. So this package checks the range
// of a number, the NUL in a string and the year of a time. PostgreSQL would refuse
// them too, but some drivers refuse them first.
package pgtext
