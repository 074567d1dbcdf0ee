package filelease

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// The files:
//
//	dir/
//	    made-ns-orders-dc-0  this space was claimed in; see slot.settle
//	    ns-orders/       one per namespace; locked while a space is made in it
//	        dc-0/        one per datacenter: a space
//	            meta     what the space is
//	            0 … 1023 the slots, each made at the first claim of its row
//	            7.claimed   slot 7 was claimed; see slot.settle
//	            7.held      the holder's lock of slot 7
//	            7.past      the last claims of slot 7
//	            7.poisoned  a write to slot 7 has failed
//
// A space is made under another name, synced and renamed, so that it appears as a whole or not
// at all. The same goes for a slot.
//
// All rows exist as soon as their space does. A row that was never claimed follows from the
// meta file and needs no file of its own, because syncing 1,024 files takes longer on a slow
// disk than a claim may take.

const (
	metaName  = "meta"
	making    = ".making" // ends the name of what is incomplete
	schema    = 2
	maxWorker = 1 << 16
)

// A meta is the content of a meta file.
type meta struct {
	Schema     int      `json:"schema"`
	Identity   identity `json:"identity"`
	Namespace  string   `json:"namespace"`
	Datacenter int64    `json:"datacenter"`
	Workers    int64    `json:"workers"`
	Layout     string   `json:"layout"`

	// Until is the limit of every row that was never claimed.
	Until leasestore.Millis `json:"until"`
}

// MarshalText and UnmarshalText make an identity readable in the meta file.
func (id identity) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, id[:]), nil }

func (id *identity) UnmarshalText(b []byte) error {
	if n, err := hex.Decode(make([]byte, len(b)), b); err != nil || n != len(id) {
		return fmt.Errorf("want %d hexadecimal digits", 2*len(id))
	}
	_, err := hex.Decode(id[:], b)
	return err
}

// A space is a space that exists.
type space struct {
	dir  string
	meta meta
}

func (sp *space) slotPath(worker int64) string { return slotPath(sp.dir, worker) }

func slotPath(dir string, worker int64) string {
	return filepath.Join(dir, strconv.FormatInt(worker, 10))
}

// namespaceDir returns the name of the directory of a namespace. Capitals are marked, because
// names that differ only in case are one name on some disks. The prefix makes ".", ".." and
// names of devices harmless, and the suffix a dot at the end.
func namespaceDir(namespace string) string {
	var b strings.Builder
	b.WriteString("ns-")
	for _, c := range []byte(namespace) {
		if 'A' <= c && c <= 'Z' {
			b.WriteByte('+')
			c += 'a' - 'A'
		}
		b.WriteByte(c)
	}
	if strings.HasSuffix(namespace, ".") {
		b.WriteByte('+')
	}
	return b.String()
}

// spaceDir returns the path of the directory of a space.
func (s *Store) spaceDir(sp leasestore.Space) string {
	return filepath.Join(s.dir, namespaceDir(sp.Namespace), datacenterDir(sp.Datacenter))
}

// madePath returns the path of the file that records a claim in a space. A number follows the
// last "-dc-", so no two spaces share a name.
func (s *Store) madePath(namespace string, datacenter int64) string {
	return filepath.Join(s.dir, "made-"+namespaceDir(namespace)+"-"+datacenterDir(datacenter))
}

// claimedPath returns the path of the file that records a claim of the slot at path.
func claimedPath(path string) string { return path + ".claimed" }

func datacenterDir(datacenter int64) string { return "dc-" + strconv.FormatInt(datacenter, 10) }

