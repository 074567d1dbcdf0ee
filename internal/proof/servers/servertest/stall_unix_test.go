//go:build unix

package servertest

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"testing"
)

const spinVariable = "SNOWKEY_SERVERTEST_SPIN"

// A server with more threads than processors, for the test below.
func TestSpin(t *testing.T) {
	if os.Getenv(spinVariable) == "" {
		t.Skip("SKIPPED: only TestStalledProcessDoesNotRun needs this")
	}
	for range 8 * runtime.NumCPU() {
		go func() {
			runtime.LockOSThread()
			for n := 0; ; n++ {
				runtime.KeepAlive(n)
			}
		}()
	}
	select {}
}

func TestStalledProcessDoesNotRun(t *testing.T) {
	if _, err := os.Stat("/proc/self/task"); err != nil {
		t.Skip("SKIPPED: this system does not show its threads: ", err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0], "-test.run=^TestSpin$")
	cmd.Env = append(os.Environ(), spinVariable+"=1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for !running(cmd.Process.Pid) {
	}
	for i := range 20 {
		resume := Stall(t, cmd.Process)
		if running(cmd.Process.Pid) {
			t.Fatalf("running(a process that was stalled %d times) = true; want false", i+1)
		}
		resume()
	}
}
