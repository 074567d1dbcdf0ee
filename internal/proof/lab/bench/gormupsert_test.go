package main

import (
	"fmt"
	"runtime"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/types"
)

// How many rows one operation of BenchmarkUpsert sends.
const benchUpserts = 10_000

// A benchPerson has two unique columns beside its key.
type benchPerson struct {
	ID    types.Snowflake
	Email string `gorm:"size:40;uniqueIndex"`
	Phone string `gorm:"size:40;uniqueIndex"`
}

// benchPeople returns n people. Their keys are set if first is not zero.
func benchPeople(n int, first types.Snowflake) []benchPerson {
	list := make([]benchPerson, n)
	for i := range list {
		list[i] = benchPerson{Email: fmt.Sprintf("person-%06d@example.org", i), Phone: fmt.Sprintf("+49-30-%07d", i)}
		if first != 0 {
			list[i].ID = first + types.Snowflake(i)
		}
	}
	return list
}

var benchPeopleTable = []benchTable{{"bench_people", benchUpserts}}

// BenchmarkUpsert sends 10,000 rows with DO NOTHING, of which all, half or none are
// stored already. "plain" is GORM without the plugin, with keys that are set before.
func BenchmarkUpsert(b *testing.B) {
	for _, target := range benchGORMTargets {
		b.Run(target.name, func(b *testing.B) {
			keyed, plain := benchUpsertDatabase(b, target)
			for _, share := range []struct {
				name   string
				stored int // of 2
			}{{"none", 0}, {"half", 1}, {"all", 2}} {
				for _, variant := range []struct {
					name  string
					db    *gorm.DB
					first types.Snowflake
				}{{"plain", plain, 1 << 50}, {"snowkey", keyed, 0}} {
					b.Run(share.name+"/"+variant.name, func(b *testing.B) {
						benchUpsert(b, variant.db, share.stored, variant.first)
					})
				}
			}
		})
	}
}

// benchUpsertDatabase opens a database with the plugin and without, and makes the table.
func benchUpsertDatabase(b *testing.B, target gormTarget) (keyed, plain *gorm.DB) {
	b.Helper()
	dialector := target.dialector(b)
	keyed = benchDatabase(b, dialector(), gormplugin.New(newSnowkey(b, core.Default(), core.StaticWorker(0))))
	must(b, keyed.AutoMigrate(&benchPerson{}))
	return keyed, benchPlain(b, dialector())
}

func benchUpsert(b *testing.B, db *gorm.DB, stored int, first types.Snowflake) {
	b.Helper()
	once := func() {
		b.StopTimer()
		benchEmpty(b, db, benchPeopleTable)
		if stored > 0 {
			var before []benchPerson
			for i, p := range benchPeople(benchUpserts, 1) {
				if i%2 < stored {
					before = append(before, p)
				}
			}
			must(b, db.Create(&before).Error)
		}
		list := benchPeople(benchUpserts, first)
		runtime.GC()
		b.StartTimer()
		must(b, db.Clauses(clause.OnConflict{DoNothing: true}).Create(&list).Error)
		b.StopTimer()
		if first == 0 {
			for i, p := range list {
				if met := i%2 < stored; met != (p.ID == types.Snowflake(1+i)) || p.ID == 0 {
					b.Fatalf("row %d has the key %d; want that of the stored row: %v", i, p.ID, met)
				}
			}
		}
		b.StartTimer()
	}
	once()
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		once()
	}
	b.StopTimer()
}
