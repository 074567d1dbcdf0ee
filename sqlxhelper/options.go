package sqlxhelper

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx/reflectx"
)

// An Option configures a [Helper], in [New] or for some calls in [Helper.With]. The last of
// several equal options takes effect.
type Option func(*config)

// A config holds the options. It is copied with its Helper, so an option replaces slices and
// never appends to them.
type config struct {
	dialect   *Dialect // nil: by the driver name
	progress  func(done, total int)
	columns   []string // nil: all
	omit      []string
	conflict  conflict
	returning []string // nil: none; empty: all
	partial   bool
	integers  bool // integers are keys
	wide      bool // with integers: keys may have more than 53 bits
	copier    Copier
	copyRows  int // from which on rows go to copier
}

// WithDialect sets the dialect of all databases that the Helper is given, whatever their driver
// names are. With any other value than the constants, every call returns an error that
// matches [ErrDriver].
func WithDialect(d Dialect) Option {
	return func(c *config) { c.dialect = &d }
}

// WithPartialCommits declares that the database may commit part of a transaction and then
// report that the COMMIT failed, by any error, a serialization failure included. A coordinator
// of several servers without two-phase commit does that, such as postgres_fdw with foreign
// tables on more than one server and, according to their documentation, Vitess with
// transaction_mode MULTI and MariaDB's Spider without XA. So may anything that directs a new
// connection to another server that accepts writes.
//
// Every error of a COMMIT then matches [ErrCommitUnknown], in [Helper.InTx] and in calls on a
// pool. InTx does not run its function again after it, and no row is looked for, because one
// that is present does not prove that the others are. Look for a row of each table, by the keys
// in the [*UnknownError]. A single statement on a pool is sent in a transaction, because
// otherwise its own error could not be told from that of its COMMIT.
func WithPartialCommits() Option {
	return func(c *config) { c.partial = true }
}

// OnProgress calls report after every statement of a call with the number of rows sent so far
// and the total, children included. If the call needs several statements, the first report is
// smaller than total; the last one equals it.
//
// report runs in the goroutine of the call, inside the transaction, so it should be quick. The
// rows that it counted are undone if the call fails. A nil report disables the option.
func OnProgress(report func(done, total int)) Option {
	return func(c *config) { c.progress = report }
}

// Columns restricts the columns that are written to these and the primary key. The others get
// the database's default, and their fields stay as they are; [Returning] reads them back.
//
// A bare name is a column of the rows that are given to the call. "table.column" is a column of
// all rows that go into the table, for the relations of [Helper.InsertGraph]. Rows of a table
// that is not named are written whole.
//
// An empty list, a name that is no column of the rows, and a list without a foreign key that
// the call sets or without a column of the conflict target are errors that match [ErrArgument],
// before keys are assigned and before any SQL.
func Columns(names ...string) Option {
	return func(c *config) { c.columns = list(names) }
}

// Omit leaves these columns out, also of the columns that [Columns] names; names are written as
// for Columns. Use it for columns that the database computes or has a default for. The primary
// key, a foreign key that the call sets and a column of the conflict target cannot be omitted.
// Without names it omits nothing.
func Omit(names ...string) Option {
	return func(c *config) { c.omit = list(names) }
}

// list returns a copy that is not nil.
func list(names []string) []string { return append([]string{}, names...) }

