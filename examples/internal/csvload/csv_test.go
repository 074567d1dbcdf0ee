package csvload

import (
	"errors"
	"io"
	"io/fs"
	"math"
	"slices"
	"testing"
	"testing/fstest"
	"time"
)

// open opens a text and reads its first row.
func open(t *testing.T, text string, wanted ...string) *File {
	t.Helper()
	f, err := Open(fstest.MapFS{"x.csv": {Data: []byte(text)}}, "x.csv", wanted...)
	if err != nil {
		t.Fatalf("Open(%q) = %v; want nil", text, err)
	}
	f.Next()
	return f
}

func TestColumnsAreFoundByName(t *testing.T) {
	for name, text := range map[string]string{
		"in order":        "a,b\n1,2\n",
		"in another":      "b,extra,a\n2,x,1\n",
		"with a mark":     "\uFEFFa,b\n1,2\n",
		"with CR LF":      "a,b\r\n1,2\r\n",
		"without newline": "a,b\n1,2",
	} {
		f := open(t, text, "a", "b")
		if a, b := f.Text("a"), f.Text("b"); a != "1" || b != "2" || f.Err() != nil {
			t.Errorf("%s: a, b = %q, %q, %v; want 1, 2", name, a, b, f.Err())
		}
		if f.Next() || f.Err() != nil {
			t.Errorf("%s: there is a second row, or the error %v; want the end", name, f.Err())
		}
	}
}

func TestEmptyAndTheWordNULLAreNull(t *testing.T) {
	f := open(t, "a,b,c,d\nNULL,,null,\"\"\n")
	for _, column := range []string{"a", "b", "d"} {
		if got := f.Optional(column); got != nil {
			t.Errorf("Optional(%s) = %q; want nil", column, *got)
		}
		if got := f.OptionalTime(column); got != nil || f.Err() != nil {
			t.Errorf("OptionalTime(%s) = %v, %v; want nil", column, got, f.Err())
		}
	}
	if got := f.Text("c"); got != "null" || f.Err() != nil {
		t.Errorf("Text(c) = %q, %v; want the word null in lower case to be text", got, f.Err())
	}
	if f.Text("a"); f.Err() == nil || f.Err().Error() != "x.csv:2: a is NULL" {
		t.Errorf("Text(a) gives the error %v; want x.csv:2: a is NULL", f.Err())
	}
}

func TestACommaBeforeASpaceIsText(t *testing.T) {
	for line, want := range map[string][]string{
		`1,Rua do Paço, 67,Rio`:       {"1", "Rua do Paço, 67", "Rio"},
		`1,24, place Kléber, 2,Lille`: {"1", "24, place Kléber, 2", "Lille"},
		`1,"Yard, Unit 6",Bristol`:    {"1", "Yard, Unit 6", "Bristol"},
	} {
		f := open(t, "n,address,city\n"+line+"\n")
		if got := f.fields; !slices.Equal(got, want) || f.Err() != nil {
			t.Errorf("fields of %s = %q, %v; want %q", line, got, f.Err(), want)
		}
	}
}

func TestATornRowThatLostAFieldIsNotTakenForAWholeOne(t *testing.T) {
	for line, want := range map[string]string{
		"1,Rua do Paço, 67": "x.csv:2: 2 fields, the header has 3 columns",
		"1,a,b,c":           "x.csv:2: 4 fields, the header has 3 columns",
		"1,a":               "x.csv:2: 2 fields, the header has 3 columns",
	} {
		if err := open(t, "n,address,city\n"+line+"\n").Err(); err == nil || err.Error() != want {
			t.Errorf("error of %s = %v; want %s", line, err, want)
		}
	}
}

func TestLineNumbersCountLinesAndNotRows(t *testing.T) {
	f := open(t, "a,b\n\n\"two\nlines\",2\n3,4\n")
	first := f.Line()
	if !f.Next() || first != 3 || f.Line() != 5 {
		t.Errorf("rows are in lines %d and %d, error %v; want 3 and 5", first, f.Line(), f.Err())
	}
}

