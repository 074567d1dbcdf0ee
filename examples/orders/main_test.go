package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/examples/internal/csvload"
	"github.com/snowkey/snowkey/types"
)

// The sample, counted by hand.
const (
	sampleCustomers = 12
	sampleProducts  = 15
	sampleOrders    = 25
	sampleLines     = 60
	sampleFirst     = 5001 // order number
)

// With ORDERS_MAIN set the test binary is the program itself, so that exit
// codes and signals can be tested.
func TestMain(m *testing.M) {
	if os.Getenv("ORDERS_MAIN") != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), "ORDERS_MAIN=1")
	return cmd
}

// runOK runs the program on file and returns what it prints.
func runOK(t *testing.T, file string, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if err := run(t.Context(), append([]string{"-db", file}, args...), &stdout, &stderr); err != nil {
		t.Fatalf("run(%q) = %v; want nil; stderr: %s", args, err, &stderr)
	}
	if stderr.Len() > 0 {
		t.Errorf("run(%q) wrote %q to stderr; want nothing", args, &stderr)
	}
	return stdout.String()
}

func dbFile(t *testing.T) string { return filepath.Join(t.TempDir(), "orders.db") }

// raw opens a file without any of the program's code.
func raw(t *testing.T, file string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite3", file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// number returns the one number that a query gives.
func number(t *testing.T, db *sql.DB, query string, args ...any) int64 {
	t.Helper()
	var n int64
	if err := db.QueryRowContext(t.Context(), query, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

func wantNumber(t *testing.T, db *sql.DB, want int64, query string, args ...any) {
	t.Helper()
	if got := number(t, db, query, args...); got != want {
		t.Errorf("%s %v = %d; want %d", query, args, got, want)
	}
}

// sampleFiles returns the built-in sample as texts by file name.
func sampleFiles(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, name := range []string{csvload.CustomersFile, csvload.ProductsFile, csvload.OrdersFile, csvload.LinesFile} {
		text, err := fs.ReadFile(sample, "data/"+name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(text)
	}
	return files
}

// folder writes files and returns where.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestEveryRowIsInTheFileOncePerLibrary(t *testing.T) {
	file := dbFile(t)
	runOK(t, file)
	db := raw(t, file)
	for _, p := range []string{"gorm_", "sqlx_"} {
		wantNumber(t, db, 1, "SELECT count(*) FROM "+p+"imports WHERE finished_at IS NOT NULL")
		wantNumber(t, db, sampleCustomers, "SELECT count(*) FROM "+p+"customers")
		wantNumber(t, db, sampleProducts, "SELECT count(*) FROM "+p+"products")
		wantNumber(t, db, sampleOrders, "SELECT count(*) FROM "+p+"orders")
		wantNumber(t, db, sampleLines, "SELECT count(*) FROM "+p+"order_items")
		// 118.75 × 12 × 0.95 + 22.20 × 7 × 0.95 + 38.60 × 0.75 = 1530.33
		wantNumber(t, db, 15303300, "SELECT total FROM "+p+"orders WHERE number = 5001")
		wantNumber(t, db, 15303300, "SELECT sum(l.total) FROM "+p+"order_items l JOIN "+p+"orders o ON o.id = l.order_id WHERE o.number = 5001")
		// Accents, NULL, and an address with a comma before the city.
		wantNumber(t, db, 1, "SELECT count(*) FROM "+p+"customers WHERE code = 'CACAO' AND company = 'Chocolatería Ñandú' AND city = 'Córdoba' AND country = 'Argentina'")
		wantNumber(t, db, 4, "SELECT count(*) FROM "+p+"orders WHERE shipped_at IS NULL")
		wantNumber(t, db, 1, "SELECT count(*) FROM "+p+"orders o JOIN "+p+"customers c ON c.id = o.customer_id WHERE o.number = 5002 AND c.company = 'ほし文具店' AND o.ship_city = '札幌市'")
	}
}

func TestTheLogIsFoldedIntoTheFileAtTheEnd(t *testing.T) {
	file := dbFile(t)
	runOK(t, file)
	for _, name := range []string{file + "-wal", file + "-shm"} {
		if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("os.Stat(%s) = %v; want it gone once the database is closed", filepath.Base(name), err)
		}
	}
}

func TestRunFailsIfTheDatabaseDoesNotHoldWhatWasWritten(t *testing.T) {
	for table, want := range map[string]string{
		"gorm_order_items": "GORM: order 5001 is stored as", "sqlx_order_items": "sqlx: order 5001 is stored as",
	} {
		t.Run(table, func(t *testing.T) {
			file := dbFile(t)
			runOK(t, file)
			if _, err := raw(t, file).ExecContext(t.Context(), "CREATE TRIGGER spoil AFTER INSERT ON "+table+
				" BEGIN UPDATE "+table+" SET quantity = quantity + 1 WHERE id = new.id; END"); err != nil {
				t.Fatal(err)
			}
			var stdout, stderr bytes.Buffer
			err := run(t.Context(), []string{"-db", file}, &stdout, &stderr)
			if err == nil || !strings.HasPrefix(err.Error(), "verifying "+file+": "+want) {
				t.Errorf("run = %v; want %s", err, want)
			}
			if stdout.Len() > 0 {
				t.Errorf("run prints %q; want nothing that looks like success", &stdout)
			}
		})
	}
}

func TestAReportThatCannotBeWrittenIsAnError(t *testing.T) {
	var stderr bytes.Buffer
	if err := run(t.Context(), []string{"-db", dbFile(t)}, failingWriter{}, &stderr); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("run = %v; want %v", err, fs.ErrClosed)
	}
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, fs.ErrClosed }

func TestNoAmountIsAFloat(t *testing.T) {
	file := dbFile(t)
	runOK(t, file)
	db := raw(t, file)
	for _, p := range []string{"gorm_", "sqlx_"} {
		for column, table := range map[string]string{
			"imports.total": "imports", "products.unit_price": "products", "orders.freight": "orders",
			"orders.total": "orders", "order_items.unit_price": "order_items", "order_items.total": "order_items",
			"order_items.discount_percent": "order_items",
		} {
			wantNumber(t, db, 0, "SELECT count(*) FROM "+p+table+" WHERE typeof("+p+column+") <> 'integer'")
		}
	}
}

func TestASecondRunAddsAnImportAndChangesNothingOfTheFirst(t *testing.T) {
	file := dbFile(t)
	runOK(t, file)
	db := raw(t, file)
	before := dump(t, db)
	second := runOK(t, file)
	after := dump(t, db)

	if len(before) == 0 || len(after) != 2*len(before) {
		t.Errorf("rows in all tables after the second run = %d; want twice %d", len(after), len(before))
	}
	for _, row := range before {
		if _, ok := slices.BinarySearch(after, row); !ok {
			t.Fatalf("after the second run the row %s is gone", row)
		}
	}
	if want := "(GORM 2, sqlx 2)"; !strings.Contains(second, want) {
		t.Errorf("second run prints %q; want it to contain %q", second, want)
	}
	for _, p := range []string{"gorm_", "sqlx_"} {
		wantNumber(t, db, 2, "SELECT count(DISTINCT import_id) FROM "+p+"orders WHERE number = 5001")
	}
}

// dump returns every row of every table as text, sorted.
func dump(t *testing.T, db *sql.DB) []string {
	t.Helper()
	var all []string
	for _, p := range []string{"gorm_", "sqlx_"} {
		for _, table := range allTables {
			rows, err := db.QueryContext(t.Context(), "SELECT * FROM "+p+table)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = rows.Close() }()
			columns, err := rows.Columns()
			if err != nil {
				t.Fatal(err)
			}
			for rows.Next() {
				cells := make([]any, len(columns))
				for i := range cells {
					cells[i] = new(any)
				}
				if err := rows.Scan(cells...); err != nil {
					t.Fatal(err)
				}
				text := p + table
				for _, c := range cells {
					text += fmt.Sprintf("|%v", *c.(*any))
				}
				all = append(all, text)
			}
			if err := rows.Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	slices.Sort(all)
	return all
}

func TestNorthwindIsStoredWhole(t *testing.T) {
	dir := os.Getenv("SNOWKEY_NORTHWIND")
	if dir == "" {
		t.Skip("SNOWKEY_NORTHWIND is not set: it names a folder with the Northwind CSV files")
	}
	file := dbFile(t)
	runOK(t, file, "-data", dir)
	runOK(t, file, "-data", dir)
	db := raw(t, file)
	for _, p := range []string{"gorm_", "sqlx_"} {
		wantNumber(t, db, 2*91, "SELECT count(*) FROM "+p+"customers")
		wantNumber(t, db, 2*77, "SELECT count(*) FROM "+p+"products")
		wantNumber(t, db, 2*830, "SELECT count(*) FROM "+p+"orders")
		wantNumber(t, db, 2*2155, "SELECT count(*) FROM "+p+"order_items")
		wantNumber(t, db, 2*12657930395, "SELECT sum(total) FROM "+p+"order_items")
		// Behind the comma in "Rua do Paço, 67".
		wantNumber(t, db, 2, "SELECT count(*) FROM "+p+"orders WHERE number = 10250 AND ship_city = 'Rio de Janeiro' AND ship_country = 'Brazil'")
	}
}

// A bad row, and the error that it leads to.
type badRow struct {
	name string
	// edit changes the sample.
	file string
	edit func(lines []string) []string
	want string // error
}

// replace edits one line (1 is the header) by replacing text that is in it.
func replace(line int, old, new string) func([]string) []string {
	return func(lines []string) []string {
		if !strings.Contains(lines[line-1], old) {
			panic(fmt.Sprintf("line %d is %q and has no %q", line, lines[line-1], old))
		}
		lines[line-1] = strings.Replace(lines[line-1], old, new, 1)
		return lines
	}
}

var badRows = []badRow{
	// order-details.csv:17 is "5007,2,19.95,15,0.1", line 18 the second of that order.
	{"unknown product", csvload.LinesFile, replace(17, "5007,2,", "5007,999,"), "order-details.csv:17: product 999 is not in products.csv"},
	{"unknown product in the last line of an order", csvload.LinesFile, replace(18, "5007,9,", "5007,999,"), "order-details.csv:18: product 999 is not in products.csv"},
	{"product is no number", csvload.LinesFile, replace(17, "5007,2,", "5007,two,"), `order-details.csv:17: productID "two": want a whole number from 1 to 2147483647`},
	{"product is NULL", csvload.LinesFile, replace(17, "5007,2,", "5007,NULL,"), "order-details.csv:17: productID is NULL"},
	{"quantity is no number", csvload.LinesFile, replace(17, ",15,", ",many,"), `order-details.csv:17: quantity "many": want a whole number from 1 to 100000`},
	{"quantity is a fraction", csvload.LinesFile, replace(17, ",15,", ",1.5,"), `order-details.csv:17: quantity "1.5": want a whole number from 1 to 100000`},
	{"quantity is zero", csvload.LinesFile, replace(17, ",15,", ",0,"), `order-details.csv:17: quantity "0": want a whole number from 1 to 100000`},
	{"quantity is negative", csvload.LinesFile, replace(17, ",15,", ",-15,"), `order-details.csv:17: quantity "-15": want a whole number from 1 to 100000`},
	{"quantity has a sign", csvload.LinesFile, replace(17, ",15,", ",+15,"), `order-details.csv:17: quantity "+15": want a whole number from 1 to 100000`},
	{"quantity is too large", csvload.LinesFile, replace(17, ",15,", ",100001,"), `order-details.csv:17: quantity "100001": want a whole number from 1 to 100000`},
	{"quantity does not fit 64 bits", csvload.LinesFile, replace(17, ",15,", ",99999999999999999999,"), `order-details.csv:17: quantity "99999999999999999999": want a whole number from 1 to 100000`},
	{"price is no number", csvload.LinesFile, replace(17, "19.95", "dear"), `order-details.csv:17: unitPrice "dear": want a number from 0 to 1000000 with at most two decimals`},
	{"price has three decimals", csvload.LinesFile, replace(17, "19.95", "19.955"), `order-details.csv:17: unitPrice "19.955": want a number from 0 to 1000000 with at most two decimals`},
	{"price has an exponent", csvload.LinesFile, replace(17, "19.95", "1e3"), `order-details.csv:17: unitPrice "1e3": want a number from 0 to 1000000 with at most two decimals`},
	{"price is too large", csvload.LinesFile, replace(17, "19.95", "1000000.01"), `order-details.csv:17: unitPrice "1000000.01": want a number from 0 to 1000000 with at most two decimals`},
	{"discount is no number", csvload.LinesFile, replace(17, "0.1", "10%"), `order-details.csv:17: discount "10%": want a number from 0 to 1 with at most two decimals`},
	{"discount is more than one", csvload.LinesFile, replace(17, "0.1", "1.01"), `order-details.csv:17: discount "1.01": want a number from 0 to 1 with at most two decimals`},
	{"discount is finer than a percent", csvload.LinesFile, replace(17, "0.1", "0.125"), `order-details.csv:17: discount "0.125": want a number from 0 to 1 with at most two decimals`},
	{"line with too few fields", csvload.LinesFile, replace(18, ",1,0", ",1"), "order-details.csv:18: 4 fields, the header has 5 columns"},
	{"first line of an order with too few fields", csvload.LinesFile, replace(17, ",15,0.1", ",15"), "order-details.csv:17: 4 fields, the header has 5 columns"},
	{"line with too many fields", csvload.LinesFile, replace(18, ",1,0", ",1,0,0"), "order-details.csv:18: 6 fields, the header has 5 columns"},
	{"line with an unknown order", csvload.LinesFile, replace(18, "5007,", "5999,"), "order-details.csv:18: order 5999 is not in orders.csv"},
	{"first line of an order with an unknown order", csvload.LinesFile, replace(17, "5007,2,", "5999,2,"), "order-details.csv:17: order 5999 is not in orders.csv"},
	{"line whose order is no number", csvload.LinesFile, replace(18, "5007,", "5OO7,"), `order-details.csv:18: orderID "5OO7": want a whole number from 1 to 9223372036854775807`},
	{"line whose order has a sign", csvload.LinesFile, replace(18, "5007,", "+5007,"), `order-details.csv:18: orderID "+5007": want a whole number from 1 to 9223372036854775807`},
	{"line of order zero", csvload.LinesFile, replace(18, "5007,", "0,"), `order-details.csv:18: orderID "0": want a whole number from 1 to 9223372036854775807`},
	{"line without its order", csvload.LinesFile, replace(18, "5007,", ""), "order-details.csv:18: 4 fields, the header has 5 columns"},
	{"line that is not UTF-8", csvload.LinesFile, replace(18, ",1,0", ",1,\xff"), `order-details.csv:18: "\xff" is not UTF-8`},

	// orders.csv:8 is order 5007.
	{"unknown customer", csvload.OrdersFile, replace(8, "FJORD", "FJARD"), "orders.csv:8: customer FJARD is not in customers.csv"},
	{"customer is NULL", csvload.OrdersFile, replace(8, "FJORD", "NULL"), "orders.csv:8: customerID is NULL"},
	{"order number is no number", csvload.OrdersFile, replace(8, "5007", "5OO7"), `orders.csv:8: orderID "5OO7": want a whole number from 1 to 9223372036854775807`},
	{"order with too few fields", csvload.OrdersFile, replace(8, ",Norway", ""), "orders.csv:8: 13 fields, the header has 14 columns"},
	{"order with a torn address and too few fields", csvload.OrdersFile, replace(2, ",France", ""), "orders.csv:2: 13 fields, the header has 14 columns"},
	{"order with too many fields", csvload.OrdersFile, replace(8, ",Norway", ",Norway,Norway"), "orders.csv:8: 15 fields, the header has 14 columns"},
	{"bad date", csvload.OrdersFile, replace(8, "2024-03-07", "2024-02-30"), `orders.csv:8: orderDate "2024-02-30 00:00:00.000": want a date like 1996-07-04 00:00:00.000`},
	{"bad optional date", csvload.OrdersFile, replace(8, "2024-03-17", "soon"), `orders.csv:8: shippedDate "soon 00:00:00.000": want a date like 1996-07-04 00:00:00.000`},
	{"date is NULL", csvload.OrdersFile, replace(8, "2024-03-07 00:00:00.000", "NULL"), "orders.csv:8: orderDate is NULL"},
	{"freight is no number", csvload.OrdersFile, replace(8, "56.87", "heavy"), `orders.csv:8: freight "heavy": want a number from 0 to 1000000 with at most two decimals`},
	{"order number there twice", csvload.OrdersFile, replace(20, "5019,", "5007,"), "orders.csv:20: order 5007 is in line 8 already"},

	{"column missing", csvload.LinesFile, replace(1, "discount", "rebate"), "order-details.csv:1: column discount is missing"},
	{"column there twice", csvload.OrdersFile, replace(1, "shipVia", "freight"), "orders.csv:1: column freight is there twice"},
	{"file is empty", csvload.OrdersFile, func([]string) []string { return nil }, "orders.csv:1: the file is empty, want a line of column names"},
	{"lines but no orders", csvload.OrdersFile, func(l []string) []string { return l[:1] }, "order-details.csv:2: order 5001 is not in orders.csv"},
	{"quote in a field", csvload.LinesFile, replace(18, ",1,0", `,1,0"`), `order-details.csv:18: bare " in non-quoted-field`},
	{"customer with too few fields", csvload.CustomersFile, replace(3, ",France", ""), "customers.csv:3: 10 fields, the header has 11 columns"},
	{"customer twice", csvload.CustomersFile, replace(3, "BRICO", "AALTO"), "customers.csv:3: customer AALTO is in line 2 already"},
	{"customer without code", csvload.CustomersFile, replace(3, "BRICO", ""), "customers.csv:3: customerID is NULL"},
	{"product twice", csvload.ProductsFile, replace(3, "2,", "1,"), "products.csv:3: product 1 is in line 2 already"},
	{"product price is no number", csvload.ProductsFile, replace(3, "19.95", "NaN"), `products.csv:3: unitPrice "NaN": want a number from 0 to 1000000 with at most two decimals`},
}

func TestABadRowIsNamedAndNothingIsWritten(t *testing.T) {
	used := dbFile(t)
	runOK(t, used)
	for _, bad := range badRows {
		t.Run(bad.name, func(t *testing.T) {
			files := sampleFiles(t)
			lines := bad.edit(strings.Split(files[bad.file], "\n"))
			files[bad.file] = strings.Join(lines, "\n")
			wantRefused(t, used, files, bad.want)
		})
	}
}

// wantRefused runs the program on files that it must not import, with a database
// that is not there and with one that is, used.
func wantRefused(t *testing.T, used string, files map[string]string, want string) {
	t.Helper()
	dir, fresh := folder(t, files), dbFile(t)
	before := dump(t, raw(t, used))
	for _, file := range []string{fresh, used} {
		var stdout, stderr bytes.Buffer
		err := run(t.Context(), []string{"-db", file, "-data", dir}, &stdout, &stderr)
		if err == nil || err.Error() != want {
			t.Errorf("run = %v; want %s", err, want)
		}
		if stdout.Len()+stderr.Len() > 0 {
			t.Errorf("run prints %q and %q; want nothing", &stdout, &stderr)
		}
	}
	if left, err := os.ReadDir(filepath.Dir(fresh)); err != nil || len(left) > 0 {
		t.Errorf("beside the database that was not there are %v, %v; want nothing", left, err)
	}
	if after := dump(t, raw(t, used)); !slices.Equal(after, before) {
		t.Errorf("the database that was there has %d rows; want the %d of before", len(after), len(before))
	}
}

func TestARunAfterAFailedOneIsVerifiedAndTheFailedOneStaysUnfinished(t *testing.T) {
	file := dbFile(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var stderr bytes.Buffer
	out := terminal{&stopper{Buffer: &bytes.Buffer{}, at: "order 6 of", stop: stop}}
	if err := run(ctx, []string{"-db", file}, out, &stderr); !errors.Is(err, csvload.ErrInterrupted) {
		t.Fatalf("run = %v; want %v", err, csvload.ErrInterrupted)
	}
	if got, want := runOK(t, file), "(GORM 1, sqlx 1)"; !strings.Contains(got, want) {
		t.Errorf("run prints %q; want it to contain %q", got, want)
	}
	db := raw(t, file)
	wantNumber(t, db, 6+sampleOrders, "SELECT count(*) FROM gorm_orders")
	wantNumber(t, db, 1, "SELECT count(*) FROM gorm_imports WHERE finished_at IS NULL")
}

func TestTheOrderIsPrintedWithStringIDs(t *testing.T) {
	file := dbFile(t)
	out := runOK(t, file)
	var order map[string]any
	_, text, _ := strings.Cut(out, "{")
	if err := json.NewDecoder(strings.NewReader("{" + text)).Decode(&order); err != nil {
		t.Fatalf("decoding the printed order: %v\n%s", err, out)
	}
	items, _ := order["items"].([]any)
	if len(items) != 3 {
		t.Fatalf("printed order %v has %d items; want 3", order["number"], len(items))
	}
	rows := []map[string]any{order}
	for _, item := range items {
		rows = append(rows, item.(map[string]any))
	}
	ids := 0
	for _, row := range rows {
		for name, value := range row {
			if name != "id" && !strings.HasSuffix(name, "_id") {
				continue
			}
			ids++
			text, ok := value.(string)
			if id, err := types.Parse(text); !ok || err != nil || id == 0 {
				t.Errorf("%s = %#v; want an ID as a string", name, value)
			}
		}
	}
	if want := 3 + 3*3; ids != want {
		t.Errorf("the printed order has %d IDs; want %d", ids, want)
	}
	for _, item := range rows[1:] {
		if item["order_id"] != order["id"] {
			t.Errorf("item has order_id %v; want %v", item["order_id"], order["id"])
		}
	}
	if got := order["total"]; got != "1530.33" {
		t.Errorf("total = %#v; want the text 1530.33", got)
	}
	wantNumber(t, raw(t, file), sampleFirst, "SELECT number FROM gorm_orders WHERE id = CAST(? AS INTEGER)", order["id"])
}

func TestEveryKeyCarriesTheWorkerNumberOfTheFlag(t *testing.T) {
	file := dbFile(t)
	out := runOK(t, file, "-worker", "7")
	if want := "\n  worker      7\n"; !strings.Contains(out, want) {
		t.Errorf("run -worker 7 prints %q; want it to contain %q", out, want)
	}
	db := raw(t, file)
	for _, p := range []string{"gorm_", "sqlx_"} {
		for _, table := range allTables {
			rows, err := db.QueryContext(t.Context(), "SELECT id FROM "+p+table)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = rows.Close() }()
			seen := 0
			for rows.Next() {
				var id types.Snowflake
				if err := rows.Scan(&id); err != nil {
					t.Fatal(err)
				}
				seen++
				if got := core.Default().Parts(id).Worker; got != 7 {
					t.Fatalf("key %d in %s%s has worker %d; want 7", id, p, table, got)
				}
			}
			if err := rows.Err(); err != nil || seen == 0 {
				t.Fatalf("%s%s: %d keys, error %v", p, table, seen, err)
			}
		}
	}
}

func TestAWorkerNumberOutOfRangeIsAnError(t *testing.T) {
	var out bytes.Buffer
	err := run(t.Context(), []string{"-db", dbFile(t), "-worker", "-1"}, &out, &out)
	if err == nil || !strings.Contains(err.Error(), "-1") {
		t.Errorf("run -worker -1 = %v; want an error that names -1", err)
	}
}

func TestProgressIsShownOnATerminalOnly(t *testing.T) {
	var pipe, term, stderr bytes.Buffer
	if err := run(t.Context(), []string{"-db", dbFile(t)}, &pipe, &stderr); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(pipe.String(), "\r\x1b") {
		t.Errorf("output to a pipe = %q; want no control characters", &pipe)
	}
	if err := run(t.Context(), []string{"-db", dbFile(t)}, terminal{&term}, &stderr); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\rwriting order 1 of 25", "\rwriting order 25 of 25\r\x1b[KWrote "} {
		if !strings.Contains(term.String(), want) {
			t.Errorf("output to a terminal = %q; want it to contain %q", &term, want)
		}
	}
}

func TestBadFlagsPrintTheUsage(t *testing.T) {
	for _, args := range [][]string{{"-nonsense"}, {"-worker", "x"}, {"orders.db"}} {
		var stdout, stderr bytes.Buffer
		err := run(t.Context(), args, &stdout, &stderr)
		if !errors.Is(err, csvload.ErrUsage) {
			t.Errorf("run(%q) = %v; want %v", args, err, csvload.ErrUsage)
		}
		for _, want := range []string{"Usage of orders", "-data folder", "-db file", "-worker number", strings.TrimPrefix(args[0], "-")} {
			if !strings.Contains(stderr.String(), want) {
				t.Errorf("run(%q) writes %q to stderr; want it to contain %q", args, &stderr, want)
			}
		}
	}
	var stdout, stderr bytes.Buffer
	if err := run(t.Context(), []string{"-h"}, &stdout, &stderr); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("run(-h) = %v; want %v", err, flag.ErrHelp)
	}
	wantNarrow(t, stderr.String())
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	files := sampleFiles(t)
	files[csvload.LinesFile] = strings.Replace(files[csvload.LinesFile], "5007,2,", "5007,999,", 1)
	bad := folder(t, files)
	for _, tt := range []struct {
		args   []string
		code   int
		stderr string
	}{
		{[]string{"-db", dbFile(t)}, 0, ""},
		{[]string{"-h"}, 0, "Usage of orders"},
		{[]string{"-nonsense"}, 2, "Usage of orders"},
		{[]string{"-db", dbFile(t), "-data", bad}, 1, "orders: order-details.csv:17: product 999 is not in products.csv\n"},
		{[]string{"-db", dbFile(t), "-data", filepath.Join(bad, "nowhere")}, 1, "orders: "},
		{[]string{"-db", t.TempDir()}, 1, "orders: "},
		{[]string{"-db", ""}, 1, "orders: -db is empty"},
	} {
		cmd := program(t, tt.args...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		err := cmd.Run()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		if got := cmd.ProcessState.ExitCode(); got != tt.code {
			t.Errorf("orders %q exits with %d; want %d; stderr: %s", tt.args, got, tt.code, &stderr)
		}
		if !strings.Contains(stderr.String(), tt.stderr) || tt.stderr == "" && stderr.Len() > 0 {
			t.Errorf("orders %q writes %q to stderr; want it to contain %q", tt.args, &stderr, tt.stderr)
		}
	}
}

func TestAMissingFolderIsNamed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "nowhere")
	var out bytes.Buffer
	err := run(t.Context(), []string{"-db", dbFile(t), "-data", dir}, &out, &out)
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), dir) {
		t.Errorf("run -data %s = %v; want an error that names the folder and matches %v", dir, err, fs.ErrNotExist)
	}
}

