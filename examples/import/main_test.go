package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/jmoiron/sqlx"

	"github.com/snowkey/snowkey/examples/internal/csvload"
)

// With IMPORT_MAIN set the test binary is the program itself, so that exit codes
// can be tested.
func TestMain(m *testing.M) {
	if os.Getenv("IMPORT_MAIN") != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// runOK runs the program and returns what it prints.
func runOK(t *testing.T, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if err := run(t.Context(), args, &stdout, &stderr); err != nil {
		t.Fatalf("run(%q) = %v; want nil; stderr: %s", args, err, &stderr)
	}
	return stdout.String()
}

// dbFile names a file that is not there, alone in a folder.
func dbFile(t *testing.T) string { return filepath.Join(t.TempDir(), "import.db") }

// raw opens a file without any of the program's code.
func raw(t *testing.T, file string) *sqlx.DB {
	t.Helper()
	db, err := sqlx.Open("sqlite3", file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// prepare makes a database with what the statements make, and closes it.
func prepare(t *testing.T, statements string) (file string) {
	t.Helper()
	file = dbFile(t)
	db := raw(t, file)
	if _, err := db.ExecContext(t.Context(), statements); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return file
}

// want checks the one value that a query gives, as text.
func want(t *testing.T, db *sqlx.DB, want string, query string) {
	t.Helper()
	var got string
	if err := db.GetContext(t.Context(), &got, query); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	if got != want {
		t.Errorf("%s = %s; want %s", query, got, want)
	}
}

// content returns the files in the folder of a database, by name.
func content(t *testing.T, file string) map[string]string {
	t.Helper()
	found := map[string]string{}
	entries, err := os.ReadDir(filepath.Dir(file))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(filepath.Dir(file), e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		found[e.Name()] = string(text)
	}
	return found
}

// wantUnchanged checks that a folder has the files that it had, byte for byte.
func wantUnchanged(t *testing.T, file string, before map[string]string) {
	t.Helper()
	after := content(t, file)
	for name, text := range after {
		if old, ok := before[name]; !ok {
			t.Errorf("%s is left behind", name)
		} else if old != text {
			t.Errorf("%s has changed", name)
		}
	}
	if len(after) < len(before) {
		t.Errorf("%d files are left of %d", len(after), len(before))
	}
}

// edited copies testdata to a new folder and replaces a text in one line of one
// file; line 1 is the header.
func edited(t *testing.T, file string, line int, old, new string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	if err := os.CopyFS(folder, os.DirFS("testdata")); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, file)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(text), "\n")
	if !strings.Contains(lines[line-1], old) {
		t.Fatalf("%s:%d is %q and has no %q", file, line, lines[line-1], old)
	}
	lines[line-1] = strings.Replace(lines[line-1], old, new, 1)
	if err := os.WriteFile(path, []byte(strings.Join(lines, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

func TestEveryRowIsStoredAsTheFilesSay(t *testing.T) {
	folders := map[string]string{"testdata": "testdata"}
	if dir := os.Getenv("SNOWKEY_NORTHWIND"); dir != "" {
		folders["Northwind"] = dir
	}
	made, err := makeFolder(t.Context(), 6*chunkRows+1, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(made) })
	folders["made up"] = made
	for name, folder := range folders {
		t.Run(name, func(t *testing.T) {
			file := dbFile(t)
			runOK(t, "-db", file, "-data", folder)
			if got := len(content(t, file)); got != 1 {
				t.Errorf("files in the folder of the database = %d; want the database alone", got)
			}
			db := raw(t, file)
			for query, column := range map[string]struct{ file, name string }{
				"SELECT code FROM customers ORDER BY id":                                                {csvload.CustomersFile, "customerID"},
				"SELECT company FROM customers ORDER BY id":                                             {csvload.CustomersFile, "companyName"},
				"SELECT coalesce(city, 'NULL') FROM customers ORDER BY id":                              {csvload.CustomersFile, "city"},
				"SELECT number FROM products ORDER BY id":                                               {csvload.ProductsFile, "productID"},
				"SELECT unit_price_cents FROM products ORDER BY id":                                     {csvload.ProductsFile, "unitPrice"},
				"SELECT number FROM orders ORDER BY id":                                                 {csvload.OrdersFile, "orderID"},
				"SELECT code FROM orders o JOIN customers c ON c.id = customer_id ORDER BY o.id":        {csvload.OrdersFile, "customerID"},
				"SELECT freight_cents FROM orders ORDER BY id":                                          {csvload.OrdersFile, "freight"},
				"SELECT strftime('%F %T', ordered_at) FROM orders ORDER BY id":                          {csvload.OrdersFile, "orderDate"},
				"SELECT coalesce(strftime('%F %T', shipped_at), 'NULL') FROM orders ORDER BY id":        {csvload.OrdersFile, "shippedDate"},
				"SELECT coalesce(ship_country, 'NULL') FROM orders ORDER BY id":                         {csvload.OrdersFile, "shipCountry"},
				"SELECT o.number FROM order_lines l JOIN orders o ON o.id = order_id ORDER BY l.id":     {csvload.LinesFile, "orderID"},
				"SELECT p.number FROM order_lines l JOIN products p ON p.id = product_id ORDER BY l.id": {csvload.LinesFile, "productID"},
				"SELECT unit_price_cents FROM order_lines ORDER BY id":                                  {csvload.LinesFile, "unitPrice"},
				"SELECT quantity FROM order_lines ORDER BY id":                                          {csvload.LinesFile, "quantity"},
				"SELECT discount_percent FROM order_lines ORDER BY id":                                  {csvload.LinesFile, "discount"},
			} {
				var got []string
				if err := db.SelectContext(t.Context(), &got, query); err != nil {
					t.Fatalf("%s: %v", query, err)
				}
				if want := columnOf(t, folder, column.file, column.name); !slices.Equal(got, want) {
					t.Errorf("%s\n= %.300q\nwant column %s of %s, %.300q", query, got, column.name, column.file, want)
				}
			}
			want(t, db, "0", "SELECT count(*) FROM pragma_foreign_key_check")
			want(t, db, "6", "SELECT count(*) FROM sqlite_master WHERE type = 'index'")
		})
	}
}

func TestNorthwindHasItsKnownSums(t *testing.T) {
	folder := os.Getenv("SNOWKEY_NORTHWIND")
	if folder == "" {
		t.Skip("SNOWKEY_NORTHWIND is not set: it names a folder with the Northwind CSV files")
	}
	file := dbFile(t)
	runOK(t, "-db", file, "-data", folder)
	db := raw(t, file)
	want(t, db, "91", "SELECT count(*) FROM customers")
	want(t, db, "77", "SELECT count(*) FROM products")
	want(t, db, "830", "SELECT count(*) FROM orders")
	want(t, db, "2155", "SELECT count(*) FROM order_lines")
	want(t, db, "51317", "SELECT sum(quantity) FROM order_lines")
	want(t, db, "12657930395", "SELECT sum(unit_price_cents * quantity * (100 - discount_percent)) FROM order_lines")
}

// columnOf reads a column of a file without any of the program's code, in the
// form in which the database gives it back.
func columnOf(t *testing.T, folder, file, column string) []string {
	t.Helper()
	f, err := os.Open(filepath.Join(folder, file))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	reader := csv.NewReader(f)
	reader.FieldsPerRecord = -1
	records, err := reader.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	at := slices.Index(records[0], column)
	var values []string
	for _, fields := range records[1:] {
		// An address that a comma has torn is before the last columns.
		text := fields[at]
		for i := range fields[:at+1] {
			if strings.HasPrefix(fields[i], " ") {
				text = fields[at+len(fields)-len(records[0])]
			}
		}
		switch {
		case column == "unitPrice" || column == "freight" || column == "discount":
			n, ok := new(big.Rat).SetString(text)
			if !ok {
				t.Fatalf("%s: %q is not a number", file, text)
			}
			text = n.Mul(n, big.NewRat(100, 1)).RatString()
		case strings.HasSuffix(column, "Date"):
			text, _, _ = strings.Cut(text, ".")
		case text == "":
			text = "NULL"
		}
		values = append(values, text)
	}
	return values
}

func TestASecondLoadOfTheSameRowsIsRefusedAndChangesNothing(t *testing.T) {
	file := dbFile(t)
	runOK(t, "-db", file, "-data", "testdata")
	before := content(t, file)
	var stdout, stderr bytes.Buffer
	err := run(t.Context(), []string{"-db", file, "-data", "testdata"}, &stdout, &stderr)
	if want := "customers.csv:2: the row is in the database already (UNIQUE constraint failed: customers.code)"; err == nil || err.Error() != want {
		t.Errorf("second run = %v; want %s", err, want)
	}
	if want := "Nothing was loaded."; !strings.Contains(stderr.String(), want) || stdout.Len() > 0 {
		t.Errorf("second run writes %q and %q; want nothing and %q", &stdout, &stderr, want)
	}
	wantUnchanged(t, file, before)
}

func TestASecondRunAddsMoreMadeUpRows(t *testing.T) {
	file := dbFile(t)
	runOK(t, "-db", file, "-data", "testdata")
	runOK(t, "-db", file, "-rows", "5000")
	runOK(t, "-db", file, "-rows", "1") // fewer orders than products
	runOK(t, "-db", file, "-rows", "5000")
	db := raw(t, file)
	want(t, db, "10008", "SELECT count(*) FROM order_lines")
	want(t, db, "2505", "SELECT count(DISTINCT number) FROM orders")
	want(t, db, "25", "SELECT count(DISTINCT code) FROM customers")
	want(t, db, "303", "SELECT count(DISTINCT number) FROM products")
}

func TestAnotherFolderIsAddedToADatabase(t *testing.T) {
	file := dbFile(t)
	runOK(t, "-db", file, "-data", "testdata")
	folder, err := makeFolder(t.Context(), 1, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	path := filepath.Join(folder, csvload.ProductsFile)
	if err := os.WriteFile(path, []byte("productID,productName,unitPrice\n38,Lamp,1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(folder, csvload.LinesFile)
	if err := os.WriteFile(path, []byte("orderID,productID,unitPrice,quantity,discount\n1,38,1,1,0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	runOK(t, "-db", file, "-data", folder)
	want(t, raw(t, file), "5", "SELECT count(*) FROM orders")
	want(t, raw(t, file), "8", "SELECT count(*) FROM order_lines")
}

// badRows are edits of testdata, and the errors that they lead to.
var badRows = []struct {
	name, file string
	line       int
	old, new   string
	want       string
}{
	{"too few fields", csvload.LinesFile, 5, ",100,0.25", ",100", "order-details.csv:5: 4 fields, the header has 5 columns"},
	{"too many fields", csvload.LinesFile, 5, ",100,0.25", ",100,0.25,1", "order-details.csv:5: 6 fields, the header has 5 columns"},
	{"torn address and too few fields", csvload.OrdersFile, 2, ",Argentina", "", "orders.csv:2: 13 fields, the header has 14 columns"},
	{"quantity is no number", csvload.LinesFile, 5, ",100,", ",x,", `order-details.csv:5: quantity "x": want a whole number from 1 to 100000`},
	{"quantity is a fraction", csvload.LinesFile, 5, ",100,", ",1.5,", `order-details.csv:5: quantity "1.5": want a whole number from 1 to 100000`},
	{"quantity has a sign", csvload.LinesFile, 5, ",100,", ",+1,", `order-details.csv:5: quantity "+1": want a whole number from 1 to 100000`},
	{"quantity is zero", csvload.LinesFile, 5, ",100,", ",0,", `order-details.csv:5: quantity "0": want a whole number from 1 to 100000`},
	{"quantity is too large", csvload.LinesFile, 5, ",100,", ",100001,", `order-details.csv:5: quantity "100001": want a whole number from 1 to 100000`},
	{"quantity does not fit 64 bits", csvload.LinesFile, 5, ",100,", ",99999999999999999999,", `order-details.csv:5: quantity "99999999999999999999": want a whole number from 1 to 100000`},
	{"quantity is NULL", csvload.LinesFile, 5, ",100,", ",NULL,", "order-details.csv:5: quantity is NULL"},
	{"price is no number", csvload.LinesFile, 5, "6.50", "dear", `order-details.csv:5: unitPrice "dear": want a number from 0 to 1000000 with at most two decimals`},
	{"price ends with the point", csvload.LinesFile, 5, "6.50", "6.", `order-details.csv:5: unitPrice "6.": want a number from 0 to 1000000 with at most two decimals`},
	{"price has three decimals", csvload.LinesFile, 5, "6.50", "6.505", `order-details.csv:5: unitPrice "6.505": want a number from 0 to 1000000 with at most two decimals`},
	{"price is negative", csvload.LinesFile, 5, "6.50", "-6.50", `order-details.csv:5: unitPrice "-6.50": want a number from 0 to 1000000 with at most two decimals`},
	{"price is too large", csvload.LinesFile, 5, "6.50", "1000000.01", `order-details.csv:5: unitPrice "1000000.01": want a number from 0 to 1000000 with at most two decimals`},
	{"price does not fit 64 bits", csvload.LinesFile, 5, "6.50", "99999999999999999999", `order-details.csv:5: unitPrice "99999999999999999999": want a number from 0 to 1000000 with at most two decimals`},
	{"discount is more than one", csvload.LinesFile, 5, "0.25", "1.01", `order-details.csv:5: discount "1.01": want a number from 0 to 1 with at most two decimals`},
	{"the last line of the last file", csvload.LinesFile, 8, "0.1", "ten", `order-details.csv:8: discount "ten": want a number from 0 to 1 with at most two decimals`},
	{"unknown order", csvload.LinesFile, 5, "5002", "5999", "order-details.csv:5: order 5999 is not in orders.csv"},
	{"unknown product", csvload.LinesFile, 5, ",7,", ",999,", "order-details.csv:5: product 999 is not in products.csv"},
	{"quote in a field", csvload.LinesFile, 5, "6.50", `6.50"`, `order-details.csv:5: bare " in non-quoted-field`},
	{"quote that is not closed", csvload.LinesFile, 5, "6.50", `"6.50`, `order-details.csv:5: extraneous or missing " in quoted-field`},
	{"not UTF-8", csvload.LinesFile, 5, "6.50", "6.50\xff", `order-details.csv:5: "6.50\xff" is not UTF-8`},

	{"unknown customer", csvload.OrdersFile, 3, "HOSHI", "HOSHO", "orders.csv:3: customer HOSHO is not in customers.csv"},
	{"order number is no number", csvload.OrdersFile, 3, "5002", "5OO2", `orders.csv:3: orderID "5OO2": want a whole number from 1 to 9223372036854775807`},
	{"order number twice", csvload.OrdersFile, 5, "5004", "5001", "orders.csv:5: order 5001 is in line 2 already"},
	{"bad date", csvload.OrdersFile, 3, "2024-02-22", "2024-02-30", `orders.csv:3: orderDate "2024-02-30 00:00:00.000": want a date like 1996-07-04 00:00:00.000`},
	{"bad optional date", csvload.OrdersFile, 3, "2024-02-26", "soon", `orders.csv:3: shippedDate "soon 12:30:00.250": want a date like 1996-07-04 00:00:00.000`},
	{"date is NULL", csvload.OrdersFile, 3, "2024-02-22 00:00:00.000", "NULL", "orders.csv:3: orderDate is NULL"},
	{"two things wrong", csvload.OrdersFile, 3, "5002,HOSHI", "x,y", `orders.csv:3: orderID "x": want a whole number from 1 to 9223372036854775807`},

	{"product twice", csvload.ProductsFile, 3, "2,", "1,", "products.csv:3: product 1 is in line 2 already"},
	{"customer twice", csvload.CustomersFile, 4, "HOSHI", "AALTO", "customers.csv:4: customer AALTO is in line 2 already"},
	{"customer without a code", csvload.CustomersFile, 4, "HOSHI", "", "customers.csv:4: customerID is NULL"},
	{"column missing", csvload.LinesFile, 1, "discount", "rebate", "order-details.csv:1: column discount is missing"},
	{"column twice", csvload.LinesFile, 1, "discount", "quantity", "order-details.csv:1: column quantity is there twice"},
	{"a row that is too long", csvload.LinesFile, 5, "6.50", `"` + strings.Repeat("x", csvload.MaxRow+1<<16), "order-details.csv:4: the row after this one is longer than 1048576 bytes: is a quote not closed?"},
}

func TestABadRowIsNamedAndLeavesNothingBehind(t *testing.T) {
	// An application's database, in which the load would create all its tables.
	application := prepare(t, "CREATE TABLE notes (text TEXT); INSERT INTO notes VALUES ('a')")
	for _, bad := range badRows {
		t.Run(bad.name, func(t *testing.T) {
			folder := edited(t, bad.file, bad.line, bad.old, bad.new)
			for _, file := range []string{dbFile(t), application} {
				before := content(t, file)
				var stdout, stderr bytes.Buffer
				err := run(t.Context(), []string{"-db", file, "-data", folder}, &stdout, &stderr)
				if err == nil || err.Error() != bad.want {
					t.Errorf("run = %v; want %s", err, bad.want)
				}
				if !strings.HasSuffix(stderr.String(), "Stopped at a bad row. Nothing was loaded.\n") || stdout.Len() > 0 {
					t.Errorf("run writes %q and %q; want nothing, and that it stopped", &stdout, &stderr)
				}
				wantUnchanged(t, file, before)
			}
		})
	}
}

func TestARowThatTheDatabaseRefusesIsNamedAndLeavesNothingBehind(t *testing.T) {
	for _, tt := range []struct {
		name, statements string
		want             string
	}{
		{"a customer that is there", tables + indexes + "INSERT INTO customers VALUES (1, 'HOSHI', 'x', NULL, NULL)",
			"customers.csv:4: the row is in the database already (UNIQUE constraint failed: customers.code)"},
		{"an order that is there", tables + "INSERT INTO customers VALUES (1, 'X', 'x', NULL, NULL); INSERT INTO orders VALUES (1, 5003, 1, '2024-01-01', NULL, 0, NULL, NULL)",
			"orders.csv:4: the row is in the database already (UNIQUE constraint failed: orders.number)"},
		{"a trigger that refuses", tables + "CREATE TRIGGER few BEFORE INSERT ON order_lines WHEN new.quantity = 100 BEGIN SELECT RAISE(ABORT, 'too many'); END",
			"order-details.csv:5: the database refuses the row: too many"},
		{"a column that the program does not know", strings.Replace(tables, "city    TEXT,", "city TEXT, vat TEXT NOT NULL,", 1),
			"customers.csv:2: the database refuses the row: NOT NULL constraint failed: customers.vat"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := prepare(t, tt.statements)
			before := content(t, file)
			var out bytes.Buffer
			err := run(t.Context(), []string{"-db", file, "-data", "testdata"}, &out, &out)
			if err == nil || err.Error() != tt.want {
				t.Errorf("run = %v; want %s", err, tt.want)
			}
			wantUnchanged(t, file, before)
		})
	}
}

func TestARefusedRowIsFoundFarIntoAFile(t *testing.T) {
	// Line 1 is the header, so line n is order line n-2 counted from zero, and
	// four of them make an order.
	const line = 11_001
	file := prepare(t, tables+fmt.Sprintf(`CREATE TRIGGER no BEFORE INSERT ON order_lines
		WHEN (SELECT count(*) FROM order_lines) = %d BEGIN SELECT RAISE(ABORT, 'no'); END`, line-2))
	before := content(t, file)
	var out bytes.Buffer
	err := run(t.Context(), []string{"-db", file, "-rows", "12000"}, &out, &out)
	if want := fmt.Sprintf("order-details.csv:%d: the database refuses the row: no", line); err == nil || err.Error() != want {
		t.Errorf("run = %v; want %s", err, want)
	}
	wantUnchanged(t, file, before)
}

func TestWhatIsNoRowsFaultNamesTheFolderOrTheTable(t *testing.T) {
	notOurs := prepare(t, "CREATE TABLE orders (id INTEGER PRIMARY KEY)")
	text := filepath.Join(t.TempDir(), "text.db")
	if err := os.WriteFile(text, []byte(strings.Repeat("no database ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, file, folder, want string
	}{
		{"no folder", dbFile(t), filepath.Join(t.TempDir(), "nowhere"), "nowhere: stat customers.csv"},
		{"a table of other columns", notOurs, "testdata", "creating the indexes: no such column: number"},
		{"a file that is no database", text, "testdata", "file is not a database"},
		{"a folder for a database that is not there", filepath.Join(t.TempDir(), "x", "import.db"), "testdata", "import.db: no such file or directory; choose a file in a folder that you may write to, with -db"},
		{"a folder for a database", t.TempDir(), "testdata", "; choose a file in a folder that you may write to, with -db"},
		{"no name", "", "testdata", "-db is empty"},
	} {
		var before map[string]string
		if tt.file == notOurs || tt.file == text {
			before = content(t, tt.file)
		}
		var out bytes.Buffer
		err := run(t.Context(), []string{"-db", tt.file, "-data", tt.folder}, &out, &out)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: run = %v; want %s", tt.name, err, tt.want)
		}
		if before != nil {
			wantUnchanged(t, tt.file, before)
		}
	}
}

func TestAFolderThatCannotBeWrittenIsNoRowsFault(t *testing.T) {
	file := prepare(t, tables+indexes)
	folder := filepath.Dir(file)
	if err := os.Chmod(folder, 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(folder, 0o700) })
	if os.WriteFile(filepath.Join(folder, "probe"), nil, 0o600) == nil {
		t.Skip("this user may write to every folder")
	}
	var out bytes.Buffer
	err := run(t.Context(), []string{"-db", file, "-data", "testdata"}, &out, &out)
	if err == nil || !strings.HasPrefix(err.Error(), "cannot write beside "+file+": ") || strings.Contains(out.String(), "bad row") {
		t.Errorf("run = %v, output %q; want that it cannot write beside %s, and no row", err, &out, file)
	}
}

func TestCtrlCLeavesNothingBehind(t *testing.T) {
	for name, file := range map[string]string{
		"new database":      dbFile(t),
		"one that is there": prepare(t, "CREATE TABLE notes (text TEXT)"),
	} {
		t.Run(name, func(t *testing.T) {
			before := content(t, file)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			var stdout bytes.Buffer
			// The first line of progress in order lines is the interrupt.
			stderr := &stopper{at: "order_lines", stop: stop}
			err := run(ctx, []string{"-db", file, "-rows", "30000"}, &stdout, stderr)
			if !errors.Is(err, errInterrupted) {
				t.Errorf("run = %v; want %v", err, errInterrupted)
			}
			if stdout.Len() > 0 {
				t.Errorf("run prints %q; want nothing", &stdout)
			}
			wantUnchanged(t, file, before)
		})
	}
}

// A stopper calls stop when a text is written.
type stopper struct {
	bytes.Buffer
	at   string
	stop context.CancelFunc
}

func (s *stopper) Write(p []byte) (int, error) {
	if strings.Contains(string(p), s.at) {
		s.stop()
	}
	return s.Buffer.Write(p)
}

func TestTheFilesThatAreMadeUpAreRemoved(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("TMP", os.Getenv("TMPDIR")) // of Windows
	out := runOK(t, "-db", dbFile(t), "-rows", "10")
	if want := "Loaded 10 made-up order lines into "; !strings.HasPrefix(out, want) {
		t.Errorf("run prints %q; want %q", out, want)
	}
	var stderr bytes.Buffer
	if err := run(t.Context(), []string{"-db", t.TempDir(), "-rows", "10"}, io.Discard, &stderr); err == nil {
		t.Error("run -db FOLDER = nil; want an error")
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("in the temporary folder are %v, %v; want nothing", left, err)
	}
}

func TestAReportThatCannotBeWrittenIsAnError(t *testing.T) {
	if err := run(t.Context(), []string{"-db", dbFile(t), "-data", "testdata"}, failingWriter{}, io.Discard); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("run = %v; want %v", err, fs.ErrClosed)
	}
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, fs.ErrClosed }

func TestBadFlagsPrintTheUsage(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"-nonsense"}, "nonsense"},
		{[]string{"orders.db"}, "unexpected argument: orders.db"},
		{[]string{"-rows", "0"}, "-rows 0: want a number from 1 to 100000000"},
		{[]string{"-rows", "100000001"}, "-rows 100000001: want a number from 1 to 100000000"},
		{[]string{"-rows", "5", "-data", "testdata"}, "want one of them"},
	} {
		var stdout, stderr bytes.Buffer
		if err := run(t.Context(), tt.args, &stdout, &stderr); !errors.Is(err, csvload.ErrUsage) {
			t.Errorf("run(%q) = %v; want %v", tt.args, err, csvload.ErrUsage)
		}
		for _, want := range []string{tt.want, "Usage of import", "-data folder", "-rows number", "-db file", "-worker number"} {
			if !strings.Contains(stderr.String(), want) {
				t.Errorf("run(%q) writes %q to stderr; want it to contain %q", tt.args, &stderr, want)
			}
		}
	}
	var usage bytes.Buffer
	if err := run(t.Context(), []string{"-h"}, io.Discard, &usage); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("run(-h) = %v; want %v", err, flag.ErrHelp)
	}
	wantNarrow(t, usage.String())
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

func TestExitCodes(t *testing.T) {
	bad := edited(t, csvload.LinesFile, 5, ",100,", ",x,")
	for _, tt := range []struct {
		args   []string
		code   int
		stderr string
	}{
		{[]string{"-db", dbFile(t), "-data", "testdata"}, 0, ""},
		{[]string{"-h"}, 0, "Usage of import"},
		{[]string{"-nonsense"}, 2, "Usage of import"},
		{[]string{"-db", dbFile(t), "-data", bad}, 1, "\nimport: order-details.csv:5: quantity \"x\": want a whole number from 1 to 100000\n"},
		{[]string{"-db", dbFile(t), "-worker", "-1"}, 1, "-1"},
	} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], tt.args...)
		cmd.Env = append(os.Environ(), "IMPORT_MAIN=1")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		var exit *exec.ExitError
		if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		if got := cmd.ProcessState.ExitCode(); got != tt.code {
			t.Errorf("import %q exits with %d; want %d; stderr: %s", tt.args, got, tt.code, &stderr)
		}
		if !strings.Contains(stderr.String(), tt.stderr) {
			t.Errorf("import %q writes %q to stderr; want it to contain %q", tt.args, &stderr, tt.stderr)
		}
	}
}
