//go:build cgo

package gormplugin_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mattn/go-sqlite3"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	"github.com/snowkey/snowkey/core/coretest"
	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/types"
)

// A losing is SQLite whose next COMMIT is lost when it is armed: the server is done, or rolls back,
// and the connection is broken.
type losing struct {
	sqlite3.SQLiteDriver
	dsn string
	// armed is what becomes of the next COMMIT.
	armed atomic.Pointer[loss]
}

type loss struct {
	applied bool
	then    func() // or nil
}

func (l *losing) Driver() driver.Driver { return l }

func (l *losing) Connect(context.Context) (driver.Conn, error) {
	c, err := l.Open(l.dsn)
	if err != nil {
		return nil, err
	}
	return &losingConn{SQLiteConn: c.(*sqlite3.SQLiteConn), from: l}, nil
}

type losingConn struct {
	*sqlite3.SQLiteConn
	from *losing
	bad  bool
}

func (c *losingConn) IsValid() bool { return !c.bad }

func (c *losingConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	tx, err := c.SQLiteConn.BeginTx(ctx, opts)
	return &losingTx{tx, c}, err
}

type losingTx struct {
	driver.Tx
	conn *losingConn
}

func (tx *losingTx) Commit() error {
	lost := tx.conn.from.armed.Swap(nil)
	if lost == nil {
		return tx.Tx.Commit()
	}
	tx.conn.bad = true
	end := tx.Rollback
	if lost.applied {
		end = tx.Tx.Commit
	}
	if err := end(); err != nil {
		return err
	}
	if lost.then != nil {
		lost.then()
	}
	return io.ErrUnexpectedEOF
}

// txModels are the models of the tables that [openLosing] makes.
var txModels = []any{&txOrder{}, &txItem{}, &txText{}, &txPair{}, &txSoft{}, &txCounted{}}

