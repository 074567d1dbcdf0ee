package gormplugin

import (
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/snowkey/snowkey/internal/base/dialect"
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
// GORM writes DO NOTHING as an update that changes nothing. For the others it makes
// DO NOTHING of an UpdateAll without a column to update.
func (u upsert) updates(stmt *gorm.Statement) bool {
	switch {
	case !u.plain || len(u.conflict.Where.Exprs) > 0:
		return false
	case stmt.Dialector.Name() == mysqlName, !u.conflict.DoNothing && len(u.conflict.DoUpdates) > 0:
		return true
	case u.conflict.DoNothing || !u.conflict.UpdateAll:
		return false
	}
	selected, restricted := stmt.SelectAndOmitColumns(true, true)
	return slices.ContainsFunc(stmt.Schema.Fields, func(f *schema.Field) bool {
		on, named := selected[f.DBName]
		return f.DBName != "" && !f.PrimaryKey && (!f.HasDefaultValue || f.DefaultValueInterface != nil) && f.AutoCreateTime == 0 &&
			(on || !named && !restricted)
	})
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

// returnColumns makes the statement return the columns that the plugin fills, and reports
// whether it will. GORM asks for the columns that the database fills only if the clause is
// absent, so it names these too.
//
// It leaves alone a statement of which RowsAffected would change. GORM counts the rows that
// are returned, and MySQL counts two for a row that it updates and none for one that it
// leaves as it is. Callers do not see what an association has affected.
func (c *creation) returnColumns() bool {
	stmt := c.stmt
	asking, asked := stmt.Clauses["RETURNING"]
	returning, known := asking.Expression.(clause.Returning)
	if asked && !known || slices.ContainsFunc(c.columns, func(c column) bool { return !c.field.Readable }) {
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
	if len(list) == 0 && stmt.Dialector.Name() == mysqlName && !c.nested {
		return false
	}
	for _, column := range c.columns {
		if !named(column.field.DBName) {
			list = append(list, clause.Column{Name: column.field.DBName})
		}
	}
	asking.Name, asking.Expression = "RETURNING", clause.Returning{Columns: list}
	stmt.Clauses["RETURNING"] = asking
	return true
}
