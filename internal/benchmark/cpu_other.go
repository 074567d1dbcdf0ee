//go:build !unix

package benchmark

import "time"

// OwnCPU is not known here.
func OwnCPU() time.Duration { return 0 }