// openLosing opens a database whose commits can be lost, with tables.
func openLosing(t *testing.T, config gorm.Config, parameters ...string) (*gorm.DB, *losing) {
	t.Helper()
	l := &losing{dsn: "file:" + filepath.Join(t.TempDir(), "test.db") + "?_busy_timeout=10000&_sync=0&_journal_mode=WAL" + strings.Join(parameters, "")}
	config.Logger = logger.Discard
	pool := sql.OpenDB(l)
	t.Cleanup(func() {
		if err := pool.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	db, err := gorm.Open(sqlite.New(sqlite.Config{Conn: pool}), &config)
	if err == nil {
		err = first(db.Use(gormplugin.New(coretest.NewGenerator(coretest.Config{}))), db.AutoMigrate(txModels...))
	}
	if err != nil {
		t.Fatal(err)
	}
	return db, l
}

// stored returns how many rows of a model are stored.
func stored(t *testing.T, db *gorm.DB, model any) (n int64) {
	t.Helper()
	if err := db.Model(model).Count(&n).Error; err != nil {
		t.Fatal(err)
	}
	return n
}

type (
	txOrder struct {
		ID     types.Snowflake
		Number string `gorm:"uniqueIndex"`
		Items  []txItem
		// hook runs after the create.
		Hook func(tx *gorm.DB) error `gorm:"-"`
	}
	txItem struct {
		ID        types.Snowflake
		TxOrderID types.Snowflake
	}
	txText struct {
		ID string `gorm:"primaryKey;snowflake"`
	}
	txPair struct {
		TenantID int64           `gorm:"primaryKey;autoIncrement:false"`
		ID       types.Snowflake `gorm:"primaryKey"`
	}
	txSoft struct {
		ID        types.Snowflake
		DeletedAt gorm.DeletedAt
	}
	txCounted struct {
		ID uint
	}
)

func (o *txOrder) AfterCreate(tx *gorm.DB) error {
	if o.Hook == nil {
		return nil
	}
	return o.Hook(tx)
}

// A txCase is a function for InTx, which is called anew for each run of InTx that the test makes.
type txCase struct {
	make    func() func(tx *gorm.DB) error
	unknown bool // no row proves what became of the transaction
}

// always returns a case whose rows are made inside of the function.
func always(fn func(tx *gorm.DB) error) txCase {
	return txCase{make: func() func(*gorm.DB) error { return fn }}
}

func (c txCase) isUnknown() txCase { c.unknown = true; return c }

var errUndone = errors.New("undone")

// create is tx.Create for an error.
func create(tx *gorm.DB, row any) error { return tx.Create(row).Error }

// first returns the first error.
func first(errs ...error) error { return errors.Join(errs...) }

var txCases = map[string]txCase{
	"rows made outside": {make: func() func(*gorm.DB) error {
		o := txOrder{Number: "a", Items: make([]txItem, 2)}
		return func(tx *gorm.DB) error { return create(tx, &o) }
	}},
	"rows made inside": always(func(tx *gorm.DB) error { return create(tx, &txOrder{Number: "a", Items: make([]txItem, 2)}) }),
	"a key set before": always(func(tx *gorm.DB) error { return create(tx, &txOrder{ID: 7, Number: "a"}) }),
	"a slice":          always(func(tx *gorm.DB) error { return create(tx, []*txItem{{}, {ID: 7}, {}}) }),
	"batches":          always(func(tx *gorm.DB) error { return tx.CreateInBatches(make([]txItem, 5), 2).Error }),
	"a map": always(func(tx *gorm.DB) error {
		return tx.Model(&txItem{}).Create(map[string]any{"tx_order_id": 7}).Error
	}),
	"a text for a key": always(func(tx *gorm.DB) error { return create(tx, &txText{}) }),
	"another text for a key": always(func(tx *gorm.DB) error {
		return create(tx, &txText{ID: "seven"})
	}).isUnknown(),
	"a key of two columns":              always(func(tx *gorm.DB) error { return create(tx, &txPair{TenantID: 1}) }),
	"a key of two columns, set before":  always(func(tx *gorm.DB) error { return create(tx, &txPair{TenantID: 1, ID: 7}) }).isUnknown(),
	"a table by name":                   always(func(tx *gorm.DB) error { return tx.Table("main.tx_items").Create(&txItem{}).Error }),
	"a key that the database counts":    always(func(tx *gorm.DB) error { return create(tx, &txCounted{}) }).isUnknown(),
	"raw SQL":                           always(func(tx *gorm.DB) error { return tx.Exec("INSERT INTO tx_items VALUES (7, 7)").Error }).isUnknown(),
	"nothing but the journal":           always(func(*gorm.DB) error { return nil }).isUnknown(),
	"FirstOrCreate":                     always(func(tx *gorm.DB) error { return tx.FirstOrCreate(&txOrder{}, txOrder{Number: "a"}).Error }),
	"Save":                              always(func(tx *gorm.DB) error { return tx.Save(&txOrder{Number: "a"}).Error }),
	"an association":                    always(func(tx *gorm.DB) error { return tx.Model(&txOrder{ID: 1}).Association("Items").Append(&txItem{}) }),
	"an upsert that inserts":            always(func(tx *gorm.DB) error { return tx.Clauses(doNothing).Create(&txOrder{Number: "a"}).Error }),
	"an upsert of a key that is set":    always(func(tx *gorm.DB) error { return tx.Clauses(doNothing).Create(&txOrder{ID: 9, Number: "a"}).Error }).isUnknown(),
	"an upsert that meets a stored row": always(func(tx *gorm.DB) error { return tx.Clauses(doNothing).Create(&txOrder{Number: "stored"}).Error }).isUnknown(),
	"an upsert that updates a stored row": always(func(tx *gorm.DB) error {
		return tx.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "number"}}, UpdateAll: true}).Create(&txOrder{Number: "stored"}).Error
	}).isUnknown(),
	"an upsert of both": always(func(tx *gorm.DB) error {
		return tx.Clauses(doNothing).Create([]*txOrder{{Number: "a"}, {Number: "stored"}}).Error
	}),
	"a hook": always(func(tx *gorm.DB) error {
		return tx.Clauses(doNothing).Create(&txOrder{Number: "stored", Hook: func(tx *gorm.DB) error { return create(tx, &txItem{}) }}).Error
	}),

	// Sessions of the transaction.
	"another context":     always(func(tx *gorm.DB) error { return create(tx.WithContext(context.Background()), &txItem{}) }),
	"a new session":       always(func(tx *gorm.DB) error { return create(tx.Session(&gorm.Session{NewDB: true}), &txItem{}) }),
	"prepared statements": always(func(tx *gorm.DB) error { return create(tx.Session(&gorm.Session{PrepareStmt: true}), &txItem{}) }),
	"a dry run": always(func(tx *gorm.DB) error {
		return create(tx.Session(&gorm.Session{DryRun: true}), &txItem{})
	}).isUnknown(),

	// Rows that are gone again prove nothing.
	"deleted": always(func(tx *gorm.DB) error {
		o := txOrder{Number: "a"}
		return first(create(tx, &o), tx.Delete(&o).Error)
	}).isUnknown(),
	"deleted by raw SQL": always(func(tx *gorm.DB) error {
		return first(create(tx, &txItem{}), tx.Exec("/* all */ delete from tx_items").Error)
	}).isUnknown(),
	"deleted by a query": always(func(tx *gorm.DB) error {
		var id []types.Snowflake
		return first(create(tx, &txItem{}), tx.Raw("DELETE FROM tx_items RETURNING id").Scan(&id).Error)
	}).isUnknown(),
	"deleted by a query into a model": always(func(tx *gorm.DB) error {
		var gone []txItem
		return first(create(tx, &txItem{}), tx.Raw("DELETE FROM tx_items RETURNING *").Find(&gone).Error)
	}).isUnknown(),
	"deleted, and others are there": always(func(tx *gorm.DB) error {
		rows := make([]txItem, 2)
		return first(create(tx, &rows[0]), create(tx, &rows[1]), tx.Delete(&rows[1]).Error)
	}),
	"deleted and created again": always(func(tx *gorm.DB) error {
		o := txOrder{Number: "a"}
		return first(create(tx, &o), tx.Delete(&o).Error, create(tx, &o))
	}),
	"another row deleted": always(func(tx *gorm.DB) error {
		return first(create(tx, &txItem{}), tx.Where("number = ?", "stored").Delete(&txOrder{}).Error)
	}),
	"replaced": always(func(tx *gorm.DB) error {
		return first(create(tx, &txOrder{Number: "a"}), tx.Exec("REPLACE INTO tx_orders VALUES (7, 'a')").Error)
	}).isUnknown(),
	"deleted softly": always(func(tx *gorm.DB) error {
		s := txSoft{}
		return first(create(tx, &s), tx.Delete(&s).Error)
	}),
	"under another key": always(func(tx *gorm.DB) error {
		i := txItem{}
		return first(create(tx, &i), tx.Model(&i).Update("ID", 7).Error)
	}).isUnknown(),
	"updated": always(func(tx *gorm.DB) error {
		o := txOrder{Number: "a"}
		return first(create(tx, &o), tx.Model(&o).Update("Number", "b").Error)
	}),

	// Savepoints.
	"nested": always(func(tx *gorm.DB) error {
		return tx.Transaction(func(tx *gorm.DB) error { return create(tx, &txItem{}) })
	}),
	"nested, rolled back": always(func(tx *gorm.DB) error {
		return undone(tx, func(tx *gorm.DB) error { return create(tx, &txItem{}) })
	}).isUnknown(),
	"nested, rolled back, and others are there": always(func(tx *gorm.DB) error {
		return first(create(tx, &txItem{}), undone(tx, func(tx *gorm.DB) error { return create(tx, &txItem{}) }))
	}),
	"nested, rolled back, and others follow": always(func(tx *gorm.DB) error {
		return first(undone(tx, func(tx *gorm.DB) error { return create(tx, &txItem{}) }), create(tx, &txItem{}))
	}),
	"nested twice, rolled back": always(func(tx *gorm.DB) error {
		return undone(tx, func(tx *gorm.DB) error {
			return tx.Transaction(func(tx *gorm.DB) error { return create(tx, &txItem{}) })
		})
	}).isUnknown(),
	"nested, with prepared statements, rolled back": always(func(tx *gorm.DB) error {
		return undone(tx.Session(&gorm.Session{PrepareStmt: true}), func(tx *gorm.DB) error { return create(tx, &txItem{}) })
	}).isUnknown(),
	"RollbackTo": always(func(tx *gorm.DB) error {
		return first(tx.SavePoint("here").Error, create(tx, &txItem{}), tx.RollbackTo("here").Error)
	}).isUnknown(),
	"ROLLBACK TO": always(func(tx *gorm.DB) error {
		return first(tx.Exec("SAVEPOINT here").Error, create(tx, &txItem{}), tx.Exec("rollback to here").Error)
	}).isUnknown(),
}

