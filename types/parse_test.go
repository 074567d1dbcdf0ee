package types_test

import (
	"encoding/json"
	"errors"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/snowkey/snowkey/types"
)

const maxInt64 = types.Snowflake(1<<63 - 1)

// before is what a destination holds before a call that may fail.
const before = types.Snowflake(42)

// A verdict is what every entry point for text must say about one input.
type verdict struct {
	name string
	text string
	want types.Snowflake
	err  error // nil, ErrSyntax or ErrRange
}

func verdicts() []verdict {
	megabyte := 1 << 20
	return []verdict{
		{"zero", "0", 0, nil},
		{"one", "1", 1, nil},
		{"nine", "9", 9, nil},
		{"two digits", "10", 10, nil},
		{"zeros at the end", "1000000000000000000", 1000000000000000000, nil},
		{"above 53 bits", "9007199254740993", 9007199254740993, nil},
		{"Discord's documented example", "175928847299117063", 175928847299117063, nil},
		{"MaxInt64 less one", "9223372036854775806", maxInt64 - 1, nil},
		{"MaxInt64", "9223372036854775807", maxInt64, nil},

		{"empty", "", 0, types.ErrSyntax},
		{"space before", " 5", 0, types.ErrSyntax},
		{"space after", "5 ", 0, types.ErrSyntax},
		{"newline after", "5\n", 0, types.ErrSyntax},
		{"carriage return after", "5\r", 0, types.ErrSyntax},
		{"tab before", "\t5", 0, types.ErrSyntax},
		{"space inside", "1 2", 0, types.ErrSyntax},
		{"only a space", " ", 0, types.ErrSyntax},
		{"plus", "+5", 0, types.ErrSyntax},
		{"plus zero", "+0", 0, types.ErrSyntax},
		{"minus zero", "-0", 0, types.ErrSyntax},
		{"minus", "-1", 0, types.ErrRange},
		{"MinInt64", "-9223372036854775808", 0, types.ErrRange},
		{"below MinInt64", "-9223372036854775809", 0, types.ErrRange},
		{"only a minus", "-", 0, types.ErrSyntax},
		{"two minuses", "--1", 0, types.ErrSyntax},
		{"minus and leading zero", "-01", 0, types.ErrSyntax},
		{"minus and letter", "-1a", 0, types.ErrSyntax},
		{"leading zeros", "007", 0, types.ErrSyntax},
		{"two zeros", "00", 0, types.ErrSyntax},
		{"leading zero before MaxInt64", "09223372036854775807", 0, types.ErrSyntax},
		{"leading zero before what is out of range", "09223372036854775808", 0, types.ErrSyntax},
		{"underscore", "1_000", 0, types.ErrSyntax},
		{"comma", "1,000", 0, types.ErrSyntax},
		{"hexadecimal", "0x10", 0, types.ErrSyntax},
		{"hexadecimal digits", "ff", 0, types.ErrSyntax},
		{"octal", "0o7", 0, types.ErrSyntax},
		{"binary", "0b1", 0, types.ErrSyntax},
		{"exponent", "1e3", 0, types.ErrSyntax},
		{"fraction", "1.0", 0, types.ErrSyntax},
		{"point at the end", "1.", 0, types.ErrSyntax},
		{"the byte below the digits", "1/2", 0, types.ErrSyntax},
		{"the byte above the digits", "1:2", 0, types.ErrSyntax},
		{"fullwidth digits", "\uff11\uff12", 0, types.ErrSyntax},
		{"Arabic digits", "\u0661\u0662", 0, types.ErrSyntax},
		{"Devanagari digits", "\u0967\u0968", 0, types.ErrSyntax},
		{"byte order mark", "\ufeff5", 0, types.ErrSyntax},
		{"no-break space after", "5\u00a0", 0, types.ErrSyntax},
		{"NUL inside", "1\x002", 0, types.ErrSyntax},
		{"NUL after", "5\x00", 0, types.ErrSyntax},
		{"invalid UTF-8", "\xff\xfe", 0, types.ErrSyntax},
		{"invalid UTF-8 after a digit", "1\xff", 0, types.ErrSyntax},
		{"digits with the high bit set", "\xb1\xb2", 0, types.ErrSyntax},
		{"letters", "abc", 0, types.ErrSyntax},
		{"letter after digits", "12x", 0, types.ErrSyntax},
		{"letter before digits", "x12", 0, types.ErrSyntax},
		{"the word null", "null", 0, types.ErrSyntax},
		{"the word NULL", "NULL", 0, types.ErrSyntax},
		{"quoted", `"5"`, 0, types.ErrSyntax},
		{"half quoted", `5"`, 0, types.ErrSyntax},
		{"infinity", "Inf", 0, types.ErrSyntax},
		{"base62", "0Czks0tP37X", 0, types.ErrSyntax},
		{"letter behind 19 digits", "9223372036854775807x", 0, types.ErrSyntax},
		{"letter behind 25 digits", "9999999999999999999999999x", 0, types.ErrSyntax},

		{"MaxInt64 plus one", "9223372036854775808", 0, types.ErrRange},
		{"nineteen nines", "9999999999999999999", 0, types.ErrRange},
		{"twenty digits", "10000000000000000000", 0, types.ErrRange},
		{"MaxUint64", "18446744073709551615", 0, types.ErrRange},
		{"2^64, which wraps to 0", "18446744073709551616", 0, types.ErrRange},
		{"2^64+5, which wraps to 5", "18446744073709551621", 0, types.ErrRange},
		{"2^128", "340282366920938463463374607431768211456", 0, types.ErrRange},
		{"MaxInt64 times ten", "92233720368547758070", 0, types.ErrRange},

		{"a megabyte of nines", strings.Repeat("9", megabyte), 0, types.ErrRange},
		{"a megabyte of letters", strings.Repeat("x", megabyte), 0, types.ErrSyntax},
		{"300 zeros", strings.Repeat("0", 300), 0, types.ErrSyntax},
		{"300 control bytes", strings.Repeat("\x01", 300), 0, types.ErrSyntax},
		{"300 digits and a letter", strings.Repeat("1", 300) + "x", 0, types.ErrSyntax},
	}
}

