package gormcases

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/gormplugin/schemacheck"
	"github.com/snowkey/snowkey/types"
)

// modelRows are what Check finds without a table, or where there is hardly more than one.
func modelRows() []checkRow {
	type Counting struct{ ID uint }
	type Typed struct{ ID int64 }
	type Keyless struct{ Name string }
	type Several struct {
		A int64 `gorm:"primaryKey"`
		B int64 `gorm:"primaryKey"`
	}
	type Meant struct {
		ID int64 `gorm:"primaryKey;autoIncrement"`
	}
	type Out struct {
		ID int64 `gorm:"snowflake:-"`
	}
	type Setting struct {
		Key   string `gorm:"primaryKey;size:50"`
		Value string
	}
	type Wrong struct {
		ID types.Snowflake `gorm:"snowflake:sometimes"`
	}
	type Counted struct {
		ID types.Snowflake `gorm:"primaryKey;autoIncrement"`
	}
	type Items struct {
		ID  int64
		SKU string
	}
	type Shared struct{ ID types.Snowflake }
	type Shareds struct {
		ID types.Snowflake `gorm:"snowflake:-"` // whose rows come from elsewhere
	}
	type Leaf struct{ ID, StemID types.Snowflake }
	type Stem struct {
		ID    uint `gorm:"primaryKey;autoIncrement"`
		Other types.Snowflake
		Leafs []Leaf
	}
	const none, own = string(schemacheck.NoKey), string(schemacheck.OwnKey)
	const bad, shared, table = string(schemacheck.BadModel), string(schemacheck.SharedTable), string(schemacheck.MissingTable)
	return []checkRow{
		{
			claim: "CheckFindsModelsWithoutAKey", models: []any{&Counting{}, &Typed{}, &Keyless{}, &Several{}, &Meant{}, &Out{}},
			finds: []expected{{none + " ID", ".Counting.ID", words, ""}, {none + " ID", "table PRE_typeds, column id", words, ""}, {none, ".Keyless", words, ""}},
		},
		{
			claim: "CheckListsKeysThatOnlyTheProgramSets", models: []any{&Setting{}},
			finds: []expected{{own + " Key", "table PRE_settings, column key: is string", words, ""}},
		},
		{
			claim: "CheckFindsAModelThatCannotWorkOnce", models: []any{&Wrong{}, &Wrong{}, &Counted{}},
			finds: []expected{{bad + " ID", "sometimes", words, ""}, {bad + " ID", "autoIncrement", words, ""}},
		},
		{
			claim: "CheckFindsModelsOfOneTableThatDiffer", models: []any{&Item{}, &Items{}},
			tables: `items (id bigint NOT NULL PRIMARY KEY, order_id bigint, sku text)`,
			finds:  []expected{{none + " ID", "", words, ""}, {shared, ".Items, table PRE_items: is filled in no column, but in id for ", words, ""}},
		},
		{
			claim: "CheckFindsThatTheDatabaseCountsForAnyModelOfATable", models: []any{&Shared{}, &Shareds{}}, anyOrder: true,
			tables: `shareds (id $counted)`, finds: []expected{{shared, ".Shared", words, ""}, {counts + "ID", "", statements, ""}},
		},
		{
			claim: "CheckFindsEachTableThatIsMissingOnce", models: []any{&Order{}, &Order{}},
			finds: []expected{{table, "table PRE_orders", words, ""}, {table, "PRE_items", words, ""}, {table, "PRE_order_labels", words, ""}, {table, "PRE_receipts", words, ""}},
		},
		{
			claim: "CheckFindsAParentThatIsMissing", models: []any{&Leaf{}, &Stem{}}, anyOrder: true,
			tables: `leafs (id bigint PRIMARY KEY, stem_id bigint)`, finds: []expected{{table, "PRE_stems", words, ""}},
		},
	}
}