var doNothing = clause.OnConflict{DoNothing: true}

// undone runs fn in a nested transaction that is rolled back.
func undone(tx *gorm.DB, fn func(*gorm.DB) error) error {
	err := tx.Transaction(func(tx *gorm.DB) error { return first(fn(tx), errUndone) })
	if err.Error() != errUndone.Error() {
		return err
	}
	return nil
}

// Nothing is stored twice, and nil is returned if and only if all is stored. What is not known is
// said.
func TestInTxKnowsWhatBecameOfALostCommit(t *testing.T) {
	for _, config := range []gorm.Config{{}, {PrepareStmt: true}, {SkipDefaultTransaction: true, TranslateError: true}} {
		db, l := openLosing(t, config)
		if err := db.Exec("CREATE TABLE journal (run INTEGER)").Error; err != nil {
			t.Fatal(err)
		}
		for name, c := range txCases {
			for _, applied := range []bool{true, false} {
				about := fmt.Sprintf("InTx(%s), its commit was done: %v, prepared: %v", name, applied, config.PrepareStmt)
				for _, m := range append(slices.Clone(txModels), "journal") {
					table, _ := m.(string)
					if table == "" {
						stmt := gorm.Statement{DB: db}
						_ = stmt.Parse(m)
						table = stmt.Table
					}
					if err := db.Exec("DELETE FROM " + table).Error; err != nil {
						t.Fatal(err)
					}
				}
				if err := db.Exec("INSERT INTO tx_orders VALUES (1, 'stored')").Error; err != nil {
					t.Fatal(err)
				}
				fn, runs := c.make(), 0
				err := gormplugin.InTx(t.Context(), db, nil, func(tx *gorm.DB) error {
					runs++
					if runs == 1 {
						l.armed.Store(&loss{applied: applied})
					}
					return first(fn(tx), tx.Exec("INSERT INTO journal VALUES (?)", runs).Error)
				})
				l.armed.Store(nil)
				if errors.Is(err, gormplugin.ErrCommitUnknown) != c.unknown || err != nil && !c.unknown {
					t.Errorf("%s = %v; want ErrCommitUnknown: %v", about, err, c.unknown)
				}
				var e *gormplugin.UnknownError
				if c.unknown && (!errors.As(err, &e) || !errors.Is(err, io.ErrUnexpectedEOF) || len(e.Rows) > 0) {
					t.Errorf("%s = %v; want an *UnknownError without rows around the driver's", about, err)
				}
				want := 1
				if !applied && !c.unknown {
					want = 2
				}
				var journal []int
				if err := db.Raw("SELECT run FROM journal").Scan(&journal).Error; err != nil {
					t.Fatal(err)
				}
				if runs != want || !slices.Equal(journal, []int{runs}) && (applied || !c.unknown) {
					t.Errorf("%s took %d runs, and %v are stored; want %d, and the last", about, runs, journal, want)
				}
			}
		}
	}
}

