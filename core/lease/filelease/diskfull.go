//go:build !plan9

package filelease

import (
	"errors"
	"syscall"
)

// diskFull reports whether err says that there is no room for the data, or none for
// this user.
func diskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
