// Package graphql tests keys of package types in a server that gqlgen generates. docs/types.md shows
// the end of its gqlgen.yml.
package graphql

//go:generate go tool gqlgen
