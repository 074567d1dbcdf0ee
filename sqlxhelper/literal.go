package sqlxhelper

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

// Which values go to PostgreSQL in a form of our own is a list of what may, not of
// what may not: a value may if every driver, in every mode it has, stores the
// same for it in VALUES. All others go by VALUES, so that what they become, or
// with which error they are refused, is the same for few rows and for many.
// Hence also the range of a number, the NUL in a string and the year of a time
// are looked at here, though the database would refuse them too: some drivers
// refuse them first.

// A form is how a value is written.
type form uint8

const (
	// inArray is the text of an array: {1,NULL,"a \"quoted\" element"}.
	inArray form = iota
	// inCopy is the text format of COPY: fields between tabs, \N for NULL.
	inCopy
	// inBinary is the binary format of COPY: each field with its length before
	// it, in what pgx and the server's receive functions call the binary format
	// of the type. The server reads it in four fifths of the time.
	inBinary
)

// A kind is what a field holds.
type kind uint8

const (
	intKind kind = iota + 1
	uintKind
	float32Kind
	float64Kind
	boolKind
	stringKind
	namedStringKind // of a type that is not string itself
	bytesKind
	timeKind
	// valueKind is a driver.Valuer or an any: each row decides.
	valueKind
)

// kindOf returns what the field of a column holds, behind a pointer or not, or
// zero if it is not on the list.
func kindOf(c *column) (k kind, pointer bool) {
	t := c.typ
	switch {
	case t == snowflakeType:
		return intKind, false
	case c.native:
		return 0, false
	case c.valuer:
		return valueKind, false
	case t.Kind() == reflect.Interface:
		// With a method it may be that of a Valuer, or of what pgx looks for.
		if t.NumMethod() == 0 {
			return valueKind, false
		}
		return 0, false
	case t.Kind() == reflect.Pointer:
		if t = t.Elem(); isValuer(t) {
			return 0, false
		}
		pointer = true
	}
	if t == timeType {
		return timeKind, pointer
	}
	if peculiar(t) || peculiar(reflect.PointerTo(t)) {
		return 0, false
	}
	switch t.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		k = intKind
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		k = uintKind
	case reflect.Float32:
		k = float32Kind
	case reflect.Float64:
		k = float64Kind
	case reflect.Bool:
		k = boolKind
	case reflect.String:
		k = namedStringKind
		if t == reflect.TypeFor[string]() {
			k = stringKind
		}
	case reflect.Slice:
		// Others may be json.RawMessage, which is text to pgx in some modes.
		if t == reflect.TypeFor[[]byte]() {
			k = bytesKind
		}
	}
	return k, pointer
}

// peculiar reports whether a type has a method by which pgx, in some mode or
// version, asks a value what it is, in place of looking at its kind: String, or
// one of the interfaces in pgtype such as Int64Valuer.
func peculiar(t reflect.Type) bool {
	for i := range t.NumMethod() {
		if name := t.Method(i).Name; name == "String" || strings.HasSuffix(name, "Value") {
			return true
		}
	}
	return false
}

// takes reports whether a class takes a kind in at least some rows.
func (c class) takes(k kind) bool {
	switch k {
	case intKind, uintKind:
		// Not text and not floats: lib/pq sends any text, pgx wants numbers there.
		return c == int2Class || c == int4Class || c == int8Class || c == numericClass
	case float32Kind:
		// As a float8 it is 0.1 in the modes of pgx that send text, and
		// 0.10000000149011612 in the others.
		return c == float4Class
	case float64Kind:
		return c == float4Class || c == float8Class || c == numericClass
	case boolKind:
		return c == boolClass
	case stringKind:
		// In a bytea, pgx has the server read escapes and lib/pq does not.
		return c != byteaClass
	case namedStringKind:
		// Elsewhere some versions of pgx have ideas: json makes a string of it.
		return c == textClass
	case bytesKind:
		// In json and text, two modes of pgx write \x…, the others the bytes.
		return c == byteaClass
	case timeKind:
		return c == timestamptzClass || c == timestampClass || c == dateClass
	case valueKind:
		return true
	}
	return false
}

// binary reports whether a class has a binary form for a kind, in at least some
// rows. Text that the server would have to read has none.
func (c class) binary(k kind) bool {
	switch k {
	case stringKind, namedStringKind:
		return c == textClass || c == jsonClass || c == jsonbClass
	case float64Kind:
		return c != numericClass
	}
	return c != otherClass
}

// An encoder is a column on its way to a column of the database.
type encoder struct {
	*column
	kind    kind
	pointer bool
	class   class
}

