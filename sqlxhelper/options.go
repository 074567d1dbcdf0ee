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
	partial   bool
	copier    Copier
	copyRows  int // from which on rows go to copier
}

// WithDialect says which dialect all databases speak that the Helper is given,
// whatever their driver names are. A dialect that is none of the constants makes
// every call an error that matches [ErrDriver].
func WithDialect(d Dialect) Option {
	return func(c *config) { c.dialect = &d }
}

// WithPartialCommits says that the database may commit a part of a transaction and then
// report that the COMMIT has failed, by any error, a serialization failure included. A
// coordinator of several servers without two-phase commit does that: postgres_fdw with
// foreign tables on more than one server; by their documentation Vitess with
// transaction_mode MULTI, and MariaDB's Spider without XA. So may whatever leads a new
// connection to another server that takes writes.
//
// Every error of a COMMIT then matches [ErrCommitUnknown], in [Helper.InTx] and in calls on
// a pool. The function of InTx is not run again after it, and no row is looked for: one
// that is there does not prove that the others are. Look for a row of each table, by the
// keys in the [*UnknownError]. A single statement on a pool has a transaction around it,
// since it could not be told from its COMMIT.
func WithPartialCommits() Option {
	return func(c *config) { c.partial = true }
}

// OnProgress calls report after every statement of a call. It passes how many rows
// have been sent and how many there are, children included. The first report is
// smaller than total if the call needs several statements. The last one equals
// total.
//
// report runs in the goroutine of the call, inside the transaction, so it should be
// quick. What it was told is undone if the call fails. A nil report is none.
func OnProgress(report func(done, total int)) Option {
	return func(c *config) { c.progress = report }
}

// Columns writes only these columns, and the primary key. The others get the
// default of the database, and their fields stay as they are. [Returning] reads them
// back.
//
// A bare name is a column of the rows that are given to the call. "table.column" is
// one of all rows that go into the table, for the relations of
// [Helper.InsertGraph]. Rows of a table that is not named are written whole.
//
// A name that is no column of the rows, and no name at all, are errors that match
// [ErrArgument]. So is a list that lacks a foreign key that the call sets, or a
// column of the conflict target. They come before keys are assigned and before any
// SQL.
func Columns(names ...string) Option {
	return func(c *config) { c.columns = list(names) }
}

// Omit leaves these columns out, which are named as for [Columns]. It also leaves
// them out of those that [Columns] names. Use it for columns that the database
// computes or has a default for. The primary key, a foreign key that the call sets
// and a column of the conflict target cannot be omitted. No names omit nothing.
func Omit(names ...string) Option {
	return func(c *config) { c.omit = list(names) }
}

// list returns a copy that is not nil.
func list(names []string) []string { return append([]string{}, names...) }

// OnConflictDoNothing leaves a stored row as it is, instead of failing, and sets its
// key in the struct. A row is stored if another one has the same values in the target
// columns, as the database compares them. A unique index on exactly these columns
// has to exist. All other rows are inserted.
//
// Name the target here or by [ConflictTarget]. MySQL cannot name it in the
// statement. There a row that is like a stored one in another unique index is an
// error that matches [ErrUnresolved]. On the other databases it is a duplicate key.
//
// Rows of one call with the same target are one row: all get the key of the first.
// Only the key is set. [Returning] reads other fields back.
//
// The option applies to the table of the call. In [Helper.InsertGraph] all other rows
// are inserted plainly, children under the key of the stored row. If two rows of the
// table refer to each other, the call fails with a [*RowError]. Both would be sent
// before the stored parent is known.
//
// If the stored row cannot be found, or there are several, the error matches
// [ErrUnresolved]. A trigger may have dropped the row. Its value may be changed when
// it is stored. Or its index may take two NULLs for the same. Under any other index
// a row with a NULL in the target is inserted.
//
// Columns that are unknown or not written are errors that match [ErrArgument], before
// keys are assigned and before any SQL. After any error the keys are those that the
// structs had when the first statement was sent.
func OnConflictDoNothing(target ...string) Option {
	return func(c *config) {
		c.conflict.action, c.conflict.update = doNothing, nil
		if len(target) > 0 {
			c.conflict.target = list(target)
		}
	}
}

// OnConflictUpdate writes these columns of a row over those of a stored row, instead
// of failing. It sets the stored row's key in the struct. Name the target by
// [ConflictTarget]. All else is as with [OnConflictDoNothing]. Neither the primary
// key nor a target column can be updated.
//
// Several rows of a call with the same target update each other in their order on
// SQLite and MySQL. PostgreSQL reports an error if they are in one statement.
func OnConflictUpdate(columns ...string) Option {
	return func(c *config) { c.conflict.action, c.conflict.update = doUpdate, list(columns) }
}

// ConflictTarget names the columns by which [OnConflictUpdate] recognizes a stored
// row: those of one unique index, or the primary key. It serves
// [OnConflictDoNothing] too, if that names none. Without either of them it is an
// error.
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

// Returning reads these columns back into the structs after the insert. Use it for
// what the database computes, has a default for, rounds, or had stored before an
// upsert. Names are as for [Columns], and may be those of fields with the tag
// snowkey:"-". No names mean all columns of the rows of the call. These are the
// columns that are written, and fields with that tag that hold a single value. A
// sql.RawBytes cannot be read back, because it shows memory of the driver.
//
// The rows are selected by their primary keys, in the transaction of the call, some
// hundreds at a time. All databases can do that. MySQL has no RETURNING, PostgreSQL
// promises no order for it, and COPY has none. It also misses what a trigger changes
// after the insert.
//
// Values are scanned as database/sql does, so a NULL needs a field that can be NULL.
// The error names the column. A row that is not found is an error that matches
// [ErrUnresolved]. Both undo the call. Fields change only when it has succeeded.
func Returning(names ...string) Option {
	return func(c *config) { c.returning = list(names) }
}

// DefaultCopyRows is the number of rows from which on COPY is used, if [WithCopy] is
// given none. COPY needs more round trips. At 2.4 ms each it took 2,000 rows to make
// up for them, and on loopback 200.
const DefaultCopyRows = 2000

// WithCopy sends rows to PostgreSQL by COPY where a table gets at least minRows in a
// call. If minRows is not positive, it is [DefaultCopyRows]. A nil Copier means none.
// Rows that COPY would not store as INSERT does go as without it. So do all rows on
// other databases.
//
// On a pool such a call runs in a transaction of its own. A Copier whose driver is
// not that of the database makes the calls that need it fail. After the COPY the
// types of the columns are read once more. If they have changed, the error matches
// [ErrTableChanged].
func WithCopy(c Copier, minRows int) Option {
	if minRows <= 0 {
		minRows = DefaultCopyRows
	}
	return func(config *config) { config.copier, config.copyRows = c, minRows }
}
