// Invoices gives invoices numbers without gaps, and payments the serials of their keys, in
// a new SQLite file. Ten clients write at once, half of them through GORM and half through
// sqlx. Some roll back. The year ends meanwhile, and one invoice is cancelled. Then the
// program lists the invoices and checks their numbers.
//
//	go run ./examples/invoices
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"iter"
	"log"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/serial"
	"github.com/snowkey/snowkey/core/serial/sqlserial"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

// Invoice has a key for the program, and a number for people.
type Invoice struct {
	types.Model
	Number    string    `db:"number"    gorm:"uniqueIndex"`
	Date      time.Time `db:"date"`
	Client    int       `db:"client"`
	Cancelled string    `db:"cancelled"` // why; an invoice that was cancelled stays
}

// Payment has a serial that is its key in another form. It is not stored.
type Payment struct {
	types.Model
	InvoiceID types.Snowflake `db:"invoice_id" gorm:"index"`
}

// invoices begin again each year: INV2026000001. No law asks for the check digit; it finds
// a number that was mistyped.
var invoices = serial.Series{Name: "invoices", Prefix: "INV", Period: serial.Yearly, Digits: 6, Check: serial.Luhn}

const (
	clients = 10
	each    = 6 // invoices that a client writes: half of them in the old year
)

var (
	oldYear = time.Date(2026, 12, 31, 12, 0, 0, 0, time.UTC)
	newYear = time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
)

func main() {
	dir, err := os.MkdirTemp("", "invoices")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := run(context.Background(), filepath.Join(dir, "invoices.db"), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// An office is all that a client needs.
type office struct {
	keys     *core.Generator
	gorm     *gorm.DB
	sqlx     *sqlx.DB
	helper   *sqlxhelper.Helper
	numbers  *sqlserial.Store
	payments *serial.Codec
}

func run(ctx context.Context, file string, out io.Writer) (err error) {
	gen, err := core.New(core.Config{Worker: core.StaticWorker(1)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, gen.Close(ctx)) }()
	o, err := open(ctx, file, gen)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.sqlx.Close()) }()

	// Ten clients at once.
	failures := make([]error, clients)
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() { failures[c] = o.client(ctx, c) })
	}
	wg.Wait()
	if err := errors.Join(failures...); err != nil {
		return err
	}

	// The old year is over.
	if err := o.numbers.ClosePeriod(ctx, invoices.Name, oldYear); err != nil {
		return err
	}
	lateInvoice, err := o.invoice(ctx, oldYear, 0)
	if err != nil {
		return err
	}
	late := o.throughSQLX(ctx, lateInvoice, false)
	if !errors.Is(late, serial.ErrPeriodClosed) {
		return errors.Join(errors.New("an invoice of a year that is closed is not refused as such"), late)
	}
	_, _ = fmt.Fprintln(out, "a late invoice is refused:", late)

	// An invoice that was a mistake is cancelled, and keeps its number.
	_, err = o.sqlx.ExecContext(ctx, "UPDATE invoices SET cancelled = 'written twice' WHERE number = (SELECT min(number) FROM invoices)")
	if err != nil {
		return err
	}
	if err := o.list(ctx, out); err != nil {
		return err
	}
	for _, at := range []time.Time{oldYear, newYear} {
		if err := o.check(ctx, out, at); err != nil {
			return err
		}
	}
	return nil
}

// open opens the file, makes the tables, and defines the series.
func open(ctx context.Context, file string, gen *core.Generator) (*office, error) {
	// A transaction locks the file when it begins. Otherwise one that reads first could
	// not write any more, if another has written meanwhile.
	db, err := gorm.Open(sqlite.Open("file:"+file+"?_journal_mode=WAL&_txlock=immediate&_busy_timeout=10000"), &gorm.Config{})
	if err != nil {
		return nil, err
	}
	if err := db.Use(gormplugin.New(gen)); err != nil {
		return nil, err
	}
	if err := db.WithContext(ctx).AutoMigrate(&Invoice{}, &Payment{}); err != nil {
		return nil, err
	}
	pool, err := db.DB()
	if err != nil {
		return nil, err
	}
	numbers, err := sqlserial.New(pool, sqlstore.Config{Dialect: sqlstore.SQLite})
	if err != nil {
		return nil, err
	}
	if err := numbers.CreateTables(ctx); err != nil {
		return nil, err
	}
	if err := numbers.Define(ctx, invoices); err != nil {
		return nil, err
	}
	payments, err := serial.NewCodec(serial.CodecConfig{Prefix: "PAY-", Check: serial.Mod11_10})
	if err != nil {
		return nil, err
	}
	return &office{keys: gen, gorm: db, sqlx: sqlx.NewDb(pool, "sqlite3"), helper: sqlxhelper.New(gen), numbers: numbers, payments: payments}, nil
}

// errMind is why some clients roll back.
var errMind = errors.New("the client has changed its mind")