// OnConflictDoNothing leaves a stored row unchanged instead of failing, and sets its key in the
// struct. A row counts as stored if another one has the same values in the target columns, as
// the database compares them. A unique index on exactly these columns must exist. All other
// rows are inserted.
//
// Name the target here or by [ConflictTarget]. MySQL cannot name it in the statement; there, a
// row that matches a stored one in another unique index is an error that matches
// [ErrUnresolved], while on the other databases it is a duplicate key.
//
// Rows of one call with the same target become one row, and all get the key of the first. Only
// the key is set; [Returning] reads other fields back.
//
// The option applies to the table of the call. [Helper.InsertGraph] inserts all other rows
// plainly, with children under the key of the stored row. If two rows of the table refer to
// each other, the call fails with a [*RowError], because both would be sent before the stored
// parent is known.
//
// If there is no such stored row, or more than one, the error matches [ErrUnresolved]: a
// trigger may have dropped the row, the stored value may differ from the one that was sent, or
// the index may treat NULLs as equal. Under any other index a row with a NULL in the target is
// inserted.
//
// Columns that are unknown or not written are errors that match [ErrArgument], before keys are
// assigned and before any SQL. After any error the structs have the keys that they had when the
// first statement was sent.
func OnConflictDoNothing(target ...string) Option {
	return func(c *config) {
		c.conflict.action, c.conflict.update = doNothing, nil
		if len(target) > 0 {
			c.conflict.target = list(target)
		}
	}
}

// OnConflictUpdate writes these columns of a row over those of the stored row instead of
// failing, and sets the stored row's key in the struct. Name the target by [ConflictTarget].
// Everything else is as with [OnConflictDoNothing]. Neither the primary key nor a target column
// can be updated.
//
// Several rows of a call with the same target update each other in their order on SQLite and
// MySQL. PostgreSQL reports an error if they are in one statement.
func OnConflictUpdate(columns ...string) Option {
	return func(c *config) { c.conflict.action, c.conflict.update = doUpdate, list(columns) }
}

// ConflictTarget names the columns by which [OnConflictUpdate] recognizes a stored row: those
// of one unique index, or the primary key. It serves [OnConflictDoNothing] too if that names
// none. On its own it is an error.
func ConflictTarget(columns ...string) Option {
	return func(c *config) { c.conflict.target = list(columns) }
}

// A conflict is the treatment of rows that are already stored.
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

// Returning reads these columns back into the structs after the insert. Use it for values that
// the database computes, defaults, rounds, or had stored before an upsert. Names are written as
// for [Columns], and may also be those of fields with the tag snowkey:"-". Without names it
// reads all columns of the rows of the call: those that are written, and fields with that tag
// that hold a single value. A sql.RawBytes cannot be read back, because it refers to memory of
// the driver.
//
// The rows are selected by their primary keys, in the transaction of the call, some hundreds at
// a time. This works on all databases, whereas MySQL has no RETURNING, PostgreSQL promises no
// order for it, COPY lacks it, and it misses the changes of triggers that run after the insert.
//
// Values are scanned as database/sql does, so a NULL needs a field that can be NULL; the error
// names the column. A row that is not found is an error that matches [ErrUnresolved]. Both undo
// the call, and fields change only if it has succeeded.
func Returning(names ...string) Option {
	return func(c *config) { c.returning = list(names) }
}

// defaultCopyRows is what [WithCopy] uses without a number. COPY needs more round trips, which took 2,000 rows to recover at 2.4 ms each, and 200 rows on loopback.
const defaultCopyRows = 2000

// WithCopy sends rows to PostgreSQL by COPY if a table gets at least minRows in a call, or
// 2,000 if minRows is 0 or negative. A nil Copier disables COPY. Rows that COPY
// would store differently than INSERT are sent by INSERT, as are all rows on other databases.
//
// On a pool such a call runs in a transaction of its own. If the Copier's driver is not the
// database's, the calls that need it fail. After the COPY the types of the columns are read
// once more; if they have changed, the error matches [ErrTableChanged].
//
// # Which rows go by VALUES
//
// Without COPY, more than 10 rows go by unnest. Neither carries a row that some drivers encode
// differently, nor the rows after it: integers in text and float columns, bytes in json and text
// columns, times outside UTC in columns without time zone, values out of range, types with a
// String method and those of pgtype, and types other than basic types, a time, []byte, pointers
// to these, a driver.Valuer that returns one, and any.
//
// All rows go by VALUES if a column is an array, a range, a domain, a composite type, a box or
// generated; if its type has a length, such as bit(3), other than character types, numeric and
// timestamps; if the table has rules, or is a view or a foreign table; or if the session has
// array_nulls off. A table with row level security gets no COPY, and neither does a session whose
// client_encoding is not UTF8.
func WithCopy(c Copier, minRows int) Option {
	if minRows <= 0 {
		minRows = defaultCopyRows
	}
	return func(config *config) { config.copier, config.copyRows = c, minRows }
}

