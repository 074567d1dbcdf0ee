package sqlxhelper

import (
	"database/sql/driver"
	"encoding/hex"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// parseArray reads the text of an array as PostgreSQL describes it: elements
// between commas, in quotes or bare, where a backslash takes the meaning from the
// byte after it, and a bare NULL is none.
func parseArray(text string) (elements []*string, err error) {
	if len(text) < 2 || text[0] != '{' || text[len(text)-1] != '}' {
		return nil, errors.New("no braces around it")
	}
	rest := text[1 : len(text)-1]
	for rest != "" || len(elements) > 0 {
		if len(elements) > 0 {
			if rest == "" {
				return elements, nil
			}
			if rest[0] != ',' {
				return nil, errors.New("no comma")
			}
			rest = rest[1:]
		}
		var element strings.Builder
		quoted := strings.HasPrefix(rest, `"`)
		if !quoted {
			end := strings.IndexAny(rest+",", `,"\{}`)
			bare := rest[:end]
			rest = rest[end:]
			if bare == "" {
				return nil, errors.New("an empty element")
			}
			if strings.EqualFold(bare, "NULL") {
				elements = append(elements, nil)
				continue
			}
			element.WriteString(bare)
		} else {
			i := 1
			for ; i < len(rest) && rest[i] != '"'; i++ {
				if rest[i] == '\\' {
					i++
				}
				if i < len(rest) {
					element.WriteByte(rest[i])
				}
			}
			if i >= len(rest) {
				return nil, errors.New("no quote at the end")
			}
			rest = rest[i+1:]
		}
		s := element.String()
		elements = append(elements, &s)
	}
	return elements, nil
}

// parseCopy reads a line of COPY's text format.
func parseCopy(line string) (fields []*string, err error) {
	line, found := strings.CutSuffix(line, "\n")
	if !found || strings.ContainsAny(line, "\n\r") {
		return nil, errors.New("not one line")
	}
	for field := range strings.SplitSeq(line, "\t") {
		if field == `\N` {
			fields = append(fields, nil)
			continue
		}
		var s strings.Builder
		for i := 0; i < len(field); i++ {
			if field[i] != '\\' {
				s.WriteByte(field[i])
				continue
			}
			if i++; i == len(field) {
				return nil, errors.New("a backslash at the end")
			}
			switch c := field[i]; c {
			case 't':
				s.WriteByte('\t')
			case 'n':
				s.WriteByte('\n')
			case 'r':
				s.WriteByte('\r')
			case '\\':
				s.WriteByte('\\')
			default:
				return nil, errors.New("an escape of " + string(c))
			}
		}
		text := s.String()
		fields = append(fields, &text)
	}
	return fields, nil
}

// The law: what is written is read again, each element by itself, and only what
// PostgreSQL would refuse is not written.
func FuzzStringsAreReadAsTheyWere(f *testing.F) {
	for _, s := range []string{"", "NULL", "null", `\N`, `\.`, `a"b`, `a\`, "{x,y}", " a ", "a\tb\nc\rd\v\b\f\x1f\x7f", "𝔘", "a\x00", "\xff", ",", `","`} {
		f.Add(s, "x")
		f.Add("x", s)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		rows := []string{a, b}
		array, line := []byte("{"), []byte(nil)
		valid := true
		for i, s := range rows {
			if i > 0 {
				array, line = append(array, ','), append(line, '\t')
			}
			var fits, also, binary bool
			array, fits = appendString(array, textClass, s, inArray)
			line, also = appendString(line, textClass, s, inCopy)
			_, binary = appendString(nil, textClass, s, inBinary)
			if want := utf8.ValidString(s) && !strings.Contains(s, "\x00"); fits != want || also != want || binary != want {
				t.Fatalf("appendString(%q) = %v, %v, %v; want %v", s, fits, also, binary, want)
			}
			valid = valid && fits
		}
		if !valid {
			return
		}
		array, line = append(appendNull(append(array, ','), inArray), '}'), append(appendNull(append(line, '\t'), inCopy), '\n')
		for name, parse := range map[string]func() ([]*string, error){
			string(array): func() ([]*string, error) { return parseArray(string(array)) },
			string(line):  func() ([]*string, error) { return parseCopy(string(line)) },
		} {
			got, err := parse()
			if err != nil || len(got) != 3 || got[0] == nil || *got[0] != a || got[1] == nil || *got[1] != b || got[2] != nil {
				t.Errorf("%q is read as %d elements, %v; want %q, %q and NULL", name, len(got), err, a, b)
			}
		}
	})
}

type numbers struct {
	I  int64
	U  uint64
	F  float32
	D  float64
	B  bool
	S  string
	N  named
	P  *int32
	X  []byte
	T  time.Time
	V  valuer
	A  any
	W  worded
	AA []string
	WP wordedPointer
	PV pgValuer
	IS interface{ String() string }
	NB []namedByte
}

type (
	named  string
	worded int
	valuer struct{ value driver.Value }

	wordedPointer int
	pgValuer      int
	namedByte     byte
)

func (worded) String() string                 { return "a word" }
func (*wordedPointer) String() string         { return "a word" }
func (pgValuer) Int64Value() (int64, error)   { return 1, nil }
func (v valuer) Value() (driver.Value, error) { return v.value, nil }

func TestValuesHaveTheirForms(t *testing.T) {
	small := int32(-7)
	india := time.FixedZone("", 19800)
	moment := time.Date(2024, 2, 29, 23, 4, 5, 6_007_999, india)
	for _, test := range []struct {
		field  string
		class  class
		row    numbers
		text   string // in COPY; "" if it goes by VALUES
		binary string // its bytes in hexadecimal, after their length; "-" for none
	}{
		{"I", int8Class, numbers{I: math.MinInt64}, "-9223372036854775808", "8000000000000000"},
		{"I", int4Class, numbers{I: -2}, "-2", "fffffffe"},
		{"I", int4Class, numbers{I: math.MaxInt32 + 1}, "", ""},
		{"I", int2Class, numbers{I: 32767}, "32767", "7fff"},
		{"I", int2Class, numbers{I: 32768}, "", ""},
		{"I", numericClass, numbers{I: 0}, "0", "0000000000000000"},
		{"I", numericClass, numbers{I: -123450000}, "-123450000", "0003000240000000000109290000"},
		{"I", numericClass, numbers{I: math.MinInt64}, "-9223372036854775808", "0005000440000000039a0d2c0170156516b0"},
		{"U", int8Class, numbers{U: math.MaxInt64 + 1}, "", ""},
		{"U", int8Class, numbers{U: 5}, "5", "0000000000000005"},
		{"F", float4Class, numbers{F: 0.1}, "0.1", "3dcccccd"},
		{"D", float8Class, numbers{D: math.Inf(1)}, "+Inf", "7ff0000000000000"},
		{"D", float8Class, numbers{D: 1e300}, "1e+300", "7e37e43c8800759c"},
		{"D", float4Class, numbers{D: 0.5}, "0.5", "3f000000"},
		{"D", float4Class, numbers{D: 0.1}, "", ""},
		{"D", float4Class, numbers{D: math.Inf(-1)}, "-Inf", "ff800000"},
		{"D", numericClass, numbers{D: 1e21}, "1000000000000000000000", "-"},
		{"D", numericClass, numbers{D: math.NaN()}, "", "-"},
		{"B", boolClass, numbers{B: true}, "t", "01"},
		{"S", textClass, numbers{S: "a\\b\t"}, `a\\b\t`, "615c6209"},
		{"S", jsonbClass, numbers{S: "{}"}, "{}", "017b7d"},
		{"S", int8Class, numbers{S: "12"}, "12", "-"},
		{"N", textClass, numbers{N: "x"}, "x", "78"},
		{"P", int8Class, numbers{P: &small}, "-7", "fffffffffffffff9"},
		{"P", int8Class, numbers{}, `\N`, "ffffffff"},
		{"X", byteaClass, numbers{X: []byte{0, 255}}, `\\x00ff`, "00ff"},
		{"X", byteaClass, numbers{X: []byte{}}, `\\x`, ""},
		{"X", byteaClass, numbers{}, `\N`, "ffffffff"},
		{"T", timestamptzClass, numbers{T: moment}, "2024-02-29 17:34:05.006007+00", "0002b5876f3e94b7"},
		{"T", timestampClass, numbers{T: moment}, "", ""},
		{"T", timestampClass, numbers{T: moment.UTC()}, "2024-02-29 17:34:05.006007", "0002b5876f3e94b7"},
		{"T", dateClass, numbers{T: moment.UTC()}, "2024-02-29", "00002279"},
		{"T", dateClass, numbers{T: time.Date(1999, 12, 31, 1, 0, 0, 0, time.UTC)}, "1999-12-31", "ffffffff"},
		{"T", dateClass, numbers{T: time.Date(1999, 12, 31, 0, 0, 0, 0, time.UTC)}, "1999-12-31", "ffffffff"},
		{"T", timestampClass, numbers{T: time.Date(1999, 12, 31, 23, 59, 59, 1_999, time.UTC)}, "1999-12-31 23:59:59.000001", "fffffffffff0bdc1"},
		{"T", timestamptzClass, numbers{}, "0001-01-01 00:00:00+00", "ff1fe2ffc59c6000"},
		{"T", timestamptzClass, numbers{T: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}, "", ""},
		{"T", timestamptzClass, numbers{T: time.Date(0, 12, 31, 0, 0, 0, 0, time.UTC)}, "", ""},
		{"V", int8Class, numbers{V: valuer{int64(3)}}, "3", "0000000000000003"},
		{"V", int8Class, numbers{V: valuer{"3"}}, "3", ""},
		{"V", int8Class, numbers{V: valuer{3.0}}, "", ""},
		{"V", int8Class, numbers{V: valuer{struct{}{}}}, "", ""},
		{"A", textClass, numbers{A: "x"}, "x", "78"},
		{"A", textClass, numbers{A: named("x")}, "", ""},
		{"A", textClass, numbers{}, `\N`, "ffffffff"},
	} {
		v := reflect.ValueOf(&test.row).Elem()
		f, _ := v.Type().FieldByName(test.field)
		c := &column{name: "c", typ: f.Type, index: f.Index, valuer: isValuer(f.Type)}
		k, pointer := kindOf(c)
		if !test.class.takes(k) {
			t.Errorf("class %d takes %s: false; want true", test.class, test.field)
			continue
		}
		e := encoder{column: c, kind: k, pointer: pointer, class: test.class}
		got, ok := e.append(nil, v, inCopy)
		if ok != (test.text != "") || ok && string(got) != test.text {
			t.Errorf("append(%s of %+v, text) = %q, %v; want %q", test.field, test.row, got, ok, test.text)
		}
		if test.class.binary(k) != (test.binary != "-") {
			t.Errorf("class %d has a binary form of %s: %v", test.class, test.field, test.class.binary(k))
		}
		if test.binary == "-" {
			continue
		}
		got, ok = e.append(nil, v, inBinary)
		want := test.binary
		if want != "ffffffff" || test.text != `\N` {
			want = hex.EncodeToString([]byte{0, 0, 0, byte(len(test.binary) / 2)}) + want
		}
		if refused := test.text == "" || test.text == "3" && test.binary == ""; ok == refused || ok && hex.EncodeToString(got) != want {
			t.Errorf("append(%s of %+v, binary) = %x, %v; want %s", test.field, test.row, got, ok, want)
		}
	}
}

// In VALUES a time loses what it loses in the other forms.
func TestTimesAreCutToMicroseconds(t *testing.T) {
	for _, year := range []int{-43, 1969, 2024} {
		at, want := time.Date(year, 2, 3, 4, 5, 6, 7_999, time.UTC), time.Date(year, 2, 3, 4, 5, 6, 7_000, time.UTC)
		if got := []any{cut(at), cut(&at)}; got[0] != want || got[1] != want {
			t.Errorf("cut(%v, by value and by address) = %v; want %v", at, got, want)
		}
	}
	if got := cut((*time.Time)(nil)); got != (*time.Time)(nil) {
		t.Errorf("cut(nil) = %v; want nil", got)
	}
}

// Each of these means something else to one driver or mode than to another.
func TestPairsThatDriversTreatDifferentlyAreNotOnTheList(t *testing.T) {
	for field, classes := range map[string][]class{
		"I":  {textClass, float8Class, boolClass, jsonClass, otherClass},
		"F":  {float8Class, numericClass},
		"S":  {byteaClass},
		"N":  {jsonClass, jsonbClass, int8Class, otherClass},
		"X":  {textClass, jsonClass, jsonbClass, otherClass},
		"T":  {textClass, otherClass},
		"W":  {int8Class, textClass},
		"AA": {textClass, otherClass},
		"WP": {int8Class, textClass},
		"PV": {int8Class, textClass},
		"IS": {int8Class, textClass, otherClass},
		"NB": {byteaClass, textClass},
	} {
		f, _ := reflect.TypeFor[numbers]().FieldByName(field)
		k, _ := kindOf(&column{typ: f.Type, index: f.Index})
		for _, class := range classes {
			if class.takes(k) {
				t.Errorf("class %d takes %v: true; want false", class, f.Type)
			}
		}
	}
}

func TestEncodingARowNeedsNoMemory(t *testing.T) {
	row := numbers{S: "text", T: time.Now()}
	v := reflect.ValueOf(&row).Elem()
	var encoders []encoder
	for name, class := range map[string]class{"I": int8Class, "D": float8Class, "B": boolClass, "S": textClass, "P": int4Class, "X": byteaClass, "T": timestamptzClass} {
		f, _ := v.Type().FieldByName(name)
		c := &column{name: name, typ: f.Type, index: f.Index}
		k, pointer := kindOf(c)
		encoders = append(encoders, encoder{column: c, kind: k, pointer: pointer, class: class})
	}
	b := make([]byte, 0, 1024)
	for _, in := range []form{inArray, inCopy, inBinary} {
		if n := testing.AllocsPerRun(100, func() {
			for i := range encoders {
				if _, ok := encoders[i].append(b, v, in); !ok {
					t.Fatalf("append(%s) does not fit", encoders[i].name)
				}
			}
		}); n != 0 {
			t.Errorf("form %d: %v allocations per row; want 0", in, n)
		}
	}
}
