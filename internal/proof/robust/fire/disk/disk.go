//go:build linux

package disk

import (
	"math/rand/v2"
	"sync"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// A Config says what a disk is like.
type Config struct {
	Seed uint64

	// LieOfFiles and LieOfDirs let an fsync return without having done anything.
	LieOfFiles, LieOfDirs bool

	// LoseAll lets a power cut lose all that was not synced.
	LoseAll bool
}

// Lost is what a power cut has done.
type Lost struct {
	Sectors, LostSectors       int // with changes that were not synced, and that have lost some
	Operations, LostOperations int // on directories
}

// A Disk is a disk with one file system. It is safe for concurrent use.
type Disk struct {
	dir   string
	mount *mount

	mu     sync.Mutex // guards what follows, and the tree
	on     *sync.Cond // off has changed
	off    bool
	steps  int           // that are left until the power fails; 0: it does not by itself
	failed chan struct{} // closed when it has failed by itself
	tree   *tree
	config Config
	random *rand.Rand
}

// New mounts an empty disk at a directory.
func New(dir string, c Config) (*Disk, error) {
	d := &Disk{dir: dir, tree: newTree(), config: c, random: rand.New(rand.NewPCG(c.Seed, 1))}
	d.on = sync.NewCond(&d.mu)
	return d, d.remount()
}

func (d *Disk) remount() error {
	m := &mount{RawFileSystem: fuse.NewDefaultRawFileSystem(), disk: d, listed: map[uint64][]fuse.DirEntry{}}
	server, err := fuse.NewServer(m, d.dir, &fuse.MountOptions{
		FsName: "powercut", Name: "powercut", DirectMountStrict: true, AllowOther: true,
		DisableXAttrs: true, DisableReadDirPlus: true,
		ExplicitDataCacheControl: true, // all changes come by this mount
	})
	if err != nil {
		return err
	}
	go server.Serve()
	d.mount = m
	return server.WaitMount()
}

// Off cuts the power: no request is answered any more. It waits for some writes and
// fsyncs to come before, but no longer than patience.
func (d *Disk) Off(steps int, patience time.Duration) {
	d.mu.Lock()
	if steps > 0 {
		failed := make(chan struct{})
		d.steps, d.failed = steps, failed
		d.mu.Unlock()
		select {
		case <-failed:
		case <-time.After(patience):
		}
		d.mu.Lock()
	}
	d.steps, d.off = 0, true
	d.mu.Unlock()
}

// Fail answers the requests that were under way with errors. All programs that used the
// disk must have got a SIGKILL: the kernel lets them die once they have their answers,
// and they do not see these.
func (d *Disk) Fail() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mount.dead = true
	d.on.Broadcast()
}

// On turns the power on, after Off and Fail. All programs that used the disk must be
// gone. It mounts what the cut has left.
func (d *Disk) On() (Lost, error) {
	if err := d.Unmount(); err != nil {
		return Lost{}, err
	}
	d.mu.Lock()
	lost := d.cut()
	d.off = false
	d.mu.Unlock()
	return lost, d.remount()
}

// Unmount ends the disk. Requests that come yet fail.
func (d *Disk) Unmount() error {
	d.Fail()
	var err error
	for range 100 { // the kernel takes its time to close the files of the dead
		// The server is not waited for. A program with its own view of what is mounted,
		// as ip netns exec makes it, may keep the mount for as long as it runs.
		if err = syscall.Unmount(d.dir, 0); err == nil {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return err
}

// cut requires mu.
func (d *Disk) cut() Lost {
	f := newFate(d.random)
	if d.config.LoseAll {
		f.keep, f.spoil = 0, 0
	}
	var l Lost
	files := d.tree.nodes
	l.Operations, l.LostOperations = d.tree.cut(f)
	for number := uint64(1); number <= d.tree.last; number++ { // in order, so that a seed says all
		if n := files[number]; n != nil && n.file != nil {
			changed, lost := n.file.cut(f)
			l.Sectors += changed
			l.LostSectors += lost
		}
	}
	return l
}

// step is called after each write and operation, and before each fsync. Requires mu.
func (d *Disk) step() {
	if d.steps == 0 {
		return
	}
	if d.steps--; d.steps == 0 {
		d.off = true
		close(d.failed)
	}
}

// delay returns how long an fsync takes. Requires mu.
func (d *Disk) delay() time.Duration {
	most := 6 * time.Millisecond
	if d.random.IntN(20) == 0 {
		most = 60 * time.Millisecond
	}
	return time.Duration(d.random.Int64N(int64(most)))
}
