package schemacheck

// A Problem is a kind of [Finding].
type Problem string

// What Check finds.
const (
	// NotInstalled: GORM would store the zero key, see [gormplugin.Installed].
	NotInstalled Problem = "plugin not installed"
	// BadModel: every create of the model is a [gormplugin.ModelError].
	BadModel Problem = "model cannot work"
	// NoKey: the plugin fills no column of the model, and the model does not say
	// that this is meant. It says so if its key is a foreign key, or has
	// snowflake:-, a default or, on another type than types.Snowflake, autoIncrement. A key of several fields without an ID
	// is taken for that of a join table.
	NoKey Problem = "no key that the plugin fills"
	// SharedTable: two models of one table disagree on the columns that are filled.
	// So one of them stores rows that lack a key.
	SharedTable Problem = "models of one table differ in their keys"
	// MissingTable and MissingColumn: the models are ahead of the database, or
	// it is another database than meant.
	MissingTable  Problem = "table is missing"
	MissingColumn Problem = "column is missing"
	// NarrowColumn: keys do not fit. An int column may hold them for as long as
	// they are small, or be full at the worst moment.
	NarrowColumn Problem = "column is too narrow"
	// WrongType: the field is a number and the column is none. Keys then sort as
	// text, 10 before 9, and no index serves to compare them. Or the field is a
	// string and the column takes no digits as they are, such as a uuid. Or keys
	// are to be written to a generated column, which refuses them.
	WrongType Problem = "column is of the wrong type"
	// Sign: MySQL refuses a foreign key between a signed and an unsigned column.
	// GORM makes new columns as the model says.
	Sign Problem = "signed and unsigned columns do not match"
	// Counted: the database still counts. A row that other programs store without a
	// key gets one of the database's. On MySQL and SQLite that is one more than the
	// largest. The plugin is about to store that one. On SQLite it is found where the
	// key says AUTOINCREMENT, and can be stopped. Any other INTEGER PRIMARY KEY counts too.
	Counted Problem = "database counts as well"
	// PointerReference: GORM keeps such a pointer in memory after
	// Association.Delete. The next Save writes it back. It panics in Preload where
	// a tree has a key of several columns.
	PointerReference Problem = "foreign key is a pointer"
	// NotStrict: on MySQL, the connection has no strict mode. What does not fit a
	// column is cut and stored, without an error. Text that is no number becomes 0.
	NotStrict Problem = "connection is not in strict mode"
	// ExpressionIndex: an upsert that meets a row by such an index cannot tell which
	// row it was. The key in memory becomes zero, or the create is
	// [gormplugin.ErrUnresolved].
	ExpressionIndex Problem = "unique index on an expression"
	// NoRowID: on SQLite the key is an index beside the table instead of the table
	// itself. Only the exact words INTEGER PRIMARY KEY make it the table, not INT
	// or BIGINT, and not with DESC. Inserts are slower, the file is larger, and a
	// key may be NULL. Nothing breaks; see [gormplugin.UseRowIDs].
	NoRowID Problem = "key is not the rowid"
)

// A Finding is a present or future problem of a schema. It is an error, for
// programs that end on one.
type Finding struct { //nolint:errname // most programs print it; that it is an error is the exception
	Problem Problem
	Model   string // the Go type; empty if it concerns the database
	Field   string // the field of Model, if it concerns one
	Table   string // as the model names it
	Column  string // as the model names it
	Is      string // what was found
	Want    string // what should be there
	Fix     string // the way out, in words
	// The way out in statements, if there is one. Read them before you run them. Run
	// them on one connection, up to the first error, while nothing writes to the
	// tables. After those of one finding call Check again, because another finding
	// may have changed.
	//
	// Where a value might be no key, a SELECT comes first, and fails if there is one.
	// Text has to be the decimal form of a key. A number has to be in its range.
	// Nothing is changed by then.
	//
	// Columns that foreign keys bind change together. The foreign keys are dropped
	// before and restored after, as they were. On PostgreSQL that is one transaction.
	// After an error run ROLLBACK. MySQL has none for it. After an error past a DROP,
	// mend what the error says. Then run that statement and the rest.
	//
	// On SQLite only a column is added so.
	SQL []string
}

// Error returns all of the Finding but SQL in one line.
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