// tableRows are what Check finds in columns, indexes and views.
func tableRows() []checkRow {
	type Part struct {
		ID     types.Snowflake
		BoxID  *types.Snowflake
		LidID  int64 // of no type of ours, but of a key that is
		Amount types.NullSnowflake
	}
	type Box struct {
		ID    types.Snowflake
		Parts []Part
		Lids  []Part `gorm:"foreignKey:LidID"`
	}
	type Page struct{ ID, BookID types.Snowflake }
	type Label struct {
		ID      string `gorm:"primaryKey;snowflake"`
		Exact   string `gorm:"snowflake"`
		Endless string `gorm:"snowflake"`
	}
	type Leaf struct {
		ID        types.Snowflake
		GormOldID types.Snowflake
		GormOld   *gormOld
		Public    string `gorm:"snowflake"`
	}
	type Key struct{ ID types.Snowflake }
	type KeyPart struct{ ID, KeysID types.Snowflake }
	type Keys struct {
		ID    types.Snowflake `gorm:"primaryKey;autoIncrement;snowflake:-"`
		Parts []KeyPart
	}
	type Half struct {
		ID int64 `gorm:"primaryKey;snowflake"`
	}
	type Deep struct {
		ID     types.Snowflake
		Number types.NullSnowflake
		Text   string `gorm:"snowflake"`
	}
	type Seen struct {
		ID    types.Snowflake
		Other types.NullSnowflake
	}
	type Reading struct{ ID, UnitID types.Snowflake }
	type Made struct {
		ID    types.Snowflake
		Copy  types.NullSnowflake `gorm:"->"`
		Short types.NullSnowflake `gorm:"->"`
		Late  types.NullSnowflake `gorm:"snowflake"`
	}
	type Shelf struct {
		ID     types.Snowflake `gorm:"column:Id"`
		BookID types.Snowflake `gorm:"column:Book Id"`
	}
	type Mixed struct{ ID types.Snowflake }
	type User struct {
		ID    types.Snowflake
		Email string
	}
	seen := []expected{{wrong + "ID", "view", words, ""}, {missing + "Other", "view", words, ""}}
	key := func(says string) []expected { return []expected{{counts + "ID", says, statements, ""}} }
	return []checkRow{
		{
			claim: "CheckFindsColumnsThatAreTooNarrow", models: []any{&Box{}, &Part{}},
			tables: `boxes (id $narrow NOT NULL PRIMARY KEY);
				parts (id bigint NOT NULL PRIMARY KEY, box_id $narrow, lid_id $narrow, amount decimal(10,0));
				INSERT INTO PRE_parts VALUES (1, 2, 3, 4)`,
			finds: []expected{
				{what: narrow + "ID"}, {what: narrow + "LidID"},
				{what: narrow + "BoxID", says: ".Part.BoxID, table PRE_parts, column box_id: is "}, {what: narrow + "Amount", says: ", want bigint", on: "!sqlite"},
			},
			after: `INSERT INTO PRE_boxes VALUES (9223372036854775807)`,
		},
		{
			claim: "CheckFindsColumnsOfText", models: []any{&Page{}, &Label{}},
			tables: `pages (id varchar(10) NOT NULL PRIMARY KEY, book_id varchar(40) NOT NULL);
				labels (id varchar(10) NOT NULL PRIMARY KEY, exact varchar(19), endless text);
				INSERT INTO PRE_pages VALUES ('9', '10')`,
			finds: []expected{{what: wrong + "ID"}, {what: wrong + "BookID"}, {what: narrow + "ID", on: "!sqlite"}}, // which does not look at lengths
		},
		{
			claim: "CheckFindsAColumnThatIsMissing", models: []any{&Leaf{}},
			// Rows would have no key, and nothing would keep them apart.
			tables: `gorm_olds (id $uint);
				leafs (n int)`,
			finds: []expected{{missing + "ID", "", words, ""}, {missing + "GormOldID", "table PRE_leafs, column gorm_old_id", statements, ""}, {missing + "Public", "", words, ""}},
		},
		{
			claim: "CheckFindsThatTheDatabaseCountsAsWell", models: []any{&Key{}},
			tables: `keys (id $uint, name varchar(40));
				INSERT INTO PRE_keys (name) VALUES ('old')`,
			finds: []expected{{what: differ + "ID", on: "mysql"}, {counts + "ID", "", mended, "mysql"}, {counts + "ID", "", statements, "!mysql"}},
		},
		{claim: "CheckFindsNoCounterThatAModelWants", models: []any{&Keys{}}, tables: `keys (id $counted);
			key_parts (id bigint NOT NULL PRIMARY KEY, keys_id bigint)`},
		{
			claim: "CheckKeepsTheCountingThatAModelWants", on: "mysql", models: []any{&Keys{}, &KeyPart{}}, // whose statement says all of a column
			tables: `keys (id int NOT NULL AUTO_INCREMENT PRIMARY KEY);
				key_parts (id bigint NOT NULL PRIMARY KEY, keys_id bigint)`,
			finds: []expected{{what: narrow + "ID"}},
			after: `INSERT INTO PRE_keys () VALUES ()`,
		},
		{claim: "CheckFindsAnIdentity", on: "postgres", models: []any{&Key{}}, tables: `keys (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY)`, finds: key("is GENERATED ALWAYS AS IDENTITY")},
		{claim: "CheckFindsAnIdentityByDefault", on: "postgres", models: []any{&Key{}}, tables: `keys (id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY)`, finds: key("is GENERATED BY DEFAULT AS IDENTITY")},
		{claim: "CheckFindsATaggedKeyThatGORMMakesCount", models: []any{&Half{}}, tables: `halves (id $counted)`, finds: key("autoIncrement:false")},
		{
			claim: "CheckFindsSequencesOfMariaDB", on: "mariadb", models: []any{&Key{}},
			tables: `CREATE SEQUENCE PRE_numbers;
				keys (id bigint NOT NULL DEFAULT nextval(PRE_numbers) PRIMARY KEY)`,
			finds: key("nextval"),
		},
		{
			claim: "CheckReadsTheTypeBelowDomains", on: "postgres", models: []any{&Deep{}},
			tables: `CREATE DOMAIN PRE_key AS bigint;
				CREATE DOMAIN PRE_order_key AS PRE_key NOT NULL;
				CREATE DOMAIN PRE_paid_key AS PRE_order_key CHECK (VALUE > 0);
				CREATE DOMAIN PRE_short AS numeric(10);
				CREATE DOMAIN PRE_shorter AS PRE_short;
				CREATE DOMAIN PRE_name AS varchar(30);
				CREATE DOMAIN PRE_title AS PRE_name;
				deeps (id PRE_paid_key PRIMARY KEY, number PRE_shorter, text PRE_title)`,
			finds: []expected{{what: narrow + "Number", says: "is numeric(10,0)"}},
		},
		{claim: "CheckGivesNoStatementForAView", models: []any{&Seen{}}, finds: seen, tables: `bases (id varchar(40));
			CREATE VIEW PRE_seens AS SELECT id FROM PRE_bases`},
		{claim: "CheckGivesNoStatementForAMaterializedView", on: "postgres", models: []any{&Seen{}}, finds: seen, tables: `bases (id varchar(40));
			CREATE MATERIALIZED VIEW PRE_seens AS SELECT id FROM PRE_bases`},
		{
			claim: "CheckReadsPartitionedTables", on: "postgres", models: []any{&Reading{}}, // others change all partitions with the table
			tables: `readings (id serial PRIMARY KEY, unit_id int) PARTITION BY RANGE (id);
				CREATE TABLE PRE_readings_1 PARTITION OF PRE_readings FOR VALUES FROM (0) TO (1000)`,
			finds: []expected{{narrow + "ID", "partitioned", words, ""}, {what: counts + "ID"}, {what: narrow + "UnitID"}},
		},
		{
			claim: "CheckReadsAPartition", on: "postgres", models: []any{&partition{}},
			tables: `readings (id int PRIMARY KEY, unit_id int) PARTITION BY RANGE (id);
				CREATE TABLE PRE_readings_1 PARTITION OF PRE_readings FOR VALUES FROM (0) TO (1000)`,
			finds: []expected{{narrow + "ID", "parent", words, ""}, {narrow + "UnitID", "parent", words, ""}},
		},
		{
			claim: "CheckFindsAKeyThatIsGenerated", models: []any{&Made{}},
			tables: `mades (n int, id bigint GENERATED ALWAYS AS (n + 1) STORED, copy bigint GENERATED ALWAYS AS (n + 2) STORED,
				short $narrow GENERATED ALWAYS AS (n + 3) STORED, late bigint GENERATED ALWAYS AS (n + 4) $stored)`,
			finds: []expected{{wrong + "ID", "", words, ""}, {narrow + "Short", "", words, ""}, {wrong + "Late", "", words, ""}},
		},
		{
			claim: "CheckQuotesNamesAsTheyAre", models: []any{&Shelf{}},
			tables: `shelves ("Id" varchar(20) PRIMARY KEY, "Book Id" varchar(20))`,
			finds:  []expected{{what: wrong + "ID"}, {what: wrong + "BookID", says: "column Book Id"}},
		},
		{
			claim: "CheckTellsTablesApartByCase", models: []any{&Mixed{}},
			tables: `CREATE TABLE "PRE_Mixeds" ("ID" bigint PRIMARY KEY)`,
			finds:  []expected{{string(schemacheck.MissingTable), "", words, "!sqlite"}},
		},
		{
			claim: "CheckFindsUniqueIndexesOnExpressions", on: "!mariadb", models: []any{&User{}},
			tables: `users (id bigint NOT NULL PRIMARY KEY, email varchar(40));
				CREATE UNIQUE INDEX PRE_plain ON PRE_users (email);
				CREATE INDEX PRE_slow ON PRE_users ((lower(email)));
				CREATE UNIQUE INDEX PRE_folded ON PRE_users ((lower(email)), id)`,
			finds: []expected{{string(schemacheck.ExpressionIndex), "table PRE_users: is unique index PRE_folded", words, ""}},
		},
	}
}

