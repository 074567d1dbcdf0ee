package gormplugin

import (
	"errors"
	"fmt"
	"strings"

	"gorm.io/gorm"
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
// of text, and of types that the plugin does not fill stay as they are, and so do integer
// keys without a type in the tag, which GORM declares so by itself. Install the plugin first
// if it has [WithIntegerKeys].
//
// It changes what db has learned of the models, so call it with all models when the program
// starts, before they are used concurrently. It returns the error of a model that GORM
// cannot parse, or gorm.ErrInvalidDB.
func UseRowIDs(db *gorm.DB, models ...any) error {
	if db == nil || db.Config == nil || db.Dialector == nil {
		return fmt.Errorf("gormplugin: UseRowIDs: %w", gorm.ErrInvalidDB)
	}
	if !traitsOf(db).RowIDs {
		return nil
	}
	schemas, wrong := parse(db, models)
	if len(wrong) > 0 {
		return errors.Join(wrong...)
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
