package pgtext

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

// parseArray reads the text of an array as PostgreSQL describes it. Elements are
// between commas, in quotes or bare. A backslash takes the meaning from the byte
// after it. A bare NULL is no element.
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

// The law: what is written is read again, each element by itself. Only what
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
			array, fits = appendString(array, Text, s, Array)
			line, also = appendString(line, Text, s, Copy)
			_, binary = appendString(nil, Text, s, Binary)
			if want := utf8.ValidString(s) && !strings.Contains(s, "\x00"); fits != want || also != want || binary != want {
				t.Fatalf("appendString(%q) = %v, %v, %v; want %v", s, fits, also, binary, want)
			}
			valid = valid && fits
		}
		if !valid {
			return
		}
		array, line = append(AppendNull(append(array, ','), Array), '}'), append(AppendNull(append(line, '\t'), Copy), '\n')
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

// appendTo appends a field of a struct, as a caller does.
func appendTo(b []byte, v reflect.Value, typ Type, f Format) ([]byte, bool) {
	k, pointer := KindOf(v.Type())
	if k == ValueKind {
		value := v.Interface()
		if asked, ok := value.(driver.Valuer); ok {
			value, _ = asked.Value()
		}
		return typ.AppendValue(b, value, f)
	}
	if pointer {
		if v.IsNil() {
			return AppendNull(b, f), true
		}
		v = v.Elem()
	}
	return typ.AppendField(b, k, v, f)
}

