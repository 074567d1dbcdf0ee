package gormplugin_test

import (
	"errors"
	"testing"

	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/snowkey/snowkey/types"
)

type node struct {
	ID       types.Snowflake
	ParentID types.NullSnowflake
	OwnerID  types.ID[node]
}

// GORM drops the error of Value in a condition that is a map or a struct.
func TestANegativeKeyInAConditionIsAnErrorAndNotNULL(t *testing.T) {
	db, err := gorm.Open(sqlite.Open(":memory:"), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		t.Fatal(err)
	}
	pool, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	pool.SetMaxOpenConns(1)
	for _, statement := range []string{
		"CREATE TABLE nodes (id INTEGER PRIMARY KEY, parent_id INTEGER, owner_id INTEGER)",
		"INSERT INTO nodes VALUES (1, NULL, NULL), (2, 1, NULL)",
	} {
		if _, err := pool.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	negative := types.NullSnowflake{Snowflake: -1, Valid: true}
	for name, call := range map[string]*gorm.DB{
		"Where a map":       db.Where(map[string]any{"parent_id": types.Snowflake(-1)}),
		"Where a list":      db.Where(map[string]any{"parent_id": []types.Snowflake{-1, -2}}),
		"Where a typed key": db.Where(map[string]any{"owner_id": types.ID[node](-1)}),
		"Where a struct":    db.Where(node{ParentID: negative}),
		"Not":               db.Not(map[string]any{"parent_id": negative}),
	} {
		if err := call.Session(&gorm.Session{}).Delete(&node{}).Error; !errors.Is(err, types.ErrRange) {
			t.Errorf("Delete by %s with a negative key = %v; want ErrRange", name, err)
		}
		var left int64
		if err := db.Model(&node{}).Count(&left).Error; err != nil || left != 2 {
			t.Fatalf("after Delete by %s %d rows are left, %v; want 2", name, left, err)
		}
	}
}
