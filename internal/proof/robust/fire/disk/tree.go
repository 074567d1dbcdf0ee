package disk

import (
	"maps"
	"slices"
)

// A node is a file, or a directory.
type node struct {
	number  uint64
	file    *content         // nil: a directory
	entries map[string]*node // what programs see
	durable map[string]*node // what was synced
}

// A place is a name in a directory.
type place struct {
	dir  *node
	name string
}

// A set puts a node at a place. Nil: nothing is there any more.
type set struct {
	place
	to *node
}

// An operation changes directories as a whole, or not at all.
type operation struct {
	number int
	sets   []set
	moved  []*node // that have another place afterwards, or none
}

// A tree is all directories and files.
type tree struct {
	root    *node
	nodes   map[uint64]*node
	last    uint64 // number of a node
	pending []operation
	done    int // operations so far
}

func newTree() *tree {
	t := &tree{nodes: map[uint64]*node{}}
	t.root = t.node(true)
	return t
}

// node makes a node that is nowhere yet. The root is the first.
func (t *tree) node(dir bool) *node {
	t.last++
	n := &node{number: t.last}
	if dir {
		n.entries, n.durable = map[string]*node{}, map[string]*node{}
	} else {
		n.file = &content{}
	}
	t.nodes[n.number] = n
	return n
}

func apply(entries map[string]*node, name string, to *node) {
	if to == nil {
		delete(entries, name)
	} else {
		entries[name] = to
	}
}

// do changes directories in one operation.
func (t *tree) do(moved []*node, sets ...set) {
	for _, s := range sets {
		apply(s.dir.entries, s.name, s.to)
	}
	t.pending = append(t.pending, operation{t.done, sets, moved})
	t.done++
}

// sync makes all that was done in a directory durable, of the first operations.
func (t *tree) sync(dir *node, operations int) {
	for i := 0; i < len(t.pending); {
		op := t.pending[i]
		if op.number >= operations || !slices.ContainsFunc(op.sets, func(s set) bool { return s.dir == dir }) {
			i++
			continue
		}
		for _, s := range op.sets {
			apply(s.dir.durable, s.name, s.to)
			for j := range i { // what was before it at this place in another directory
				t.pending[j].sets = slices.DeleteFunc(t.pending[j].sets, func(old set) bool { return old.place == s.place })
			}
		}
		t.pending = slices.Delete(t.pending, i, i+1)
	}
}

// cut leaves what a power cut does to the directories. It returns how many operations
// were not synced, and how many are lost.
func (t *tree) cut(f *fate) (changed, lost int) {
	type lostOf struct {
		places map[place]bool
		nodes  map[*node]bool
	}
	gone := lostOf{map[place]bool{}, map[*node]bool{}}
	prefix := f.prefix(len(t.pending))
	for i, op := range t.pending {
		kept := i < prefix
		if !f.ordered {
			kept = f.kept()
		}
		kept = kept &&
			!slices.ContainsFunc(op.sets, func(s set) bool { return gone.places[s.place] }) &&
			!slices.ContainsFunc(op.moved, func(n *node) bool { return gone.nodes[n] })
		for _, s := range op.sets {
			if kept {
				apply(s.dir.durable, s.name, s.to)
			} else {
				gone.places[s.place] = true
			}
		}
		if !kept {
			lost++
			for _, n := range op.moved {
				gone.nodes[n] = true
			}
		}
	}
	changed = len(t.pending)
	t.pending = nil
	t.nodes = map[uint64]*node{}
	t.keep(t.root)
	return changed, lost
}

// keep keeps a node and all below it as they are on the disk.
func (t *tree) keep(n *node) {
	t.nodes[n.number] = n
	n.entries = maps.Clone(n.durable)
	for _, below := range n.entries {
		t.keep(below)
	}
}
