package dialect

import (
	"cmp"
	"database/sql/driver"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// A Form converts a value as a column does when it stores it, so that a row can be found by the
// value that was inserted. The zero Form is for columns that compare values by the rules by
// which they store them.
//
// MySQL and MariaDB, and SQLite in one type, compare by other rules. For these a Form accepts
// only values for which the two are known to agree: a test stores values of every kind in each
// type, in each way in which a driver sends them, and compares the row that the Form finds with
// the one that the server reports as a duplicate.
type Form struct {
	// SQL is an expression for what the column stores of a value, "?", in the type and the
	// collation of the column. Empty means the value itself. It may truncate what an insert
	// would refuse, because it is used for values that were inserted.
	SQL string
	// Prefix is the condition that the column, "@", and the stored value, "?", agree in their
	// first "#" characters, for a unique key on that many. It is empty if rows cannot be found
	// in this way.
	Prefix string
	// Whole reports that the column is one of MySQL's integer types.
	Whole bool
	// NotNull reports that the column is NOT NULL. MySQL may store another value instead.
	NotNull bool

	proves bool
	takes  func(v driver.Value) (driver.Value, bool)
}

// FormOf returns the form of a column of type typ, as the catalog writes it. On MySQL a text
// column has a collation.
func FormOf(d Dialect, typ, collation string) Form {
	switch {
	case d == PostgreSQL && typ != "":
		return Form{SQL: "CAST(? AS " + typ + ")"}
	case d == MySQL:
		f := mysqlForm(typ, collation)
		f.proves = true
		return f
	case d == SQLite && isReal(typ):
		return Form{proves: true, takes: exactReal}
	default: // SQLite converts the value of a comparison by the column's rules
		return Form{}
	}
}

// isReal reports whether a column of SQLite stores integers as floats.
func isReal(typ string) bool {
	typ = strings.ToUpper(typ)
	has := func(part string) bool { return strings.Contains(typ, part) }
	return (has("REAL") || has("FLOA") || has("DOUB")) && !has("INT") && !has("CHAR") && !has("CLOB") && !has("TEXT") && !has("BLOB") //nolint:misspell // SQLite looks for DOUB
}

// exactReal accepts values that a float represents exactly, because SQLite compares all digits of
// an integer with the float that it has stored of it.
func exactReal(v driver.Value) (driver.Value, bool) {
	switch known := v.(type) {
	case int64:
		return v, -1<<53 <= known && known <= 1<<53
	case string:
		return v, len(known) <= 15 || !decimalText.MatchString(known)
	default:
		return v, true
	}
}

// Proves reports whether Value accepts only values whose stored form is known.
func (f *Form) Proves() bool { return f.proves }

// Value returns what to send in place of v, which was inserted. It returns false if the stored
// form of v is not known.
func (f *Form) Value(v any) (_ any, ok bool) {
	if !f.proves {
		return v, true
	}
	sent, err := driver.DefaultParameterConverter.ConvertValue(v)
	if n, unsigned := v.(uint64); unsigned && err != nil {
		sent, err = n, nil
	}
	switch known := sent.(type) {
	case nil:
		return nil, err == nil && !f.NotNull
	case bool:
		sent = int64(0)
		if known {
			sent = int64(1)
		}
	case []byte:
		if known == nil {
			return nil, !f.NotNull
		}
	}
	if err != nil || f.takes == nil {
		return nil, false
	}
	return f.takes(sent)
}

// Begins reports whether Prefix finds the stored row of v, which Value accepts. In some scripts
// the order of a letter depends on the next one, which the prefix may have cut off.
func (f *Form) Begins(v any) bool {
	s, ok := textOf(v)
	return f.Prefix != rangePrefix || ok && !strings.ContainsFunc(s, func(c rune) bool { return c > 'ɏ' && !unicode.Is(unicode.Han, c) })
}

var unsignedBits = map[string]uint{"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}

// mysqlForm returns the form of a column of MySQL or MariaDB. For a type that the test does not
// cover it accepts no value.
func mysqlForm(typ, collation string) Form {
	base, precision, scale := Parts(typ)
	base, _, _ = strings.Cut(base, " ")
	unsigned, parts := strings.Contains(typ, " unsigned"), strings.Contains(typ, ",")
	charset, _, _ := strings.Cut(collation, "_")
	length, texts := strconv.Itoa(precision), "CONVERT(? USING "+charset+")"
	collate := " COLLATE " + collation
	switch base {
	case "tinyint", "smallint", "mediumint", "int", "bigint":
		if unsigned {
			return Form{SQL: "CAST(? AS UNSIGNED)", Whole: true, takes: between(0, math.MaxUint64>>(64-unsignedBits[base]))}
		}
		most := uint64(math.MaxInt64) >> (64 - unsignedBits[base])
		return Form{SQL: "CAST(? AS SIGNED)", Whole: true, takes: between(-int64(most)-1, most)}
	case "year":
		return Form{SQL: "CAST(? AS SIGNED)", takes: between(1901, 2155)} // 21 is 2021, and "0" is 2000
	case "bit":
		return Form{SQL: "CAST(? AS UNSIGNED)", takes: bits(precision)}
	case "decimal":
		return Form{SQL: fmt.Sprintf("CAST(? AS DECIMAL(%d,%d))", precision, scale), takes: decimal(unsigned)}
	case "float", "double":
		if parts {
			break // FLOAT(7,3)
		}
		return Form{SQL: "(? + 0e0)", takes: float(base == "float", unsigned)}
	case "date": // a single cast would truncate the time before it rounds the seconds
		return Form{SQL: "CAST(CAST(CAST(? AS CHAR) AS DATETIME) AS DATE)", takes: instant(1000, 9999)}
	case "datetime", "timestamp":
		first, last := 1000, 9999
		if base == "timestamp" {
			first, last = 1971, 2037
		}
		return Form{SQL: fmt.Sprintf("CAST(CAST(? AS CHAR) AS DATETIME(%d))", precision), takes: instant(first, last)}
	case "time": // without the inner cast, a prepared statement takes 10:00:00 for the year 2010
		return Form{SQL: fmt.Sprintf("CAST(CAST(? AS CHAR) AS TIME(%d))", precision), takes: duration}
	case "enum":
		return Form{SQL: texts + collate, takes: member(typ)}
	case "char":
		return Form{SQL: "RTRIM(LEFT(" + texts + ", " + length + "))" + collate, Prefix: prefixOf(collation), takes: text(charset, precision)}
	case "varchar": // INSERT IGNORE truncates what is too long
		return Form{SQL: "LEFT(" + texts + ", " + length + ")" + collate, Prefix: prefixOf(collation), takes: text(charset, precision)}
	case "text", "mediumtext", "longtext":
		return Form{SQL: texts + collate, Prefix: prefixOf(collation), takes: text(charset, maxDigits)}
	case "binary": // MariaDB counts characters where it casts a text at once
		return Form{SQL: "CAST(CAST(? AS BINARY) AS BINARY(" + length + "))", Prefix: likePrefix, takes: octets}
	case "varbinary":
		return Form{SQL: "LEFT(CAST(? AS BINARY), " + length + ")", Prefix: likePrefix, takes: octets}
	case "blob", "mediumblob", "longblob":
		return Form{SQL: "CAST(? AS BINARY)", Prefix: likePrefix, takes: octets}
	}
	return Form{}
}

// The conditions of Form.Prefix. LEFT alone would read, and lock, the whole table.
const (
	equalPrefix = "LEFT(@, #) = LEFT(?, #) AND "
	likePrefix  = equalPrefix + "@ LIKE CONCAT(REPLACE(REPLACE(REPLACE(RTRIM(LEFT(?, #)), '|', '||'), '%', '|%'), '_', '|_'), '%') ESCAPE '|'"
	rangePrefix = equalPrefix + "@ >= LEFT(?, #) AND @ <= CONCAT(LEFT(?, #), CONVERT(0xF48FBFBFF48FBFBF USING utf8mb4))"
)

// prefixOf returns Form.Prefix for texts of a collation, or "". LIKE compares character by
// character, by which "ss" is not like "ß" even where the two are equal, so likePrefix is for
// the collations that compare in the same way. rangePrefix is for those that do not pad the
// shorter of two texts with spaces, where a longer text is therefore the greater one.
func prefixOf(collation string) string {
	switch {
	case strings.HasSuffix(collation, "_bin"), strings.HasSuffix(collation, "_general_ci"), collation == "latin1_swedish_ci":
		return likePrefix
	case strings.HasPrefix(collation, "utf8mb4_0900_"):
		return rangePrefix
	default:
		return ""
	}
}

var (
	integerText = regexp.MustCompile(`^-?[0-9]{1,19}$`)
	decimalText = regexp.MustCompile(`^-?[0-9]{1,30}(\.[0-9]{1,30})?$`)
	// numberText has the sign, the digits before and after the point, and the exponent.
	numberText = regexp.MustCompile(`^ *([+-]?)([0-9]{0,30})(?:\.([0-9]{0,30}))?(?:[eE]([+-]?[0-9]{1,3}))? *$`)
	timeText   = regexp.MustCompile(`^-?([0-9]{2,3}):[0-5][0-9]:[0-5][0-9](\.[0-9]+)?$`)
)

// textOf returns the text of a string or of bytes, which a prepared statement sends alike.
func textOf(v driver.Value) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case []byte:
		return string(v), true
	default:
		return "", false
	}
}

