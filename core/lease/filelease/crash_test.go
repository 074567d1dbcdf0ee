//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package filelease

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// A disk is a slot file on a disk that loses and spoils what was not synced. It keeps one block
// for each place.
type disk struct {
	stable [places][recordSize]byte // what a power failure leaves
	cache  [places][recordSize]byte // what reads see
	dirty  [places]bool             // blocks that were written and not synced
	marked bool                     // as poisoned
	unseen bool                     // the kernel has failed to write a block, and has not reported it yet
}

// A fate is what becomes of a block that was being written when the power failed, or when the
// disk reported an error.
type fate int

const (
	lost fate = iota
	kept
	spoilt
	fates
)

// settle gives every dirty block its fate, which is a digit of f to the base of fates.
func (d *disk) settle(f int) {
	for i := range d.dirty {
		if !d.dirty[i] {
			continue
		}
		switch fate(f % int(fates)) {
		case kept:
			d.stable[i] = d.cache[i]
		case spoilt:
			for j := range d.stable[i] {
				d.stable[i][j] = 0xa5
			}
		}
		f /= int(fates)
		d.dirty[i] = false
	}
}

// count returns how many different values of f settle distinguishes.
func (d *disk) count() int {
	n := 1
	for _, dirty := range d.dirty {
		if dirty {
			n *= int(fates)
		}
	}
	return n
}

// evict drops places from the cache, so that they are read from the disk.
func (d *disk) evict(bits int) {
	for i := range d.cache {
		if bits>>i&1 == 1 {
			d.cache[i] = d.stable[i]
		}
	}
}

// powerFails leaves only what is stable.
func (d *disk) powerFails(f int) {
	d.settle(f)
	d.cache = d.stable
	d.unseen = false
}

// errKilled ends an operation as a kill does; errDisk is an error that the disk reports.
var (
	errKilled = errors.New("killed")
	errDisk   = errors.New("input/output error")
)

// A diskFile is the file as one operation opens it, with the faults to inject. The steps of an
// operation are sync, write, sync.
type diskFile struct {
	disk *disk
	step int // how many steps were begun

	killBefore int   // this step, counted from 1; 0: none
	failAt     int   // this step, a sync
	fate       int   // of the dirty blocks when it fails
	evict      int   // bits of the places that the cache then drops; the others still show unwritten data
	dirty      *disk // as it was before the failing sync
}

func (f *diskFile) next() error {
	f.step++
	if f.step == f.killBefore {
		return errKilled
	}
	return nil
}

func (f *diskFile) ReadAt(b []byte, _ int64) (int, error) {
	if len(b) != slotSize {
		return 0, fmt.Errorf("read of %d bytes; want %d", len(b), slotSize)
	}
	for i := range f.disk.cache {
		copy(b[i*placeSize:], f.disk.cache[i][:])
	}
	return len(b), nil
}

func (f *diskFile) WriteAt(b []byte, at int64) (int, error) {
	if len(b) != recordSize || at%placeSize != 0 {
		return 0, fmt.Errorf("write of %d bytes at %d; want a record in a place", len(b), at)
	}
	if err := f.next(); err != nil {
		return 0, err
	}
	i := at / placeSize
	f.disk.cache[i] = [recordSize]byte(b)
	f.disk.dirty[i] = true
	return len(b), nil
}

func (f *diskFile) Sync() error {
	if err := f.next(); err != nil {
		return err
	}
	if f.step == f.failAt {
		d := *f.disk
		f.dirty = &d
		f.disk.settle(f.fate) // and the kernel considers the pages clean
		f.disk.evict(f.evict)
		return errDisk
	}
	if f.disk.unseen {
		f.disk.unseen = false
		return errDisk
	}
	for i, dirty := range f.disk.dirty {
		if dirty {
			f.disk.stable[i] = f.disk.cache[i]
		}
	}
	f.disk.dirty = [places]bool{}
	return nil
}

func (f *diskFile) Close() error           { return nil }
func (f *diskFile) size() (int64, error)   { return slotSize, nil }
func (f *diskFile) tryLock() (bool, error) { return true, nil }
func (f *diskFile) linked() error          { return nil }

var _ interface {
	io.ReaderAt
	io.WriterAt
} = (*diskFile)(nil)

const steps = 3

// newDisk returns a disk with a newly made slot.
func newDisk(t *testing.T) *disk {
	d := &disk{}
	d.stable[0] = [recordSize]byte(mustEncode(t, record{}))
	d.cache = d.stable
	return d
}

// open is the openFile of a Store on the disk: f is the slot, and any other file is the mark of
// a poisoned one.
func (f *diskFile) open(path string, create bool) (file, error) {
	switch {
	case path == "":
		return f, nil
	case create:
		f.disk.marked = true
	case !f.disk.marked:
		return nil, fs.ErrNotExist
	}
	return &diskFile{disk: f.disk}, nil
}

