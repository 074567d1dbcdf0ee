//go:build !unix

package filesystem

import "io/fs"

// Names returns 1: how many names a file has is known on Unix only.
func Names(fs.FileInfo) uint64 { return 1 }

// An Identity tells a file from all others that are there, whatever their names.
type Identity struct{}

// IdentityOf returns false: identities are known on Unix only.
func IdentityOf(fs.FileInfo) (Identity, bool) { return Identity{}, false }
