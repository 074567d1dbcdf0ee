//go:build !unix

package filesystem

import "io/fs"

// Names returns 1: how many names a file has is known on Unix only.
func Names(fs.FileInfo) uint64 { return 1 }