func TestValuesHaveTheirForms(t *testing.T) {
	small := int32(-7)
	india := time.FixedZone("", 19800)
	moment := time.Date(2024, 2, 29, 23, 4, 5, 6_007_999, india)
	for _, test := range []struct {
		field  string
		typ    Type
		row    numbers
		text   string // in COPY; "" if it goes by VALUES
		binary string // its bytes in hexadecimal, after their length; "-" for none
	}{
		{"I", Int8, numbers{I: math.MinInt64}, "-9223372036854775808", "8000000000000000"},
		{"I", Int4, numbers{I: -2}, "-2", "fffffffe"},
		{"I", Int4, numbers{I: math.MaxInt32 + 1}, "", ""},
		{"I", Int2, numbers{I: 32767}, "32767", "7fff"},
		{"I", Int2, numbers{I: 32768}, "", ""},
		{"I", Numeric, numbers{I: 0}, "0", "0000000000000000"},
		{"I", Numeric, numbers{I: -123450000}, "-123450000", "0003000240000000000109290000"},
		{"I", Numeric, numbers{I: math.MinInt64}, "-9223372036854775808", "0005000440000000039a0d2c0170156516b0"},
		{"U", Int8, numbers{U: math.MaxInt64 + 1}, "", ""},
		{"U", Int8, numbers{U: 5}, "5", "0000000000000005"},
		{"F", Float4, numbers{F: 0.1}, "0.1", "3dcccccd"},
		{"D", Float8, numbers{D: math.Inf(1)}, "+Inf", "7ff0000000000000"},
		{"D", Float8, numbers{D: 1e300}, "1e+300", "7e37e43c8800759c"},
		{"D", Float4, numbers{D: 0.5}, "0.5", "3f000000"},
		{"D", Float4, numbers{D: 0.1}, "", ""},
		{"D", Float4, numbers{D: math.Inf(-1)}, "-Inf", "ff800000"},
		{"D", Numeric, numbers{D: 1e21}, "1000000000000000000000", "-"},
		{"D", Numeric, numbers{D: math.NaN()}, "", "-"},
		{"B", Bool, numbers{B: true}, "t", "01"},
		{"S", Text, numbers{S: "a\\b\t"}, `a\\b\t`, "615c6209"},
		{"S", JSONB, numbers{S: "{}"}, "{}", "017b7d"},
		{"S", Int8, numbers{S: "12"}, "12", "-"},
		{"S", UUID, numbers{S: "x"}, "x", "-"},
		{"V", UUID, numbers{V: valuer{"x"}}, "x", "-"},
		{"N", Text, numbers{N: "x"}, "x", "78"},
		{"P", Int8, numbers{P: &small}, "-7", "fffffffffffffff9"},
		{"P", Int8, numbers{}, `\N`, "ffffffff"},
		{"X", Bytea, numbers{X: []byte{0, 255}}, `\\x00ff`, "00ff"},
		{"X", Bytea, numbers{X: []byte{}}, `\\x`, ""},
		{"X", Bytea, numbers{}, `\N`, "ffffffff"},
		{"T", TimestampTZ, numbers{T: moment}, "2024-02-29 17:34:05.006007+00", "0002b5876f3e94b7"},
		{"T", Timestamp, numbers{T: moment}, "", ""},
		{"T", Timestamp, numbers{T: moment.UTC()}, "2024-02-29 17:34:05.006007", "0002b5876f3e94b7"},
		{"T", Date, numbers{T: moment.UTC()}, "2024-02-29", "00002279"},
		{"T", Date, numbers{T: time.Date(1999, 12, 31, 1, 0, 0, 0, time.UTC)}, "1999-12-31", "ffffffff"},
		{"T", Date, numbers{T: time.Date(1999, 12, 31, 0, 0, 0, 0, time.UTC)}, "1999-12-31", "ffffffff"},
		{"T", Timestamp, numbers{T: time.Date(1999, 12, 31, 23, 59, 59, 1_999, time.UTC)}, "1999-12-31 23:59:59.000001", "fffffffffff0bdc1"},
		{"T", TimestampTZ, numbers{}, "0001-01-01 00:00:00+00", "ff1fe2ffc59c6000"},
		{"T", TimestampTZ, numbers{T: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}, "", ""},
		{"T", TimestampTZ, numbers{T: time.Date(0, 12, 31, 0, 0, 0, 0, time.UTC)}, "", ""},
		{"V", Int8, numbers{V: valuer{int64(3)}}, "3", "0000000000000003"},
		{"V", Int8, numbers{V: valuer{"3"}}, "3", ""},
		{"V", Int8, numbers{V: valuer{3.0}}, "", ""},
		{"V", Int8, numbers{V: valuer{struct{}{}}}, "", ""},
		{"A", Text, numbers{A: "x"}, "x", "78"},
		{"A", Text, numbers{A: named("x")}, "", ""},
		{"A", Text, numbers{}, `\N`, "ffffffff"},
	} {
		v := reflect.ValueOf(&test.row).Elem()
		f, _ := v.Type().FieldByName(test.field)
		k, _ := KindOf(f.Type)
		if !test.typ.Takes(k) {
			t.Errorf("Type(%d).Takes(%s) = false; want true", test.typ, test.field)
			continue
		}
		got, ok := appendTo(nil, v.FieldByIndex(f.Index), test.typ, Copy)
		if ok != (test.text != "") || ok && string(got) != test.text {
			t.Errorf("append(%s of %+v, text) = %q, %v; want %q", test.field, test.row, got, ok, test.text)
		}
		if test.typ.Binary(k) != (test.binary != "-") {
			t.Errorf("Type(%d).Binary(%s) = %v", test.typ, test.field, test.typ.Binary(k))
		}
		if test.binary == "-" {
			continue
		}
		got, ok = appendTo(nil, v.FieldByIndex(f.Index), test.typ, Binary)
		want := test.binary
		if want != "ffffffff" || test.text != `\N` {
			want = hex.EncodeToString([]byte{0, 0, 0, byte(len(test.binary) / 2)}) + want
		}
		if refused := test.text == "" || test.text == "3" && test.binary == ""; ok == refused || ok && hex.EncodeToString(got) != want {
			t.Errorf("append(%s of %+v, binary) = %x, %v; want %s", test.field, test.row, got, ok, want)
		}
	}
}

// A server that gets nine digits rounds them, as drivers that send nine rely on.
func TestArrayOfNanosHasAllDigitsOfATime(t *testing.T) {
	at := numbers{T: time.Date(2024, 2, 29, 23, 4, 5, 6_007_999, time.UTC), S: `a"`, X: []byte{1}}
	v := reflect.ValueOf(&at).Elem()
	for _, test := range []struct {
		field string
		typ   Type
		want  string
	}{
		{"T", TimestampTZ, `"2024-02-29 23:04:05.006007999+00"`},
		{"T", Timestamp, `"2024-02-29 23:04:05.006007999"`},
		{"T", Date, `"2024-02-29"`},
		{"S", Text, `"a\""`},
		{"X", Bytea, `"\\x01"`},
		{"P", Int8, "NULL"},
	} {
		got, ok := appendTo(nil, v.FieldByName(test.field), test.typ, ArrayOfNanos)
		if !ok || string(got) != test.want {
			t.Errorf("append(%s, ArrayOfNanos) = %s, %v; want %s", test.field, got, ok, test.want)
		}
	}
}

