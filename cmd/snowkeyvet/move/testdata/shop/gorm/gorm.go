// Package gorm stands for GORM in tests.
package gorm

type Model struct {
	ID uint `gorm:"primarykey"`
}

type DB struct{ Error error }

func Open(dsn string) (*DB, error) { return &DB{}, nil }

func (db *DB) Where(query any, args ...any) *DB { return db }

func (db *DB) First(dest any, conds ...any) *DB { return db }

func (db *DB) Limit(n uint) *DB { return db }

func (db *DB) AutoMigrate(dst ...any) error { return nil }
