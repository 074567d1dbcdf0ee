// Package gorm stands for GORM in tests.
package gorm

type Model struct {
	ID uint `gorm:"primarykey"`
}

type DB struct{ Error error }

type Interface[T any] struct{}

func Open(dsn string) (*DB, error) { return &DB{}, nil }

func G[T any](db *DB) Interface[T] { return Interface[T]{} }

func (db *DB) Where(query any, args ...any) *DB { return db }

func (db *DB) First(dest any, conds ...any) *DB { return db }

func (db *DB) Find(dest any, conds ...any) *DB { return db }

func (db *DB) Create(value any) *DB { return db }

func (db *DB) Model(value any) *DB { return db }

func (db *DB) Limit(n uint) *DB { return db }

func (db *DB) AutoMigrate(dst ...any) error { return nil }