// operate performs one operation on the slot in a process of its own. It writes the limit until
// and returns the limit that it found.
func operate(f *diskFile, until leasestore.Millis) (before leasestore.Millis, err error) {
	s := &Store{poisoned: map[string]error{}, open: f.open}
	if err := s.poisonOf(""); err != nil {
		return until, err
	}
	sl := &slot{store: s, space: &space{}, file: f}
	last, err := sl.read(0)
	if err != nil {
		return -1, err
	}
	err = sl.write(context.Background(), last, leasestore.Row{Until: until}, false)
	if errors.Is(err, errKilled) {
		f.disk.marked = false // a killed process does not poison
	}
	return last.row.Until, err
}

// limit returns the limit in the slot, or -1 if it has no valid record.
func (d *disk) limit() leasestore.Millis {
	b := make([]byte, slotSize)
	if n, err := (&diskFile{disk: d}).ReadAt(b, 0); n < slotSize || err != nil {
		return -1
	}
	r, ok := newest(b)
	if !ok {
		return -1
	}
	return r.row.Until
}

// crashDepth is the length of a history. Each further operation takes ten times as long.
var crashDepth = flag.Int("crashes.depth", 3, "how many operations a history of crashes has")

// TestNoCrashesAndErrorsLoseWhatWasAcknowledged goes through every history of a few operations.
// Each operation succeeds, is killed before some step, meets an error at either sync, or is
// killed with an error that the kernel meets afterwards. After an error every unsynced block is
// written, lost or spoilt, and still cached or not. Every history ends with every possible
// power failure. Operation n writes the limit n, and whatever an operation or the end reads
// must be at least the last limit that was acknowledged.
func TestNoCrashesAndErrorsLoseWhatWasAcknowledged(t *testing.T) {
	t.Parallel()
	histories := 0
	var history []string
	var grow func(d disk, acknowledged leasestore.Millis)
	check := func(what string, got, acknowledged leasestore.Millis) {
		if got < acknowledged {
			t.Fatalf("after %q, limit %s = %d; want %d or more, which was acknowledged", history, what, got, acknowledged)
		}
	}
	grow = func(d disk, acknowledged leasestore.Millis) {
		histories++
		for f := range d.count() {
			after := d
			after.powerFails(f)
			check(fmt.Sprintf("after a power failure (%d)", f), after.limit(), acknowledged)
		}
		if len(history) == *crashDepth {
			return
		}
		n := leasestore.Millis(len(history) + 1)
		try := func(name string, f diskFile) *disk {
			after := d
			f.disk = &after
			history = append(history, name)
			before, err := operate(&f, n)
			check("that operation read", before, acknowledged)
			now := acknowledged
			if err == nil {
				now = n
			}
			grow(after, now)
			history = history[:len(history)-1]
			return f.dirty
		}
		try("done", diskFile{})
		for step := 1; step <= steps; step++ {
			try(fmt.Sprintf("killed before step %d", step), diskFile{killBefore: step})
		}
		for _, step := range []int{1, 3} {
			for f, ways := 0, 1; f < ways; f++ {
				for evict := range 1 << places {
					dirty := try(fmt.Sprintf("sync %d failed, fates %d, evicted %b", step, f, evict), diskFile{failAt: step, fate: f, evict: evict})
					if dirty != nil { // otherwise the sync was not reached
						ways = dirty.count()
					}
				}
			}
		}
		for f := range d.count() {
			for evict := range 1 << places {
				if d.count() == 1 || d.unseen {
					continue
				}
				after := d
				after.settle(f)
				after.evict(evict)
				after.unseen = true
				history = append(history, fmt.Sprintf("the kernel failed to write, fates %d, evicted %b", f, evict))
				grow(after, acknowledged)
				history = history[:len(history)-1]
			}
		}
		if d.marked { // and the power fails, which takes the mark with it
			for f := range d.count() {
				after := d
				after.powerFails(f)
				after.marked = false
				history = append(history, fmt.Sprintf("power failed %d", f))
				grow(after, acknowledged)
				history = history[:len(history)-1]
			}
		}
	}
	grow(*newDisk(t), 0)
	t.Logf("%d histories", histories)
}

