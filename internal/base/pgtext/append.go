package pgtext

import (
	"database/sql/driver"
	"encoding/binary"
	"encoding/hex"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// A Format selects the form in which a value is written.
type Format uint8

// The formats.
const (
	// Array is an element of the text of an array: {1,NULL,"a \"quoted\" element"}.
	Array Format = iota
	// Copy is a field in the text format of COPY, with \N for NULL.
	Copy
	// Binary is a field in the binary format of COPY: its length, and what the receive
	// function of the type reads. The server needs four fifths of the time that Copy takes.
	Binary
	// ArrayOfNanos is Array with nine decimals in the seconds of a time, for drivers that send
	// all of them and let the server round.
	ArrayOfNanos
)

// inArray reports whether f is the text of an array.
func (f Format) inArray() bool { return f == Array || f == ArrayOfNanos }

// AppendField appends v, whose kind is k, which t takes, or what it points to. If ok is false, b may
// have grown.
func (t Type) AppendField(b []byte, k Kind, v reflect.Value, f Format) (_ []byte, ok bool) {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return AppendNull(b, f), true
		}
		v = v.Elem()
	}
	switch k {
	case intKind:
		return appendInt(b, t, v.Int(), f)
	case uintKind:
		n := v.Uint()
		if n > math.MaxInt64 {
			return b, false
		}
		return appendInt(b, t, int64(n), f)
	case float32Kind, float64Kind:
		return appendFloat(b, t, v.Float(), f)
	case boolKind:
		return appendBool(b, v.Bool(), f), true
	case stringKind, namedStringKind:
		return appendString(b, t, v.String(), f)
	case bytesKind:
		return appendBytes(b, v.Bytes(), f), true
	case timeKind:
		at, _ := reflect.TypeAssert[time.Time](v) // without the allocation of Interface
		return appendTime(b, t, at, f)
	}
	return b, false
}

// AppendValue appends a value of one of the types of driver.Value, or an int. For other types, and
// for those that t does not take, ok is false, and b may have grown.
func (t Type) AppendValue(b []byte, value driver.Value, f Format) (_ []byte, ok bool) {
	if bytes, is := value.([]byte); value == nil || is && bytes == nil {
		return AppendNull(b, f), true
	}
	k := kindOfValue(value)
	if !t.Takes(k) {
		return b, false
	}
	return t.AppendField(b, k, reflect.ValueOf(value), f)
}

func kindOfValue(value driver.Value) Kind {
	switch value.(type) {
	case int64, int:
		return intKind
	case float64:
		return float64Kind
	case bool:
		return boolKind
	case string:
		return stringKind
	case []byte:
		return bytesKind
	case time.Time:
		return timeKind
	}
	return 0
}

// AppendNull appends NULL.
func AppendNull(b []byte, f Format) []byte {
	switch f {
	case Array, ArrayOfNanos:
		return append(b, "NULL"...)
	case Copy:
		return append(b, `\N`...)
	default:
		return binary.BigEndian.AppendUint32(b, math.MaxUint32)
	}
}

// appendInt appends n if it fits into the column.
func appendInt(b []byte, t Type, n int64, f Format) (_ []byte, ok bool) {
	switch t {
	case Int2:
		ok = int64(int16(n)) == n
	case Int4:
		ok = int64(int32(n)) == n
	default:
		ok = true
	}
	if f != Binary {
		return strconv.AppendInt(b, n, 10), ok
	}
	switch t {
	case Int2:
		return append16(b, uint16(n)), ok
	case Int4:
		return append32(b, uint32(n)), ok
	case Int8:
		return append64(b, uint64(n)), ok
	default:
		return appendNumeric(b, n), ok
	}
}

// appendNumeric appends the binary form of a numeric: the number of digits in base 10,000, the
// exponent of the first one, the sign, the number of decimals, and the digits.
func appendNumeric(b []byte, n int64) []byte {
	sign, rest := uint16(0), uint64(n)
	if n < 0 {
		sign, rest = 0x4000, -rest
	}
	var digits [5]uint16 // of 2^63
	first := len(digits)
	for ; rest > 0; rest /= 10000 {
		first--
		digits[first] = uint16(rest % 10000)
	}
	count := len(digits) - first
	b = binary.BigEndian.AppendUint32(b, uint32(8+2*count))
	b = binary.BigEndian.AppendUint16(b, uint16(count))
	b = binary.BigEndian.AppendUint16(b, uint16(max(count-1, 0)))
	b = binary.BigEndian.AppendUint16(b, sign)
	b = binary.BigEndian.AppendUint16(b, 0)
	for _, d := range digits[first:] {
		b = binary.BigEndian.AppendUint16(b, d)
	}
	return b
}

// append16, append32 and append64 append a binary field with its length.
func append16(b []byte, n uint16) []byte {
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint32(b, 2), n)
}

func append32(b []byte, n uint32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, 4), n)
}

func append64(b []byte, n uint64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(b, 8), n)
}

// appendFloat appends x without rounding it; as text it is the shortest form that is read back as
// x. A float4 column takes only numbers that are a float32, because a driver would round the
// number and the server its text, with results that may differ.
func appendFloat(b []byte, t Type, x float64, f Format) (_ []byte, ok bool) {
	finite := !math.IsNaN(x) && !math.IsInf(x, 0)
	if f == Binary {
		switch t {
		case Float4:
			return append32(b, math.Float32bits(float32(x))), !finite || float64(float32(x)) == x
		case Float8:
			return append64(b, math.Float64bits(x)), true
		}
		return b, false
	}
	switch t {
	case Float4:
		return strconv.AppendFloat(b, x, 'g', -1, 32), !finite || float64(float32(x)) == x
	case Numeric:
		// Before PostgreSQL 14, numeric has no infinity. It is written without an exponent,
		// because numeric would keep the zeros of one.
		return strconv.AppendFloat(b, x, 'f', -1, 64), finite
	default:
		return strconv.AppendFloat(b, x, 'g', -1, 64), true
	}
}

