// Package lists hands its models to GORM as any.
package lists

import "gorm.io/gorm"

type (
	Invite   struct{ ID int }
	Photo    struct{ ID int }
	Sticker  struct{ ID int }
	Ban      struct{ ID int }
	Reaction struct{ ID int }
	Pin      struct{ ID int }
	Draft    struct{ ID int }

	// Page is no model.
	Page struct{ ID int }
)

// All is read in package main.
var All = []any{&Invite{}, new(Photo)}

// Migrate hands over what All does not name.
func Migrate(db *gorm.DB) {
	more := make([]any, 0, 1)
	more = append(more, &Sticker{})
	for _, m := range more {
		_ = db.AutoMigrate(m)
	}
	_ = db.AutoMigrate(others()...)
	db.Create(map[string]any{"id": 1})
}

func others() []any { return []any{any(&Ban{})} }

func create(db *gorm.DB, v any) { save(db, v) }

func save(db *gorm.DB, v any) { db.Create(v) }

func find[T any](db *gorm.DB, to *T) { db.Find(to) }

type item struct{ value any }

func use(db *gorm.DB, d *Draft) {
	create(db, &Reaction{})
	find(db, &Pin{})
	println(show(Page{ID: 1}))
	i := item{d}
	db.Create(i.value)
}

func show(v any) bool { return v != nil }