// apply applies the options to the tables of a schema, or returns why they do not fit.
func (c *config) apply(s *schema, m *reflectx.Mapper) error {
	if err := c.choose(s); err != nil {
		return err
	}
	if c.conflict.action != fail || c.conflict.target != nil {
		if err := c.conflict.apply(s.dialect, s.tables[0]); err != nil {
			return err
		}
	}
	if c.returning != nil {
		return s.readBack(c.returning, m)
	}
	return nil
}

// choose applies Columns and Omit.
func (c *config) choose(s *schema) error {
	if c.columns == nil && c.omit == nil {
		return nil
	}
	if c.columns != nil && len(c.columns) == 0 {
		return fmt.Errorf("%w: Columns names no column", ErrArgument)
	}
	only, err := s.named("Columns", c.columns)
	if err != nil {
		return err
	}
	but, err := s.named("Omit", c.omit)
	if err != nil {
		return err
	}
	for _, t := range s.tables {
		key := t.key.name
		left := func(c column) bool {
			return only[t] != nil && c.name != key && !slices.Contains(only[t], c.name) || slices.Contains(but[t], c.name)
		}
		for i := range t.plan.columns {
			switch c := &t.plan.columns[i]; {
			case !left(*c):
			case c.name == key:
				return fmt.Errorf("%w: Omit: %s is the primary key of %v", ErrArgument, key, t.plan.typ)
			case s.relates(c):
				return fmt.Errorf("%w: the options leave out %s, a foreign key that InsertGraph sets in %v", ErrArgument, c.name, t.plan.typ)
			}
		}
		if only[t] != nil || but[t] != nil {
			t.columns = slices.DeleteFunc(slices.Clone(t.plan.columns), left)
		}
	}
	return nil
}

// named returns the columns that an option names, by table.
func (s *schema) named(option string, names []string) (map[*table][]string, error) {
	found := map[*table][]string{}
	err := s.each(option, names, func(t *table, column string) bool {
		if t.plan.indexOf(column) < 0 {
			return false
		}
		found[t] = append(found[t], column)
		return true
	})
	return found, err
}

// relates reports whether a relation that the call follows sets a column.
func (s *schema) relates(fk *column) bool {
	return slices.ContainsFunc(s.tables, func(t *table) bool {
		relations := t.plan.relations[:len(t.related)] // none without a walk
		return slices.ContainsFunc(relations, func(o relation) bool { return o.fk == fk })
	})
}

// each calls use for every table to which a name of an option refers. It returns an error if
// there is none, or if use returns false for all of them: several types may share a table.
func (s *schema) each(option string, names []string, use func(t *table, column string) bool) error {
	for _, name := range names {
		tables, column := s.tables[:1], name
		if dot := strings.LastIndexByte(name, '.'); dot >= 0 {
			column = name[dot+1:]
			tables = slices.DeleteFunc(slices.Clone(s.tables), func(t *table) bool { return t.name != name[:dot] })
			if len(tables) == 0 {
				return fmt.Errorf("%w: %s: %q: the call writes nothing into table %q", ErrArgument, option, name, name[:dot])
			}
		}
		used := false
		for _, t := range tables {
			used = use(t, column) || used
		}
		if !used {
			return fmt.Errorf("%w: %s: %q: %v has no field for column %q", ErrArgument, option, name, tables[0].plan.typ, column)
		}
	}
	return nil
}
