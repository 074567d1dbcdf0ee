package serial

import (
	"archive/zip"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/types"
)

// The names that package serial began with.
var _ func(Format) (*Codec, error) = New

func mustNew(t testing.TB, f CodecConfig) *Codec {
	t.Helper()
	c, err := NewCodec(f)
	if err != nil {
		t.Fatalf("NewCodec(%+v) = %v", f, err)
	}
	return c
}

func mustLoad(t testing.TB, name string) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

// key returns the key of a moment, with worker and sequence.
func key(t testing.TB, l core.Layout, at time.Time, worker, sequence int64) types.Snowflake {
	id, err := l.Compose(core.Parts{Time: at, Worker: worker, Sequence: sequence})
	if err != nil {
		t.Helper() // not before: it takes longer than the call
		t.Fatal(err)
	}
	return id
}

func TestTextsAreWhatTheFormatSays(t *testing.T) {
	berlin := mustLoad(t, "Europe/Berlin")
	at := time.Date(2026, 10, 25, 0, 30, 15, 123e6, time.UTC) // 02:30:15 summer time
	tenth := core.Layout{Epoch: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), Unit: 100 * time.Millisecond, TimeBits: 40, SequenceBits: 4}
	sharded := core.Default()
	sharded.ShardBits = 4
	second := core.Layout{Epoch: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), Unit: time.Second, TimeBits: 35, DatacenterBits: 2, WorkerBits: 3, SequenceBits: 10}
	for _, tt := range []struct {
		name   string
		format CodecConfig
		at     time.Time
		want   string
	}{
		{"the zero format", CodecConfig{}, at, "20261025003015123" + "0007" + "0042"},
		{"a prefix", CodecConfig{Prefix: "PAY-"}, at, "PAY-20261025003015123" + "0007" + "0042"},
		{"a zone without changes", CodecConfig{Zone: time.FixedZone("x", 5*3600+1800)}, at, "20261025060015123" + "0007" + "0042"},
		{"before the fold", CodecConfig{Zone: berlin, Fold: true}, at, "2026102502" + "0" + "3015123" + "0007" + "0042"},
		{"after the fold", CodecConfig{Zone: berlin, Fold: true}, at.Add(time.Hour), "2026102502" + "1" + "3015123" + "0007" + "0042"},
		{"shards", CodecConfig{Layout: sharded}, at, "20261025003015123" + "0007" + "0042"}, // one text, whoever reads it
		{"no worker", CodecConfig{Layout: tenth}, at, "202610250030151" + "10"},
		{"seconds and datacenters", CodecConfig{Layout: second}, at, "20261025003015" + "07" + "0042"},
		{"Luhn", CodecConfig{Check: Luhn}, at, "20261025003015123" + "0007" + "0042" + "9"},
	} {
		c := mustNew(t, tt.format)
		l := c.format.Layout
		id := key(t, l, tt.at, 7&ones(l.WorkerBits), min(42, ones(l.SequenceBits)-5))
		got, err := c.Format(id)
		if err != nil || got != tt.want {
			t.Errorf("%s: Format(%d) = %q, %v; want %q", tt.name, id, got, err, tt.want)
		}
		if back, err := c.Parse(got); err != nil || back != id {
			t.Errorf("%s: Parse(%q) = %d, %v; want %d", tt.name, got, back, err, id)
		}
		if c.Width() != len(got) {
			t.Errorf("%s: Width() = %d; want %d, as %q has", tt.name, c.Width(), len(got), got)
		}
	}
}

