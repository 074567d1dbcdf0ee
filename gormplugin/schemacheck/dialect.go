package schemacheck

// A database knows the catalog of a database, and how its tables are altered. For the
// parameters of its queries see checker.ask.
type database struct {
	number, text string // the types that columns of keys should have
	folds        bool   // names of columns are the same in any case
	space        string // the schema of a table that is named without one
	table        string // asks for a table
	columns      string // asks for its columns
	expressions  string // asks for the names of its unique indexes on expressions
	foreignKeys  string // asks for all foreign keys, of the schemas @spaces on MySQL

	// class returns the class of a type, and the length of a text.
	class func(typ string) (class, int)
	// complete adds to t what these queries do not say.
	complete func(c *checker, t *table) error
	// binds reports whether columns that a foreign key binds to col change with it.
	binds func(col *tableColumn, target string) bool
	// statements returns how to make these changes. Foreign keys are in their way.
	statements func(c *checker, changes []typeChange, keys []foreignKey, target string) (fix string, sql []string, err error)
	// uncount returns how to make p, which should be of type target, count no more.
	uncount func(c *checker, p place, target string) (fix string, sql []string, err error)
}

// databases has them by the names of GORM's dialectors.
var databases = map[string]*database{"sqlite": &sqlite, "postgres": &postgres, "mysql": &mysql}
