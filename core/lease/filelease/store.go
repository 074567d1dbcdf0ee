package filelease

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/internal/base/filesystem"
	"github.com/snowkey/snowkey/internal/base/wait"
)

var (
	// ErrDamaged is matched by the errors of operations on files that were truncated,
	// overwritten or copied from elsewhere. They are not repaired: restore them, or remove the
	// slot file, see [Store.Claim]. A lease whose slot is damaged claims another row.
	ErrDamaged = errors.New("filelease: damaged file")

	// ErrMissing is matched by the errors of claims that found no slot but one whose file is
	// missing. Name its number in Claim.Only to have it made again. Its first ID is then later
	// than everything that the file may have reserved, provided that no window was longer than
	// the claimant's, no clock has stepped back by more than the skew, and no generator ran
	// ahead of its clock by more than the skew. If that is uncertain, wait until the file's
	// reservation must have passed, which is never more than an hour, a window and the skew
	// ahead of the clock, or set Config.AllowFreshState. See [Store.Claim].
	ErrMissing = errors.New("filelease: a slot file is missing")

	// ErrPoisoned is matched by the errors of operations on a slot that a process failed to
	// write or to sync; a full disk is a temporary error instead. No process tries again,
	// because a sync that succeeds after one that failed may have done nothing. The mark is an
	// empty file beside the slot, whose name ends in ".poisoned". Once the disk is repaired,
	// restart the host or unmount the file system, so that reads show what is on the disk, and
	// remove the mark.
	ErrPoisoned = errors.New("filelease: a write has failed, and the file is not used any more")

	// ErrReplaced is matched by the errors of operations once the directory is not the one that
	// the store was opened on, because it was removed or moved, or something was mounted over
	// it. The rows that other processes rely on are elsewhere. A renewal or release gets a
	// [*leasestore.LostError] as well. Restart the process.
	ErrReplaced = errors.New("filelease: the directory was removed or replaced while the process ran")

	// ErrClosed is matched by the errors of operations after Close. It matches core.ErrClosed.
	ErrClosed error = closedError{}
)

type closedError struct{}

func (closedError) Error() string { return "filelease: the store is closed" }
func (closedError) Unwrap() error { return core.ErrClosed }

// The reasons of leases that are lost because of ErrReplaced, ErrPoisoned and ErrDamaged.
const (
	replaced leasestore.Reason = "the directory of its files was removed or replaced while the process ran"
	poisoned leasestore.Reason = "its file takes no writes any more"
	damaged  leasestore.Reason = "its file is damaged"
)

// Config has the settings of a [Store]. The zero Config is usable.
type Config struct {
	// AllowFreshState lets a slot file, or the directory of a space, that has gone missing
	// start anew at once, as if its worker numbers had never been used. Set it only if they
	// have not been used recently. Defaults to false, with which the first ID is later than
	// everything that the lost files may have reserved; see [Store.Claim].
	AllowFreshState bool

	// AllowFUSE permits a directory on FUSE. Set it only if no other host shares that file
	// system, flock works there, and it keeps what it has synced. Defaults to false, because
	// sshfs and many others are FUSE, and IDs would repeat on them.
	AllowFUSE bool

	// Logger gets warnings about a directory that may not last, and about slot files that are
	// missing or damaged. Defaults to [slog.Default].
	Logger *slog.Logger

	// Now is the clock, the same for all processes that share the directory. Defaults to
	// [time.Now]; others are for tests.
	Now func() time.Time
}

// A Store is a [leasestore.Store] in a directory, for the processes of one host. [New] creates
// it; the zero Store is not usable. It is safe for concurrent use and must not be copied.
type Store struct {
	dir   string
	info  fs.FileInfo // of dir, to notice that it was replaced
	log   *slog.Logger
	now   func() time.Time
	fresh bool
	open  func(path string, create bool) (file, error) // openFile, but for tests
	sync  func(dir string) error                       // syncDir, but for tests
	calls wait.Calls                                   // to the file system

	mu       sync.Mutex // guards what follows; not held during I/O, which may hang
	closed   bool
	poisoned map[string]error   // by path
	held     map[string]holding // by path of the slot
}

