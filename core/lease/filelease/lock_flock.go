//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package filelease

import (
	"errors"
	"os"
	"syscall"
)

// errUnsupported is nil on systems with a lock that ends with its holder.
var errUnsupported error

// tryLock locks f for this open file, and reports whether it succeeded. It fails if another
// open file, of this process or another, has the lock. The lock ends when f is closed, at the
// latest when the process ends.
func tryLock(f *os.File) (bool, error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return false, err
	}
	var lockErr error
	err = conn.Control(func(fd uintptr) {
		for {
			lockErr = syscall.Flock(int(fd), syscall.LOCK_EX|syscall.LOCK_NB)
			if !errors.Is(lockErr, syscall.EINTR) {
				return
			}
		}
	})
	switch {
	case err != nil:
		return false, err
	case errors.Is(lockErr, syscall.EWOULDBLOCK):
		return false, nil
	case lockErr != nil:
		return false, &os.PathError{Op: "flock", Path: f.Name(), Err: lockErr}
	}
	return true, nil
}