// client writes invoices. Every third is rolled back, and its number goes to the next.
func (o *office) client(ctx context.Context, c int) error {
	for i := range each {
		date := oldYear
		if i >= each/2 {
			date = newYear
		}
		invoice, err := o.invoice(ctx, date, c)
		if err != nil {
			return err
		}
		store := o.throughGORM
		if c%2 == 1 {
			store = o.throughSQLX
		}
		undo := (c+i)%3 == 0
		if err := store(ctx, invoice, undo); err != nil && !errors.Is(err, errMind) {
			return err
		}
	}
	return nil
}

// invoice returns an invoice that has its key, and no number yet.
func (o *office) invoice(ctx context.Context, date time.Time, client int) (*Invoice, error) {
	id, err := o.keys.Next(ctx)
	return &Invoice{Model: types.Model{ID: id}, Date: date, Client: client}, err
}

// throughGORM stores an invoice and its payment. Others wait for the end of a transaction
// that has a number, so it takes that last, and stores before it what does not need it. The
// payment refers to the invoice by its key, which is there before the invoice is.
func (o *office) throughGORM(ctx context.Context, invoice *Invoice, undo bool) error {
	return o.gorm.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		if err := tx.Create(&Payment{InvoiceID: invoice.ID}).Error; err != nil {
			return err
		}
		n, err := o.numbers.NextIn(ctx, tx.Statement.ConnPool, invoices, invoice.Date)
		if err != nil {
			return err
		}
		invoice.Number = n.Text
		if err := tx.Create(invoice).Error; err != nil {
			return err
		}
		return mind(undo)
	})
}

// throughSQLX does the same through sqlx. InTx may run the function more than once. The last
// run is the one that is stored, so after nil the invoice has its number. After
// sqlxhelper.ErrCommitUnknown, read the invoice by its key before you show a number.
func (o *office) throughSQLX(ctx context.Context, invoice *Invoice, undo bool) error {
	return sqlxhelper.InTx(ctx, o.sqlx, nil, func(tx *sqlx.Tx) error {
		if err := o.helper.Insert(ctx, tx, "payments", &Payment{InvoiceID: invoice.ID}); err != nil {
			return err
		}
		n, err := o.numbers.NextIn(ctx, tx, invoices, invoice.Date)
		if err != nil {
			return err
		}
		invoice.Number = n.Text
		if err := o.helper.Insert(ctx, tx, "invoices", invoice); err != nil {
			return err
		}
		return mind(undo)
	})
}

func mind(undo bool) error {
	if undo {
		return errMind
	}
	return nil
}

// list prints the invoices with the serials of their payments, and reads each serial back.
func (o *office) list(ctx context.Context, out io.Writer) error {
	var rows []struct {
		Number    string          `db:"number"`
		Client    int             `db:"client"`
		Cancelled string          `db:"cancelled"`
		Payment   types.Snowflake `db:"payment"`
	}
	err := o.sqlx.SelectContext(ctx, &rows, `SELECT number, client, cancelled, payments.id AS payment
		FROM invoices JOIN payments ON invoice_id = invoices.id ORDER BY number`)
	if err != nil {
		return err
	}
	for _, row := range rows {
		payment, err := o.payments.Format(row.Payment)
		if err != nil {
			return err
		}
		if key, err := o.payments.Parse(payment); err != nil || key != row.Payment {
			return fmt.Errorf("the serial %s is that of key %d, want %d (%w)", payment, key, row.Payment, err)
		}
		cancelled := ""
		if row.Cancelled != "" {
			cancelled = " cancelled: " + row.Cancelled
		}
		_, _ = fmt.Fprintf(out, "%s client %d %s%s\n", row.Number, row.Client, payment, cancelled)
	}
	return nil
}

// check compares the numbers of a year with the counter.
func (o *office) check(ctx context.Context, out io.Writer, at time.Time) error {
	period, err := invoices.PeriodOf(at)
	if err != nil {
		return err
	}
	count := 0
	numbers, failure := o.numbersOf(ctx, invoices.Prefix+period+"%")
	gaps, err := o.numbers.Gaps(ctx, invoices.Name, period, func(yield func(int64) bool) {
		for n := range numbers {
			count++
			if !yield(n) {
				return
			}
		}
	})
	if err := errors.Join(err, *failure); err != nil {
		return err
	}
	if len(gaps) > 0 {
		return fmt.Errorf("the numbers of %s have gaps: %+v", period, gaps)
	}
	_, _ = fmt.Fprintf(out, "%s: %d invoices, no gap\n", period, count)
	return nil
}

// numbersOf reads the numbers of a year, one at a time. It returns the error of the
// rows.
func (o *office) numbersOf(ctx context.Context, pattern string) (numbers iter.Seq[int64], failure *error) {
	failure = new(error)
	return func(yield func(int64) bool) {
		*failure = func() (err error) {
			rows, err := o.sqlx.QueryContext(ctx, "SELECT number FROM invoices WHERE number LIKE ? ORDER BY number", pattern)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, rows.Close()) }()
			for rows.Next() {
				n, err := read(rows)
				if err != nil {
					return err
				}
				if !yield(n) {
					return nil
				}
			}
			return rows.Err()
		}()
	}, failure
}

// read reads the number of a row, check digit included.
func read(rows *sql.Rows) (int64, error) {
	var text string
	if err := rows.Scan(&text); err != nil {
		return 0, err
	}
	n, err := invoices.Parse(text)
	return n.N, err
}
