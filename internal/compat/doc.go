// Package compat tests package types with other libraries: web frameworks, encoders, ORMs,
// generators of code, configuration, API descriptions. docs/types.md has the results. It is a module
// of its own, so no user downloads these libraries.
package compat
