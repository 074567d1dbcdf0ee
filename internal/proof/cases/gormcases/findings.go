package gormcases

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/snowkey/snowkey/gormplugin/schemacheck"
)

// A checkRow is tables made by hand, and what Check finds when it compares models with them. The
// statements of the findings mend everything but what has words alone, and keep the rest.
type checkRow struct {
	claim    string
	on       string // the databases, as [env.on] takes them
	integers bool   // the plugin has WithIntegerKeys
	tables   string // as [env.make] takes them
	models   []any
	all      bool // findings count that are by design, as [env.check] says
	anyOrder bool // Check finds the same with the models in the reverse order
	finds    []expected
	mends    bool   // statements mend what is found, whatever that is
	noKeys   string // statements that store a value that is no key
	obstacle string // statements that remove it, or what only words can
	sqlMode  string // of the session that repairs, on MySQL
	after    string // statements that run after the repair
	never    string // a statement that fails after it
}

// expected is a finding on some databases, or on all.
type expected struct {
	what string // the problem, and the field if there is one
	says string // part of the finding
	how  remedy
	on   string
}

// A remedy is what a finding has. On SQLite words have the place of statements that change a type.
type remedy int

const (
	statements remedy = iota
	words             // alone, and they stay true until somebody acts
	mended            // by the statements of another finding
)

// The problems of most rows.
const (
	narrow  = string(schemacheck.NarrowColumn) + " "
	wrong   = string(schemacheck.WrongType) + " "
	differ  = string(schemacheck.Sign) + " "
	counts  = string(schemacheck.Counted) + " "
	missing = string(schemacheck.MissingColumn) + " "
	noRowID = string(schemacheck.NoRowID) + " "
	pointer = string(schemacheck.PointerReference) + " "
)

// rowCases returns the cases of rows.
func rowCases(rows []checkRow) (list []testCase) {
	for _, r := range rows {
		list = append(list, testCase{r.claim, r.run})
	}
	return list
}

// rowsCase returns the case of rows whose claims are but the names of subtests.
func rowsCase(claim string, rows []checkRow) testCase {
	return testCase{claim, func(e *env) {
		for i, r := range rows {
			if e.on(r.on) {
				e.Run(r.claim, func(t *testing.T) { r.run(e.target.env(t, fmt.Sprint(e.prefix, i, "_"))) })
			}
		}
	}}
}

func (r checkRow) run(e *env) {
	e.Helper()
	e.only(e.on(r.on), "it is for "+r.on)
	if r.integers {
		e.integers()
	}
	pool, err := e.db.DB()
	e.ok("DB", err)
	pool.SetMaxOpenConns(1) // which has the session that the row sets
	e.make(r.tables)
	e.byDesign, e.sqlMode = r.all, r.sqlMode
	list := slices.DeleteFunc(slices.Clone(r.finds), func(f expected) bool { return !e.on(f.on) })
	var all, left []string
	for i, f := range list {
		rebuilt := slices.ContainsFunc([]string{narrow, wrong, noRowID}, func(problem string) bool { return strings.HasPrefix(f.what, problem) })
		if e.sqlite() && f.how == statements && rebuilt {
			f = expected{what: f.what, says: "https://www.sqlite.org/lang_altertable.html", how: words}
			list[i] = f
		}
		all = append(all, f.what)
		if f.how == words && r.obstacle == "" {
			left = append(left, f.what)
		}
	}
	findings := e.check(e.db, r.models...)
	switch {
	case !r.mends:
		for i, f := range e.finds(r.models, all...) {
			e.has(f, list[i])
		}
	case len(findings) == 0:
		e.Error("Check finds nothing")
	case e.sqlite():
		left = whats(findings)
	}
	if r.anyOrder {
		models := slices.Clone(r.models)
		slices.Reverse(models)
		e.db = e.with(e.src) // which has learnt nothing of the models
		e.finds(models, all...)
	}
	if r.noKeys != "" {
		e.make(r.noKeys)
		for _, f := range findings {
			e.refuses(f, r.models...)
		}
	}
	e.make(r.obstacle)
	e.mends(left, r.models...)
	e.make(r.after)
	if r.never != "" && !e.tidb() && e.db.Exec(strings.ReplaceAll(r.never, "PRE_", e.prefix)).Error == nil {
		e.Errorf("%s = nil; want an error", r.never)
	}
}

