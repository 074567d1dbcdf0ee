// Package gorm stands for GORM in tests.
package gorm

type Model struct {
	ID uint `gorm:"primarykey"`
}

type DB struct{ Error error }

func (db *DB) Find(dest any, conds ...any) *DB { return db }
