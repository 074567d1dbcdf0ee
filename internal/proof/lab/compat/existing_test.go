package compat

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The layouts of docs/existing.md equal those in this package, which read keys of the
// libraries.
func TestThePageAboutApplicationsThatExistHasTheLayouts(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("../../../../docs", "existing.md"))
	must(t, err)
	b, y, s := bwmarrinLayout, yitterLayout, shardingLayout
	for _, want := range []string{
		fmt.Sprint(b.Epoch.UnixMilli(), " ms"),
		fmt.Sprint(y.Epoch.UnixMilli(), " ms"),
		fmt.Sprintf("time %d, worker %d, sequence %d", b.TimeBits, b.WorkerBits, b.SequenceBits),
		fmt.Sprintf("| %d, %d, %d", y.TimeBits, y.WorkerBits, y.SequenceBits),
		fmt.Sprintf("time %d, **datacenter %d (the shard)**, worker %d, sequence %d", s.TimeBits, s.DatacenterBits, s.WorkerBits, s.SequenceBits),
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page does not have %q", want)
		}
	}
}
