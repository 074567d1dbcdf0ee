//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd)

package filelease

import (
	"errors"
	"fmt"
	"os"
	"runtime"
)

// Windows has LockFileEx, but its locks keep others from reading. Its directories
// cannot be synced. What happens at a power failure is not written down anywhere. So
// nothing here could be promised.
var errUnsupported = fmt.Errorf("filelease: not supported on %s: %w", runtime.GOOS, errors.ErrUnsupported)

func tryLock(*os.File) (bool, error) { return false, errUnsupported }
