// Package compat tests package types with other libraries: web frameworks, encoders, ORMs,
// generators of code, configuration, API descriptions. docs/types.md has the results. It also
// reads the keys of other generators with the layouts of docs/existing.md. It is a module of
// its own, so no user downloads these libraries.
package compat
