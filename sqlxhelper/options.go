package sqlxhelper

// An Option changes a [Helper] as [New] makes it, or as [Helper.With] does for
// some calls. An option that is given twice counts as given last.
type Option func(*config)

// A config is what the options say. It is copied with its Helper, so an option
// replaces slices and never appends to them.
type config struct {
	dialect   *Dialect // nil: by the driver name
	progress  func(done, total int)
	columns   []string // nil: all
	omit      []string
	conflict  conflict
	returning []string // nil: none; empty: all
	copy      copying
}

// WithDialect says which dialect all databases speak that the Helper is given,
// whatever their driver names are. A dialect that is none of the constants makes
// every call an error that matches [ErrDriver].
func WithDialect(d Dialect) Option {
	return func(c *config) { c.dialect = &d }
}

// OnProgress has report called during each call, after every statement, with how
// many rows of the call have been sent and how many there are, children
// included. The first report of a call is smaller than total if more than one
// statement is needed; the last one equals total. It comes from the goroutine of
// the call, inside the transaction, so it should be quick, and what it was told
// is undone if the call fails after all. A nil report is none.
func OnProgress(report func(done, total int)) Option {
	return func(c *config) { c.progress = report }
}

// Columns has only these columns written, and the primary key. What is left out
// gets the default of the database, and the field stays as it is: [Returning]
// reads it back.
//
// A bare name is a column of the rows that are given to the call; "table.column"
// is one of all rows that go into the table, for the relations of
// [Helper.InsertGraph]. Rows of a table that is not named are written whole. A
// name that is no column of the rows, no name at all, and a list without a
// foreign key that the call sets or without a column of the conflict target are
// errors that match [ErrArgument], before keys are assigned and before any SQL.
func Columns(names ...string) Option {
	return func(c *config) { c.columns = list(names) }
}

// Omit has these columns not written, named as for [Columns], and of those that
// [Columns] names, if it is given too. It is for columns that the database
// computes or has a default for. The primary key, a foreign key that the call
// sets and a column of the conflict target cannot be omitted. No names omit
// nothing.
func Omit(names ...string) Option {
	return func(c *config) { c.omit = list(names) }
}

// list returns a copy that is not nil.
func list(names []string) []string { return append([]string{}, names...) }

// OnConflictDoNothing leaves a row that is stored already as it is, instead of
// failing, and gives the struct its key. Stored is what has the same values in
// the target columns, as the database compares them; there has to be a unique
// index on exactly these columns. The rows that are not stored are inserted.
//
// The target may be left to [ConflictTarget], and one of them has to name it,
// for it is what the stored row is found by. On MySQL, whose statement cannot
// name it, a row that is like a stored one in another unique index is an error
// that matches [ErrUnresolved]; the other databases call it a duplicate key.
//
// Rows of one call with the same target are one row: all get the key of the first.
// Only the key is set: other fields may differ from what is stored, unless
// [Returning] reads them back.
//
// It applies to the table of the call. In [Helper.InsertGraph] all other rows are
// inserted plainly, children under the key of the stored row. Two rows of one
// tree, which refer to each other within the table, are a [*RowError]: both would
// be sent before it is known whose child the one is.
//
// A row that is stored and of which no stored row can be found, or several, is
// an error that matches [ErrUnresolved]: a trigger has dropped it, its value is
// changed as it is stored, its index takes two NULLs for the same. With a NULL in
// the target under any other index it is like no row, and inserted. Columns that are unknown or
// not written are errors that match [ErrArgument], before keys are assigned and
// before any SQL. After any error the keys are those that the structs had when
// the first statement was sent.
func OnConflictDoNothing(target ...string) Option {
	return func(c *config) {
		c.conflict.action, c.conflict.update = doNothing, nil
		if len(target) > 0 {
			c.conflict.target = list(target)
		}
	}
}

// OnConflictUpdate writes these columns of a row over those of a row that is
// stored already, instead of failing, and gives the struct the key of the stored
// row. [ConflictTarget] says what stored means, and all else is as with
// [OnConflictDoNothing]. Neither the primary key nor a target column can be
// updated: the one would change the key of a row that others refer to, the other
// is equal by definition.
//
// Several rows of a call with the same target update each other in their order
// on SQLite and MySQL. PostgreSQL calls that an error if they are in one
// statement.
func OnConflictUpdate(columns ...string) Option {
	return func(c *config) { c.conflict.action, c.conflict.update = doUpdate, list(columns) }
}

// ConflictTarget names the columns by which [OnConflictUpdate], or
// [OnConflictDoNothing] without columns of its own, recognizes a stored row:
// those of one unique index, or the primary key. It is an error without either
// of them.
func ConflictTarget(columns ...string) Option {
	return func(c *config) { c.conflict.target = list(columns) }
}

// A conflict is what the options say about rows that are stored already.
type conflict struct {
	action conflictAction
	target []string
	update []string
}

type conflictAction uint8

const (
	fail conflictAction = iota
	doNothing
	doUpdate
)

// Returning reads these columns back into the structs after the insert, for
// what the database computes, has a default for, rounds, or had stored before an
// upsert. Names are as for [Columns], and may be those of fields with the tag
// snowkey:"-". No names are all columns of the rows that are given to the call:
// those that are written, and those of fields with that tag which hold a single
// value. A sql.RawBytes cannot be read back: it shows memory of the driver.
//
// The rows are selected by their primary keys, in the transaction of the call,
// some hundreds at a time. That is one way for all databases: MySQL has no
// RETURNING; PostgreSQL promises no order for it, nor has COPY one; and what a
// trigger changes after the insert, or a row that DO NOTHING has met, is in none.
//
// Scanning is database/sql's, so a NULL needs a field that can be NULL, and its
// error names the column. That, and a row that is not found, which is an error
// that matches [ErrUnresolved], undo the call. Fields change only when it has
// succeeded.
func Returning(names ...string) Option {
	return func(c *config) { c.returning = list(names) }
}

// DefaultCopyRows is from how many rows on COPY is used, if [WithCopy] is not
// told otherwise. It needs round trips that other ways do not: at 2.4 ms each it
// took 2,000 rows to make up for them, on loopback 200, before there was one more
// to look at the types again.
const DefaultCopyRows = 2000

// copying is what WithCopy says.
type copying struct {
	copier Copier
	rows   int
}

// WithCopy sends rows to PostgreSQL by COPY where a table gets at least minRows
// in a call, or [DefaultCopyRows] if minRows is not positive. A nil Copier means
// none. Other databases, and rows that COPY would not store as INSERT does, are
// served as without it.
//
// On a pool such a call runs in a transaction of its own, and the COPY is part
// of it, as it is part of the caller's transaction otherwise. A Copier whose
// driver is not that of the database makes the calls that need it fail. After
// the COPY the types of the columns are looked at once more, and if they are not
// those that the rows were sent in, the error matches [ErrTableChanged].
func WithCopy(c Copier, minRows int) Option {
	if minRows <= 0 {
		minRows = DefaultCopyRows
	}
	return func(config *config) { config.copy = copying{c, minRows} }
}
