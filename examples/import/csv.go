package main

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

// A rowError says which line of which file cannot be loaded, and why.
type rowError struct {
	file   string
	line   int
	reason string
	err    error // what the database said, if it is the one that refuses
}

func (e *rowError) Error() string { return fmt.Sprintf("%s:%d: %s", e.file, e.line, e.reason) }

func (e *rowError) Unwrap() error { return e.err }

// maxRow bounds one row of a file, in bytes. A quote that is never closed would
// otherwise read the rest of the file, however long, into one field.
const maxRow = 1 << 20

var errLongRow = errors.New("row too long")

// A csvFile is a CSV file that is read row by row. Its first line names the
// columns.
type csvFile struct {
	name    string
	file    fs.File
	reader  *csv.Reader
	columns map[string]int // index by column name

	fetched, allowed int64    // bytes read from the file, and the most before the row has to end
	line             int      // where the present row begins
	fields           []string // of the present row
	err              error    // the first thing wrong with the present row
}

// openCSV opens a file and reads its first line, which must have all the wanted
// columns. It may have more.
func openCSV(files fs.FS, name string, wanted []string) (*csvFile, error) {
	file, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	f := &csvFile{name: name, file: file}
	f.reader = csv.NewReader(f)
	f.reader.FieldsPerRecord = -1 // counted by next, where the error can say more
	f.reader.ReuseRecord = true
	err = f.read()
	if errors.Is(err, io.EOF) {
		err = &rowError{file: name, line: 1, reason: "the file is empty, want a line of column names"}
	}
	if err == nil {
		err = f.header(wanted)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return f, nil
}

func (f *csvFile) close() { _ = f.file.Close() } // only read: nothing can be lost here

// Read is what the csv.Reader reads from.
func (f *csvFile) Read(p []byte) (int, error) {
	if f.fetched > f.allowed {
		return 0, errLongRow
	}
	n, err := f.file.Read(p)
	f.fetched += int64(n)
	return n, err
}

// read reads one row of any width.
func (f *csvFile) read() error {
	f.allowed = f.reader.InputOffset() + maxRow
	fields, err := f.reader.Read()
	var syntax *csv.ParseError
	switch {
	case errors.As(err, &syntax):
		// Where the row begins. A quote that is never closed is noticed at the end
		// of the file, which is the last place to look for it.
		return &rowError{file: f.name, line: syntax.StartLine, reason: syntax.Err.Error()}
	case errors.Is(err, errLongRow):
		return &rowError{file: f.name, line: max(1, f.line), reason: fmt.Sprintf("the row after this one is longer than %d bytes: is a quote not closed?", maxRow)}
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
func (f *csvFile) header(wanted []string) error {
	f.columns = make(map[string]int, len(f.fields))
	for i, name := range f.fields {
		if i == 0 {
			name = strings.TrimPrefix(name, "\uFEFF") // the mark that spreadsheets put first
		}
		if _, twice := f.columns[name]; twice {
			return f.errorf("column %s is there twice", name)
		}
		f.columns[name] = i
	}
	for _, name := range wanted {
		if _, ok := f.columns[name]; !ok {
			return f.errorf("column %s is missing", name)
		}
	}
	return nil
}

// next reads the next row, and returns io.EOF after the last. The methods below
// take its values by column name. They remember the first that is wrong in err
// and return zeros from then on, so that a caller asks for all columns and looks
// at err once.
func (f *csvFile) next() error {
	if err := f.read(); err != nil {
		return err
	}
	f.err = nil
	f.fields = mend(f.fields)
	if len(f.fields) != len(f.columns) {
		return f.errorf("%d fields, the header has %d columns", len(f.fields), len(f.columns))
	}
	for _, field := range f.fields {
		if !utf8.ValidString(field) {
			return f.errorf("%q is not UTF-8", field)
		}
	}
	return nil
}

// mend puts together what an unquoted comma in an address has torn apart, as in
// "Rua do Paço, 67" written without the quotes. Northwind has two hundred such
// rows. People type a space after a comma and a CSV writer does not, so a field
// that begins with a space belongs to the one before it.
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

func (f *csvFile) errorf(format string, args ...any) error {
	return &rowError{file: f.name, line: f.line, reason: fmt.Sprintf(format, args...)}
}

// fail notes that the present row is wrong.
func (f *csvFile) fail(format string, args ...any) {
	if f.err == nil {
		f.err = f.errorf(format, args...)
	}
}

// optional returns the text of a column, nil for NULL.
func (f *csvFile) optional(column string) *string {
	text := f.fields[f.columns[column]]
	if text == "" || text == "NULL" {
		return nil
	}
	return &text
}

// text returns the text of a column that must not be NULL.
func (f *csvFile) text(column string) string {
	text := f.fields[f.columns[column]]
	if text == "" || text == "NULL" {
		f.fail("%s is NULL", column)
		return ""
	}
	return text
}

// integer returns a whole number of 1..limit.
func (f *csvFile) integer(column string, limit int64) int64 {
	text := f.text(column)
	n, err := strconv.ParseInt(text, 10, 64)
	if !digits(text) || err != nil || n < 1 || n > limit {
		f.fail("%s %q: want a whole number from 1 to %d", column, text, limit)
		return 0
	}
	return n
}

// hundredths returns a decimal number of 0..limit/100 as a whole number of
// hundredths: cents of an amount, percent of a fraction. No sign, no exponent;
// decimals after the second only if they are zeros, as in 14.0000.
func (f *csvFile) hundredths(column string, limit int64) int64 {
	text := f.text(column)
	whole, fraction, point := strings.Cut(text, ".")
	ok := digits(whole) && (!point || digits(fraction))
	fraction = strings.TrimRight(fraction, "0")
	if ok && len(fraction) <= 2 {
		n, err := strconv.ParseInt(whole+(fraction + "00")[:2], 10, 64)
		if err == nil && n <= limit {
			return n
		}
	}
	f.fail("%s %q: want a number from 0 to %d with at most two decimals", column, text, limit/100)
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

// optionalTime returns a time in UTC, nil for NULL.
func (f *csvFile) optionalTime(column string) *time.Time {
	text := f.optional(column)
	if text == nil {
		return nil
	}
	// time.Parse also takes the fraction of a second that the layout leaves out.
	t, err := time.Parse(time.DateTime, *text)
	if err != nil {
		f.fail("%s %q: want a date like 1996-07-04 00:00:00.000", column, *text)
		return nil
	}
	return &t
}

// time returns a time that must not be NULL.
func (f *csvFile) time(column string) time.Time {
	t := f.optionalTime(column)
	if t == nil {
		f.fail("%s is NULL", column)
		return time.Time{}
	}
	return *t
}
