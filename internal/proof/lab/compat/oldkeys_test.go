package compat

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	bwmarrin "github.com/bwmarrin/snowflake"
	sony1 "github.com/sony/sonyflake"
	sony2 "github.com/sony/sonyflake/v2"
	"github.com/yitter/idgenerator-go/idgen"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/sharding"

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

// shardOrder is the model of a program that leaves its key to gorm.io/sharding.
type shardOrder struct {
	ID     int64
	UserID int64
	Number string
}

func (shardOrder) TableName() string { return "orders" }

// sharded returns a database with four tables of orders.
func sharded(t *testing.T, config sharding.Config) *gorm.DB {
	t.Helper()
	db, err := gorm.Open(sqlite.Open(":memory:"), &gorm.Config{SkipDefaultTransaction: true})
	must(t, err)
	pool, err := db.DB()
	must(t, err)
	pool.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = pool.Close() })
	for i := range 4 {
		must(t, db.Exec("CREATE TABLE orders_"+strconv.Itoa(i)+" (id INTEGER PRIMARY KEY, user_id INTEGER, number TEXT)").Error)
	}
	config.ShardingKey, config.NumberOfShards = "user_id", 4
	must(t, db.Use(sharding.Register(config, "orders")))
	return db
}

// shardKeys returns the keys of a shard.
func shardKeys(t *testing.T, db *gorm.DB, shard int) (ids []types.Snowflake) {
	t.Helper()
	must(t, db.Raw("SELECT id FROM orders_"+strconv.Itoa(shard)).Scan(&ids).Error)
	return ids
}

// shardingLayout keeps the node of gorm.io/sharding, which is the shard, and takes the number
// of the process out of the step, so that rows are found by their keys as before.
var shardingLayout = core.Layout{
	Epoch: time.UnixMilli(1288834974657), Unit: time.Millisecond,
	TimeBits: 41, DatacenterBits: 10, WorkerBits: 5, SequenceBits: 7,
}

func TestTheLayoutOfGormShardingKeepsTheShardInTheKey(t *testing.T) {
	old := sharded(t, sharding.Config{PrimaryKeyGenerator: sharding.PKSnowflake})
	create := func(db *gorm.DB, number string) {
		t.Helper()
		must(t, db.Omit("ID").Create(&shardOrder{UserID: 6, Number: number}).Error)
	}
	create(old, "A")
	ids := shardKeys(t, old, 2)
	if len(ids) != 1 {
		t.Fatalf("keys of shard 2 = %v; want one", ids)
	}
	recent(t, bwmarrinLayout.Parts(ids[0]), 2, time.Millisecond) // the worker of every process
	if parts := shardingLayout.Parts(ids[0]); parts.Datacenter != 2 {
		t.Errorf("parts of %d = %+v; want the datacenter 2, the shard", ids[0], parts)
	}

	// Two processes, of worker numbers 7 and 8, in one shard.
	for _, worker := range []int64{7, 8} {
		config := sharding.Config{PrimaryKeyGenerator: sharding.PKCustom, PrimaryKeyGeneratorFn: shardGenerators(t, 4, worker)}
		config.ShardingAlgorithmByPrimaryKey = func(id int64) string { return fmt.Sprint("_", bwmarrin.ParseInt64(id).Node()) }
		db := sharded(t, config)
		time.Sleep(2 * time.Millisecond)
		create(db, "B")
		ids := append(ids, shardKeys(t, db, 2)...)
		if len(ids) != 2 || ids[1] <= ids[0] {
			t.Fatalf("keys of shard 2 = %v; want a second one above", ids)
		}
		parts := shardingLayout.Parts(ids[1])
		if node := bwmarrin.ID(ids[1]).Node(); parts.Datacenter != 2 || parts.Worker != worker || node != 2 {
			t.Errorf("parts of %d = %+v, node %d; want the shard 2 in both, and the worker %d", ids[1], parts, node, worker)
		}
		var found shardOrder
		if err := db.Where("id = ?", ids[1].Int64()).Take(&found).Error; err != nil || found.Number != "B" {
			t.Errorf("order of the key %d alone = %+v, %v; want B", ids[1], found, err)
		}
	}
}

// shardGenerators returns a PrimaryKeyGeneratorFn with a generator for each shard. Without a
// key it returns 0, for which gorm.io/sharding inserts none.
func shardGenerators(t *testing.T, shards, worker int64) func(int64) int64 {
	t.Helper()
	gens := make([]*core.Generator, shards)
	for shard := range gens {
		gen, err := core.New(core.Config{Layout: shardingLayout, Datacenter: int64(shard), Worker: core.StaticWorker(worker)})
		must(t, err)
		t.Cleanup(func() { _ = gen.Close(context.Background()) })
		gens[shard] = gen
	}
	return func(shard int64) int64 {
		id, err := gens[shard].Next(context.Background())
		if err != nil {
			return 0
		}
		return id.Int64()
	}
}
