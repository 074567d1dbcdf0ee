package gormcases

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm"

	"github.com/snowkey/snowkey/gormplugin/schemacheck"
)

// allFindings returns what Check finds.
func (e *env) allFindings(models ...any) []schemacheck.Finding {
	e.Helper()
	findings, err := schemacheck.Check(e.Context(), e.db, models...)
	if err != nil {
		e.Fatalf("Check = %v; want no error", err)
	}
	return findings
}

// check returns what Check finds. It leaves out findings that are by design on
// SQLite. It also leaves out those on pointers, which many models here have.
func (e *env) check(db *gorm.DB, models ...any) []schemacheck.Finding {
	e.Helper()
	findings, err := schemacheck.Check(e.Context(), db, models...)
	if err != nil {
		e.Fatalf("Check = %v; want no error", err)
	}
	return slices.DeleteFunc(findings, func(f schemacheck.Finding) bool {
		return f.Problem == schemacheck.NoRowID || f.Problem == schemacheck.PointerReference
	})
}

// finds fails the test unless Check finds exactly want, each written as
// "problem field".
func (e *env) finds(models []any, want ...string) []schemacheck.Finding {
	e.Helper()
	findings := e.check(e.db, models...)
	var got []string
	for _, f := range findings {
		got = append(got, strings.TrimSpace(string(f.Problem)+" "+f.Field))
		if text := f.Error(); !strings.HasPrefix(text, "schemacheck: ") || strings.Contains(text, "\n") {
			e.Errorf("Error() = %q; want one line of schemacheck's", text)
		}
	}
	if !slices.Equal(got, want) {
		e.Fatalf("Check found %q (%v); want %q", got, findings, want)
	}
	return findings
}

// ddl makes a table of the case by hand. Names in backquotes are quoted as the
// database does it.
func (e *env) ddl(text string) {
	e.Helper()
	if !e.mysql() {
		text = strings.ReplaceAll(text, "`", `"`)
	}
	e.must(e.db.Exec(strings.ReplaceAll(text, "PRE_", e.prefix)))
}

// repair runs the statements of a finding on one connection. On SQLite some have words.
func (e *env) repair(f schemacheck.Finding) {
	e.Helper()
	if e.sqlite() && len(f.SQL) == 0 {
		e.inWords(f, "https://www.sqlite.org/lang_altertable.html")
		return
	}
	if err := e.tryRepair(f); err != nil {
		e.Errorf("way out of %v = %v; want no error", f, err)
	}
}

// tryRepair does so up to the first error, and then what Finding.SQL says.
func (e *env) tryRepair(f schemacheck.Finding) error {
	e.Helper()
	if len(f.SQL) == 0 {
		e.Errorf("finding %v has no SQL; want some", f)
	}
	return e.db.Connection(func(tx *gorm.DB) error {
		tx = tx.Session(&gorm.Session{SkipDefaultTransaction: true})
		for _, text := range f.SQL {
			if err := tx.Exec(text).Error; err != nil {
				if e.postgres() {
					e.must(tx.Exec("ROLLBACK"))
				}
				return fmt.Errorf("%s: %w", text, err)
			}
		}
		return nil
	})
}

// refuses fails the test unless the fix of f, a finding on model, is an error. It
// has to leave the table and these columns as they are.
func (e *env) refuses(f schemacheck.Finding, model any, columns ...string) {
	e.Helper()
	rows := func() (list [][]string) {
		for _, column := range columns {
			var values []string // a type that PostgreSQL's driver may remember
			e.must(e.db.Table(f.Table).Select("COALESCE(CAST(" + column + " AS char(60)), 'NULL')").Scan(&values))
			slices.Sort(values)
			list = append(list, values)
		}
		return list
	}
	before := rows()
	if err := e.tryRepair(f); err == nil {
		e.Errorf("way out of %v = nil; want an error", f)
	}
	if after := rows(); !reflect.DeepEqual(before, after) {
		e.Errorf("%v after an error = %v; want %v", columns, after, before)
	}
	again, err := schemacheck.Check(e.Context(), e.db, model)
	if err != nil || !slices.ContainsFunc(again, func(g schemacheck.Finding) bool { return reflect.DeepEqual(f, g) }) {
		e.Errorf("Check after an error = %v, %v; want %v in it as before", again, err, f)
	}
}

// repairs does so one finding after another until nothing is found.
func (e *env) repairs(models ...any) {
	e.Helper()
	for range 10 {
		findings := e.check(e.db, models...)
		if len(findings) == 0 {
			return
		}
		e.repair(findings[0])
		if e.sqlite() && len(findings[0].SQL) == 0 {
			return
		}
	}
	e.Errorf("after ten repairs Check finds %v; want nothing", e.check(e.db, models...))
}

