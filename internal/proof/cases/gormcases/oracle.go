package gormcases

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/types"
)

// RunUpserts compares random upserts of the plugin on target with the plain database. Each
// seed makes a table of random columns and unique indexes. What each row of a statement
// meets comes from the database alone: the rows are sent one by one without the plugin, in a
// transaction that is rolled back, and a stored row conflicts with one that is sent if it
// still does when all others are deleted.
//
// The seeds are fixed. A failure names its own, and the fewest statements that still fail:
//
//	go test ./gormplugin -run Upserts -gormcases.seed $RANDOM -gormcases.runs 100
//	go test ./gormplugin -run Upserts -gormcases.seed 7 -gormcases.steps 3,17
func RunUpserts(t *testing.T, target Target) {
	t.Helper()
	run(t, target, "o", []testCase{
		{"UpsertsLeaveTheKeyOfTheStoredRow", func(e *env) { playOracle(e, false) }},
		{"UpsertsLeaveTheKeyOfTheStoredRowWhileAnotherReleaseAltersTheTable", func(e *env) { playOracle(e, true) }},
	})
}

// playOracle plays the seeds. With altered, another program alters each table between the
// statements.
func playOracle(e *env, altered bool) {
	e.Helper()
	o := &oracle{env: e, altered: altered}
	prefix, tables := e.prefix, 3*e.runs()
	if e.sqlite() { // which is fast
		tables *= 8
	}
	e.play(tables, statementsPerTable, func(seed uint64, steps []int) (int, error) {
		e.prefix = fmt.Sprintf("%s%d_", prefix, o.tables)
		o.tables++
		return o.replay(seed, steps)
	})
	e.Logf("%d tables, altered %d times, %d statements: %d rows inserted, %d met, %d of several, %d without a key; %d errors of the database, %d ErrUnresolved; tolerated: %v",
		o.tables, o.alterations, o.statements, o.inserted, o.met, o.several, o.keyless, o.failed, o.unresolved, o.tolerated)
}

const statementsPerTable = 20

// The defects that are known: failures of a table or statement that may show one are counted, and are
// no failure of the test.
const (
	numberAsText = "number compared with text in the condition of a partial index; SQLite gives a compound no affinity"
	laterRow     = "later row with its own key that equals an earlier row that met a stored one; nothing tells it from a row that was stored before"
)

// oracleRow is a row of the random tables, with a key of type K and what else F has. Which
// columns have values, and which type each has, depends on the table.
type oracleRow[K ~int64, F any] struct {
	ID         K
	Note       string // says which row of which statement wrote it last
	S0, S1, S2 *string
	N0, N1     *int64
	F0         *float64
	T0         *time.Time
	B0         []byte
	More       F                 `gorm:"embedded"`
	Kids       []oracleKid[K, F] `gorm:"foreignKey:RowID"`
}

// oracleKid refers to a row. No foreign key of the database says so, as it would hide a wrong
// parent.
type oracleKid[K ~int64, F any] struct {
	ID    types.Snowflake
	RowID K
	Row   *oracleRow[K, F]
	Name  string
}

type (
	oracleNone   struct{}
	oracleFilled struct { // GORM asks the database for it, where an INSERT returns columns
		Score int64 `gorm:"default:(3+4)"`
	}
)

// TableName makes the models those of one table.
func (oracleRow[K, F]) TableName(n schema.Namer) string { return n.TableName("oracle_row") }

// TableName is that of [oracleRow].
func (oracleKid[K, F]) TableName(n schema.Namer) string { return n.TableName("oracle_kid") }

// An oracleModel is a model of the table in a program.
type oracleModel struct {
	send    func(b *batch, db *gorm.DB, list []int, keys []types.Snowflake, plugin bool) (tx *gorm.DB, memory []types.Snowflake)
	counted bool // GORM takes the key for one that the database counts
}

// oracleModels begins with those whose rows GORM also makes of maps: it cannot read what the
// database returns into these.
var oracleModels = []oracleModel{
	{send[types.Snowflake, oracleNone], false}, {send[types.ID[oracleNone], oracleNone], false},
	{send[types.Snowflake, oracleFilled], false}, {send[int64, oracleNone], true}, {send[int64, oracleFilled], true},
}

// An oracle is a table, and what is counted over all tables.
type oracle struct {
	*env
	plain   *gorm.DB // without the plugin
	altered bool     // the table is, between statements
	counts  bool     // the database does, where a row has no key
	name    string   // of the table
	columns []oracleColumn
	indexes []oracleIndex
	chance  *rand.Rand
	doing   string
	defects []string // that the table and the statement may show
	dummies int64

	last *gormplugin.UnresolvedError // of the last error

	tables, alterations, statements, inserted, met, several, keyless, failed, unresolved int
	tolerated                                                                            map[string]int
}