var (
	_ leasestore.Store     = (*Store)(nil)
	_ leasestore.Lister    = (*Store)(nil)
	_ leasestore.Fencer    = (*Store)(nil)
	_ leasestore.Historian = (*Store)(nil)
	_ leasestore.Catalog   = (*Store)(nil)
)

// New opens the store in the directory dir, which must exist and be writable, on a file system
// of this host alone. New does not create it, because the mount point of a missing volume would
// then look like a store in which nothing was reserved yet. On Linux, New refuses NFS and other
// file systems that hosts share, and FUSE unless Config.AllowFUSE is set, and logs a warning on
// tmpfs or an overlay.
//
// On systems without flock, such as Windows, the error matches [errors.ErrUnsupported].
func New(dir string, c Config) (*Store, error) {
	if errUnsupported != nil {
		return nil, errUnsupported
	}
	if dir == "" {
		return nil, &core.ValueError{Package: "filelease", Name: "dir", Value: `""`, Want: "a directory that lasts", Err: leasestore.ErrPermanent}
	}
	s := &Store{
		calls:    wait.Calls{Max: maxLeft},
		log:      c.Logger,
		now:      c.Now,
		fresh:    c.AllowFreshState,
		open:     openFile,
		sync:     syncDir,
		poisoned: map[string]error{},
		held:     map[string]holding{},
	}
	if s.log == nil {
		s.log = slog.Default()
	}
	if s.now == nil {
		s.now = time.Now
	}
	var err error
	if s.dir, err = filepath.Abs(dir); err != nil {
		return nil, prefixed(err)
	}
	if s.info, err = os.Stat(s.dir); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("filelease: %w: make the directory first, or mount the volume that it is on", err)
	} else if err != nil {
		return nil, prefixed(err)
	}
	if !s.info.IsDir() {
		return nil, &core.ValueError{Package: "filelease", Name: "dir", Value: strconv.Quote(s.dir) + ", a file", Want: "a directory", Err: leasestore.ErrPermanent}
	}
	warning, err := filesystem.Check(s.dir, c.AllowFUSE)
	if err != nil {
		return nil, fmt.Errorf("filelease: unusable directory %s: %w", s.dir, err)
	}
	if warning != "" {
		s.log.Warn("filelease: the directory may lose leases: "+warning, "dir", s.dir)
	}
	if err := tryWriting(s.dir); err != nil {
		return nil, err
	}
	return s, nil
}

// tryWriting returns an error if no file can be created in dir, so that the program learns it
// at the start and not at a claim.
func tryWriting(dir string) error {
	f, err := os.CreateTemp(dir, "probe-*")
	if err != nil {
		return fmt.Errorf("filelease: the directory is not writable: %w", err)
	}
	return prefixed(errors.Join(f.Close(), os.Remove(f.Name())))
}

// Close drops the holder's locks of leases that were not released; the next claim finds their
// rows as after a crash, so close the leases first. Operations that begin afterwards return
// ErrClosed. Close does not wait for those under way, which keep no lock when they end. A
// second Close has no effect.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	held := s.held
	s.held = map[string]holding{}
	s.mu.Unlock()
	var errs []error
	for _, h := range held {
		errs = append(errs, h.lock.Close())
	}
	return errors.Join(errs...)
}

func (s *Store) clock() leasestore.Millis { return leasestore.MillisOf(s.now()) }

// Claim implements [leasestore.Store]. The first claim of a row makes its slot file, of 8 KiB;
// if the disk has no room for it, a row that already has its file is taken.
//
// A row whose holder is dead, according to its lock, counts as released: it is free if its
// limit is no further ahead than the skew, and its next range begins there.
//
// A slot file that has gone missing since it was claimed is not made again by a claim that
// accepts any number, only by one that names the number in Claim.Only. What the file had
// reserved is forgotten, so its limit becomes now plus the window and the skew, or the guard if
// that is more. The row can be claimed when the clock has come near that limit, about a window
// later, and none of its IDs is earlier. This is later than everything that was lost if
//
//   - no holder had a window longer than the claimant's,
//   - no clock was stepped back by more than the skew meanwhile,
//   - and no generator ran ahead of its clock by more than the skew, as one does that goes on
//     issuing IDs while its clock is behind: a limit may be up to an hour and a window beyond
//     the clock.
//
// The same happens, whatever the claim asks for, to all rows of a space whose directory is
// missing although it was claimed in. A file beside the directories of the namespaces tells it
// from a new space, which begins at once. Config.AllowFreshState omits the wait in both cases.
//
// Slots that are missing, damaged or poisoned are passed over with a warning as long as another
// slot is free. Otherwise the error names them: [ErrMissing], [ErrDamaged], [ErrPoisoned].
func (s *Store) Claim(ctx context.Context, c leasestore.Claim) (leasestore.Reply, error) {
	return within(ctx, s, c.Space, func() (leasestore.Reply, error) { return s.claim(ctx, c) }, func(r leasestore.Reply) {
		// The caller never learns of this lease, so its row is free as if the holder were dead.
		s.letGo(slotPath(s.spaceDir(c.Space), r.Row.Worker), c.Owner)
	})
}