func TestNewRefusesWhatItCannotShow(t *testing.T) {
	forever := core.Default()
	forever.Unit, forever.TimeBits = time.Second, 41
	for _, tt := range []struct {
		name   string
		format CodecConfig
		want   string // within the error
	}{
		{"lower case", CodecConfig{Prefix: "pay"}, `CodecConfig.Prefix is "pay": want 0 to 16 characters of A to Z`},
		{"a long prefix", CodecConfig{Prefix: strings.Repeat("A", 17)}, "CodecConfig.Prefix"},
		{"a control character", CodecConfig{Prefix: "A\n"}, `CodecConfig.Prefix is "A\n"`},
		{"a very long prefix", CodecConfig{Prefix: strings.Repeat("A", 999)}, strings.Repeat("A", 64) + `"…`},
		{"summer time without Fold", CodecConfig{Zone: mustLoad(t, "Europe/Berlin")}, "CodecConfig.Zone is Europe/Berlin, whose clock changes at 2025-03-30T01:00:00Z: want UTC"},
		{"more than a clock hour", CodecConfig{Zone: mustLoad(t, "Pacific/Chatham"), Fold: true}, "Pacific/Chatham, which repeats more or less"},
		{"two hours", CodecConfig{Zone: mustLoad(t, "Antarctica/Troll"), Fold: true}, "Antarctica/Troll"},
		{"this machine's zone", CodecConfig{Zone: time.Local}, "CodecConfig.Zone is time.Local"},
		{"an unknown check", CodecConfig{Check: 4}, "CodecConfig.Check is Check(4)"},
		{"a negative check", CodecConfig{Check: -1}, "CodecConfig.Check is Check(-1)"},
		{"a bad layout", CodecConfig{Layout: core.Layout{TimeBits: 1}}, "CodecConfig.Layout is invalid (core: Layout.SequenceBits"},
		{"beyond the year 9999", CodecConfig{Layout: forever}, "CodecConfig.Layout is from 2025-01-01 to "},
	} {
		c, err := NewCodec(tt.format)
		bad := (*core.ValueError)(nil)
		if c != nil || !errors.As(err, &bad) || !strings.HasPrefix(err.Error(), "serial: ") || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: NewCodec() = %v, %v; want nil and an error with %q", tt.name, c, err, tt.want)
		}
	}
	if _, err := NewCodec(CodecConfig{Zone: mustLoad(t, "Asia/Tokyo")}); err != nil {
		t.Errorf("NewCodec() with a zone whose clock has not changed since the epoch = %v; want a codec", err)
	}
}

func TestKeysOfAnotherLayoutAreRefused(t *testing.T) {
	c := mustNew(t, CodecConfig{Layout: core.JavaScript()})
	for _, id := range []types.Snowflake{-1, 1 << 53, 1<<63 - 1, -1 << 63} {
		b, err := c.Append([]byte("before"), id)
		if bad := (*core.ValueError)(nil); string(b) != "before" || !errors.As(err, &bad) || bad.Name != "key" {
			t.Errorf("Append(%d) = %q, %v; want what was there, and a ValueError", id, b, err)
		}
	}
	if text, err := c.Format(1<<53 - 1); err != nil || text == "" {
		t.Errorf("Format of the last key = %q, %v; want its text", text, err)
	}
}

func TestParseAcceptsNothingElse(t *testing.T) {
	c := mustNew(t, CodecConfig{Prefix: "P", Zone: mustLoad(t, "Europe/Berlin"), Fold: true, Layout: core.Layout{
		Epoch: time.Date(2025, 1, 1, 0, 0, 0, 5e6, time.UTC), Unit: 10 * time.Millisecond, TimeBits: 37, WorkerBits: 4, SequenceBits: 7,
	}})
	const good = "P" + "2026102502" + "1" + "3015125" + "07" + "042"
	if id, err := c.Parse(good); err != nil || id == 0 {
		t.Fatalf("Parse(%q) = %d, %v; want a key", good, id, err)
	}
	for _, tt := range []struct{ name, text, want string }{
		{"nothing", "", "want 24 bytes"},
		{"a digit less", good[:23], "want 24 bytes"},
		{"a space more", good + " ", "want 24 bytes"},
		{"a long text", strings.Repeat("7", 999), "want 24 bytes"},
		{"another prefix", "Q" + good[1:], `want the prefix "P"`},
		{"a letter", good[:5] + "x" + good[6:], "want digits alone"},
		{"a digit of another script", good[:5] + "٣" + good[7:], "want digits alone"},
		{"year 0", "P0000102501301512507042", "want 24 bytes"},
		{"the year 0", "P0000" + good[5:], "year of"},
		{"month 0", "P202600" + good[7:], "month of"},
		{"month 13", "P202613" + good[7:], "month of"},
		{"day 0", "P20261000" + good[9:], "day of"},
		{"day 32", "P20261032" + good[9:], "day of"},
		{"the 31st of June", "P2026063102" + "0" + good[12:], "date is 2026-06-31: want a day of the calendar"},
		{"the 29th of February", "P2026022902" + "0" + good[12:], "date is 2026-02-29"},
		{"hour 24", "P2026102524" + good[11:], "hour of"},
		{"fold 2", good[:11] + "2" + good[12:], "fold of"},
		{"a fold where there is none", "P2026102503" + good[11:], "want the digit 0 after the hour: this time occurs only once in Europe/Berlin"},
		{"an hour that does not exist", "P2026032902" + "0" + good[12:], "local time is 2026-03-29 02:30:15: want a time that exists in Europe/Berlin"},
		{"minute 60", good[:12] + "60" + good[14:], "minute of"},
		{"second 60", good[:14] + "60" + good[16:], "second of"},
		{"no whole tick", good[:16] + "126" + good[19:], "the beginning of a tick of 10ms"},
		{"worker 16", good[:19] + "16" + good[21:], "datacenter and worker of"},
		{"sequence 128", good[:21] + "128", "sequence of"},
		{"before the epoch", "P2024" + good[5:10] + "10" + good[12:], "from 2025-01-01T00:00:00.005Z until before"},
		{"after the last tick", "P2099" + good[5:10] + "10" + good[12:], "until before"},
	} {
		id, err := c.Parse(tt.text)
		if bad := (*core.ValueError)(nil); id != 0 || !errors.As(err, &bad) || !strings.HasPrefix(err.Error(), "serial: ") || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: Parse(%q) = %d, %v; want 0 and an error with %q", tt.name, tt.text, id, err, tt.want)
		}
		if err != nil && len(err.Error()) > 300 {
			t.Errorf("%s: the error has %d bytes; want the text cut", tt.name, len(err.Error()))
		}
	}
}