// space returns the space sp, or an error that matches fs.ErrNotExist if it does not exist.
func (s *Store) space(sp leasestore.Space) (*space, error) {
	// A file system that was mounted or unmounted at the path shows other rows, or none, while
	// the rows that this process and others rely on are elsewhere.
	switch info, err := os.Stat(s.dir); {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, prefixed(err)
	case err != nil || !os.SameFile(info, s.info):
		return nil, fmt.Errorf("%w: %s; restart the process", ErrReplaced, s.dir)
	}
	dir := s.spaceDir(sp)
	// The directory first, because its meta file exists as soon as it does. In the opposite
	// order another process could make the space between the two checks.
	made, err := exists(dir)
	if err != nil {
		return nil, err
	}
	if !made {
		return nil, fmt.Errorf("filelease: no rows have been made in %s: %w", dir, fs.ErrNotExist)
	}
	m, err := readMeta(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, leasestore.Permanent(fmt.Errorf("%w: %s is there without its file %q: restore it", ErrDamaged, dir, metaName))
	case err != nil:
		return nil, err
	case m.Namespace != sp.Namespace || m.Datacenter != sp.Datacenter:
		return nil, fmt.Errorf("%w: %s was copied there: it belongs to namespace %q, datacenter %d; want %q, %d",
			ErrDamaged, dir, m.Namespace, m.Datacenter, sp.Namespace, sp.Datacenter)
	}
	return &space{dir: dir, meta: m}, nil
}

// readMeta reads the meta file in dir.
func readMeta(dir string) (meta, error) {
	path := filepath.Join(dir, metaName)
	b, err := os.ReadFile(path)
	if err != nil {
		return meta{}, prefixed(err)
	}
	var m meta
	err = json.Unmarshal(b, &m)
	switch {
	case m.Schema != 0 && m.Schema != schema:
		return meta{}, leasestore.Permanent(fmt.Errorf("filelease: %s has schema version %d: want %d", path, m.Schema, schema))
	case err != nil:
		return meta{}, fmt.Errorf("%w: %s: %w", ErrDamaged, path, err)
	case m.Schema == 0 || m.Workers < 1 || m.Workers > maxWorker || m.Identity == (identity{}):
		return meta{}, fmt.Errorf("%w: %s: schema %d, %d workers, directory %x; want %d, 1..%d, not 0",
			ErrDamaged, path, m.Schema, m.Workers, m.Identity, schema, maxWorker)
	}
	return m, nil
}

// spaceOf returns the space of a claim, which it makes at the first claim.
func (s *Store) spaceOf(ctx context.Context, c leasestore.Claim) (*space, error) {
	want := c.Space
	sp, err := s.space(want)
	if errors.Is(err, fs.ErrNotExist) {
		sp, err = s.makeSpace(ctx, c)
	}
	if err != nil {
		return nil, err
	}
	if sp.meta.Layout != want.Layout {
		return nil, &leasestore.LayoutError{Namespace: want.Namespace, Stored: sp.meta.Layout, Own: want.Layout}
	}
	if sp.meta.Workers != want.Workers {
		return nil, &core.ValueError{Package: "filelease", Name: "Space.Workers", Value: strconv.FormatInt(want.Workers, 10),
			Want: strconv.FormatInt(sp.meta.Workers, 10) + ", as in the first claim", Err: leasestore.ErrPermanent}
	}
	return sp, nil
}

// makeSpace makes the space of c, unless another process has done so meanwhile.
//
// A new namespace or datacenter begins at once, while one that has gone missing must not. The
// note that settle leaves tells them apart.
func (s *Store) makeSpace(ctx context.Context, c leasestore.Claim) (*space, error) {
	want := c.Space
	parent := filepath.Join(s.dir, namespaceDir(want.Namespace))
	if err := os.Mkdir(parent, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, prefixed(err)
	}
	unlock, err := lockDir(ctx, parent)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if sp, err := s.space(want); !errors.Is(err, fs.ErrNotExist) {
		return sp, err
	}
	if err := checkLayouts(parent, want); err != nil {
		return nil, err
	}

	made := s.madePath(want.Namespace, want.Datacenter)
	gone, err := exists(made) // it has been there before
	if err != nil {
		return nil, err
	}
	m := meta{Schema: schema, Namespace: want.Namespace, Datacenter: want.Datacenter, Workers: want.Workers, Layout: want.Layout}
	rand.Read(m.Identity[:])
	if gone && !s.fresh {
		m.Until = s.afterLoss(c)
	}
	dir := filepath.Join(parent, datacenterDir(want.Datacenter))
	draft := dir + making
	if err := os.RemoveAll(draft); err != nil { // left by a maker that was killed, and never claimed in
		return nil, prefixed(err)
	}
	err = s.writeMeta(draft, m)
	if err == nil && ctx.Err() != nil { // the caller has stopped waiting
		err = fmt.Errorf("filelease: make the rows: %w", ctx.Err())
	}
	if err != nil {
		_ = os.RemoveAll(draft)
		return nil, err
	}
	if err := os.Rename(draft, dir); err != nil { // settle makes the name durable
		return nil, prefixed(err)
	}
	if m.Until > 0 {
		s.log.Warn("filelease: the files of a space were missing: what they had reserved is forgotten",
			"dir", dir, "made", made, "no_id_before", m.Until.Time())
	}
	return &space{dir: dir, meta: m}, nil
}