// The same keys as the first time, in rows that are there from before.
func TestInTxKeepsKeysOfRowsMadeOutside(t *testing.T) {
	db, _ := openLosing(t, gorm.Config{})
	o := txOrder{Number: "a", Items: make([]txItem, 2)}
	var keys [][3]types.Snowflake
	var inside []types.Snowflake
	err := gormplugin.InTx(t.Context(), db, nil, func(tx *gorm.DB) error {
		i := txItem{}
		if err := first(create(tx, &o), create(tx, &i)); err != nil {
			return err
		}
		keys = append(keys, [3]types.Snowflake{o.ID, o.Items[0].ID, o.Items[1].ID})
		inside = append(inside, i.ID)
		if len(keys) < 3 {
			return fmt.Errorf("mine: %w", sqlite3.Error{Code: sqlite3.ErrBusy})
		}
		return nil
	})
	if err != nil || len(keys) != 3 || keys[0] != keys[2] || inside[0] == inside[2] {
		t.Errorf("InTx() = %v with the keys %v, and %v of rows made inside; want three runs, the same keys, and other keys", err, keys, inside)
	}
	if n := stored(t, db, &txItem{}); n != 3 {
		t.Errorf("items = %d; want 3", n)
	}
}

func TestInTxGivesUpAfterTenRuns(t *testing.T) {
	db, _ := openLosing(t, gorm.Config{})
	busy, runs := sqlite3.Error{Code: sqlite3.ErrBusy}, 0
	err := gormplugin.InTx(t.Context(), db, nil, func(*gorm.DB) error {
		return gormplugin.InTx(t.Context(), db, nil, func(*gorm.DB) error { runs++; return busy })
	})
	if want := "gormplugin: 10 attempts: "; !errors.Is(err, busy) || runs != 10 || err.Error() != want+busy.Error() {
		t.Errorf("InTx() = %v after %d runs; want %s%v after 10", err, runs, want, busy)
	}
}