// plainNumber returns a number in the form of decimalText: 0.5 for ".5", 100 for "1e2", 3 for "+3".
// It does not change what is no number, or has too many digits.
func plainNumber(s string) string {
	found := numberText.FindStringSubmatch(s)
	if found == nil || found[2]+found[3] == "" {
		return s
	}
	sign, whole, part := strings.TrimPrefix(found[1], "+"), found[2], found[3]
	exponent, _ := strconv.Atoi(cmp.Or(found[4], "0")) // the pattern leaves no error
	for ; exponent > 0; exponent-- {
		next := "0"
		if part != "" {
			next, part = part[:1], part[1:]
		}
		whole += next
	}
	for ; exponent < 0; exponent++ {
		last := len(whole) - 1
		if last < 0 {
			part = "0" + part
			continue
		}
		whole, part = whole[:last], whole[last:]+part
	}
	if whole == "" {
		whole = "0"
	}
	if part != "" {
		part = "." + part
	}
	return sign + whole + part
}

// between accepts integers from first to last. INSERT IGNORE stores the nearest of these for
// others, and an insert rounds a fraction by rules that depend on the protocol.
func between(first int64, last uint64) func(driver.Value) (driver.Value, bool) {
	return func(v driver.Value) (driver.Value, bool) {
		switch known := v.(type) {
		case int64, uint64:
		case float64:
			if known != math.Trunc(known) || math.Abs(known) > 1<<53 {
				return nil, false
			}
			v = int64(known)
		default:
			s, ok := textOf(v)
			if s = plainNumber(s); !ok || !integerText.MatchString(s) {
				return nil, false
			}
			n, err := strconv.ParseInt(s, 10, 64)
			if err != nil {
				return nil, false
			}
			v = n
		}
		if n, signed := v.(int64); signed {
			return n, n >= first && (n < 0 || uint64(n) <= last)
		}
		n := v.(uint64)
		return n, n <= last
	}
}