type oracleColumn struct {
	field, name string
	filled      bool // by the database, where a map leaves it out
	oracleType
}

type oracleIndex struct {
	name    string
	columns []string
	where   string
	opaque  bool // a row that it met need not be found
	whole   bool // its columns are a target
}

// replay makes the table of seed and runs steps on it.
func (o *oracle) replay(seed uint64, steps []int) (at int, failure error) {
	o.begin()
	o.chance = rand.New(rand.NewPCG(seed, 1<<32))
	made := o.make()
	defer func() {
		o.ddl("DROP TABLE PRE_oracle_rows")
		o.ddl("DROP TABLE PRE_oracle_kids")
		o.close(o.plain)
		o.close(o.db)
	}()
	ofTable := o.defects
	for n, i := range steps {
		o.chance = rand.New(rand.NewPCG(seed, uint64(i)))
		if o.defects = ofTable; o.altered && o.often(5) {
			made += ";\n" + o.alter(i)
			ofTable = o.defects
			o.close(o.plain) // whose drivers may keep queries for the old columns
			o.plain = o.open(&gorm.Config{})
		}
		o.defects = slices.Clone(ofTable)
		o.statements++
		failure = o.statement(i)
		if failure == nil {
			continue
		}
		if len(o.defects) > 0 {
			if o.tolerated == nil {
				o.tolerated = map[string]int{}
			}
			o.tolerated[o.defects[0]]++
			continue
		}
		return n, fmt.Errorf("%s\nstep %d, %s: %w", made, i, o.doing, failure)
	}
	return len(steps), nil
}

// begin opens the database.
func (o *oracle) begin() {
	o.integers()
	o.plain = o.open(&gorm.Config{})
	o.name = o.prefix + "oracle_rows"
	o.defects = nil
}

func (o *oracle) close(db *gorm.DB) {
	if pool, err := db.DB(); err != nil || pool.Close() != nil {
		o.Errorf("the pool cannot be closed")
	}
}

// often returns true n times in 10.
func (o *oracle) often(n int) bool { return o.chance.IntN(10) < n }

func pick[T any](o *oracle, list []T) T { return list[o.chance.IntN(len(list))] }

// few returns few of values, so that rows meet.
func (o *oracle) few(values []any) []any {
	values = slices.Clone(values)
	o.chance.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
	return values[:min(len(values), 2+o.chance.IntN(3))]
}

// make creates a table at random and returns its statements.
func (o *oracle) make() string {
	o.columns, o.indexes = nil, nil
	left := map[string][]string{"S": {"S0", "S1", "S2"}, "N": {"N0", "N1"}, "F": {"F0"}, "T": {"T0"}, "B": {"B0"}}
	for len(o.columns) < 3 {
		typ := pick(o, oracleTypes[o.db.Name()])
		if fields := left[typ.kind()]; len(fields) > 0 {
			left[typ.kind()] = fields[1:]
			typ.values = o.few(typ.values)
			o.columns = append(o.columns, oracleColumn{field: fields[0], name: strings.ToLower(fields[0]), oracleType: typ})
		}
	}
	key := "bigint NOT NULL"
	if o.counts = o.often(5); o.counts {
		key = o.countedKey()
	}
	var given []string
	for i, c := range o.columns {
		column := c.name + " " + c.sql
		if o.often(1) && !c.prefix && strings.Contains("SN", c.field[:1]) {
			column += fmt.Sprintf(" DEFAULT '%v'", pick(o, c.values[:2]))
			o.columns[i].filled = true
		}
		given = append(given, column)
	}
	made := []string{tableText(key+" PRIMARY KEY", given)}
	for n := range 1 + o.chance.IntN(3) {
		made = append(made, o.index(n))
	}
	o.ddl(kidsText)
	for i, text := range made {
		err := o.plain.Exec(strings.ReplaceAll(text, "PRE_", o.prefix)).Error
		if err != nil && i == 0 {
			o.Fatalf("%s = %v; want no error", text, err)
		}
		if err != nil { // a type that cannot be indexed like this
			made[i], o.indexes[i-1] = "-- refused: "+text, oracleIndex{}
		}
	}
	return strings.Join(made, ";\n")
}

// countedKey returns the type of a key that the database counts.
func (o *oracle) countedKey() string {
	return map[string]string{
		"sqlite": "integer", "mysql": "bigint NOT NULL AUTO_INCREMENT", "postgres": "bigint NOT NULL GENERATED BY DEFAULT AS IDENTITY (START 4611686018427387904)",
	}[o.db.Name()]
}