func TestTimesAreUTCWithOrWithoutAFraction(t *testing.T) {
	want := time.Date(1996, 7, 4, 13, 30, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"1996-07-04 13:30:00.000": want,
		"1996-07-04 13:30:00":     want,
		"1996-07-04 13:30:00.25":  want.Add(250 * time.Millisecond),
	} {
		f := open(t, "t\n"+text+"\n")
		if got := f.Time("t"); !got.Equal(want) || got.Location() != time.UTC || f.Err() != nil {
			t.Errorf("Time of %s = %v, %v; want %v", text, got, f.Err(), want)
		}
	}
}

func TestTheFirstErrorIsKept(t *testing.T) {
	f := open(t, "a,b\nx,y\n1,2\n")
	if a, b := f.Integer("a", 9), f.Hundredths("b", 9); a != 0 || b != 0 {
		t.Errorf("values that are wrong = %d, %d; want zeros", a, b)
	}
	if f.Next() {
		t.Error("Next = true after an error; want false")
	}
	if want := `x.csv:2: a "x": want a whole number from 1 to 9`; f.Err() == nil || f.Err().Error() != want {
		t.Errorf("error = %v; want %s", f.Err(), want)
	}
	bad := (*RowError)(nil)
	if !errors.As(f.Err(), &bad) || bad.File != "x.csv" || bad.Line != 2 {
		t.Errorf("errors.As(%v) gives %+v; want file x.csv, line 2", f.Err(), bad)
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
	if f, err := Open(files, "x.csv"); !errors.Is(err, io.ErrUnexpectedEOF) || f != nil {
		t.Errorf("Open = %v, %v; want %v", f, err, io.ErrUnexpectedEOF)
	}
}

func TestHundredthsAreExact(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "0.0": 0, "14": 1400, "14.5": 1450, "14.00": 1400, "0.01": 1, "0.29": 29,
		"0.15": 15, "0.1500": 15, "14.0000": 1400, "007": 700, "1000000.00": 100000000,
		"92233720368547758.07": math.MaxInt64,
	} {
		f := open(t, "a\n"+text+"\n")
		if got := f.Hundredths("a", math.MaxInt64); got != want || f.Err() != nil {
			t.Errorf("Hundredths of %q = %d, %v; want %d", text, got, f.Err(), want)
		}
	}
}

func TestWhatIsNoDecimalNumberIsRefused(t *testing.T) {
	for _, text := range []string{
		".", "1.", ".5", "-1", "+1", "1e3", "0x10", "\"1,5\"", "1.2.3", " 1", "1_000", "NaN", "Inf", "٣",
		"0.001", "0.1000001", "92233720368547758.08", "99999999999999999999",
	} {
		f := open(t, "a\n"+text+"\n")
		if got := f.Hundredths("a", math.MaxInt64); got != 0 || f.Err() == nil {
			t.Errorf("Hundredths of %q = %d, %v; want an error", text, got, f.Err())
		}
	}
}

func TestANameThatIsThereTwiceOrNotAtAllFailsTheRow(t *testing.T) {
	x := NewIndex[string, int]("x.csv", "customer")
	f := open(t, "a\nA\nB\n")
	x.Add(f, f.Text("a"), 7)
	if got := x.Find(f, "A"); got != 7 || f.Err() != nil {
		t.Errorf("Find(A) = %d, %v; want 7", got, f.Err())
	}
	f.Next()
	x.Add(f, "A", 8)
	if want := "x.csv:3: customer A is in line 2 already"; f.Err() == nil || f.Err().Error() != want {
		t.Errorf("error of a second A = %v; want %s", f.Err(), want)
	}
	f = open(t, "a\nB\n")
	if got := x.Find(f, "B"); got != 0 || f.Err() == nil || f.Err().Error() != "x.csv:2: customer B is not in x.csv" {
		t.Errorf("Find(B) = %d, %v; want 0 and an error that names it", got, f.Err())
	}
}
