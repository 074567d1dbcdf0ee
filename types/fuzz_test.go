package types_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/snowkey/snowkey/types"
)

// The seeds of each target are in testdata/fuzz, and run with every go test.
//
//	go test ./types -run '^$' -fuzz '^FuzzParse$' -fuzztime 60s

// canonical reports whether text is the canonical decimal of 0..2^63-1. It asks
// math/big, and uses neither strconv nor this package.
func canonical(text string) (types.Snowflake, bool) {
	n, ok := new(big.Int).SetString(text, 10)
	if !ok || n.String() != text || n.Sign() < 0 || n.BitLen() > 63 {
		return 0, false
	}
	return types.Snowflake(n.Int64()), true
}

// checkError fails the test unless err is nil, or a short *ValueError that matches
// one sentinel.
func checkError(t *testing.T, call string, err error) {
	t.Helper()
	if err == nil {
		return
	}
	var ve *types.ValueError
	if !errors.As(err, &ve) || ve.Err == nil || !errors.Is(err, ve.Err) ||
		ve.Err != types.ErrSyntax && ve.Err != types.ErrRange && ve.Err != types.ErrNull {
		t.Errorf("%s error = %T %v; want a *ValueError that matches a sentinel", call, err, err)
	}
	if len(err.Error()) > 512 || !strings.HasPrefix(err.Error(), "types: ") {
		t.Errorf("%s error = %s; want at most 512 bytes that begin with \"types: \"", call, err)
	}
}

// Law: text is accepted if and only if FormatInt writes it for an ID in range. All
// readers agree.
func FuzzParse(f *testing.F) {
	paths := textPaths()
	f.Fuzz(func(t *testing.T, text string) {
		want, ok := canonical(text)
		got, err := types.Parse(text)
		checkError(t, "Parse", err)
		if (err == nil) != ok || got != want {
			t.Fatalf("Parse(%q) = %d, %v; want %d, accepted: %v", text, got, err, want, ok)
		}
		// ErrRange is for whole numbers outside the range in their one spelling.
		n, number := new(big.Int).SetString(text, 10)
		if outside := number && n.String() == text && !ok; errors.Is(err, types.ErrRange) != outside {
			t.Fatalf("Parse(%q) = %v; matches ErrRange = %v; want %v", text, err, !outside, outside)
		}
		if err == nil && (strconv.FormatInt(got.Int64(), 10) != text || got.String() != text || got < 0) {
			t.Fatalf("Parse(%q) = %d, whose text is %q; want the input", text, got, got.String())
		}
		for _, p := range paths {
			if text == "" && p.emptyIsAbsent {
				continue
			}
			got, err := p.read(text)
			if p.name != "json.Unmarshal" && p.name != "json.Unmarshal into NullSnowflake" {
				checkError(t, p.name, err)
			}
			if ok && (got != want || err != nil) || !ok && (got != p.fails || err == nil) {
				t.Fatalf("%s(%q) = %d, %v; want %d, accepted: %v", p.name, text, got, err, want, ok)
			}
		}
	})
}

// canonicalJSON is the same oracle for one JSON value: null, or the canonical
// decimal with or without quotes.
func canonicalJSON(data string) (id types.Snowflake, null, ok bool) {
	if data == "null" {
		return 0, true, true
	}
	if inner, found := strings.CutPrefix(data, `"`); found {
		data, found = strings.CutSuffix(inner, `"`)
		if !found {
			return 0, false, false
		}
	}
	id, ok = canonical(data)
	return id, false, ok
}

// Laws: UnmarshalJSON agrees with the oracle. json.Unmarshal agrees with it on the
// value without surrounding white space. An error writes nothing. An accepted value
// is written back as a string that reads the same. A number is accepted only if
// int64 accepts it as the same number.
func FuzzUnmarshalJSON(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		input := string(data)
		wasNull := types.NullSnowflake{Snowflake: before, Valid: true}
		check := func(call string, unmarshal func([]byte, json.Unmarshaler) error, value string) {
			want, null, ok := canonicalJSON(value)
			id, n := before, wasNull
			errID, errNull := unmarshal(data, &id), unmarshal(data, &n)
			empty := value == `""` // an absent NullSnowflake, and no Snowflake
			if (errID == nil) != ok || (errNull == nil) != (ok || empty) {
				t.Fatalf("%s(%q) = %v and %v; want accepted: %v", call, input, errID, errNull, ok)
			}
			wantID, wantNull := before, wasNull
			switch {
			case empty, ok && null:
				wantNull = types.NullSnowflake{}
			case ok:
				wantID, wantNull = want, types.NullSnowflake{Snowflake: want, Valid: true}
			}
			if id != wantID || n != wantNull {
				t.Fatalf("%s(%q) left %d and %+v; want %d and %+v", call, input, id, n, wantID, wantNull)
			}
			if string(data) != input {
				t.Fatalf("%s(%q) changed its input to %q", call, input, data)
			}
		}
		check("UnmarshalJSON", func(data []byte, v json.Unmarshaler) error {
			err := v.UnmarshalJSON(data)
			checkError(t, "UnmarshalJSON", err)
			return err
		}, input)
		check("json.Unmarshal", func(data []byte, v json.Unmarshaler) error {
			return json.Unmarshal(data, v)
		}, strings.Trim(input, " \t\r\n"))

		var id types.Snowflake
		if json.Unmarshal(data, &id) != nil {
			return
		}
		out, err := json.Marshal(id)
		back := before
		if err != nil || string(out) != `"`+id.String()+`"` || json.Unmarshal(out, &back) != nil || back != id {
			t.Fatalf("Marshal(%d) = %s, %v, read as %d; want the quoted decimal, read as the ID", id, out, err, back)
		}
		if value := strings.Trim(input, " \t\r\n"); value[0] != '"' && value != "null" {
			var n int64
			if err := json.Unmarshal(data, &n); err != nil || n != id.Int64() {
				t.Fatalf("json.Unmarshal(%q) into int64 = %d, %v; want %d, as for Snowflake", input, n, err, id)
			}
		}
	})
}