func TestInTxSaysWhyItCannotBegin(t *testing.T) {
	db, _ := openLosing(t, gorm.Config{})
	bareDB, _ := openLosing(t, gorm.Config{})
	without, err := gorm.Open(bareDB.Dialector, &gorm.Config{Logger: logger.Discard})
	if err != nil {
		t.Fatal(err)
	}
	removed, _ := openLosing(t, gorm.Config{})
	if err := removed.Callback().Create().Remove("snowflake:ensure"); err != nil {
		t.Fatal(err)
	}
	failed := db.Session(&gorm.Session{})
	_ = failed.AddError(errUndone)
	tx := db.Begin()
	defer tx.Rollback()
	prepared := db.Session(&gorm.Session{PrepareStmt: true}).Begin()
	defer prepared.Rollback()
	never := func(*gorm.DB) error { t.Error("the function was called"); return nil }
	for name, c := range map[string]struct {
		db   *gorm.DB
		fn   func(*gorm.DB) error
		want error
	}{
		"nil":                          {nil, never, gorm.ErrInvalidDB},
		"the zero DB":                  {&gorm.DB{}, never, gorm.ErrInvalidDB},
		"a nil function":               {db, nil, gorm.ErrInvalidValue},
		"no plugin":                    {without, never, gormplugin.ErrNotInstalled},
		"a plugin without a callback":  {removed, never, gormplugin.ErrNotInstalled},
		"a failed session":             {failed, never, errUndone},
		"a transaction":                {tx, never, gormplugin.ErrInTransaction},
		"a transaction's session":      {tx.WithContext(t.Context()), never, gormplugin.ErrInTransaction},
		"a transaction that prepares":  {prepared, never, gormplugin.ErrInTransaction},
		"a transaction of a condition": {tx.Where("id = 1"), never, gormplugin.ErrInTransaction},
	} {
		err := gormplugin.InTx(t.Context(), c.db, nil, c.fn)
		if !errors.Is(err, c.want) {
			t.Errorf("InTx(%s) = %v; want %v", name, err, c.want)
		}
	}
	err = gormplugin.InTx(t.Context(), db, nil, func(tx *gorm.DB) error {
		return gormplugin.InTx(t.Context(), tx, nil, never)
	})
	if !errors.Is(err, gormplugin.ErrInTransaction) {
		t.Errorf("InTx(the tx of another) = %v; want ErrInTransaction", err)
	}
}

