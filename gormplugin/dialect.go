package gormplugin

import (
	"gorm.io/gorm"

	"github.com/snowkey/snowkey/internal/base/dialect"
)

// A database holds everything in which upserts differ between the databases: which stored
// row an upsert meets and what it reports, where the catalog lists unique keys, and how
// stored rows are looked up. Each kind of database has a file of its own. Another database
// has the zero value, for which the plugin asks no catalog and looks rows up one by one.
type database struct {
	dialect dialect.Dialect // the rules by which its columns store and compare values

	// Creates.
	rowIDs bool // an integer key is the table itself, see UseRowIDs

	// What an upsert does, and what RowsAffected says of it.
	everyKey       bool // it meets rows by every unique key, whatever target it names
	updatesNothing bool // GORM writes DO NOTHING as an update that changes nothing
	countsInserts  bool // after DO NOTHING, RowsAffected is the number of inserted rows
	countsChanges  bool // RowsAffected of an upsert is not the number of rows that it returns

	// uniques asks the catalog for the columns of the unique keys of a table, see
	// creation.readCatalog. args returns its parameters.
	uniques string
	args    func(t tableName) []any
	// condition returns the condition of a partial unique key from what uniques returns
	// for it. If nil, the two are the same.
	condition func(text string) string
	// describe adds the types of the columns to the unique keys of the model, which take
	// the place of a catalog that does not list the table. It may be nil.
	describe func(q *query, t tableName, list []unique) error

	// How stored rows are looked up.
	inherits    bool // a SELECT also reads the tables that inherit from the one it names
	castsResult bool // results are cast, so that a prepared query outlives a change of type
	forcesIndex bool // a look-up names its index and compares by the column's collation
	locks       bool // a look-up locks, because a plain SELECT may read an old snapshot
	// joins reports whether the rows of a join find their stored rows by the index of u.
	// If nil, rows are not joined.
	joins func(u *unique) bool
	// joined writes the tables of a join of rows with the table.
	joined func(j *join, rows []int)
	// stores says which values a column stores unchanged, so that they can be listed. If
	// nil, it stores none so.
	stores func(c *uniqueColumn) plainness
	// sends reports whether the driver sends v as database/sql would. If nil, it does.
	sends func(v any) bool
	// listSize is how many values a list has, and listed writes the tables and the
	// condition of the query for them. With listPlaces the query returns the place of each
	// value that it finds a row for.
	listSize   int
	listed     func(l *list, values []any)
	listPlaces bool
}

// databases has them by the names of GORM's dialectors.
var databases = map[string]*database{"sqlite": &sqliteDatabase, "postgres": &postgresDatabase, "mysql": &mysqlDatabase}

// databaseOf returns the database that db is on.
func databaseOf(db *gorm.DB) *database {
	if d := databases[db.Name()]; d != nil {
		return d
	}
	return &database{}
}