// scanSource makes one of the values that a driver may hand over.
func scanSource(kind byte, n int64, x float64, text string) any {
	switch kind % 14 {
	case 0:
		return n
	case 1:
		return uint64(n)
	case 2:
		return []byte(text)
	case 3:
		return text
	case 4:
		return x
	case 5:
		return n&1 == 0
	case 6:
		return time.Unix(n, 0)
	case 7:
		return nil
	case 8:
		return []byte(nil)
	case 9:
		return int(n)
	case 10:
		return int32(n)
	case 11:
		return uint32(n)
	case 12:
		return float32(x)
	default:
		return json.Number(text)
	}
}

// Laws: int64, uint64 and text are accepted if and only if they are an ID. NULL
// zeroes a Snowflake with ErrNull, and empties a NullSnowflake. All else is refused
// and stores nothing. The bytes are not kept.
func FuzzScan(f *testing.F) {
	f.Fuzz(func(t *testing.T, kind byte, n int64, x float64, text string) {
		src := scanSource(kind, n, x, text)
		var (
			want     types.Snowflake
			ok, null bool
		)
		switch v := src.(type) {
		case int64:
			want, ok = types.Snowflake(v), v >= 0
		case uint64:
			want, ok = types.Snowflake(v), v < 1<<63
		case []byte:
			want, ok = canonical(string(v))
			null = v == nil
		case string:
			want, ok = canonical(v)
		case nil:
			null = true
		}

		id, was := before, types.NullSnowflake{Snowflake: before, Valid: true}
		nullable := was
		errID, errNull := id.Scan(src), nullable.Scan(src)
		checkError(t, "Snowflake.Scan", errID)
		checkError(t, "NullSnowflake.Scan", errNull)
		if b, isBytes := src.([]byte); isBytes {
			if string(b) != text && b != nil {
				t.Fatalf("Scan(%q) changed its input to %q", text, b)
			}
			clear(b)
		}
		wantID, wantNull := before, was
		switch {
		case null:
			wantID, wantNull = 0, types.NullSnowflake{}
		case ok:
			wantID, wantNull = want, types.NullSnowflake{Snowflake: want, Valid: true}
		}
		if id != wantID || (errID == nil) != ok || errors.Is(errID, types.ErrNull) != null {
			t.Fatalf("Snowflake.Scan(%T %v) = %d, %v; want %d, accepted: %v, NULL: %v", src, src, id, errID, wantID, ok, null)
		}
		if nullable != wantNull || (errNull == nil) != (ok || null) {
			t.Fatalf("NullSnowflake.Scan(%T %v) = %+v, %v; want %+v, accepted: %v", src, src, nullable, errNull, wantNull, ok || null)
		}
		if ok {
			if v, err := id.Value(); v != want.Int64() || err != nil {
				t.Fatalf("Snowflake(%d).Value() = %v, %v; want %d, nil", id, v, err, want)
			}
		}
	})
}