func (s *Store) claim(ctx context.Context, c leasestore.Claim) (leasestore.Reply, error) {
	now := s.clock() // at once, so that waiting for locks does not count as skew
	if err := c.Check(now); err != nil {
		return leasestore.Reply{}, err
	}
	sp, err := s.spaceOf(ctx, c)
	if err != nil {
		return leasestore.Reply{}, err
	}

	// Slots are tried in random order, those that no operation has locked first, so that the
	// first free slot is a random one.
	cl := claiming{Claim: c, any: c, store: s, space: sp, earliest: now}
	cl.any.Only = nil
	todo := c.Candidates()
	for _, wait := range []bool{false, true} {
		var busy []int64
		for _, worker := range todo {
			reply, err := cl.try(ctx, worker, wait)
			switch {
			case err == nil:
				if len(cl.bad) > 0 {
					s.log.Warn("filelease: slots were passed over", "error", errors.Join(cl.bad...))
				}
				return reply, nil
			case errors.Is(err, errTaken):
			case errors.Is(err, errBusy):
				busy = append(busy, worker)
			case errors.Is(err, ErrMissing), errors.Is(err, ErrDamaged), errors.Is(err, ErrPoisoned) && !cl.wrote:
				cl.bad = append(cl.bad, err)
			default:
				return leasestore.Reply{}, err
			}
		}
		todo = busy
	}
	if cl.full != nil { // otherwise a slot would be free
		return leasestore.Reply{}, cl.full
	}
	// No row is free now, so none was earlier, and Choose returns the error that says so.
	_, err = cl.any.Choose(cl.rows, cl.earliest, rand.IntN)
	if len(cl.bad) > 0 {
		err = fmt.Errorf("%w; passed over: %w", err, errors.Join(cl.bad...))
	}
	return leasestore.Reply{}, err
}

// errTaken means that a row is not free.
var errTaken = errors.New("filelease: the row is taken")

// A claiming is a claim under way.
type claiming struct {
	leasestore.Claim
	any leasestore.Claim // the same without Only, which may be long, because every slot tried is a candidate

	store    *Store
	space    *space
	earliest leasestore.Millis // reading of the clock
	rows     []leasestore.Row  // that are not free
	bad      []error           // of slots that are passed over
	full     error             // why the disk has no room for a further slot
	wrote    bool              // or tried to, so the outcome of the claim is unknown
}

// try claims the row of worker if it is free. If the disk has no room for a new slot, an
// existing one has to do.
func (cl *claiming) try(ctx context.Context, worker int64, wait bool) (leasestore.Reply, error) {
	s := cl.store
	sl, last, err := s.lock(ctx, cl.space, worker, wait)
	if errors.Is(err, fs.ErrNotExist) {
		if cl.full != nil {
			return leasestore.Reply{}, errTaken
		}
		sl, last, err = s.makeAndLock(ctx, cl.Claim, cl.space, worker, wait)
		err = cl.noRoom(err)
	}
	if err != nil {
		return leasestore.Reply{}, err
	}
	defer sl.close()
	now := s.clock()
	next, err := cl.next(sl, last, now)
	if err != nil {
		return leasestore.Reply{}, err
	}
	if err := sl.settle(last); err != nil {
		return leasestore.Reply{}, cl.noRoom(err)
	}
	cl.wrote = true
	held := !cl.Retire && s.hold(sl.path, cl.Owner) // nobody holds a retired row
	if err := sl.write(ctx, last, next, held); err != nil {
		s.letGo(sl.path, cl.Owner)
		return leasestore.Reply{}, err
	}
	reply := leasestore.Reply{Row: next, Before: last.row.Until, Now: now}
	if err := sl.record(cl.Record(last.row, reply)); err != nil {
		s.log.Debug("filelease: a claim is not recorded", "worker", worker, "error", err)
	}
	return reply, nil
}