// bits accepts integers, and bytes, which a BIT column reads as a number.
func bits(count int) func(driver.Value) (driver.Value, bool) {
	number := between(0, math.MaxUint64>>(64-min(max(count, 1), 64)))
	return func(v driver.Value) (driver.Value, bool) {
		if s, ok := textOf(v); ok {
			if len(s) == 0 || len(s) > 8 {
				return nil, false
			}
			var n uint64
			for _, b := range []byte(s) {
				n = n<<8 | uint64(b)
			}
			v = n
		}
		return number(v)
	}
}

// decimal accepts numbers, and sends them as text.
func decimal(unsigned bool) func(driver.Value) (driver.Value, bool) {
	return func(v driver.Value) (driver.Value, bool) {
		var s string
		switch v := v.(type) {
		case int64:
			s = strconv.FormatInt(v, 10)
		case uint64:
			s = strconv.FormatUint(v, 10)
		case float64:
			s = strconv.FormatFloat(v, 'f', -1, 64)
		default:
			s, _ = textOf(v)
			s = plainNumber(s)
		}
		return s, decimalText.MatchString(s) && !(unsigned && s[0] == '-')
	}
}

// float accepts numbers, and rounds them as the column does.
func float(single, unsigned bool) func(driver.Value) (driver.Value, bool) {
	return func(v driver.Value) (driver.Value, bool) {
		var n float64
		switch v := v.(type) {
		case int64:
			n = float64(v)
		case uint64:
			n = float64(v)
		case float64:
			n = v
		default:
			s, _ := textOf(v)
			if found := numberText.FindStringSubmatch(s); found == nil || found[2]+found[3] == "" {
				return nil, false
			}
			n, _ = strconv.ParseFloat(strings.Trim(s, " "), 64) // infinite if it is out of range
		}
		if single {
			n = float64(float32(n))
		}
		return n, !math.IsInf(n, 0) && !math.IsNaN(n) && !(unsigned && n < 0)
	}
}

