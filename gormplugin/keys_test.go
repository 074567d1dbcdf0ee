package gormplugin

import (
	"context"
	"errors"
	"math/bits"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	"gorm.io/gorm/schema"

	"github.com/snowkey/snowkey/types"
)

func TestIntegerKeysOf32BitsAreRefused(t *testing.T) {
	type Uint struct{ ID uint }
	type Int struct{ ID *int }
	type Wide struct{ ID uint64 }
	type Child struct {
		ID     int64
		WideID uint
		Wide   *Wide
	}
	for model, field := range map[any]string{&Uint{}: "Uint.ID", &Int{}: "Int.ID", &Child{}: "Child.WideID", &Wide{}: ""} {
		s, err := schema.Parse(model, &sync.Map{}, schema.NamingStrategy{})
		if err != nil {
			t.Fatalf("Parse(%T) = %v; want no error", model, err)
		}
		p := policy{integers: true}.plan(s)
		refused := bits.UintSize == 32 && field != "" // run it with GOARCH=386
		if e := (*ModelError)(nil); errors.As(p.err, &e) != refused || refused && !strings.Contains(e.Error(), field) {
			t.Errorf("plan(%T) with %d bits = %v; want it refused: %v", model, bits.UintSize, p.err, refused)
		}
	}
}

// The key of a racedDetail is a foreign key, which is known once racedDoc is parsed.
type (
	racedDoc struct {
		gorm.Model
		Detail *racedDetail
	}
	racedDetail struct {
		RacedDocID uint        `gorm:"primaryKey"`
		Notes      []racedNote `gorm:"foreignKey:DetailID"`
	}
	racedNote struct {
		ID         int64
		DetailID   uint
		RacedDocID uint
		RacedDoc   *racedDoc
	}
)

func TestFirstUseOfIntegerKeysByManyGoroutinesInventsNoForeignKey(t *testing.T) {
	pool, err := openModels(t).DB()
	if err != nil {
		t.Fatalf("DB = %v; want no error", err)
	}
	for range 200 {
		var last atomic.Int64
		source := SourceFunc(func(context.Context) (types.Snowflake, error) { return types.Snowflake(last.Add(1)), nil })
		plugin := New(source, WithIntegerKeys())
		db, err := gorm.Open(sqlite.New(sqlite.Config{Conn: pool}), &gorm.Config{Logger: logger.Discard, DryRun: true, SkipDefaultTransaction: true})
		if err = errors.Join(err, db.Use(plugin)); err != nil {
			t.Fatalf("set up = %v; want no error", err)
		}
		doc, detail, note := racedDoc{}, racedDetail{}, racedNote{}
		begin := make(chan struct{})
		var group sync.WaitGroup
		for value, want := range map[any]error{&doc: nil, &detail: ErrNoKey, &note: nil} {
			group.Go(func() {
				<-begin
				if err := db.Session(&gorm.Session{}).Create(value).Error; !errors.Is(err, want) {
					t.Errorf("Create(%T) = %v; want %v", value, err, want)
				}
			})
		}
		group.Go(func() {
			<-begin
			if err := plugin.Verify(db, &racedDetail{}, &racedDoc{}); err != nil {
				t.Errorf("Verify = %v; want no error", err)
			}
		})
		close(begin)
		group.Wait()
		if detail.RacedDocID != 0 || doc.ID == 0 || note.ID == 0 {
			t.Fatalf("keys of detail, doc and note = %d, %d and %d; want 0, which is a foreign key, and two of the source", detail.RacedDocID, doc.ID, note.ID)
		}
	}
}
