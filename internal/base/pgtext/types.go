package pgtext

import "regexp"

// A Type stands for column types that take the same Go values. The zero value is not a valid one.
type Type uint8

// The types.
const (
	// Other is a type such as inet, interval or citext, whose input function reads text, as in
	// an INSERT.
	Other Type = iota + 1
	Text       // text, varchar, char and enums
	JSON
	JSONB
	Bytea
	Bool
	Int2
	Int4
	Int8
	Numeric
	Float4
	Float8
	TimestampTZ
	Timestamp
	Date
	UUID
)

// byOID has the types that take more than text by their OIDs, which never change, while a user may
// create a type with the name int4.
var byOID = map[int64]Type{
	16: Bool, 17: Bytea, 20: Int8, 21: Int2, 23: Int4,
	700: Float4, 701: Float8, 1700: Numeric,
	1082: Date, 1114: Timestamp, 1184: TimestampTZ,
	25: Text, 1042: Text, 1043: Text,
	114: JSON, 3802: JSONB,
	2950: UUID,
}

// TypeOf returns the Type for the OID of a column type; enum reports whether that is an enum.
func TypeOf(oid int64, enum bool) Type {
	if t := byOID[oid]; t != 0 {
		return t
	}
	if enum {
		return Text
	}
	return Other
}

// A set is a set of types.
type set uint32

func setOf(list ...Type) (s set) {
	for _, t := range list {
		s |= 1 << t
	}
	return s
}

// taken lists, by kind, the types that take values of it in at least some rows.
var taken = [...]set{
	// Not text or floats, for which lib/pq sends any text and pgx requires other values.
	intKind:  setOf(Int2, Int4, Int8, Numeric),
	uintKind: setOf(Int2, Int4, Int8, Numeric),
	// In a float8, 0.1 would be 0.1 in the modes of pgx that send text, and
	// 0.10000000149011612 in the others.
	float32Kind: setOf(Float4),
	float64Kind: setOf(Float4, Float8, Numeric),
	boolKind:    setOf(Bool),
	// In a bytea, the server reads escapes with pgx and not with lib/pq.
	stringKind: ^setOf(Bytea),
	// Some versions of pgx convert it for other types: for json, to a JSON string.
	namedStringKind: setOf(Text),
	// For json and text, two modes of pgx write \x…, and the others the bytes.
	bytesKind: setOf(Bytea),
	timeKind:  setOf(TimestampTZ, Timestamp, Date),
	ValueKind: ^set(0),
}

// Takes reports whether t takes values of kind k in at least some rows.
func (t Type) Takes(k Kind) bool { return taken[k]&(1<<t) != 0 }

// Binary reports whether t has a binary form for values of kind k in at least some rows. Text that
// the server would have to parse has none.
func (t Type) Binary(k Kind) bool {
	switch k {
	case stringKind, namedStringKind:
		return t == Text || t == JSON || t == JSONB
	case float64Kind:
		return t != Numeric
	}
	return t != Other && t != UUID
}

// plainText matches, by type, the texts that pgx and the server read in the same way.
var plainText = map[Type]*regexp.Regexp{
	Numeric: regexp.MustCompile(`^-?[0-9]{1,300}(\.[0-9]{1,300})?$`),
	UUID:    regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`),
}

// TakesParsed reports whether driver-side parsing stores the same value for s. For most types with
// a binary form, pgx parses the text of a driver.Valuer; it is more lenient than the server, and
// truncates times, which the server rounds.
func (t Type) TakesParsed(s string) bool {
	switch t {
	case Text, JSON, JSONB:
		return true
	case Numeric, UUID:
		return plainText[t].MatchString(s)
	}
	return false
}