func TestMoreRowsThanOneStatementTakesAreStoredAndReadBack(t *testing.T) {
	t.Parallel() // with tests that start the program; there is one generator per process
	files := sampleFiles(t)
	orders, _, _ := strings.Cut(files[csvload.OrdersFile], "\n")
	details, _, _ := strings.Cut(files[csvload.LinesFile], "\n")
	customers, _, _ := strings.Cut(files[csvload.CustomersFile], "\n")
	// 5000 rows of seven or more columns are more than SQLite's 32,766
	// parameters; the orders are more than GORM reads at a time.
	const many, some = 5000, 2*gormBatch + 1
	for i := 1; i <= many; i++ {
		customers += fmt.Sprintf("\nC%d,n,n,n,n,n,n,n,n,n,n", i)
		details += fmt.Sprintf("\n77,2,0.01,%d,0.01", i)
	}
	for i := 1; i <= some; i++ {
		orders += fmt.Sprintf("\n%d,C%d,1,2024-02-19 00:00:00.000,NULL,NULL,1,1.00,a,b,c,d,e,f", i, i)
	}
	files[csvload.OrdersFile], files[csvload.LinesFile], files[csvload.CustomersFile] = orders, details, customers
	file := dbFile(t)
	runOK(t, file, "-data", folder(t, files))
	for _, p := range []string{"gorm_", "sqlx_"} {
		wantNumber(t, raw(t, file), some, "SELECT count(*) FROM "+p+"orders")
		wantNumber(t, raw(t, file), many, "SELECT count(*) FROM "+p+"order_items")
		wantNumber(t, raw(t, file), many, "SELECT count(*) FROM "+p+"customers")
	}
}

