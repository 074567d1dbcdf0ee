package servers

import (
	"context"
	cryptorand "crypto/rand"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/lease/sqllease"
	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/core/segment/sqlsegment"
	"github.com/snowkey/snowkey/core/serial"
	"github.com/snowkey/snowkey/core/serial/sqlserial"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/proof/cases/sqlxcases"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/sqlxhelper/pgxcopy"
	"github.com/snowkey/snowkey/types"
)

type (
	faultOrder struct {
		types.Model
		Cell   int64       `db:"cell"`
		Number string      `db:"number"`
		N      int         `db:"n"`
		Items  []faultItem `db:"-" snowkey:"items,fk=order_id" gorm:"foreignKey:OrderID"`
	}
	faultItem struct {
		types.Model
		Cell    int64           `db:"cell"`
		OrderID types.Snowflake `db:"order_id"`
	}
)

func (faultOrder) TableName() string { return "orders" }
func (faultItem) TableName() string  { return "items" }

// faultRows makes the rows of a cell, with items for each.
func faultRows(cell int64, n, items int) []faultOrder {
	rows := make([]faultOrder, n)
	for i := range rows {
		rows[i] = faultOrder{Cell: cell, Number: fmt.Sprintf("%d-%d", cell, i), N: 2, Items: slices.Repeat([]faultItem{{Cell: cell}}, items)}
	}
	return rows
}

