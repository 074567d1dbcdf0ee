//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd)

package filelease

import (
	"errors"
	"fmt"
	"os"
	"runtime"
)

// Windows has LockFileEx, but its locks prevent others from reading, its directories cannot be
// synced, and what a power failure does to them is undocumented, so a Store could promise
// nothing.
var errUnsupported = fmt.Errorf("filelease: not supported on %s: %w", runtime.GOOS, errors.ErrUnsupported)

func tryLock(*os.File) (bool, error) { return false, errUnsupported }
