package gormplugin

import (
	"fmt"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"
)

// UseRowIDs makes AutoMigrate and CreateTable declare the keys of models as integer
// on SQLite. So the key is the rowid, by which SQLite stores a table. The package's
// key type says bigint. SQLite keeps such a key in an index beside the table. That
// is slower to insert, and the file is larger. On other databases UseRowIDs does
// nothing, so the same program migrates both:
//
//	models := []any{&Order{}, &Item{}}
//	err := errors.Join(gormplugin.UseRowIDs(db, models...), db.AutoMigrate(models...))
//
// A tag type:integer does not help: on PostgreSQL it means 32 bits.
//
// It concerns tables that are made from then on. AutoMigrate leaves the key of an
// existing one alone. For that, package schemacheck has the steps. Keys of several
// columns and of text stay as they are. So do those that are not of this package's
// kind.
//
// It changes what db has learnt of the models. Call it with all models when the
// program starts, before they are used concurrently. The error is that of a model
// that GORM cannot parse, or gorm.ErrInvalidDB.
func UseRowIDs(db *gorm.DB, models ...any) error {
	if db == nil || db.Config == nil || db.Dialector == nil {
		return fmt.Errorf("gormplugin: UseRowIDs: %w", gorm.ErrInvalidDB)
	}
	if db.Name() != sqliteName {
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
	// This comes after all are parsed, because a foreign key copies the type of the
	// key it refers to. The order of the models must not make a difference.
	for _, s := range schemas {
		for _, f := range s.PrimaryFields {
			if canBeRowID(f) && strings.EqualFold(string(f.DataType), "bigint") {
				f.DataType = "integer"
			}
		}
	}
	return nil
}

// canBeRowID reports whether f is a key of ours, alone, and a number.
func canBeRowID(f *schema.Field) bool {
	return numeric(f) && f.PrimaryKey && len(f.Schema.PrimaryFields) == 1 && (ours(f) || tagged(f))
}
