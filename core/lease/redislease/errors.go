package redislease

import "errors"

var (
	// ErrEvicts is matched by the error of a claim on a server that may delete rows
	// when its memory is full, by its maxmemory-policy.
	ErrEvicts = errors.New("the server may evict rows")

	// ErrReadOnly is matched by the error of an operation on a replica.
	ErrReadOnly = errors.New("the server is a read-only replica: want the primary")

	// ErrDamaged is matched by the error of an operation that found something in its
	// keys that this package does not write.
	ErrDamaged = errors.New("the keys hold what this package did not write")
)
