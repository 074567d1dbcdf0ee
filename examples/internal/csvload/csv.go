package csvload

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// The names of the four files.
const (
	CustomersFile = "customers.csv"
	ProductsFile  = "products.csv"
	OrdersFile    = "orders.csv"
	LinesFile     = "order-details.csv"
)

// The limits of the values.
const (
	MaxQuantity = 100_000
	MaxCents    = 1_000_000 * 100
)

// A RowError names the file and the line that cannot be used, and says why.
type RowError struct {
	File   string
	Line   int
	Reason string
	Err    error // what the database said; nil if it did not refuse the row
}

func (e *RowError) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Reason) }

func (e *RowError) Unwrap() error { return e.Err }

// MaxRow is the limit of one row, in bytes. Without it a quote that is never
// closed would read the rest of a file into one field.
const MaxRow = 1 << 20

var errLongRow = errors.New("row too long")

// A File is a CSV file that is read row by row. Its first line names the columns.
// A File is for one goroutine.
type File struct {
	name    string
	file    fs.File
	reader  *csv.Reader
	columns map[string]int // index by column name

	fetched, allowed int64    // bytes read from the file, and the most before the row has to end
	line             int      // where the present row begins
	fields           []string // of the present row
	err              error    // the first error
}

// Open opens a file and reads its first line. The line must name the wanted
// columns, in any order. Other columns are ignored.
func Open(files fs.FS, name string, wanted ...string) (*File, error) {
	file, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	f := &File{name: name, file: file}
	f.reader = csv.NewReader(source{f})
	f.reader.FieldsPerRecord = -1 // Next counts, because its error says more
	f.reader.ReuseRecord = true
	err = f.read()
	if errors.Is(err, io.EOF) {
		err = &RowError{File: name, Line: 1, Reason: "the file is empty, want a line of column names"}
	}
	if err == nil {
		err = f.header(wanted)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return f, nil
}

// Close closes the file. It was only read, so no error matters.
func (f *File) Close() { _ = f.file.Close() }

// A source is what the csv.Reader reads from. It enforces MaxRow.
type source struct{ *File }

func (s source) Read(p []byte) (int, error) {
	if s.fetched > s.allowed {
		return 0, errLongRow
	}
	n, err := s.file.Read(p)
	s.fetched += int64(n)
	return n, err
}

// read reads one row of any width.
func (f *File) read() error {
	f.allowed = f.reader.InputOffset() + MaxRow
	fields, err := f.reader.Read()
	var syntax *csv.ParseError
	switch {
	case errors.As(err, &syntax):
		// StartLine is where the row begins. A quote that is never closed is
		// noticed at the end of the file, far from the mistake.
		return &RowError{File: f.name, Line: syntax.StartLine, Reason: syntax.Err.Error()}
	case errors.Is(err, errLongRow):
		return &RowError{File: f.name, Line: max(1, f.line), Reason: fmt.Sprintf("the row after this one is longer than %d bytes: is a quote not closed?", MaxRow)}
	case err != nil && !errors.Is(err, io.EOF):
		return fmt.Errorf("%s: %w", f.name, err)
	case err != nil:
		return err
	}
	f.fields = fields
	f.line, _ = f.reader.FieldPos(0)
	return nil
}

// header maps column names to positions.
func (f *File) header(wanted []string) error {
	f.columns = make(map[string]int, len(f.fields))
	for i, name := range f.fields {
		if i == 0 {
			name = strings.TrimPrefix(name, "\uFEFF") // spreadsheets write this mark first
		}
		if _, twice := f.columns[name]; twice {
			f.Fail("column %s is there twice", name)
		}
		f.columns[name] = i
	}
	for _, name := range wanted {
		if _, ok := f.columns[name]; !ok {
			f.Fail("column %s is missing", name)
		}
	}
	return f.err
}

// Next reads the next row. It returns false after the last row and after an
// error, which Err returns.
//
// The methods below take values of the row by column name. Err keeps the first
// error, so a caller asks for all columns and then looks at Err once.
func (f *File) Next() bool {
	if f.err != nil {
		return false
	}
	if err := f.read(); err != nil {
		if !errors.Is(err, io.EOF) {
			f.err = err
		}
		return false
	}
	f.fields = mend(f.fields)
	if len(f.fields) != len(f.columns) {
		f.Fail("%d fields, the header has %d columns", len(f.fields), len(f.columns))
	}
	for _, field := range f.fields {
		if !utf8.ValidString(field) {
			f.Fail("%q is not UTF-8", field)
		}
	}
	return f.err == nil
}

// Err returns the first error.
func (f *File) Err() error { return f.err }

// Line returns the line where the present row begins.
func (f *File) Line() int { return f.line }

// Offset returns how many bytes of the file are used.
func (f *File) Offset() int64 { return f.reader.InputOffset() }

// mend joins the parts of an address with an unquoted comma, such as
// "Rua do Paço, 67" without the quotes. Northwind has two hundred such rows. A
// CSV writer puts no space after a comma, but people do, so a field that begins
// with a space belongs to the one before it.
//
// It mends rows of every width. A row with a torn address that has also lost a
// field has the right width, and its columns would hold the wrong values.
func mend(fields []string) []string {
	mended := fields[:0]
	for i, field := range fields {
		if i > 0 && strings.HasPrefix(field, " ") {
			mended[len(mended)-1] += "," + field
		} else {
			mended = append(mended, field)
		}
	}
	return mended
}

// Fail reports that the present row is wrong, unless an error is there already.
func (f *File) Fail(format string, args ...any) {
	if f.err == nil {
		f.err = &RowError{File: f.name, Line: f.line, Reason: fmt.Sprintf(format, args...)}
	}
}

// Optional returns the text of a column, nil for NULL.
func (f *File) Optional(column string) *string {
	text := f.fields[f.columns[column]]
	if text == "" || text == "NULL" {
		return nil
	}
	return &text
}

// Text returns the text of a column that must not be NULL.
func (f *File) Text(column string) string {
	text := f.fields[f.columns[column]]
	if text == "" || text == "NULL" {
		f.Fail("%s is NULL", column)
		return ""
	}
	return text
}

// Integer returns a whole number of 1..limit.
func (f *File) Integer(column string, limit int64) int64 {
	text := f.Text(column)
	n, err := strconv.ParseInt(text, 10, 64)
	if !digits(text) || err != nil || n < 1 || n > limit {
		f.Fail("%s %q: want a whole number from 1 to %d", column, text, limit)
		return 0
	}
	return n
}

// Hundredths returns a decimal number of 0..limit/100 as a whole number of
// hundredths: cents of an amount, percent of a fraction. It accepts no sign and
// no exponent. Decimals after the second must be zeros, as in 14.0000.
//
// strconv.ParseFloat would read 0.29 as 0.28999999999999998.
func (f *File) Hundredths(column string, limit int64) int64 {
	text := f.Text(column)
	whole, fraction, point := strings.Cut(text, ".")
	ok := digits(whole) && (!point || digits(fraction))
	fraction = strings.TrimRight(fraction, "0")
	if ok && len(fraction) <= 2 {
		n, err := strconv.ParseInt(whole+(fraction + "00")[:2], 10, 64)
		if err == nil && n <= limit {
			return n
		}
	}
	f.Fail("%s %q: want a number from 0 to %d with at most two decimals", column, text, limit/100)
	return 0
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// OptionalTime returns a time in UTC, nil for NULL.
func (f *File) OptionalTime(column string) *time.Time {
	text := f.Optional(column)
	if text == nil {
		return nil
	}
	// time.Parse also takes the fraction of a second that the layout leaves out.
	t, err := time.Parse(time.DateTime, *text)
	if err != nil {
		f.Fail("%s %q: want a date like 1996-07-04 00:00:00.000", column, *text)
		return nil
	}
	return &t
}

// Time returns a time that must not be NULL.
func (f *File) Time(column string) time.Time {
	t := f.OptionalTime(column)
	if t == nil {
		f.Fail("%s is NULL", column)
		return time.Time{}
	}
	return *t
}

// An Index finds rows of one file by their name, such as a customer by its code.
// V is what the program wants to know of a row.
type Index[K comparable, V any] struct {
	file, kind string
	entries    map[K]entry[V]
}

type entry[V any] struct {
	value V
	line  int
}

// NewIndex returns an empty index. Errors call a row of the file a kind.
func NewIndex[K comparable, V any](file, kind string) Index[K, V] {
	return Index[K, V]{file, kind, map[K]entry[V]{}}
}

// Add adds the present row of f. If the name is there already, the row fails.
func (x Index[K, V]) Add(f *File, name K, value V) {
	if f.err != nil {
		return
	}
	if first, twice := x.entries[name]; twice {
		f.Fail("%s %v is in line %d already", x.kind, name, first.line)
		return
	}
	x.entries[name] = entry[V]{value, f.line}
}

// Find returns the value of a name. If there is none, the present row of f fails.
func (x Index[K, V]) Find(f *File, name K) V {
	e, ok := x.entries[name]
	if !ok {
		f.Fail("%s %v is not in %s", x.kind, name, x.file)
	}
	return e.value
}
