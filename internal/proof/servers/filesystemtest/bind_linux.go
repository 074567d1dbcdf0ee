package filesystemtest

import (
	"errors"
	"os"
	"syscall"
	"testing"
)

// Bind mounts the file or folder source at target, until the test ends, as
// "docker run -v source:target" does. It skips the test if the process may not, unless
// it is root in CI.
func Bind(t testing.TB, source, target string) {
	t.Helper()
	err := syscall.Mount(source, target, "", syscall.MS_BIND, "")
	if errors.Is(err, syscall.EPERM) && (os.Geteuid() != 0 || os.Getenv("CI") == "") {
		t.Skipf("SKIPPED: mount --bind: %v; run as root", err)
	}
	if err != nil {
		t.Fatalf("mount --bind %s %s: %v", source, target, err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(target, 0); err != nil {
			t.Errorf("umount %s: %v", target, err)
		}
	})
}
