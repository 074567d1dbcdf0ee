//go:build !linux

package filesystem

// kind returns 0, because file systems are recognized on Linux only.
func kind(string) (uint32, error) { return 0, nil }

// IsMountPoint returns false, because mount points are recognized on Linux only.
func IsMountPoint(string) (bool, error) { return false, nil }