// A textPath is one way for text to become an ID. read sets its destination to
// before, and returns its value after the call.
type textPath struct {
	name  string
	read  func(text string) (types.Snowflake, error)
	fails types.Snowflake          // what read returns beside an error
	shown func(text string) string // the input as the path sees it
	op    string                   // ValueError.Op
	want  string                   // ValueError.Want
	// emptyIsAbsent: an empty text is not an error here, but no ID.
	emptyIsAbsent bool
}

const (
	wantDecimal = "a decimal integer 0..9223372036854775807"
	wantJSON    = "a JSON string or integer 0..9223372036854775807"

	wantMapstructure = "an integer or decimal text 0..9223372036854775807, or a whole float64 below 9007199254740992"
)

func textPaths() []textPath {
	plain := func(text string) string { return text }
	quoted := func(text string) string { return `"` + text + `"` }
	// asNull runs f on a present NullSnowflake. What is not present afterwards
	// shows as -1, which no test expects.
	asNull := func(f func(n *types.NullSnowflake) error) (types.Snowflake, error) {
		n := types.NullSnowflake{Snowflake: before, Valid: true}
		err := f(&n)
		if !n.Valid {
			return -1, err
		}
		return n.Snowflake, err
	}
	return []textPath{
		{
			name: "UnmarshalParam", fails: before, shown: plain, op: "unmarshal parameter", want: wantDecimal,
			read: func(text string) (types.Snowflake, error) {
				id := before
				err := id.UnmarshalParam(text)
				return id, err
			},
		},
		{
			name: "NullSnowflake.UnmarshalParam", fails: before, shown: plain, op: "unmarshal parameter", want: wantDecimal,
			emptyIsAbsent: true,
			read: func(text string) (types.Snowflake, error) {
				return asNull(func(n *types.NullSnowflake) error { return n.UnmarshalParam(text) })
			},
		},
		{
			name: "UnmarshalMapstructure(string)", fails: before, shown: plain, op: "decode", want: wantMapstructure,
			read: func(text string) (types.Snowflake, error) {
				id := before
				err := id.UnmarshalMapstructure(text)
				return id, err
			},
		},
		{
			name: "NullSnowflake.UnmarshalMapstructure(string)", fails: before, shown: plain, op: "decode", want: wantMapstructure,
			emptyIsAbsent: true,
			read: func(text string) (types.Snowflake, error) {
				return asNull(func(n *types.NullSnowflake) error { return n.UnmarshalMapstructure(text) })
			},
		},
		{
			name: "Parse", fails: 0, shown: plain, op: "parse", want: wantDecimal,
			read: types.Parse,
		},
		{
			name: "UnmarshalText", fails: before, shown: plain, op: "unmarshal text", want: wantDecimal,
			read: func(text string) (types.Snowflake, error) {
				id := before
				err := id.UnmarshalText([]byte(text))
				return id, err
			},
		},
		{
			name: "Scan(string)", fails: before, shown: plain, op: "scan", want: wantDecimal,
			read: func(text string) (types.Snowflake, error) {
				id := before
				err := id.Scan(text)
				return id, err
			},
		},
		{
			name: "Scan([]byte)", fails: before, shown: plain, op: "scan", want: wantDecimal,
			read: func(text string) (types.Snowflake, error) {
				id := before
				err := id.Scan([]byte(text))
				return id, err
			},
		},
		{
			name: "UnmarshalJSON of a string", fails: before, shown: quoted, op: "unmarshal JSON", want: wantJSON,
			read: func(text string) (types.Snowflake, error) {
				id := before
				err := id.UnmarshalJSON([]byte(`"` + text + `"`))
				return id, err
			},
		},
		{
			name: "json.Unmarshal", fails: before, shown: mustJSON, op: "unmarshal JSON", want: wantJSON,
			read: func(text string) (types.Snowflake, error) {
				id := before
				err := json.Unmarshal([]byte(mustJSON(text)), &id)
				return id, err
			},
		},
		{
			name: "NullSnowflake.UnmarshalText", fails: before, shown: plain, op: "unmarshal text", want: wantDecimal,
			emptyIsAbsent: true,
			read: func(text string) (types.Snowflake, error) {
				return asNull(func(n *types.NullSnowflake) error { return n.UnmarshalText([]byte(text)) })
			},
		},
		{
			name: "NullSnowflake.Scan(string)", fails: before, shown: plain, op: "scan", want: wantDecimal,
			read: func(text string) (types.Snowflake, error) {
				return asNull(func(n *types.NullSnowflake) error { return n.Scan(text) })
			},
		},
		{
			name: "NullSnowflake.Scan([]byte)", fails: before, shown: plain, op: "scan", want: wantDecimal,
			read: func(text string) (types.Snowflake, error) {
				return asNull(func(n *types.NullSnowflake) error { return n.Scan([]byte(text)) })
			},
		},
		{
			name: "NullSnowflake.UnmarshalJSON of a string", fails: before, shown: quoted, op: "unmarshal JSON", want: wantJSON,
			emptyIsAbsent: true,
			read: func(text string) (types.Snowflake, error) {
				return asNull(func(n *types.NullSnowflake) error { return n.UnmarshalJSON([]byte(`"` + text + `"`)) })
			},
		},
		{
			name: "json.Unmarshal into NullSnowflake", fails: before, shown: mustJSON, op: "unmarshal JSON", want: wantJSON,
			emptyIsAbsent: true,
			read: func(text string) (types.Snowflake, error) {
				return asNull(func(n *types.NullSnowflake) error { return json.Unmarshal([]byte(mustJSON(text)), n) })
			},
		},
	}
}

