package sqlxhelper

import (
	"fmt"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// A Dialect is the SQL that a database speaks. The zero value is none of them.
type Dialect uint8

// The dialects.
const (
	// SQLite is SQLite 3 and libSQL.
	SQLite Dialect = iota + 1
	// PostgreSQL is PostgreSQL, by any driver.
	PostgreSQL
	// MySQL is MySQL and MariaDB.
	MySQL
)

// traits are what a dialect does differently.
//
// Chunks are counted in bound values, because rows have different widths. The
// numbers were measured on rows of six columns, as 50 rows for SQLite and 500
// for the servers; statements at the bind limit ran at half that speed on
// PostgreSQL and at three quarters on SQLite.
type traits struct {
	name     string
	quote    byte // around identifiers
	numbered bool // $1, $2 instead of ?
	maxBinds int  // values in one statement, by the protocol or the driver's build
	binds    int  // values in one chunk
	// ladder bounds how many statement texts there are. pgx keeps every text
	// that it has seen prepared on the server, 512 per connection: 300 different
	// row counts cost 25 MB in one backend. So only small row counts have
	// texts of their own; a larger remainder is cut to a multiple of ladder and
	// what is left. That is two statements at most, and the small texts are
	// cheap. The drivers of the other databases keep no texts.
	ladder int
	// bytes bounds what a chunk holds, unless it is a single row. On MySQL a
	// statement above max_allowed_packet costs the connection and with it the
	// caller's transaction: 16 MiB where nobody has set it, 4 MiB on servers of
	// old. A driver that writes the values into the text may double them by
	// escaping. Elsewhere it bounds memory. Rows of six columns come nowhere near.
	bytes    int
	maxBytes int // of an identifier; PostgreSQL cuts longer ones and goes on
	maxRunes int // of an identifier
}

var dialects = [...]traits{
	SQLite:     {name: "SQLite", quote: '"', maxBinds: 32766, binds: 300, bytes: 1 << 20},
	PostgreSQL: {name: "PostgreSQL", quote: '"', numbered: true, maxBinds: 65535, binds: 3000, ladder: 32, bytes: 1 << 20, maxBytes: 63},
	MySQL:      {name: "MySQL", quote: '`', maxBinds: 65535, binds: 3000, bytes: 1 << 20, maxRunes: 64},
}

func (d Dialect) valid() bool { return d > 0 && int(d) < len(dialects) }

func (d Dialect) traits() *traits { return &dialects[d] }

// String returns the name of d, or "Dialect(n)" for a number that is none.
func (d Dialect) String() string {
	if !d.valid() {
		return fmt.Sprintf("Dialect(%d)", uint8(d))
	}
	return d.traits().name
}

// registered holds what [RegisterDriver] was told: driver name to Dialect. It
// is shared by all helpers because driver names are: database/sql and sqlx each
// have one table of them per process.
var registered sync.Map

// RegisterDriver says which dialect the databases opened under a driver name
// speak, for all helpers of the process. It is for names that a program makes
// up, as wrappers for tracing do. A later call for the same name replaces the
// former, and names known to this package can be replaced too. It is safe for
// concurrent use, and meant to be called before the first insert. Like
// sql.Register it panics on misuse: an empty name or a dialect that is none of
// the constants.
func RegisterDriver(name string, d Dialect) {
	if name == "" || !d.valid() {
		panic(fmt.Sprintf("sqlxhelper: RegisterDriver(%q, %v): want a driver name, and SQLite, PostgreSQL or MySQL", name, d))
	}
	registered.Store(name, d)
}

// knownDriver returns the dialect behind a driver name that can only mean one
// database, or zero. A prefix or a suffix decides nothing: "pgx-otel-0" could be
// anything, and a wrong guess is a syntax error at best.
func knownDriver(name string) Dialect {
	switch name {
	case "sqlite3", "sqlite", "libsql", "nrsqlite3":
		return SQLite
	case "postgres", "pgx", "pgx/v4", "pgx/v5", "pq-timeouts", "cloudsqlpostgres", "nrpostgres", "nrpgx", "nrpgx5":
		return PostgreSQL
	case "mysql", "nrmysql":
		return MySQL
	}
	return 0
}

// dialectOf returns the dialect of a driver name, or ErrDriver.
func dialectOf(driver string) (Dialect, error) {
	if d, ok := registered.Load(driver); ok {
		return d.(Dialect), nil
	}
	if d := knownDriver(driver); d != 0 {
		return d, nil
	}
	return 0, fmt.Errorf("%w: driver name %q; say what it is with sqlxhelper.RegisterDriver(%q, …), or give New the option WithDialect", ErrDriver, driver, driver)
}

// nameProblem says what is wrong with a name in any dialect, or "". Names are
// quoted and could hold anything, but a quote in one is a caller who quotes by
// himself, and would get "no such table" for it.
func nameProblem(name string) string {
	if name == "" {
		return "a name is empty"
	}
	if !utf8.ValidString(name) {
		return fmt.Sprintf("%q is not UTF-8", name)
	}
	for _, r := range name {
		if strings.ContainsRune(".\"'`[];\\", r) || !unicode.IsPrint(r) {
			return fmt.Sprintf("%q holds %q; names are written bare and quoted here", name, r)
		}
	}
	return ""
}

// tableProblem is nameProblem for a table, which may have a schema before it.
func tableProblem(table string) string {
	parts := strings.Split(table, ".")
	if len(parts) > 2 {
		return fmt.Sprintf("table %q has more than one dot, want table or schema.table", table)
	}
	for _, part := range parts {
		if problem := nameProblem(part); problem != "" {
			return fmt.Sprintf("table %q: %s", table, problem)
		}
	}
	return ""
}

// appendQuoted appends a checked name in quotes, or fails where the database
// would silently use another name than this one.
func (t *traits) appendQuoted(b []byte, name string) ([]byte, error) {
	if n := len(name); t.maxBytes > 0 && n > t.maxBytes {
		return nil, fmt.Errorf("%w: %q has %d bytes, %s takes %d", ErrName, name, n, t.name, t.maxBytes)
	}
	if n := utf8.RuneCountInString(name); t.maxRunes > 0 && n > t.maxRunes {
		return nil, fmt.Errorf("%w: %q has %d characters, %s takes %d", ErrName, name, n, t.name, t.maxRunes)
	}
	b = append(b, t.quote)
	b = append(b, name...)
	return append(b, t.quote), nil
}
