package disk

import "testing"

func newFile(t *tree, dir *node, name string) *node {
	n := t.node(false)
	t.do([]*node{n}, set{place{dir, name}, n})
	return n
}

func rename(t *tree, from place, to place) {
	n := from.dir.entries[from.name]
	t.do([]*node{n}, set{from, nil}, set{to, n})
}

func TestARenameIsDoneOrNot(t *testing.T) {
	old, renamed := 0, 0
	cuts(t, func(f *fate) {
		tree := newTree()
		n := newFile(tree, tree.root, "a")
		tree.sync(tree.root, tree.done)
		rename(tree, place{tree.root, "a"}, place{tree.root, "b"})
		tree.cut(f)
		a, b := tree.root.entries["a"], tree.root.entries["b"]
		switch {
		case a == n && b == nil:
			old++
		case a == nil && b == n:
			renamed++
		default:
			t.Fatalf("cut(%+v) leaves %v; want the file under one name", f, tree.root.entries)
		}
	})
	if old == 0 || renamed == 0 {
		t.Errorf("of a thousand renames %d were lost and %d kept; want some of both", old, renamed)
	}
}

func TestNamesOfADirectoryThatWasSyncedSurvive(t *testing.T) {
	cuts(t, func(f *fate) {
		tree := newTree()
		dir := tree.node(true)
		tree.do([]*node{dir}, set{place{tree.root, "dir"}, dir})
		n := newFile(tree, tree.root, "a")
		rename(tree, place{tree.root, "a"}, place{dir, "b"})
		tree.sync(dir, tree.done)
		tree.sync(tree.root, tree.done)
		tree.cut(f)
		if tree.root.entries["dir"] != dir || dir.entries["b"] != n || tree.root.entries["a"] != nil {
			t.Fatalf("cut(%+v) leaves %v and %v; want dir/b", f, tree.root.entries, dir.entries)
		}
	})
}

// The rename is durable by the directory that it leads to. The creation, in the other,
// was not synced, and must not come back.
func TestWhatIsDurableIsNotUndoneByWhatCameBefore(t *testing.T) {
	cuts(t, func(f *fate) {
		tree := newTree()
		dir := tree.node(true)
		tree.do([]*node{dir}, set{place{tree.root, "dir"}, dir})
		tree.sync(tree.root, tree.done)
		newFile(tree, tree.root, "a")
		rename(tree, place{tree.root, "a"}, place{dir, "b"})
		tree.sync(dir, tree.done)
		tree.cut(f)
		if tree.root.entries["a"] != nil || dir.entries["b"] == nil {
			t.Fatalf("cut(%+v) leaves %v and %v; want dir/b alone", f, tree.root.entries, dir.entries)
		}
	})
}

func TestOperationsOnDirectoriesAreLostInAnyOrderButThatOfOneName(t *testing.T) {
	later := 0
	cuts(t, func(f *fate) {
		tree := newTree()
		newFile(tree, tree.root, "a")
		tree.do([]*node{tree.root.entries["a"]}, set{place{tree.root, "a"}, nil})
		n := newFile(tree, tree.root, "a")
		newFile(tree, tree.root, "b")
		tree.cut(f)
		a, b := tree.root.entries["a"], tree.root.entries["b"]
		if a == nil && b != nil {
			later++
		}
		if a == n && f.keep == 0 {
			t.Fatalf("cut(%+v) keeps what is to be lost", f)
		}
		for number, n := range tree.nodes {
			if n != tree.root && n != a && n != b {
				t.Fatalf("cut(%+v) leaves file %d, which has no name", f, number)
			}
		}
	})
	if later == 0 {
		t.Error("no cut has lost a creation and kept a later one")
	}
}