// noRoom returns errTaken and records err if err means that the disk is full.
func (cl *claiming) noRoom(err error) error {
	if !diskFull(err) {
		return err
	}
	cl.full = err
	return errTaken
}

// next returns the row in sl as the claim leaves it, where last is its present record.
func (cl *claiming) next(sl *slot, last record, now leasestore.Millis) (leasestore.Row, error) {
	cl.earliest = min(cl.earliest, now)
	row := last.row
	if last.held && !cl.any.Free(row, now) && cl.store.abandoned(sl.path) {
		row.Owner = "" // its holder issues no more IDs
	}
	if next, ok := cl.any.Apply(row, now); ok {
		return next, nil
	}
	if last.row.Owner == cl.Owner { // this claim was done before
		_, err := cl.any.Choose([]leasestore.Row{last.row}, now, rand.IntN)
		return leasestore.Row{}, err
	}
	cl.rows = append(cl.rows, last.row)
	return leasestore.Row{}, errTaken
}

// A request is a renewal or a release of a row by its holder.
type request struct {
	space  leasestore.Space
	worker int64
	owner  string
	keeps  bool // the row: the lease goes on
	lost   func(leasestore.Reason) *leasestore.LostError
	apply  func(row leasestore.Row, now leasestore.Millis) (leasestore.Row, error)
}

// Renew implements [leasestore.Store]. A row whose slot is damaged or poisoned is lost: the
// error matches [ErrDamaged] or [ErrPoisoned] as well, and the lease claims another row.
func (s *Store) Renew(ctx context.Context, r leasestore.Renewal) (leasestore.Reply, error) {
	return within(ctx, s, r.Space, func() (leasestore.Reply, error) {
		return s.change(ctx, request{r.Space, r.Worker, r.Owner, true, r.Lost, r.Apply})
	}, nil)
}

// Release implements [leasestore.Store].
func (s *Store) Release(ctx context.Context, r leasestore.Release) error {
	apply := func(row leasestore.Row, _ leasestore.Millis) (leasestore.Row, error) { return r.Apply(row) }
	_, err := within(ctx, s, r.Space, func() (leasestore.Reply, error) {
		return s.change(ctx, request{r.Space, r.Worker, r.Owner, false, r.Lost, apply})
	}, nil)
	return err
}

// change performs a request of a holder.
func (s *Store) change(ctx context.Context, q request) (leasestore.Reply, error) {
	sl, last, err := s.row(ctx, q)
	if err != nil {
		if !q.keeps || errors.Is(err, leasestore.ErrLost) {
			s.letGo(slotPath(s.spaceDir(q.space), q.worker), q.owner)
		}
		return leasestore.Reply{}, err
	}
	defer sl.close()
	now := s.clock()
	row, err := q.apply(last.row, now)
	if err != nil {
		s.lost(sl.path, q.owner, last.row)
		return leasestore.Reply{}, err
	}
	if !q.keeps {
		defer s.letGo(sl.path, q.owner) // even if the write fails
	}
	if err := sl.write(ctx, last, row, q.keeps && s.hold(sl.path, q.owner)); err != nil {
		return leasestore.Reply{}, err
	}
	return leasestore.Reply{Row: row, Before: last.row.Until, Now: now}, nil
}

// row locks and reads the row of a request. It returns a LostError if the row is gone, and to a
// renewal also if the slot can never be written again, because nothing was written and the
// lease should claim another row.
func (s *Store) row(ctx context.Context, q request) (*slot, record, error) {
	sp, err := s.space(q.space)
	var sl *slot
	var last record
	if err == nil {
		sl, last, err = s.lock(ctx, sp, q.worker, true)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = q.lost(leasestore.Gone)
	case errors.Is(err, ErrReplaced):
		err = fmt.Errorf("%w: %w", q.lost(replaced), err)
	case q.keeps && errors.Is(err, ErrPoisoned):
		err = fmt.Errorf("%w: %w", q.lost(poisoned), err)
	case q.keeps && errors.Is(err, ErrDamaged) && sp != nil: // not if the space is damaged, which has no other row either
		err = fmt.Errorf("%w: %w", q.lost(damaged), err)
	}
	return sl, last, err
}