// TestAWriteTornAtAnyByteLeavesTheOldRowOrTheNew cuts the power in the middle of an operation's
// write, at every byte, so that either the front or the back of the record is written. It does
// so after different numbers of operations, so that every place is torn.
func TestAWriteTornAtAnyByteLeavesTheOldRowOrTheNew(t *testing.T) {
	t.Parallel()
	for done := range leasestore.Millis(places + 1) {
		d := newDisk(t)
		for n := range done {
			if _, err := operate(&diskFile{disk: d}, n+1); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := operate(&diskFile{disk: d, killBefore: steps}, done+1); !errors.Is(err, errKilled) {
			t.Fatalf("operation killed before step %d = error %v; want %v", steps, err, errKilled)
		}
		for at := range recordSize + 1 {
			for _, front := range []bool{true, false} {
				torn := *d
				for i := range torn.dirty {
					if from, to := 0, at; torn.dirty[i] {
						if !front {
							from, to = at, recordSize
						}
						copy(torn.stable[i][from:to], torn.cache[i][from:to])
					}
				}
				torn.cache, torn.dirty = torn.stable, [places]bool{}
				got := torn.limit()
				whole := front && at == recordSize || !front && at == 0
				if got != done && got != done+1 || whole && got != done+1 {
					t.Fatalf("after %d operations, limit after a write was torn at byte %d (front %v) = %d; want %d, or %d if it is whole",
						done, at, front, got, done, done+1)
				}
				// The slot is usable again.
				if before, err := operate(&diskFile{disk: &torn}, 99); err != nil || before != got || torn.limit() != 99 {
					t.Fatalf("operation after a torn write read %d, error %v, left %d; want %d, nil, 99", before, err, torn.limit(), got)
				}
			}
		}
	}
}

// A fault makes one call on a slot file of the operating system fail.
type fault struct {
	file
	write, read, sync error
	short             bool
}

func (f *fault) WriteAt(b []byte, at int64) (int, error) {
	if f.short {
		n, err := f.file.WriteAt(b[:len(b)/2], at)
		return n, errors.Join(err, f.write)
	}
	if f.write != nil {
		return 0, f.write
	}
	return f.file.WriteAt(b, at)
}

func (f *fault) ReadAt(b []byte, at int64) (int, error) {
	if f.read != nil {
		return 0, f.read
	}
	return f.file.ReadAt(b, at)
}

func (f *fault) Sync() error {
	if f.sync != nil {
		return f.sync
	}
	return f.file.Sync()
}

// inject makes s open slots with the fault in *next.
func inject(s *Store, next *fault) {
	open := s.open
	s.open = func(path string, create bool) (file, error) {
		f, err := open(path, create)
		if err != nil || filepath.Ext(path) != "" {
			return f, err
		}
		faulty := *next
		faulty.file = f
		return &faulty, nil
	}
}

func TestAFailedWriteOrSyncPoisonsTheSlot(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		fault
		want error
	}{
		{"write", fault{write: errDisk}, errDisk},
		{"short write", fault{short: true}, io.ErrShortWrite},
		{"write on a disk that becomes full", fault{short: true, write: syscall.ENOSPC}, syscall.ENOSPC},
		{"sync", fault{sync: errDisk}, errDisk},
		{"sync on a full disk", fault{sync: syscall.ENOSPC}, syscall.ENOSPC},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStore(t, t.TempDir(), Config{})
			other := newStore(t, s.dir, Config{})
			c := newClaim(2)
			reply := mustClaim(t, s, c)
			now := fault{}
			inject(s, &now)

			now = tt.fault
			r := renewalOf(c, reply)
			_, err := s.Renew(t.Context(), r)
			if !errors.Is(err, ErrPoisoned) || !errors.Is(err, tt.want) || definite(err) {
				t.Fatalf("Renew with a failing %s = error %v; want one that matches %v and %v", tt.name, err, ErrPoisoned, tt.want)
			}
			now = fault{} // the disk appears to be well again

			if _, err := s.Renew(t.Context(), r); !errors.Is(err, ErrPoisoned) || !errors.Is(err, leasestore.ErrLost) {
				t.Errorf("second Renew = error %v; want %v and %v, so that the lease claims another row", err, ErrPoisoned, leasestore.ErrLost)
			}
			if err := s.Release(t.Context(), releaseOf(c, reply)); !errors.Is(err, ErrPoisoned) || definite(err) {
				t.Errorf("Release = error %v; want %v", err, ErrPoisoned)
			}
			if _, _, err := s.Rows(t.Context(), c.Space); !errors.Is(err, ErrPoisoned) {
				t.Errorf("Rows = error %v; want %v", err, ErrPoisoned)
			}
			only := newClaim(2)
			only.Only = []int64{reply.Row.Worker}
			if _, err := s.Claim(t.Context(), only); !errors.Is(err, ErrPoisoned) {
				t.Errorf("Claim of the poisoned row = error %v; want %v", err, ErrPoisoned)
			}
			if got := mustClaim(t, s, newClaim(2)); got.Row.Worker == reply.Row.Worker {
				t.Errorf("Claim of any row took worker %d, which is poisoned", got.Row.Worker)
			}
			// The kernel may show another process what is not on the disk.
			if _, err := other.Renew(t.Context(), r); !errors.Is(err, ErrPoisoned) || !errors.Is(err, leasestore.ErrLost) {
				t.Errorf("Renew by another process = error %v; want %v", err, ErrPoisoned)
			}
			// After a restart the operator removes the mark, and what was acknowledged is
			// there.
			if err := os.Remove(poisonPath(filepath.Join(s.dir, "ns-orders", "dc-0", strconv.FormatInt(reply.Row.Worker, 10)))); err != nil {
				t.Fatal(err)
			}
			r.Known = append(r.Known, r.Nonce)
			if _, err := other.Renew(t.Context(), r); err != nil {
				t.Errorf("Renew when the mark is removed = error %v; want none", err)
			}
		})
	}
}

