// Package compat tests package types with the libraries that its users combine
// it with: web frameworks, encoders, an ORM, configuration, API descriptions.
// docs/types.md has the answers. It is a module of its own, so that no user
// downloads these libraries.
package compat