// has fails the test unless f says what want does, and has such a remedy.
func (e *env) has(f schemacheck.Finding, want expected) {
	e.Helper()
	part, sql := strings.ReplaceAll(want.says, "PRE_", e.prefix), want.how == statements
	verified := f.Problem == schemacheck.BadModel || f.Problem == schemacheck.NoKey // whose words are Verify's
	if !strings.Contains(f.Error(), part) || sql != (len(f.SQL) > 0) || f.Fix == "" && !verified {
		e.Errorf("finding = %v, SQL %q; want %q in it, and statements: %v", f, f.SQL, part, sql)
	}
}

// check returns what Check finds. Unless the case wants them, it leaves out findings that are by
// design on SQLite, and those on pointers, which many models here have.
func (e *env) check(db *gorm.DB, models ...any) []schemacheck.Finding {
	e.Helper()
	findings, err := schemacheck.Check(e.Context(), db, models...)
	e.ok("Check", err)
	return slices.DeleteFunc(findings, func(f schemacheck.Finding) bool {
		return !e.byDesign && (f.Problem == schemacheck.NoRowID || f.Problem == schemacheck.PointerReference)
	})
}

// finds fails the test unless Check finds exactly want, each written as
// "problem field".
func (e *env) finds(models []any, want ...string) []schemacheck.Finding {
	e.Helper()
	findings := e.check(e.db, models...)
	if got := whats(findings); !slices.Equal(got, want) {
		e.Fatalf("Check found %q (%v); want %q", got, findings, want)
	}
	for _, f := range findings {
		if text := f.Error(); !strings.HasPrefix(text, "schemacheck: ") || strings.Contains(text, "\n") {
			e.Errorf("Error() = %q; want one line of schemacheck's", text)
		}
	}
	return findings
}

// whats returns the problems and the fields of findings.
func whats(findings []schemacheck.Finding) (list []string) {
	for _, f := range findings {
		list = append(list, strings.TrimSpace(string(f.Problem)+" "+f.Field))
	}
	return list
}

// make runs statements with ; at the ends of their lines. One that begins with a small letter is
// the name of a table, without the prefix, and its columns, and one with ( the table of [model].
// Words with $ stand for types.
func (e *env) make(text string) {
	e.Helper()
	for statement := range strings.SplitSeq(text, ";\n") {
		statement = strings.TrimSpace(statement)
		if statement == "" {
			continue
		}
		if strings.ToLower(statement[:1]) == statement[:1] {
			statement = "CREATE TABLE PRE_" + statement
		}
		if e.mysql() && !strings.Contains(statement, "`") {
			statement = strings.ReplaceAll(statement, `"`, "`")
		}
		e.ddl(typeWords[e.db.Name()].Replace(statement))
	}
}

// typeWords has the types that the words of [env.make] stand for: a number that is narrower than a
// key, a key that the database counts, one that GORM makes of a uint, one of 32 bits and what refers to it, a number without a sign.
// On MySQL a column has a note.
var typeWords = map[string]*strings.Replacer{
	"sqlite":   strings.NewReplacer("$narrow", "real", "$counted", "integer PRIMARY KEY AUTOINCREMENT", "$uint", "integer PRIMARY KEY AUTOINCREMENT", "$unsigned", "bigint", "$stored", "VIRTUAL"),
	"postgres": strings.NewReplacer("$narrow", "int", "$counted", "bigserial PRIMARY KEY", "$uint", "bigserial PRIMARY KEY", "$unsigned", "bigint", "$stored", "STORED", "$int", "serial PRIMARY KEY", "$ref", "int", "$note", ""),
	"mysql": strings.NewReplacer("$narrow", "int", "$counted", "bigint NOT NULL AUTO_INCREMENT PRIMARY KEY", "$uint", "bigint unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY",
		"$unsigned", "bigint unsigned", "$stored", "VIRTUAL",
		"$int", "int unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY", "$ref", "int unsigned", "$note", "COMMENT 'it''s AUTO_INCREMENT, no'"),
}

