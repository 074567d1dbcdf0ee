package schemacheck

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
	"gorm.io/gorm/utils"

	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/types"
)

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
	// snowflake:-, a default or autoIncrement. A key of several fields without an ID
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
	// largest. The plugin is about to store that one.
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
	var b strings.Builder
	b.WriteString("schemacheck: " + string(f.Problem))
	if f.Model != "" {
		b.WriteString(": " + f.Model)
		if f.Field != "" {
			b.WriteString("." + f.Field)
		}
	}
	if f.Table != "" {
		b.WriteString(", table " + f.Table)
		if f.Column != "" {
			b.WriteString(", column " + f.Column)
		}
	}
	if f.Is != "" {
		b.WriteString(": is " + f.Is)
	}
	if f.Want != "" {
		b.WriteString(", want " + f.Want)
	}
	if f.Fix != "" {
		b.WriteString("; " + f.Fix)
	}
	return b.String()
}

// Check compares models with the database and returns what does not fit the keys of
// package gormplugin. Call it in a test, or when a service starts:
//
//	findings, err := schemacheck.Check(ctx, db, &Order{}, &Item{})
//	for _, f := range findings {
//		log.Print(f) // and f.SQL is a way out
//	}
//
// The columns of a has-many child or a join table are checked with the model that
// declares the relation. Fresh tables of AutoMigrate give no finding for columns on
// PostgreSQL and MySQL, unless a model asks for a counted key. One of type int64
// does, without autoIncrement:false. On SQLite they give [NoRowID], unless
// [gormplugin.UseRowIDs] was called before.
//
// It reads the catalog and writes nothing. With dbresolver it asks the source of
// each table, not a replica. Findings come in the order of the models.
//
// The error is that of a model that GORM cannot parse, of the database,
// gorm.ErrInvalidDB or gorm.ErrDryRunModeUnsupported. Other dialects than SQLite,
// PostgreSQL and MySQL (MariaDB) are an error too. It comes with the findings that
// need no database. Safe for concurrent use.
func Check(ctx context.Context, db *gorm.DB, models ...any) ([]Finding, error) {
	if db == nil || db.Config == nil || db.Dialector == nil {
		return nil, fmt.Errorf("schemacheck: %w", gorm.ErrInvalidDB)
	}
	if db.DryRun {
		return nil, fmt.Errorf("schemacheck: %w", gorm.ErrDryRunModeUnsupported)
	}
	c := checker{db: db.Session(&gorm.Session{NewDB: true, Context: ctx}), tables: map[string]*table{}, byID: map[string]*table{},
		missing: map[string]bool{}, indexed: map[*table]bool{}, mended: map[place]place{}}
	if !gormplugin.Installed(db) {
		c.findings = append(c.findings, Finding{Problem: NotInstalled, Fix: "call db.Use(gormplugin.New(source))"})
	}
	var schemas []*schema.Schema
	for _, m := range models {
		stmt := &gorm.Statement{DB: c.db}
		if err := stmt.Parse(m); err != nil {
			return nil, fmt.Errorf("schemacheck: %T: %w", m, err)
		}
		if !slices.Contains(schemas, stmt.Schema) {
			schemas = append(schemas, stmt.Schema)
		}
	}
	// All are parsed by now, so every has-one and has-many is known.
	for _, s := range schemas {
		c.model(s)
	}
	if c.dialect = dialects[c.db.Name()]; c.dialect == nil {
		return c.findings, fmt.Errorf("schemacheck: Check knows the dialects sqlite, postgres and mysql, not %q", c.db.Name())
	}
	if c.db.Name() == "mysql" && len(c.wanted) > 0 {
		if err := c.strict(); err != nil {
			return nil, fmt.Errorf("schemacheck: read sql_mode: %w", err)
		}
	}
	for _, w := range c.wanted {
		if err := c.column(w); err != nil {
			return nil, fmt.Errorf("schemacheck: table %s: %w", w.table(), err)
		}
	}
	return c.findings, nil
}

// A checker is one call of Check.
type checker struct {
	db       *gorm.DB
	findings []Finding
	seen     []*seenModel
	wanted   []*wantedColumn
	pointers []*schema.Field // reported
	dialect  dialect
	tables   map[string]*table // by name; nil: the database has none
	byID     map[string]*table
	missing  map[string]bool // by name: reported
	indexed  map[*table]bool // its unique indexes were looked at
	mended   map[place]place // by the statements of the finding on another
	keys     []*foreignKey   // MySQL: of all schemas that matter, once read
}

type seenModel struct {
	schema *schema.Schema
	filled []string
}

