package filesystem

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestFileSystemsOfOtherHostsAreRefusedAndFleetingOnesWarnedOf(t *testing.T) {
	for _, tt := range []struct {
		kind      uint32
		allowFUSE bool
		warning   string
		refused   string
	}{
		{0x6969, false, "", "NFS"},
		{0xff534d42, false, "", "CIFS"},
		{0x6b414653, false, "", "AFS"},
		{0x786f4256, false, "", "VirtualBox"},
		{0x01021994, false, "tmpfs", ""},
		{0x794c7630, false, "overlay", ""},
		{0x61756673, false, "aufs", ""},
		{FUSE, false, "", "Config.AllowFUSE"},
		{FUSE, true, "FUSE", ""},
		{0x6969, true, "", "NFS"},
		{0xef53, false, "", ""}, // ext4
		{0, false, "", ""},      // not known
	} {
		warning, err := suits(tt.kind, tt.allowFUSE)
		if !strings.Contains(warning, tt.warning) || (warning == "") != (tt.warning == "") ||
			(err == nil) != (tt.refused == "") || err != nil && !strings.Contains(err.Error(), tt.refused) {
			t.Errorf("suits(%#x, %v) = %q, error %v; want %q, %q", tt.kind, tt.allowFUSE, warning, err, tt.warning, tt.refused)
		}
	}
}

func TestWhatIsNotThereIsAnErrorOnLinux(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none")
	if _, err := kind(path); err == nil {
		t.Skip("SKIPPED: kinds are known on Linux only")
	}
	if _, err := Check(path, true); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("Check(%q) = error %v; want one that names it", path, err)
	}
}
