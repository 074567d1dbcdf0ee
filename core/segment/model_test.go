//go:build !race

// The search is one goroutine. The race detector would find nothing in it, and is slow.

package segment_test

import (
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/snowkey/snowkey/internal/proof/robust/worlds"
)

// The model has every interleaving of the steps of an Allocator that matter for
// uniqueness. Each step is one atomic access of chain.go and allocator.go, or one write
// to the row:
//
//	callers: load cur; add to taken; compare, and return numbers; go along next
//	fetcher: send a Take; append the range, if the reply arrives
//	Close:   seal one link; the next; wait for the fetcher; send GiveBack
//	row:     a Take or GiveBack is done, once or twice, now or late, or is lost
//	others:  an Allocator elsewhere takes a range and returns all of it; a client that
//	         knows no version, as a server of Leaf, does so too
//
// A mutant leaves out or moves one step, and the search has to find a number that is
// returned twice.
type model struct {
	row  modelRow
	link [modelLinks]modelLink
	// links counts those in the chain, and cur is where callers begin.
	links, cur int8
	caller     [2]modelCaller
	fetch      modelFetch
	top        int8 // the greatest k that the fetcher has seen
	closer     int8 // -1: never; 0: not yet; 1: sealing; 2: waits for the fetcher; 3: done
	sealing    int8 // the next link to seal
	ended      bool // there will be no other link
	back       modelBack
	late       int8 // Takes that arrive without anybody waiting for them
	others     int8 // Takes of another Allocator that are to come
	leaf       int8 // Takes of a client without version that are to come
	restores   int8 // times that the row may go back
	returned   uint64
}

const (
	modelLinks = 4 // the first is empty
	modelCount = 2 // numbers per range
)

type (
	modelRow  struct{ next, version int8 }
	modelLink struct {
		first, size, version int8
		taken, used          int8
		sealed               bool
	}
	modelCaller struct {
		at    int8 // 0: begins; 1: has loaded link; 2: has added and has pos; 3: waits; 4: done
		link  int8
		pos   int8
		want  int8 // numbers of the present call
		calls int8 // to come
	}
	modelFetch struct {
		at             int8 // 0: idle; 1: sent; 2: the range has arrived
		left           int8 // fetches to come
		first, version int8
	}
	modelBack struct{ first, end, version, copies int8 }
)

// give returns false if a number is returned a second time.
func (m *model) give(first, count int8) bool {
	for k := first; k < first+count; k++ {
		if m.returned>>k&1 != 0 {
			return false
		}
		m.returned |= 1 << k
	}
	return true
}

func (m *model) takeRow() (first, version int8) {
	first = m.row.next
	m.row.next += modelCount
	m.row.version++
	return first, m.row.version
}

// A step is what leads from one state to the next. It is written out only for a path.
type step struct {
	caller int8 // 0: not a caller
	what   string
	a, b   int8 // what it mentions
}

func (s step) String() string {
	args := []any{s.a, s.b}[:strings.Count(s.what, "%d")]
	text := fmt.Sprintf(s.what, args...)
	if s.caller > 0 {
		text = fmt.Sprintf("caller %d %s", s.caller, text)
	}
	return text
}

// The searches fill maps, and frequent garbage collection would take a third of their time.
func init() { debug.SetGCPercent(800) }

// search goes through all states from start on. It returns how many there are, and how a
// number is returned twice; nil: it is not.
func search(start model, mut mutant) (states int, path []step) {
	type origin struct { // the state before, and what led here
		from int
		step step
	}
	list, origins := worlds.New(start), []origin{{}}
	for at := 0; at < list.Len() && path == nil; at++ {
		list.At(at).steps(mut, func(to model, s step, ok bool) {
			if !ok && path == nil {
				path = []step{s}
				for i := at; i > 0; i = origins[i].from {
					path = append(path, origins[i].step)
				}
				slices.Reverse(path)
			}
			if _, added := list.Add(to); added {
				origins = append(origins, origin{at, s})
			}
		})
	}
	return list.Len(), path
}