func TestAWrongCheckDigitIsAnErrorOfItsOwn(t *testing.T) {
	for _, check := range []Check{Luhn, Mod11_10, Mod97_10} {
		c := mustNew(t, CodecConfig{Prefix: "R7-", Check: check})
		text, err := c.Format(1 << 60)
		if err != nil {
			t.Fatal(err)
		}
		last := text[len(text)-1]
		wrong := text[:len(text)-1] + string('0'+(last-'0'+1)%10)
		if id, err := c.Parse(wrong); id != 0 || !errors.Is(err, ErrCheckDigit) {
			t.Errorf("%v: Parse(%q) = %d, %v; want %v", check, wrong, id, err, ErrCheckDigit)
		}
		if id, err := c.Parse(text); err != nil || id != 1<<60 {
			t.Errorf("%v: Parse(%q) = %d, %v; want the key", check, text, id, err)
		}
	}
}

func TestAppendAllocatesNothing(t *testing.T) {
	c := mustNew(t, CodecConfig{Prefix: "PAY-", Zone: mustLoad(t, "Europe/Berlin"), Fold: true, Check: Mod97_10})
	b := make([]byte, 0, c.Width())
	if got := testing.AllocsPerRun(1000, func() {
		if _, err := c.Append(b, 1<<60); err != nil {
			t.Error(err)
		}
	}); got != 0 {
		t.Errorf("allocations = %v; want none", got)
	}
}

func TestMinAndMaxBoundATime(t *testing.T) {
	c := mustNew(t, CodecConfig{Zone: mustLoad(t, "Europe/Berlin"), Fold: true})
	l := c.format.Layout
	at := time.Date(2026, 10, 25, 1, 30, 0, 5e6, time.UTC)
	for _, tt := range []struct {
		at     time.Time
		inside bool
	}{
		{at, true},
		{at.Add(999 * time.Microsecond), true}, // of the same tick
		{at.Add(time.Millisecond), false},
		{at.Add(-time.Microsecond), false},
		{at.Add(-time.Hour), false}, // the same local time
	} {
		for _, sequence := range []int64{0, 4095} {
			text, err := c.Format(key(t, l, tt.at, 0, sequence))
			if inside := text >= c.Min(at) && text <= c.Max(at); err != nil || inside != tt.inside {
				t.Errorf("the text of %v, %q, %v, is within: %v; want %v", tt.at, text, err, inside, tt.inside)
			}
		}
	}
	if got, want := c.Min(time.Time{}), "2025010101"; !strings.HasPrefix(got, want) {
		t.Errorf("Min of a time before the layout = %q; want the first tick, %q…", got, want)
	}
}

