package csvload

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// A terminal is a writer that says it is one.
type terminal struct{ io.Writer }

func (terminal) Stat() (os.FileInfo, error) { return charDevice{}, nil }

type charDevice struct{ os.FileInfo }

func (charDevice) Mode() os.FileMode { return os.ModeDevice | os.ModeCharDevice }

type noStat struct{ io.Writer }

func (noStat) Stat() (os.FileInfo, error) { return nil, errors.New("no") }

func TestOnlyACharacterDeviceIsATerminal(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = r.Close(), w.Close() }()
	for _, tt := range []struct {
		name string
		out  io.Writer
		want bool
	}{
		{"buffer", &bytes.Buffer{}, false},
		{"file", file, false},
		{"pipe", w, false},
		{"a writer whose Stat fails", noStat{}, false},
		{"character device", terminal{}, true},
	} {
		if got := IsTerminal(tt.out); got != tt.want {
			t.Errorf("IsTerminal(%s) = %v; want %v", tt.name, got, tt.want)
		}
	}
}
