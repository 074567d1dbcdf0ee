package integration

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/snowkey/snowkey/gormplugin"
)

// With WithUnnest many rows go to PostgreSQL as arrays, and the others by VALUES. The
// tests here store the same rows with the option and without. Then they compare the
// tables, what is in memory, and the errors.

// unnestPool opens GORM on a pool, with the plugin and its options. It returns how many
// inserts had arrays so far.
func unnestPool(t *testing.T, pool gorm.ConnPool, config *gorm.Config, options ...gormplugin.Option) (*gorm.DB, func() int) {
	t.Helper()
	log := &insertCounter{Interface: logger.Discard}
	config.Logger = log
	db, err := gorm.Open(postgres.New(postgres.Config{Conn: pool}), config)
	must(t, err)
	must(t, db.Use(newPlugin(options...)))
	return db, log.arrays
}

// An insertCounter is a logger that counts the inserts with arrays.
type insertCounter struct {
	logger.Interface
	mu sync.Mutex
	n  int
}

func (c *insertCounter) LogMode(logger.LogLevel) logger.Interface { return c }

func (c *insertCounter) Trace(_ context.Context, _ time.Time, fc func() (string, int64), _ error) {
	if text, _ := fc(); strings.HasPrefix(text, "INSERT") && strings.Contains(text, ") SELECT unnest(") {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.n++
	}
}

func (c *insertCounter) arrays() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

func TestGormStoresValuesAsArraysAsItDoesByValues(t *testing.T) {
	values := bulkValues()
	list := slices.SortedFunc(maps.Keys(values), func(a, b reflect.Type) int { return strings.Compare(a.String(), b.String()) })
	for name, mode := range bulkModes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := sqlxPostgres(t, mode.driver, mode.parameters...)
			bulkTable(t, d.DB)
			plain, _ := unnestPool(t, d.DB.DB, &gorm.Config{})
			db, arrays := unnestPool(t, d.DB.DB, &gorm.Config{}, gormplugin.WithUnnest())
			random := bulkRandom(name)
			pairs := random.Perm(len(list) * len(bulkColumns))
			if *bulkPairs > 0 {
				pairs = pairs[:min(*bulkPairs, len(pairs))]
			}
			for _, column := range []string{"timestamptz", "timestamp", "date"} { // where most differs
				pairs = append(pairs, slices.Index(list, reflect.TypeFor[time.Time]())*len(bulkColumns)+slices.Index(bulkColumns, column))
			}
			for _, pair := range pairs {
				typ, column := list[pair/len(bulkColumns)], pair%len(bulkColumns)
				unnestPair(t, random, plain, db, typ, values[typ], column)
			}
			if n := arrays(); n < len(pairs)/20 {
				t.Errorf("seed %d: %d pairs, %d inserts with arrays; want more", *bulkSeed, len(pairs), n)
			}
		})
	}
}

// unnestPair stores values in a column, with the option and without.
func unnestPair(t *testing.T, random *rand.Rand, plain, db *gorm.DB, typ reflect.Type, values []any, column int) {
	t.Helper()
	var good, bad []any
	for _, v := range values {
		if _, err := unnestStored(t, plain, []any{v}, column); err == nil {
			good = append(good, v)
		} else {
			bad = append(bad, v)
		}
	}
	try := func(list []any) {
		want, wantErr := unnestStored(t, plain, list, column)
		got, err := unnestStored(t, db, list, column)
		if !slices.Equal(got, want) || sqlState(err) != sqlState(wantErr) {
			t.Errorf("%v (%#v) to %s with the option = %q, %v; want %q, %v as without", typ, list, bulkColumns[column], got, err, want, wantErr)
		}
	}
	if len(good) > 0 {
		try(slices.Repeat(good, 1+12/len(good)))
	}
	if *bulkPairs > 0 && len(bad) > 3 {
		random.Shuffle(len(bad), reflect.Swapper(bad))
		bad = bad[:3]
	}
	for _, v := range bad {
		list := slices.Repeat([]any{v}, 12)
		for i := range min(11, len(good)) {
			list[i] = good[i]
		}
		try(list)
	}
}

// unnestStored creates rows with the values in a column. It returns what is stored, as
// text and in bytes, and takes it back.
func unnestStored(t *testing.T, db *gorm.DB, values []any, column int) (texts []string, failed error) {
	t.Helper()
	rows := make([]map[string]any, len(values))
	name := fmt.Sprintf("c%d", column)
	for i, v := range values {
		rows[i] = map[string]any{"id": i, name: v}
	}
	tx := db.Begin()
	must(t, tx.Error)
	defer tx.Rollback()
	if err := tx.Table("bulk").Create(rows).Error; err != nil {
		return nil, err
	}
	must(t, tx.Table("bulk").Order("id").Pluck(fmt.Sprintf("COALESCE('=' || %s::text, 'NULL')", name), &texts).Error)
	return texts, nil
}
