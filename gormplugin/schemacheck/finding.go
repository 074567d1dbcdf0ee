package schemacheck

// A Problem is a kind of [Finding].
type Problem string

// What Check finds.
const (
	// NotInstalled: GORM stores the key zero, see [gormplugin.Installed].
	NotInstalled Problem = "plugin not installed"
	// BadModel: every create of the model returns a [gormplugin.ModelError].
	BadModel Problem = "model cannot work"
	// NoKey: the plugin fills no column of the model, and the model does not say that this
	// is intended. It says so if its key is a foreign key, or has snowflake:-, a default
	// or, with another type than types.Snowflake, autoIncrement. A key of several fields
	// without an ID is taken for the key of a join table.
	NoKey Problem = "no key that the plugin fills"
	// OwnKey: only the program can set the key, see [gormplugin.OwnKey]. Plugin.Verify accepts such
	// a model, so that this is for the reader of the report alone.
	OwnKey Problem = "key that only the program sets"
	// SharedTable: two models of one table disagree on the columns that are filled, so one
	// of them stores rows that lack a key.
	SharedTable Problem = "models of one table differ in their keys"
	// MissingTable and MissingColumn: the models are ahead of the database, or it is the
	// wrong database.
	MissingTable  Problem = "table is missing"
	MissingColumn Problem = "column is missing"
	// NarrowColumn: keys do not fit. An int column may hold them while they are small, and
	// overflow at the worst moment.
	NarrowColumn Problem = "column is too narrow"
	// WrongType: the field is a number and the column is not. Keys then sort as text, 10
	// before 9, and no index serves comparisons. Or the field is a string and the column
	// does not accept digits, such as a uuid. Or keys would be written to a generated
	// column, which refuses them.
	WrongType Problem = "column is of the wrong type"
	// Sign: MySQL refuses a foreign key between a signed and an unsigned column. GORM makes
	// new columns with the sign of the model.
	Sign Problem = "signed and unsigned columns do not match"
	// Counted: the database still counts. A row that another program stores without a key
	// gets one from the database, on MySQL and SQLite one more than the largest, which the
	// plugin is about to store. On SQLite it is found where the key says AUTOINCREMENT, and
	// can be stopped; any other INTEGER PRIMARY KEY counts too.
	Counted Problem = "database counts as well"
	// PointerReference: GORM keeps such a pointer in memory after Association.Delete, and
	// the next Save writes it back. GORM panics in Preload where a tree has a key of
	// several columns.
	PointerReference Problem = "foreign key is a pointer"
	// NotStrict: the connection to MySQL has no strict mode. A value that does not fit a
	// column is cut and stored without an error, and text that is no number becomes 0.
	NotStrict Problem = "connection is not in strict mode"
	// ExpressionIndex: an upsert that meets a row by such an index cannot tell which row it
	// was. The key in memory becomes zero, or the create returns
	// [gormplugin.ErrUnresolved].
	ExpressionIndex Problem = "unique index on an expression"
	// NoRowID: on SQLite the key is an index beside the table instead of the table itself.
	// Only the exact words INTEGER PRIMARY KEY make it the table, not INT or BIGINT, and
	// not with DESC. Inserts are slower, the file is larger, and a key may be NULL, but
	// nothing breaks; see [gormplugin.UseRowIDs].
	NoRowID Problem = "key is not the rowid"
)

// A Finding is a present or future problem of a schema. It is an error for programs that
// end on one.
type Finding struct { //nolint:errname // most programs print it; that it is an error is the exception
	Problem Problem
	Model   string // the Go type; empty if it concerns the database
	Field   string // the field of Model, if it concerns one
	Table   string // as the model names it
	Column  string // as the model names it
	Is      string // what was found
	Want    string // what should be there
	Fix     string // the way out, in words
	// The way out in statements, if there is one. Read them before you run them. Run them
	// on one connection, up to the first error, while nothing writes to the tables. After
	// the statements of one finding call Check again, because another finding may have
	// changed.
	//
	// Where a value might be no key, a SELECT comes first and fails if there is one, before
	// anything has changed. Text has to be the decimal form of a key, and a number has to
	// be in its range.
	//
	// Columns that foreign keys bind change together. The foreign keys are dropped before
	// and restored afterwards. On PostgreSQL all of this is one transaction; after an error
	// run ROLLBACK. MySQL has no transaction for it: after an error past a DROP, mend what
	// the error says, and run that statement and the rest.
	//
	// On SQLite, statements only add columns.
	SQL []string
}

// Error returns the Finding in one line, without SQL.
func (f Finding) Error() string {
	text := "schemacheck: " + string(f.Problem)
	for _, part := range []struct{ before, value string }{
		{": ", f.Model}, {".", f.Field}, {", table ", f.Table}, {", column ", f.Column}, {": is ", f.Is}, {", want ", f.Want}, {"; ", f.Fix},
	} {
		if part.value != "" {
			text += part.before + part.value
		}
	}
	return text
}
