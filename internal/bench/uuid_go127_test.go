//go:build go1.27

package bench

import "uuid"

// The standard library has UUIDs since Go 1.27.
func init() {
	generators7 = append(generators7, generator7{name: "the standard library", next: func() [16]byte { return uuid.NewV7() }, follows: true})
}
