//go:build linux

package fire

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	gormmysql "gorm.io/driver/mysql"
	gormpostgres "gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/internal/proof/robust/role"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

// Orders are programs on several hosts that store orders with their lines, by
// sqlxhelper.InTx, by Helper.InsertGraph and by GORM, while the database fails. Each
// writes down what it was told of every order. At the end that is compared with what is
// in the database.
type Orders struct {
	Shop string // in shops
	On   *cluster

	// Strike is one failure of the database and its repair, as in a Fire. At the end all
	// that was acknowledged has to be there for who opens the DSN of the cluster.
	Strike func(ctx context.Context, strike int) error

	// Once: there is one strike, however long a Fire takes.
	Once bool
}

// A shop is a database for orders.
type shop struct {
	Dialect sqlxhelper.Dialect
	Open    func(dsn string) (*sql.DB, error) // in the programs
	Look    func(dsn string) (*sql.DB, error) // at the end in the test: it sees all that was acknowledged
	GORM    func(db *sql.DB) gorm.Dialector
}

// shops has a shop for each kind of cluster.
var shops = map[string]shop{
	"PostgreSQL": {
		Dialect: sqlxhelper.PostgreSQL,
		Open:    func(dsn string) (*sql.DB, error) { return sql.Open("pgx", dsn) },
		Look:    func(dsn string) (*sql.DB, error) { return sql.Open("pgx", dsn) },
		GORM:    func(db *sql.DB) gorm.Dialector { return gormpostgres.New(gormpostgres.Config{Conn: db}) },
	},
	galera: {
		Dialect: sqlxhelper.MySQL,
		Open:    func(addresses string) (*sql.DB, error) { return openInTurn(addresses, "fire", nil), nil },
		Look:    func(addresses string) (*sql.DB, error) { return openInTurn(addresses, "fire", waits), nil },
		GORM: func(db *sql.DB) gorm.Dialector {
			return gormmysql.New(gormmysql.Config{Conn: db, SkipInitializeWithVersion: true})
		},
	},
}

// Writers is how many hosts write orders.
const Writers = 4

// An order is whole with as many lines as LineCount says. Number is what the shop calls
// it. Neither is a key of the table, so that an order can be there twice.
type order struct {
	types.Model
	Number    string      `db:"number"`
	LineCount int         `db:"line_count"`
	Lines     []orderLine `db:"-" snowkey:"fire_lines,fk=order_id" gorm:"foreignKey:OrderID"`
}

func (order) TableName() string { return "fire_orders" }

type orderLine struct {
	types.Model
	OrderID  types.Snowflake `db:"order_id"`
	Place    int             `db:"place"`
	Quantity int             `db:"quantity"`
}

func (orderLine) TableName() string { return "fire_lines" }

// The tables have no foreign key, so that half an order can be there. confirmed is for
// the writers alone.
var orderTables = []string{
	"CREATE TABLE fire_orders (id BIGINT PRIMARY KEY, number VARCHAR(64) NOT NULL, line_count INT NOT NULL, confirmed INT NOT NULL DEFAULT 0)",
	"CREATE TABLE fire_lines (id BIGINT PRIMARY KEY, order_id BIGINT NOT NULL, place INT NOT NULL, quantity INT NOT NULL, CHECK (quantity > 0))",
}

// An entry is what a writer knows of an order. The last entry of an order counts.
type entry struct {
	Number string
	ID     types.Snowflake
	Bad    bool // the order must not be stored
	Told   told
	Error  string `json:",omitempty"` // the last
}

type told string

const (
	begun     told = "begun"
	stored    told = "stored"
	notStored told = "not stored"
	unknown   told = "unknown" // reported as that
)

// An orderReport is what came of the orders.
type orderReport struct {
	Orders, Stored, NotStored, Unknown int

	Problems []string
}

// Run lets the orders be written while the cluster fails, for as long as a Fire takes,
// and compares.
func (o Orders) Run(t *testing.T) orderReport {
	t.Helper()
	db, err := shops[o.Shop].Look(o.On.dsn)
	must(t, err)
	defer func() { _ = db.Close() }()
	for _, s := range orderTables {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	var stops []func() error
	for i, h := range o.On.Hosts("writer", Writers) {
		stops = append(stops, o.start(t, h, writerOrder{Shop: o.Shop, DSN: o.On.dsn, Worker: int64(i), Journal: filepath.Join(dir, fmt.Sprint(i))}))
	}

	ctx, cancel := context.WithTimeout(t.Context(), *lasts)
	defer cancel()
	for strike := 0; ; strike++ {
		if err := o.Strike(ctx, strike); err != nil && ctx.Err() == nil {
			t.Fatal(err)
		}
		if !Rest(ctx, time.Second, 3*time.Second) || o.Once {
			break
		}
	}
	for _, stop := range stops {
		if err := stop(); err != nil {
			t.Errorf("a writer: %v", err)
		}
	}
	if o.On.serve != nil {
		_, _, err = o.On.until(t.Context(), o.On.nodes...)
	}
	var r orderReport
	if err == nil {
		r, err = compare(t.Context(), db, dir)
	}
	must(t, err)
	t.Logf("%s: %d orders: %d stored, %d not stored, %d unknown; %d problems", o.Shop, r.Orders, r.Stored, r.NotStored, r.Unknown, len(r.Problems))
	return r
}

// writing is the role of a program that writes orders. Its order is a writerOrder.
const writing = "writer"

// A writerOrder says to a program what it is to do.
type writerOrder struct {
	Shop, DSN string
	Worker    int64
	Journal   string
}

// start starts a writer. The function that it returns asks it to end, when all of its
// orders have ended, and waits for that.
func (o Orders) start(t *testing.T, h *Host, w writerOrder) (stop func() error) {
	t.Helper()
	cmd := role.Command(t, writing, w)
	cmd.Stderr = os.Stderr
	h.Enter(cmd)
	said, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	must(t, err)
	ended := sync.OnceValue(cmd.Wait)
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = ended()
	})
	if _, err := bufio.NewReader(said).ReadString('\n'); err != nil {
		t.Fatalf("a writer has not begun: %v", err)
	}
	return func() error {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			return err
		}
		return ended()
	}
}

