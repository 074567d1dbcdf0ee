package gormcases

import (
	"context"
	"strings"
	"sync/atomic"

	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/gormplugin/schemacheck"
	"github.com/snowkey/snowkey/types"
)

// firstInteger is below the keys of a source for integers, which have 53 bits.
const firstInteger = 1 << 50

// integers makes the plugin of the case one with integer keys.
func (e *env) integers() {
	e.Helper()
	e.src = &counter{first: firstInteger}
	e.db = e.with(e.src, gormplugin.WithIntegerKeys())
}

// An Entry has a key as the database counts them.
type Entry struct {
	ID    uint
	Name  string `gorm:"size:40"`
	Lines []EntryLine
}

// An EntryLine belongs to an [Entry].
type EntryLine struct {
	ID      uint
	EntryID uint
}

// integerRows are tables of a program with integer keys.
func integerRows() []checkRow {
	entries := []any{&Entry{}, &EntryLine{}}
	return []checkRow{
		{
			// Adding autoIncrement:false would switch the option off.
			claim: "CheckEndsTheCountingBesideIntegerKeys", integers: true, models: entries,
			tables: `entries (id $uint, name varchar(40));
				entry_lines (id $uint, entry_id $unsigned, FOREIGN KEY (entry_id) REFERENCES PRE_entries (id));
				INSERT INTO PRE_entries (name) VALUES ('raw')`,
			finds: []expected{{what: counts + "ID", says: "AutoMigrate leaves it so, but lets new tables count"}, {what: counts + "ID", says: "AutoMigrate leaves it so, but lets new tables count"}},
		},
		{
			claim: "CheckFindsColumnsThatAreNarrowerThanIntegerKeys", on: "!sqlite", integers: true, models: entries,
			tables: `entries (id $int, name varchar(40));
				entry_lines (id $int, entry_id $ref, FOREIGN KEY (entry_id) REFERENCES PRE_entries (id))`,
			finds: []expected{
				{what: narrow + "ID"}, {counts + "ID", "", mended, "mysql"}, {counts + "ID", "", statements, "postgres"},
				{narrow + "EntryID", "", mended, "mysql"}, {narrow + "EntryID", "", statements, "postgres"},
				{what: narrow + "ID"}, {counts + "ID", "", mended, "mysql"}, {counts + "ID", "", statements, "postgres"},
			},
		},
	}
}

var integerChecks = []testCase{
	{"CountingMeetsIntegerKeysUntilItEnds", func(e *env) {
		last := atomic.Int64{}
		last.Store(1 << 50)
		e.db = e.with(gormplugin.SourceFunc(func(context.Context) (types.Snowflake, error) { return types.Snowflake(last.Add(1)), nil }), gormplugin.WithIntegerKeys())
		e.migrate(&Entry{}, &EntryLine{})
		e.must(e.db.Create(&Entry{Name: "A", Lines: []EntryLine{{}}}))
		e.ddl("INSERT INTO PRE_entries (name) VALUES ('raw')")
		b := Entry{Name: "B"}
		last.Store(1<<50 + 1) // the next key is the one after that of A
		switch err, key := e.db.Create(&b).Error, e.keys("entries", "id", "name", "raw")[0]; {
		case e.postgres() && (key != 1 || err != nil):
			e.Errorf("a key that PostgreSQL counts = %d, and Create = %v; want 1 and no error", key, err)
		case !e.postgres() && (key != 1<<50+2 && key != 1<<50+1 || err == nil):
			e.Errorf("a key that the database counts = %d, and Create = %v; want the next of the source, and a duplicate", key, err)
		}
		last.Store(1 << 51)
		models := []any{&Entry{}, &EntryLine{}}
		e.mends(nil, models...)
		e.migrate(models...) // does not put it back
		e.finds(models)
		e.countsNoMore(e.prefix + "entries")
		e.must(e.db.Create(&Entry{Name: "C", Lines: []EntryLine{{}}}))
	}},
	{"CheckFindsOnlyThatTheDatabaseCountsInFreshTablesOfIntegerKeys", func(e *env) {
		e.integers()
		newWorld(e)
		for _, f := range e.check(e.db, randomModels...) {
			if f.Problem != schemacheck.Counted {
				e.Errorf("Check found %v; want only that the database counts", f)
			}
		}
		plain := e.with(e.src)
		var keys []string
		for _, f := range e.check(plain, randomModels...) {
			if f.Problem == schemacheck.NoKey {
				keys = append(keys, f.Table+"."+f.Column)
			}
		}
		// The key of a stamp says autoIncrement.
		equal(e, "keys that a plugin without the option does not fill", strings.ReplaceAll(strings.Join(keys, " "), e.prefix, ""), "marks.id places.id")
	}},
}
