package gormplugin_test

import (
	"context"
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/gormplugin"
)

// row is the row of a store of segments in memory.
type row struct{ next int64 }

func (r *row) Take(_ context.Context, t segment.Take) (segment.Range, error) {
	first := r.next
	r.next += max(t.Count, 2)
	return segment.Range{First: first, Last: r.next - 1, Stride: 1, Version: r.next, Step: 2}, nil
}

func (*row) GiveBack(context.Context, segment.GiveBack) error { return nil }

func TestSegmentsFillIntegerKeysUpToTheLast(t *testing.T) {
	type Row struct {
		gorm.Model
		Name string
	}
	allocator, err := segment.New(&row{1<<53 - 4}, segment.Config{Tag: "rows", Hold: -1})
	if err != nil {
		t.Fatalf("segment.New = %v; want no error", err)
	}
	defer func() { _ = allocator.Close(t.Context()) }()
	db, plugin := open(t), gormplugin.New(allocator, gormplugin.WithIntegerKeys())
	if err := errors.Join(db.Use(plugin), db.AutoMigrate(&Row{}), plugin.Verify(db, &Row{})); err != nil {
		t.Fatalf("set up = %v; want no error", err)
	}
	list := make([]Row, 3)
	if err := db.Create(&list).Error; err != nil || uint64(list[0].ID) != 1<<53-4 || uint64(list[2].ID) != 1<<53-2 {
		t.Errorf("Create = %v with the keys %d to %d; want no error and the numbers of the allocator", err, list[0].ID, list[2].ID)
	}
	// An allocator does not say how far it goes, so each key is looked at.
	if err := db.Create(&list).Error; err == nil {
		t.Error("Create of stored rows = nil; want a duplicate")
	}
	more := make([]Row, 2)
	if err := db.Create(&more).Error; !errors.Is(err, gormplugin.ErrWideKey) || more[0].ID != 0 {
		t.Errorf("Create beyond 53 bits = %v with the key %d; want ErrWideKey and 0", err, more[0].ID)
	}
}