// A writer is what the ways to store an order have in common.
type writer struct {
	db      *sqlx.DB
	gorm    *gorm.DB
	helper  *sqlxhelper.Helper
	journal *os.File
}

// writeOrders is what such a program does.
func writeOrders(text []byte) error {
	var w writerOrder
	if err := json.Unmarshal(text, &w); err != nil {
		return err
	}
	asked, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	s := shops[w.Shop]
	g, err := core.New(core.Config{Worker: core.StaticWorker(w.Worker)})
	if err != nil {
		return err
	}
	var db *sql.DB
	var orm *gorm.DB
	err = eventually(asked, "GORM does not connect", func() (err error) {
		if db, err = s.Open(w.DSN); err != nil {
			return err
		}
		db.SetMaxOpenConns(4)
		orm, err = gorm.Open(s.GORM(db), &gorm.Config{Logger: logger.Discard, TranslateError: true}) // after an error db is closed
		return err
	})
	if err != nil {
		return err
	}
	if err := orm.Use(gormplugin.New(g)); err != nil {
		return err
	}
	j, err := os.OpenFile(w.Journal, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	names := map[sqlxhelper.Dialect]string{sqlxhelper.PostgreSQL: "pgx", sqlxhelper.MySQL: "mysql"}
	x := &writer{db: sqlx.NewDb(db, names[s.Dialect]), gorm: orm, helper: sqlxhelper.New(g), journal: j}
	fmt.Println("ready")
	var ways sync.WaitGroup
	for name, way := range map[string]func(*order, bool) (told, error){"tx": x.inTx, "graph": x.insertGraph, "gorm": x.create} {
		ways.Go(func() {
			for n := 0; asked.Err() == nil; n++ {
				x.one(fmt.Sprintf("%d-%s-%d", w.Worker, name, n), way)
				time.Sleep(rand.N(100 * time.Millisecond))
			}
		})
	}
	ways.Wait()
	return j.Close()
}

// one stores one order, and writes down what it was told.
func (w *writer) one(number string, way func(*order, bool) (told, error)) {
	o := &order{Number: number, LineCount: 1 + rand.N(5)}
	for place := range o.LineCount {
		o.Lines = append(o.Lines, orderLine{Place: place, Quantity: 1})
	}
	bad := rand.N(10) == 0
	if bad {
		o.Lines[o.LineCount-1].Quantity = 0 // the table refuses it
	}
	e := entry{Number: number, Bad: bad, Told: begun}
	w.note(e)
	var err error
	if e.Told, err = way(o, bad); err != nil {
		e.Error = err.Error()
	}
	e.ID = o.ID
	w.note(e)
}

func (w *writer) note(e entry) {
	text, err := json.Marshal(e)
	if err == nil {
		_, err = w.journal.Write(append(text, '\n')) // one write: goroutines share the file
	}
	if err != nil {
		panic(err)
	}
}

// soon returns a context that ends soon, in one of four cases while the order is stored.
func soon() (context.Context, context.CancelFunc) {
	limit := 5 * time.Second
	if rand.N(4) == 0 {
		limit = rand.N(500 * time.Millisecond)
	}
	return context.WithTimeout(context.Background(), limit)
}

// inTx believes InTx: every error but one means that the order is not stored.
func (w *writer) inTx(o *order, _ bool) (told, error) {
	ctx, cancel := soon()
	defer cancel()
	err := sqlxhelper.InTx(ctx, w.db, nil, func(tx *sqlx.Tx) error {
		return w.helper.InsertGraph(ctx, tx, "fire_orders", o)
	})
	switch {
	case err == nil:
		return stored, nil
	case errors.Is(err, sqlxhelper.ErrCommitUnknown):
		return unknown, err
	}
	return notStored, err
}

func (w *writer) insertGraph(o *order, bad bool) (told, error) {
	return w.again(o, bad, func(ctx context.Context) error { return w.helper.InsertGraph(ctx, w.db, "fire_orders", o) },
		func(err error) bool { return errors.Is(err, sqlxhelper.ErrDuplicateKey) })
}

func (w *writer) create(o *order, bad bool) (told, error) {
	return w.again(o, bad, func(ctx context.Context) error { return w.gorm.WithContext(ctx).Create(o).Error },
		func(err error) bool { return errors.Is(err, gorm.ErrDuplicatedKey) })
}

// again inserts an order until it is stored, with the same keys. A bad one it tries once:
// no error is needed to know that it is not.
func (w *writer) again(o *order, bad bool, insert func(ctx context.Context) error, duplicate func(error) bool) (told, error) {
	for began := time.Now(); ; time.Sleep(rand.N(300 * time.Millisecond)) {
		ctx, cancel := soon()
		err := insert(ctx)
		cancel()
		if bad && err != nil {
			return notStored, err
		}
		if err == nil || duplicate(err) && w.confirm(o) {
			return stored, err
		}
		if time.Since(began) > 20*time.Second {
			return unknown, err
		}
	}
}

// confirm reports whether an order is stored for certain. It writes, because a row that is
// read on a primary that was cut off proves nothing: its standby may not have it.
func (w *writer) confirm(o *order) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	result, err := w.db.ExecContext(ctx, w.db.Rebind("UPDATE fire_orders SET confirmed = confirmed + 1 WHERE id = ? AND number = ?"), o.ID, o.Number)
	if err != nil {
		return false
	}
	n, err := result.RowsAffected()
	return err == nil && n == 1
}