func faultTables(ctx context.Context, g *faultGroup) error {
	for _, text := range []string{
		"CREATE TABLE orders (id BIGINT PRIMARY KEY, cell BIGINT NOT NULL, number VARCHAR(40) NOT NULL UNIQUE, n INT NOT NULL)",
		"CREATE TABLE items (id BIGINT PRIMARY KEY, cell BIGINT NOT NULL, order_id BIGINT NOT NULL)",
	} {
		if _, err := g.around.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

// A faultStorage is what the tables have of a cell: keys in order.
type faultStorage struct {
	orders, items []types.Snowflake
	old           int // orders with n = 1, which were there before
}

func (s faultStorage) String() string {
	return fmt.Sprintf("%d orders %v, %d items %v", len(s.orders), s.orders[:min(3, len(s.orders))], len(s.items), s.items[:min(3, len(s.items))])
}

func (s faultStorage) equal(o faultStorage) bool {
	return slices.Equal(s.orders, o.orders) && slices.Equal(s.items, o.items)
}

// storedOf returns what is stored of a cell. One statement sees all of a transaction or
// nothing, if that is committed at this moment.
func (g *faultGroup) storedOf(ctx context.Context, cell int64) (s faultStorage, err error) {
	var rows []struct {
		ID types.Snowflake `db:"id"`
		N  int             `db:"n"` // 0 for an item
	}
	text := "SELECT id, n FROM orders WHERE cell = %d UNION ALL SELECT id, 0 FROM items WHERE cell = %[1]d ORDER BY id"
	err = g.around.SelectContext(ctx, &rows, fmt.Sprintf(text, cell))
	for _, r := range rows {
		switch r.N {
		case 0:
			s.items = append(s.items, r.ID)
		case 1:
			s.old++
			fallthrough
		default:
			s.orders = append(s.orders, r.ID)
		}
	}
	return s, err
}

// inMemory returns what should be stored of these rows.
func inMemory(rows []faultOrder) (s faultStorage) {
	for i := range rows {
		s.orders = append(s.orders, rows[i].ID)
		for j := range rows[i].Items {
			s.items = append(s.items, rows[i].Items[j].ID)
		}
	}
	slices.Sort(s.orders)
	slices.Sort(s.items)
	return s
}

// A faultWrite is a call of sqlxhelper that writes rows.
type faultWrite struct {
	rows  int
	items int // for each row
	// options of the Helper.
	options []sqlxhelper.Option
	// old is how many of the rows are stored before, with another key.
	old int
	// updates says that these get n = 2.
	updates bool
	// inside says that the rows are made anew in each run, so that a second call stores
	// other rows.
	inside bool
	// unsure says that a row with the key may be somebody else's, or that there is no
	// other connection on which to ask.
	unsure bool
	// tagged says that a tag names a table, without its schema. Other groups have tables of
	// that name, so a row that is not there proves nothing on PostgreSQL.
	tagged bool
	// blind says that no Helper inserts the rows: it updates them, or knows nothing.
	blind bool
	// do writes the rows. Rows that it makes itself replace those of memory.
	do func(ctx context.Context, db *sqlx.DB, h *sqlxhelper.Helper, rows *[]faultOrder) error
}

// call returns the kind of calls.
func (w faultWrite) call(name string, on func(way) bool) faultCall {
	return faultCall{name: name, on: on, tables: faultTables, make: w.make}
}

func (w faultWrite) make(ctx context.Context, g *faultGroup, cell int64, _ *sqlx.DB) (*faultRun, error) {
	rows := faultRows(cell, w.rows, w.items)
	for i := range w.old {
		_, err := g.around.ExecContext(ctx, fmt.Sprintf("INSERT INTO orders VALUES (%d, %d, '%d-%d', 1)", cell*100_000+99_000+int64(i), cell, cell, i))
		if err != nil {
			return nil, err
		}
	}
	before, err := g.storedOf(ctx, cell)
	if err != nil {
		return nil, err
	}
	h := sqlxhelper.New(sqlxcases.NewCounter(types.Snowflake(cell*100_000)), w.options...)
	do := func(ctx context.Context, db *sqlx.DB) error {
		return w.do(context.WithValue(ctx, faultSchema{}, g.schema+"."), db, h, &rows)
	}
	stored := false // as of the last judgement
	return &faultRun{
		do:     do,
		known:  !w.unsure && !w.blind && !(w.tagged && isPostgres(g.way)),
		unsure: w.unsure,
		judge: func(ctx context.Context, outcome error) error {
			got, err := g.storedOf(ctx, cell)
			if err != nil {
				return err
			}
			want := inMemory(rows)
			nothing := got.equal(before) && got.old == w.old
			all := got.equal(want) && (got.old == 0 || !w.updates)
			if outcome != nil && (w.inside || w.old > 0) { // memory may not have these keys
				all = (got.old == 0 || !w.updates) && len(got.orders) == w.rows && len(got.items) == w.rows*w.items
			}
			stored = all
			var unknown *sqlxhelper.UnknownError
			switch {
			case errors.Is(outcome, sqlxhelper.ErrCommitUnknown) && !errors.As(outcome, &unknown):
				return errors.New("ErrCommitUnknown is without its keys")
			case unknown != nil && len(unknown.Rows) == 0 && !w.blind:
				return errors.New("ErrCommitUnknown has no key")
			}
			if unknown != nil {
				for _, r := range unknown.Rows {
					has := map[string][]types.Snowflake{"orders": got.orders, "items": got.items}[r.Table[strings.LastIndexByte(r.Table, '.')+1:]]
					if slices.Contains(has, r.Key) != all {
						return fmt.Errorf("stored: %v; want all of it if %s %d of %s is", got, r.Column, r.Key, r.Table)
					}
				}
			}
			switch {
			case !all && !nothing:
				return fmt.Errorf("stored: %v; want all of %v or nothing", got, want)
			case outcome == nil && !all:
				return fmt.Errorf("stored: %v; want %v", got, want)
			case outcome != nil && !nothing && !errors.Is(outcome, sqlxhelper.ErrCommitUnknown):
				return fmt.Errorf("stored: %v; want nothing", got)
			}
			return nil
		},
		again: func(ctx context.Context, _ *sqlx.DB, outcome error) error {
			if w.inside {
				return nil
			}
			switch err := do(ctx, g.around); { // the pool may have a dead connection
			case err == nil && (!stored || w.old > 0):
			// A second attempt, on another connection, may be under way after an unknown
			// outcome.
			case errors.Is(err, sqlxhelper.ErrDuplicateKey) && (stored || errors.Is(outcome, sqlxhelper.ErrCommitUnknown)):
			default:
				return fmt.Errorf("%w, where the rows were stored: %v", err, stored)
			}
			got, err := g.storedOf(ctx, cell)
			if want := inMemory(rows); err == nil && !got.equal(want) {
				err = fmt.Errorf("stored: %v; want %v", got, want)
			}
			return err
		},
	}, nil
}

func isPostgres(w way) bool { return w.server == "PostgreSQL" }
func isMySQL(w way) bool    { return w.server != "PostgreSQL" }
func isPgx(w way) bool      { return w.driver == "pgx" }

func insertOne(ctx context.Context, db *sqlx.DB, h *sqlxhelper.Helper, rows *[]faultOrder) error {
	return h.Insert(ctx, db, inFaultSchema(ctx, "orders"), &(*rows)[0])
}

func insertMany(ctx context.Context, db *sqlx.DB, h *sqlxhelper.Helper, rows *[]faultOrder) error {
	return h.InsertMany(ctx, db, inFaultSchema(ctx, "orders"), *rows)
}

// faultSchema is the key of a context for the schema of a group.
type faultSchema struct{}

// inFaultSchema returns the name of a table that no other group has.
func inFaultSchema(ctx context.Context, table string) string {
	return ctx.Value(faultSchema{}).(string) + table
}

// onConn runs a call on one connection.
func onConn(do func(ctx context.Context, db sqlxhelper.DB, h *sqlxhelper.Helper, rows []faultOrder) error) func(context.Context, *sqlx.DB, *sqlxhelper.Helper, *[]faultOrder) error {
	return func(ctx context.Context, db *sqlx.DB, h *sqlxhelper.Helper, rows *[]faultOrder) error {
		conn, err := db.Connx(ctx)
		if err != nil {
			return err
		}
		// Close waits for what the driver is still doing.
		defer func() { go func() { _ = conn.Close() }() }()
		return do(ctx, sqlxhelper.OnConn(conn, db.DriverName()), h, *rows)
	}
}

// inTx runs a call in InTx.
func inTx(do func(ctx context.Context, tx *sqlx.Tx, h *sqlxhelper.Helper, rows *[]faultOrder) error) func(context.Context, *sqlx.DB, *sqlxhelper.Helper, *[]faultOrder) error {
	return func(ctx context.Context, db *sqlx.DB, h *sqlxhelper.Helper, rows *[]faultOrder) error {
		return sqlxhelper.InTx(ctx, db, nil, func(tx *sqlx.Tx) error { return do(ctx, tx, h, rows) })
	}
}

// gormKeys are keys that no group and no repetition of a call has had, nor that of another process.
var gormKeys = sqlxcases.NewCounter(types.Snowflake(1<<61 + rand.Int64N(1<<61)))

// gormInTx runs a call in InTx of gormplugin.
func gormInTx(session gorm.Session, do func(tx *gorm.DB, rows *[]faultOrder) error) func(context.Context, *sqlx.DB, *sqlxhelper.Helper, *[]faultOrder) error {
	return func(ctx context.Context, db *sqlx.DB, _ *sqlxhelper.Helper, rows *[]faultOrder) error {
		g, err := gormOn(db, gormKeys)
		if err != nil {
			return err
		}
		err = gormplugin.InTx(ctx, g.Session(&session), nil, func(tx *gorm.DB) error {
			// lib/pq does not end with ctx, and then nor would the function. What is left behind has
			// rows of its own.
			work, done := slices.Clone(*rows), make(chan error, 1)
			for i := range work {
				work[i].Items = slices.Clone(work[i].Items)
			}
			go func() { done <- do(tx, &work) }()
			late := make(chan time.Time)
			defer context.AfterFunc(ctx, func() { time.AfterFunc(faultHold, func() { close(late) }) })()
			select {
			case err := <-done:
				*rows = work
				return err
			case <-late:
				return ctx.Err()
			}
		})
		if dialect.DuplicateKey(err) {
			err = fmt.Errorf("%w: %w", sqlxhelper.ErrDuplicateKey, err)
		}
		return err
	}
}

// pointers yields pointers to rows, whose keys are set in them.
func pointers(rows []faultOrder) iter.Seq2[*faultOrder, error] {
	return func(yield func(*faultOrder, error) bool) {
		for i := range rows {
			if !yield(&rows[i], nil) {
				return
			}
		}
	}
}

var faultCalls = append([]faultCall{
	faultWrite{rows: 1, do: insertOne}.call("Insert", nil),
	faultWrite{rows: 1, unsure: true, do: func(ctx context.Context, db *sqlx.DB, h *sqlxhelper.Helper, rows *[]faultOrder) error {
		(*rows)[0].ID = types.Snowflake((*rows)[0].Cell*100_000 + 50_000)
		return insertOne(ctx, db, h, rows)
	}}.call("Insert with a key", nil),
	faultWrite{rows: 3, do: insertMany}.call("InsertMany", nil),
	faultWrite{rows: 12, do: insertMany}.call("InsertMany by unnest", isPostgres),
	faultWrite{rows: 1600, do: insertMany}.call("InsertMany of several statements", isMySQL),
	faultWrite{rows: 12, do: insertMany, options: []sqlxhelper.Option{sqlxhelper.WithCopy(pgxcopy.Copier{}, 11)}}.call("InsertMany by COPY", isPgx),
	faultWrite{rows: 3, do: func(ctx context.Context, db *sqlx.DB, h *sqlxhelper.Helper, rows *[]faultOrder) error {
		_, err := sqlxhelper.InsertSeq(ctx, h, db, "orders", pointers(*rows))
		return err
	}}.call("InsertSeq", nil),
	faultWrite{rows: 2, items: 2, tagged: true, do: func(ctx context.Context, db *sqlx.DB, h *sqlxhelper.Helper, rows *[]faultOrder) error {
		return h.InsertGraph(ctx, db, "orders", *rows)
	}}.call("InsertGraph", nil),
	faultWrite{rows: 1, unsure: true, do: onConn(func(ctx context.Context, db sqlxhelper.DB, h *sqlxhelper.Helper, rows []faultOrder) error {
		return h.Insert(ctx, db, "orders", &rows[0])
	})}.call("Insert on a connection", nil),
	faultWrite{rows: 2, items: 1, unsure: true, do: onConn(func(ctx context.Context, db sqlxhelper.DB, h *sqlxhelper.Helper, rows []faultOrder) error {
		return h.InsertGraph(ctx, db, "orders", rows)
	})}.call("InsertGraph on a connection", nil),
	faultWrite{rows: 3, old: 1, blind: true, do: insertMany, options: []sqlxhelper.Option{sqlxhelper.OnConflictDoNothing("number")}}.call("OnConflictDoNothing", nil),
	faultWrite{rows: 3, old: 1, updates: true, blind: true, do: insertMany, options: []sqlxhelper.Option{
		sqlxhelper.OnConflictUpdate("n"), sqlxhelper.ConflictTarget("number"),
	}}.call("OnConflictUpdate", nil),
	faultWrite{rows: 3, do: insertMany, options: []sqlxhelper.Option{sqlxhelper.Returning("n")}}.call("Returning", nil),
	faultWrite{rows: 3, do: inTx(func(ctx context.Context, tx *sqlx.Tx, h *sqlxhelper.Helper, rows *[]faultOrder) error {
		return h.InsertMany(ctx, tx, "orders", *rows)
	})}.call("InTx", nil),
	faultWrite{rows: 2, items: 2, inside: true, do: inTx(func(ctx context.Context, tx *sqlx.Tx, h *sqlxhelper.Helper, rows *[]faultOrder) error {
		*rows = faultRows((*rows)[0].Cell, 2, 2)
		return h.InsertGraph(ctx, tx, "orders", *rows)
	})}.call("InTx with rows made inside", nil),
	faultWrite{rows: 3, old: 1, updates: true, blind: true, do: inTx(func(ctx context.Context, tx *sqlx.Tx, h *sqlxhelper.Helper, rows *[]faultOrder) error {
		return h.With(sqlxhelper.OnConflictUpdate("n"), sqlxhelper.ConflictTarget("number")).InsertMany(ctx, tx, "orders", *rows)
	})}.call("InTx with an upsert", nil),
	faultWrite{rows: 1, inside: true, blind: true, do: inTx(func(ctx context.Context, tx *sqlx.Tx, _ *sqlxhelper.Helper, rows *[]faultOrder) error {
		row := &(*rows)[0]
		row.ID = types.Snowflake(row.Cell * 100_000)
		text := fmt.Sprintf("INSERT INTO orders VALUES (%d, %d, '%d', 1)", row.ID, row.Cell, row.Cell)
		done := make(chan error, 1)
		go func() { // lib/pq does not end with ctx, and then nor would the function
			_, err := tx.ExecContext(ctx, text)
			done <- err
		}()
		select {
		case err := <-done:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	})}.call("InTx without a Helper", nil),
	faultWrite{rows: 3, do: gormInTx(gorm.Session{}, func(tx *gorm.DB, rows *[]faultOrder) error {
		return tx.Create(rows).Error
	})}.call("gormplugin.InTx", nil),
	faultWrite{rows: 3, do: gormInTx(gorm.Session{PrepareStmt: true}, func(tx *gorm.DB, rows *[]faultOrder) error {
		return tx.Create(rows).Error
	})}.call("gormplugin.InTx, prepared", nil),
	faultWrite{rows: 2, items: 2, inside: true, do: gormInTx(gorm.Session{}, func(tx *gorm.DB, rows *[]faultOrder) error {
		*rows = faultRows((*rows)[0].Cell, 2, 2)
		return tx.Create(rows).Error
	})}.call("gormplugin.InTx with a graph made inside", nil),
	faultWrite{rows: 3, old: 1, updates: true, blind: true, do: gormInTx(gorm.Session{}, func(tx *gorm.DB, rows *[]faultOrder) error {
		upsert := clause.OnConflict{Columns: []clause.Column{{Name: "number"}}, DoUpdates: clause.AssignmentColumns([]string{"n"})}
		return tx.Clauses(upsert).Create(rows).Error
	})}.call("gormplugin.InTx with an upsert", nil),
	faultWrite{rows: 3, do: gormInTx(gorm.Session{}, func(tx *gorm.DB, rows *[]faultOrder) error {
		if err := tx.Create(rows).Error; err != nil {
			return err
		}
		return undone(tx, func(tx *gorm.DB) error {
			return tx.Create(&faultOrder{Cell: (*rows)[0].Cell, Number: "undone"}).Error
		})
	})}.call("gormplugin.InTx with a nested one that is rolled back", nil),
	faultWrite{rows: 1, inside: true, blind: true, do: gormInTx(gorm.Session{}, func(tx *gorm.DB, rows *[]faultOrder) error {
		row := &(*rows)[0]
		row.ID = types.Snowflake(row.Cell * 100_000)
		return tx.Exec("INSERT INTO orders VALUES (?, ?, ?, 1)", row.ID, row.Cell, row.Number).Error
	})}.call("gormplugin.InTx of raw SQL", nil),
	{name: "NextIn in InTx", tables: bookTables, make: nextIn},
	{name: "Take of a counter", tables: counterTables, make: takeOfCounter},
	{name: "Take", tables: segmentTables, make: takeOfSegment},
	{name: "GiveBack", tables: segmentTables, make: giveBack},
	{name: "Claim", tables: leaseTables, make: claim},
	{name: "Renew", tables: leaseTables, make: changes(renew)},
	{name: "Release", tables: leaseTables, make: changes(releaseLease)},
	{name: "Fence", tables: leaseTables, make: changes(fence)},
}, endingCalls()...)

// ------------------------------------------------------------ counters

var faultSeries = serial.Series{Name: "faults", Digits: 6}

// config names the table in full for the pool that creates it. The others find it, with faults too.
func (g *faultGroup) config(db *sqlx.DB, table string) sqlstore.Config {
	table = g.table(table)
	if db == g.around {
		table = g.schema + "." + table
	}
	return sqlstore.Config{Dialect: g.dialect(), Table: table, Logger: quiet}
}

// table returns the name of a table that no other group has: a search for it by name is answered by a row
// for each schema that has one, and a cell has to meet the messages that were recorded.
func (g *faultGroup) table(name string) string { return g.schema + "_" + name }

func (g *faultGroup) counters(db *sqlx.DB) (*sqlserial.Store, error) {
	return sqlserial.New(db.DB, g.config(db, sqlserial.DefaultTable))
}

func counterTables(ctx context.Context, g *faultGroup) error {
	s, err := g.counters(g.around)
	if err != nil {
		return err
	}
	return errors.Join(s.CreateTables(ctx), s.Define(ctx, faultSeries))
}

// bookTables are the tables of counters, and of what has the numbers.
func bookTables(ctx context.Context, g *faultGroup) error {
	return errors.Join(faultTables(ctx, g), counterTables(ctx, g))
}

// nextIn takes a number and stores it in a row that is made inside. After nil, memory has
// the number that is stored. No number is stored twice, and none is left out.
func nextIn(_ context.Context, g *faultGroup, cell int64, _ *sqlx.DB) (*faultRun, error) {
	h := sqlxhelper.New(sqlxcases.NewCounter(types.Snowflake(cell * 100_000)))
	var row faultOrder
	return &faultRun{
		known: true,
		do: func(ctx context.Context, db *sqlx.DB) error {
			s, err := sqlserial.New(db.DB, g.config(g.around, sqlserial.DefaultTable)) // a transaction chooses between no schemas
			if err != nil {
				return err
			}
			return sqlxhelper.InTx(ctx, db, nil, func(tx *sqlx.Tx) error {
				n, err := s.NextIn(ctx, tx, faultSeries, time.Now())
				if err != nil {
					return err
				}
				row = faultOrder{Cell: cell, Number: n.Text}
				return h.Insert(ctx, tx, "orders", &row)
			})
		},
		judge: func(ctx context.Context, outcome error) error {
			var all, own []string
			err := errors.Join(
				g.around.SelectContext(ctx, &all, "SELECT number FROM orders ORDER BY number"),
				g.around.SelectContext(ctx, &own, fmt.Sprintf("SELECT number FROM orders WHERE cell = %d", cell)),
			)
			if err != nil {
				return err
			}
			for i, number := range all {
				if want := fmt.Sprintf("%06d", i+1); number != want {
					return fmt.Errorf("numbers %v are stored; want %s in place of %s", all, want, number)
				}
			}
			switch {
			case outcome == nil && !slices.Equal(own, []string{row.Number}):
				return fmt.Errorf("stored: %v; want %s", own, row.Number)
			case len(own) > 1:
				return fmt.Errorf("stored: %v; want one", own)
			case outcome != nil && len(own) > 0 && !errors.Is(outcome, sqlxhelper.ErrCommitUnknown):
				return fmt.Errorf("stored: %v; want nothing", own)
			}
			return nil
		},
	}, nil
}

// A faultNumbers collects the ranges that were given out.
type faultNumbers struct {
	mu     sync.Mutex
	ranges [][2]int64 // first and last
}

// give adds a range, or says what else has got a part of it.
func (n *faultNumbers) give(first, last int64) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, r := range n.ranges {
		if first <= r[1] && r[0] <= last {
			return fmt.Errorf("%d to %d is given, of which somebody has %d to %d", first, last, r[0], r[1])
		}
	}
	n.ranges = append(n.ranges, [2]int64{first, last})
	return nil
}

// given returns the numbers of a group.
func (g *faultGroup) given() *faultNumbers {
	if g.state == nil {
		g.state = &faultNumbers{}
	}
	return g.state.(*faultNumbers)
}

// takes is a call that takes a range of numbers. After nil they are the caller's. After an
// error they are lost, and the next caller gets others.
func (g *faultGroup) takes(take func(ctx context.Context, db *sqlx.DB) (first, last int64, err error)) *faultRun {
	var first, last int64
	return &faultRun{
		do: func(ctx context.Context, db *sqlx.DB) (err error) {
			first, last, err = take(ctx, db)
			return err
		},
		judge: func(context.Context, error) error { return nil }, // the row may be locked
		again: func(ctx context.Context, db *sqlx.DB, outcome error) error {
			if outcome == nil {
				if err := g.given().give(first, last); err != nil {
					return err
				}
			}
			for _, db := range []*sqlx.DB{g.around, db} {
				first, last, err := take(ctx, db)
				if err == nil {
					err = g.given().give(first, last)
				}
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// over returns a call of a store, which is opened over a pool.
func over[S any](open func(*sqlx.DB) (S, error), call func(context.Context, S) error) func(context.Context, *sqlx.DB) error {
	return func(ctx context.Context, db *sqlx.DB) error {
		s, err := open(db)
		if err != nil {
			return err
		}
		return call(ctx, s)
	}
}

func takeOfCounter(_ context.Context, g *faultGroup, _ int64, _ *sqlx.DB) (*faultRun, error) {
	return g.takes(func(ctx context.Context, db *sqlx.DB) (first, last int64, err error) {
		err = over(g.counters, func(ctx context.Context, s *sqlserial.Store) error {
			if err = s.Define(ctx, faultSeries); err == nil {
				first, err = s.Take(ctx, faultSeries.Name, "", time.Now(), 10)
			}
			return err
		})(ctx, db)
		return first, first + 9, err
	}), nil
}

// ------------------------------------------------------------ segments

func (g *faultGroup) segments(db *sqlx.DB) (*sqlsegment.Store, error) {
	return sqlsegment.New(db.DB, g.config(db, sqlsegment.DefaultTable))
}

func segmentTables(ctx context.Context, g *faultGroup) error {
	s, err := g.segments(g.around)
	if err != nil {
		return err
	}
	return errors.Join(s.CreateTables(ctx), s.Create(ctx, segment.Row{Tag: "faults", Next: 1, Step: 10, Stride: 1}))
}

func (g *faultGroup) takeSegment(ctx context.Context, db *sqlx.DB) (r segment.Range, err error) {
	err = over(g.segments, func(ctx context.Context, s *sqlsegment.Store) error {
		r, err = s.Take(ctx, segment.Take{Tag: "faults"})
		return err
	})(ctx, db)
	return r, err
}

func takeOfSegment(_ context.Context, g *faultGroup, _ int64, _ *sqlx.DB) (*faultRun, error) {
	return g.takes(func(ctx context.Context, db *sqlx.DB) (first, last int64, err error) {
		r, err := g.takeSegment(ctx, db)
		return r.First, r.Last, err
	}), nil
}

// giveBack returns the second half of a range. Whatever comes of that, the first half is
// the caller's.
func giveBack(ctx context.Context, g *faultGroup, _ int64, _ *sqlx.DB) (*faultRun, error) {
	r, err := g.takeSegment(ctx, g.around)
	if err != nil {
		return nil, err
	}
	half := r.First + 4
	if err := g.given().give(r.First, half); err != nil {
		return nil, err
	}
	give := over(g.segments, func(ctx context.Context, s *sqlsegment.Store) error {
		return s.GiveBack(ctx, segment.GiveBack{Tag: "faults", First: half + 1, End: r.Last + 1, Version: r.Version})
	})
	return &faultRun{
		do: give,
		judge: func(ctx context.Context, outcome error) error {
			var after int64
			err := g.around.GetContext(ctx, &after, "SELECT max_id FROM "+g.table(sqlsegment.DefaultTable))
			if err == nil && after != half+1 && (outcome == nil || after != r.Last+1) {
				err = fmt.Errorf("max_id = %d; want %d, or %d after an error", after, half+1, r.Last+1)
			}
			return err
		},
		again: func(ctx context.Context, db *sqlx.DB, _ error) error {
			for range 2 { // a request that comes twice changes nothing
				r, err := g.takeSegment(ctx, g.around)
				if err == nil {
					err = g.given().give(r.First, r.Last)
				}
				if err := errors.Join(err, give(ctx, db)); err != nil {
					return err
				}
			}
			return nil
		},
	}, nil
}

// ------------------------------------------------------------ leases

func (g *faultGroup) leases(db *sqlx.DB) (*sqllease.Store, error) {
	return sqllease.New(db.DB, g.config(db, sqllease.DefaultTable))
}

func leaseTables(ctx context.Context, g *faultGroup) error {
	s, err := g.leases(g.around)
	if err != nil {
		return err
	}
	return s.CreateTables(ctx)
}

// faultClaim is a claim in a space of the cell's own. It has one worker: among several,
// chance would decide how many messages there are.
func faultClaim(cell int64) leasestore.Claim {
	return leasestore.Claim{
		Space: leasestore.Space{Namespace: fmt.Sprint("cell", cell), Workers: 1, Layout: "41/5/5/12"},
		Owner: cryptorand.Text(), Nonce: cryptorand.Text(), Window: 60_000, Now: leasestore.MillisOf(time.Now()), Skew: 60_000,
	}
}

// leaseRow returns the row of the worker of a space.
func (g *faultGroup) leaseRow(ctx context.Context, space leasestore.Space) (row leasestore.Row, err error) {
	err = over(g.leases, func(ctx context.Context, s *sqllease.Store) error {
		rows, _, err := s.Rows(ctx, space)
		if len(rows) > 0 {
			row = rows[0]
		}
		return err
	})(ctx, g.around)
	return row, err
}

// notDone reports whether an error of a lease store says that nothing was done.
func notDone(err error) bool {
	return errors.As(err, new(*lease.NoFreeWorkerError)) || errors.As(err, new(*lease.LostError)) ||
		errors.As(err, new(*lease.LayoutError)) || errors.As(err, new(*lease.ClockSkewError))
}

// claim takes the worker. After nil, the row is stored as the reply has it, and no other claim
// gets it. After an error it may be reserved without a holder.
func claim(_ context.Context, g *faultGroup, cell int64, _ *sqlx.DB) (*faultRun, error) {
	c := faultClaim(cell)
	var reply leasestore.Reply
	return &faultRun{
		do: over(g.leases, func(ctx context.Context, s *sqllease.Store) (err error) {
			reply, err = s.Claim(ctx, c)
			return err
		}),
		judge: func(ctx context.Context, outcome error) error {
			row, err := g.leaseRow(ctx, c.Space)
			switch {
			case err != nil:
				return err
			case outcome == nil && row != reply.Row:
				return fmt.Errorf("the row is %+v; want %+v", row, reply.Row)
			case notDone(outcome) && row.Owner == c.Owner:
				return fmt.Errorf("the row is %+v; want it free after an error that says so", row)
			}
			return nil
		},
		again: func(ctx context.Context, db *sqlx.DB, outcome error) error {
			err := over(g.leases, func(ctx context.Context, s *sqllease.Store) error { return failing(s.Claim(ctx, faultClaim(cell))) })(ctx, db)
			if full := errors.As(err, new(*lease.NoFreeWorkerError)); !full && (err != nil || outcome == nil) {
				return fmt.Errorf("the claim of another = %v; want *lease.NoFreeWorkerError", err)
			}
			return nil
		},
	}, nil
}

// A leaseChange is a call for a lease that was claimed before the fault. After nil it is stored. After an error it is, or the row
// is as it was, and the error does not call a lease lost that no other process has taken.
type leaseChange struct {
	do func(ctx context.Context, s *sqllease.Store) error
	// done reports whether a row is as the call makes it.
	done func(row leasestore.Row) bool
	// again is a call that does it nonetheless, or nil.
	again func(ctx context.Context, s *sqllease.Store) error
}

// changes returns the kind of calls.
func changes(of func(c leasestore.Claim, held leasestore.Row) leaseChange) func(context.Context, *faultGroup, int64, *sqlx.DB) (*faultRun, error) {
	return func(ctx context.Context, g *faultGroup, cell int64, _ *sqlx.DB) (*faultRun, error) {
		c := faultClaim(cell)
		var held leasestore.Reply
		err := over(g.leases, func(ctx context.Context, s *sqllease.Store) (err error) {
			held, err = s.Claim(ctx, c)
			return err
		})(ctx, g.around)
		if err != nil {
			return nil, err
		}
		change := of(c, held.Row)
		judge := func(ctx context.Context, outcome error) error {
			row, err := g.leaseRow(ctx, c.Space)
			switch {
			case err != nil:
				return err
			case notDone(outcome):
				return errors.New("it says that the lease is lost, which nobody has taken")
			case !change.done(row) && (outcome == nil || row != held.Row):
				return fmt.Errorf("the row is %+v; want it changed, or after an error as it was: %+v", row, held.Row)
			}
			return nil
		}
		run := &faultRun{do: over(g.leases, change.do), judge: judge}
		if change.again != nil {
			run.again = func(ctx context.Context, db *sqlx.DB, _ error) error {
				return errors.Join(over(g.leases, change.again)(ctx, db), judge(ctx, nil))
			}
		}
		return run, nil
	}
}

// renew raises the limit. After an error that is not final, the holder renews with the nonces that the row may have, and
// has lost nothing.
func renew(c leasestore.Claim, held leasestore.Row) leaseChange {
	r := leaseRenewal(c, leasestore.Reply{Row: held})
	r.Window *= 2
	var reply leasestore.Reply
	return leaseChange{
		do: func(ctx context.Context, s *sqllease.Store) (err error) {
			reply, err = s.Renew(ctx, r)
			return err
		},
		done: func(row leasestore.Row) bool {
			return row.Nonce == r.Nonce && (reply == (leasestore.Reply{}) || row == reply.Row)
		},
		again: func(ctx context.Context, s *sqllease.Store) (err error) {
			r.Known, r.Nonce = append(slices.Clone(r.Known), r.Nonce), cryptorand.Text()
			reply, err = s.Renew(ctx, r)
			return err
		},
	}
}

// releaseLease gives the row back, which is free then.
func releaseLease(c leasestore.Claim, held leasestore.Row) leaseChange {
	r := leasestore.Release{Space: c.Space, Worker: held.Worker, Epoch: held.Epoch, Owner: c.Owner, Known: []string{held.Nonce}, Nonce: cryptorand.Text(), End: c.Now}
	return leaseChange{
		do:   func(ctx context.Context, s *sqllease.Store) error { return s.Release(ctx, r) },
		done: func(row leasestore.Row) bool { return row.Owner == "" && row.Nonce == r.Nonce && row.Until == r.End },
	}
}

// fence raises the limits of all rows, which have no holder then.
func fence(c leasestore.Claim, held leasestore.Row) leaseChange {
	f := leasestore.Fencing{Space: c.Space, Nonce: cryptorand.Text(), Until: held.Until + 60_000}
	do := func(ctx context.Context, s *sqllease.Store) error { return s.Fence(ctx, f) }
	return leaseChange{do: do, again: do, done: func(row leasestore.Row) bool { return row.Owner == "" && row.Until >= f.Until }}
}
