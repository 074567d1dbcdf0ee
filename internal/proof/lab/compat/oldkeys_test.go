package compat

import (
	"context"
	"testing"
	"time"

	bwmarrin "github.com/bwmarrin/snowflake"
	sony1 "github.com/sony/sonyflake"
	sony2 "github.com/sony/sonyflake/v2"
	"github.com/yitter/idgenerator-go/idgen"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/types"
)

// The layouts of docs/existing.md, tried with keys that the libraries generate here.

// bwmarrinLayout has the epoch and the bits that the library has unless they are set.
var bwmarrinLayout = core.Layout{
	Epoch: time.UnixMilli(1288834974657), Unit: time.Millisecond,
	TimeBits: 41, WorkerBits: 10, SequenceBits: 12,
}

// yitterLayout has the BaseTime and the bits of NewIdGeneratorOptions, in 53 bits.
var yitterLayout = core.Layout{
	Epoch: time.UnixMilli(1582136402000), Unit: time.Millisecond,
	TimeBits: 41, WorkerBits: 6, SequenceBits: 6,
}

// sonyLayout reads the keys of sonyflake, and makes none: the sequence is in the bits of the
// worker, and the machine in those of the sequence.
func sonyLayout(start time.Time) core.Layout {
	return core.Layout{Epoch: start, Unit: 10 * time.Millisecond, TimeBits: 39, WorkerBits: 8, SequenceBits: 16}
}

// newKey returns a key of a generator with the layout.
func newKey(t *testing.T, layout core.Layout, datacenter, worker int64) types.Snowflake {
	t.Helper()
	gen, err := core.New(core.Config{Layout: layout, Datacenter: datacenter, Worker: core.StaticWorker(worker)})
	must(t, err)
	defer gen.Close(context.Background())
	id, err := gen.Next(t.Context())
	must(t, err)
	return id
}

// recent fails the test unless parts are of this worker and of about now.
func recent(t *testing.T, parts core.Parts, worker int64, tick time.Duration) {
	t.Helper()
	if age := time.Since(parts.Time); parts.Worker != worker || age < -5*time.Second || age > time.Hour { // a wrong layout is further off, and a busy machine is not
		t.Errorf("parts of a key made now = %+v; want the worker %d and a time of now", parts, worker)
	}
	if !parts.Time.Equal(parts.Time.Truncate(tick)) {
		t.Errorf("time of the key = %v; want a multiple of %v", parts.Time, tick)
	}
}

func TestTheLayoutOfBwmarrinContinuesItsKeys(t *testing.T) {
	node, err := bwmarrin.NewNode(378)
	must(t, err)
	old := node.Generate()
	parts := bwmarrinLayout.Parts(types.Snowflake(old))
	recent(t, parts, 378, time.Millisecond)
	if parts.Time.UnixMilli() != old.Time() || parts.Sequence != old.Step() {
		t.Errorf("parts of %d = %+v; want the time %d and the step %d", old, parts, old.Time(), old.Step())
	}
	time.Sleep(2 * time.Millisecond)
	id := newKey(t, bwmarrinLayout, 0, 379)
	back, parts := bwmarrin.ID(id), bwmarrinLayout.Parts(id)
	if id <= types.Snowflake(old) {
		t.Errorf("new key = %d; want one above the old one, %d", id, old)
	}
	if back.Node() != 379 || back.Time() != parts.Time.UnixMilli() {
		t.Errorf("the old library reads node %d and time %d in a new key; want 379 and %d", back.Node(), back.Time(), parts.Time.UnixMilli())
	}
}