// compare compares the journals in dir with the tables.
func compare(ctx context.Context, db *sql.DB, dir string) (r orderReport, err error) {
	entries, err := readEntries(dir)
	if err != nil {
		return r, err
	}
	problem := func(format string, args ...any) { r.Problems = append(r.Problems, fmt.Sprintf(format, args...)) }

	type row struct {
		id    types.Snowflake
		lines int
	}
	rows := map[string]row{}
	numbers := map[types.Snowflake]string{}
	err = query(ctx, db, "SELECT id, number, line_count FROM fire_orders", func(scan func(...any) error) error {
		var number string
		var x row
		if err := scan(&x.id, &number, &x.lines); err != nil {
			return err
		}
		if before, twice := rows[number]; twice {
			problem("order %s is stored twice, as %s and %s", number, before.id, x.id)
		}
		rows[number], numbers[x.id] = x, number
		return nil
	})
	if err != nil {
		return r, err
	}
	places := map[types.Snowflake][]int{}
	err = query(ctx, db, "SELECT order_id, place FROM fire_lines ORDER BY order_id, place", func(scan func(...any) error) error {
		var of types.Snowflake
		var place int
		err := scan(&of, &place)
		places[of] = append(places[of], place)
		return err
	})
	if err != nil {
		return r, err
	}
	for of := range places {
		if _, known := numbers[of]; !known {
			problem("there are lines of order %s, and no order", of)
		}
	}
	for number, x := range rows {
		if _, known := entries[number]; !known {
			problem("order %s is stored, and nobody has begun it", number)
		}
		var all []int
		for place := range x.lines {
			all = append(all, place)
		}
		if got := places[x.id]; !slices.Equal(got, all) {
			problem("order %s has lines %v; want %d", number, got, x.lines)
		}
	}
	for number, e := range entries {
		r.Orders++
		x, there := rows[number]
		switch e.Told {
		case stored:
			r.Stored++
			if !there {
				problem("order %s is not stored; its writer was told that it is", number)
			} else if x.id != e.ID {
				problem("order %s is stored as %s; its writer has %s", number, x.id, e.ID)
			}
		case notStored:
			r.NotStored++
			if there {
				problem("order %s is stored; its writer was told %q", number, e.Error)
			}
		case unknown:
			r.Unknown++
		default:
			problem("nobody knows what became of order %s", number)
		}
		if e.Bad && (there || e.Told == stored) {
			problem("order %s is stored: %t; its writer was told %s; the table refuses it", number, there, e.Told)
		}
	}
	return r, nil
}

func query(ctx context.Context, db *sql.DB, text string, each func(scan func(...any) error) error) error {
	rows, err := db.QueryContext(ctx, text)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := each(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// readEntries returns the last entry of each order.
func readEntries(dir string) (map[string]entry, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	last := map[string]entry{}
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			var e entry
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				return nil, fmt.Errorf("%s: %w", f.Name(), err)
			}
			last[e.Number] = e
		}
	}
	return last, nil
}

// Whole fails the test if an order is not as it should be, or the run has shown nothing.
func (r orderReport) Whole(t *testing.T) {
	t.Helper()
	for _, p := range r.Problems[:min(len(r.Problems), 20)] {
		t.Error(p)
	}
	Shown(t, r.Stored >= 100 && r.NotStored > 0, "%d orders were stored and %d were not; want 100 and some", r.Stored, r.NotStored)
}
