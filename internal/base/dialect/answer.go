package dialect

import (
	"iter"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// An Answer is the code that the database itself has put into an error. At most one of its
// fields is set.
type Answer struct {
	State  string // SQLSTATE of PostgreSQL
	Number uint16 // error number of MySQL and MariaDB
	Code   int    // extended result code of SQLite
}

// Answers returns the answers in err and in all errors that it wraps, in the order of their texts
// in the text of err.
func Answers(err error) iter.Seq[Answer] {
	return func(yield func(Answer) bool) {
		for e := range Tree(err) {
			if a := Of(e); a != (Answer{}) && !yield(a) {
				return
			}
		}
	}
}

// Numbered reports whether MySQL has answered err with one of the numbers.
func Numbered(err error, numbers ...uint16) bool {
	return said(err, func(a Answer) bool { return slices.Contains(numbers, a.Number) })
}

// stated reports whether PostgreSQL has answered err with one of the SQLSTATEs.
func stated(err error, states ...string) bool {
	return said(err, func(a Answer) bool { return slices.Contains(states, a.State) })
}

// resulted reports whether SQLite has answered err with one of the extended result codes.
func resulted(err error, codes ...int) bool {
	return said(err, func(a Answer) bool { return slices.Contains(codes, a.Code) })
}

// said reports whether is accepts one of the answers in err.
func said(err error, is func(Answer) bool) bool {
	return saidIn(err, func(a Answer, _ error) bool { return is(a) })
}

// saidIn is said for an is that also examines the text of the error.
func saidIn(err error, is func(Answer, error) bool) bool {
	for e := range Tree(err) {
		if is(Of(e), e) {
			return true
		}
	}
	return false
}

// Tree returns err and what it wraps, as errors.Is walks it. errors.As would need the
// drivers' types.
func Tree(err error) iter.Seq[error] {
	return func(yield func(error) bool) { visit(err, yield) }
}

// visit is the recursion of Tree; it returns false to end it.
func visit(err error, yield func(error) bool) bool {
	if v := reflect.ValueOf(err); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return true // a nil pointer has no answer, and its methods may panic
	}
	if !yield(err) {
		return false
	}
	if e, ok := err.(interface{ Unwrap() error }); ok {
		return visit(e.Unwrap(), yield)
	}
	if e, ok := err.(interface{ Unwrap() []error }); ok {
		for _, wrapped := range e.Unwrap() {
			if !visit(wrapped, yield) {
				return false
			}
		}
	}
	return true
}

// Of returns the answer in one error, without those that it wraps. It recognizes an error by its
// type's name together with a method or a field, because programs have errors of their own with
// a Code.
func Of(err error) Answer {
	// *pgconn.PgError of pgx since 4, and *pq.Error of lib/pq since 1.10.6, which have the
	// method for code like this.
	if e, ok := err.(interface{ SQLState() string }); ok {
		return Answer{State: e.SQLState()}
	}
	v := reflect.Indirect(reflect.ValueOf(err))
	if !v.IsValid() {
		return Answer{}
	}
	switch t := v.Type(); {
	case t.Name() == "MySQLError":
		if f := field(v, "Number"); f.IsValid() && f.Kind() == reflect.Uint16 {
			number := uint16(f.Uint())
			switch message := Text(err, "Message"); {
			case number == errorDuringCommit && engineDeadlock.MatchString(message):
				number = deadlock
			case number == tooGeneral && message == "pessimistic lock retry limit reached": // of TiDB's statements
				number = tidbWriteConflict
			}
			return Answer{Number: number}
		}
	case t.Name() == "Error" && strings.Contains(t.PkgPath(), "sqlite"):
		return Answer{Code: sqliteCode(err, v)}
	case (t.Name() == "ErrorCode" || t.Name() == "ExtendedErrorCode") && strings.Contains(t.PkgPath(), "sqlite") && v.CanUint():
		return Answer{Code: int(v.Uint())} // ncruces/go-sqlite3, for an error without a text
	}
	return Answer{}
}

// engineDeadlock finds the storage engine's error number in the translated text of 1180. 149 is a
// deadlock: InnoDB has rolled the transaction back before the COMMIT has written anything. A
// member of a MySQL group returns it, for statements as well, if its transaction conflicts with
// one that is already certified. A Galera node that has lost its cluster returns 1180 too, with
// another text and without such a number, whether or not the other nodes have the transaction.
var engineDeadlock = regexp.MustCompile(`\b149\b`)

// sqliteCode returns the extended result code of a driver's error, or 0.
func sqliteCode(err error, v reflect.Value) int {
	// modernc.org/sqlite and its relatives: the code is the extended one.
	if e, ok := err.(interface{ Code() int }); ok {
		return e.Code()
	}
	// ncruces/go-sqlite3: the type of the code is the driver's.
	if m := reflect.ValueOf(err).MethodByName("ExtendedCode"); m.IsValid() && m.Type().NumIn() == 0 && m.Type().NumOut() == 1 {
		if code := m.Call(nil)[0]; code.CanUint() {
			return int(code.Uint())
		}
	}
	// mattn/go-sqlite3: the extended code is 0 if there is only the primary one.
	for _, name := range []string{"ExtendedCode", "Code"} {
		if f := field(v, name); f.IsValid() && f.CanInt() && f.Int() != 0 {
			return int(f.Int())
		}
	}
	return 0
}

// Text returns a string field of err's struct, such as the Detail of a PostgreSQL error, or "".
func Text(err error, name string) string {
	if f := field(reflect.Indirect(reflect.ValueOf(err)), name); f.IsValid() && f.Kind() == reflect.String {
		return f.String()
	}
	return ""
}

// field returns a field of a struct, or the zero Value.
func field(v reflect.Value, name string) reflect.Value {
	if v.Kind() != reflect.Struct {
		return reflect.Value{}
	}
	return v.FieldByName(name)
}

// primary returns the primary result code, which an extended one contains.
func (a Answer) primary() int { return a.Code & 0xff }
