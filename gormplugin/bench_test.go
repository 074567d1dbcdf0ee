package gormplugin

import (
	"context"
	"fmt"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/types"
)

type benchItem struct {
	ID       types.Snowflake
	OrderID  types.Snowflake
	SKU      string
	Quantity int
}

// benchSources returns a source that costs next to nothing, and generators without and with
// shards. Their layout has so many numbers per tick that they never wait.
func benchSources(b *testing.B) map[string]Source {
	b.Helper()
	layout := core.Layout{Epoch: time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC), Unit: time.Millisecond, TimeBits: 41, WorkerBits: 3, SequenceBits: 19}
	sources := map[string]Source{"free": &slab{}}
	for name, bits := range map[string]int{"generator": 0, "shards": 4} {
		layout.ShardBits = bits
		gen, err := core.New(core.Config{Layout: layout, Worker: core.StaticWorker(int64(bits))})
		if err != nil {
			b.Fatalf("core.New = %v; want no error", err)
		}
		b.Cleanup(func() {
			if err := gen.Close(context.Background()); err != nil {
				b.Errorf("Close = %v; want no error", err)
			}
		})
		sources[name] = gen
	}
	return sources
}

// reportRows divides what was measured by the rows of one operation.
func reportRows(b *testing.B, rows int) {
	b.Helper()
	n := float64(b.N) * float64(rows)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/n, "ns/row")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkAssignment is what the first callback adds to a Create of n rows.
func BenchmarkAssignment(b *testing.B) {
	db := openModels(b)
	for name, src := range benchSources(b) {
		for _, n := range []int{1, 100, 5000} {
			list := make([]benchItem, n)
			pointers := make([]*benchItem, n)
			for i := range list {
				pointers[i] = &list[i]
			}
			for shape, value := range map[string]any{"structs": &list, "pointers": &pointers} {
				tx := db.Session(&gorm.Session{DryRun: true}).Create(value) // sets up a statement; the plugin is not installed
				if tx.Error != nil {
					b.Fatalf("Create = %v; want no error", tx.Error)
				}
				in := &installation{plugin: New(src)}
				b.Run(fmt.Sprintf("%s/%s/n=%d", name, shape, n), func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						for i := range list {
							list[i].ID = 0
						}
						if _, err := fill(in, tx.Statement); err != nil {
							b.Fatalf("fill = %v; want no error", err)
						}
					}
					reportRows(b, n)
				})
			}
		}
	}
}