// Fence implements [leasestore.Fencer]. It makes the slot files of rows that were never
// claimed, and those that have gone missing. A slot that is damaged or poisoned is an error,
// which is returned after the others have been fenced.
func (s *Store) Fence(ctx context.Context, f leasestore.Fencing) error {
	_, err := within(ctx, s, f.Space, func() (struct{}, error) { return struct{}{}, s.fence(ctx, f) }, nil)
	return err
}

func (s *Store) fence(ctx context.Context, f leasestore.Fencing) error {
	sp, err := s.spaceOf(ctx, s.maker(f))
	if err != nil {
		return err
	}
	var errs []error
	for worker := range sp.meta.Workers {
		errs = append(errs, s.fenceSlot(ctx, sp, worker, f))
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errs...)
}

// maker returns a claim that makes missing slots with a limit at f.Until or later, because
// another process's claim may come before the row is fenced and must not begin earlier.
func (s *Store) maker(f leasestore.Fencing, only ...int64) leasestore.Claim {
	return leasestore.Claim{Space: f.Space, Only: only, Window: max(0, f.Until-s.clock())}
}

func (s *Store) fenceSlot(ctx context.Context, sp *space, worker int64, f leasestore.Fencing) error {
	sl, last, err := s.lock(ctx, sp, worker, true)
	if errors.Is(err, fs.ErrNotExist) {
		sl, last, err = s.makeAndLock(ctx, s.maker(f, worker), sp, worker, true)
	}
	if err != nil {
		return err
	}
	defer sl.close()
	if err := sl.settle(last); err != nil {
		return err
	}
	return sl.write(ctx, last, f.Apply(last.row), false)
}

// LosesWrites returns false, because acknowledged writes are on disk.
func (s *Store) LosesWrites() bool { return false }

// Rows implements [leasestore.Lister]. A row whose slot file has gone missing is left out. One
// whose file is damaged or poisoned is an error.
func (s *Store) Rows(ctx context.Context, space leasestore.Space) ([]leasestore.Row, leasestore.Millis, error) {
	rows, err := within(ctx, s, space, func() ([]leasestore.Row, error) { return s.rows(ctx, space) }, nil)
	if err != nil {
		return nil, 0, err
	}
	return rows, s.clock(), nil
}

func (s *Store) rows(ctx context.Context, space leasestore.Space) ([]leasestore.Row, error) {
	sp, err := s.space(space)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var rows []leasestore.Row
	for worker := range sp.meta.Workers {
		sl, last, err := s.lock(ctx, sp, worker, true)
		switch {
		case err == nil:
			sl.close()
			rows = append(rows, last.row)
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		default:
			row, missing, err := sp.unclaimed(worker)
			if err != nil {
				return nil, err
			}
			if !missing {
				rows = append(rows, row)
			}
		}
	}
	return rows, nil
}

// Spaces implements [leasestore.Catalog].
func (s *Store) Spaces(ctx context.Context) ([]leasestore.Space, error) {
	any := leasestore.Space{Namespace: "any", Workers: 1} // the call is about none
	return within(ctx, s, any, s.spaces, nil)
}

func (s *Store) spaces() (spaces []leasestore.Space, err error) {
	namespaces, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, prefixed(err)
	}
	for _, namespace := range namespaces {
		if !strings.HasPrefix(namespace.Name(), "ns-") {
			continue
		}
		metas, err := metasIn(filepath.Join(s.dir, namespace.Name()))
		if err != nil {
			return nil, err
		}
		for _, m := range metas {
			spaces = append(spaces, leasestore.Space{Namespace: m.Namespace, Datacenter: m.Datacenter, Workers: m.Workers, Layout: m.Layout})
		}
	}
	return spaces, nil
}

// unclaimed returns the row of a worker without a slot file, and whether the file has gone missing.
func (sp *space) unclaimed(worker int64) (row leasestore.Row, missing bool, err error) {
	missing, err = exists(claimedPath(sp.slotPath(worker)))
	return leasestore.Row{Worker: worker, Until: sp.meta.Until}, missing, err
}