// Laws: an integer of any type and a string, or a json.Number, are accepted if and only if they
// are an ID. All else is refused and stores nothing. An ID is
// written as its quoted text.
func FuzzUnmarshalGraphQL(f *testing.F) {
	f.Fuzz(func(t *testing.T, kind byte, n int64, x float64, text string) {
		input := scanSource(kind, n, x, text)
		var want types.Snowflake
		var ok bool
		switch v := input.(type) {
		case string:
			want, ok = canonical(v)
		case int64, uint64, int, int32, uint32, json.Number:
			want, ok = canonical(fmt.Sprint(v))
		}
		id, nullable := before, types.NullSnowflake{Snowflake: before, Valid: true}
		errID, errNull := id.UnmarshalGQLContext(t.Context(), input), nullable.UnmarshalGQLContext(t.Context(), input)
		checkError(t, "Snowflake.UnmarshalGQLContext", errID)
		checkError(t, "NullSnowflake.UnmarshalGQLContext", errNull)
		wantID, wantNull := before, types.NullSnowflake{Snowflake: before, Valid: true}
		switch {
		case ok:
			wantID, wantNull.Snowflake = want, want
		case input == nil:
			wantNull = types.NullSnowflake{}
		}
		if id != wantID || (errID == nil) != ok {
			t.Fatalf("Snowflake.UnmarshalGQLContext(%T %v) = %d, %v; want %d, accepted: %v", input, input, id, errID, wantID, ok)
		}
		if nullable != wantNull || (errNull == nil) != (ok || input == nil) {
			t.Fatalf("NullSnowflake.UnmarshalGQLContext(%T %v) = %+v, %v; want %+v, accepted: %v", input, input, nullable, errNull, wantNull, ok)
		}
		if out, err := written(id); out != `"`+id.String()+`"` || err != nil {
			t.Fatalf("Snowflake(%d).MarshalGQLContext writes %s, %v; want its text as a string", id, out, err)
		}
	})
}

// Laws: every ID is read back from its text. The texts sort as the IDs. The text of
// a negative ID is refused. An accepted text is the only text of its ID, and
// math/big agrees.
func FuzzShortForms(f *testing.F) {
	f.Fuzz(func(t *testing.T, x, y int64, text string) {
		for _, s := range shortForms() {
			a, b := types.Snowflake(x), types.Snowflake(y)
			for _, id := range []types.Snowflake{a, b} {
				got, err := s.parse(s.text(id))
				checkError(t, "Parse"+s.name, err)
				if id >= 0 && (got != id || err != nil) || id < 0 && (got != 0 || !errors.Is(err, types.ErrRange)) {
					t.Fatalf("Parse%s(Snowflake(%d).%s() = %q) = %d, %v; want the ID if not negative, else 0, ErrRange", s.name, id, s.name, s.text(id), got, err)
				}
				if len(s.text(id)) != s.width {
					t.Fatalf("Snowflake(%d).%s() = %q; want %d characters", id, s.name, s.text(id), s.width)
				}
			}
			if a >= 0 && b >= 0 && cmp.Compare(s.text(a), s.text(b)) != a.Compare(b) {
				t.Fatalf("%s of %d and %d = %q and %q; want the order of the IDs", s.name, a, b, s.text(a), s.text(b))
			}

			got, err := s.parse(text)
			checkError(t, "Parse"+s.name, err)
			want, ok := s.value(text)
			if (err == nil) != ok || got != want || ok && s.text(got) != text {
				t.Fatalf("Parse%s(%q) = %d, %v; want %d, accepted: %v", s.name, text, got, err, want, ok)
			}
		}
	})
}

// value reads text as a number in the form's alphabet with math/big.
func (f shortForm) value(text string) (types.Snowflake, bool) {
	if len(text) != f.width {
		return 0, false
	}
	n, base := new(big.Int), big.NewInt(int64(len(f.digits)))
	for i := range len(text) {
		d := strings.IndexByte(f.digits, text[i])
		if d < 0 {
			return 0, false
		}
		n.Add(n.Mul(n, base), big.NewInt(int64(d)))
	}
	if n.BitLen() > 63 {
		return 0, false
	}
	return types.Snowflake(n.Int64()), true
}

// Law: 8 bytes whose big-endian number is below 2^63 are accepted and written back
// the same. All else is refused and stores nothing.
func FuzzUnmarshalBinary(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		n := new(big.Int).SetBytes(data)
		ok := len(data) == 8 && n.BitLen() <= 63
		id := before
		err := id.UnmarshalBinary(data)
		checkError(t, "UnmarshalBinary", err)
		want := before
		if ok {
			want = types.Snowflake(n.Int64())
		}
		if (err == nil) != ok || id != want {
			t.Fatalf("UnmarshalBinary(%x) = %d, %v; want %d, accepted: %v", data, id, err, want, ok)
		}
		if ok {
			if back, err := id.MarshalBinary(); !bytes.Equal(back, data) || err != nil {
				t.Fatalf("Snowflake(%d).MarshalBinary() = %x, %v; want %x, nil", id, back, err, data)
			}
		}
	})
}

// Law: a typed key reads and writes what the untyped one does, and refuses the same with the
// same error, which names the typed key.
func FuzzTypedKeys(f *testing.F) {
	f.Fuzz(func(t *testing.T, kind byte, n int64, x float64, text string) {
		readAlike(t, scanSource(kind, n, x, text))
		writeAlike(t, types.Snowflake(n))
	})
}