// A wantedColumn is a column that holds keys.
type wantedColumn struct {
	field  *schema.Field
	text   bool          // the field is a string
	filled bool          // by the plugin
	refers *schema.Field // the key to which a constraint binds it
}

func (w *wantedColumn) table() string { return w.field.Schema.Table }

// finding begins a finding on w.
func (w *wantedColumn) finding(p Problem) Finding {
	return Finding{Problem: p, Model: modelName(w.field.Schema), Field: w.field.Name, Table: w.table(), Column: w.field.DBName}
}

// modelName returns the Go type of s, or the name of a join table. GORM made the
// type of that.
func modelName(s *schema.Schema) string {
	if s.ModelType.Name() == "" {
		return s.Name
	}
	return s.String()
}

// model finds what is wrong with s itself, and notes its columns.
func (c *checker) model(s *schema.Schema) {
	fields, err := gormplugin.Filled(s)
	about := Finding{Model: modelName(s), Table: s.Table}
	if err != nil {
		about.Problem, about.Is = BadModel, err.Error()
		if e := (*gormplugin.ModelError)(nil); errors.As(err, &e) {
			about.Model, about.Field, about.Is = e.Model, e.Field, e.Reason
			about.Table = ""
		}
		c.findings = append(c.findings, about)
		return
	}
	seen := &seenModel{schema: s}
	for _, f := range fields {
		seen.filled = append(seen.filled, f.DBName)
	}
	slices.Sort(seen.filled)
	if len(fields) == 0 && !meant(s) {
		about.Problem, about.Is = NoKey, "no primary key"
		if f := s.PrioritizedPrimaryField; f != nil {
			about.Field, about.Column, about.Is = f.Name, f.DBName, "of type "+f.FieldType.String()
		}
		about.Want = "a key of type types.Snowflake or with the tag snowflake"
		about.Fix = "give it one, or say snowflake:- or autoIncrement in the tag if it is meant"
		c.findings = append(c.findings, about)
	}
	for _, other := range c.seen {
		if other.schema.Table == s.Table && !slices.Equal(other.filled, seen.filled) {
			c.findings = append(c.findings, Finding{
				Problem: SharedTable, Model: modelName(s), Table: s.Table,
				Is:   fmt.Sprintf("filled in %s, but in %s for %s", columnList(seen.filled), columnList(other.filled), modelName(other.schema)),
				Want: "the same columns in both",
				Fix:  "give both models the same key fields and tags",
			})
		}
	}
	c.seen = append(c.seen, seen)
	for _, f := range s.Fields {
		if f.DBName == "" || s.FieldsByDBName[f.DBName] != f {
			continue
		}
		if filled := slices.Contains(seen.filled, f.DBName); filled || ours(f) {
			c.want(f, filled, nil, false)
		}
	}
	c.relations(&s.Relationships)
}

// meant reports whether the model itself says why it has no key of ours. All of its
// key is foreign keys, or is filled by somebody else on purpose.
func meant(s *schema.Schema) bool {
	if len(s.PrimaryFields) > 1 && s.PrioritizedPrimaryField == nil {
		return true
	}
	s.Relationships.Mux.RLock()
	defer s.Relationships.Mux.RUnlock()
	for _, f := range s.PrimaryFields {
		_, value := f.TagSettings["DEFAULT"]
		said := value || utils.CheckTruth(f.TagSettings["AUTOINCREMENT"]) || f.TagSettings["SNOWFLAKE"] == "-"
		if f.Creatable && !said && !foreign(s, f) {
			return false
		}
	}
	return len(s.PrimaryFields) > 0
}

// foreign reports whether f refers to another row.
func foreign(s *schema.Schema, f *schema.Field) bool {
	for _, rel := range s.Relationships.Relations {
		for _, ref := range rel.References {
			if ref.ForeignKey == f {
				return true
			}
		}
	}
	return false
}

// ours reports whether f has a type of package types, or a nullable form of it.
func ours(f *schema.Field) bool {
	switch f.IndirectFieldType {
	case reflect.TypeFor[types.Snowflake](), reflect.TypeFor[types.NullSnowflake](), reflect.TypeFor[sql.Null[types.Snowflake]]():
		return true
	}
	return false
}

// fills reports whether the plugin fills f.
func fills(f *schema.Field) bool {
	fields, err := gormplugin.Filled(f.Schema)
	return err == nil && slices.Contains(fields, f)
}

func columnList(names []string) string {
	if len(names) == 0 {
		return "no column"
	}
	return strings.Join(names, " and ")
}

