//go:build go1.27

package main

import "uuid"

// The standard library has UUIDs since Go 1.27.
func init() {
	newV7 := func() [16]byte { return uuid.NewV7() }
	generators7 = append(generators7, generator7{name: "the standard library", next: newV7, follows: true})
}
