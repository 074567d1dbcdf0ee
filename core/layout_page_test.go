package core_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core"
)

var writePage = flag.Bool("page", false, "write what is generated into docs/layouts.md and docs/sharding.md")

// presets are in the order of the page.
var presets = []struct {
	name   string
	layout core.Layout
}{
	{"Default", core.Default()},
	{"JavaScript", core.JavaScript()},
	{"Twitter", core.Twitter()},
	{"Discord", core.Discord()},
	{"Instagram", core.Instagram()},
	{"Mastodon", core.Mastodon()},
}

// The picture and the tables of the pages come from the layouts. Each stands between
// <!-- generated: name --> and <!-- /generated -->. -page writes them.
func TestThePagesOfLayoutsShowWhatTheyAre(t *testing.T) {
	checkPage(t, "../docs/layouts.md", map[string]string{
		"picture": pictureOfPresets(),
		"presets": tableOfPresets(t),
		"time":    tableOfTimeBits(),
		"rest":    tableOfOtherBits(),
	})
	checkPage(t, "../docs/sharding.md", map[string]string{"shards": tableOfShards()})
}

func checkPage(t *testing.T, page string, parts map[string]string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	got := string(text)
	for name, want := range parts {
		begin, end := "<!-- generated: "+name+" -->\n", "<!-- /generated -->"
		before, rest, found := strings.Cut(got, begin)
		shown, after, closed := strings.Cut(rest, end)
		if !found || !closed {
			t.Errorf("%s has no place for %q; want %s … %s", page, name, strings.TrimSpace(begin), end)
			continue
		}
		if shown != want && !*writePage {
			t.Errorf("%s shows other %s than the layouts have; write it by -page. Want:\n%s", page, name, want)
		}
		got = before + begin + want + end + after
	}
	if *writePage && !t.Failed() {
		if err := os.WriteFile(page, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// tableOfShards says what shards leave of the rate of Default.
func tableOfShards() string {
	var b strings.Builder
	b.WriteString("| ShardBits | Shards | Keys per ms and worker | per second | at once |\n| ---: | ---: | ---: | ---: | ---: |\n")
	for _, bits := range []int{0, 4, 6, 8, 10} {
		perTick := int64(1) << (core.Default().SequenceBits - bits)
		fmt.Fprintf(&b, "| %d | %s | %s | %s | %s |\n", bits, grouped(1<<bits), grouped(perTick), grouped(perTick*1000), grouped(perTick*20))
	}
	return b.String()
}

// pictureOfPresets has a line for each layout, with a character for each bit.
func pictureOfPresets() string {
	var b strings.Builder
	b.WriteString("```text\n")
	for _, p := range presets {
		l := p.layout
		bits := strings.Repeat("T", l.TimeBits) + strings.Repeat("D", l.DatacenterBits) +
			strings.Repeat("W", l.WorkerBits) + strings.Repeat("S", l.SequenceBits)
		fmt.Fprintf(&b, "%-10s  %s%s\n", p.name, strings.Repeat("0", 64-len(bits)), bits)
	}
	b.WriteString("```\n")
	return b.String()
}

func tableOfPresets(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("| Layout | Time begins | ends | Datacenters × workers | Keys per ms and worker | per second | As a JavaScript number |\n")
	b.WriteString("| --- | --- | --- | ---: | ---: | ---: | --- |\n")
	for _, p := range presets {
		l := p.layout
		workers := grouped(1 << l.WorkerBits)
		if l.DatacenterBits > 0 {
			workers = grouped(1<<l.DatacenterBits) + " × " + workers
		}
		ticks := int64(time.Second / l.Unit)
		perSecond := ticks << l.SequenceBits
		safe := "no"
		if l.Max(l.Exhausted()) <= 1<<53-1 {
			safe = "exact"
		}
		fmt.Fprintf(&b, "| `core.%s()` | %s | %s | %s | %s | %s | %s |\n", p.name,
			l.Epoch.UTC().Format(time.DateOnly), l.Exhausted().Format(time.DateOnly), workers,
			perMillisecond(perSecond), grouped(perSecond), safe)
	}
	return b.String()
}

func perMillisecond(perSecond int64) string {
	if perSecond%1000 == 0 {
		return grouped(perSecond / 1000)
	}
	return fmt.Sprintf("%.1f", float64(perSecond)/1000)
}

// tableOfTimeBits says how long some numbers of time bits last, in whole years.
func tableOfTimeBits() string {
	var b strings.Builder
	b.WriteString("| Time bits | Years with ticks of 1 ms | of 10 ms |\n| ---: | ---: | ---: |\n")
	for bits := 38; bits <= 42; bits++ {
		fmt.Fprintf(&b, "| %d |", bits)
		for _, unit := range []time.Duration{time.Millisecond, 10 * time.Millisecond} {
			l := core.Layout{Epoch: time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC), Unit: unit, TimeBits: bits, SequenceBits: 1}
			fmt.Fprintf(&b, " %s |", grouped(int64(l.Exhausted().Year()-2025)))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// tableOfOtherBits says what may be made of 22 bits at ticks of 1 ms.
func tableOfOtherBits() string {
	var b strings.Builder
	b.WriteString("| Worker bits | Sequence bits | Workers | Keys per ms and worker |\n| ---: | ---: | ---: | ---: |\n")
	for _, workers := range []int{5, 8, 10, 12, 16} {
		l := core.Default()
		l.WorkerBits, l.SequenceBits = workers, 22-workers
		if err := l.Validate(); err != nil {
			panic(err)
		}
		fmt.Fprintf(&b, "| %d | %d | %s | %s |\n", l.WorkerBits, l.SequenceBits, grouped(1<<l.WorkerBits), grouped(1<<l.SequenceBits))
	}
	return b.String()
}

// grouped returns a number with a comma before each three digits.
func grouped(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
