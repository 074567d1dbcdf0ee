package gormplugin

import (
	"context"
	"path/filepath"
	"testing"

	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/snowkey/snowkey/types"
)

// slab is a source that allocates nothing itself.
type slab struct{ last types.Snowflake }

func (s *slab) Next(context.Context) (types.Snowflake, error) {
	s.last++
	return s.last, nil
}

func (s *slab) Fill(_ context.Context, ids []types.Snowflake) error {
	for i := range ids {
		s.last++
		ids[i] = s.last
	}
	return nil
}

func TestAssigningAllocatesNothingPerRow(t *testing.T) {
	db, err := gorm.Open(sqlite.Open(filepath.Join(t.TempDir(), "test.db")), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		t.Fatalf("gorm.Open = %v; want no error", err)
	}
	pool, err := db.DB()
	if err != nil {
		t.Fatalf("DB = %v; want no error", err)
	}
	defer func() { _ = pool.Close() }()
	in := &installation{src: &slab{}}
	type Row struct {
		Model
		Pointer *types.Snowflake
	}
	allocations := func(n int) float64 {
		list := make([]Row, n)
		tx := db.Session(&gorm.Session{DryRun: true}).Create(&list) // sets up a statement; the plugin is not installed
		if tx.Error != nil {
			t.Fatalf("Create = %v; want no error", tx.Error)
		}
		got := testing.AllocsPerRun(20, func() {
			for i := range list {
				list[i].ID = 0
			}
			if _, err := in.fill(tx.Statement); err != nil {
				t.Fatalf("fill = %v; want no error", err)
			}
		})
		if list[n-1].ID == 0 {
			t.Fatalf("fill left row %d without a key", n-1)
		}
		return got
	}
	if few, many := allocations(2), allocations(1000); many > few {
		t.Errorf("allocations for 1000 rows = %v; want no more than %v, those for 2", many, few)
	}
}