// ddl runs a statement that makes a table of the case by hand, or stores rows in it. Names in
// backquotes are quoted as the database does it.
func (e *env) ddl(text string) {
	e.Helper()
	if !e.mysql() {
		text = strings.ReplaceAll(text, "`", `"`)
	}
	e.must(e.db.Exec(strings.ReplaceAll(text, "PRE_", e.prefix)))
}

// repair runs the statements of a finding on one connection, up to the first error, and then what
// Finding.SQL says. On MySQL the session is in the mode of the case, or lets everything pass, and
// is in the same mode afterwards.
func (e *env) repair(f schemacheck.Finding) error {
	e.Helper()
	return e.db.Connection(func(tx *gorm.DB) (err error) {
		tx = tx.Session(&gorm.Session{SkipDefaultTransaction: true})
		set := func(mode string) (old, now string) {
			if e.mysql() {
				e.must(tx.Raw("SELECT @@sql_mode").Scan(&old))
				e.must(tx.Exec("SET SESSION sql_mode = '" + mode + "'"))
				e.must(tx.Raw("SELECT @@sql_mode").Scan(&now))
			}
			return old, now
		}
		checks, repairs := set(e.sqlMode)
		defer func() {
			if after, _ := set(checks); err == nil {
				equal(e, "sql_mode after the statements", after, repairs)
			}
		}()
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

// repairs runs the statements of one finding after another. Afterwards Check finds left.
func (e *env) repairs(left []string, models ...any) {
	e.Helper()
	for range 10 {
		findings := e.check(e.db, models...)
		next := slices.IndexFunc(findings, func(f schemacheck.Finding) bool { return len(f.SQL) > 0 })
		if next < 0 {
			if got := whats(findings); !slices.Equal(got, left) {
				e.Errorf("after the repair Check finds %q (%v); want %q", got, findings, left)
			}
			return
		}
		if err := e.repair(findings[next]); err != nil {
			e.Errorf("way out of %v = %v; want no error", findings[next], err)
		}
	}
	e.Errorf("after ten repairs Check finds %v; want %q", e.check(e.db, models...), left)
}

// mends is repairs, which keeps rows, foreign keys and the rest of the columns. What has counted
// counts no more.
func (e *env) mends(left []string, models ...any) {
	e.Helper()
	before, added := e.snapshot(), 0
	findings := e.check(e.db, models...)
	e.repairs(left, models...)
	for _, f := range findings {
		switch {
		case f.Problem == schemacheck.MissingColumn && len(f.SQL) > 0:
			added++
		case f.Problem == schemacheck.Counted:
			e.countsNoMore(f.Table)
			if e.postgres() {
				var left []string
				e.must(e.db.Raw("SELECT sequencename FROM pg_sequences WHERE sequencename LIKE ?", f.Table+"%").Scan(&left))
				equal(e, "sequences left over", len(left), 0)
			}
		}
	}
	after := e.snapshot()
	lost := slices.DeleteFunc(slices.Clone(before), func(line string) bool { return slices.Contains(after, line) })
	if len(lost) > 0 || len(after) > len(before)+added {
		e.Errorf("the repair lost %q; want\n%s\nand got\n%s", lost, strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
}

// refuses fails the test unless the fix of f, a finding on models, is an error before anything
// has changed. On SQLite the words have a query for the row, which finds no other.
func (e *env) refuses(f schemacheck.Finding, models ...any) {
	e.Helper()
	if e.sqlite() {
		_, rest, _ := strings.Cut(f.Fix, "stop here if ")
		query, _, _ := strings.Cut(rest, " finds a row")
		rows, err := rowsOf(e.db, query)
		e.ok(query, err)
		equal(e, "rows of "+query, len(rows), 1)
		return
	}
	if len(f.SQL) == 0 {
		return
	}
	before := e.snapshot()
	if err := e.repair(f); err == nil || !strings.Contains(err.Error(), "out of range") || !strings.Contains(err.Error(), "COUNT(*)") {
		e.Errorf("way out of %v = %v; want the check of the values to be out of range", f, err)
	}
	if after := e.snapshot(); !slices.Equal(after, before) {
		e.Errorf("after an error the database has\n%s\nwant\n%s", strings.Join(after, "\n"), strings.Join(before, "\n"))
	}
	if again := e.check(e.db, models...); !slices.ContainsFunc(again, func(g schemacheck.Finding) bool { return reflect.DeepEqual(f, g) }) {
		e.Errorf("Check after an error = %v; want %v in it as before", again, f)
	}
}

// snapshot returns the rows in the tables of the case, their foreign keys, and what the database
// says of their columns, but for types and counters.
func (e *env) snapshot() (list []string) {
	e.Helper()
	catalog, name := "information_schema.tables WHERE table_type = 'BASE TABLE' AND table_schema = "+e.space(), "table_name"
	if e.sqlite() {
		catalog, name = "sqlite_master WHERE type = 'table'", "name"
	}
	var tables []string
	e.must(e.db.Raw(fmt.Sprintf("SELECT %s FROM %s AND substr(%s, 1, %d) = ?", name, catalog, name, len(e.prefix)), e.prefix).Scan(&tables))
	for _, table := range tables {
		e.looks++ // so that PostgreSQL's driver does not remember the types of the statement
		rows, err := rowsOf(e.db, fmt.Sprintf("SELECT * FROM %s -- %d", e.db.Statement.Quote(clause.Table{Name: table}), e.looks))
		e.ok("read "+table, err)
		for _, row := range rows {
			list = append(list, fmt.Sprint(table, row))
		}
	}
	slices.Sort(list)
	return slices.Concat(list, e.constraints(), e.rest())
}

// on reports whether the database is one that names says: "" is all, "!sqlite" all but SQLite.
func (e *env) on(names string) bool {
	e.Helper()
	if name, not := strings.CutPrefix(names, "!"); not {
		return !e.on(name)
	}
	return names == "" || names == e.db.Name() || names == "mariadb" && e.mariadb()
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

// countsNoMore fails the test if the database takes a row without a key.
func (e *env) countsNoMore(table string) {
	e.Helper()
	values := " DEFAULT VALUES"
	if e.mysql() {
		values = " () VALUES ()"
	}
	if e.db.Exec("INSERT INTO "+table+values).Error == nil {
		e.Errorf("INSERT without a key into %s = nil; want an error, since nothing counts any more", table)
	}
}

func (e *env) sqlite() bool   { return e.db.Name() == "sqlite" }
func (e *env) postgres() bool { return e.db.Name() == "postgres" }
func (e *env) mariadb() bool  { return e.names("MariaDB") } // and not MySQL
func (e *env) tidb() bool     { return e.names("TiDB") }    // which runs the cases of MySQL

// space returns the name of the schema of the case, in SQL.
func (e *env) space() string {
	return map[bool]string{true: "current_schema()", false: "DATABASE()"}[e.postgres()]
}

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

// rest returns what the database says of the columns of the case, their types and
// counters apart.
func (e *env) rest() (list []string) {
	e.Helper()
	if e.sqlite() {
		return nil
	}
	comment := "column_comment, CASE WHEN collation_name LIKE 'latin1%' THEN collation_name END" // which only one case has
	if e.postgres() {
		comment = "col_description(to_regclass(quote_ident(table_name)), ordinal_position)"
	}
	e.must(e.db.Raw(`SELECT CONCAT_WS(' ', table_name, column_name, is_nullable,
			CASE WHEN column_default LIKE '%nextval%' THEN 'none' ELSE COALESCE(column_default, 'none') END, `+comment+`)
		FROM information_schema.columns WHERE table_schema = `+e.space()+` AND table_name LIKE ?`, e.prefix+"%").Scan(&list))
	slices.Sort(list)
	return list
}