// afterLoss returns a limit that is later than any that may have been forgotten: without the
// guard on the conditions of [Store.Claim], and with it because no limit is more than a window
// beyond the clocks, which differ by at most the guard. A row that was given back may have a
// later limit, but no ID was issued from it.
func (s *Store) afterLoss(c leasestore.Claim) leasestore.Millis {
	return s.clock() + c.Window + max(c.Skew, c.Guard)
}

// settle makes two things durable before the first write to a slot, which is due if last, the
// slot's present record, is the one that it was made with.
//
// The first is the slot's place. The process that renamed the slot or its space into place may
// have been killed before a sync, and what is acknowledged must not be in a file that a power
// failure takes away.
//
// The second is a pair of notes that the row was claimed, one beside the slot and one outside
// of the space. If the slot or the space is missing later, they show that it is lost and not
// new. The notes are made after the names, so that a process killed in between leaves a row
// that is as good as new.
//
// A slot that has been written to is known to be durable, so later operations skip all of this.
func (sl *slot) settle(last record) error {
	if last.sequence > 0 {
		return nil
	}
	s, parent, m := sl.store, filepath.Dir(sl.space.dir), sl.space.meta
	if err := s.mark(claimedPath(sl.path)); err != nil {
		return err
	}
	for _, dir := range []string{sl.space.dir, parent} {
		if err := s.sync(dir); err != nil {
			return err
		}
	}
	if err := s.mark(s.madePath(m.Namespace, m.Datacenter)); err != nil {
		return err
	}
	return s.sync(s.dir) // parent is in there, too
}

// mark makes an empty file unless it exists. A sync of the directory makes it durable.
func (s *Store) mark(path string) error {
	f, err := s.open(path, true)
	if err == nil {
		err = f.Close()
	}
	return prefixed(err)
}

// exists reports whether there is a file at path.
func exists(path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, prefixed(err)
}

// prefixed returns an error of the operating system as one of this package.
func prefixed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("filelease: %w", err)
}

// checkLayouts returns an error if a space in the namespace directory parent has another layout
// than want. The directory is locked, so no other space is being made.
func checkLayouts(parent string, want leasestore.Space) error {
	metas, err := metasIn(parent)
	for _, m := range metas {
		if m.Layout != want.Layout {
			return &leasestore.LayoutError{Namespace: want.Namespace, Stored: m.Layout, Own: want.Layout}
		}
	}
	return err
}

// metasIn returns the meta files of the spaces in the namespace directory parent.
func metasIn(parent string) (metas []meta, err error) {
	spaces, err := os.ReadDir(parent)
	if err != nil {
		return nil, prefixed(err)
	}
	for _, space := range spaces {
		if !strings.HasPrefix(space.Name(), "dc-") || strings.HasSuffix(space.Name(), making) {
			continue
		}
		m, err := readMeta(filepath.Join(parent, space.Name()))
		if err != nil {
			return nil, err
		}
		metas = append(metas, m)
	}
	return metas, nil
}

