// Package graphql is a server that gqlgen generated, with keys of package types, and tests it. Its
// gqlgen.yml is that of docs/doubles.md.
package graphql

//go:generate go tool gqlgen
