//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package filelease

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// A hanging file does not return from one of its calls until it is released.
type hanging struct {
	file
	at    string // "read", "sync" and "write", or "last sync"
	until <-chan struct{}
	wrote bool
}

func (h *hanging) wait(at string) {
	if at == h.at {
		<-h.until
	}
}

func (h *hanging) ReadAt(b []byte, at int64) (int, error) {
	h.wait("read")
	return h.file.ReadAt(b, at)
}

func (h *hanging) WriteAt(b []byte, at int64) (int, error) {
	h.wait("write")
	h.wrote = true
	return h.file.WriteAt(b, at)
}

func (h *hanging) Sync() error {
	if h.wrote {
		h.wait("last sync")
	} else {
		h.wait("sync")
	}
	return h.file.Sync()
}

// hang makes s hang at a step of each operation: "open" of a slot, "hold", which opens the file
// of the holder's lock, or a step of a hanging file.
func hang(s *Store, at string) (end func()) {
	until := make(chan struct{})
	s.open = func(path string, create bool) (file, error) {
		slot := filepath.Ext(path) == ""
		if slot && at == "open" || at == "hold" && create && strings.HasSuffix(path, ".held") {
			<-until
		}
		f, err := openFile(path, create)
		if err != nil || !slot {
			return f, err
		}
		return &hanging{file: f, at: at, until: until}, nil
	}
	return func() { close(until) }
}

func TestAnOperationOnADiskThatHangsEndsWithItsContext(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		do    func(ctx context.Context, s *Store, c leasestore.Claim, r leasestore.Reply) error
		steps []string
	}{
		{"Claim", func(ctx context.Context, s *Store, c leasestore.Claim, _ leasestore.Reply) error {
			c = newClaim(2)
			c.Only = []int64{1}
			return second(s.Claim(ctx, c))
		}, []string{"open", "read", "sync", "hold", "write", "last sync"}},
		{"Renew", func(ctx context.Context, s *Store, c leasestore.Claim, r leasestore.Reply) error {
			time.Sleep(time.Second) // so that the limit rises
			return second(s.Renew(ctx, renewalOf(c, r)))
		}, []string{"open", "read", "sync", "write", "last sync"}},
		{"Release", func(ctx context.Context, s *Store, c leasestore.Claim, r leasestore.Reply) error {
			return s.Release(ctx, releaseOf(c, r))
		}, []string{"open", "read", "sync", "write", "last sync"}},
		{"Rows", func(ctx context.Context, s *Store, c leasestore.Claim, _ leasestore.Reply) error {
			_, _, err := s.Rows(ctx, c.Space)
			return err
		}, []string{"open", "read"}},
	} {
		for _, step := range tt.steps {
			for _, closed := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					s := newStore(t, t.TempDir(), Config{})
					other := newStore(t, s.dir, Config{})
					c := newClaim(2)
					c.Only = []int64{0}
					reply := mustClaim(t, s, c)
					before, _, _ := other.Rows(t.Context(), c.Space)

					end := hang(s, step)
					ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
					defer cancel()
					err := tt.do(ctx, s, c, reply)
					if !errors.Is(err, context.DeadlineExceeded) || definite(err) {
						t.Errorf("%s that hangs at %s = error %v; want %v", tt.name, step, err, context.DeadlineExceeded)
					}
					if closed { // must not wait either
						if err := s.Close(); err != nil {
							t.Errorf("Close while %s hangs at %s = error %v; want none", tt.name, step, err)
						}
					}
					end()
					synctest.Wait()

					if s.calls.Hanging() != 0 {
						t.Errorf("operations left after %s came back from %s = %d; want 0", tt.name, step, s.calls.Hanging())
					}
					want := 1
					if closed || tt.name == "Release" { // the lease has ended in any case
						want = 0
					}
					if len(s.held) != want {
						t.Errorf("holder's locks after %s came back from %s, closed %v = %d; want %d", tt.name, step, closed, len(s.held), want)
					}
					after, _, err := other.Rows(t.Context(), c.Space)
					if err != nil {
						t.Fatalf("Rows after %s came back from %s = error %v; want none: its locks are free", tt.name, step, err)
					}
					changed := after[0] != before[0] || after[1] != before[1]
					if begun := step == "write" || step == "last sync"; changed != begun {
						t.Errorf("rows after %s came back from %s = %+v; were %+v; want a change only if the write had begun", tt.name, step, after, before)
					}
					if tt.name == "Claim" { // no lease has that row, although its limit has not passed
						again := newClaim(2)
						again.Only = []int64{1}
						mustClaim(t, other, again)
					}
				})
			}
		}
	}
}

// Every operation that hangs keeps a thread, so their number must be bounded.
func TestOperationsOnADiskThatHangsDoNotPileUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, t.TempDir(), Config{})
		c := newClaim(1)
		reply := mustClaim(t, s, c)
		end := hang(s, "open")
		for range maxLeft {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if _, err := s.Renew(ctx, renewalOf(c, reply)); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Renew on a disk that hangs = error %v; want %v", err, context.DeadlineExceeded)
			}
			cancel()
		}
		if _, err := s.Renew(t.Context(), renewalOf(c, reply)); err == nil || definite(err) { // would wait for ever
			t.Errorf("Renew after %d that hang = error %v; want one that says nothing", maxLeft, err)
		}
		end()
		synctest.Wait()
		if _, err := s.Renew(t.Context(), renewalOf(c, reply)); err != nil {
			t.Errorf("Renew when the disk answers again = error %v; want none", err)
		}
	})
}

// A first claim that hangs while it makes the rows leaves nothing that blocks the next one.
func TestAFirstClaimOnADiskThatHangsEndsWithItsContext(t *testing.T) {
	for hangAt := range 4 {
		synctest.Test(t, func(t *testing.T) {
			s := newStore(t, t.TempDir(), Config{})
			other := newStore(t, s.dir, Config{})
			until := make(chan struct{})
			syncs := 0
			s.sync = func(dir string) error {
				if syncs == hangAt {
					<-until
				}
				syncs++
				return syncDir(dir)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			if _, err := s.Claim(ctx, newClaim(2)); !errors.Is(err, context.DeadlineExceeded) || definite(err) {
				t.Errorf("Claim that hangs at sync %d of a directory = error %v; want %v", hangAt, err, context.DeadlineExceeded)
			}
			close(until)
			synctest.Wait()
			for range 2 {
				mustClaim(t, other, newClaim(2))
			}
		})
	}
}

// A holder's lock that is taken after Close would never be released.
func TestAStoreThatIsClosedMeanwhileHoldsNothing(t *testing.T) {
	s := newStore(t, t.TempDir(), Config{})
	s.open = func(path string, create bool) (file, error) {
		if create && strings.HasSuffix(path, ".held") {
			_ = s.Close()
		}
		return openFile(path, create)
	}
	reply := mustClaim(t, s, newClaim(1))
	if len(s.held) != 0 || !s.abandoned(slotFile(s, reply.Row.Worker)) {
		t.Errorf("holder's locks of a claim during which the store was closed = %d; want 0", len(s.held))
	}
}
