package filelease

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/internal/base/wait"
)

// A file has the methods of an open file that this package needs. Tests implement one that
// fails.
type file interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Sync() error
	size() (int64, error)
	tryLock() (bool, error)
	linked() error // an error if the file is no longer the one at its path
}

// An osFile is a file of the operating system.
type osFile struct{ *os.File }

// openFile opens a file for reading and writing, and creates it if create is set.
func openFile(path string, create bool) (file, error) {
	flag := os.O_RDWR
	if create {
		flag |= os.O_CREATE
	}
	f, err := os.OpenFile(path, flag, 0o666) // less the umask, by which the operator decides who shares the rows
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (f osFile) tryLock() (bool, error) { return tryLock(f.File) }

func (f osFile) size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (f osFile) linked() error {
	own, err := f.Stat()
	if err != nil {
		return err
	}
	now, err := os.Lstat(f.Name())
	if err != nil {
		return err
	}
	if !os.SameFile(own, now) {
		return fmt.Errorf("%s is another file now: %w", f.Name(), fs.ErrNotExist)
	}
	return nil
}

// lockWait locks f, or returns the error of ctx if that ends first. It polls, because a flock
// that waits cannot be abandoned.
func lockWait(ctx context.Context, f file) error {
	for pause := time.Millisecond; ; pause = min(2*pause, 16*time.Millisecond) {
		if ok, err := f.tryLock(); ok || err != nil {
			return err
		}
		if err := wait.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// lock locks f. Without waits it returns errBusy if another open file has the lock.
func lock(ctx context.Context, f file, waits bool) error {
	if waits {
		return lockWait(ctx, f)
	}
	ok, err := f.tryLock()
	if err == nil && !ok {
		err = errBusy
	}
	return err
}

// errBusy means that another operation has the slot at this moment.
var errBusy = errors.New("filelease: slot is in use")

// A slot is the open and locked file of one worker. The lock makes an operation atomic, between
// processes as well as between the goroutines of one process, because it belongs to the open
// file and every operation opens the file itself.
type slot struct {
	store *Store
	space *space
	path  string
	file  file
}

// lock opens, locks and reads the slot of worker. Without wait it returns errBusy if the slot
// is locked. The error matches fs.ErrNotExist if the file does not exist.
func (s *Store) lock(ctx context.Context, sp *space, worker int64, wait bool) (*slot, record, error) {
	if err := ctx.Err(); err != nil { // between the slots of a large space
		return nil, record{}, fmt.Errorf("filelease: %w", err)
	}
	path := sp.slotPath(worker)
	f, err := s.open(path, false)
	if err != nil {
		return nil, record{}, fmt.Errorf("filelease: worker %d: %w", worker, err)
	}
	sl := &slot{store: s, space: sp, path: path, file: f}
	var last record
	if err = lock(ctx, f, wait); err != nil {
		err = fmt.Errorf("filelease: worker %d: %w", worker, err)
	} else if err = s.poisonOf(path); err == nil { // the slot may have been poisoned during the wait
		last, err = sl.read(worker)
	}
	if err != nil {
		sl.close()
		return nil, record{}, err
	}
	return sl, last, nil
}

// close unlocks the slot. Everything that has to last is synced by then, so the error means
// nothing.
func (sl *slot) close() { _ = sl.file.Close() }

// read returns the newest record of the slot, or an error if it cannot be determined.
func (sl *slot) read(worker int64) (record, error) {
	size, err := sl.file.size()
	if err != nil {
		return record{}, fmt.Errorf("filelease: worker %d: %w", worker, err)
	}
	if size != slotSize { // the missing record may have been the newest
		return record{}, fmt.Errorf("%w: %s has %d bytes; want %d", ErrDamaged, sl.path, size, slotSize)
	}
	b := make([]byte, slotSize)
	if n, err := sl.file.ReadAt(b, 0); n < slotSize {
		return record{}, fmt.Errorf("filelease: worker %d: read %d of %d bytes: %w", worker, n, slotSize, err)
	}
	r, ok := newest(b)
	if !ok {
		return record{}, fmt.Errorf("%w: %s has no valid record", ErrDamaged, sl.path)
	}
	m := sl.space.meta
	if r.identity != m.Identity || r.namespace != m.Namespace || r.datacenter != m.Datacenter || r.row.Worker != worker {
		return record{}, fmt.Errorf("%w: %s was copied there: it belongs to namespace %q, datacenter %d, worker %d, directory %x; want %q, %d, %d, %x",
			ErrDamaged, sl.path, r.namespace, r.datacenter, r.row.Worker, r.identity, m.Namespace, m.Datacenter, worker, m.Identity)
	}
	return r, nil
}

// write puts row into the slot as the successor of last, which read has returned.
//
// At any moment a power failure may spoil the block that is being written, and lose or spoil
// every block that was written and not synced. What is read afterwards must be the last row
// that was acknowledged, or a later one.
//
// The record before last is overwritten, so last has to be on the disk by then. Reading it does
// not prove that, because its writer may have been killed before the sync; there is therefore a
// sync before the write as well as after it. Writing last again would be worse, because a power
// failure could then spoil a record that was safe.
//
// A write or sync that fails leaves the file in an unknown state: the kernel may consider the
// page clean, still show what was written, and let the next sync succeed without doing
// anything. The slot is then poisoned, unless the disk is full and not a byte was written,
// because the content was synced just before and nothing is new.
//
// Nothing is written once ctx has ended, however long the preceding sync has taken, because the
// caller has stopped waiting.
func (sl *slot) write(ctx context.Context, last record, row leasestore.Row, held bool) error {
	next := last
	next.sequence++
	next.row, next.held = row, held
	b, err := next.encode()
	if err != nil {
		return err
	}
	if err := sl.file.Sync(); err != nil {
		return sl.store.poison(sl.path, err)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("filelease: worker %d: %w", row.Worker, err)
	}
	n, err := sl.file.WriteAt(b, next.place())
	if n == 0 && diskFull(err) {
		return fmt.Errorf("filelease: worker %d: nothing was written: %w", row.Worker, err)
	}
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	if err == nil {
		err = sl.file.Sync()
	}
	if err != nil {
		return sl.store.poison(sl.path, err)
	}
	if err := sl.file.linked(); err != nil { // written into a file that no process will read
		return fmt.Errorf("filelease: worker %d: %w", row.Worker, err)
	}
	return nil
}

// poisonPath returns the path of the mark that the slot at path is poisoned.
func poisonPath(path string) string { return path + ".poisoned" }

// poison records that a write to the slot at path has failed with err, and returns the error of
// this and all later operations on the slot. It requires the lock of the slot.
//
// The other processes read through the same kernel, which may show them what is not on the
// disk, so they must stop as well, and the mark, an empty file, tells them. The mark need not
// be durable, because the kernel loses it no earlier than what it wrongly shows. If the mark
// cannot be made, hardly anything else can be written on this file system either; this Store
// refuses in any case.
func (s *Store) poison(path string, err error) error {
	err = fmt.Errorf("%w: %s: %w", ErrPoisoned, path, err)
	if markErr := s.mark(poisonPath(path)); markErr != nil {
		err = fmt.Errorf("%w; other processes do not know: %w", err, markErr)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.poisoned[path] = err
	return err
}

// poisonOf returns the error of all operations on the slot at path if a write to it has failed,
// in this process or another.
func (s *Store) poisonOf(path string) error {
	s.mu.Lock()
	err := s.poisoned[path]
	s.mu.Unlock()
	if err != nil {
		return err
	}
	f, err := s.open(poisonPath(path), false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("filelease: %w", err)
	}
	_ = f.Close()
	return fmt.Errorf("%w: %s, by another process or before this one began; see %s", ErrPoisoned, path, poisonPath(path))
}