func TestOrdersAndLinesNeedNotBeSorted(t *testing.T) {
	files := sampleFiles(t)
	for _, name := range []string{csvload.OrdersFile, csvload.LinesFile} {
		lines := strings.Split(strings.TrimSpace(files[name]), "\n")
		slices.Reverse(lines[1:])
		files[name] = strings.Join(lines, "\n")
	}
	files[csvload.OrdersFile] = swap(files[csvload.OrdersFile], "5009", "5020")
	out := runOK(t, dbFile(t), "-data", folder(t, files))
	if want := "Order 5025 as JSON"; !strings.Contains(out, want) {
		t.Errorf("run prints %q; want it to contain %q, the first order of the file", out, want)
	}
}

// swap exchanges two texts that are in s.
func swap(s, a, b string) string { return strings.NewReplacer(a, b, b, a).Replace(s) }

func TestATotalThatDoesNotFitIsAnErrorBeforeAnythingIsWritten(t *testing.T) {
	used := dbFile(t)
	runOK(t, used)
	// One line is at most 10^15 of Money, and 9,223 of them fit.
	line := "%d,1,1000000.00,100000,0\n"
	for _, tt := range []struct {
		name          string
		first, second int // lines of 5001 and 5002
		want          string
	}{
		{"of one order", 1, 9224, "order-details.csv:9225: with this line the total of all orders is too large"},
		{"of all", 9223, 1, "order-details.csv:9225: with this line the total of all orders is too large"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files := sampleFiles(t)
			details, _, _ := strings.Cut(files[csvload.LinesFile], "\n")
			files[csvload.LinesFile] = details + "\n" + strings.Repeat(fmt.Sprintf(line, 5001), tt.first) +
				strings.Repeat(fmt.Sprintf(line, 5002), tt.second)
			wantRefused(t, used, files, tt.want)
		})
	}
}

