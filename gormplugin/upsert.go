package gormplugin

import (
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/snowkey/snowkey/internal/dialect"
)

// The names of the GORM dialectors that differ in upserts.
const (
	mysqlName    = "mysql"
	postgresName = "postgres"
	sqliteName   = "sqlite"
)

var dialects = map[string]dialect.Dialect{
	mysqlName: dialect.MySQL, postgresName: dialect.PostgreSQL, sqliteName: dialect.SQLite,
}

// An upsert is what a statement does to stored rows that conflict with its own.
type upsert struct {
	conflict clause.OnConflict
	plain    bool // conflict says all; the clause is GORM's own type
	ignores  bool // there is no such clause but a modifier, as in INSERT IGNORE
	replaces bool // the modifier is another one, as in INSERT OR REPLACE
}

// upsertOf returns the upsert of stmt, if it is one.
func upsertOf(stmt *gorm.Statement) (upsert, bool) {
	if c, ok := stmt.Clauses["ON CONFLICT"]; ok && c.Expression != nil {
		conflict, known := c.Expression.(clause.OnConflict)
		return upsert{conflict: conflict, plain: known}, true
	}
	if c, ok := stmt.Clauses["INSERT"]; ok {
		if insert, known := c.Expression.(clause.Insert); known && insert.Modifier != "" {
			return upsert{ignores: true, replaces: !strings.HasSuffix(strings.ToUpper(strings.TrimSpace(insert.Modifier)), "IGNORE")}, true
		}
	}
	return upsert{}, false
}

// updates reports whether every row that is sent becomes or updates exactly one
// stored row. RETURNING then gives one row for each, in order. For MySQL and MariaDB
// GORM writes DO NOTHING as an update that changes nothing.
func (u upsert) updates(stmt *gorm.Statement) bool {
	return u.plain && len(u.conflict.Where.Exprs) == 0 &&
		(u.conflict.DoNothing && stmt.Dialector.Name() == mysqlName ||
			!u.conflict.DoNothing && (u.conflict.UpdateAll || len(u.conflict.DoUpdates) > 0))
}

// target returns the columns by which the upsert recognizes a stored row, as far as
// it names them. GORM adds the primary key to UpdateAll just before the insert. Where
// a constraint is named, GORM leaves the columns out.
func (u upsert) target(s *schema.Schema) []string {
	switch {
	case u.conflict.OnConstraint != "":
		return nil
	case len(u.conflict.Columns) == 0 && u.conflict.UpdateAll:
		return s.PrimaryFieldDBNames
	}
	names := make([]string, 0, len(u.conflict.Columns))
	for _, c := range u.conflict.Columns {
		names = append(names, c.Name)
	}
	return names
}

// countsInserts reports whether RowsAffected is the number of inserted rows. On MySQL
// it depends on a setting of the connection. With RETURNING and a slice GORM counts
// the slice. A statement that replaces also counts rows that it has removed again.
func (u upsert) countsInserts(stmt *gorm.Statement) bool {
	_, returning := stmt.Clauses["RETURNING"]
	name := stmt.Dialector.Name()
	return (u.ignores && !u.replaces || u.plain && u.conflict.DoNothing) &&
		!(returning && canReturn(stmt)) && (name == sqliteName || name == postgresName)
}

// canReturn reports whether the dialect of stmt writes RETURNING.
func canReturn(stmt *gorm.Statement) bool { return slices.Contains(stmt.BuildClauses, "RETURNING") }

// returnColumns makes stmt return columns and reports whether it will. GORM asks for
// the columns that the database fills only if the clause is absent, so it names these
// too.
func returnColumns(stmt *gorm.Statement, columns []column) bool {
	c, asked := stmt.Clauses["RETURNING"]
	returning, known := c.Expression.(clause.Returning)
	if asked && !known || slices.ContainsFunc(columns, func(c column) bool { return !c.field.Readable }) {
		return false
	}
	list := slices.Clone(returning.Columns)
	named := func(name string) bool {
		return slices.ContainsFunc(list, func(c clause.Column) bool { return c.Name == name })
	}
	if asked && (len(list) == 0 || named("*")) {
		return true
	}
	if !asked {
		for _, f := range stmt.Schema.FieldsWithDefaultDBValue {
			if f.Readable {
				list = append(list, clause.Column{Name: f.DBName})
			}
		}
	}
	for _, column := range columns {
		if !named(column.field.DBName) {
			list = append(list, clause.Column{Name: column.field.DBName})
		}
	}
	c.Name, c.Expression = "RETURNING", clause.Returning{Columns: list}
	stmt.Clauses["RETURNING"] = c
	return true
}