// tableText returns the statement that makes the table, with the columns given and those of the
// model besides.
func tableText(key string, given []string) string {
	text := "CREATE TABLE PRE_oracle_rows (id " + key + ", score bigint DEFAULT 7, note varchar(40)"
	for _, column := range []string{"s0 varchar(40)", "s1 varchar(40)", "s2 varchar(40)", "n0 bigint", "n1 bigint", "f0 double precision", "t0 varchar(40)", "b0 varchar(40)"} {
		if !slices.ContainsFunc(given, func(other string) bool { return other[:3] == column[:3] }) {
			text += ", " + column
		}
	}
	return strings.Join(append([]string{text}, given...), ", ") + ")"
}

const kidsText = "CREATE TABLE PRE_oracle_kids (id bigint NOT NULL PRIMARY KEY, row_id bigint NOT NULL, name varchar(60))"

// alter alters the table as a new release does, and returns the statement.
func (o *oracle) alter(step int) string {
	o.alterations++
	c := &o.columns[o.chance.IntN(len(o.columns))]
	at := o.chance.IntN(len(o.indexes))
	var text string
	kept, last := slices.Clone(o.indexes), *c
	switch choice := o.chance.IntN(4); {
	case choice == 0:
		text = fmt.Sprintf("ALTER TABLE PRE_oracle_rows ADD COLUMN extra%d varchar(9)", step)
	case choice == 1 && len(o.indexes) < 5:
		text = o.index(100 + step)
	case choice == 1 && o.indexes[at].name != "":
		text = "DROP INDEX " + o.indexes[at].name
		if o.mysql() {
			text += " ON PRE_oracle_rows"
		}
		o.indexes[at] = oracleIndex{}
	// pgx keeps the types of parameters for the life of a connection, so that other values are
	// stored without the plugin too.
	case o.postgres() && slices.ContainsFunc([]string{"date", "time", "interval", "real", "double", "char"}, func(typ string) bool { return strings.HasPrefix(c.sql, typ) }):
		text = fmt.Sprintf("ALTER TABLE PRE_oracle_rows ADD COLUMN extra%d bigint NOT NULL DEFAULT 7", step)
	default:
		var types []oracleType
		for _, typ := range oracleTypes[o.db.Name()] {
			if typ.kind() == c.kind() && typ.prefix == c.prefix {
				types = append(types, typ)
			}
		}
		c.oracleType = pick(o, types)
		c.values = o.few(c.values)
		for i := range o.indexes {
			o.indexes[i].opaque = o.indexes[i].opaque || c.odd && slices.Contains(o.indexes[i].columns, c.name)
		}
		o.must(o.plain.Exec("DELETE FROM " + o.name)) // its values may not fit
		switch {
		case o.mysql():
			text = "ALTER TABLE PRE_oracle_rows MODIFY " + c.name + " " + c.sql
		case o.postgres():
			text = fmt.Sprintf("ALTER TABLE PRE_oracle_rows ALTER %s TYPE %s USING NULL", c.name, c.sql)
		default: // SQLite alters no type
			for i, x := range o.indexes {
				if slices.Contains(x.columns, c.name) || strings.HasPrefix(x.where, c.name+" ") {
					text += "DROP INDEX " + x.name + "; "
					o.indexes[i] = oracleIndex{}
				}
			}
			text += fmt.Sprintf("ALTER TABLE PRE_oracle_rows RENAME COLUMN %s TO was%d; ALTER TABLE PRE_oracle_rows ADD COLUMN %[1]s %[3]s", c.name, step, c.sql)
		}
	}
	if err := o.plain.Exec(strings.ReplaceAll(text, "PRE_", o.prefix)).Error; err != nil {
		o.indexes, *c = kept, last // as where stored rows are alike in the index
		return "-- refused: " + text
	}
	return text
}

// index draws a unique index.
func (o *oracle) index(n int) string {
	x := oracleIndex{whole: true}
	var parts []string
	for _, at := range o.chance.Perm(len(o.columns))[:1+o.chance.IntN(2)] {
		c := o.columns[at]
		x.columns = append(x.columns, c.name)
		x.opaque = x.opaque || c.odd
		part := c.name
		switch {
		case c.prefix || o.mysql() && c.text && o.often(3):
			part += fmt.Sprintf("(%d)", 1+o.chance.IntN(3))
		case !o.mysql() && c.text && o.often(2):
			part += map[bool]string{true: " COLLATE NOCASE", false: ` COLLATE "C"`}[o.sqlite()]
		case c.text && o.often(1) && !(o.mysql() && o.mariadb()):
			part, x.opaque, x.whole = "(lower("+c.name+"))", true, false
		}
		parts = append(parts, part)
	}
	x.name = fmt.Sprintf("PRE_oracle_%d", n)
	text := fmt.Sprintf("CREATE UNIQUE INDEX %s ON PRE_oracle_rows (%s)", x.name, strings.Join(parts, ", "))
	if !o.mysql() && o.often(2) {
		c := pick(o, o.columns)
		literal := fmt.Sprint(c.values[0])
		if kind := c.kind(); kind != "N" && kind != "F" {
			literal = "'" + literal + "'"
		}
		x.where = c.name + pick(o, []string{" IS NOT NULL", " IS NULL", " > " + literal})
		declared := strings.Contains(c.sql, "text") || strings.Contains(c.sql, "char")
		if o.sqlite() && strings.Contains(x.where, ">") && strings.Contains(x.where, "'") != declared {
			o.defects = append(o.defects, numberAsText)
		}
		text += " WHERE " + x.where
	} else if o.postgres() && o.often(1) {
		text += " NULLS NOT DISTINCT"
	}
	o.indexes = append(o.indexes, x)
	return text
}

