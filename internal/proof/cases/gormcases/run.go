// Package gormcases tests what gormplugin and schemacheck do on a database. The two
// packages run the tests on SQLite, package servers on servers.
package gormcases

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	"gorm.io/gorm/schema"

	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/types"
)

// A Target is a database to run the cases on.
type Target struct {
	// Database returns a function that opens the database for t with a config,
	// without the plugin. It is the same database each time. Table names of two
	// cases never meet.
	Database func(t *testing.T) func(*gorm.Config) *gorm.DB
	// Returning says whether an INSERT can return columns.
	Returning bool
	// Options are the plugin's options.
	Options []gormplugin.Option
	// Runs says how many seeds the random cases play, unless -gormcases.runs does. 0: 2.
	Runs int
}

// Run runs the cases of the plugin on target.
func Run(t *testing.T, target Target) {
	t.Helper()
	run(t, target, "c", cases())
}

// RunChecks runs those of schemacheck and of docs/migrating.md.
func RunChecks(t *testing.T, target Target) {
	t.Helper()
	run(t, target, "k", checks())
}

func run(t *testing.T, target Target, prefix string, list []testCase) {
	t.Helper()
	for i, c := range list {
		t.Run(c.claim, func(t *testing.T) {
			c.run(target.env(t, fmt.Sprintf("%s%d_", prefix, i)))
		})
	}
}

// env returns what a case works with, whose tables have a prefix.
func (target Target) env(t *testing.T, prefix string) *env {
	t.Helper()
	e := &env{T: t, target: target, prefix: prefix, src: &counter{}, database: target.Database(t)}
	e.db = e.with(e.src)
	return e
}

// checks returns the cases of schemacheck and of docs/migrating.md.
func checks() []testCase {
	return slices.Concat(rowCases(modelRows()), rowCases(tableRows()), rowCases(signRows()), rowCases(stepRows()), checkCases, rowCases(repairRows()), rowCases(keepRows()), repairCases,
		rowCases(integerRows()), integerChecks, migratingCases, backCases)
}

// cases returns the cases of the plugin.
func cases() []testCase {
	return slices.Concat(assignCases, mapCases, graphCases, keyCases(), otherCases(), fieldCases, statementCases, sourceCases, upsertCases, scopeCases,
		transactionCases, impossibleCases, keylessCases, propertyCases, referenceCases, shardCases,
	)
}

type testCase struct {
	claim string
	run   func(e *env)
}

// An env is what a case works with.
type env struct {
	*testing.T
	target   Target
	database func(*gorm.Config) *gorm.DB
	prefix   string
	src      *counter
	db       *gorm.DB // with the plugin
	log      recorder
	ran      []string // steps of docs/migrating.md
	between  func()   // called between its statements
	sqlMode  string   // of the sessions that repair, on MySQL
	byDesign bool     // Check's findings that are by design count
	looks    int      // at the tables
}

// open opens the target with config, its tables named for the case and its SQL
// recorded.
func (e *env) open(config *gorm.Config) *gorm.DB {
	e.Helper()
	config.NamingStrategy = schema.NamingStrategy{TablePrefix: e.prefix, IdentifierMaxLength: 60}
	config.Logger = &e.log
	return e.database(config)
}

// use installs a plugin that asks src on db.
func (e *env) use(db *gorm.DB, src gormplugin.Source, options ...gormplugin.Option) *gorm.DB {
	e.Helper()
	e.ok("Use", db.Use(gormplugin.New(src, append(options, e.target.Options...)...)))
	return db
}

// with opens the target again, with such a plugin.
func (e *env) with(src gormplugin.Source, options ...gormplugin.Option) *gorm.DB {
	e.Helper()
	return e.use(e.open(&gorm.Config{}), src, options...)
}

func (e *env) migrate(models ...any) {
	e.Helper()
	e.ok("AutoMigrate", e.db.AutoMigrate(models...))
	e.log.reset()
}

// must fails the test unless the statement went well.
func (e *env) must(tx *gorm.DB) {
	e.Helper()
	if tx.Error != nil {
		e.Fatalf("statement = %v; want no error", tx.Error)
	}
}

