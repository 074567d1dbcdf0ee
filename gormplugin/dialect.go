package gormplugin

import (
	"gorm.io/gorm"

	"github.com/snowkey/snowkey/internal/base/dialect"
)

// A database holds what the plugin knows of a kind of database. Another one has the zero value.
type database struct {
	dialect dialect.Dialect

	// Creates.
	rowIDs bool // an integer key is the table itself, see UseRowIDs

	// What an upsert does, and what RowsAffected says of it.
	everyKey       bool // it meets rows by every unique key, whatever target it names
	updatesNothing bool // GORM writes DO NOTHING as an update that changes nothing
	countsInserts  bool // after DO NOTHING, RowsAffected is the number of inserted rows
	countsChanges  bool // RowsAffected of an upsert is not the number of rows that it returns
}

// databases has them by the names of GORM's dialectors.
var databases = map[string]*database{
	"sqlite":   {dialect: dialect.SQLite, rowIDs: true, countsInserts: true},
	"postgres": {dialect: dialect.PostgreSQL, countsInserts: true},
	// MySQL, MariaDB and TiDB.
	"mysql": {dialect: dialect.MySQL, everyKey: true, updatesNothing: true, countsChanges: true},
}

// databaseOf returns the database that db is on.
func databaseOf(db *gorm.DB) *database {
	if d := databases[db.Name()]; d != nil {
		return d
	}
	return &database{}
}
