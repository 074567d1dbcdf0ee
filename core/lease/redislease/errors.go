package redislease

import "errors"

var (
	// ErrEvicts is matched by the error of a claim on a server whose maxmemory-policy lets it
	// delete rows when its memory is full.
	ErrEvicts = errors.New("the server may evict rows")

	// ErrReadOnly is matched by the error of an operation on a replica.
	ErrReadOnly = errors.New("the server is a read-only replica: want the primary")

	// ErrDamaged is matched by the error of an operation that found keys which this package did
	// not write.
	ErrDamaged = errors.New("the keys hold what this package did not write")
)