// relations notes the foreign keys that refer to keys of ours, or are of our type,
// in any table.
func (c *checker) relations(rels *schema.Relationships) {
	rels.Mux.RLock()
	var list []*schema.Relationship
	for _, name := range slices.Sorted(maps.Keys(rels.Relations)) {
		list = append(list, rels.Relations[name])
	}
	var embedded []*schema.Relationships
	for _, name := range slices.Sorted(maps.Keys(rels.EmbeddedRelations)) {
		embedded = append(embedded, rels.EmbeddedRelations[name])
	}
	rels.Mux.RUnlock() // fills locks it as well
	for _, rel := range list {
		for _, ref := range rel.References {
			key, fk := ref.PrimaryKey, ref.ForeignKey
			if key != nil && fk != nil && fk.DBName != "" && (ours(key) || fills(key) || ours(fk)) {
				c.pointer(fk)
				c.want(fk, false, key, bound(rel))
			}
		}
	}
	for _, rels := range embedded {
		c.relations(rels)
	}
}

// bound reports whether a constraint of the database holds what rel says. None does
// for a polymorphic relation, whose rows refer to several tables.
func bound(rel *schema.Relationship) bool {
	return rel.Polymorphic == nil && !rel.Field.IgnoreMigration && rel.Field.TagSettings["CONSTRAINT"] != "-"
}

// want notes a column. It may be a key in one place and a reference in another.
// One that the model keeps out of migrations may be no column at all.
func (c *checker) want(f *schema.Field, filled bool, refers *schema.Field, bound bool) {
	if f.IgnoreMigration {
		return
	}
	for _, w := range c.wanted {
		if w.table() == f.Schema.Table && w.field.DBName == f.DBName {
			w.filled = w.filled || filled
			if bound && w.refers == nil {
				w.refers = refers
			}
			return
		}
	}
	typ := f.IndirectFieldType
	if typ.Kind() == reflect.Struct && !ours(f) && refers != nil { // such as a sql.NullString
		typ = refers.IndirectFieldType
	}
	w := &wantedColumn{field: f, text: typ.Kind() == reflect.String, filled: filled}
	if bound {
		w.refers = refers
	}
	c.wanted = append(c.wanted, w)
}

// column compares w with the database.
func (c *checker) column(w *wantedColumn) error {
	t, err := c.load(w.table())
	if err != nil {
		return err
	}
	if t == nil {
		// It is not reported when it is loaded. That may be for the key that another
		// table refers to.
		if !c.missing[w.table()] {
			c.missing[w.table()] = true
			f := w.finding(MissingTable)
			f.Field, f.Column = "", ""
			f.Fix = "create it, for example with AutoMigrate"
			c.findings = append(c.findings, f)
		}
		return nil
	}
	// All that the column should be, because MySQL's statement says it all.
	target := t.number
	without, with, err := c.sign(w)
	if err != nil {
		return err
	}
	switch {
	case w.text:
		target = t.text
	case without:
		target += " unsigned"
	}
	add := func(p Problem, is, want, fix string, sql []string) {
		f := w.finding(p)
		f.Is, f.Want, f.Fix, f.SQL = is, want, fix, sql
		c.findings = append(c.findings, f)
	}
	col := t.column(w.field.DBName)
	if col == nil {
		fix, sql := "add it, for example with AutoMigrate", []string(nil)
		switch {
		case t.fixed != "":
			fix = t.fixed
		case !w.text && !w.field.PrimaryKey: // a key wants more than a column: values, and a constraint
			sql = []string{"ALTER TABLE " + t.quoted + " ADD COLUMN " + c.db.Statement.Quote(clause.Column{Name: w.field.DBName}) + " " + target}
		}
		add(MissingColumn, "", "a column of "+target, fix, sql)
		return nil
	}
	at := place{t, col}
	report := func(p Problem, is string) error {
		fix, sql, err := c.change(at, target)
		add(p, is, target, fix, sql)
		return err
	}
	switch {
	case w.filled && col.generated:
		add(WrongType, col.typ+", generated", target+" that can be written", "drop its expression: every create fails", nil)
	case w.text && col.class == classText && col.length > 0 && col.length < decimals, col.class == classNarrow:
		err = report(NarrowColumn, col.typ)
	case col.class == classOther, !w.text && col.class == classText:
		err = report(WrongType, col.typ)
	case col.class == classWide && (with && col.unsigned || without && !col.unsigned):
		err = report(Sign, col.typ)
	}
	if err != nil {
		return err
	}
	if w.filled && col.counted != "" {
		fix, sql, err := c.dialect.uncount(c, at, target)
		if err != nil {
			return err
		}
		if w.field.AutoIncrement {
			fix += "; and add autoIncrement:false to the tag, or GORM makes it count again"
		}
		add(Counted, col.counted, "no counting", fix, sql)
	} else if t.canBeRowID(w) {
		fix, _, err := c.dialect.statements(c, []place{at}, nil, "integer")
		if err != nil {
			return err
		}
		fix = "call gormplugin.UseRowIDs before AutoMigrate makes the table; for this one, " + fix
		add(NoRowID, col.typ+", with an index of its own", "INTEGER PRIMARY KEY, in these words and without DESC", fix, nil)
	}
	if w.filled && !c.indexed[t] {
		c.indexed[t] = true
		return c.indexes(w, t)
	}
	return nil
}

