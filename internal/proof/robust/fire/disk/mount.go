//go:build linux

package disk

import (
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// A mount is a disk from one moment at which the power came on to the next.
type mount struct {
	fuse.RawFileSystem // says of all else that there is no such call

	disk *Disk

	// Guarded by the mutex of the disk.
	dead   bool
	listed map[uint64][]fuse.DirEntry // by handle: what a directory had when it was opened
	handle uint64
}

// cached is for how long the kernel may remember names and attributes. It is told of no
// changes, since it has made them all itself.
const cached = time.Hour

// begin begins a request and locks the disk. While the power is off nothing begins.
func (m *mount) begin() fuse.Status {
	d := m.disk
	d.mu.Lock()
	for d.off && !m.dead {
		d.on.Wait()
	}
	if m.dead {
		d.mu.Unlock()
		return fuse.EIO
	}
	return fuse.OK
}

// end ends it. An answer does not leave while the power is off.
func (m *mount) end() {
	for m.disk.off && !m.dead {
		m.disk.on.Wait()
	}
	m.disk.mu.Unlock()
}

// on does a request for a node.
func (m *mount) on(number uint64, do func(n *node) fuse.Status) fuse.Status {
	if s := m.begin(); !s.Ok() {
		return s
	}
	defer m.end()
	n := m.disk.tree.nodes[number]
	if n == nil {
		return fuse.Status(syscall.ESTALE)
	}
	return do(n)
}

// in does a request for a directory.
func (m *mount) in(number uint64, do func(dir *node) fuse.Status) fuse.Status {
	return m.on(number, func(n *node) fuse.Status {
		if n.file != nil {
			return fuse.ENOTDIR
		}
		return do(n)
	})
}

func attributes(n *node, out *fuse.Attr) {
	*out = fuse.Attr{Ino: n.number, Nlink: 1, Mode: fuse.S_IFREG | 0o666, Blksize: 4096}
	if n.file == nil {
		out.Mode, out.Nlink = fuse.S_IFDIR|0o777, 2
		return
	}
	out.Size = uint64(len(n.file.now))
	out.Blocks = (out.Size + 511) / 512
}

func entry(n *node, out *fuse.EntryOut) fuse.Status {
	out.NodeId = n.number
	out.SetEntryTimeout(cached)
	out.SetAttrTimeout(cached)
	attributes(n, &out.Attr)
	return fuse.OK
}

func (m *mount) Lookup(_ <-chan struct{}, in *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	return m.in(in.NodeId, func(dir *node) fuse.Status {
		if n := dir.entries[name]; n != nil {
			return entry(n, out)
		}
		return fuse.ENOENT
	})
}

func (m *mount) GetAttr(_ <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	return m.on(in.NodeId, func(n *node) fuse.Status {
		out.SetTimeout(cached)
		attributes(n, &out.Attr)
		return fuse.OK
	})
}

func (m *mount) SetAttr(_ <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	return m.on(in.NodeId, func(n *node) fuse.Status {
		if size, ok := in.GetSize(); ok {
			if n.file == nil {
				return fuse.Status(syscall.EISDIR)
			}
			n.file.truncate(int64(size))
			m.disk.step()
		}
		out.SetTimeout(cached)
		attributes(n, &out.Attr)
		return fuse.OK
	})
}

// make makes a file or a directory. Requires that there is none.
func (m *mount) make(dir *node, name string, isDir bool, out *fuse.EntryOut) fuse.Status {
	n := m.disk.tree.node(isDir)
	m.disk.tree.do([]*node{n}, set{place{dir, name}, n})
	m.disk.step()
	return entry(n, out)
}

func (m *mount) Mkdir(_ <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	return m.in(in.NodeId, func(dir *node) fuse.Status {
		if dir.entries[name] != nil {
			return fuse.Status(syscall.EEXIST)
		}
		return m.make(dir, name, true, out)
	})
}

func (m *mount) Create(_ <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	return m.in(in.NodeId, func(dir *node) fuse.Status {
		out.OpenFlags = fuse.FOPEN_KEEP_CACHE
		n := dir.entries[name]
		switch {
		case n == nil:
			return m.make(dir, name, false, &out.EntryOut)
		case in.Flags&syscall.O_EXCL != 0:
			return fuse.Status(syscall.EEXIST)
		case n.file == nil:
			return fuse.Status(syscall.EISDIR)
		}
		return entry(n, &out.EntryOut)
	})
}

// remove requires that a name is there, and that it is free to go.
func (m *mount) remove(dir *node, name string) fuse.Status {
	m.disk.tree.do([]*node{dir.entries[name]}, set{place{dir, name}, nil})
	m.disk.step()
	return fuse.OK
}

func (m *mount) Unlink(_ <-chan struct{}, in *fuse.InHeader, name string) fuse.Status {
	return m.in(in.NodeId, func(dir *node) fuse.Status {
		switch n := dir.entries[name]; {
		case n == nil:
			return fuse.ENOENT
		case n.file == nil:
			return fuse.Status(syscall.EISDIR)
		}
		return m.remove(dir, name)
	})
}

func (m *mount) Rmdir(_ <-chan struct{}, in *fuse.InHeader, name string) fuse.Status {
	return m.in(in.NodeId, func(dir *node) fuse.Status {
		switch n := dir.entries[name]; {
		case n == nil:
			return fuse.ENOENT
		case n.file != nil:
			return fuse.ENOTDIR
		case len(n.entries) > 0:
			return fuse.Status(syscall.ENOTEMPTY)
		}
		return m.remove(dir, name)
	})
}

func (m *mount) Rename(_ <-chan struct{}, in *fuse.RenameIn, from, to string) fuse.Status {
	return m.in(in.NodeId, func(dir *node) fuse.Status {
		dest := m.disk.tree.nodes[in.Newdir]
		switch {
		case in.Flags != 0:
			return fuse.EINVAL
		case dest == nil || dest.file != nil || dir.entries[from] == nil:
			return fuse.ENOENT
		}
		n, old := dir.entries[from], dest.entries[to]
		moved := []*node{n}
		switch {
		case old == n:
			return fuse.OK
		case old == nil:
		case (old.file == nil) != (n.file == nil), len(old.entries) > 0:
			return fuse.Status(syscall.ENOTEMPTY)
		default:
			moved = append(moved, old)
		}
		m.disk.tree.do(moved, set{place{dir, from}, nil}, set{place{dest, to}, n})
		m.disk.step()
		return fuse.OK
	})
}

func (m *mount) Open(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	return m.on(in.NodeId, func(*node) fuse.Status {
		out.OpenFlags = fuse.FOPEN_KEEP_CACHE
		return fuse.OK
	})
}

func (m *mount) Read(_ <-chan struct{}, in *fuse.ReadIn, buf []byte) (fuse.ReadResult, fuse.Status) {
	var got []byte
	s := m.on(in.NodeId, func(n *node) fuse.Status {
		if n.file == nil {
			return fuse.Status(syscall.EISDIR)
		}
		if at := int64(in.Offset); at < int64(len(n.file.now)) {
			got = buf[:copy(buf, n.file.now[at:])]
		}
		return fuse.OK
	})
	return fuse.ReadResultData(got), s
}

func (m *mount) Write(_ <-chan struct{}, in *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	return uint32(len(data)), m.on(in.NodeId, func(n *node) fuse.Status {
		if n.file == nil {
			return fuse.Status(syscall.EISDIR)
		}
		n.file.write(data, int64(in.Offset))
		m.disk.step()
		return fuse.OK
	})
}

// Flush, at each close of a file, writes nothing to the disk.
func (m *mount) Flush(<-chan struct{}, *fuse.FlushIn) fuse.Status { return fuse.OK }

func (m *mount) Fsync(_ <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	var changes int
	return m.sync(in.NodeId, func(n *node) { changes = n.file.changes() }, func(n *node) {
		if !m.disk.config.LieOfFiles {
			n.file.sync(changes)
		}
	})
}

func (m *mount) FsyncDir(_ <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	var operations int
	return m.sync(in.NodeId, func(*node) { operations = m.disk.tree.done }, func(dir *node) {
		if !m.disk.config.LieOfDirs {
			m.disk.tree.sync(dir, operations)
		}
	})
}

// sync calls first when an fsync begins, and then when it ends.
func (m *mount) sync(number uint64, first, then func(*node)) fuse.Status {
	var takes time.Duration
	s := m.on(number, func(n *node) fuse.Status {
		first(n)
		m.disk.step()
		takes = m.disk.delay()
		return fuse.OK
	})
	if !s.Ok() {
		return s
	}
	time.Sleep(takes)
	return m.on(number, func(n *node) fuse.Status {
		then(n)
		return fuse.OK
	})
}

func (m *mount) OpenDir(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	return m.in(in.NodeId, func(dir *node) fuse.Status {
		var all []fuse.DirEntry
		for name, n := range dir.entries {
			var a fuse.Attr
			attributes(n, &a)
			all = append(all, fuse.DirEntry{Name: name, Ino: n.number, Mode: a.Mode})
		}
		slices.SortFunc(all, func(a, b fuse.DirEntry) int { return strings.Compare(a.Name, b.Name) })
		for i := range all {
			all[i].Off = uint64(i + 1)
		}
		m.handle++
		out.Fh = m.handle
		m.listed[out.Fh] = all
		return fuse.OK
	})
}

func (m *mount) ReadDir(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return m.in(in.NodeId, func(*node) fuse.Status {
		all := m.listed[in.Fh]
		for _, e := range all[min(int(in.Offset), len(all)):] {
			if !out.AddDirEntry(e) {
				break
			}
		}
		return fuse.OK
	})
}

func (m *mount) ReleaseDir(in *fuse.ReleaseIn) {
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	delete(m.listed, in.Fh)
}

func (m *mount) StatFs(_ <-chan struct{}, _ *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	*out = fuse.StatfsOut{Blocks: 1 << 20, Bfree: 1 << 20, Bavail: 1 << 20, Files: 1 << 20, Ffree: 1 << 20, Bsize: 4096, Frsize: 4096, NameLen: 255}
	return fuse.OK
}