// A batch is what a statement is given.
type batch struct {
	form    string
	rows    []map[string]any // by column; without an id the plugin assigns it
	keys    []types.Snowflake
	kids    []int
	clause  clause.Expression
	updates bool
	moves   bool // columns of unique keys may change
	silent  bool // the database fills a column
	shared  bool // two rows have one key
	session gorm.Session

	model     oracleModel
	returning *clause.Returning
	replaces  bool

	why  map[int]gormplugin.Reason // the rows that get no key, by hand; nil: see mayBeZero
	many int                       // how many rows at the end each meet one of the stored rows from firstMany on, and no other
}

// batch draws a statement. step is in the notes of its rows.
func (o *oracle) batch(step int, before []storedRow) *batch {
	b := &batch{model: oracleModels[0], form: pick(o, []string{"slice", "slice", "pointers", "batches of 2", "maps", "save", "parents"})}
	b.session.PrepareStmt = o.often(2)
	named := []string{"note"}
	for _, c := range o.columns {
		if o.often(9) {
			named = append(named, c.name)
		} else {
			b.silent = b.silent || c.filled && b.form == "maps"
		}
	}
	rows := 1 + o.chance.IntN(4)
	if o.chance.IntN(15) == 0 { // the plugin looks many up in another way
		rows = 20 + o.chance.IntN(4)
	}
	for i := range rows {
		row := map[string]any{"note": fmt.Sprintf("%d.%d", step, i)}
		for _, c := range o.columns {
			switch {
			case !slices.Contains(named, c.name):
			case o.often(1):
				row[c.name] = nil
			default:
				row[c.name] = pick(o, c.values)
			}
		}
		b.rows = append(b.rows, row)
		b.keys = append(b.keys, 0)
		switch {
		case o.chance.IntN(12) > 0 || b.form == "maps":
		case len(before) > 0 && o.often(5):
			id, _ := strconv.ParseInt(pick(o, before)["id"], 10, 64)
			b.keys[i] = types.Snowflake(id)
		case i > 0 && o.often(5):
			b.keys[i] = b.keys[0]
		default:
			b.keys[i] = types.Snowflake(1 + o.chance.IntN(9))
		}
		if b.keys[i] != 0 && slices.Contains(b.keys[:i], b.keys[i]) {
			if b.shared = b.form != "parents"; !b.shared {
				b.keys[i] = 0 // of associations with one key GORM sends the first alone
			}
		}
		kids := 0
		if o.often(3) && b.form != "maps" {
			kids = 1 + o.chance.IntN(2)
		}
		b.kids = append(b.kids, kids)
	}
	if len(b.rows) == 1 && b.form == "slice" {
		b.form = "struct"
	}
	b.clause = o.conflict(b)
	o.vary(b)
	o.doing = b.String()
	return b
}

func (b *batch) String() string {
	return fmt.Sprintf("%s %+v of %v, keys %d, kids %d", b.form, b.clause, b.rows, b.keys, b.kids)
}

