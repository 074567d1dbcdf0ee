package disk

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// cuts calls f with a thousand fates.
func cuts(t *testing.T, f func(*fate)) {
	t.Helper()
	for seed := range uint64(1000) {
		f(newFate(rand.New(rand.NewPCG(seed, 0))))
	}
}

func block(b byte, size int) []byte { return bytes.Repeat([]byte{b}, size) }

func TestWhatWasSyncedSurvives(t *testing.T) {
	cuts(t, func(f *fate) {
		var c content
		c.write(block('a', 5000), 0)
		c.write(block('b', 10), 4990)
		c.sync(c.changes())
		want := bytes.Clone(c.now)
		if changed, lost := c.cut(f); changed != 0 || lost != 0 || !bytes.Equal(c.now, want) {
			t.Fatalf("cut(%+v) = %d, %d, and changes what was synced; want nothing lost", f, changed, lost)
		}
	})
}

func TestAnFsyncIsOfWhatWasWrittenBeforeItBegan(t *testing.T) {
	gone := false
	cuts(t, func(f *fate) {
		var c content
		c.write(block('a', 512), 0)
		began := c.changes()
		c.write(block('b', 512), 4096)
		c.sync(began)
		c.cut(f)
		if len(c.now) < 512 || !bytes.Equal(c.now[:512], block('a', 512)) {
			t.Fatalf("cut(%+v) has lost the first write, which was synced", f)
		}
		gone = gone || len(c.now) == 512
	})
	if !gone {
		t.Error("no cut has lost the write that came when the fsync had begun")
	}
}

func TestWritesAreLostTornAndReordered(t *testing.T) {
	const lost, kept, torn, reordered, spoilt = "lost", "kept", "torn", "reordered", "spoilt"
	seen := map[string]int{}
	cuts(t, func(f *fate) {
		var c content
		c.write(block('a', 8192), 0)
		c.sync(c.changes())
		c.write(block('b', 1024), 0)
		c.write(block('c', 1024), 4096)
		c.cut(f)
		first, second, other := c.now[:1024], c.now[4096:5120], append(bytes.Clone(c.now[1024:4096]), c.now[5120:]...)
		if !bytes.Equal(other, block('a', 6144)) {
			t.Fatalf("cut(%+v) has changed what was not written to", f)
		}
		is := func(b []byte, c byte) bool { return bytes.Equal(b, block(c, 1024)) }
		switch {
		case len(bytes.Trim(c.now, "abc")) > 0:
			seen[spoilt]++
		case is(first, 'a') && is(second, 'a'):
			seen[lost]++
		case is(first, 'b') && is(second, 'c'):
			seen[kept]++
		case is(first, 'a') && is(second, 'c'):
			seen[reordered]++
		case f.sector == 512 && !is(first, 'a') && !is(first, 'b'):
			seen[torn]++
		}
	})
	for _, what := range []string{lost, kept, torn, reordered, spoilt} {
		if seen[what] == 0 {
			t.Errorf("no cut of a thousand has %s a write; it has %v", what, seen)
		}
	}
}

func TestATruncationThatIsLostLeavesWhatItHadFreed(t *testing.T) {
	seen := map[int]int{}
	cuts(t, func(f *fate) {
		f.spoil = 0
		var c content
		c.write(block('a', 8192), 0)
		c.sync(c.changes())
		c.truncate(0)
		c.write(block('b', 4096), 0)
		c.cut(f)
		seen[len(c.now)]++
		switch len(c.now) {
		case 8192: // all is as it was: the write went elsewhere
			if !bytes.Equal(c.now, block('a', 8192)) {
				t.Fatalf("cut(%+v) leaves a part of a truncation", f)
			}
		case 4096:
			if bytes.ContainsRune(c.now, 'a') {
				t.Fatalf("cut(%+v) brings back what was freed", f)
			}
		case 0:
		default:
			t.Fatalf("cut(%+v) leaves %d bytes; want 8192, 4096 or 0", f, len(c.now))
		}
	})
	if len(seen) != 3 {
		t.Errorf("files have the lengths %v; want 8192, 4096 and 0", seen)
	}
}

// must ends the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