// signRows are the columns of MySQL that have a sign or have none.
func signRows() []checkRow {
	type Crate struct {
		ID uint64 `gorm:"primaryKey;autoIncrement:false;snowflake"`
	}
	type Leaf struct {
		ID        types.Snowflake
		RootID    types.Snowflake
		TrunkID   types.Snowflake
		GormOldID types.Snowflake
		GormOld   *gormOld // of which Check gets no model
	}
	type Root struct {
		ID    types.Snowflake `gorm:"primaryKey;autoIncrement;snowflake:-"`
		Leafs []Leaf
	}
	type Trunk struct {
		ID    types.Snowflake `gorm:"snowflake:-"`
		Leafs []Leaf
	}
	boxes, tree := []any{&Box{}, &Part{}}, []any{&Leaf{}, &Root{}, &Trunk{}}
	signs := func(root, trunk, old, toRoot, toTrunk, toOld string) string {
		return fmt.Sprintf(`roots (id bigint %s NOT NULL AUTO_INCREMENT PRIMARY KEY);
			trunks (id bigint %s NOT NULL AUTO_INCREMENT PRIMARY KEY);
			gorm_olds (id bigint %s NOT NULL AUTO_INCREMENT PRIMARY KEY);
			leafs (id bigint NOT NULL PRIMARY KEY, root_id bigint %s, trunk_id bigint %s, gorm_old_id bigint %s)`, root, trunk, old, toRoot, toTrunk, toOld)
	}
	const bound = `ALTER TABLE PRE_leafs ADD FOREIGN KEY (root_id) REFERENCES PRE_roots (id), ADD FOREIGN KEY (trunk_id) REFERENCES PRE_trunks (id),
		ADD FOREIGN KEY (gorm_old_id) REFERENCES PRE_gorm_olds (id)`
	rows := []checkRow{
		{
			claim: "CheckFindsAKeyWithoutASign", models: boxes, finds: []expected{{what: differ + "ID"}},
			tables: `boxes (id bigint unsigned NOT NULL PRIMARY KEY);
				parts (id bigint NOT NULL PRIMARY KEY, box_id bigint)`,
			after: `ALTER TABLE PRE_parts ADD FOREIGN KEY (box_id) REFERENCES PRE_boxes (id)`,
		},
		{
			claim: "CheckFindsAReferenceWithoutASign", models: boxes, finds: []expected{{what: differ + "BoxID"}},
			tables: `boxes (id bigint NOT NULL PRIMARY KEY);
				parts (id bigint NOT NULL PRIMARY KEY, box_id bigint unsigned)`,
			after: `ALTER TABLE PRE_parts ADD FOREIGN KEY (box_id) REFERENCES PRE_boxes (id)`,
		},
		{
			claim: "CheckFindsASignThatTheModelLacks", models: []any{&Crate{}}, tables: `crates (id bigint NOT NULL PRIMARY KEY)`,
			finds: []expected{{what: differ + "ID", says: "want bigint unsigned"}},
		},
		{claim: "CheckLeavesTheSignOfACountedKeyToItsColumn", models: tree, tables: signs("unsigned", "", "unsigned", "unsigned", "", "unsigned"), after: bound},
		{claim: "CheckLeavesTheOtherSignOfACountedKeyToItsColumn", models: tree, tables: signs("", "unsigned", "", "", "unsigned", ""), after: bound},
		{
			claim: "CheckComparesAReferenceWithTheColumnOfACountedKey", models: tree, tables: signs("unsigned", "", "unsigned", "", "unsigned", ""), after: bound,
			finds: []expected{{what: differ + "RootID"}, {what: differ + "TrunkID"}, {what: differ + "GormOldID", says: "want bigint unsigned"}},
		},
		{claim: "CheckLeavesTheSignWhereNoForeignKeyIs", models: []any{&Counting{}, &Keyed{}, &LooseNote{}, &Loose{}}, anyOrder: true, tables: `countings (id bigint unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY);
			keyeds (id bigint NOT NULL PRIMARY KEY);
			loose_notes (id bigint NOT NULL PRIMARY KEY, owner_id bigint, owner_type varchar(40));
			looses (id bigint NOT NULL PRIMARY KEY, counting_id bigint, keyed_id bigint unsigned, ghost_id bigint unsigned)`},
	}
	for i := range rows {
		rows[i].on = "mysql"
	}
	return rows
}