// A dry run begins and commits, as db.Transaction does, and sends nothing else.
func TestInTxOfADryRunStoresNothing(t *testing.T) {
	db, _ := openLosing(t, gorm.Config{})
	i := txItem{}
	err := gormplugin.InTx(t.Context(), db.Session(&gorm.Session{DryRun: true}), nil, func(tx *gorm.DB) error { return create(tx, &i) })
	if n := stored(t, db, &txItem{}); err != nil || n != 0 || i.ID == 0 {
		t.Errorf("InTx(dry run) = %v, %d rows, key %d; want nil, none, and a key", err, n, i.ID)
	}
}

// As in db.Transaction.
func TestInTxKeepsConditionsOfTheSession(t *testing.T) {
	db, _ := openLosing(t, gorm.Config{})
	if err := create(db, []*txItem{{TxOrderID: 1}, {TxOrderID: 2}}); err != nil {
		t.Fatal(err)
	}
	counts := map[string][]int64{}
	count := func(name string) func(tx *gorm.DB) error {
		return func(tx *gorm.DB) error {
			for range 2 {
				var n int64
				if err := tx.Model(&txItem{}).Count(&n).Error; err != nil {
					return err
				}
				counts[name] = append(counts[name], n)
			}
			return create(tx, &txItem{TxOrderID: 3})
		}
	}
	one := func() *gorm.DB { return db.Where("tx_order_id = ?", 1) }
	err := first(gormplugin.InTx(t.Context(), one(), nil, count("InTx")), one().Transaction(count("Transaction")), gormplugin.InTx(t.Context(), db, nil, count("all")))
	if err != nil || !slices.Equal(counts["InTx"], counts["Transaction"]) || !slices.Equal(counts["InTx"], []int64{1, 1}) || !slices.Equal(counts["all"], []int64{4, 4}) {
		t.Errorf("InTx() = %v, rows %v; want one in both, and then all four", err, counts)
	}
}

func TestInTxEndsWithItsContext(t *testing.T) {
	db, l := openLosing(t, gorm.Config{})
	for name, c := range map[string]struct {
		lost  *loss
		known bool
	}{
		"before the commit":           {},
		"during one that is done":     {&loss{applied: true}, true},
		"during one that is not done": {&loss{}, false},
	} {
		if err := db.Exec("DELETE FROM tx_items").Error; err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		runs := 0
		err := gormplugin.InTx(ctx, db, nil, func(tx *gorm.DB) error {
			runs++
			err := create(tx, &txItem{})
			if c.lost == nil {
				cancel()
			} else {
				l.armed.Store(c.lost)
				c.lost.then = cancel
			}
			return err
		})
		cancel()
		n := stored(t, db, &txItem{})
		if runs != 1 || errors.Is(err, gormplugin.ErrCommitUnknown) || (err == nil) != c.known || (n == 1) != c.known || err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("InTx(context that ends %s) = %v after %d runs, with %d rows; want it stored: %v", name, err, runs, n, c.known)
		}
	}
}