func TestTheLayoutOfYitterContinuesItsKeys(t *testing.T) {
	idgen.SetIdGenerator(idgen.NewIdGeneratorOptions(41))
	old := idgen.NextId()
	parts := yitterLayout.Parts(types.Snowflake(old))
	recent(t, parts, 41, time.Millisecond)
	if at := idgen.ExtractTime(old); !at.Equal(parts.Time) || parts.Sequence < 5 {
		t.Errorf("parts of %d = %+v; want the time %v, and a sequence of at least 5", old, parts, at)
	}
	time.Sleep(2 * time.Millisecond)
	id := newKey(t, yitterLayout, 0, 42)
	if at := idgen.ExtractTime(id.Int64()); id <= types.Snowflake(old) || !at.Equal(yitterLayout.Parts(id).Time) {
		t.Errorf("new key = %d, of %v by the old library; want one above %d and its own time", id, at, old)
	}
	gen, err := core.New(core.Config{Layout: yitterLayout, Worker: core.StaticWorker(43)})
	must(t, err)
	defer gen.Close(context.Background())
	db, err := gorm.Open(sqlite.Open(":memory:"), &gorm.Config{})
	must(t, err)
	if err := db.Use(gormplugin.New(gen, gormplugin.WithIntegerKeys())); err != nil {
		t.Errorf("Use with integer keys = %v; want none, because the keys have 53 bits", err)
	}
}

// Both versions of the library, with their own start times.
func TestNewKeysAreAboveThoseOfSonyflake(t *testing.T) {
	machine1, machine2 := func() (uint16, error) { return 0xABCD, nil }, func() (int, error) { return 0xABCD, nil }
	one, err := sony1.New(sony1.Settings{MachineID: machine1})
	must(t, err)
	two, err := sony2.New(sony2.Settings{MachineID: machine2})
	must(t, err)
	for start, next := range map[time.Time]func() (uint64, error){
		time.Date(2014, 9, 1, 0, 0, 0, 0, time.UTC): one.NextID,
		time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC): func() (uint64, error) { id, err := two.NextID(); return uint64(id), err },
	} {
		id, err := next()
		must(t, err)
		old, reads := types.Snowflake(id), sonyLayout(start)
		parts := reads.Parts(old)
		parts.Worker, parts.Sequence = parts.Sequence, parts.Worker
		recent(t, parts, 0xABCD, 10*time.Millisecond)
		if want := sony1.Decompose(id); uint64(parts.Sequence) != want["sequence"] {
			t.Errorf("sequence of %d = %d; want %d", id, parts.Sequence, want["sequence"])
		}

		layout := core.Default()
		layout.Epoch = parts.Time.Add(-time.Duration(old>>22+1)*layout.Unit).AddDate(0, 0, -1).Truncate(24 * time.Hour)
		if err := layout.Validate(); err != nil {
			t.Fatalf("layout with the epoch %v: %v", layout.Epoch, err)
		}
		key := newKey(t, layout, 0, 7)
		last, err := next() // of an old process beside the new one
		must(t, err)
		later := time.Now().AddDate(10, 0, 0)
		if key <= types.Snowflake(last) || layout.Min(later) <= reads.Max(later) {
			t.Errorf("new key = %d, beside %d of the library that began in %d; want it above, now and in ten years", key, last, start.Year())
		}
		if layout.Exhausted().Before(time.Date(2075, 1, 1, 0, 0, 0, 0, time.UTC)) {
			t.Errorf("keys with the epoch %v end on %v; want 50 years", layout.Epoch, layout.Exhausted())
		}
	}
}

// shardingLayout keeps the node of gorm.io/sharding, which is the shard, and takes the number
// of the process out of the step, so that rows are found by their keys as before.
var shardingLayout = core.Layout{
	Epoch: time.UnixMilli(1288834974657), Unit: time.Millisecond,
	TimeBits: 41, DatacenterBits: 10, WorkerBits: 5, SequenceBits: 7,
}

func TestTheLayoutOfGormShardingKeepsTheShardInTheKey(t *testing.T) {
	shard, err := bwmarrin.NewNode(2) // of which gorm.io/sharding has one for each shard
	must(t, err)
	last := types.Snowflake(shard.Generate())
	if parts := shardingLayout.Parts(last); parts.Datacenter != 2 {
		t.Errorf("parts of %d = %+v; want the datacenter 2, the shard", last, parts)
	}
	for _, worker := range []int64{7, 8} { // two processes
		time.Sleep(2 * time.Millisecond)
		id := newKey(t, shardingLayout, 2, worker)
		parts, node := shardingLayout.Parts(id), bwmarrin.ID(id).Node()
		if id <= last || parts.Datacenter != 2 || parts.Worker != worker || node != 2 {
			t.Errorf("new key = %d of node %d, %+v; want one above %d with the shard 2 in both, and the worker %d", id, node, parts, last, worker)
		}
		last = id
	}
}