// vary draws how the program sends the statement: with which model, from which call, and what it
// asks back.
func (o *oracle) vary(b *batch) {
	one := func(of int) bool { return o.chance.IntN(of) == 0 }
	b.session.FullSaveAssociations = b.form != "parents" && one(5)
	if b.form == "maps" {
		b.model = oracleModels[o.chance.IntN(2)]
		return
	}
	n := o.chance.IntN(len(oracleModels))
	switch given := slices.ContainsFunc(b.keys, func(id types.Snowflake) bool { return id != 0 }); {
	case oracleModels[n].counted && !o.counts:
		n = 0
	case n == 4 && given: // where GORM counts by the default too, and by that alone with the plugin
		n = 3
	}
	b.model = oracleModels[n]
	for i := range b.keys {
		// GORM makes a difference for rows with a key. To a small one the database may count.
		if n == 3 && b.keys[i] < 10 && (b.keys[i] > 0 || one(3)) {
			o.dummies++
			b.keys[i] = 1<<40 + 1000*types.Snowflake(o.dummies)
		}
	}
	on, _ := b.clause.(clause.OnConflict)
	switch {
	case b.form == "save" || b.form == "parents":
	case b.form == "struct" && one(4):
		b.form, b.clause, b.updates, b.moves = "save one", upsertAll(), true, true
	case b.form == "slice" && one(4):
		b.form = "generic"
	case b.updates && !on.DoNothing && len(on.Where.Exprs) == 0 && (b.form == "slice" || b.form == "struct") && one(6):
		b.returning = &clause.Returning{}
		clear(b.kids) // GORM replaces the rows by what is returned
	case one(3):
		b.returning = &clause.Returning{Columns: columns([]string{"note"})}
	}
	if ignore, ok := b.clause.(clause.Insert); ok && o.sqlite() && one(2) {
		ignore.Modifier = "OR REPLACE"
		b.clause, b.replaces = ignore, true
		clear(b.kids)
	}
}

// conflict draws what the statement does with rows that are there.
func (o *oracle) conflict(b *batch) clause.Expression {
	switch b.form {
	case "save":
		b.updates, b.moves = true, true
		return upsertAll() // GORM's own, of slices
	case "parents":
		return doNothing() // GORM's own, of associations
	}
	var target clause.OnConflict
	if x := pick(o, o.indexes); x.whole && o.often(8) {
		target.Columns = columns(x.columns)
		if x.where != "" {
			target.TargetWhere.Exprs = []clause.Expression{clause.Expr{SQL: x.where}}
		}
	} else {
		target.Columns = columns([]string{"id"})
	}
	switch o.chance.IntN(8) {
	case 0:
		return nil
	case 1, 2:
		return doNothing()
	case 3:
		target.DoNothing = true
		return target
	case 4:
		if modifier := map[string]string{"sqlite": "OR IGNORE", "mysql": "IGNORE"}[o.db.Name()]; modifier != "" {
			return clause.Insert{Modifier: modifier}
		}
		return doNothing()
	case 5:
		target.UpdateAll, b.moves = true, true
	default:
		set := []string{"note"}
		if o.often(3) {
			set = append(set, pick(o, o.columns).name)
			b.moves = true
		}
		target.DoUpdates = clause.AssignmentColumns(set)
		switch o.chance.IntN(6) {
		case 0:
			target.Where.Exprs = []clause.Expression{clause.Expr{SQL: "1 = 0"}}
		case 1:
			target.Where.Exprs = []clause.Expression{clause.Neq{Column: clause.Column{Table: o.name, Name: "note"}, Value: "0.0"}}
		}
	}
	b.updates = true
	return target
}

// send sends the rows of list, with keys where they have one. It returns the statement, and
// then what the keys in memory are. Only the plugin gets the kids.
func send[K ~int64, F any](b *batch, db *gorm.DB, list []int, keys []types.Snowflake, plugin bool) (tx *gorm.DB, memory []types.Snowflake) {
	db = db.Session(&b.session)
	var clauses []clause.Expression
	if b.clause != nil && !strings.HasPrefix(b.form, "save") && !(plugin && b.form == "parents") {
		clauses = append(clauses, b.clause)
	}
	if b.returning != nil {
		clauses = append(clauses, *b.returning)
	}
	if b.form != "generic" {
		db = db.Clauses(clauses...)
	}
	if b.form == "maps" {
		var rows []map[string]any
		for _, i := range list {
			row := maps.Clone(b.rows[i])
			if keys[i] != 0 {
				row["id"] = K(keys[i])
			}
			rows = append(rows, row)
		}
		if db = db.Model(&oracleRow[K, F]{}); len(rows) == 1 {
			tx = db.Create(rows[0])
		} else {
			tx = db.Create(rows)
		}
		for _, row := range rows {
			key, _ := row["id"].(K)
			memory = append(memory, types.Snowflake(key))
		}
		return tx, memory
	}
	rows := make([]oracleRow[K, F], len(list))
	pointers := make([]*oracleRow[K, F], len(list))
	kids := make([]oracleKid[K, F], len(list))
	stmt := &gorm.Statement{DB: db}
	if err := stmt.Parse(&rows); err != nil {
		panic(err)
	}
	for n, i := range list {
		pointers[n] = &rows[n]
		for name, value := range b.rows[i] {
			if value == nil {
				continue
			}
			if err := stmt.Schema.LookUpField(name).Set(db.Statement.Context, reflect.ValueOf(pointers[n]).Elem(), value); err != nil {
				panic(err)
			}
		}
		rows[n].ID = K(keys[i])
		kids[n] = oracleKid[K, F]{Name: rows[n].Note + ".0", Row: &rows[n]}
		for k := range b.kids[i] {
			if plugin && b.form != "parents" {
				rows[n].Kids = append(rows[n].Kids, oracleKid[K, F]{Name: fmt.Sprint(rows[n].Note, ".", k)})
			}
		}
	}
	switch {
	case b.form == "parents" && plugin:
		tx = db.Create(&kids)
	case b.form == "save":
		tx = db.Save(&rows)
	case b.form == "save one" && (plugin || b.keys[list[0]] != 0):
		tx = db.Save(&rows[0])
	case b.form == "struct", b.form == "save one":
		tx = db.Create(&rows[0])
	case b.form == "generic":
		result := gorm.WithResult()
		err := gorm.G[oracleRow[K, F]](db, append(clauses, result)...).CreateInBatches(db.Statement.Context, &rows, len(rows))
		tx = &gorm.DB{Error: err, RowsAffected: result.RowsAffected}
	case b.form == "pointers":
		tx = db.Create(pointers)
	case b.form == "batches of 2":
		tx = db.CreateInBatches(&rows, 2)
	default:
		tx = db.Create(&rows)
	}
	for n := range rows {
		memory = append(memory, types.Snowflake(rows[n].ID))
		for _, kid := range rows[n].Kids {
			if tx.Error == nil && kid.RowID != rows[n].ID {
				tx.Error = fmt.Errorf("kid %q refers to %d in memory; want %d", kid.Name, kid.RowID, rows[n].ID)
			}
		}
	}
	return tx, memory
}

