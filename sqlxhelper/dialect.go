package sqlxhelper

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/outcome"
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
type traits dialect.Traits

// sends returns the context for a statement.
func (t *traits) sends(ctx context.Context) context.Context {
	if t.Uninterrupted {
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

// A namedDriver is what is known of a driver by its name.
type namedDriver struct {
	dialect Dialect
	// cancels: which of its calls end with their context. In all calls of lib/pq a server that
	// does not answer is waited for until TCP gives up, or forever.
	cancels outcome.Cancels
	// hidesPooler: see conn.
	hidesPooler bool
}

// drivers has the names that can only mean one database. Prefixes and suffixes decide nothing:
// "pgx-otel-0" could be anything, and a wrong guess is a syntax error at best.
var drivers = map[string]namedDriver{
	"sqlite3":          {dialect: SQLite, cancels: outcome.CancelsAll},
	"sqlite":           {dialect: SQLite, cancels: outcome.CancelsAll},
	"libsql":           {dialect: SQLite},
	"nrsqlite3":        {dialect: SQLite},
	"postgres":         {dialect: PostgreSQL, hidesPooler: true},
	"pgx":              {dialect: PostgreSQL, cancels: outcome.CancelsAll},
	"pgx/v4":           {dialect: PostgreSQL, cancels: outcome.CancelsAll},
	"pgx/v5":           {dialect: PostgreSQL, cancels: outcome.CancelsAll},
	"pq-timeouts":      {dialect: PostgreSQL},
	"cloudsqlpostgres": {dialect: PostgreSQL},
	"nrpostgres":       {dialect: PostgreSQL},
	"nrpgx":            {dialect: PostgreSQL},
	"nrpgx5":           {dialect: PostgreSQL},
	"mysql":            {dialect: MySQL, cancels: outcome.CancelsStatements},
	"nrmysql":          {dialect: MySQL},
}

// driverNamed returns what is known of a driver, without a dialect if that is nothing.
func driverNamed(name string) namedDriver {
	driver := drivers[name]
	if d, ok := registered.Load(name); ok {
		driver.dialect = d.(Dialect)
	}
	return driver
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
	if n := len(name); t.MaxBytes > 0 && n > t.MaxBytes {
		return fmt.Errorf("%w: %q has %d bytes, %v takes %d", ErrName, name, n, t.Dialect, t.MaxBytes)
	}
	if n := utf8.RuneCountInString(name); t.MaxRunes > 0 && n > t.MaxRunes {
		return fmt.Errorf("%w: %q has %d characters, %v takes %d", ErrName, name, n, t.Dialect, t.MaxRunes)
	}
	return nil
}