// columnTypes are types of columns, by the problem that Check finds in a column for a number, or
// for text. Statements mend a type unless it has words.
var columnTypes = map[string][]struct {
	text  bool
	what  string
	how   remedy
	types string
}{
	"sqlite": {
		{false, "", words, "bigint; int2; unsigned big int; numeric; decimal(10,0); blob; date"},
		{false, narrow, statements, "real; float; double"},
		{false, wrong, statements, "text; varchar(40); clob"},
	},
	"postgres": {
		{false, "", words, "bigint; numeric; numeric(19); numeric(20,0)"},
		{false, narrow, statements, "integer; smallint; numeric(18)"},
		{false, narrow, words, "real; double precision"}, // which may have rounded
		{false, wrong, statements, "text; varchar(20); char(20); name"},
		{false, wrong, words, "uuid; bytea; json; numeric(20,2); bigint[]; date"},
		{true, "", words, "text; varchar(20); varchar; bpchar; name; bigint; numeric(20)"},
		{true, wrong, words, "uuid; bytea; json; jsonb; date; boolean"},
	},
	"mysql": {
		{false, "", words, "bigint; decimal(19); numeric(20,0)"},
		{false, narrow, statements, "tinyint; smallint; mediumint; integer; year; bit(60); decimal(18)"},
		{false, narrow, words, "float; double"},
		{false, wrong, statements, "char(20); varchar(20); tinytext; text; mediumtext; longtext"},
		{false, wrong, words, "decimal(22,2); date; blob; binary(16); enum('7','9')"}, // of which MODIFY would take the place in the list
		{true, "", words, "varchar(20); char(20); bigint; decimal(20)"},
		{true, wrong, words, "varbinary(20); binary(16); enum('1','2'); date; decimal(22,2)"},
	},
	"mariadb": {{false, wrong, words, "uuid"}, {true, wrong, words, "uuid"}},
}