func TestPanicAndGoexitInInTxAreRolledBack(t *testing.T) {
	db, _ := openLosing(t, gorm.Config{})
	for name, end := range map[string]func(){"panic": func() { panic("mine") }, "Goexit": runtime.Goexit} {
		returned, runs := false, 0
		var wg sync.WaitGroup
		wg.Go(func() {
			defer func() { _ = recover() }()
			_ = gormplugin.InTx(t.Context(), db, nil, func(tx *gorm.DB) error {
				runs++
				_ = create(tx, &txItem{})
				end()
				return nil
			})
			returned = true
		})
		wg.Wait()
		if n := stored(t, db, &txItem{}); n != 0 || returned || runs != 1 {
			t.Errorf("after a %s %d rows, returned %v after %d runs; want none, and one run that does not return", name, n, returned, runs)
		}
	}
	pool, err := db.DB()
	if err != nil || pool.Stats().InUse != 0 {
		t.Errorf("%d connections are in use, %v; want none", pool.Stats().InUse, err)
	}
}

// The translation of GORM is an error that does not have the driver's.
func TestErrorOfTheCommitOfInTxIsTranslatedToo(t *testing.T) {
	for _, translate := range []bool{true, false} {
		db, _ := openLosing(t, gorm.Config{TranslateError: translate}, "&_foreign_keys=on")
		err := first(db.Exec("CREATE TABLE parents (id INTEGER PRIMARY KEY)").Error,
			db.Exec("CREATE TABLE children (id INTEGER PRIMARY KEY, parent_id INTEGER REFERENCES parents DEFERRABLE INITIALLY DEFERRED)").Error)
		if err != nil {
			t.Fatal(err)
		}
		runs := 0
		err = gormplugin.InTx(t.Context(), db, nil, func(tx *gorm.DB) error {
			runs++
			return tx.Exec("INSERT INTO children VALUES (1, 7)").Error
		})
		var said sqlite3.Error
		if errors.Is(err, gorm.ErrForeignKeyViolated) != translate || !errors.As(err, &said) || runs != 1 || errors.Is(err, gormplugin.ErrCommitUnknown) {
			t.Errorf("InTx(TranslateError: %v) = %v after %d runs; want the driver's error, and the translation: %v", translate, err, runs, translate)
		}
	}
}

// On SQLite a transaction that has read cannot write once another one has committed. Here another
// one commits after the first read of each.
func TestInTxSucceedsBesideOtherWritersOnSQLite(t *testing.T) {
	db, _ := openLosing(t, gorm.Config{})
	const writers, each = 4, 50
	work := func(other func() error, inTx func(fn func(tx *gorm.DB) error) error) (failed int64) {
		var wg sync.WaitGroup
		var bad atomic.Int64
		for range writers {
			wg.Go(func() {
				for range each {
					run := 0
					err := inTx(func(tx *gorm.DB) error {
						run++
						var n int64
						err := tx.Model(&txItem{}).Count(&n).Error
						if err == nil && run == 1 {
							err = other()
						}
						return first(err, create(tx, &txItem{TxOrderID: types.Snowflake(n + 1)}))
					})
					if err != nil {
						bad.Add(1)
					}
				}
			})
		}
		wg.Wait()
		return bad.Load()
	}
	commits := func() error { return create(db, &txCounted{}) }
	if plain := work(commits, func(fn func(*gorm.DB) error) error { return db.Transaction(fn) }); plain != writers*each {
		t.Errorf("of %d transactions without InTx, %d failed; want all", writers*each, plain)
	}
	failed := work(commits, func(fn func(*gorm.DB) error) error { return gormplugin.InTx(t.Context(), db, nil, fn) })
	var counts []int64
	if err := db.Model(&txItem{}).Order("tx_order_id").Pluck("tx_order_id", &counts).Error; err != nil {
		t.Fatal(err)
	}
	for i, n := range counts {
		if n != int64(i+1) {
			t.Fatalf("row %d was written by a transaction that had counted %d rows", i+1, n-1)
		}
	}
	if failed != 0 || len(counts) != writers*each {
		t.Errorf("of %d InTx %d failed, and %d rows are stored; want none, and all", writers*each, failed, len(counts))
	}

	// With this DSN a transaction has the write lock before it reads, so that no other one commits then.
	locking, l := openLosing(t, gorm.Config{}, "&_txlock=immediate")
	impatient := sql.OpenDB(&losing{dsn: strings.Replace(l.dsn, "_busy_timeout=10000", "_busy_timeout=0", 1)})
	defer func() { _ = impatient.Close() }()
	var kept atomic.Int64
	tries := func() error {
		if _, err := impatient.Exec("INSERT INTO tx_counteds DEFAULT VALUES"); err != nil {
			kept.Add(1)
		}
		return nil
	}
	if failed := work(tries, func(fn func(*gorm.DB) error) error { return locking.Transaction(fn) }); failed != 0 || kept.Load() != writers*each {
		t.Errorf("of %d transactions with _txlock=immediate, %d failed, and %d kept another one out; want none, and all", writers*each, failed, kept.Load())
	}
}