// append appends the value that a row has for the column. If it is to go by
// VALUES, ok is false, and b may have grown.
func (e *encoder) append(b []byte, row reflect.Value, in form) (_ []byte, ok bool) {
	if e.kind == valueKind {
		v, err := e.argument(row)
		if err != nil {
			return b, false // VALUES has the same error, and says whose it is
		}
		return appendAny(b, e.class, v, in)
	}
	var v reflect.Value
	if len(e.index) == 1 {
		v = row.Field(e.index[0])
	} else {
		v = row.FieldByIndex(e.index)
	}
	if e.pointer {
		if v.IsNil() {
			return appendNull(b, in), true
		}
		v = v.Elem()
	}
	switch e.kind {
	case intKind:
		return appendInt(b, e.class, v.Int(), in)
	case uintKind:
		n := v.Uint()
		if n > math.MaxInt64 {
			return b, false
		}
		return appendInt(b, e.class, int64(n), in)
	case float32Kind:
		return appendFloat(b, e.class, v.Float(), in)
	case float64Kind:
		return appendFloat(b, e.class, v.Float(), in)
	case boolKind:
		return appendBool(b, v.Bool(), in), true
	case stringKind, namedStringKind:
		return appendString(b, e.class, v.String(), in)
	case bytesKind:
		return appendBytes(b, v.Bytes(), in), true
	case timeKind:
		// By way of the pointer, which needs no memory, as the struct would.
		return appendTime(b, e.class, *v.Addr().Interface().(*time.Time), in)
	}
	return b, false
}

// appendAny appends a value that says itself what it is: one of the types of
// driver.Value, or an int. Others are not on the list.
func appendAny(b []byte, c class, v driver.Value, in form) (_ []byte, ok bool) {
	switch v := v.(type) {
	case nil:
		return appendNull(b, in), true
	case int64:
		if c.takes(intKind) {
			return appendInt(b, c, v, in)
		}
	case int:
		if c.takes(intKind) {
			return appendInt(b, c, int64(v), in)
		}
	case float64:
		if c.takes(float64Kind) {
			return appendFloat(b, c, v, in)
		}
	case bool:
		if c.takes(boolKind) {
			return appendBool(b, v, in), true
		}
	case string:
		if c.takes(stringKind) {
			return appendString(b, c, v, in)
		}
	case []byte:
		if c.takes(bytesKind) || v == nil {
			return appendBytes(b, v, in), true
		}
	case time.Time:
		if c.takes(timeKind) {
			return appendTime(b, c, v, in)
		}
	}
	return b, false
}

func appendNull(b []byte, in form) []byte {
	switch in {
	case inArray:
		return append(b, "NULL"...)
	case inCopy:
		return append(b, `\N`...)
	default:
		return binary.BigEndian.AppendUint32(b, math.MaxUint32)
	}
}

// appendInt appends n if it fits into the column.
func appendInt(b []byte, c class, n int64, in form) (_ []byte, ok bool) {
	switch c {
	case int2Class:
		ok = int64(int16(n)) == n
	case int4Class:
		ok = int64(int32(n)) == n
	default:
		ok = true
	}
	if in != inBinary {
		return strconv.AppendInt(b, n, 10), ok
	}
	switch c {
	case int2Class:
		return append16(b, uint16(n)), ok
	case int4Class:
		return append32(b, uint32(n)), ok
	case int8Class:
		return append64(b, uint64(n)), ok
	default:
		return appendNumeric(b, n), ok
	}
}

// appendNumeric appends the binary form of a numeric: how many digits to the
// base of 10,000, the exponent of the first one, the sign, how many decimals
// behind the point, and the digits.
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

// append16, append32 and append64 append a field of the binary form.
func append16(b []byte, n uint16) []byte {
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint32(b, 2), n)
}

func append32(b []byte, n uint32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, 4), n)
}

func append64(b []byte, n uint64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(b, 8), n)
}

// appendFloat appends the same number, as text the shortest from which it is
// read. A float4 has to be one already: a driver rounds to it from the number,
// and the server from the text, which may be a half that the number is not.
func appendFloat(b []byte, c class, x float64, in form) (_ []byte, ok bool) {
	finite := !math.IsNaN(x) && !math.IsInf(x, 0)
	if in == inBinary {
		switch c {
		case float4Class:
			return append32(b, math.Float32bits(float32(x))), !finite || float64(float32(x)) == x
		case float8Class:
			return append64(b, math.Float64bits(x)), true
		}
		return b, false
	}
	switch c {
	case float4Class:
		return strconv.AppendFloat(b, x, 'g', -1, 32), !finite || float64(float32(x)) == x
	case numericClass:
		// Before PostgreSQL 14 it has no infinity. It keeps the zeros that an
		// exponent would stand for.
		return strconv.AppendFloat(b, x, 'f', -1, 64), finite
	default:
		return strconv.AppendFloat(b, x, 'g', -1, 64), true
	}
}