// steps calls do with each state that one step leads to.
func (m model) steps(mut mutant, do func(model, step, bool)) {
	for i := range m.caller {
		m.call(mut, i, do)
	}
	m.fetching(mut, do)
	m.closing(mut, do)

	if m.back.copies > 0 { // a GiveBack arrives, now or late, once or twice
		n := m
		n.back.copies--
		sameMax, sameVersion := n.row.next == n.back.end, n.row.version == n.back.version
		if (sameMax || mut == backByVersion) && (sameVersion || mut == backByMax) {
			n.row.next = n.back.first
			n.row.version++
		}
		do(n, step{what: "a GiveBack arrives"}, true)
	}
	if m.late > 0 {
		n := m
		n.late--
		n.takeRow()
		do(n, step{what: "a Take arrives that nobody waits for"}, true)
	}
	if m.others > 0 {
		n := m
		n.others--
		first, _ := n.takeRow()
		do(n, step{what: "another allocator takes and returns %d", a: first}, n.give(first, modelCount))
	}
	if m.leaf > 0 {
		n := m
		n.leaf--
		first := n.row.next
		n.row.next += modelCount // and no version
		do(n, step{what: "a client without version takes and returns %d", a: first}, n.give(first, modelCount))
	}
	if m.restores > 0 && m.fetch.at == 0 && m.top > 0 {
		n := m
		n.restores--
		n.row = modelRow{next: 1}
		do(n, step{what: "a backup is restored"}, true)
	}
}

func (m model) call(mut mutant, i int, do func(model, step, bool)) {
	n := m
	say := func(what string, a, b int8) step { return step{int8(i + 1), what, a, b} }
	c := &n.caller[i]
	switch c.at {
	case 0:
		if c.calls == 0 {
			return
		}
		if c.want == 0 { // a call begins: Next, or Fill of two
			c.calls--
			for _, want := range []int8{1, 2} {
				c.want = want
				c.at, c.link = 1, n.cur
				do(n, say("begins a call for %d, and loads link %d", want, c.link), true)
			}
			return
		}
		c.at, c.link = 1, n.cur
		do(n, say("loads link %d", c.link, 0), true)
	case 1:
		l := &n.link[c.link]
		c.pos = l.taken + 1
		l.taken = min(l.taken+c.want, 100) // far above every size
		c.at = 2
		do(n, say("adds to link %d and has position %d", c.link, c.pos), true)
	case 2:
		l := n.link[c.link]
		if mut == positionOfOthers {
			// The position is right for the link that was loaded. The link is looked up
			// again.
			l = n.link[n.cur]
		}
		got := max(0, min(c.want, l.size-c.pos+1))
		if l.sealed && c.pos > l.size {
			got = 0
		}
		ok := n.give(l.first+c.pos-1, got)
		c.want -= got
		c.at = 3
		if c.want == 0 {
			c.at = 0
		}
		do(n, say("returns %d numbers from %d", got, l.first+c.pos-1), ok)
	case 3:
		switch {
		case c.link+1 < n.links:
			n.cur = max(n.cur, c.link+1)
			c.at = 0
			do(n, say("goes to the next link", 0, 0), true)
		case n.ended:
			c.at, c.calls = 4, 0
			do(n, say("fails", 0, 0), true)
		}
	}
}

func (m model) fetching(mut mutant, do func(model, step, bool)) {
	n := m
	f := &n.fetch
	switch f.at {
	case 0:
		if f.left == 0 || n.ended || n.links == modelLinks {
			return
		}
		f.left--
		f.at = 1
		if mut == readThenWrite {
			f.first, f.version = n.row.next, n.row.version+1
		}
		do(n, step{what: "the fetcher sends a Take"}, true)
	case 1:
		lost := n
		lost.fetch.at = 0
		do(lost, step{what: "the Take is lost"}, true)
		late := lost
		late.late = min(late.late+1, 1)
		do(late, step{what: "the Take is late, and the fetcher has given up"}, true)
		if mut == readThenWrite {
			n.row = modelRow{f.first + modelCount, f.version}
		} else {
			f.first, f.version = n.takeRow()
		}
		if mut == beforeCommit {
			undone := n
			undone.row = m.row
			undone.fetch.at = 2
			do(undone, step{what: "the row of RETURNING arrives, and COMMIT fails"}, true)
		}
		done := n
		done.fetch.at = 0
		if mut == readBack { // what the row has passed must be ours
			done.fetch.at = 3
		}
		do(done, step{what: "the Take is done, and its reply is lost"}, true)
		f.at = 2
		do(n, step{what: "the Take is done"}, true)
	case 3:
		f.first, f.version = n.row.next-modelCount, n.row.version
		f.at = 2
		do(n, step{what: "the fetcher reads %d back", a: f.first}, true)
	case 2:
		f.at = 0
		if f.first <= n.top && mut != acceptBelow {
			n.ended = true
			for i := n.cur; i < n.links; i++ {
				n.seal(i)
			}
			do(n, step{what: "the fetcher sees that the row went back"}, true)
			return
		}
		n.top = f.first + modelCount - 1
		n.link[n.links] = modelLink{first: f.first, size: modelCount, version: f.version}
		if n.closer > 0 {
			n.link[n.links].taken, n.link[n.links].sealed = 100, true
		}
		n.links++
		do(n, step{what: "the fetcher appends %d", a: f.first}, true)
	}
}