// random returns a format whose layout is valid and ends before the year 10000.
func random(r *rand.Rand, zones []*time.Location) CodecConfig {
	for {
		f := CodecConfig{
			Prefix: []string{"", "A", "RE-2026/"}[r.IntN(3)],
			Check:  Check(r.IntN(4)),
			Layout: core.Layout{
				Epoch:          time.Unix(r.Int64N(4e9)-1e9, []int64{0, 1e6, 123456789}[r.IntN(3)]),
				Unit:           []time.Duration{time.Microsecond, 7 * time.Microsecond, 1500 * time.Microsecond, time.Millisecond, 10 * time.Millisecond, 333 * time.Millisecond, time.Second, 123456789}[r.IntN(8)],
				TimeBits:       1 + r.IntN(42),
				DatacenterBits: r.IntN(6),
				WorkerBits:     r.IntN(12),
				SequenceBits:   1 + r.IntN(20),
			},
			Zone: zones[r.IntN(len(zones))],
			Fold: r.IntN(4) > 0,
		}
		if f.Layout.Validate() == nil {
			return f
		}
	}
}

func TestTextsOfRandomFormatsComeBackAndSortAsTheKeysDo(t *testing.T) {
	zones := allZones(t)
	r := rand.New(rand.NewPCG(1, 2))
	made := 0
	for range 400 {
		f := random(r, zones)
		c, err := NewCodec(f)
		if err != nil {
			continue
		}
		made++
		greatest := ones(f.Layout.TimeBits + f.Layout.DatacenterBits + f.Layout.WorkerBits + f.Layout.SequenceBits)
		var before types.Snowflake
		var text string
		for range 20 {
			id := types.Snowflake(r.Int64() & greatest)
			if r.IntN(2) == 0 {
				id = min(before+types.Snowflake(r.Int64N(1<<min(40, f.Layout.SequenceBits+20))), types.Snowflake(greatest))
			}
			got, err := c.Format(id)
			if err != nil || len(got) != c.Width() {
				t.Fatalf("%+v: Format(%d) = %q, %v; want %d bytes", f, id, got, err, c.Width())
			}
			if back, err := c.Parse(got); err != nil || back != id {
				t.Fatalf("%+v: Parse(%q) = %d, %v; want %d", f, got, back, err, id)
			}
			if text != "" && strings.Compare(text, got) != before.Compare(id) {
				t.Fatalf("%+v: %q of %d and %q of %d do not sort alike", f, text, before, got, id)
			}
			before, text = id, got
		}
	}
	if made < 100 {
		t.Errorf("formats = %d; want at least 100", made)
	}
}

// allZones returns each zone once of those in the time-zone database of Go.
func allZones(t testing.TB) []*time.Location {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatalf("go env GOROOT = %v; want the folder of Go, which has the zones", err)
	}
	z, err := zip.OpenReader(filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "zoneinfo.zip"))
	if errors.Is(err, os.ErrNotExist) && os.Getenv("CI") == "" {
		t.Skip("SKIPPED: this installation of Go has no zoneinfo.zip")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = z.Close() }()
	var all []*time.Location
	seen := map[uint32]bool{} // many names are of one zone
	for _, f := range z.File {
		if !strings.HasSuffix(f.Name, "/") && !seen[f.CRC32] {
			seen[f.CRC32] = true
			all = append(all, mustLoad(t, f.Name))
		}
	}
	if len(all) < 300 {
		t.Fatalf("zones = %d; want some hundreds", len(all))
	}
	return all
}

// changesOf returns the changes of a zone's offset from some time to 2039, and a text that
// is equal for zones whose offsets are equal all that time.
func changesOf(zone *time.Location, from time.Time) (changes []time.Time, offsets string) {
	for at := from; ; {
		_, offset := at.In(zone).Zone()
		_, end := at.In(zone).ZoneBounds()
		offsets += fmt.Sprint(offset, end.Unix(), " ")
		if end.IsZero() || end.Year() > 2039 {
			return changes, offsets
		}
		changes = append(changes, end)
		at = end
	}
}