// A fate is what the plain database does with a row.
type fate struct {
	id       string          // of the row that was inserted or changed; "": none was
	inserted bool            // a row was
	met      map[string]bool // the rows that it conflicts with
}

// foresee sends the rows one by one, and returns the fate of each and the rows after all. It
// returns an error if the database does.
func (o *oracle) foresee(b *batch, keys []types.Snowflake) (fates []fate, after []storedRow, err error) {
	err = undone(o.plain, func(tx *gorm.DB) error {
		for i := range b.rows {
			before, err := o.rowsOf(tx)
			if err != nil {
				return err
			}
			// insert returns how many rows there are then.
			insert := func(tx *gorm.DB) (n int, err error) {
				if sent, _ := b.model.send(b, tx, []int{i}, keys, false); sent.Error != nil {
					return 0, sent.Error
				}
				after, err = o.rowsOf(tx)
				return len(after), err
			}
			f := fate{met: map[string]bool{}}
			if err := tx.SavePoint("oracle").Error; err != nil {
				return err
			}
			n, err := insert(tx)
			if err != nil {
				return err
			}
			if f.inserted = n > len(before); !f.inserted {
				if err := tx.RollbackTo("oracle").Error; err != nil {
					return err
				}
				for _, row := range before {
					if !b.mayMeet(i, row["id"]) {
						continue
					}
					err := undone(tx, func(tx *gorm.DB) error {
						if err := tx.Exec("DELETE FROM "+o.name+" WHERE id <> ?", row["id"]).Error; err != nil {
							return err
						}
						// An error is a conflict that the statement does not ignore.
						if n, err := insert(tx); err == nil && n == 1 {
							f.met[row["id"]] = true
						}
						return nil
					})
					if err != nil {
						return err
					}
				}
				if _, err := insert(tx); err != nil {
					return err
				}
			}
			for _, row := range after {
				if row["note"] == b.rows[i]["note"] {
					f.id = row["id"]
				}
			}
			fates = append(fates, f)
		}
		return nil
	})
	return fates, after, err
}

// firstMany is the key of the first stored row that the first of many rows meets.
const firstMany = 1 << 20

// mayMeet reports whether row i may meet the stored row id.
func (b *batch) mayMeet(i int, id string) bool {
	n, _ := strconv.Atoi(id)
	n -= firstMany
	if first := len(b.rows) - b.many; n >= 0 && n < b.many || i >= first {
		return n == i-first
	}
	return true
}

func (o *oracle) rowsOf(db *gorm.DB) ([]storedRow, error) { return rowsOf(db, "SELECT * FROM "+o.name) }

// undone runs work in a transaction, or a savepoint, and rolls it back.
func undone(db *gorm.DB, work func(tx *gorm.DB) error) error {
	err := db.Transaction(func(tx *gorm.DB) error {
		if err := work(tx); err != nil {
			return err
		}
		return errRollback
	})
	if errors.Is(err, errRollback) {
		return nil
	}
	return err
}