// mustJSON renders text as a JSON string.
func mustJSON(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// short cuts what a failure message repeats.
func short(text string) string {
	if len(text) > 80 {
		return strconv.Quote(text[:80]) + "… (" + strconv.Itoa(len(text)) + " bytes)"
	}
	return strconv.Quote(text)
}

func TestEveryTextPathGivesOneVerdict(t *testing.T) {
	for _, p := range textPaths() {
		t.Run(p.name, func(t *testing.T) {
			for _, v := range verdicts() {
				got, err := p.read(v.text)
				if v.text == "" && p.emptyIsAbsent {
					if got != -1 || err != nil {
						t.Errorf("%s(\"\") = %d, %v; want an absent value, nil", p.name, got, err)
					}
					continue
				}
				if v.err == nil {
					if got != v.want || err != nil {
						t.Errorf("%s(%s) = %d, %v; want %d, nil (%s)", p.name, short(v.text), got, err, v.want, v.name)
					}
					continue
				}
				if !errors.Is(err, v.err) {
					t.Errorf("%s(%s) error = %v; want one that matches %q (%s)", p.name, short(v.text), err, v.err, v.name)
				}
				for _, other := range []error{types.ErrSyntax, types.ErrRange, types.ErrNull} {
					if other != v.err && errors.Is(err, other) {
						t.Errorf("%s(%s) error matches %q; want only %q (%s)", p.name, short(v.text), other, v.err, v.name)
					}
				}
				if got != p.fails {
					t.Errorf("%s(%s) left %d; want %d (%s)", p.name, short(v.text), got, p.fails, v.name)
				}
			}
		})
	}
}

func TestEveryTextErrorNamesTypeValueAndForm(t *testing.T) {
	for _, p := range textPaths() {
		t.Run(p.name, func(t *testing.T) {
			for _, v := range verdicts() {
				if v.err == nil || v.text == "" && p.emptyIsAbsent {
					continue
				}
				_, err := p.read(v.text)
				var ve *types.ValueError
				if !errors.As(err, &ve) {
					t.Errorf("%s(%s) error = %T %v; want a *ValueError", p.name, short(v.text), err, err)
					continue
				}
				shown := p.shown(v.text)
				rest := ""
				if n := len(shown); n > 64 {
					shown, rest = shown[:64], "… ("+strconv.Itoa(n)+" bytes)"
				}
				// JSON has its own quotes.
				if p.want != wantJSON || strings.ContainsFunc(shown, func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }) {
					shown = strconv.Quote(shown)
				}
				shown += rest
				if ve.Op != p.op || ve.Value != shown || ve.Want != p.want || ve.Err != v.err {
					t.Errorf("%s(%s) error = %+v; want Op %q, Value %s, Want %q, Err %q",
						p.name, short(v.text), *ve, p.op, shown, p.want, v.err)
				}
				into := "Snowflake"
				if strings.Contains(p.name, "NullSnowflake") {
					into = "NullSnowflake"
				}
				if ve.Type != into {
					t.Errorf("%s(%s) error has Type %q; want %q", p.name, short(v.text), ve.Type, into)
				}
				want := "types: cannot " + p.op + " " + shown + " into " + ve.Type + ": want " + p.want
				if ve.Error() != want {
					t.Errorf("%s(%s) message = %s; want %s", p.name, short(v.text), ve.Error(), want)
				}
				if n := len(err.Error()); n > 512 {
					t.Errorf("%s(%s) message has %d bytes; want at most 512", p.name, short(v.text), n)
				}
			}
		})
	}
}

