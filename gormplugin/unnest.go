package gormplugin

import (
	"context"
	"strings"
	"sync"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/snowkey/snowkey/internal/base/pgtext"
)

const (
	arraysName    = "snowflake:arrays"
	learnName     = "snowflake:learn"
	valuesClause  = "VALUES"
	lookupSetting = "snowkey:lookup"
	// maxArray bounds the text of one array. PostgreSQL takes parameters below 1 GiB.
	maxArray = 256 << 20
)

// WithUnnest makes GORM send the rows of a create to PostgreSQL as arrays, one per
// column:
//
//	INSERT INTO "orders" ("id","number") SELECT unnest($1::bigint[]), unnest($2::text[])
//
// Use it where creates have many rows. It is faster than VALUES, and 65,535 parameters
// are no limit. What is stored is the same, in the same order, with the same errors.
// RETURNING and ON CONFLICT, hooks, batches and prepared statements work as before. On
// other databases the option does nothing.
//
// These creates go by VALUES, as a whole:
//   - those of at most 10 rows, and dry runs;
//   - those with an expression in a row, such as gorm.Expr, or with a default of the
//     database in some of the rows;
//   - those with a value that some driver stores otherwise, or refuses: a slice or a
//     json.RawMessage, a number or text that the column cannot hold, a time that is
//     not UTC for a column without time zone, and text of a driver.Valuer for a column
//     other than text, JSON, numeric and uuid;
//   - those with a column of an array, domain, composite or range type, or of a type
//     with a length that is no character type, such as bit(3);
//   - those into a view, a foreign table or a table with rules, and statements with a
//     modifier or an alias.
//
// The plugin reads the column types of a table from the catalog, when a create first has
// more rows. In a transaction it does so under a savepoint. It keeps them for the life
// of the database, or until a create in that table fails. So all connections of a
// database should find the same types under the name of a table.
//
// Restart a program after a column got another type. Until then PostgreSQL takes the
// values as of the old type, and converts them.
func WithUnnest() Option { return withUnnest{} }

type withUnnest struct{}

func (withUnnest) apply(p *Plugin) { p.unnest = true }

// An unnest sends the rows of one database as arrays. It knows the types of its tables.
type unnest struct {
	tables sync.Map // table, as SQL → *pgtext.Table
}

// A lookup is what one statement has asked of its table.
type lookup struct {
	stmt  *gorm.Statement
	name  string
	table *pgtext.Table
}

// register registers the callbacks of the option.
func (u *unnest) register(db *gorm.DB) error {
	create := db.Callback().Create()
	if err := create.Before(anchorCreate).Register(arraysName, u.prepare); err != nil {
		return err
	}
	return create.After(anchorCreate).Before(anchorAfter).Register(learnName, u.learn)
}

// prepare has GORM build the clause VALUES by build. GORM keeps the builder when it
// sets the values.
func (u *unnest) prepare(db *gorm.DB) {
	if c := db.Statement.Clauses[valuesClause]; db.Error == nil && c.Builder == nil {
		c.Builder = u.build
		db.Statement.Clauses[valuesClause] = c
	}
}

// build writes the rows as arrays, or as GORM would.
func (u *unnest) build(c clause.Clause, b clause.Builder) {
	stmt, ours := b.(*gorm.Statement)
	values, known := c.Expression.(clause.Values)
	if ours && known && u.write(stmt, values) {
		return
	}
	c.Builder = nil
	c.Build(b)
}

// write writes values as arrays. If some of them have to go by VALUES, it writes
// nothing and returns false.
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
	// The calls stand in the list of what is selected, where they advance together.
	// After FROM each would first be written to a table of its own.
	for i, array := range arrays {
		stmt.SQL.WriteString([...]string{" SELECT unnest(", ", unnest("}[min(i, 1)])
		stmt.AddVar(stmt, array)
		stmt.SQL.WriteString("::" + table.Columns[values.Columns[i].Name].Name + "[])")
	}
	return true
}

// insertedInto returns the table in text, the begin of an INSERT, as it is quoted
// there. It returns nothing if there is a modifier, a comment, an alias or an
// expression.
func insertedInto(text string) string {
	name, ok := strings.CutPrefix(text, "INSERT INTO ")
	name = strings.TrimSuffix(name, " ")
	if !ok {
		return ""
	}
	for i, token := range tokensOf(name) {
		if i%2 == 0 && !strings.HasPrefix(token, `"`) || i%2 == 1 && token != "." {
			return ""
		}
	}
	return name
}

// learn keeps the types of a table that rows were created in. After an error it forgets
// them, because the table may have changed.
func (u *unnest) learn(db *gorm.DB) {
	v, ok := db.Statement.Settings.LoadAndDelete(lookupSetting)
	if !ok {
		return
	}
	l, _ := v.(*lookup)
	switch {
	case l.stmt != db.Statement: // that of an outer statement, of which GORM copied the settings
	case db.Error == nil && l.table.Lasts:
		u.tables.Store(l.name, l.table)
	default:
		u.tables.Delete(l.name)
	}
}

// table returns what is known of a table. If it cannot be read, that is a table without
// columns.
func (u *unnest) table(stmt *gorm.Statement, name string) *pgtext.Table {
	l := &lookup{stmt: stmt, name: name}
	if known, ok := u.tables.Load(name); ok {
		l.table, _ = known.(*pgtext.Table)
	} else {
		l.table = readTable(stmt, name)
	}
	stmt.Settings.Store(lookupSetting, l)
	return l.table
}

// readTable reads a table on the connection or pool of the insert.
func readTable(stmt *gorm.Statement, name string) *pgtext.Table {
	ctx, pool, describe := stmt.Context, stmt.ConnPool, pgtext.Describe
	if committer, ok := pool.(gorm.TxCommitter); ok && committer != nil {
		describe = describeInTx
	}
	switch p := pool.(type) { // which would keep the statements prepared
	case *gorm.PreparedStmtDB:
		pool = p.ConnPool
	case *gorm.PreparedStmtTX:
		pool = p.Tx
	}
	begin := time.Now()
	t, err := describe(ctx, pool, name)
	if err != nil {
		t = &pgtext.Table{Lasts: true}
	}
	stmt.Logger.Trace(ctx, begin, func() (string, int64) {
		return stmt.Explain(pgtext.DescribeText, pgtext.DescribeArgs(name)...), int64(len(t.Columns))
	}, err)
	return t
}

// describeInTx is [pgtext.Describe] under a savepoint, which takes back a failure.
func describeInTx(ctx context.Context, tx pgtext.DB, name string) (*pgtext.Table, error) {
	const savepoint = "snowkey_types"
	if _, err := tx.ExecContext(ctx, "SAVEPOINT "+savepoint); err != nil {
		return nil, err
	}
	t, err := pgtext.Describe(ctx, tx, name)
	if err != nil {
		// If this fails, the connection is gone, as the insert will say.
		_, _ = tx.ExecContext(ctx, "ROLLBACK TO SAVEPOINT "+savepoint)
	}
	if _, released := tx.ExecContext(ctx, "RELEASE SAVEPOINT "+savepoint); err == nil {
		err = released
	}
	return t, err
}
