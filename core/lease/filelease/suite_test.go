//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package filelease_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/snowkey/snowkey/core/lease/filelease"
	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/lease/leasetest"
)

func TestTheStorePassesTheSuite(t *testing.T) {
	t.Parallel()
	leasetest.Run(t, func(t *testing.T) leasetest.Harness {
		dir := t.TempDir()
		open := func(t *testing.T) *filelease.Store {
			s, err := filelease.New(dir, filelease.Config{Logger: quiet})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			return s
		}
		return leasetest.Harness{
			Seed: 1, // the same in every run: a release must not depend on luck
			Open: func(t *testing.T) leasetest.Store { return open(t) },
			Delete: func(t *testing.T, s leasestore.Space, worker int64) {
				if err := os.Remove(slotPath(t, dir, worker)); err != nil {
					t.Fatal(err)
				}
			},
			SetUntil: func(t *testing.T, s leasestore.Space, worker int64, until leasestore.Millis) {
				filelease.SetUntil(t, slotPath(t, dir, worker), until)
			},
			Restart: func(t *testing.T) {}, // nothing runs between operations; TestAnyCrash… has the crashes
			Stall:   func(t *testing.T) func() { return stall(t, dir) },
			LosesReplies: func(t *testing.T) leasetest.Store {
				return deaf{open(t)}
			},
		}
	})
}

var quiet = slog.New(slog.DiscardHandler)

// slotPath returns the path of the slot of worker in the only space in dir.
func slotPath(t *testing.T, dir string, worker int64) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "ns-*", "dc-*", strconv.FormatInt(worker, 10)))
	if err != nil || len(found) != 1 {
		t.Fatalf("slot files of worker %d = %q, error %v; want one", worker, found, err)
	}
	return found[0]
}

// stall locks every slot, as a process does that is stopped in the middle. Slots that
// are still to be made are locked too.
func stall(t *testing.T, dir string) (resume func()) {
	t.Helper()
	meta, err := filepath.Glob(filepath.Join(dir, "ns-*", "dc-*", "meta"))
	if err != nil || len(meta) != 1 {
		t.Fatalf("meta files = %q, error %v; want one", meta, err)
	}
	b, err := os.ReadFile(meta[0])
	if err != nil {
		t.Fatal(err)
	}
	var space struct{ Workers int64 }
	if err := json.Unmarshal(b, &space); err != nil {
		t.Fatal(err)
	}
	var files []*os.File
	for worker := range space.Workers {
		path := filepath.Join(filepath.Dir(meta[0]), strconv.FormatInt(worker, 10))
		f, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			f, err = os.Create(path + ".making")
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return func() {
		for _, f := range files {
			_ = f.Close()
		}
	}
}

// A deaf store does what it is asked and hears no reply.
type deaf struct{ *filelease.Store }

func (d deaf) Claim(ctx context.Context, c leasestore.Claim) (leasestore.Reply, error) {
	_, _ = d.Store.Claim(ctx, c)
	return leasestore.Reply{}, context.DeadlineExceeded
}

func (d deaf) Renew(ctx context.Context, r leasestore.Renewal) (leasestore.Reply, error) {
	_, _ = d.Store.Renew(ctx, r)
	return leasestore.Reply{}, context.DeadlineExceeded
}

func (d deaf) Release(ctx context.Context, r leasestore.Release) error {
	_ = d.Store.Release(ctx, r)
	return context.DeadlineExceeded
}