var checkCases = []testCase{
	{"CheckTellsTheTypesOfColumnsApart", func(e *env) {
		type Ticket struct {
			ID    string `gorm:"primaryKey;snowflake"`
			Stubs []Stub
		}
		list := columnTypes[e.db.Name()]
		if e.mariadb() {
			list = append(slices.Clone(list), columnTypes["mariadb"]...)
		}
		for _, kind := range list {
			for typ := range strings.SplitSeq(kind.types, "; ") {
				e.make("tickets (id " + typ + " NOT NULL);\nstubs (id bigint NOT NULL, ticket_id " + typ + ");\nboxes (id bigint PRIMARY KEY);\nparts (id bigint PRIMARY KEY, box_id " + typ + ")")
				models, fields := []any{&Box{}, &Part{}}, []string{"BoxID"}
				if kind.text {
					models, fields = []any{&Ticket{}}, []string{"ID", "TicketID"}
				}
				findings := e.check(e.db, models...)
				for i, f := range findings {
					e.has(f, expected{how: kind.how})
					if len(findings) != len(fields) || string(f.Problem)+" " != kind.what || f.Field != fields[i] || kind.text != (strings.HasPrefix(f.Want, "text") || strings.HasPrefix(f.Want, "varchar")) {
						e.Errorf("Check of %s = %v; want %q of %q", typ, f, kind.what, fields)
					}
				}
				if kind.what != "" && len(findings) == 0 {
					e.Errorf("Check of %s finds nothing; want %q", typ, kind.what)
				}
				if kind.how == statements {
					e.mends(nil, models...)
				}
				e.make("DROP TABLE PRE_tickets;\nDROP TABLE PRE_stubs;\nDROP TABLE PRE_boxes;\nDROP TABLE PRE_parts")
			}
		}
	}},
	{"CheckFindsNothingInFreshTables", func(e *env) {
		type Profile struct { // its key is its parent's
			HubID types.Snowflake `gorm:"primaryKey"`
			Hub   *Hub
		}
		type Tagged struct {
			ID     uint64           `gorm:"primaryKey;autoIncrement:false;snowflake"`
			Public *types.Snowflake `gorm:"snowflake"`
		}
		type OptOut struct {
			ID types.Snowflake `gorm:"snowflake:-"`
		}
		models := slices.Concat(orderModels, []any{&Party{}, &Line{}, &Remark{}, &Team{}, &Node{}, &Event{}, &Hub{}, &Profile{}, &Text{}, &TextPart{}, &TextNote{}, &Tagged{}, &OptOut{}, &Counting{}, &Keyed{}, &LooseNote{}, &Loose{}})
		e.migrate(models...)
		e.finds(models)
	}},
	{"CheckFindsThatThePluginIsMissing", func(e *env) {
		e.migrate(&Item{})
		if findings := e.check(e.open(&gorm.Config{}), &Item{}); len(findings) != 1 || findings[0].Problem != schemacheck.NotInstalled {
			e.Errorf("Check = %v; want NotInstalled", findings)
		}
	}},
	{"CheckReadsWithAnyNamingStrategy", func(e *env) {
		e.make(`widgets ("COL_ID" bigint NOT NULL PRIMARY KEY)`)
		type Widget struct {
			ID      types.Snowflake
			Virtual types.Snowflake `gorm:"->;-:migration"`
		}
		e.finds([]any{&Widget{}}, missing+"ID")
		e.db = e.use(e.database(&gorm.Config{NamingStrategy: prefixedColumns{schema.NamingStrategy{TablePrefix: e.prefix}}, Logger: &e.log}), e.src)
		e.finds([]any{&Widget{}})
	}},
	{"UseRowIDsDoesNothingOnOtherDatabases", func(e *env) {
		e.only(!e.sqlite(), "SQLite has rowids")
		before := len(e.log.statements(""))
		if err := gormplugin.UseRowIDs(e.db, &Order{}, "nothing"); err != nil {
			e.Errorf("UseRowIDs = %v; want no error, and nothing done", err)
		}
		equal(e, "statements", len(e.log.statements("")), before)
		if err := e.db.AutoMigrate(&Order{}); err != nil || strings.Contains(strings.Join(e.log.statements("CREATE TABLE"), ";"), "integer") {
			e.Errorf("AutoMigrate = %v with %q; want bigint", err, e.log.statements("CREATE TABLE"))
		}
	}},
	{"CheckAndUseRowIDsMakeTheKeyTheRowid", func(e *env) {
		e.only(e.sqlite(), "others have no rowid")
		models := append(slices.Clone(orderModels), &Pair{}, &Node{})
		e.migrate(models...)
		rowIDs := func() []schemacheck.Finding {
			return slices.DeleteFunc(e.allFindings(e.db, models...), func(f schemacheck.Finding) bool { return f.Problem == schemacheck.PointerReference })
		}
		findings := rowIDs()
		equal(e, "findings of fresh tables", len(findings), len(models)-1) // not the composite key
		for _, f := range findings {
			if e.has(f, expected{}); f.Problem != schemacheck.NoRowID || !strings.Contains(f.Error(), "UseRowIDs") {
				e.Errorf("finding = %v; want NoRowID, which says UseRowIDs", f)
			}
		}
		fresh := e.with(e.src) // has learnt nothing of the models
		e.ok("UseRowIDs and AutoMigrate", errors.Join(fresh.Migrator().DropTable(append(slices.Clone(models), "order_labels")...), gormplugin.UseRowIDs(fresh, models...), fresh.AutoMigrate(models...)))
		if findings = rowIDs(); len(findings) != 0 {
			e.Errorf("Check after UseRowIDs = %v; want nothing", findings)
		}
		o := Order{Number: "B", Items: []Item{{SKU: "1"}}}
		e.must(fresh.Create(&o))
		equal(e, "the key is the rowid", e.keys("orders", "rowid", "number", "B")[0], o.ID.Int64())
		e.log.reset()
		if err := fresh.AutoMigrate(models...); err != nil {
			e.Errorf("second AutoMigrate = %v; want no error", err)
		}
		equal(e, "DDL of the second AutoMigrate", strings.Join(e.ddlSent(), "; "), "")
		if err := gormplugin.UseRowIDs(fresh, "nothing"); err == nil {
			e.Error(`UseRowIDs("nothing") = nil; want an error`)
		}
	}},
	{"CheckReadsOddTablesOfSQLite", func(e *env) {
		e.only(e.sqlite(), "SQLite's own ways")
		type Odd struct{ ID types.Snowflake }
		const fits, counted, beside, text = "", schemacheck.Counted, schemacheck.NoRowID, schemacheck.WrongType
		for _, odd := range []struct {
			ddl  string
			want schemacheck.Problem
			how  remedy
		}{
			{"TABLE PRE_odds (id INTEGER PRIMARY KEY)", fits, words},
			{"TABLE PRE_odds (id bigint PRIMARY KEY) WITHOUT ROWID", fits, words},
			{"TABLE PRE_odds (id INTEGER PRIMARY KEY, note text DEFAULT 'AUTOINCREMENT' /* AUTOINCREMENT */)", fits, words},
			{"TABLE PRE_odds (Id integer primary key autoincrement, `a(b` text, x TEXT DEFAULT ')''')", counted, statements},
			{"TABLE PRE_odds (n int, id INTEGER PRIMARY\n KEY ASC ON CONFLICT FAIL AUTOINCREMENT)", counted, statements},
			{"TABLE PRE_odds (note text, [id] BIGINT ( 20 ) -- ,id\n NOT NULL, PRIMARY KEY ([id]))", beside, statements},
			{"TABLE `PRE_odds` (`id` unsigned big int PRIMARY KEY)", beside, statements},
			{"TABLE PRE_odds(id int primary key, n int)", beside, statements},
			{"TABLE PRE_odds (id bigint PRIMARY KEY, a int, twice int GENERATED ALWAYS AS (a * 2) STORED, b int)", beside, statements},
			{"TABLE PRE_odds (id int PRIMARY KEY) STRICT", beside, statements},
			{"TABLE PRE_odds (id TEXT PRIMARY KEY) STRICT", text, statements},
			{"TABLE PRE_odds (id bigint PRIMARY KEY, strict int, without int)", beside, statements},
			{"TABLE PRE_odds (id INTEGER PRIMARY KEY /* not */ DESC, n int)", beside, statements},
			{"TABLE PRE_odds (id INTEGER NOT NULL, PRIMARY KEY (id DESC))", fits, words},
			{"TABLE PRE_odds (n int, id INTEGER PRIMARY KEY DESC) WITHOUT ROWID", fits, words},
			{"TABLE PRE_odds (id INTEGER, n int, PRIMARY KEY (n, id))", fits, words},
			{"TABLE PRE_odds (id PRIMARY KEY)", beside, words},
			{"TABLE PRE_odds (id bigint AS (n + 1), n int)", text, words},
			{"VIEW PRE_odds AS SELECT CAST('1' AS text) AS id", text, words},
			{"VIRTUAL TABLE PRE_odds USING rtree(n, low, high)", schemacheck.MissingColumn, words},
		} {
			e.ddl("CREATE " + odd.ddl)
			findings := e.allFindings(e.db, &Odd{})
			if len(findings) > 1 || len(findings) == 1 != (odd.want != fits) {
				e.Fatalf("Check of %s = %v; want %q", odd.ddl, findings, odd.want)
			}
			for _, f := range findings {
				equal(e, odd.ddl, f.Problem, odd.want)
				e.has(f, expected{how: odd.how})
				e.repairs(nil, &Odd{})
			}
			e.ddl("DROP " + strings.Fields(strings.TrimPrefix(odd.ddl, "VIRTUAL "))[0] + " PRE_odds")
		}
	}},
	{"StepsForSQLiteNameWhatIsToBeMadeAnew", func(e *env) {
		e.only(e.sqlite(), "others alter a table")
		type Barn struct{ ID types.Snowflake }
		e.make(`barns (id text PRIMARY KEY, n int);
			CREATE INDEX PRE_barns_n ON PRE_barns (n);
			CREATE TRIGGER PRE_barns_t AFTER INSERT ON PRE_barns BEGIN SELECT 1; END;
			CREATE VIEW PRE_view AS SELECT n FROM PRE_barns;
			cows (barn_id bigint REFERENCES PRE_barns (id) ON DELETE CASCADE);
			INSERT INTO PRE_barns VALUES ('7', 1);
			INSERT INTO PRE_cows VALUES (7)`)
		f := e.finds([]any{&Barn{}}, wrong+"ID")[0]
		// Each step is as it stands in the finding, with what a person fills in.
		steps := []struct{ text, sql string }{
			{"PRAGMA foreign_keys = OFF", ""},
			{"BEGIN IMMEDIATE", ""},
			{"CREATE TABLE `PRE_barns_new` as in the sql of sqlite_master, with the column `id` as INTEGER PRIMARY KEY", "CREATE TABLE `PRE_barns_new` (id INTEGER PRIMARY KEY, n int)"},
			{"INSERT INTO `PRE_barns_new` every column FROM `PRE_barns`", "INSERT INTO `PRE_barns_new` SELECT * FROM `PRE_barns`"},
			{"DROP TABLE `PRE_barns`", ""},
			{"PRAGMA legacy_alter_table = ON", ""},
			{"ALTER TABLE `PRE_barns_new` RENAME TO `PRE_barns`", ""},
			{"create again by their sql: index `PRE_barns_n`, trigger `PRE_barns_t`", "CREATE INDEX PRE_barns_n ON PRE_barns (n)"},
			{"for the views that read the table: `PRE_view`", "PRAGMA legacy_alter_table = OFF"},
			{"COMMIT", ""},
			{"PRAGMA foreign_keys = ON", ""},
		}
		err := e.db.Connection(func(tx *gorm.DB) error {
			tx = tx.Session(&gorm.Session{SkipDefaultTransaction: true})
			for _, step := range steps {
				text := strings.ReplaceAll(step.text, "PRE_", e.prefix)
				if !strings.Contains(f.Fix, text) {
					e.Errorf("Fix = %q; want the step %q in it", f.Fix, text)
				}
				if step.sql != "" {
					text = strings.ReplaceAll(step.sql, "PRE_", e.prefix)
				}
				e.must(tx.Exec(text))
			}
			return nil
		})
		e.ok("Connection", err)
		e.count("cows", 1)
		equal(e, "findings after the steps", len(e.allFindings(e.db, &Barn{})), 0)
	}},
	{"StepsForSQLiteFindTheRowsThatHaveNoKey", func(e *env) {
		e.only(e.sqlite(), "others refuse such a row")
		type Crate struct{ ID types.Snowflake }
		type Crates struct { // of the same table
			ID string `gorm:"primaryKey;snowflake"`
		}
		for _, test := range []struct {
			model    any
			typ      string
			good, no string // values
		}{
			{&Crate{}, "bigint PRIMARY KEY", "7", "NULL"},
			{&Crate{}, "INTEGER PRIMARY KEY DESC", "7", "NULL"},
			{&Crate{}, "text PRIMARY KEY", "'0', '7', '9223372036854775807'", "'12a', '', 'x', '1e3', '1.5', '007', '-', '-5', '9223372036854775808', '99999999999999999999', NULL"},
			{&Crates{}, "real PRIMARY KEY", "5.0, 9007199254740992", "1.5, 4611686018427387905, 1e19"},
		} {
			e.make("crates (id " + test.typ + ", n int)")
			_, rest, _ := strings.Cut(e.allFindings(e.db, test.model)[0].Fix, "stop here if ")
			query, _, ok := strings.Cut(rest, " finds a row")
			equal(e, "a query for bad rows is in the finding", ok, true)
			for values, want := range map[string]int{test.good: 0, test.no: 1 + strings.Count(test.no, ",")} {
				e.ddl("INSERT INTO PRE_crates (id) VALUES (" + strings.ReplaceAll(values, ", ", "), (") + ")")
				var rows []map[string]any
				e.must(e.db.Raw(query).Scan(&rows))
				equal(e, query+" of "+values, len(rows), want)
				e.ddl("DELETE FROM PRE_crates")
			}
			e.ddl("DROP TABLE PRE_crates")
		}
	}},
	{"CheckFindsAConnectionThatCutsValues", func(e *env) {
		e.only(e.mysql(), "MySQL's modes")
		e.migrate(&Item{})
		err := e.db.Connection(func(tx *gorm.DB) error {
			tx = tx.Session(&gorm.Session{})
			modes := func() []string {
				var mode string
				e.must(tx.Raw("SELECT @@sql_mode").Scan(&mode))
				return slices.Sorted(strings.SplitSeq(mode, ","))
			}
			for mode, strict := range map[string]bool{"": false, "NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO": false, "ANSI": false, "STRICT_TRANS_TABLES": true, "ANSI,STRICT_ALL_TABLES": true} {
				e.must(tx.Exec("SET SESSION sql_mode = ?", mode))
				want := map[bool][]string{false: {string(schemacheck.NotStrict)}}[strict]
				findings := e.check(tx, &Item{})
				equal(e, "problems with sql_mode "+mode, fmt.Sprint(whats(findings)), fmt.Sprint(want))
				for _, f := range findings {
					added := slices.Sorted(slices.Values(append(modes(), "STRICT_TRANS_TABLES")))
					e.must(tx.Exec("SET SESSION " + regexp.MustCompile(`sql_mode='[^']*'|$`).FindString(f.Fix)))
					equal(e, "sql_mode of the way out", strings.TrimPrefix(strings.Join(modes(), ","), ","), strings.TrimPrefix(strings.Join(added, ","), ","))
				}
			}
			return tx.Exec("SET SESSION sql_mode = DEFAULT").Error
		})
		e.ok("Connection", err)
	}},
	{"CheckFindsForeignKeysThatArePointers", func(e *env) {
		type Leaf struct {
			ID     types.Snowflake
			TreeID *types.Snowflake
			Loose  *types.Snowflake // no reference
		}
		type Tree struct {
			ID       types.Snowflake
			ParentID *types.Snowflake
			Children []Tree `gorm:"foreignKey:ParentID"`
			Leafs    []Leaf
			OtherID  types.NullSnowflake
			Other    *Tree
			HostID   *types.ID[Party]
			Host     *Party
		}
		var got []string
		for _, f := range e.allFindings(e.db, &Tree{}, &Leaf{}) {
			if f.Problem == schemacheck.PointerReference {
				got = append(got, f.Table+"."+f.Column+" "+f.Want)
			}
		}
		want := []string{"trees.parent_id types.NullSnowflake", "trees.host_id types.NullID", "leafs.tree_id types.NullSnowflake"}
		equal(e, "pointers", strings.ReplaceAll(strings.Join(got, ", "), e.prefix, ""), strings.Join(want, ", "))
	}},
	{"CheckSaysWhatItCannotDo", func(e *env) {
		ended, cancel := context.WithCancel(e.Context())
		cancel()
		for _, test := range []struct {
			what string
			ctx  context.Context
			db   *gorm.DB
			want error
		}{
			{"no database", e.Context(), nil, gorm.ErrInvalidDB},
			{"an empty database", e.Context(), &gorm.DB{}, gorm.ErrInvalidDB},
			{"DryRun", e.Context(), e.db.Session(&gorm.Session{DryRun: true}), gorm.ErrDryRunModeUnsupported},
			{"a context that has ended", ended, e.db, context.Canceled},
		} {
			if _, err := schemacheck.Check(test.ctx, test.db, &Item{}); !errors.Is(err, test.want) {
				e.Errorf("Check with %s = %v; want %v", test.what, err, test.want)
			}
			if err := gormplugin.UseRowIDs(test.db, &Item{}); (test.want == gorm.ErrInvalidDB) != errors.Is(err, gorm.ErrInvalidDB) {
				e.Errorf("UseRowIDs with %s = %v; want gorm.ErrInvalidDB where Check returns it", test.what, err)
			}
		}
		if _, err := schemacheck.Check(e.Context(), e.db, "item"); err == nil {
			e.Error(`Check("item") = nil; want an error`)
		}
	}},
}