// mariadb reports whether the database is MariaDB, and not MySQL.
func (e *env) mariadb() bool {
	e.Helper()
	return e.names("MariaDB")
}

// tidb reports whether the database is TiDB, which runs the cases of MySQL.
func (e *env) tidb() bool {
	e.Helper()
	return e.names("TiDB")
}

// names reports whether a server that speaks like MySQL has a name in its version.
func (e *env) names(name string) bool {
	e.Helper()
	var version string
	if e.mysql() {
		e.must(e.db.Raw("SELECT version()").Scan(&version))
	}
	return strings.Contains(version, name)
}

// only skips the case unless it is for this database.
func (e *env) only(here bool, why string) {
	e.Helper()
	if !here {
		e.Skip(why)
	}
}

// inWords fails the test unless f has no statements, and its words contain part.
func (e *env) inWords(f schemacheck.Finding, part string) {
	e.Helper()
	if len(f.SQL) != 0 || f.Fix == "" || !strings.Contains(f.Fix, part) {
		e.Errorf("finding = %v, SQL %q; want no SQL, and %q in words", f, f.SQL, part)
	}
}

// countsNoMore fails the test if the database takes a row without a key.
func (e *env) countsNoMore(table string) {
	e.Helper()
	if e.db.Exec("INSERT INTO "+e.prefix+table).Error == nil {
		e.Error("INSERT without a key = nil; want an error, since nothing counts any more")
	}
}

func (e *env) sqlite() bool   { return e.db.Name() == "sqlite" }
func (e *env) postgres() bool { return e.db.Name() == "postgres" }

// constraints returns the foreign keys of the case from the database, in order:
// name, columns, table, rules. The types of columns are not in it.
func (e *env) constraints() (list []string) {
	e.Helper()
	if e.sqlite() {
		return nil
	}
	text := `SELECT CONCAT_WS(' ', k.constraint_name, k.table_name, k.column_name, k.referenced_table_name, k.referenced_column_name, r.delete_rule, r.update_rule)
		FROM information_schema.key_column_usage k
		JOIN information_schema.referential_constraints r ON r.constraint_schema = k.constraint_schema AND r.constraint_name = k.constraint_name
		WHERE k.constraint_schema = DATABASE() AND k.table_name LIKE ? AND k.referenced_table_name IS NOT NULL`
	if e.postgres() {
		text = `SELECT concat_ws(' ', k.conname, k.conrelid::regclass::text, pg_get_constraintdef(k.oid), obj_description(k.oid, 'pg_constraint'),
				(SELECT string_agg(concat_ws(' ', t.tgrelid::regclass::text, p.proname, t.tgenabled::text), ', ' ORDER BY p.proname)
					FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid WHERE t.tgconstraint = k.oid))
			FROM pg_constraint k WHERE k.contype = 'f' AND k.conrelid::regclass::text LIKE ?`
	}
	e.must(e.db.Raw(text, e.prefix+"%").Scan(&list))
	slices.Sort(list)
	return list
}

// rest returns what the database says of the columns of the case, their types apart.
func (e *env) rest() (list []string) {
	e.Helper()
	if e.sqlite() {
		return nil
	}
	comment := "column_comment"
	if e.postgres() {
		comment = "col_description(to_regclass(table_name), ordinal_position)"
	}
	e.must(e.db.Raw(`SELECT CONCAT_WS(' ', table_name, column_name, is_nullable, COALESCE(column_default, 'none'), ` + comment + `)
		FROM information_schema.columns WHERE table_schema = ` + map[bool]string{true: "current_schema()", false: "DATABASE()"}[e.postgres()] +
		` AND table_name LIKE '` + e.prefix + `%'`).Scan(&list))
	slices.Sort(list)
	return list
}

// mends fails the test unless the statements of the findings on models lead to no
// finding, one after another. They have to leave foreign keys and columns as they
// were, but for types and counters.
func (e *env) mends(models ...any) {
	e.Helper()
	constraints, rest := e.constraints(), e.rest()
	e.repairs(models...)
	if got := e.constraints(); !slices.Equal(got, constraints) {
		e.Errorf("foreign keys after the repair = %q; want %q", got, constraints)
	}
	if got := e.rest(); !slices.Equal(got, rest) {
		e.Errorf("columns after the repair = %q; want %q", got, rest)
	}
}

// table makes a table whose keys are of the type key. If counted, it counts them.
func (e *env) table(name, key, columns string, counted bool) {
	e.Helper()
	count := ""
	if counted && e.mysql() {
		count = " AUTO_INCREMENT"
	}
	e.ddl("CREATE TABLE `PRE_" + name + "` (`id` " + key + " NOT NULL" + count + ", PRIMARY KEY (`id`)" + columns + ")")
}
