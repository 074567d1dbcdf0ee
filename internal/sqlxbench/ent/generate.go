// Package ent is made by ent from the folder schema, without any of its optional
// features, and committed: 7,000 lines that nobody reads, for an ent that is in
// the differential test like every other peer. Made by a script into an ignored
// folder, it would be missing wherever the script has not run, and go mod tidy
// fails on an import that is not there, behind a build tag too.
//
// Only client code for tests and hooks is removed, which nothing here uses.
package ent

//go:generate env GOWORK=off GOFLAGS=-mod=mod go run entgo.io/ent/cmd/ent@v0.14.5 generate ./schema
//go:generate rm -r enttest hook
//go:generate env GOWORK=off go mod tidy
