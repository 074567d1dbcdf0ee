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

// A rowError says which line of which file cannot be used, and why.
type rowError struct {
	file   string
	line   int
	reason string
}

func (e *rowError) Error() string { return fmt.Sprintf("%s:%d: %s", e.file, e.line, e.reason) }

// A row is one line of a CSV file below the header.
type row struct {
	file    string
	line    int
	columns map[string]int // index by column name; the rows of a file share it
	fields  []string
	broken  error // why the fields cannot be told apart, if they cannot
}

func (r row) errorf(format string, args ...any) error {
	return &rowError{r.file, r.line, fmt.Sprintf(format, args...)}
}

// readRows reads a whole CSV file whose first line names its columns, and
// checks that the wanted ones are among them.
//
// A row with too few or too many fields is returned, marked as broken: the
// orders before it can still be imported. An error means that the file itself
// is of no use.
func readRows(files fs.FS, name string, wanted ...string) ([]row, error) {
	file, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // only read: nothing can be lost here

	reader := csv.NewReader(file)
	reader.FieldsPerRecord = -1 // counted below, where the error can say more
	var (
		rows    []row
		columns map[string]int
	)
	for {
		fields, err := reader.Read()
		var syntax *csv.ParseError
		switch {
		case errors.Is(err, io.EOF) && columns == nil:
			return nil, &rowError{name, 1, "the file is empty, want a line of column names"}
		case errors.Is(err, io.EOF):
			return rows, nil
		case errors.As(err, &syntax):
			return nil, &rowError{name, syntax.Line, syntax.Err.Error()}
		case err != nil:
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		line, _ := reader.FieldPos(0)
		if columns == nil {
			if columns, err = header(name, line, fields, wanted); err != nil {
				return nil, err
			}
			continue
		}
		r := row{file: name, line: line, columns: columns, fields: mend(fields)}
		if len(r.fields) != len(columns) {
			r.broken = r.errorf("%d fields, the header has %d columns", len(r.fields), len(columns))
		} else if !utf8.ValidString(strings.Join(r.fields, "")) {
			r.broken = r.errorf("text is not UTF-8")
		}
		rows = append(rows, r)
	}
}

// header maps column names to positions.
func header(file string, line int, names, wanted []string) (map[string]int, error) {
	columns := make(map[string]int, len(names))
	for i, name := range names {
		if i == 0 {
			name = strings.TrimPrefix(name, "\uFEFF") // the mark that spreadsheets put first
		}
		if _, twice := columns[name]; twice {
			return nil, &rowError{file, line, fmt.Sprintf("column %s is there twice", name)}
		}
		columns[name] = i
	}
	for _, name := range wanted {
		if _, ok := columns[name]; !ok {
			return nil, &rowError{file, line, fmt.Sprintf("column %s is missing", name)}
		}
	}
	return columns, nil
}

// mend puts together what an unquoted comma in an address has torn apart, as in
// "Rua do Paço, 67" written without the quotes. Northwind has two hundred such
// rows. People type a space after a comma and a CSV writer does not, so a field
// that begins with a space belongs to the one before it.
//
// Doing so only for rows with too many fields would go wrong silently: a torn
// row that has also lost a field has the right number, and every column after
// the tear would hold its neighbour's value.
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

// A scanner takes typed values out of one row. It remembers the first error and
// returns zeros from then on, so that a caller asks for all columns and checks
// err once.
type scanner struct {
	row row
	err error
}

func (r row) scan() *scanner { return &scanner{row: r, err: r.broken} }

func (s *scanner) fail(format string, args ...any) {
	if s.err == nil {
		s.err = s.row.errorf(format, args...)
	}
}

// optional returns the text of a column, nil for NULL.
func (s *scanner) optional(column string) *string {
	if s.err != nil {
		return nil
	}
	text := s.row.fields[s.row.columns[column]]
	if text == "" || text == "NULL" {
		return nil
	}
	return &text
}

// text returns the text of a column that must not be NULL.
func (s *scanner) text(column string) string {
	text := s.optional(column)
	if text == nil {
		s.fail("%s is NULL", column)
		return ""
	}
	return *text
}

// integer returns a number of 1..limit.
func (s *scanner) integer(column string, limit int64) int64 {
	text := s.text(column)
	n, err := strconv.ParseInt(text, 10, 64)
	if !isDigits(text) || err != nil || n < 1 || n > limit {
		s.fail("%s %q is not a whole number from 1 to %d", column, text, limit)
		return 0
	}
	return n
}

// money returns an amount of 0..maxPrice in whole cents.
func (s *scanner) money(column string) Money {
	text := s.text(column)
	n, err := parseHundredths(text)
	if err == nil && n > int64(maxPrice/cent) {
		err = errors.New("too large")
	}
	if err != nil {
		s.fail("%s %q is not an amount from 0.00 to %s: %v", column, text, maxPrice, err)
		return 0
	}
	return Money(n) * cent
}

// percent returns a fraction of 0..1, such as 0.15, as whole percent.
func (s *scanner) percent(column string) int64 {
	text := s.text(column)
	n, err := parseHundredths(text)
	if err == nil && n > wholePercent {
		err = errors.New("too large")
	}
	if err != nil {
		s.fail("%s %q is not a fraction from 0 to 1: %v", column, text, err)
		return 0
	}
	return n
}

// optionalTime returns a time in UTC, nil for NULL.
func (s *scanner) optionalTime(column string) *time.Time {
	text := s.optional(column)
	if text == nil {
		return nil
	}
	// time.Parse also takes the fraction of a second that the layout leaves out.
	t, err := time.Parse(time.DateTime, *text)
	if err != nil {
		s.fail("%s %q is not a date like 1996-07-04 00:00:00.000", column, *text)
		return nil
	}
	return &t
}

// time returns a time that must not be NULL.
func (s *scanner) time(column string) time.Time {
	t := s.optionalTime(column)
	if t == nil {
		s.fail("%s is NULL", column)
		return time.Time{}
	}
	return *t
}
