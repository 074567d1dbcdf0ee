package sqlxhelper

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/snowkey/snowkey/internal/base/dialect"
)

// A Dialect is the SQL that a database speaks. The zero value is not valid.
type Dialect = dialect.Dialect

// The dialects.
const (
	// SQLite is SQLite 3 and databases that speak its SQL, such as libSQL.
	SQLite = dialect.SQLite
	// PostgreSQL is PostgreSQL with any driver.
	PostgreSQL = dialect.PostgreSQL
	// MySQL is MySQL and MariaDB.
	MySQL = dialect.MySQL
)

// traits are the differences of a dialect.
type traits struct {
	Dialect
	dialect.Traits      // those that gormplugin has to know too
	numbered       bool // placeholders are $1, $2 instead of ?
	// maxBinds bounds the values in one statement, by the protocol or the build of the driver.
	// binds bounds those in one chunk; it counts values because rows have different widths. It
	// was measured on rows of six columns, 50 for SQLite and 500 for the servers: statements at
	// the bind limit ran at half that speed on PostgreSQL and at three quarters on SQLite.
	maxBinds, binds int
	// ladder bounds the number of statement texts. pgx keeps every text prepared on the server,
	// 512 per connection, and 300 different row counts cost 25 MB in one backend. Only small
	// row counts therefore have texts of their own, and a larger remainder is sent as a
	// multiple of ladder and a rest. The drivers of the other databases keep no texts.
	ladder int
	// bytes bounds a chunk of several rows. On MySQL a statement above max_allowed_packet, 16
	// MiB by default and 4 MiB on old servers, costs the connection and with it the caller's
	// transaction. A driver that writes the values into the text may double them by escaping.
	// Elsewhere bytes bounds memory.
	bytes int
	// The longest identifier, in bytes and characters; 0: no limit. PostgreSQL cuts longer ones
	// and goes on.
	maxBytes, maxRunes int

	// prepares: a statement that is sent more than once is prepared. That must not change how
	// values are sent, since a single row is sent without. pgx, which has several modes on
	// PostgreSQL, keeps prepared by itself what its mode allows.
	prepares bool
	// inlines: the driver may write values into the text (interpolateParams). MySQL then takes
	// 2.5 for a decimal, and otherwise for a double. A query tells which: 0.1 + 0.2 is 0.3 in
	// decimals and not in doubles.
	inlines bool
	// uninterrupted: interrupting a statement rolls back the whole transaction, which may be
	// the caller's, and so ctx is checked only between statements. A statement of one chunk is
	// short, and waits for a lock no longer than busy_timeout. This also saves mattn/go-sqlite3
	// a goroutine per statement.
	uninterrupted bool
	// partial: a statement that failed may have kept rows, or ended the transaction, because a
	// constraint can be declared ON CONFLICT FAIL or ROLLBACK, and a trigger can RAISE(FAIL).
	partial bool
	// nameIsText: a quoted name of no column is taken for a text.
	nameIsText bool
	// badIsUnsent: a driver that reports a bad connection has sent nothing on it, as
	// database/sql requires.
	badIsUnsent bool
	// onDuplicateKey: an upsert is ON DUPLICATE KEY UPDATE, which takes every unique index for
	// a conflict and does not count the inserted rows.
	onDuplicateKey bool
	// forUpdate makes a SELECT see a row that another transaction has stored after this one
	// began, while a plain one on MySQL under REPEATABLE READ sees the past. The insert has
	// locked that row already. A key that is not stored must not be selected so, because that
	// locks the gap where it would be.
	forUpdate string
}

var allTraits = [...]traits{
	{
		Dialect: SQLite, Traits: dialect.TraitsOf(SQLite), maxBinds: 32766, binds: 300, bytes: 1 << 20,
		prepares: true, uninterrupted: true, partial: true, nameIsText: true,
	},
	{
		Dialect: PostgreSQL, Traits: dialect.TraitsOf(PostgreSQL), numbered: true, maxBinds: 65535, binds: 3000,
		ladder: 32, bytes: 1 << 20, maxBytes: 63,
	},
	{
		Dialect: MySQL, Traits: dialect.TraitsOf(MySQL), maxBinds: 65535, binds: 3000, bytes: 1 << 20, maxRunes: 64,
		prepares: true, inlines: true, badIsUnsent: true, onDuplicateKey: true, forUpdate: " FOR UPDATE",
	},
}

// traitsOf returns the traits of a valid dialect.
func traitsOf(d Dialect) *traits { return &allTraits[d-SQLite] }

// sends returns the context for a statement.
func (t *traits) sends(ctx context.Context) context.Context {
	if t.uninterrupted {
		return context.WithoutCancel(ctx)
	}
	return ctx
}

// registered maps the driver names of [RegisterDriver] to dialects. It is a variable of the
// process, as are the tables of driver names in database/sql and sqlx.
var registered sync.Map

// RegisterDriver sets the dialect of a driver name for all Helpers of the process. It is for
// names that a program makes up, as wrappers for tracing do. A later call for the same name
// replaces the former, and names known to this package can be replaced too. It is safe for
// concurrent use; call it before the first insert.
//
// Like sql.Register it panics on misuse: an empty name, or a dialect that is not one of the
// constants.
func RegisterDriver(name string, d Dialect) {
	if name == "" || !d.Valid() {
		panic(fmt.Sprintf("sqlxhelper: RegisterDriver(%q, %v): want a driver name, and SQLite, PostgreSQL or MySQL", name, d))
	}
	registered.Store(name, d)
}

// knownDriver returns the dialect of a driver name that can only mean one database, or zero.
// Prefixes and suffixes decide nothing: "pgx-otel-0" could be anything, and a wrong guess is a
// syntax error at best.
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

// nameProblem returns what is wrong with a name in any dialect, or "". Names are quoted and
// could contain anything, but a name that contains a quote is quoted already and would only be
// "no such table".
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

// tableProblem is nameProblem for a table, with or without its schema.
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

// checkLength refuses a name that the database would silently cut.
func (t *traits) checkLength(name string) error {
	if n := len(name); t.maxBytes > 0 && n > t.maxBytes {
		return fmt.Errorf("%w: %q has %d bytes, %v takes %d", ErrName, name, n, t, t.maxBytes)
	}
	if n := utf8.RuneCountInString(name); t.maxRunes > 0 && n > t.maxRunes {
		return fmt.Errorf("%w: %q has %d characters, %v takes %d", ErrName, name, n, t, t.maxRunes)
	}
	return nil
}
