//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd)

package filelease

import (
	"errors"
	"testing"
)

func TestNewSaysThatTheSystemIsNotSupported(t *testing.T) {
	if s, err := New(t.TempDir(), Config{}); s != nil || !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("New = %v, error %v; want %v", s, err, errors.ErrUnsupported)
	}
}
