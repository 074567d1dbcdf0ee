//go:build !unix

package filesystem

import "io/fs"

// Names returns 1, because the number of names is available on Unix only.
func Names(fs.FileInfo) uint64 { return 1 }

// An Identity distinguishes a file from all others that exist, whatever their names.
type Identity struct{}

// IdentityOf returns false, because identities are available on Unix only.
func IdentityOf(fs.FileInfo) (Identity, bool) { return Identity{}, false }

// IsOpen returns true, because the open files are known on Unix only.
func IsOpen(Identity) bool { return true }