// statement runs one statement and compares what it does.
func (o *oracle) statement(step int) error {
	before, err := o.rowsOf(o.plain)
	if err != nil {
		return err
	}
	if most := 7; len(before) > most { // few, since each costs a trial
		var gone []string
		for _, row := range before[most:] {
			gone = append(gone, row["id"])
		}
		o.must(o.plain.Exec("DELETE FROM "+o.name+" WHERE id IN ?", gone))
		before = before[:most]
	}
	b := o.batch(step, before)
	want, err := o.without(b, before)
	if err != nil {
		return err
	}
	return o.with(b, want, o.db, o.plain)
}

// An expectation is what the plain database does with a batch.
type expectation struct {
	before, after []storedRow
	fates         []fate
	affected      int64 // -1: not known
	refused       error
}

// without sends b without the plugin, and undoes it.
func (o *oracle) without(b *batch, before []storedRow) (*expectation, error) {
	want, keys := &expectation{before: before}, slices.Clone(b.keys)
	for i := range b.rows {
		if keys[i] == 0 {
			o.dummies++
			keys[i] = 1<<61 + types.Snowflake(o.dummies)
		}
	}
	want.refused = undone(o.plain, func(tx *gorm.DB) error {
		sent, _ := b.model.send(b, tx, b.all(), keys, false)
		want.affected = sent.RowsAffected
		if sent.Error != nil {
			return sent.Error
		}
		var err error
		want.after, err = o.rowsOf(tx)
		return err
	})
	if want.refused != nil {
		return want, nil //nolint:nilerr // a refusal is what is expected then
	}
	fates, last, err := o.foresee(b, keys)
	if err != nil {
		return nil, fmt.Errorf("oracle: rows sent one by one: %w", err)
	}
	if want.fates = fates; !slices.Equal(o.contents(last, before), o.contents(want.after, before)) {
		return nil, fmt.Errorf("oracle: rows sent one by one make %v; at once %v", last, want.after)
	}
	if b.model.counted {
		if err := undone(o.plain, func(tx *gorm.DB) error {
			sent, _ := b.model.send(b, tx, b.all(), b.keys, false)
			want.affected = sent.RowsAffected
			return sent.Error
		}); err != nil && strings.HasPrefix(err.Error(), "Error 1869") {
			want.affected = -1 // GORM's "id = id" meets a number that MySQL has counted for another row
		} else if err != nil {
			return nil, fmt.Errorf("oracle: rows without keys: %w", err)
		}
	}
	return want, nil
}

func (b *batch) all() (list []int) {
	for i := range b.rows {
		list = append(list, i)
	}
	return list
}

// with sends b with the plugin by db, reads the tables by reader, and compares.
func (o *oracle) with(b *batch, want *expectation, db, reader *gorm.DB) error {
	before, fates, refused := want.before, want.fates, want.refused
	sent, memory := b.model.send(b, db, b.all(), b.keys, true)
	after, err := o.rowsOf(reader)
	if err != nil {
		return err
	}
	kids, err := rowsOf(reader, "SELECT * FROM "+o.prefix+"oracle_kids")
	if err != nil {
		return err
	}
	o.must(reader.Exec("DELETE FROM " + o.prefix + "oracle_kids"))
	if sent.Error != nil {
		if !reflect.DeepEqual(after, before) || len(kids) > 0 {
			return fmt.Errorf("after %w there are %v and kids %v; want %v", sent.Error, after, kids, before)
		}
		switch unresolved := errors.Is(sent.Error, gormplugin.ErrUnresolved); {
		case refused != nil && !unresolved,
			// A connection may have seen the table before, and sends or takes the old types.
			o.altered && !strings.HasPrefix(sent.Error.Error(), "gormplugin: "):
			o.failed++
			return nil
		case unresolved && (len(fates) == 0 || slices.ContainsFunc(b.all(), func(i int) bool { // without fates, a later batch of two is refused
			return (b.kids[i] > 0 || b.form == "parents") && o.mayBeZero(b, fates, i)
		})):
			o.unresolved++
			return o.reason(b, sent.Error)
		}
		if errors.Is(sent.Error, gormplugin.ErrUnresolved) && slices.ContainsFunc(b.all(), func(i int) bool { return b.equalsLater(fates, i) }) {
			o.defects = append(o.defects, laterRow)
		}
		return fmt.Errorf("error %w; without the plugin %v, and rows meet %+v", sent.Error, refused, fates)
	}
	if refused != nil {
		return fmt.Errorf("no error; without the plugin %w", refused)
	}
	if got, plain := o.contents(after, before), o.contents(want.after, before); !slices.Equal(got, plain) {
		return fmt.Errorf("stored are %v; without the plugin %v", got, plain)
	}
	for i, f := range fates {
		if b.replaces {
			break // a row may replace an earlier one
		}
		if memory[i] == 0 && b.equalsLater(fates, i) {
			o.defects = append(o.defects, laterRow)
		}
		if err := o.key(b, fates, i, memory[i], after, want.after); err != nil {
			return fmt.Errorf("row %d: %w; fate %+v, memory %d, stored %v", i, err, f, memory, after)
		}
	}
	if err := o.parents(b, memory, kids); err != nil {
		return err
	}
	if b.form != "parents" && want.affected >= 0 && sent.RowsAffected != want.affected {
		return fmt.Errorf("RowsAffected = %d; without the plugin %d", sent.RowsAffected, want.affected)
	}
	return nil
}

