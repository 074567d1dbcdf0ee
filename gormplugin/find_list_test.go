package gormplugin

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/types"
)

func TestStoredValuesAreReadAsThoseThatAreSent(t *testing.T) {
	const both = plainText | plainNumbers
	for _, test := range []struct {
		takes  plainness
		stored any
		want   any
	}{
		{plainText, "a", "a"},
		{plainText, []byte("a"), "a"},
		{plainNumbers, int64(7), int64(7)},
		{plainNumbers, uint64(7), int64(7)}, // an unsigned column of MySQL
		{plainNumbers, uint64(math.MaxInt64 + 1), nil},
		{plainNumbers, []byte("-7"), int64(-7)},
		{plainNumbers, []byte("7.0"), nil},
		{both, "7", "7"},
		{both, int64(7), int64(7)},
		{both, []byte("7"), nil}, // a BLOB of SQLite equals no text
		{both, 7.0, nil},
		{both, nil, nil},
	} {
		if got := test.takes.read(test.stored); got != test.want {
			t.Errorf("read(%#v) in a column that takes %d = %#v; want %#v", test.stored, test.takes, got, test.want)
		}
	}
}

func TestColumnsThatStoreValuesAsTheyAreSentAreKnown(t *testing.T) {
	for _, test := range []struct {
		database       *database
		typ, collation string
		want           plainness
	}{
		{&sqliteDatabase, "", "", plainText | plainNumbers},
		{&postgresDatabase, "text", "", plainText},
		{&postgresDatabase, "character varying(40)", "", plainText},
		{&postgresDatabase, "character varying(40)[]", "", 0},
		{&postgresDatabase, "text[]", "", 0},
		{&postgresDatabase, "character(4)", "", 0},
		{&postgresDatabase, "citext", "", 0},
		{&postgresDatabase, "bigint", "", plainNumbers},
		{&postgresDatabase, "numeric(6,2)", "", 0},
		{&mysqlDatabase, "varchar(40)", "utf8mb4_general_ci", plainText},
		{&mysqlDatabase, "varchar(40)", "latin1_swedish_ci", 0},
		{&mysqlDatabase, "varbinary(40)", "", 0},
		{&mysqlDatabase, "bigint(20) unsigned", "", plainNumbers},
		{&mysqlDatabase, "datetime(3)", "", 0},
	} {
		d := test.database
		c := uniqueColumn{typ: test.typ, collate: test.collation, form: dialect.FormOf(d.dialect, test.typ, test.collation)}
		if got := d.stores(&c); got != test.want {
			t.Errorf("%s on %v, %q: %d; want %d", test.typ, d.dialect, test.collation, got, test.want)
		}
	}
}

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
	first := make([]label, 2*manyRows)
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
