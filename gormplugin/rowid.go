package gormplugin

import (
	"fmt"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"
)

// UseRowIDs makes AutoMigrate and CreateTable declare the keys of models as integer on
// SQLite. The key is then the rowid, by which SQLite stores a table. A key declared as
// bigint, as types.Snowflake is, has an index beside the table, which makes inserts slower
// and the file larger. On other databases UseRowIDs does nothing, so the same program
// migrates both:
//
//	models := []any{&Order{}, &Item{}}
//	err := errors.Join(gormplugin.UseRowIDs(db, models...), db.AutoMigrate(models...))
//
// A tag type:integer is no substitute, because on PostgreSQL it means 32 bits.
//
// UseRowIDs concerns tables that are made afterwards. AutoMigrate leaves the key of an
// existing table alone; package schemacheck has the steps for it. Keys of several columns,
// of text, and of types that the plugin does not fill stay as they are.
//
// It changes what db has learned of the models, so call it with all models when the program
// starts, before they are used concurrently. It returns the error of a model that GORM
// cannot parse, or gorm.ErrInvalidDB.
func UseRowIDs(db *gorm.DB, models ...any) error {
	if db == nil || db.Config == nil || db.Dialector == nil {
		return fmt.Errorf("gormplugin: UseRowIDs: %w", gorm.ErrInvalidDB)
	}
	if !databaseOf(db).rowIDs {
		return nil
	}
	var schemas []*schema.Schema
	for _, m := range models {
		stmt := &gorm.Statement{DB: db}
		if err := stmt.Parse(m); err != nil {
			return fmt.Errorf("gormplugin: UseRowIDs: %T: %w", m, err)
		}
		schemas = append(schemas, stmt.Schema)
	}
	keys := policyOf(db)
	// Only after all models are parsed, because a foreign key copies the type of the key
	// that it refers to, and the order of the models must not make a difference.
	for _, s := range schemas {
		for _, f := range s.PrimaryFields {
			if len(s.PrimaryFields) == 1 && keys.key(f) && strings.EqualFold(string(f.DataType), "bigint") {
				f.DataType = "integer"
			}
		}
	}
	return nil
}