// reason compares the reason of an error that is ErrUnresolved with that of b.
func (o *oracle) reason(b *batch, err error) error {
	o.last = nil
	if !errors.As(err, &o.last) {
		return fmt.Errorf("error %w; want an UnresolvedError", err)
	}
	if want := b.why[o.last.Row]; want != 0 && o.last.Reason != want {
		return fmt.Errorf("error %w, reason %d; want %d", err, o.last.Reason, want)
	}
	return nil
}

// contents returns rows in order, with "new" for the keys of new ones.
func (o *oracle) contents(rows, before []storedRow) (list []string) {
	for _, row := range rows {
		row = maps.Clone(row)
		id, _ := strconv.ParseInt(row["id"], 10, 64)
		fresh := !slices.ContainsFunc(before, func(old storedRow) bool { return old["id"] == row["id"] })
		if fresh && (id > 1<<61 || o.src.gave(types.Snowflake(id))) {
			row["id"] = "new"
		}
		list = append(list, fmt.Sprint(row))
	}
	slices.Sort(list)
	return list
}

// mayBeZero reports whether the plugin may leave no key: row i met several rows, or
// one by an index that does not tell which.
func (o *oracle) mayBeZero(b *batch, fates []fate, i int) bool {
	if b.why != nil {
		_, keyless := b.why[i]
		return keyless
	}
	f := fates[i]
	opaque := slices.ContainsFunc(o.indexes, func(x oracleIndex) bool { return x.opaque })
	if o.mysql() && len(b.rows) > 1 && b.keys[i] != 0 && (b.moves || b.shared && opaque) {
		return true // a key that rows share does not tell which of them has it
	}
	return !f.inserted && (len(f.met) != 1 || b.silent || b.updates && len(b.rows) > 1 || opaque)
}

// equalsLater reports whether row i met a stored row, and may equal one that a later row has stored
// under a key of the caller.
func (b *batch) equalsLater(fates []fate, i int) bool {
	if fates[i].inserted {
		return false
	}
	for j := i + 1; j < len(fates); j++ {
		if fates[j].inserted && b.keys[j] != 0 {
			return true
		}
	}
	return false
}

// key compares the key in memory of row i with what is stored.
func (o *oracle) key(b *batch, fates []fate, i int, key types.Snowflake, after, plain []storedRow) error {
	f, got := fates[i], key.String()
	// stored returns the key of a row that the plain database made under a key of its own.
	stored := func(id string) string {
		for _, row := range plain {
			if n, _ := strconv.ParseInt(id, 10, 64); row["id"] != id || n <= 1<<61 {
				continue
			}
			for _, other := range after {
				if other["note"] == row["note"] {
					return other["id"]
				}
			}
		}
		return id
	}
	_, keyless := b.why[i]
	switch {
	case key == 0 && o.mayBeZero(b, fates, i):
		o.keyless++
	case keyless && !(b.form == "parents" && o.tellsMet()):
		return fmt.Errorf("key %s; want none", got)
	case f.id != "":
		if got != stored(f.id) {
			return fmt.Errorf("key %s; want %s", got, stored(f.id))
		}
		if f.inserted {
			o.inserted++
		} else {
			o.met++
		}
	default:
		for id := range f.met {
			if got == stored(id) {
				if len(f.met) > 1 {
					o.several++
				} else {
					o.met++
				}
				return nil
			}
		}
		return fmt.Errorf("key %s; want one of those that it met", got)
	}
	return nil
}

// parents compares the kids with the keys in memory.
func (o *oracle) parents(b *batch, memory []types.Snowflake, kids []storedRow) error {
	want := map[string]string{}
	for i, row := range b.rows {
		n := b.kids[i]
		if b.form == "parents" {
			n = 1
		}
		for k := range n {
			want[fmt.Sprint(row["note"], ".", k)] = memory[i].String()
		}
	}
	got := map[string]string{}
	for _, kid := range kids {
		got[kid["name"]] = kid["row_id"]
	}
	if !maps.Equal(got, want) || slices.Contains(slices.Collect(maps.Values(got)), "0") {
		return fmt.Errorf("kids have the parents %v; want %v, and not 0", got, want)
	}
	return nil
}
