//go:build !plan9

package filelease

import (
	"errors"
	"syscall"
)

// diskFull reports whether err means that the disk has no room, or that the user's quota is
// used up.
func diskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
