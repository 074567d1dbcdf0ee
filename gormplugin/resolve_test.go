package gormplugin

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	"github.com/snowkey/snowkey/types"
)

// A poolWithoutJSON is a SQLite that was built without JSON.
type poolWithoutJSON struct {
	gorm.ConnPool
	refused int
}

func (p *poolWithoutJSON) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if strings.Contains(query, "json_each(") {
		p.refused++
		return nil, errors.New("no such table: json_each")
	}
	return p.ConnPool.QueryContext(ctx, query, args...)
}

func TestLargeUpsertNeedsNoJSON(t *testing.T) {
	type label struct {
		ID   types.Snowflake
		Text string `gorm:"uniqueIndex"`
	}
	db, err := gorm.Open(sqlite.Open(filepath.Join(t.TempDir(), "db")), &gorm.Config{Logger: logger.Discard, SkipDefaultTransaction: true})
	if err != nil {
		t.Fatal(err)
	}
	pool := &poolWithoutJSON{ConnPool: db.ConnPool}
	db.ConnPool, db.Statement.ConnPool = pool, pool
	last := types.Snowflake(0)
	source := SourceFunc(func(context.Context) (types.Snowflake, error) { last++; return last, nil })
	first := make([]label, 40)
	for i := range first {
		first[i].Text = fmt.Sprint(i)
	}
	if err := errors.Join(db.Use(New(source)), db.AutoMigrate(&label{}), db.Create(&first).Error); err != nil {
		t.Fatal(err)
	}
	again := make([]label, len(first))
	for i := range again {
		again[i].Text = first[i].Text
	}
	if err := db.Clauses(clause.OnConflict{DoNothing: true}).Create(&again).Error; err != nil || pool.refused != 1 {
		t.Fatalf("Create = %v, after %d refusals; want no error after 1", err, pool.refused)
	}
	for i := range again {
		if again[i].ID != first[i].ID {
			t.Errorf("row %d has the key %d; want %d", i, again[i].ID, first[i].ID)
		}
	}
}