// ok fails the test if what was called returned an error.
func (e *env) ok(what string, err error) {
	e.Helper()
	if err != nil {
		e.Fatalf("%s = %v; want no error", what, err)
	}
}

// fails fails the test unless the statement returned an error that is want.
func (e *env) fails(tx *gorm.DB, want error) {
	e.Helper()
	if !errors.Is(tx.Error, want) {
		e.Fatalf("statement = %v; want an error that is %q", tx.Error, want)
	}
}

// keys returns the values of a column, in order. It reads the rows of a table in
// which another column has a value.
func (e *env) keys(table, column, where string, value any) []int64 {
	e.Helper()
	var list []int64
	tx := e.db.Table(e.prefix+table).Where(where+" = ?", value).Order(column).Pluck(column, &list)
	e.must(tx)
	return list
}

// stored fails the test unless exactly one row of table has value in the column
// where. The id of that row is want, which is not zero.
func (e *env) stored(table, where string, value any, want types.Snowflake) {
	e.Helper()
	if got := e.keys(table, "id", where, value); want == 0 || !slices.Equal(got, []int64{want.Int64()}) {
		e.Errorf("%s with %s %v has ids %d; want the one in memory, %d, and not 0", table, where, value, got, want)
	}
}

func (e *env) count(table string, want int64) {
	e.Helper()
	var got int64
	e.must(e.db.Table(e.prefix + table).Count(&got))
	if got != want {
		e.Errorf("rows of %s = %d; want %d", table, got, want)
	}
}

func equal[T any](e *env, what string, got, want T) {
	e.Helper()
	if !reflect.DeepEqual(got, want) {
		e.Errorf("%s = %v; want %v", what, got, want)
	}
}

// fresh fails the test unless id was given out by the source.
func (e *env) fresh(what string, id types.Snowflake) {
	e.Helper()
	if !e.src.gave(id) {
		e.Errorf("%s = %d; want a key of the source", what, id)
	}
}

// A counter is a source with large keys. It counts what it is asked for, and
// fails from the given key on.
type counter struct {
	mu     sync.Mutex
	last   types.Snowflake
	fills  int
	failAt int // the number of the key from which on it fails; 0: never
	given  int
	err    error
	first  types.Snowflake // no key is at or below it; 0: firstKey
}

const (
	firstKey types.Snowflake = 1 << 60
	keyStep  types.Snowflake = 4096
)

func (c *counter) Next(ctx context.Context) (types.Snowflake, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.next(ctx)
}

func (c *counter) next(ctx context.Context) (types.Snowflake, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if c.given++; c.failAt > 0 && c.given >= c.failAt {
		return 0, c.err
	}
	if c.last == 0 {
		c.last = cmp.Or(c.first, firstKey)
	}
	c.last += keyStep
	return c.last, nil
}

func (c *counter) Fill(ctx context.Context, ids []types.Snowflake) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fills++
	for i := range ids {
		id, err := c.next(ctx)
		if err != nil {
			clear(ids)
			return err
		}
		ids[i] = id
	}
	return nil
}

func (c *counter) gave(id types.Snowflake) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := cmp.Or(c.first, firstKey)
	return id > first && id <= c.last && (id-first)%keyStep == 0
}

// A recorder is a logger that keeps the SQL.
type recorder struct {
	mu  sync.Mutex
	sql []string
}

func (r *recorder) LogMode(logger.LogLevel) logger.Interface { return r }
func (r *recorder) Info(context.Context, string, ...any)     {}
func (r *recorder) Warn(context.Context, string, ...any)     {}
func (r *recorder) Error(context.Context, string, ...any)    {}
func (r *recorder) Trace(_ context.Context, _ time.Time, fc func() (string, int64), _ error) {
	text, _ := fc()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sql = append(r.sql, text)
}

func (r *recorder) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sql = nil
}

// statements returns the recorded statements that begin with verb.
func (r *recorder) statements(verb string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []string
	for _, s := range r.sql {
		if strings.HasPrefix(strings.TrimLeft(s, "("), verb) {
			list = append(list, s)
		}
	}
	return list
}
