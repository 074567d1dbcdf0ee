package disk

import "bytes"

// A content is what is in a file.
type content struct {
	now     []byte   // what programs read
	durable []byte   // what was synced
	pending []change // since then
	synced  int      // how many changes were before those
}

// A change is a write, or a truncation.
type change struct {
	at       int64
	data     []byte
	truncate bool  // to at
	size     int64 // of the file afterwards
}

// resized returns b with a length, and zeros where it was shorter.
func resized(b []byte, size int64) []byte {
	if size <= int64(len(b)) {
		clear(b[size:]) // it may grow again within its capacity
		return b[:size]
	}
	return append(b, make([]byte, size-int64(len(b)))...)
}

// applied returns b after the change.
func (c change) applied(b []byte) []byte {
	if c.truncate {
		return resized(b, c.at)
	}
	if end := c.at + int64(len(c.data)); end > int64(len(b)) {
		b = resized(b, end)
	}
	copy(b[c.at:], c.data)
	return b
}

func (c *content) do(ch change) {
	c.now = ch.applied(c.now)
	ch.size = int64(len(c.now))
	c.pending = append(c.pending, ch)
}

func (c *content) write(b []byte, at int64) { c.do(change{at: at, data: bytes.Clone(b)}) }

func (c *content) truncate(size int64) {
	if size != int64(len(c.now)) {
		c.do(change{at: size, truncate: true})
	}
}

// changes returns how many there were so far.
func (c *content) changes() int { return c.synced + len(c.pending) }

// sync makes the first changes durable, as many as there were at some moment.
func (c *content) sync(changes int) {
	for len(c.pending) > 0 && c.synced < changes {
		c.durable = c.pending[0].applied(c.durable)
		c.pending = c.pending[1:]
		c.synced++
	}
}

// cut leaves what a power cut does. It returns how many sectors had changes, and how
// many have lost some of them.
func (c *content) cut(f *fate) (changed, lost int) {
	if len(c.pending) == 0 {
		return 0, 0
	}
	resizes := f.prefix(len(c.pending)) // the length is as after so many changes
	size, most := int64(len(c.durable)), int64(len(c.durable))
	if resizes > 0 {
		size = c.pending[resizes-1].size
	}
	for _, ch := range c.pending {
		most = max(most, ch.size)
	}
	after := make([]byte, 0, most)
	for from := int64(0); from < most; from += int64(f.sector) {
		s := c.sector(from, f, resizes)
		after = append(after, s.left...)
		if s.changed {
			changed++
		}
		if s.lost {
			lost++
		}
	}
	*c = content{durable: resized(after, size)}
	c.now = bytes.Clone(c.durable)
	return changed, lost
}

// A sector is what a power cut leaves of one.
type sector struct {
	left          []byte
	changed, lost bool
}

// sector returns the sector that begins at from. Of the truncations, those among the
// first changes, as many as resizes, are on the disk.
func (c *content) sector(from int64, f *fate, resizes int) sector {
	end := from + int64(f.sector)
	first := make([]byte, f.sector)
	if from < int64(len(c.durable)) {
		copy(first, c.durable[from:])
	}
	versions := [][]byte{first}
	least, most := 0, -1 // of the versions that are possible
	written := make([]bool, f.sector)
	before := int64(len(c.durable))
	for i, ch := range c.pending {
		begin, stop := max(ch.at, from), min(ch.at+int64(len(ch.data)), end)
		if ch.truncate {
			stop = min(before, end) // of what there was to free
		}
		before = ch.size
		if begin >= stop {
			continue
		}
		next := bytes.Clone(versions[len(versions)-1])
		if ch.truncate {
			// The sector is given back to the file system. What is written later goes
			// elsewhere, and is of no use without the truncation.
			clear(next[begin-from:])
			if i < resizes {
				least = len(versions)
			} else if most < 0 {
				most = len(versions) - 1
			}
		}
		for j := begin; j < stop && !ch.truncate; j++ {
			next[j-from], written[j-from] = ch.data[j-ch.at], true
		}
		versions = append(versions, next)
	}
	if len(versions) == 1 {
		return sector{left: first}
	}
	last := len(versions) - 1
	if most < 0 {
		most = last
	}
	k := least + f.prefix(most-least)
	s := sector{left: bytes.Clone(versions[k]), changed: true, lost: k < last}
	if f.spoilt() {
		s.lost = true
		garbage := make([]byte, f.sector)
		f.garbage(garbage)
		for i := range garbage {
			if written[i] { // SQLite takes for granted that no more is spoilt
				s.left[i] = garbage[i]
			}
		}
	}
	return s
}
