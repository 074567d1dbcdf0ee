//go:build unix

package benchmark

import (
	"syscall"
	"time"
)

// OwnCPU returns the CPU time that this program has used so far.
func OwnCPU() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