// ddlSent returns the statements that change tables.
func (e *env) ddlSent() []string {
	return slices.Concat(e.log.statements("CREATE"), e.log.statements("ALTER"), e.log.statements("DROP"))
}

// prefixedColumns is a naming strategy that is not GORM's own.
type prefixedColumns struct{ schema.NamingStrategy }

func (n prefixedColumns) ColumnName(table, column string) string {
	return "COL_" + strings.ToUpper(n.NamingStrategy.ColumnName(table, column))
}

// A Box has parts.
type Box struct {
	ID    types.Snowflake
	Parts []Part
}

// A Part refers to its box.
type Part struct{ ID, BoxID types.Snowflake }

// A Stub refers to a key of text.
type Stub struct {
	ID       types.Snowflake
	TicketID string `gorm:"size:20"`
}

// partition is a model of one partition.
type partition struct{ ID, UnitID types.Snowflake }

func (partition) TableName(namer schema.Namer) string { return namer.TableName("reading") + "_1" }

// gormOld is a model with a key of the database.
type gormOld struct{ ID uint }

// A Text has a key of text.
type Text struct {
	ID    string `gorm:"primaryKey;size:20;snowflake"`
	Parts []TextPart
	Notes []TextNote
}

// A TextPart refers to a key of text.
type TextPart struct {
	ID     types.Snowflake
	TextID string `gorm:"size:20"`
}

// A TextNote may refer to a key of text.
type TextNote struct {
	ID     types.Snowflake
	TextID sql.NullString `gorm:"size:20"`
}

// A Counting has a key of the database, and rows that refer to it without a foreign key.
type Counting struct {
	ID    uint        `gorm:"primaryKey;autoIncrement"`
	Notes []LooseNote `gorm:"polymorphic:Owner"`
}

// A Keyed has them too, and a key of the plugin.
type Keyed struct {
	ID    types.Snowflake
	Notes []LooseNote `gorm:"polymorphic:Owner"`
}

// A LooseNote belongs to one of these.
type LooseNote struct {
	ID        types.Snowflake
	OwnerID   types.Snowflake
	OwnerType string `gorm:"size:40"`
}

// A Loose refers to them, and no constraint holds it.
type Loose struct {
	ID         types.Snowflake
	CountingID int64
	Counting   *Counting `gorm:"constraint:-"`
	KeyedID    uint64
	Keyed      *Keyed `gorm:"constraint:-"`
	GhostID    types.Snowflake
	Ghost      *Keyed `gorm:"-:migration"`
}
