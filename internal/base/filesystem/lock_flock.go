//go:build unix && !aix && (!solaris || illumos)

package filesystem

import (
	"errors"
	"os"
	"syscall"
)

// TryLock locks a folder by flock(2), without waiting. It returns a nil function if another caller,
// of this process or another one of this host, has it locked. The kernel unlocks it with the process.
func TryLock(folder string) (unlock func(), err error) {
	f, err := os.Open(folder)
	if err != nil {
		return nil, err
	}
	for err = syscall.EINTR; errors.Is(err, syscall.EINTR); {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if err == nil {
		return func() { _ = f.Close() }, nil
	}
	_ = f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, nil
	}
	return nil, &os.PathError{Op: "flock", Path: folder, Err: err}
}