// indexes finds unique indexes of t, which the plugin fills, on expressions.
func (c *checker) indexes(w *wantedColumn, t *table) error {
	names, err := c.dialect.expressions(c, t)
	for _, name := range names {
		f := w.finding(ExpressionIndex)
		f.Field, f.Column = "", ""
		f.Is = "unique index " + name
		f.Want = "unique indexes on columns, which the model declares"
		f.Fix = "look the row up yourself before the upsert, or store what the expression says in a column of its own, with uniqueIndex"
		c.findings = append(c.findings, f)
	}
	return err
}

// strict finds a connection of MySQL that stores what does not fit.
func (c *checker) strict() error {
	var mode string
	err := c.query(c.wanted[0].table(), "SELECT @@sql_mode").Scan(&mode).Error
	if err == nil && !strings.Contains(mode, "STRICT_TRANS_TABLES") && !strings.Contains(mode, "STRICT_ALL_TABLES") {
		c.findings = append(c.findings, Finding{
			Problem: NotStrict, Is: fmt.Sprintf("sql_mode %q", mode), Want: "STRICT_TRANS_TABLES or STRICT_ALL_TABLES in it",
			Fix: "add sql_mode='TRADITIONAL' to the parameters of the DSN, or set it on the server",
		})
	}
	return err
}

// pointer reports a foreign key that is a pointer.
func (c *checker) pointer(f *schema.Field) {
	if f.FieldType != reflect.TypeFor[*types.Snowflake]() || slices.Contains(c.pointers, f) {
		return
	}
	c.pointers = append(c.pointers, f)
	c.findings = append(c.findings, Finding{
		Problem: PointerReference, Model: modelName(f.Schema), Field: f.Name, Table: f.Schema.Table, Column: f.DBName,
		Is: "*types.Snowflake", Want: "types.NullSnowflake", Fix: "change the type of the field; the column stays as it is",
	})
}

// decimals is the number of digits of the largest key.
const decimals = 19

// sign returns whether w has to be without a sign, or with one. The field of the key
// that w is, or is bound to, decides. If the plugin does not fill that key, its
// column decides, because somebody else made it, from whatever type. Only MySQL has
// unsigned columns, and only foreign keys mind.
func (c *checker) sign(w *wantedColumn) (without, with bool, err error) {
	key := w.refers
	if key == nil && w.filled {
		key = w.field
	}
	if w.text || key == nil || c.db.Name() != "mysql" {
		return false, false, nil
	}
	if kind := key.IndirectFieldType.Kind(); kind != reflect.String && fills(key) {
		return kind == reflect.Uint64, kind != reflect.Uint64, nil
	}
	t, err := c.load(key.Schema.Table)
	if err != nil || t == nil {
		return false, false, err
	}
	col := t.column(key.DBName)
	if col == nil || col.class != classWide {
		return false, false, nil
	}
	return col.unsigned, !col.unsigned, nil
}

// load returns a table of the database, or nil if there is none.
func (c *checker) load(name string) (*table, error) {
	if t, ok := c.tables[name]; ok {
		return t, nil
	}
	t, err := c.dialect.read(c, name)
	if err != nil {
		return nil, err
	}
	switch same := c.byID[t.id]; {
	case len(t.columns) == 0:
		t = nil
	case same != nil: // by another name
		t = same
	default:
		c.byID[t.id] = t
	}
	c.tables[name] = t
	return t, nil
}

// query asks the database that writes of a table go to.
func (c *checker) query(name, sql string, args ...any) *gorm.DB {
	// dbresolver's setting, which would otherwise take a replica for a SELECT.
	return c.db.Session(&gorm.Session{NewDB: true}).Set("gorm:db_resolver:write", true).Table(name).Raw(sql, args...)
}
