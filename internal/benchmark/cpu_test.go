package benchmark

import (
	"os"
	"runtime"
	"testing"
)

func TestWorkUsesCPUTime(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: CPU time of tasks is known on Linux only")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, x := OwnCPU(), 1
	for range 100_000_000 {
		x = x*31 + 7
	}
	if after := OwnCPU(); after <= before || x == 0 {
		t.Errorf("OwnCPU() after work = %v, before %v; want more", after, before)
	}
	if used := TaskCPU(os.Getpid()); used <= 0 {
		t.Errorf("TaskCPU of this process = %v; want some", used)
	}
	if used := TaskCPU(1 << 30); used != 0 {
		t.Errorf("TaskCPU of no process = %v; want 0", used)
	}
}