func TestAFileThatCannotBeWrittenIsNamedWithWhatToDo(t *testing.T) {
	for _, file := range []string{filepath.Join(t.TempDir(), "x", "orders.db"), t.TempDir()} {
		var out bytes.Buffer
		err := run(t.Context(), []string{"-db", file}, &out, &out)
		if err == nil || !strings.HasPrefix(err.Error(), "cannot write to "+file+": ") || !strings.HasSuffix(err.Error(), "; choose a file in a folder that you may write to, with -db") {
			t.Errorf("run -db %s = %v; want an error that begins with %q and says what to do", file, err, "cannot write to "+file)
		}
	}
}

func TestAFolderThatCannotBeWrittenIsNamedWithWhatToDo(t *testing.T) {
	file := dbFile(t)
	runOK(t, file)
	// A folder where SQLite's log belongs stands for one that cannot be written, which
	// root can.
	if err := os.Mkdir(file+"-wal", 0o700); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err := run(t.Context(), []string{"-db", file}, &out, &out)
	if err == nil || !strings.HasPrefix(err.Error(), "cannot write beside "+file+": ") {
		t.Errorf("run = %v; want that it cannot write beside %s", err, file)
	}
}

func TestAnInterruptBeforeTheFirstStatementLeavesNoFile(t *testing.T) {
	file := dbFile(t)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	var out bytes.Buffer
	if err := run(ctx, []string{"-db", file}, &out, &out); !errors.Is(err, csvload.ErrInterrupted) {
		t.Errorf("run = %v; want %v", err, csvload.ErrInterrupted)
	}
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("os.Stat(%s) = %v; want %v", file, err, fs.ErrNotExist)
	}
}