// The oracle is math/big, which shares no code with strconv or this package.
func TestParseAgreesWithBigIntAroundEveryPowerOfTwoAndTen(t *testing.T) {
	limit := new(big.Int).SetUint64(1<<63 - 1)
	for _, base := range []int64{2, 10} {
		power := big.NewInt(1)
		for range 130 {
			for d := int64(-11); d <= 11; d++ {
				n := new(big.Int).Add(power, big.NewInt(d))
				got, err := types.Parse(n.String())
				if n.Sign() >= 0 && n.Cmp(limit) <= 0 {
					if err != nil || got.Int64() != n.Int64() {
						t.Fatalf("Parse(%q) = %d, %v; want %v, nil", n, got, err, n)
					}
				} else if err == nil || got != 0 {
					t.Fatalf("Parse(%q) = %d, %v; want 0 and an error", n, got, err)
				}
			}
			power.Mul(power, big.NewInt(base))
		}
	}
}

func TestMustParseReturnsWhatParseReturns(t *testing.T) {
	if got := types.MustParse("9223372036854775807"); got != maxInt64 {
		t.Errorf("MustParse(MaxInt64) = %d; want %d", got, maxInt64)
	}
}

func TestMustParsePanicsWithTheErrorOfParse(t *testing.T) {
	defer func() {
		err, ok := recover().(error)
		if !ok || !errors.Is(err, types.ErrRange) {
			t.Errorf("MustParse(2^63) panicked with %v; want an error that matches ErrRange", err)
		}
	}()
	got := types.MustParse("9223372036854775808")
	t.Errorf("MustParse(2^63) = %d; want a panic", got)
}

func TestReadingAndWritingDecimalsAllocatesNothing(t *testing.T) {
	text, quoted := []byte("9223372036854775807"), []byte(`"9223372036854775807"`)
	buf := make([]byte, 0, 32)
	var id types.Snowflake
	var src any = text
	for name, f := range map[string]func() error{
		"Parse":          func() (err error) { id, err = types.Parse("9223372036854775807"); return },
		"UnmarshalText":  func() error { return id.UnmarshalText(text) },
		"UnmarshalJSON":  func() error { return id.UnmarshalJSON(quoted) },
		"UnmarshalParam": func() error { return id.UnmarshalParam("9223372036854775807") },
		"Scan([]byte)":   func() error { return id.Scan(src) },
		"AppendText":     func() (err error) { _, err = id.AppendText(buf); return },
		"AppendBinary":   func() (err error) { _, err = id.AppendBinary(buf); return },
		"AppendBase62":   func() error { id.AppendBase62(buf); return nil },
		"AppendBase58":   func() error { id.AppendBase58(buf); return nil },
		"AppendBase32":   func() error { id.AppendBase32(buf); return nil },
	} {
		var err error
		if got := testing.AllocsPerRun(1000, func() { err = f() }); got != 0 || err != nil {
			t.Errorf("%s: %v allocations, error %v; want 0, nil", name, got, err)
		}
	}
}
