package gormplugin

// An Option configures a [Plugin], in [New].
type Option func(*config)

// A config is what the options of a Plugin say.
type config struct {
	layout Layout // if not the source's own
	unnest bool
}

// WithLayout sets the layout of the keys. Use it if the source is not a [Layout], such as a
// [SourceFunc], or has another layout than the stored keys, as in a service that only
// reads. If the layout has a Validate method, db.Use returns its error.
func WithLayout(l Layout) Option {
	return func(c *config) {
		if !isNil(l) {
			c.layout = l
		}
	}
}

// WithUnnest makes GORM send the rows of a create to PostgreSQL as arrays, one per column:
//
//	INSERT INTO "orders" ("id","number") SELECT unnest($1::bigint[]), unnest($2::text[])
//
// Use it where creates have many rows, for which it is faster than VALUES and not limited
// to 65,535 parameters. What is stored is the same, in the same order, with the same
// errors. RETURNING and ON CONFLICT, hooks, batches and prepared statements work as before.
// On other databases the option does nothing.
//
// These creates are sent as VALUES, as a whole:
//
//   - creates of at most 10 rows, and dry runs;
//   - creates with an expression in a row, such as gorm.Expr, or with a default of the
//     database in some of the rows;
//   - creates with a value that some driver stores otherwise or refuses: a slice or a
//     json.RawMessage, a number or text that the column cannot hold, a time that is not UTC
//     for a column without time zone, and text of a driver.Valuer for a column other than
//     text, JSON, numeric and uuid;
//   - creates with a column of an array, domain, composite or range type, or of a type with a
//     length other than a character type, such as bit(3);
//   - creates into a view, a foreign table or a table with rules, and statements with a
//     modifier or an alias.
//
// The plugin reads the column types of a table from the catalog when a create first has
// more rows, under a savepoint if in a transaction. It keeps them for the life of the
// database, or until a create in that table fails, so all connections of a database should
// find the same types under the name of a table. Restart a program after a column has got
// another type, because until then PostgreSQL receives the values in the old type, and
// converts them.
func WithUnnest() Option { return func(c *config) { c.unnest = true } }
