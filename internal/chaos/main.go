//go:build unix

package chaos

import (
	"fmt"
	"io"
	"os"
	"syscall"
)

// keeping is the order of the keeper. All others are JSON.
const keeping = "keep"

// Main returns at once in a test binary that was started to run tests. If a [Group] with
// this variable started the binary as one of its processes, Main passes the order to work
// and does not return.
func Main(variable string, work func(order []byte) error) {
	order, ok := os.LookupEnv(variable)
	if !ok {
		return
	}
	var err error
	if order == keeping {
		err = keep()
	} else {
		err = work([]byte(order))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// keep waits for the end of the process that has started this one. Standard input ends
// then. keep kills the process group of which this process is the leader. A worker could
// not do that for itself: it may be stopped.
func keep() error {
	_, _ = io.Copy(io.Discard, os.Stdin)
	return syscall.Kill(-os.Getpid(), syscall.SIGKILL)
}