// One connection that breaks leaves none to look from.
func TestLostCommitOnOneConnectionIsUnknown(t *testing.T) {
	db, l := openLosing(t, gorm.Config{})
	for _, lost := range []*loss{nil, {applied: true}} {
		err := db.Connection(func(one *gorm.DB) error {
			return gormplugin.InTx(t.Context(), one, nil, func(tx *gorm.DB) error {
				l.armed.Store(lost)
				return create(tx, &txItem{})
			})
		})
		var e *gormplugin.UnknownError
		if lost == nil && err != nil || lost != nil && (!errors.As(err, &e) || len(e.Rows) != 1 || e.Rows[0].Table != "tx_items" || e.Rows[0].Column != "id") {
			t.Errorf("InTx(one connection, commit lost: %v) = %v; want ErrCommitUnknown with the key if it is", lost != nil, err)
		}
	}
}

// The error of the raw statement ends the transaction, and the second row is stored by itself.
func TestInTxDoesNotKnowWhatIsStoredIfFnWentOnAfterTheEndOfItsTransaction(t *testing.T) {
	db, _ := openLosing(t, gorm.Config{})
	taken := "INSERT INTO names VALUES ('taken')"
	err := first(db.Exec("CREATE TABLE names (name TEXT UNIQUE ON CONFLICT ROLLBACK)").Error, db.Exec(taken).Error)
	if err != nil {
		t.Fatal(err)
	}
	items, runs := [2]txItem{}, 0
	err = gormplugin.InTx(t.Context(), db, nil, func(tx *gorm.DB) error {
		runs++
		if err := create(tx, &items[0]); err != nil {
			return err
		}
		if tx.Exec(taken).Error == nil {
			t.Error("a name was stored twice")
		}
		return create(tx, &items[1])
	})
	var unknown *gormplugin.UnknownError
	if !errors.As(err, &unknown) || !errors.Is(err, gormplugin.ErrCommitUnknown) || len(unknown.Rows) != 0 || runs != 1 {
		t.Errorf("InTx() = %v after %d runs; want ErrCommitUnknown without rows after 1", err, runs)
	}
	var stored []types.Snowflake
	if err := db.Model(&txItem{}).Pluck("id", &stored).Error; err != nil || !slices.Equal(stored, []types.Snowflake{items[1].ID}) {
		t.Errorf("stored = %v, %v; want %v alone", stored, err, items[1].ID)
	}
}

// GORM's own limit bounds all runs together.
func TestDefaultTransactionTimeoutBoundsInTx(t *testing.T) {
	db, _ := openLosing(t, gorm.Config{DefaultTransactionTimeout: time.Hour})
	var limited time.Time
	err := gormplugin.InTx(t.Context(), db, nil, func(tx *gorm.DB) error {
		limited, _ = tx.Statement.Context.Deadline()
		return nil
	})
	if left := time.Until(limited); err != nil || left < 59*time.Minute || left > time.Hour {
		t.Errorf("InTx() = %v with %v left; want nil with an hour", err, left)
	}
}
