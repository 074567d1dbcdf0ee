package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

func parse(t *testing.T, text string, wanted ...string) []row {
	t.Helper()
	rows, err := readRows(fstest.MapFS{"x.csv": {Data: []byte(text)}}, "x.csv", wanted...)
	if err != nil {
		t.Fatalf("readRows(%q) = %v; want nil", text, err)
	}
	return rows
}

func TestColumnsAreFoundByName(t *testing.T) {
	for name, text := range map[string]string{
		"in order":        "a,b\n1,2\n",
		"in another":      "b,extra,a\n2,x,1\n",
		"with a mark":     "\uFEFFa,b\n1,2\n",
		"with CR LF":      "a,b\r\n1,2\r\n",
		"without newline": "a,b\n1,2",
	} {
		rows := parse(t, text, "a", "b")
		if len(rows) != 1 {
			t.Fatalf("%s: %d rows; want 1", name, len(rows))
		}
		s := rows[0].scan()
		if a, b := s.text("a"), s.text("b"); a != "1" || b != "2" || s.err != nil {
			t.Errorf("%s: a, b = %q, %q, %v; want 1, 2", name, a, b, s.err)
		}
	}
}

func TestEmptyAndTheWordNULLAreNull(t *testing.T) {
	rows := parse(t, "a,b,c,d\nNULL,,null,\"\"\n")
	s := rows[0].scan()
	for _, column := range []string{"a", "b", "d"} {
		if got := s.optional(column); got != nil {
			t.Errorf("optional(%s) = %q; want nil", column, *got)
		}
		if got := s.optionalTime(column); got != nil || s.err != nil {
			t.Errorf("optionalTime(%s) = %v, %v; want nil", column, got, s.err)
		}
	}
	if got := s.text("c"); got != "null" || s.err != nil {
		t.Errorf("text(c) = %q, %v; want the word null in lower case to be text", got, s.err)
	}
	if s.text("a"); s.err == nil || s.err.Error() != "x.csv:2: a is NULL" {
		t.Errorf("text(a) gives the error %v; want x.csv:2: a is NULL", s.err)
	}
}

func TestACommaBeforeASpaceIsText(t *testing.T) {
	for line, want := range map[string][]string{
		`1,Rua do Paço, 67,Rio`:       {"1", "Rua do Paço, 67", "Rio"},
		`1,24, place Kléber, 2,Lille`: {"1", "24, place Kléber, 2", "Lille"},
		`1,"Yard, Unit 6",Bristol`:    {"1", "Yard, Unit 6", "Bristol"},
	} {
		rows := parse(t, "n,address,city\n"+line+"\n")
		if got := rows[0].fields; !slices.Equal(got, want) || rows[0].broken != nil {
			t.Errorf("fields of %s = %q, %v; want %q", line, got, rows[0].broken, want)
		}
	}
}

func TestATornRowThatLostAFieldIsNotTakenForAWholeOne(t *testing.T) {
	for line, want := range map[string]string{
		"1,Rua do Paço, 67": "x.csv:2: 2 fields, the header has 3 columns",
		"1,a,b,c":           "x.csv:2: 4 fields, the header has 3 columns",
		"1,a":               "x.csv:2: 2 fields, the header has 3 columns",
	} {
		s := parse(t, "n,address,city\n"+line+"\n")[0].scan()
		if city := s.text("city"); city != "" || s.err == nil || s.err.Error() != want {
			t.Errorf("city of %s = %q, %v; want the error %s", line, city, s.err, want)
		}
	}
}

func TestLineNumbersCountLinesAndNotRows(t *testing.T) {
	rows := parse(t, "a,b\n\n\"two\nlines\",2\n3,4\n")
	if len(rows) != 2 || rows[0].line != 3 || rows[1].line != 5 {
		t.Errorf("rows = %+v; want lines 3 and 5", rows)
	}
}

func TestTimesAreUTCWithOrWithoutAFraction(t *testing.T) {
	want := time.Date(1996, 7, 4, 13, 30, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"1996-07-04 13:30:00.000": want,
		"1996-07-04 13:30:00":     want,
		"1996-07-04 13:30:00.25":  want.Add(250 * time.Millisecond),
	} {
		s := parse(t, "t\n"+text+"\n")[0].scan()
		if got := s.time("t"); !got.Equal(want) || got.Location() != time.UTC || s.err != nil {
			t.Errorf("time of %s = %v, %v; want %v", text, got, s.err, want)
		}
	}
}

func TestTheFirstErrorOfARowIsKept(t *testing.T) {
	s := parse(t, "a,b\nx,y\n")[0].scan()
	if a, b, c := s.integer("a", 9), s.money("b"), s.percent("b"); a != 0 || b != 0 || c != 0 {
		t.Errorf("values after an error = %d, %d, %d; want zeros", a, b, c)
	}
	if want := `x.csv:2: a "x" is not a whole number from 1 to 9`; s.err == nil || s.err.Error() != want {
		t.Errorf("error = %v; want %s", s.err, want)
	}
	bad := (*rowError)(nil)
	if !errors.As(s.err, &bad) || bad.file != "x.csv" || bad.line != 2 {
		t.Errorf("errors.As(%v) gives %+v; want file x.csv, line 2", s.err, bad)
	}
}

// A failing is a file whose reads fail.
type failing struct{ fs.File }

func (failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

type failingFS struct{ fs.FS }

func (f failingFS) Open(name string) (fs.File, error) {
	file, err := f.FS.Open(name)
	return failing{file}, err
}

func TestAReadErrorIsReturned(t *testing.T) {
	files := failingFS{fstest.MapFS{"x.csv": {Data: []byte("a\n1\n")}}}
	if rows, err := readRows(files, "x.csv"); !errors.Is(err, io.ErrUnexpectedEOF) || rows != nil {
		t.Errorf("readRows = %v, %v; want %v", rows, err, io.ErrUnexpectedEOF)
	}
}

func TestTheSampleHasNullsAccentsQuotesAndTornAddresses(t *testing.T) {
	text := ""
	for _, name := range []string{customersFile, productsFile, ordersFile, detailsFile} {
		part, err := os.ReadFile(filepath.Join("data", name))
		if err != nil {
			t.Fatal(err)
		}
		text += string(part)
	}
	for _, want := range []string{",NULL,", ",,", "é", "ほ", `""`, "Calle del Álamo, 9,"} {
		if !strings.Contains(text, want) {
			t.Errorf("the sample has no %q; want one, or the tests test less than they say", want)
		}
	}
}