// pgx reads (1,2) and [1,5) as a point, and 1:30 as an interval. It cuts a time.
func TestTakesParsedTakesOnlyWhatPgxReadsAsTheServer(t *testing.T) {
	for typ, texts := range map[Type]map[string]bool{
		Text:      {"": true, "a": true},
		JSONB:     {"{}": true},
		Numeric:   {"1": true, "-12.50": true, "NaN": false, "1e3": false, "": false, "+1": false, " 1": false, ".5": false, "1\n": false},
		UUID:      {"00112233-4455-6677-8899-aabbccddeeff": true, "00112233445566778899aabbccddeeff": false, "{00112233-4455-6677-8899-aabbccddeeff}": false, "": false},
		Other:     {"[1,5)": false, "a": false},
		Timestamp: {"2024-02-29": false}, TimestampTZ: {"2024-02-29": false}, Int8: {"1": false}, Float8: {"1": false}, Bool: {"t": false},
	} {
		for text, want := range texts {
			if got := typ.TakesParsed(text); got != want {
				t.Errorf("Type(%d).TakesParsed(%q) = %v; want %v", typ, text, got, want)
			}
		}
	}
}

func TestValueOfANilPointerOrOfAPanic(t *testing.T) {
	if got, err := Value((*valuer)(nil)); got != nil || err != nil {
		t.Errorf("Value(nil pointer to a Valuer) = %v, %v; want nil, as database/sql has it", got, err)
	}
	if _, err := Value((*pointerValuer)(nil)); err == nil {
		t.Error("Value(Valuer that panics) = no error; want one")
	}
}

type pointerValuer struct{ n int64 }

func (p *pointerValuer) Value() (driver.Value, error) { return p.n, nil }

// Each of these differs between drivers or modes.
func TestPairsThatDriversTreatDifferentlyAreNotOnTheList(t *testing.T) {
	for field, list := range map[string][]Type{
		"I":  {Text, Float8, Bool, JSON, Other},
		"F":  {Float8, Numeric},
		"S":  {Bytea},
		"N":  {JSON, JSONB, Int8, Other},
		"X":  {Text, JSON, JSONB, Other},
		"T":  {Text, Other},
		"W":  {Int8, Text},
		"AA": {Text, Other},
		"WP": {Int8, Text},
		"PV": {Int8, Text},
		"IS": {Int8, Text, Other},
		"NB": {Bytea, Text},
	} {
		f, _ := reflect.TypeFor[numbers]().FieldByName(field)
		k, _ := KindOf(f.Type)
		for _, typ := range list {
			if typ.Takes(k) {
				t.Errorf("Type(%d).Takes(%v) = true; want false", typ, f.Type)
			}
		}
	}
}

func TestAppendFieldNeedsNoMemory(t *testing.T) {
	row := numbers{S: "text", T: time.Now(), P: new(int32)}
	v := reflect.ValueOf(&row).Elem()
	b := make([]byte, 0, 1024)
	for _, f := range []Format{Array, Copy, Binary} {
		for name, typ := range map[string]Type{"I": Int8, "D": Float8, "B": Bool, "S": Text, "P": Int4, "X": Bytea, "T": TimestampTZ} {
			field := v.FieldByName(name)
			k, _ := KindOf(field.Type())
			if n := testing.AllocsPerRun(1000, func() {
				if _, ok := typ.AppendField(b, k, reflect.Indirect(field), f); !ok {
					t.Fatalf("AppendField(%s) does not fit", name)
				}
			}); n != 0 {
				t.Errorf("AppendField(%s, format %d) makes %v allocations; want 0", name, f, n)
			}
		}
	}
}