// writeMeta makes the directory dir with the meta file m, synced.
func (s *Store) writeMeta(dir string, m meta) error {
	b, err := json.MarshalIndent(m, "", "\t")
	if err != nil {
		return prefixed(err)
	}
	if err := os.Mkdir(dir, 0o777); err != nil {
		return prefixed(err)
	}
	f, err := s.open(filepath.Join(dir, metaName), true)
	if err == nil {
		err = errors.Join(write(f, append(b, '\n')), f.Close())
	}
	if err != nil {
		return fmt.Errorf("filelease: make the rows: %w", err)
	}
	return s.sync(dir)
}

// write writes b to the beginning of a new file and syncs it.
func write(f file, b []byte) error {
	if _, err := f.WriteAt(b, 0); err != nil {
		return err
	}
	return f.Sync()
}

// makeAndLock makes the slot of worker for the claim c, unless another process does, and locks
// it. Without wait it returns errBusy if another process is at it.
func (s *Store) makeAndLock(ctx context.Context, c leasestore.Claim, sp *space, worker int64, wait bool) (*slot, record, error) {
	if err := s.makeSlot(ctx, c, sp, worker, wait); err != nil {
		return nil, record{}, err
	}
	return s.lock(ctx, sp, worker, wait)
}

func (s *Store) makeSlot(ctx context.Context, c leasestore.Claim, sp *space, worker int64, wait bool) (err error) {
	path := sp.slotPath(worker)
	draft, err := s.lockDraft(ctx, path+making, wait)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil { // the draft may occupy what a full disk lacks
			_ = os.Remove(path + making)
		}
		_ = draft.Close()
	}()
	if made, err := exists(path); made || err != nil {
		return errors.Join(err, os.Remove(path+making))
	}
	r, missing, err := s.firstRecord(c, sp, worker)
	if err != nil {
		return err
	}
	b, err := r.encode()
	if err != nil {
		return err
	}
	err = write(draft, append(b, make([]byte, slotSize-recordSize)...)) // in full, so that a disk that fills up later does not matter
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = os.Rename(path+making, path) // settle makes the name durable
	}
	if err != nil {
		return fmt.Errorf("filelease: make the row of worker %d: %w", worker, err)
	}
	if missing {
		s.log.Warn("filelease: a slot file was missing: what it had reserved is forgotten",
			"file", path, "worker", worker, "no_id_before", r.row.Until.Time())
	}
	return nil
}

// firstRecord returns the record with which the slot of worker is made for the claim c. A slot
// that was never claimed begins as the space says. One that was claimed has gone missing, see
// [Store.Claim]; its epoch is then 0, which no lease has, so its previous holder finds the row
// lost.
func (s *Store) firstRecord(c leasestore.Claim, sp *space, worker int64) (r record, missing bool, err error) {
	r = record{
		identity: sp.meta.Identity, namespace: sp.meta.Namespace, datacenter: sp.meta.Datacenter,
		row: leasestore.Row{Worker: worker, Until: sp.meta.Until},
	}
	path := sp.slotPath(worker)
	missing, err = exists(claimedPath(path))
	switch {
	case err != nil || !missing:
	case s.fresh:
		r.row.Until = 0
	case c.Only == nil:
		err = fmt.Errorf("%w: %s", ErrMissing, path)
	default:
		r.row.Until = s.afterLoss(c)
	}
	return r, missing, err
}

// lockDraft opens and locks the file at path, which is not a slot yet. If the previous holder
// of the lock has renamed or removed the file, lockDraft locks a new one.
func (s *Store) lockDraft(ctx context.Context, path string, wait bool) (file, error) {
	for {
		f, err := s.open(path, true)
		if err != nil {
			return nil, prefixed(err)
		}
		if err := lock(ctx, f, wait); err != nil {
			_ = f.Close()
			return nil, prefixed(err)
		}
		if f.linked() == nil {
			return f, nil
		}
		_ = f.Close()
	}
}

// syncDir makes the names in a directory durable.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return prefixed(err)
	}
	return prefixed(errors.Join(f.Sync(), f.Close()))
}

// lockDir locks a directory.
func lockDir(ctx context.Context, dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, prefixed(err)
	}
	if err := lockWait(ctx, osFile{f}); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("filelease: lock %s: %w", dir, err)
	}
	return func() { _ = f.Close() }, nil
}
