package alternatives

import "testing"

// A leafNode is a process of Leaf's Snowflake mode, as far as its starts are concerned. All
// times are milliseconds of its clock.
type leafNode struct {
	keeper *leafKeeper
	file   *int64 // the worker number that the last process left; nil: no file
	safe   bool   // the file has a time too, and it is checked

	worker int64
	last   int64
	issued map[[2]int64]bool // worker and millisecond; shared by all processes
}

// A leafKeeper is what ZooKeeper knows: the time that the worker uploaded.
type leafKeeper struct {
	up       bool
	uploaded int64
}

// start is refused if the clock is behind the time in ZooKeeper. Without ZooKeeper it
// reads the file, which has the worker number alone.
func (n *leafNode) start(now int64) bool {
	switch {
	case n.keeper.up && now < n.keeper.uploaded:
		return false
	case !n.keeper.up && (n.file == nil || n.safe):
		return false
	}
	n.last = 0
	return true
}

// issue reports whether the millisecond was used before by this worker number.
func (n *leafNode) issue(now int64) (twice bool) {
	k := [2]int64{n.worker, now}
	twice, n.issued[k] = n.issued[k], true
	return twice
}

func newLeafNode(safe bool) *leafNode {
	number := int64(3)
	return &leafNode{keeper: &leafKeeper{up: true}, file: &number, safe: safe, worker: number, issued: map[[2]int64]bool{}}
}

// ZooKeeper is away, and the clock of the machine was set back by an hour.
func TestTheFileThatReplacesZooKeeperHasNoTime(t *testing.T) {
	const hour = 3_600_000
	n := newLeafNode(false)
	if !n.start(5 * hour) {
		t.Fatal("the first start is refused")
	}
	n.issue(5 * hour)
	n.keeper.uploaded = 5 * hour

	if n.start(4 * hour) {
		t.Error("with ZooKeeper a start an hour behind is allowed; want it refused")
	}
	n.keeper.up = false
	if !n.start(4 * hour) {
		t.Fatal("without ZooKeeper the start is refused; want it allowed by the file")
	}
	if n.issue(4 * hour); !n.issue(5 * hour) { // an hour later
		t.Error("no millisecond is used twice; want one")
	}

	n.safe = true
	if n.start(4 * hour) {
		t.Error("a start without knowledge of the time is allowed; want it refused")
	}
}

// The time is uploaded every 3 seconds. What was issued since is not known after a crash.
func TestIDsAfterTheLastUploadAreUnprotected(t *testing.T) {
	n := newLeafNode(false)
	n.start(9_000)
	n.keeper.uploaded = 9_000
	n.issue(11_000) // and a crash, before the upload of 12 s
	if !n.start(10_000) {
		t.Fatal("a start at 10 s is refused; want it allowed: 9 s was uploaded")
	}
	if !n.issue(11_000) {
		t.Error("the millisecond is new; want it used twice")
	}

	// A time that is written before it is used, as a lease has it.
	n.keeper.uploaded = 12_000
	if n.start(10_000) {
		t.Error("a start below the reserved time is allowed; want it refused")
	}
}

// Random starts of the sequence even out id % n. They are taken for a repair of repeats
// after a restart too, and are none.
func TestARandomStartOfTheSequenceMeetsTheOldOne(t *testing.T) {
	issued := map[[2]int64]bool{}
	run := func(ms, start, count int64) (twice int) {
		for i := range count {
			k := [2]int64{ms, start + i}
			if issued[k] {
				twice++
			}
			issued[k] = true
		}
		return twice
	}
	run(5, 40, 50)                               // 40 to 89, then a crash
	if twice := run(5, 63, 50); twice != 90-63 { // in the same millisecond, or after a step back
		t.Errorf("%d numbers repeat; want %d", twice, 90-63)
	}
	if twice := run(6, 63, 50); twice != 0 {
		t.Errorf("above the old time %d numbers repeat; want none", twice)
	}
}

// Two processes that start for the first time at once both keep worker number 0: the number
// of the node that ZooKeeper made is not read.
func TestTwoFirstStartsBothHaveWorkerZero(t *testing.T) {
	nodes := 0
	first := func(reads bool) (worker int) {
		sequential := nodes // ZooKeeper numbers them
		nodes++
		if reads {
			worker = sequential
		}
		return worker
	}
	if a, b := first(false), first(false); a != b {
		t.Errorf("workers %d and %d; want one number twice", a, b)
	}
	if a, b := first(true), first(true); a == b {
		t.Errorf("both workers are %d; want two", a)
	}
}