func appendBool(b []byte, v bool, in form) []byte {
	if in == inBinary {
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

// appendString appends s, unless PostgreSQL would refuse it: it takes no NUL,
// and only UTF-8 here.
//
// In an array every string is in quotes, and a backslash makes any byte after it
// a byte like others, the quote and the backslash too. Nothing else means
// anything between quotes: not braces, commas, spaces, nor NULL. COPY gives a
// meaning to backslash, tab, newline and carriage return, and to \. at the start
// of a line, which a string cannot form because its backslash is doubled.
func appendString(b []byte, c class, s string, in form) (_ []byte, ok bool) {
	if in == inBinary {
		if !c.binary(stringKind) {
			return b, false
		}
		n := len(s)
		if c == jsonbClass {
			b = append(binary.BigEndian.AppendUint32(b, uint32(n+1)), 1) // its version
		} else {
			b = binary.BigEndian.AppendUint32(b, uint32(n))
		}
		return append(b, s...), strings.IndexByte(s, 0) < 0 && utf8.ValidString(s)
	}
	if in == inArray {
		b = append(b, '"')
	}
	start, ascii := 0, true
	for i := range len(s) {
		c := s[i]
		if c >= utf8.RuneSelf {
			ascii = false
			continue
		}
		if c > '\\' || c > '"' && c < '\\' {
			continue
		}
		switch {
		case c == 0:
			return b, false
		case c == '\\', in == inArray && c == '"':
			b = append(append(b, s[start:i]...), '\\', c)
		case in == inCopy && c == '\t':
			b = append(append(b, s[start:i]...), `\t`...)
		case in == inCopy && c == '\n':
			b = append(append(b, s[start:i]...), `\n`...)
		case in == inCopy && c == '\r':
			b = append(append(b, s[start:i]...), `\r`...)
		default:
			continue
		}
		start = i + 1
	}
	b = append(b, s[start:]...)
	if in == inArray {
		b = append(b, '"')
	}
	return b, ascii || utf8.ValidString(s)
}

// appendBytes appends a bytea, as text \x and hexadecimal digits; its backslash
// is doubled in both forms. A nil slice is NULL to every driver.
func appendBytes(b []byte, v []byte, in form) []byte {
	if v == nil {
		return appendNull(b, in)
	}
	if in == inBinary {
		return append(binary.BigEndian.AppendUint32(b, uint32(len(v))), v...)
	}
	if in == inArray {
		b = append(b, '"')
	}
	b = hex.AppendEncode(append(b, `\\x`...), v)
	if in == inArray {
		b = append(b, '"')
	}
	return b
}

// appendTime appends a time with microseconds, which is what the database has.
// Columns without a time zone get the clock of the time's own zone from drivers
// that ask for the column's type and that of UTC from those that do not, so only
// times for which both are the same are on the list. So are the years from 1 to
// 9999: outside of them the forms of the drivers differ, or fail.
//
// A lib/pq that was told to take some time of that range for infinity
// (EnableInfinityTs) is not asked.
func appendTime(b []byte, c class, t time.Time, in form) (_ []byte, ok bool) {
	if c != timestamptzClass {
		if _, offset := t.Zone(); offset != 0 {
			return b, false
		}
	}
	t = t.UTC()
	year, month, day := t.Date()
	if year < 1 || year > 9999 {
		return b, false
	}
	if in == inBinary {
		// Seconds since 2000, and a nanosecond is never negative.
		seconds := t.Unix() - 946684800
		if c == dateClass {
			days := seconds / 86400
			if seconds%86400 < 0 {
				days--
			}
			return append32(b, uint32(days)), true
		}
		return append64(b, uint64(seconds*1_000_000+int64(t.Nanosecond()/1000))), true
	}
	if in == inArray {
		b = append(b, '"')
	}
	b = appendDigits(b, year, 4)
	b = appendDigits(append(b, '-'), int(month), 2)
	b = appendDigits(append(b, '-'), day, 2)
	if c != dateClass {
		hour, minute, second := t.Clock()
		b = appendDigits(append(b, ' '), hour, 2)
		b = appendDigits(append(b, ':'), minute, 2)
		b = appendDigits(append(b, ':'), second, 2)
		if micros := t.Nanosecond() / 1000; micros > 0 {
			b = appendDigits(append(b, '.'), micros, 6)
		}
	}
	if c == timestamptzClass {
		b = append(b, "+00"...)
	}
	if in == inArray {
		b = append(b, '"')
	}
	return b, true
}

// cut leaves of a time what PostgreSQL keeps, for VALUES on that database. pgx
// cuts a time to microseconds and lib/pq has the server round it, and it should
// not depend on the driver, nor on the number of rows, to which of them a time
// goes.
func cut(value any) any {
	switch t := value.(type) {
	case time.Time:
		return t.Truncate(time.Microsecond)
	case *time.Time:
		if t != nil {
			return t.Truncate(time.Microsecond)
		}
	}
	return value
}

// appendDigits appends n with leading zeros.
func appendDigits(b []byte, n, width int) []byte {
	b = append(b, "000000"[:width]...)
	for i := len(b) - 1; n > 0; i-- {
		b[i] = byte('0' + n%10)
		n /= 10
	}
	return b
}
