package gormplugin

import "github.com/snowkey/snowkey/internal/base/supply"

// An Option configures a [Plugin], in [New].
type Option func(*config)

// A config is what the options of a Plugin say.
type config struct {
	layout   Layout // if not the source's own
	unnest   bool
	integers bool
	wide     bool // with integers: keys may have more than 53 bits
}

// WithLayout sets the layout of the keys. Use it if the source is not a [Layout], such as a
// [SourceFunc], or has another layout than the stored keys, as in a service that only
// reads. If the layout has a Validate method, db.Use returns its error.
func WithLayout(l Layout) Option {
	return func(c *config) {
		if !supply.IsNil(l) {
			c.layout = l
		}
	}
}

// WithUnnest makes GORM send the rows of a create to PostgreSQL as arrays, one per column:
//
//	INSERT INTO "orders" ("id","number") SELECT unnest($1::bigint[]), unnest($2::text[]) WHERE …
//
// The condition makes the server check that the columns still have these types.
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
// A create of more rows costs one more query, which reads the column types of the table from
// the catalog: a new release may give a column another type at any time. If it does so between
// the query and the insert, the server refuses the rows with [ErrTableChanged]. Until the first
// of these queries has worked, they run under a savepoint if in a transaction.
func WithUnnest() Option { return func(c *config) { c.unnest = true } }

// WithIntegerKeys makes the plugin also fill the primary keys that GORM would let the
// database count, so that a program which exists gets keys before the insert without a
// changed model: gorm.Model's ID, and keys of type int, int64, uint and uint64 and of types
// made of them, with autoIncrement in the tag or without. These are filled in composite keys
// too, as in (TenantID, ID). [Filled] has the exceptions; the tag snowflake:- leaves a key to
// the database, also the tag of an embedded gorm.Model.
//
// The source must fit in 53 bits, as with core.JavaScript, because these keys are numbers in
// JSON. A source with a method Max, as core.Generator has, is refused by db.Use with
// [ErrWideKey] if it is wider, and any other source when it returns such a key. If no
// JavaScript reads the keys, use [WithWideIntegerKeys].
//
// A key with fewer than 64 bits, by its type or by a tag such as size:32 or type:int, and a
// foreign key of that kind, is a [ModelError]. The plugin cannot see a column that is
// narrower than its field, so check the tables with package schemacheck when the program
// starts.
//
// The database still counts for whoever inserts without a key: raw SQL, other programs, and
// Table("orders").Create(map). On SQLite, MySQL and MariaDB it counts on from the largest key
// of the table, which gives such a row the key that the source is about to return, and the
// create that gets it fails as a duplicate. PostgreSQL counts apart from the keys. Let
// everyone insert through the plugin, or end the counting by the statement that schemacheck
// prints.
//
// GORM has no create from a []map by value for these models where it uses RETURNING, and
// appends rows to the slice behind a *[]map; both are so without the plugin.
func WithIntegerKeys() Option { return func(c *config) { c.integers = true } }

// WithWideIntegerKeys is [WithIntegerKeys] for any source of 64-bit keys. It says that
// no JavaScript, and nothing else that reads numbers as floating point, reads the keys: it would round
// them, and two rows could look alike.
func WithWideIntegerKeys() Option { return func(c *config) { c.integers, c.wide = true, true } }
