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
	"sync"

	"github.com/snowkey/snowkey/core/lease"
)

// On the disk:
//
//	dir/
//	    made-ns-orders-dc-0  this space was made once; see Store.makeSpace
//	    ns-orders/       one per namespace; locked while anything is made in it
//	        dc-0/        one per datacenter: a space
//	            meta     what the space is; its presence says that all slots were made
//	            0 … 1023 the slots
//	            7.held   the holder's lock of slot 7, made at its first claim
//	            7.poisoned  a write to slot 7 has failed
//
// A space is made in a directory of another name, synced, and renamed, so that it
// appears whole or not at all.

const (
	metaName  = "meta"
	making    = ".making" // the end of the name of what is not complete
	schema    = 1
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

// A space is a space that has been made.
type space struct {
	dir  string
	meta meta
}

func (sp *space) slotPath(worker int64) string { return slotPath(sp.dir, worker) }

func slotPath(dir string, worker int64) string {
	return filepath.Join(dir, strconv.FormatInt(worker, 10))
}

// namespaceDir returns the name of the directory of a namespace. Names that differ
// in case only would be one name on some disks, so capitals get a mark; the prefix
// makes ".", ".." and device names harmless, the suffix a dot at the end.
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
func (s *Store) spaceDir(sp lease.Space) string {
	return filepath.Join(s.dir, namespaceDir(sp.Namespace), datacenterDir(sp.Datacenter))
}

// madePath returns the path of the file that says that a space was made. A number
// follows the last "-dc-", so that no two spaces share a name.
func (s *Store) madePath(sp lease.Space) string {
	return filepath.Join(s.dir, "made-"+namespaceDir(sp.Namespace)+"-"+datacenterDir(sp.Datacenter))
}

func datacenterDir(datacenter int64) string { return "dc-" + strconv.FormatInt(datacenter, 10) }

// space returns the space s, or an error that matches fs.ErrNotExist if it has
// not been made.
func (s *Store) space(sp lease.Space) (*space, error) {
	// A file system that was mounted or unmounted at the path shows other rows, or
	// none: those that this process and others go by are elsewhere.
	if info, err := os.Stat(s.dir); err != nil || !os.SameFile(info, s.info) {
		return nil, fmt.Errorf("filelease: the directory %s is not the one that was there when the store was opened", s.dir)
	}
	dir := s.spaceDir(sp)
	m, err := readMeta(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, dirErr := os.Lstat(dir); !errors.Is(dirErr, fs.ErrNotExist) {
			return nil, lease.Permanent(fmt.Errorf("%w: %s is there without its file %q: restore it", ErrDamaged, dir, metaName))
		}
		return nil, fmt.Errorf("filelease: no rows have been made: %w", err)
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
		return meta{}, fmt.Errorf("filelease: %w", err)
	}
	var version struct{ Schema int }
	if err := json.Unmarshal(b, &version); err == nil && version.Schema != schema {
		return meta{}, lease.Permanent(fmt.Errorf("filelease: %s has schema version %d: want %d", path, version.Schema, schema))
	}
	var m meta
	if err := json.Unmarshal(b, &m); err != nil {
		return meta{}, fmt.Errorf("%w: %s: %w", ErrDamaged, path, err)
	}
	if m.Workers < 1 || m.Workers > maxWorker || m.Identity == (identity{}) {
		return meta{}, fmt.Errorf("%w: %s: %d workers, directory %x; want 1..%d, not 0", ErrDamaged, path, m.Workers, m.Identity, maxWorker)
	}
	return m, nil
}

// spaceOf returns the space of a claim, and makes it if this is the first.
func (s *Store) spaceOf(ctx context.Context, c lease.Claim) (*space, error) {
	want := c.Space
	sp, err := s.space(want)
	if errors.Is(err, fs.ErrNotExist) {
		sp, err = s.makeSpace(ctx, c)
	}
	if err != nil {
		return nil, err
	}
	if sp.meta.Layout != want.Layout {
		return nil, &lease.LayoutError{Namespace: want.Namespace, Stored: sp.meta.Layout, Own: want.Layout}
	}
	if sp.meta.Workers != want.Workers {
		return nil, &lease.ValueError{Package: "filelease", Name: "Space.Workers", Value: strconv.FormatInt(want.Workers, 10),
			Want: strconv.FormatInt(sp.meta.Workers, 10) + ", as in the first claim"}
	}
	return sp, nil
}

// makeSpace makes the space of c, unless another process has done so meanwhile.
//
// A namespace or a datacenter that is new begins at once; one that is gone must not.
// So that the two can be told apart, a file in the directory of the Store, outside
// of the space, says that the space was made. It is on the disk before the space
// appears, let alone before anything is reserved there. It says so wrongly after a
// crash between the two; then the rows are later than they need be, once.
func (s *Store) makeSpace(ctx context.Context, c lease.Claim) (*space, error) {
	want := c.Space
	parent := filepath.Join(s.dir, namespaceDir(want.Namespace))
	if err := os.Mkdir(parent, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("filelease: %w", err)
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

	made := s.madePath(want)
	var until lease.Millis
	switch _, err := os.Lstat(made); {
	case err == nil && !s.fresh:
		until = s.afterLoss(c)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("filelease: %w", err)
	}

	m := meta{Schema: schema, Namespace: want.Namespace, Datacenter: want.Datacenter, Workers: want.Workers, Layout: want.Layout}
	if _, err := rand.Read(m.Identity[:]); err != nil {
		return nil, fmt.Errorf("filelease: %w", err)
	}
	dir := filepath.Join(parent, datacenterDir(want.Datacenter))
	draft := &space{dir: dir + making, meta: m}
	if err := os.RemoveAll(draft.dir); err != nil { // of a maker that was killed; nobody has ever claimed there
		return nil, fmt.Errorf("filelease: %w", err)
	}
	if err := draft.fill(ctx, until); err != nil {
		_ = os.RemoveAll(draft.dir) // what a full disk lacks may be all in there
		return nil, err
	}
	if err := s.sync(draft.dir); err != nil {
		return nil, err
	}
	// The longest part is over: a claim that was given up meanwhile has not begun to
	// make anything that counts.
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("filelease: make the rows: %w", err)
	}
	note := fmt.Sprintf("The rows of namespace %q, datacenter %d, were made in %s.\n", want.Namespace, want.Datacenter, dir)
	if err := writeSynced(made, []byte(note)); err != nil {
		return nil, err
	}
	if err := s.sync(s.dir); err != nil { // parent is in there, too
		return nil, err
	}
	if err := os.Rename(draft.dir, dir); err != nil {
		return nil, fmt.Errorf("filelease: %w", err)
	}
	if err := s.sync(parent); err != nil {
		return nil, err
	}
	if until > 0 {
		s.log.Warn("filelease: the files of a space were missing: what they had reserved is forgotten",
			"dir", dir, "made", made, "no_id_before", until.Time())
	}
	return &space{dir: dir, meta: m}, nil
}

// afterLoss returns a limit that is later than any that may have been forgotten:
// see [Store.Claim] for the conditions.
func (s *Store) afterLoss(c lease.Claim) lease.Millis {
	window := c.Window
	if c.Guard > 0 {
		window = c.Longest
	}
	return s.clock() + window + max(c.Skew, c.Guard)
}

// settle makes durable that the slots of sp are where they are. Whoever has renamed
// the space, or a slot that was made again, into its place may have been killed, or
// may be waiting, before it has synced that; and what is acknowledged must not be in
// a file that a power failure takes away.
//
// It is called before the first write to a slot. So a slot that has been written to
// is known to stay, and no later operation needs to look. That also holds for a slot
// that was made again in a space known for long, which a note of the spaces that
// this Store has settled would miss.
func (s *Store) settle(sp *space) error {
	for _, dir := range []string{sp.dir, filepath.Dir(sp.dir), s.dir} {
		if err := s.sync(dir); err != nil {
			return err
		}
	}
	return nil
}

// checkLayouts returns an error if a space in the namespace directory parent has
// another layout than want. Its lock is held, so that no other is being made.
func checkLayouts(parent string, want lease.Space) error {
	others, err := os.ReadDir(parent)
	if err != nil {
		return fmt.Errorf("filelease: %w", err)
	}
	for _, other := range others {
		if !strings.HasPrefix(other.Name(), "dc-") || strings.HasSuffix(other.Name(), making) {
			continue
		}
		m, err := readMeta(filepath.Join(parent, other.Name()))
		if err != nil {
			return err
		}
		if m.Layout != want.Layout {
			return &lease.LayoutError{Namespace: want.Namespace, Stored: m.Layout, Own: want.Layout}
		}
	}
	return nil
}

// fill makes the directory of sp with its slots and its meta file, all synced but
// for the names in it. The rows have the limit until.
func (sp *space) fill(ctx context.Context, until lease.Millis) error {
	if err := os.Mkdir(sp.dir, 0o777); err != nil {
		return fmt.Errorf("filelease: %w", err)
	}
	const makers = 16 // each waits for the disk nearly all the time, and syncs share journal commits
	var wg sync.WaitGroup
	errs := make([]error, makers)
	for i := range int64(makers) {
		wg.Go(func() {
			for worker := i; worker < sp.meta.Workers && errs[i] == nil; worker += makers {
				if errs[i] = ctx.Err(); errs[i] == nil {
					errs[i] = sp.writeSlot(sp.slotPath(worker), lease.Row{Worker: worker, Until: until})
				}
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil { // one will do: on a full disk they are all alike
			return fmt.Errorf("filelease: make the rows: %w", err)
		}
	}
	b, err := json.MarshalIndent(sp.meta, "", "\t")
	if err != nil {
		return fmt.Errorf("filelease: %w", err)
	}
	return writeSynced(filepath.Join(sp.dir, metaName), append(b, '\n'))
}

// writeSlot writes a slot file with one record, that of row.
func (sp *space) writeSlot(path string, row lease.Row) error {
	r := record{identity: sp.meta.Identity, namespace: sp.meta.Namespace, datacenter: sp.meta.Datacenter, row: row}
	b, err := r.encode()
	if err != nil {
		return err
	}
	return writeSynced(path, append(b, make([]byte, slotSize-recordSize)...)) // all of it, so that a full disk is no matter later
}

// remake makes the slot of worker anew, which has gone missing, with the limit
// until. Its epoch is 0, which no lease has: whoever held the row has lost it.
func (s *Store) remake(ctx context.Context, sp *space, worker int64, until lease.Millis) error {
	unlock, err := lockDir(ctx, filepath.Dir(sp.dir))
	if err != nil {
		return err
	}
	defer unlock()
	path := sp.slotPath(worker)
	switch _, err := os.Lstat(path); {
	case err == nil:
		return nil // another has made it meanwhile; whether that is durable is for settle
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("filelease: %w", err)
	}
	if err := sp.writeSlot(path+making, lease.Row{Worker: worker, Until: until}); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("filelease: make the row of worker %d: %w", worker, err)
	}
	if err := os.Rename(path+making, path); err != nil {
		return fmt.Errorf("filelease: %w", err)
	}
	if err := s.sync(sp.dir); err != nil {
		return err
	}
	s.log.Warn("filelease: a slot file was missing: what it had reserved is forgotten",
		"file", path, "worker", worker, "no_id_before", until.Time())
	return nil
}

// writeSynced writes a file.
func writeSynced(path string, b []byte) error {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("filelease: %w", err)
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("filelease: %w", err)
	}
	return nil
}

// syncDir makes the names in a directory durable.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("filelease: %w", err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("filelease: sync %s: %w", dir, err)
	}
	return nil
}

// lockDir locks a directory.
func lockDir(ctx context.Context, dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("filelease: %w", err)
	}
	if err := lockWait(ctx, osFile{f}); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("filelease: lock %s: %w", dir, err)
	}
	return func() { _ = f.Close() }, nil
}