func appendBool(b []byte, v bool, f Format) []byte {
	if f == Binary {
		b = binary.BigEndian.AppendUint32(b, 1)
		if v {
			return append(b, 1)
		}
		return append(b, 0)
	}
	if v {
		return append(b, 't')
	}
	return append(b, 'f')
}

// appendString appends s, unless it has a NUL or is not UTF-8, which PostgreSQL would refuse.
func appendString(b []byte, t Type, s string, f Format) (_ []byte, ok bool) {
	switch f {
	case Array, ArrayOfNanos:
		// Within quotes only the quote and the backslash are special, and not braces,
		// commas, spaces or NULL.
		b, ok = appendEscaped(append(b, '"'), s, &arrayEscapes)
		return append(b, '"'), ok
	case Copy:
		// In COPY a line that begins with \. is special too. No string can form one,
		// because its backslash is doubled.
		return appendEscaped(b, s, &copyEscapes)
	}
	if !t.Binary(stringKind) {
		return b, false
	}
	n := len(s)
	if t == JSONB {
		b = append(binary.BigEndian.AppendUint32(b, uint32(n+1)), 1) // its version
	} else {
		b = binary.BigEndian.AppendUint32(b, uint32(n))
	}
	return append(b, s...), strings.IndexByte(s, 0) < 0 && utf8.ValidString(s)
}

// escapes maps a byte to the one to write after a backslash, or to 0 if it needs no escape.
type escapes [utf8.RuneSelf]byte

var (
	arrayEscapes = escapes{0: '0', '"': '"', '\\': '\\'}
	copyEscapes  = escapes{0: '0', '\\': '\\', '\t': 't', '\n': 'n', '\r': 'r'}
)

// appendEscaped appends s with its escapes. ok is false if s has a NUL or is not UTF-8.
func appendEscaped(b []byte, s string, e *escapes) (_ []byte, ok bool) {
	start, ascii := 0, true
	for i := range len(s) {
		c := s[i]
		if c >= utf8.RuneSelf {
			ascii = false
			continue
		}
		if e[c] == 0 {
			continue
		}
		if c == 0 {
			return b, false
		}
		b = append(append(b, s[start:i]...), '\\', e[c])
		start = i + 1
	}
	return append(b, s[start:]...), ascii || utf8.ValidString(s)
}

// appendBytes appends a bytea, as text in the form \x and hexadecimal digits, whose backslash both
// text formats double. A nil slice is NULL, as for every driver.
func appendBytes(b []byte, v []byte, f Format) []byte {
	if v == nil {
		return AppendNull(b, f)
	}
	if f == Binary {
		return append(binary.BigEndian.AppendUint32(b, uint32(len(v))), v...)
	}
	if f.inArray() {
		b = append(b, '"')
	}
	b = hex.AppendEncode(append(b, `\\x`...), v)
	if f.inArray() {
		b = append(b, '"')
	}
	return b
}

// appendTime appends a time to the microsecond, as the database stores it, or with all its digits
// for ArrayOfNanos.
//
// For a column without a time zone it accepts only times in UTC, because drivers that ask for the
// type of the column send the local time of the value's zone, and other drivers the time in UTC.
// The year must be 1 to 9999; outside of that the forms of the drivers differ, or fail. lib/pq's
// setting EnableInfinityTs, which makes some times infinite, is ignored.
func appendTime(b []byte, t Type, at time.Time, f Format) (_ []byte, ok bool) {
	if t != TimestampTZ {
		if _, offset := at.Zone(); offset != 0 {
			return b, false
		}
	}
	at = at.UTC()
	year, month, day := at.Date()
	if year < 1 || year > 9999 {
		return b, false
	}
	if f == Binary {
		// Seconds since 2000; nanoseconds are never negative.
		seconds := at.Unix() - 946684800
		if t == Date {
			days := seconds / 86400
			if seconds%86400 < 0 {
				days--
			}
			return append32(b, uint32(days)), true
		}
		return append64(b, uint64(seconds*1_000_000+int64(at.Nanosecond()/1000))), true
	}
	if f.inArray() {
		b = append(b, '"')
	}
	b = appendDigits(b, year, 4)
	b = appendDigits(append(b, '-'), int(month), 2)
	b = appendDigits(append(b, '-'), day, 2)
	if t != Date {
		hour, minute, second := at.Clock()
		b = appendDigits(append(b, ' '), hour, 2)
		b = appendDigits(append(b, ':'), minute, 2)
		b = appendDigits(append(b, ':'), second, 2)
		if nanos := at.Nanosecond(); f == ArrayOfNanos {
			b = appendDigits(append(b, '.'), nanos, 9)
		} else if nanos >= 1000 {
			b = appendDigits(append(b, '.'), nanos/1000, 6)
		}
	}
	if t == TimestampTZ {
		b = append(b, "+00"...)
	}
	if f.inArray() {
		b = append(b, '"')
	}
	return b, true
}

// appendDigits appends n with leading zeros.
func appendDigits(b []byte, n, width int) []byte {
	b = append(b, "000000000"[:width]...)
	for i := len(b) - 1; n > 0; i-- {
		b[i] = byte('0' + n%10)
		n /= 10
	}
	return b
}
