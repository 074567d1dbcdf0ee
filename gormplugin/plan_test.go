package gormplugin

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	"gorm.io/gorm/schema"

	"github.com/snowkey/snowkey/types"
)

// The key of a parsedDetail is a foreign key, which is known once parsedDoc is
// parsed. The way from parsedDetail leads there.
type (
	parsedDoc struct {
		ID     types.Snowflake
		Gate   *parsedGate
		Detail *parsedDetail
	}
	parsedGate struct {
		ID          types.Snowflake
		ParsedDocID types.Snowflake
	}
	parsedDetail struct {
		ParsedDocID types.Snowflake `gorm:"primaryKey"`
		Notes       []parsedNote    `gorm:"foreignKey:DetailID"`
	}
	parsedNote struct {
		ID          types.Snowflake
		DetailID    types.Snowflake
		ParsedDocID types.Snowflake
		ParsedDoc   *parsedDoc
	}
)

// parsedWait is what a goroutine that parses parsedGate waits for, if there is
// something.
var parsedWait atomic.Pointer[chan struct{}]

// TableName is called by a parser that is in the middle of parsedDoc.
func (parsedGate) TableName() string {
	if wait := parsedWait.Load(); wait != nil {
		<-*wait
	}
	return "gates"
}

// parsedDB returns a function that opens a database on which no model was used
// yet, and whose statements are not run.
func parsedDB(t *testing.T) func() *gorm.DB {
	t.Helper()
	pool, err := openModels(t).DB()
	if err != nil {
		t.Fatalf("DB = %v; want no error", err)
	}
	return func() *gorm.DB {
		db, err := gorm.Open(sqlite.New(sqlite.Config{Conn: pool}), &gorm.Config{Logger: logger.Discard, DryRun: true, SkipDefaultTransaction: true})
		if err != nil {
			t.Fatalf("gorm.Open = %v; want no error", err)
		}
		if err := db.Use(New(&slab{})); err != nil {
			t.Fatalf("Use = %v; want no error", err)
		}
		return db
	}
}

func TestCreateWaitsForModelsThatAnotherGoroutineParses(t *testing.T) {
	db := parsedDB(t)()
	synctest.Test(t, func(t *testing.T) {
		wait := make(chan struct{})
		parsedWait.Store(&wait)
		defer parsedWait.Store(nil)
		var doc parsedDoc
		var detail parsedDetail
		var group sync.WaitGroup
		group.Go(func() {
			if err := db.Create(&doc).Error; err != nil {
				t.Errorf("Create(doc) = %v; want no error", err)
			}
		})
		synctest.Wait() // parsedDoc is being parsed
		group.Go(func() {
			if err := db.Create(&detail).Error; !errors.Is(err, ErrNoKey) {
				t.Errorf("Create(detail) = %v; want ErrNoKey", err)
			}
		})
		synctest.Wait()
		close(wait)
		group.Wait()
		if detail.ParsedDocID != 0 || doc.ID == 0 {
			t.Errorf("keys of detail and doc = %d and %d; want 0, which is a foreign key, and one of the source", detail.ParsedDocID, doc.ID)
		}
	})
}

func TestFilledReturnsTheFieldsThatGetKeysTheKeyFirst(t *testing.T) {
	type Wrong struct {
		ID types.Snowflake `gorm:"snowflake:sometimes"`
	}
	type Parent struct{ ID types.Snowflake }
	type Child struct {
		Public   string `gorm:"snowflake"`
		ID       types.Snowflake
		ParentID types.Snowflake
		Parent   *Parent
		Other    types.Snowflake
	}
	for _, test := range []struct {
		model any
		want  []string
		fails bool
	}{
		{&Child{}, []string{"ID", "Public"}, false},
		{&struct{ ID uint }{}, nil, false},
		{&Wrong{}, nil, true},
	} {
		s, err := schema.Parse(test.model, &sync.Map{}, schema.NamingStrategy{})
		if err != nil {
			t.Fatalf("Parse(%T) = %v; want no error", test.model, err)
		}
		fields, err := Filled(nil, s)
		var names []string
		for _, f := range fields {
			names = append(names, f.Name)
		}
		if e := (*ModelError)(nil); !slices.Equal(names, test.want) || errors.As(err, &e) != test.fails {
			t.Errorf("Filled(%T) = %q, %v; want %q, and a ModelError to be %v", test.model, names, err, test.want, test.fails)
		}
	}
}
