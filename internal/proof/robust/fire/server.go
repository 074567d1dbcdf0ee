//go:build linux

package fire

import (
	"context"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/snowkey/snowkey/internal/proof/robust/role"
)

// A Server is a program that runs on a host until it is killed, or the test ends.
type Server struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

// Start starts a program on the host as a user. What it prints is appended to the file
// log. The program must stay in the foreground.
func (h *Host) Start(t testing.TB, log, user, name string, args ...string) *Server {
	t.Helper()
	out, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	must(t, err)
	defer func() { _ = out.Close() }() // the program has its own
	s := &Server{cmd: as(context.Background(), user, name, args...), ended: make(chan struct{})}
	h.Enter(s.cmd)
	s.cmd.Stdout, s.cmd.Stderr = out, out
	role.Keep(t, s.cmd)
	must(t, s.cmd.Start())
	go func() {
		_ = s.cmd.Wait()
		close(s.ended)
	}()
	t.Cleanup(func() {
		s.Kill()
		if t.Failed() {
			text, _ := os.ReadFile(log)
			t.Logf("%s on %s said at last:\n%s", name, h.Name, text[max(0, len(text)-4000):])
		}
	})
	return s
}

// Kill ends the server as a power failure would, but for what the kernel has in memory.
func (s *Server) Kill() { s.End(syscall.SIGKILL) }

// End ends the server with a signal. If it does not end within a minute, it is killed.
func (s *Server) End(signal syscall.Signal) {
	s.Signal(signal)
	s.Signal(syscall.SIGCONT)
	select {
	case <-s.ended:
	case <-time.After(time.Minute):
		s.Signal(syscall.SIGKILL)
	}
}

// Signal sends the server a signal, such as SIGSTOP.
func (s *Server) Signal(signal syscall.Signal) { _ = s.cmd.Process.Signal(signal) }

// Ended reports whether the server has ended.
func (s *Server) Ended() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}
