package schemacheck

// A database holds the queries for the catalog of a database, and how its tables are
// altered. [checker.ask] says what parameters the queries have.
type database struct {
	number, text string // the types that columns of keys should have
	folds        bool   // names of columns ignore case
	quotedIDs    bool   // the catalog returns the names of tables quoted
	unsigned     bool   // columns may be unsigned, and a foreign key needs the same sign at both ends
	space        string // the schema of a table that is named without one
	table        string // asks for a table
	columns      string // asks for its columns
	expressions  string // asks for the names of its unique indexes on expressions
	foreignKeys  string // asks for all foreign keys, on MySQL those of the schemas @spaces

	// connection reports what is wrong with the connection. It may be nil.
	connection func(c *checker) error
	// class returns the class of a type, and the length of a text.
	class func(typ string) (class, int)
	// complete adds to t what the queries do not return. It may be nil.
	complete func(c *checker, t *table) error
	// binds reports whether columns that a foreign key binds to col change with it.
	binds func(col *tableColumn, target string) bool
	// statements returns the statements that make changes to type target, or in words how
	// to make them. keys are the foreign keys that are in the way.
	statements func(c *checker, changes []typeChange, keys []foreignKey, target string) (fix string, sql []string, err error)
	// uncount returns how to stop the database from counting p, which should have type target.
	uncount func(c *checker, p place, target string) (fix string, sql []string, err error)
}

// databases has them by the names of GORM's dialectors.
var databases = map[string]*database{"sqlite": &sqlite, "postgres": &postgres, "mysql": &mysql}