func TestTheOutputFitsInATerminalOf80Columns(t *testing.T) {
	t.Chdir(t.TempDir())
	wantNarrow(t, runOK(t, "orders.db"))
	if dir := os.Getenv("SNOWKEY_NORTHWIND"); dir != "" {
		out := runOK(t, "orders.db", "-data", dir)
		_, report, _ := strings.Cut(out, "\n") // the first line has the name of the folder
		wantNarrow(t, report)
	}
}

// wantNarrow checks that a text fits in a terminal of 80 columns.
func wantNarrow(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(strings.ReplaceAll(text, "    \t", "        ")) {
		if utf8.RuneCountInString(line) > 80 { // and the newline is one
			t.Errorf("the line %q is wider than 79 columns", line)
		}
	}
}

func TestNoOrdersIsNoError(t *testing.T) {
	files := sampleFiles(t)
	for name, text := range maps.Clone(files) {
		header, _, _ := strings.Cut(text, "\n")
		files[name] = header + "\n"
	}
	out := runOK(t, dbFile(t), "-data", folder(t, files))
	if strings.Contains(out, "as JSON") {
		t.Errorf("run without orders prints %q; want no order", out)
	}
}

func TestInterruptedRunKeepsWholeOrdersOnly(t *testing.T) {
	file := dbFile(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var term, stderr bytes.Buffer
	// The progress line of order 9 is the interrupt.
	out := terminal{&stopper{Buffer: &term, at: "order 9 of", stop: stop}}
	err := run(ctx, []string{"-db", file}, out, &stderr)
	if !errors.Is(err, csvload.ErrInterrupted) {
		t.Fatalf("run = %v; want %v", err, csvload.ErrInterrupted)
	}
	if want := "Of 25 orders, 9 through GORM and 9 through sqlx are written and stay"; !strings.Contains(stderr.String(), want) {
		t.Errorf("stderr = %q; want it to contain %q", &stderr, want)
	}
	if !strings.HasSuffix(term.String(), "\r\x1b[K") {
		t.Errorf("output = %q; want the progress line erased", &term)
	}
	db := raw(t, file)
	for _, p := range []string{"gorm_", "sqlx_"} {
		wantNumber(t, db, 9, "SELECT count(*) FROM "+p+"orders")
		wantNumber(t, db, 21, "SELECT count(*) FROM "+p+"order_items") // of 5001 to 5009
		wantNumber(t, db, 1, "SELECT count(*) FROM "+p+"imports WHERE finished_at IS NULL")
	}
	runOK(t, file)
}

// A terminal is a writer that says it is one.
type terminal struct{ io.Writer }

func (terminal) Stat() (os.FileInfo, error) { return charDevice{}, nil }

type charDevice struct{ os.FileInfo }

func (charDevice) Mode() os.FileMode { return os.ModeDevice | os.ModeCharDevice }

// A stopper calls stop when a text is written.
type stopper struct {
	*bytes.Buffer
	at   string
	stop context.CancelFunc
}

func (s *stopper) Write(p []byte) (int, error) {
	if strings.Contains(string(p), s.at) {
		s.stop()
	}
	return s.Buffer.Write(p)
}
