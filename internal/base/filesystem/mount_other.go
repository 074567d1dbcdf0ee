//go:build !linux

package filesystem

// IsMountPoint returns false: mount points are known on Linux only.
func IsMountPoint(string) (bool, error) { return false, nil }