// An operation that could not even begin has done no harm, and there may be room again.
func TestAFullDiskPoisonsNothing(t *testing.T) {
	for _, full := range []error{syscall.ENOSPC, syscall.EDQUOT} {
		s := newStore(t, t.TempDir(), Config{})
		c := newClaim(2)
		reply := mustClaim(t, s, c)
		now := fault{write: &fs.PathError{Op: "write", Path: "0", Err: full}}
		inject(s, &now)
		for name, err := range map[string]error{
			"Claim":   second(s.Claim(t.Context(), newClaim(2))),
			"Renew":   second(s.Renew(t.Context(), renewalOf(c, reply))),
			"Release": s.Release(t.Context(), releaseOf(c, reply)),
		} {
			if !errors.Is(err, full) || errors.Is(err, ErrPoisoned) || definite(err) {
				t.Errorf("%s on a full disk = error %v; want one that matches %v, and not %v", name, err, full, ErrPoisoned)
			}
		}
		now = fault{}
		if _, err := s.Renew(t.Context(), renewalOf(c, reply)); err != nil {
			t.Errorf("Renew when there is room again = error %v; want none", err)
		}
		mustClaim(t, s, newClaim(2))
	}
}

func TestAFailedReadIsAnErrorThatSaysNothing(t *testing.T) {
	s := newStore(t, t.TempDir(), Config{})
	c := newClaim(1)
	reply := mustClaim(t, s, c)
	now := fault{read: errDisk}
	inject(s, &now)
	for name, err := range map[string]error{
		"Claim":   second(s.Claim(t.Context(), newClaim(1))),
		"Renew":   second(s.Renew(t.Context(), renewalOf(c, reply))),
		"Release": s.Release(t.Context(), releaseOf(c, reply)),
	} {
		if !errors.Is(err, errDisk) || definite(err) {
			t.Errorf("%s of a row that cannot be read = error %v; want one that matches %v", name, err, errDisk)
		}
	}
	now = fault{}
	if _, err := s.Renew(t.Context(), renewalOf(c, reply)); err != nil {
		t.Errorf("Renew after a failed read = error %v; want none: nothing was written", err)
	}
}

func TestAClaimThatFailsHoldsNothing(t *testing.T) {
	s := newStore(t, t.TempDir(), Config{})
	mustClaim(t, s, newClaim(2)) // makes the rows
	now := fault{sync: errDisk}
	inject(s, &now)
	if _, err := s.Claim(t.Context(), newClaim(2)); !errors.Is(err, ErrPoisoned) || definite(err) {
		t.Fatalf("Claim with a failing sync = error %v; want %v, and nothing about the outcome", err, ErrPoisoned)
	}
	if got := len(s.held); got != 1 {
		t.Errorf("holder's locks after a failed claim = %d; want 1, of the claim before", got)
	}
}

func second(_ leasestore.Reply, err error) error { return err }

// definite reports whether err means that the operation was not performed.
func definite(err error) bool {
	return errors.Is(err, leasestore.ErrNoFreeWorker) || errors.Is(err, leasestore.ErrLost) ||
		errors.Is(err, leasestore.ErrLayout) || errors.Is(err, leasestore.ErrClockSkew)
}

func TestASlotIsPoisonedForItsStoreEvenIfOthersCannotBeTold(t *testing.T) {
	s := newStore(t, t.TempDir(), Config{})
	c := newClaim(1)
	reply := mustClaim(t, s, c)
	now := fault{sync: errDisk}
	inject(s, &now)
	open := s.open
	s.open = func(path string, create bool) (file, error) {
		if create {
			return nil, fs.ErrPermission
		}
		return open(path, create)
	}
	if _, err := s.Renew(t.Context(), renewalOf(c, reply)); !errors.Is(err, ErrPoisoned) || !errors.Is(err, fs.ErrPermission) {
		t.Fatalf("Renew = error %v; want %v and %v", err, ErrPoisoned, fs.ErrPermission)
	}
	now = fault{}
	if _, err := s.Renew(t.Context(), renewalOf(c, reply)); !errors.Is(err, ErrPoisoned) {
		t.Errorf("second Renew = error %v; want %v", err, ErrPoisoned)
	}
}