func (m *model) seal(i int8) {
	l := &m.link[i]
	if !l.sealed {
		l.used = min(l.taken, l.size)
		l.taken, l.sealed = 100, true
	}
}

func (m model) closing(mut mutant, do func(model, step, bool)) {
	n := m
	switch n.closer {
	case 0:
		if n.ended {
			return
		}
		n.ended, n.closer, n.sealing = true, 1, n.cur
		if mut == backBeforeSeal {
			n.giveBack()
		}
		do(n, step{what: "Close begins"}, true)
	case 1:
		if n.sealing == n.links {
			n.closer = 2
			do(n, step{what: "all links are sealed"}, true)
			return
		}
		n.seal(n.sealing)
		n.sealing++
		do(n, step{what: "Close seals link %d", a: n.sealing - 1}, true)
	case 2:
		if n.fetch.at != 0 {
			return
		}
		n.closer = 3
		if mut != backBeforeSeal {
			n.giveBack()
		}
		do(n, step{what: "Close sends GiveBack of %d to %d", a: n.back.first, b: n.back.end - 1}, true)
	}
}

// giveBack is unused of chain.go.
func (m *model) giveBack() {
	ok := false
	for i := m.cur; i < m.links; i++ {
		l := m.link[i]
		used := l.used
		if !l.sealed {
			used = min(l.taken, l.size)
		}
		first := l.first + used
		if used == l.size {
			ok = false
			continue
		}
		if before := m.link[max(i-1, 0)]; !ok || used > 0 || before.first+before.size != l.first || before.version+1 != l.version {
			m.back.first = first
		}
		m.back.end, m.back.version, m.back.copies, ok = l.first+l.size, l.version, 2, true
	}
	if !ok {
		m.back = modelBack{}
	}
}

// small is a start with two callers, two fetches, a Close and another allocator.
func small() model {
	m := model{row: modelRow{next: 1}, links: 1, others: 1}
	m.fetch.left = 2
	m.caller[0].calls, m.caller[1].calls = 2, 1
	return m
}

func TestNoInterleavingReturnsANumberTwice(t *testing.T) {
	for name, m := range map[string]func() model{
		"with another allocator": small,
		"with a client without version": func() model {
			m := small()
			m.leaf, m.others = 1, 0
			return m
		},
		"with a restored backup": func() model {
			m := small()
			m.restores, m.others = 1, 0
			return m
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := m()
			if !*large {
				start.caller[0].calls, start.fetch.left = 1, max(1, start.fetch.left-start.leaf)
			}
			states, path := search(start, none)
			t.Logf("%d states", states)
			if path != nil {
				t.Errorf("a number is returned twice:\n%q", path)
			}
		})
	}
}

func TestEachMutantReturnsANumberTwice(t *testing.T) {
	withoutClose := func(m *model) { m.closer = -1 } // a search of far fewer states
	for mut, change := range map[mutant]func(*model){
		backBeforeSeal:   func(*model) {},
		backByMax:        func(m *model) { m.others = 2 },
		backByVersion:    func(m *model) { m.others, m.leaf, m.caller = 1, 1, [2]modelCaller{} },
		beforeCommit:     withoutClose,
		readBack:         withoutClose,
		readThenWrite:    withoutClose,
		acceptBelow:      func(m *model) { m.closer, m.restores, m.others, m.caller[0].calls = -1, 1, 0, 2 },
		positionOfOthers: func(m *model) { m.caller[0].calls = 2 },
	} {
		t.Run(string(mut), func(t *testing.T) {
			t.Parallel()
			m := small()
			m.caller[0].calls = 1
			change(&m)
			states, path := search(m, mut)
			if path == nil {
				t.Fatalf("%d states and no number twice; want one", states)
			}
			t.Logf("%d states; %d steps: %q", states, len(path), path)
		})
	}
}
