//go:build !unix

package main

import (
	"errors"
	"os"
	"syscall"
)

// Nothing here stops a process and lets it go on.
const canPause = false

func pause(*os.Process) error  { return errors.ErrUnsupported }
func resume(*os.Process) error { return nil }

func attributes() *syscall.SysProcAttr { return nil }
