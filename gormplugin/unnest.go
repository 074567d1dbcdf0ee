package gormplugin

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/pgtext"
	"github.com/snowkey/snowkey/internal/base/readback"
)

const (
	arraysName   = "snowflake:arrays"
	alteredName  = "snowflake:altered"
	valuesClause = "VALUES"
	// maxArray bounds the text of one array. PostgreSQL accepts parameters below 1 GiB.
	maxArray = 256 << 20
)

// An unnest sends the rows of one database as arrays.
type unnest struct {
	reads atomic.Bool // the types of some table could be read
}

// register registers the callbacks of the option.
func (u *unnest) register(db *gorm.DB) error {
	create := db.Callback().Create()
	return errors.Join(
		create.Before(anchorCreate).Register(arraysName, u.prepare),
		create.After(anchorCreate).Before(anchorAfter).Register(alteredName, u.explain),
	)
}

// ErrTableChanged means that a table was altered, or its name led to another one, between the look
// at its column types and the insert of a create with [WithUnnest]. Nothing of the statement is
// stored. Create the rows again; [InTx] does.
var ErrTableChanged = errors.New("gormplugin: table was altered while rows were sent to it")

// explain says what the error of a guard means.
func (u *unnest) explain(db *gorm.DB) {
	if pgtext.Altered(db.Error) {
		db.Error = fmt.Errorf("%w: %w", ErrTableChanged, db.Error)
	}
}

// prepare makes GORM build the clause VALUES by build. GORM keeps the builder when it sets
// the values.
func (u *unnest) prepare(db *gorm.DB) {
	if c := db.Statement.Clauses[valuesClause]; db.Error == nil && c.Builder == nil {
		c.Builder = u.build
		db.Statement.Clauses[valuesClause] = c
	}
}

// build writes the rows as arrays, or as GORM would.
func (u *unnest) build(c clause.Clause, b clause.Builder) {
	stmt, isStatement := b.(*gorm.Statement)
	values, known := c.Expression.(clause.Values)
	if isStatement && known && u.write(stmt, values) {
		return
	}
	c.Builder = nil
	c.Build(b)
}

// write writes values as arrays. It writes nothing and returns false if the rows have to be
// sent as VALUES.
func (u *unnest) write(stmt *gorm.Statement, values clause.Values) bool {
	if len(values.Values) < pgtext.ManyRows || len(values.Columns) == 0 || stmt.DryRun || stmt.Error != nil {
		return false
	}
	name := insertedInto(stmt.SQL.String())
	if name == "" {
		return false
	}
	table := u.table(stmt, name)
	arrays, ok := arrays(table, stmt, values)
	if !ok {
		return false
	}
	stmt.WriteQuoted(values.Columns)
	names := make([]string, len(values.Columns))
	for i, c := range values.Columns {
		names[i] = c.Name
	}
	table.WriteUnnest(&stmt.SQL, name, names, func(i int) { stmt.AddVar(stmt, arrays[i]) })
	return true
}

// insertedInto returns the quoted name of the table in text, the beginning of an INSERT. It
// returns "" if there is a modifier, a comment, an alias or an expression.
func insertedInto(text string) string {
	name, ok := strings.CutPrefix(text, "INSERT INTO ")
	name = strings.TrimSuffix(name, " ")
	if !ok {
		return ""
	}
	for i, token := range readback.Tokens(name) {
		if i%2 == 0 && !strings.HasPrefix(token, `"`) || i%2 == 1 && token != "." {
			return ""
		}
	}
	return name
}

// table reads the types of a table on the connection or pool of the insert. It returns a table
// without columns if they cannot be read. They are read for each statement, because a new
// release may alter the table at any time, and the insert with a type that the column no longer
// has is refused, see [pgtext.Table.Guard].
func (u *unnest) table(stmt *gorm.Statement, name string) *pgtext.Table {
	ctx, pool, t := stmt.Context, bare(stmt.ConnPool), (*pgtext.Table)(nil)
	describe := func() (err error) {
		t, err = pgtext.Describe(ctx, pool, name)
		return err
	}
	begin := time.Now()
	var err error
	if isTransaction(stmt.ConnPool) && !u.reads.Load() {
		// It fails on a server that only speaks the protocol of PostgreSQL. Where types could be read
		// once, a savepoint saves little, and costs two more statements.
		err = underSavepoint(ctx, pool, "snowkey_types", describe)
	} else {
		err = describe()
	}
	if err != nil {
		t = &pgtext.Table{}
	} else {
		u.reads.Store(true)
	}
	stmt.Logger.Trace(ctx, begin, func() (string, int64) {
		return stmt.Explain(pgtext.DescribeText, pgtext.DescribeArgs(name)...), int64(len(t.Columns))
	}, err)
	return t
}

// underSavepoint runs f under a savepoint of tx with this name, to which a failure rolls back.
func underSavepoint(ctx context.Context, tx dialect.Execer, name string, f func() error) error {
	if _, err := tx.ExecContext(ctx, "SAVEPOINT "+name); err != nil {
		return err
	}
	err := f()
	if err != nil {
		// If this fails, the connection is lost, and the insert fails as well.
		_, _ = tx.ExecContext(ctx, "ROLLBACK TO SAVEPOINT "+name)
	}
	if _, released := tx.ExecContext(ctx, "RELEASE SAVEPOINT "+name); err == nil {
		err = released
	}
	return err
}

// arrays returns the text of an array for each column of values. It reports false if a
// value has to be sent in VALUES.
func arrays(t *pgtext.Table, stmt *gorm.Statement, values clause.Values) ([]string, bool) {
	for _, c := range values.Columns {
		if t.Columns[c.Name].Type == 0 || c != (clause.Column{Name: c.Name}) || strings.ContainsAny(c.Name, `".`) {
			return nil, false
		}
	}
	arrays := make([]string, len(values.Columns))
	var b []byte
	for i, c := range values.Columns {
		e := element{stmt: stmt, encoder: pgtext.Encoder{Type: t.Columns[c.Name].Type, Format: t.Array()}}
		b = b[:0]
		for _, row := range values.Values {
			ok := i < len(row) && len(b) < maxArray
			if ok {
				b, ok = e.append(append(b, ','), row[i])
			}
			if !ok {
				return nil, false
			}
		}
		b[0] = '{'
		arrays[i] = string(append(b, '}'))
	}
	return arrays, true
}

// An element writes the values of one column.
type element struct {
	stmt    *gorm.Statement
	encoder pgtext.Encoder
}

// append appends v. It reports false if v has to be sent in VALUES. It tests the interfaces in the
// order in which GORM does.
func (e *element) append(b []byte, v any) (_ []byte, ok bool) {
	switch v := v.(type) {
	case gorm.Valuer:
		return e.appendValuer(b, v)
	case clause.Interface, clause.Expression:
		return b, false
	default:
		return e.encoder.Append(b, v)
	}
}

// appendValuer appends the value of a gorm.Valuer whose expression is a single parameter.
func (e *element) appendValuer(b []byte, v gorm.Valuer) (_ []byte, ok bool) {
	if f := reflect.ValueOf(v); f.Kind() == reflect.Pointer && f.IsNil() {
		return e.encoder.Append(b, nil)
	}
	expr := v.GormValue(e.stmt.Context, e.stmt.DB)
	if expr.SQL != "?" || len(expr.Vars) != 1 {
		return b, false
	}
	return e.append(b, expr.Vars[0])
}