// instant accepts times and dates of the years from first to last. INSERT IGNORE stores others
// as 0.
func instant(first, last int) func(driver.Value) (driver.Value, bool) {
	return func(v driver.Value) (driver.Value, bool) {
		at, ok := v.(time.Time)
		if !ok {
			s, _ := textOf(v)
			var err error
			if at, err = time.Parse(time.DateTime, s); err != nil {
				if at, err = time.Parse(time.DateOnly, s); err != nil {
					return nil, false
				}
			}
		}
		return v, first <= at.Year() && at.Year() <= last
	}
}

// duration accepts times of the day and other values of TIME.
func duration(v driver.Value) (driver.Value, bool) {
	s, _ := textOf(v)
	found := timeText.FindStringSubmatch(s)
	if found == nil {
		return nil, false
	}
	hours, _ := strconv.Atoi(found[1]) // the pattern leaves no error
	return v, hours < 838
}

// member accepts the members of an ENUM in their exact spelling.
func member(typ string) func(driver.Value) (driver.Value, bool) {
	inside := strings.TrimSuffix(strings.TrimPrefix(typ, "enum('"), "')")
	members := strings.Split(inside, "','")
	return func(v driver.Value) (driver.Value, bool) {
		s, ok := v.(string)
		return s, ok && s != "" && slices.Contains(members, strings.ReplaceAll(s, "'", "''"))
	}
}

// maxDigits is the greatest length of a number for which Go and the server are sure to write the
// same digits.
const maxDigits = 15

// text accepts texts, and numbers that fit into length.
func text(charset string, length int) func(driver.Value) (driver.Value, bool) {
	return func(v driver.Value) (driver.Value, bool) {
		switch known := v.(type) {
		case int64:
			return strconv.FormatInt(known, 10), true
		case uint64:
			return strconv.FormatUint(known, 10), true
		case float64:
			s := strconv.FormatFloat(known, 'f', -1, 64)
			return s, len(s) <= min(length, maxDigits)
		case string:
			return v, utf8.ValidString(known)
		case []byte: // in the connection's character set or in none, depending on the protocol
			return v, utf8.Valid(known) && (charset == "utf8mb4" || !slices.ContainsFunc(known, func(b byte) bool { return b >= utf8.RuneSelf }))
		default:
			return v, true // a time, which the driver formats
		}
	}
}

// octets accepts bytes and texts.
func octets(v driver.Value) (driver.Value, bool) {
	_, ok := textOf(v)
	return v, ok
}