// Around each change of 30 years, the texts are compared with the keys minute by minute.
// One of the zones with the same offsets is enough.
func TestNoZoneRepeatsATextOrChangesTheOrder(t *testing.T) {
	t.Parallel()
	layout := core.Layout{Epoch: time.Date(2010, 1, 1, 0, 0, 0, 0, time.UTC), Unit: time.Millisecond, TimeBits: 40, SequenceBits: 1}
	refused := map[string]bool{}
	seen := map[string]bool{}
	r := rand.New(rand.NewPCG(3, 4))
	for _, zone := range allZones(t) {
		c, err := NewCodec(CodecConfig{Layout: layout, Zone: zone, Fold: true})
		if err != nil {
			refused[zone.String()] = true
			continue
		}
		changes, offsets := changesOf(zone, layout.Epoch)
		if seen[offsets] {
			continue
		}
		seen[offsets] = true
		for _, end := range changes {
			before, last := "", types.Snowflake(-1)
			for minute := -125; minute <= 125; minute++ {
				for _, ms := range []int64{0, r.Int64N(59_999) + 1} {
					id := key(t, layout, end.Add(time.Duration(minute)*time.Minute+time.Duration(ms)*time.Millisecond), 0, 0)
					text, err := c.Format(id)
					if err != nil || text <= before {
						t.Fatalf("%v: Format(%d) = %q, %v; want one that is greater than %q of %d", zone, id, text, err, before, last)
					}
					if back, err := c.Parse(text); err != nil || back != id {
						t.Fatalf("%v: Parse(%q) = %d, %v; want %d", zone, text, back, err, id)
					}
					before, last = text, id
				}
			}
		}
	}
	t.Logf("%d zones differ; refused: %v", len(seen), refused)
	for _, name := range []string{"Antarctica/Troll", "America/St_Johns"} {
		if !refused[name] {
			t.Errorf("%s is not refused; want it refused", name)
		}
	}
	if len(refused) > 20 {
		t.Errorf("zones that are refused = %d, %v; want a few", len(refused), refused)
	}
}

func FuzzCodec(f *testing.F) {
	names := []string{"UTC", "Europe/Berlin", "Australia/Lord_Howe", "America/Havana", "Asia/Kathmandu"}
	f.Add(int64(1<<60), int64(0), uint32(1000), uint8(41), uint8(5), uint8(5), uint8(12), uint8(1), uint8(1), "20261025023015123")
	f.Fuzz(func(t *testing.T, id, epoch int64, unit uint32, timeBits, datacenterBits, workerBits, sequenceBits, zone, check uint8, text string) {
		c, err := NewCodec(CodecConfig{
			Prefix: "F-", Fold: true, Check: Check(check % 4), Zone: mustLoad(t, names[int(zone)%len(names)]),
			Layout: core.Layout{
				Epoch: time.Unix(epoch%4e9, 0), Unit: time.Duration(unit%1_000_000+1) * time.Microsecond,
				TimeBits: int(timeBits), DatacenterBits: int(datacenterBits), WorkerBits: int(workerBits), SequenceBits: int(sequenceBits),
			},
		})
		if err != nil {
			return
		}
		if got, err := c.Format(types.Snowflake(id)); err == nil {
			if back, err := c.Parse(got); err != nil || back != types.Snowflake(id) {
				t.Errorf("Parse(%q) = %d, %v; want %d", got, back, err, id)
			}
		}
		// What Parse accepts, Format writes.
		if id, err := c.Parse(text); err == nil {
			if got, err := c.Format(id); err != nil || got != text {
				t.Errorf("Format(%d) = %q, %v; want as read, %q", id, got, err, text)
			}
		}
	})
}

// The same date in the same zone, in one run.
func BenchmarkAppend(b *testing.B) {
	for _, name := range []string{"UTC", "Europe/Berlin"} {
		zone := mustLoad(b, name)
		c := mustNew(b, CodecConfig{Zone: zone, Fold: name != "UTC"})
		at := time.Date(2026, 7, 25, 0, 30, 15, 123e6, time.UTC)
		id := key(b, c.format.Layout, at, 7, 42)
		buffer := make([]byte, 0, 64)
		b.Run(fmt.Sprintf("zone=%s/of=Append", name), func(b *testing.B) {
			for b.Loop() {
				buffer, _ = c.Append(buffer[:0], id)
			}
		})
		b.Run(fmt.Sprintf("zone=%s/of=AppendFormat", name), func(b *testing.B) {
			for b.Loop() {
				buffer = at.In(zone).AppendFormat(buffer[:0], "20060102150405.000")
			}
		})
	}
}
