package serial

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core"
)

// compiled returns a zone as a copy of the time-zone database has it: one offset, and before
// a moment another.
func compiled(t *testing.T, name string, offset, before time.Duration, change time.Time) *time.Location {
	t.Helper()
	data := append([]byte("TZif"), make([]byte, 16)...) // version 1
	for _, n := range []uint32{0, 0, 0, 1, 2, 4} {      // one change, two offsets, four bytes of names
		data = binary.BigEndian.AppendUint32(data, n)
	}
	data = binary.BigEndian.AppendUint32(data, uint32(change.Unix()))
	data = append(data, 1) // to the second offset
	for _, o := range []time.Duration{before, offset} {
		data = binary.BigEndian.AppendUint32(data, uint32(int32(o.Seconds())))
		data = append(data, 0, 0)
	}
	zone, err := time.LoadLocationFromTZData(name, append(data, name+"\x00"...))
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

// Until 2024a these zones have one offset. Since 2024b they are other names of Panama,
// Phoenix and Honolulu, whose clocks have changed.
func TestCopiesOfTheTimeZoneDatabaseAgreeOnESTAndMSTAndHST(t *testing.T) {
	for _, c := range []struct {
		name           string
		offset, before time.Duration
		change         time.Time
	}{
		{"EST", -5 * time.Hour, -(5*time.Hour + 19*time.Minute + 36*time.Second), time.Date(1908, 4, 22, 0, 0, 0, 0, time.UTC)},
		{"MST", -7 * time.Hour, -6 * time.Hour, time.Date(1967, 10, 29, 8, 0, 0, 0, time.UTC)},
		{"HST", -10 * time.Hour, -(10*time.Hour + 30*time.Minute), time.Date(1947, 6, 8, 12, 30, 0, 0, time.UTC)},
	} {
		old := time.FixedZone(c.name, int(c.offset.Seconds()))
		later := compiled(t, c.name, c.offset, c.before, c.change)
		own := load(t, c.name) // whichever this machine has
		series := func(zone *time.Location) Series {
			return Series{Name: "x", Period: Daily, Digits: 3, Zone: zone}
		}
		want := series(old).Definition()
		layout := core.Default()
		layout.Epoch = time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC)
		for which, zone := range map[string]*time.Location{"since 2024b": later, "of this machine": own} {
			if got := series(zone).Definition(); got != want {
				t.Errorf("the definition with %s %s is %q; want %q, as with the one before", c.name, which, got, want)
			}
			for _, moment := range []time.Time{c.change.Add(-time.Second), c.change.Add(-5 * time.Hour), time.Date(1943, 6, 1, 6, 30, 0, 0, time.UTC), at} {
				got, err := series(zone).PeriodOf(moment)
				if before, _ := series(old).PeriodOf(moment); err != nil || got != before {
					t.Errorf("PeriodOf(%v) with %s %s = %s, %v; want %s, as with the one before", moment, c.name, which, got, err, before)
				}
			}
			codec, err := NewCodec(CodecConfig{Layout: layout, Zone: zone})
			if err != nil {
				t.Errorf("New with %s %s = %v; want no error, as with the one before", c.name, which, err)
				continue
			}
			before, err := NewCodec(CodecConfig{Layout: layout, Zone: old})
			if err != nil {
				t.Fatal(err)
			}
			for _, id := range []int64{1 << 22, 1 << 60} {
				if got, want := codec.bound(layout.Min(time.UnixMilli(id>>22))), before.bound(layout.Min(time.UnixMilli(id>>22))); got != want {
					t.Errorf("the text with %s %s is %s; want %s", c.name, which, got, want)
				}
			}
		}
		// Another zone of that name keeps its own offset.
		if other := time.FixedZone(c.name, 10*60*60); series(other).Definition() == want {
			t.Errorf("%s of ten hours east has the definition %q", c.name, want)
		}
	}
}

// A definition names the zone, and its offset if that never changes. The copy of Go and that
// of the machine write the same.
func TestCopiesOfTheTimeZoneDatabaseGiveOneDefinition(t *testing.T) {
	for _, zone := range allZones(t) {
		data, err := os.ReadFile(filepath.Join("/usr/share/zoneinfo", zone.String()))
		if err != nil {
			continue // not installed, or not under this name
		}
		other, err := time.LoadLocationFromTZData(zone.String(), data)
		if err != nil {
			t.Fatal(err)
		}
		if zone.String() == "UTC" {
			continue // time.LoadLocation has it without a file
		}
		if a, b := (Series{Zone: zone}).Definition(), (Series{Zone: other}).Definition(); a != b {
			t.Errorf("the definition with Go's %s is %q, with the machine's %q", zone, a, b)
		}
	}
}
