//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

const canPause = true

// pause stops a process wherever it is, as a debugger, a hypervisor or a laptop
// that is closed does. The process notices nothing.
//
// It returns when the process has stopped, which on a busy machine is some time
// after the signal was sent: the threads stop one by one.
func pause(p *os.Process) error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for range 5000 {
		var status syscall.WaitStatus
		switch pid, err := syscall.Wait4(p.Pid, &status, syscall.WUNTRACED|syscall.WNOHANG, nil); {
		case err != nil && !errors.Is(err, syscall.EINTR):
			return fmt.Errorf("waiting for process %d to stop: %w", p.Pid, err)
		case err == nil && pid == p.Pid && status.Stopped():
			return nil
		case err == nil && pid == p.Pid:
			return fmt.Errorf("process %d ended when it was to stop", p.Pid)
		}
		time.Sleep(time.Millisecond)
	}
	return fmt.Errorf("process %d does not stop", p.Pid)
}

// resume lets it go on.
func resume(p *os.Process) error { return p.Signal(syscall.SIGCONT) }

// attributes puts a replica into a process group of its own. Ctrl-C then reaches
// the parent alone, which ends the replicas in order. And if the parent is killed
// while a replica is paused, and cannot read that its input has ended, the kernel
// ends the replica: a stopped group without a parent gets SIGHUP and SIGCONT.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
