package gormcases

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
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
	type Typed struct{ ID int64 }
	type Keyless struct{ Name string }
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
	type Keys struct {
		ID types.Snowflake `gorm:"snowflake:-"` // whose rows come from elsewhere
	}
	type Leaf struct{ ID, StemID types.Snowflake }
	type Stem struct {
		ID    uint `gorm:"primaryKey;autoIncrement"`
		Other types.Snowflake
		Leafs []Leaf
	}
	type Twig struct {
		ID     types.Snowflake
		TreeID *types.Snowflake
	}
	type Tree struct {
		ID       types.Snowflake
		ParentID *types.Snowflake
		Children []Tree `gorm:"foreignKey:ParentID"`
		OtherID  types.NullSnowflake
		Other    *Tree
		HostID   *types.ID[Party]
		Host     *Party
		Twigs    []Twig
		Loose    *types.Snowflake // no reference
	}
	const none, own = string(schemacheck.NoKey), string(schemacheck.OwnKey)
	const bad, shared, table = string(schemacheck.BadModel), string(schemacheck.SharedTable), string(schemacheck.MissingTable)
	return []checkRow{
		{
			claim: "CheckFindsWhatIsWrongWithModels", models: []any{&Typed{}, &Keyless{}, &Setting{}, &Wrong{}, &Wrong{}, &Counted{}},
			finds: []expected{
				{none + " ID", ".Typed.ID, table PRE_typeds, column id", words, ""}, {none, ".Keyless", words, ""},
				{bad + " ID", "sometimes", words, ""}, {bad + " ID", "autoIncrement", words, ""},
				{own + " Key", "table PRE_settings, column key: is string", words, ""},
			},
		},
		{
			claim: "CheckFindsModelsOfOneTableThatDiffer", models: []any{&Item{}, &Items{}},
			tables: `items (id bigint NOT NULL PRIMARY KEY, order_id bigint, sku text)`,
			finds:  []expected{{none + " ID", "", words, ""}, {shared, ".Items, table PRE_items: is filled in no column, but in id for ", words, ""}},
		},
		{
			claim: "CheckFindsThatTheDatabaseCountsForAnyModelOfATable", models: []any{&Key{}, &Keys{}}, anyOrder: true,
			tables: `keys (id $counted)`, finds: []expected{{shared, ".Key", words, ""}, {counts + "ID", "", statements, ""}},
		},
		{
			claim: "CheckFindsEachTableThatIsMissingOnce", models: []any{&Order{}, &Order{}},
			finds: []expected{{table, "table PRE_orders", words, ""}, {table, "PRE_items", words, ""}, {table, "PRE_order_labels", words, ""}, {table, "PRE_receipts", words, ""}},
		},
		{
			claim: "CheckFindsAParentThatIsMissing", models: []any{&Leaf{}, &Stem{}}, anyOrder: true,
			tables: `leafs (id bigint PRIMARY KEY, stem_id bigint)`, finds: []expected{{table, "PRE_stems", words, ""}},
		},
		{
			claim: "CheckFindsForeignKeysThatArePointers", models: []any{&Tree{}, &Twig{}}, all: true,
			finds: []expected{
				{pointer + "ParentID", "types.NullSnowflake", words, ""}, {pointer + "HostID", "types.NullID", words, ""}, {pointer + "TreeID", "types.NullSnowflake", words, ""},
				{table, "PRE_trees", words, ""}, {table, "PRE_twigs", words, ""},
			},
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
	type KeyPart struct{ ID, KeysID types.Snowflake }
	type Keys struct {
		ID    types.Snowflake `gorm:"primaryKey;autoIncrement;snowflake:-"`
		Parts []KeyPart
	}
	type Half struct {
		ID int64 `gorm:"primaryKey;snowflake"`
	}
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
	seen := []expected{{wrong + "ID", "view", words, ""}, {missing + "BookID", "view", words, ""}}
	key := func(says string) []expected { return []expected{{counts + "ID", says, statements, ""}} }
	keys, pages := []any{&Key{}}, []any{&Page{}}
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
			claim: "CheckFindsAColumnThatIsMissing", models: []any{&Bookmark{}},
			// Rows would have no key, and nothing would keep them apart.
			tables: `gorm_olds (id $uint);
				bookmarks (n int)`,
			finds: []expected{{missing + "ID", "", words, ""}, {missing + "GormOldID", "table PRE_bookmarks, column gorm_old_id", statements, ""}, {missing + "Public", "", words, ""}},
		},
		{
			claim: "CheckFindsThatTheDatabaseCountsAsWell", models: keys,
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
			finds: []expected{{what: narrow + "ID"}}, after: `INSERT INTO PRE_keys () VALUES ()`,
		},
		{claim: "CheckFindsAnIdentity", on: "postgres", models: keys, tables: `keys (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY)`, finds: key("is GENERATED ALWAYS AS IDENTITY")},
		{claim: "CheckFindsAnIdentityByDefault", on: "postgres", models: keys, tables: `keys (id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY)`, finds: key("is GENERATED BY DEFAULT AS IDENTITY")},
		{claim: "CheckFindsATaggedKeyThatGORMMakesCount", models: []any{&Half{}}, tables: `halves (id $counted)`, finds: key("autoIncrement:false")},
		{claim: "CheckFindsSequencesOfMariaDB", on: "mariadb", models: keys, finds: key("nextval"), tables: `CREATE SEQUENCE PRE_numbers;
			keys (id bigint NOT NULL DEFAULT nextval(PRE_numbers) PRIMARY KEY)`},
		{
			claim: "CheckReadsTheTypeBelowDomains", on: "postgres", models: []any{&Page{}, &Label{}},
			tables: `CREATE DOMAIN PRE_key AS bigint;
				CREATE DOMAIN PRE_order_key AS PRE_key NOT NULL;
				CREATE DOMAIN PRE_paid_key AS PRE_order_key CHECK (VALUE > 0);
				CREATE DOMAIN PRE_short AS numeric(10);
				CREATE DOMAIN PRE_shorter AS PRE_short;
				CREATE DOMAIN PRE_name AS varchar(30);
				CREATE DOMAIN PRE_title AS PRE_name;
				pages (id PRE_paid_key PRIMARY KEY, book_id PRE_shorter);
				labels (id PRE_title PRIMARY KEY, exact PRE_name, endless text)`,
			finds: []expected{{what: narrow + "BookID", says: "is numeric(10,0)"}},
		},
		{claim: "CheckGivesNoStatementForAView", models: pages, finds: seen, tables: `bases (id varchar(40));
			CREATE VIEW PRE_pages AS SELECT id FROM PRE_bases`},
		{claim: "CheckGivesNoStatementForAMaterializedView", on: "postgres", models: pages, finds: seen, tables: `bases (id varchar(40));
			CREATE MATERIALIZED VIEW PRE_pages AS SELECT id FROM PRE_bases`},
		{
			claim: "CheckReadsPartitionedTables", on: "postgres", models: pages, // others change all partitions with the table
			tables: `pages (id serial PRIMARY KEY, book_id int) PARTITION BY RANGE (id);
				CREATE TABLE PRE_pages_1 PARTITION OF PRE_pages FOR VALUES FROM (0) TO (1000)`,
			finds: []expected{{narrow + "ID", "partitioned", words, ""}, {what: counts + "ID"}, {what: narrow + "BookID"}},
		},
		{
			claim: "CheckReadsAPartition", on: "postgres", models: pages,
			tables: `books (id int PRIMARY KEY, book_id int) PARTITION BY RANGE (id);
				CREATE TABLE PRE_pages PARTITION OF PRE_books FOR VALUES FROM (0) TO (1000)`,
			finds: []expected{{narrow + "ID", "parent", words, ""}, {narrow + "BookID", "parent", words, ""}},
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
			claim: "CheckTellsTablesApartByCase", models: keys, tables: `CREATE TABLE "PRE_Keys" ("ID" bigint PRIMARY KEY)`,
			finds: []expected{{string(schemacheck.MissingTable), "", words, "!sqlite"}},
		},
		{
			claim: "CheckFindsUniqueIndexesOnExpressions", on: "!mariadb", models: keys,
			tables: `keys (id bigint NOT NULL PRIMARY KEY, email varchar(40));
				CREATE UNIQUE INDEX PRE_plain ON PRE_keys (email);
				CREATE INDEX PRE_slow ON PRE_keys ((lower(email)));
				CREATE UNIQUE INDEX PRE_folded ON PRE_keys ((lower(email)), id)`,
			finds: []expected{{string(schemacheck.ExpressionIndex), "table PRE_keys: is unique index PRE_folded", words, ""}},
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
	box := func(id, ref string) string {
		return "boxes (id bigint " + id + " NOT NULL PRIMARY KEY);\nparts (id bigint NOT NULL PRIMARY KEY, box_id bigint " + ref + ")"
	}
	signs := func(root, trunk, old, toRoot, toTrunk, toOld string) string {
		return fmt.Sprintf(`roots (id bigint %s NOT NULL AUTO_INCREMENT PRIMARY KEY);
			trunks (id bigint %s NOT NULL AUTO_INCREMENT PRIMARY KEY);
			gorm_olds (id bigint %s NOT NULL AUTO_INCREMENT PRIMARY KEY);
			leafs (id bigint NOT NULL PRIMARY KEY, root_id bigint %s, trunk_id bigint %s, gorm_old_id bigint %s)`, root, trunk, old, toRoot, toTrunk, toOld)
	}
	const boxed = `ALTER TABLE PRE_parts ADD FOREIGN KEY (box_id) REFERENCES PRE_boxes (id)`
	const bound = `ALTER TABLE PRE_leafs ADD FOREIGN KEY (root_id) REFERENCES PRE_roots (id), ADD FOREIGN KEY (trunk_id) REFERENCES PRE_trunks (id),
		ADD FOREIGN KEY (gorm_old_id) REFERENCES PRE_gorm_olds (id)`
	rows := []checkRow{
		{claim: "CheckFindsAKeyWithoutASign", models: boxes, tables: box("unsigned", ""), finds: []expected{{what: differ + "ID"}}, after: boxed},
		{claim: "CheckFindsAReferenceWithoutASign", models: boxes, tables: box("", "unsigned"), finds: []expected{{what: differ + "BoxID"}}, after: boxed},
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

// typeRows are types of columns, by the problem that Check finds where it wants a type. Statements
// mend a column unless it has words.
func typeRows() (rows []checkRow) {
	type Ticket struct {
		ID    string `gorm:"primaryKey;snowflake"`
		Stubs []Stub
	}
	for _, kind := range []struct {
		on, want, what string
		how            remedy
		types          string
	}{
		{"sqlite", "bigint", "", words, "bigint; int2; unsigned big int; numeric; decimal(10,0); blob; date"},
		{"sqlite", "bigint", narrow, statements, "real; float; double"},
		{"sqlite", "bigint", wrong, statements, "text; varchar(40); clob"},
		{"postgres", "bigint", "", words, "bigint; numeric; numeric(19); numeric(20,0)"},
		{"postgres", "bigint", narrow, statements, "integer; smallint; numeric(18)"},
		{"postgres", "bigint", narrow, words, "real; double precision"}, // which may have rounded
		{"postgres", "bigint", wrong, statements, "text; varchar(20); char(20); name"},
		{"postgres", "bigint", wrong, words, "uuid; bytea; json; numeric(20,2); bigint[]; date"},
		{"postgres", "text", "", words, "text; varchar(20); varchar; bpchar; name; bigint; numeric(20)"},
		{"postgres", "text", wrong, words, "uuid; bytea; json; jsonb; date; boolean"},
		{"mysql", "bigint", "", words, "bigint; decimal(19); numeric(20,0)"},
		{"mysql", "bigint", narrow, statements, "tinyint; smallint; mediumint; integer; year; bit(60); decimal(18)"},
		{"mysql", "bigint", narrow, words, "float; double"},
		{"mysql", "bigint", wrong, statements, "char(20); varchar(20); tinytext; text; mediumtext; longtext"},
		{"mysql", "bigint", wrong, words, "decimal(22,2); date; blob; binary(16); enum('7','9')"}, // of which MODIFY would take the place in the list
		{"mysql", "varchar(20)", "", words, "varchar(20); char(20); bigint; decimal(20)"},
		{"mysql", "varchar(20)", wrong, words, "varbinary(20); binary(16); enum('1','2'); date; decimal(22,2)"},
		{"mariadb", "bigint", wrong, words, "uuid"},
		{"mariadb", "varchar(20)", wrong, words, "uuid"},
	} {
		for typ := range strings.SplitSeq(kind.types, "; ") {
			row := checkRow{claim: typ + " for " + kind.want, on: kind.on, models: []any{&Box{}, &Part{}}}
			row.tables = "boxes (id bigint PRIMARY KEY);\nparts (id bigint PRIMARY KEY, box_id " + typ + ")"
			fields := []string{"BoxID"}
			if kind.want != "bigint" {
				row.models, fields = []any{&Ticket{}}, []string{"ID", "TicketID"}
				row.tables = "tickets (id " + typ + " NOT NULL);\nstubs (id bigint NOT NULL, ticket_id " + typ + ")"
			}
			for _, field := range fields {
				if kind.what != "" {
					row.finds = append(row.finds, expected{kind.what + field, ", want " + kind.want, kind.how, ""})
				}
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// oddRows are tables of SQLite with a key that is, or is not, the rowid.
func oddRows() (rows []checkRow) {
	type Odd struct{ ID types.Snowflake }
	for _, odd := range []struct {
		ddl, what string
		how       remedy
	}{
		{"TABLE PRE_odds (id INTEGER PRIMARY KEY)", "", words},
		{"TABLE PRE_odds (id bigint PRIMARY KEY) WITHOUT ROWID", "", words},
		{"TABLE PRE_odds (id INTEGER PRIMARY KEY, note text DEFAULT 'AUTOINCREMENT' /* AUTOINCREMENT */)", "", words},
		{"TABLE PRE_odds (Id integer primary key autoincrement, `a(b` text, x TEXT DEFAULT ')''')", counts, statements},
		{"TABLE PRE_odds (n int, id INTEGER PRIMARY\n KEY ASC ON CONFLICT FAIL AUTOINCREMENT)", counts, statements},
		{"TABLE PRE_odds (note text, [id] BIGINT ( 20 ) -- ,id\n NOT NULL, PRIMARY KEY ([id]))", noRowID, statements},
		{"TABLE `PRE_odds` (`id` unsigned big int PRIMARY KEY)", noRowID, statements},
		{"TABLE PRE_odds(id int primary key, n int)", noRowID, statements},
		{"TABLE PRE_odds (id bigint PRIMARY KEY, a int, twice int GENERATED ALWAYS AS (a * 2) STORED, b int)", noRowID, statements},
		{"TABLE PRE_odds (id int PRIMARY KEY) STRICT", noRowID, statements},
		{"TABLE PRE_odds (id TEXT PRIMARY KEY) STRICT", wrong, statements},
		{"TABLE PRE_odds (id bigint PRIMARY KEY, strict int, without int)", noRowID, statements},
		{"TABLE PRE_odds (id INTEGER PRIMARY KEY /* not */ DESC, n int)", noRowID, statements},
		{"TABLE PRE_odds (id INTEGER NOT NULL, PRIMARY KEY (id DESC))", "", words},
		{"TABLE PRE_odds (n int, id INTEGER PRIMARY KEY DESC) WITHOUT ROWID", "", words},
		{"TABLE PRE_odds (id INTEGER, n int, PRIMARY KEY (n, id))", "", words},
		{"TABLE PRE_odds (id PRIMARY KEY)", noRowID, words},
		{"TABLE PRE_odds (id bigint AS (n + 1), n int)", wrong, words},
		{"VIEW PRE_odds AS SELECT CAST('1' AS text) AS id", wrong, words},
		{"VIRTUAL TABLE PRE_odds USING rtree(n, low, high)", missing, words},
	} {
		row := checkRow{claim: odd.ddl, on: "sqlite", models: []any{&Odd{}}, all: true, tables: "CREATE " + odd.ddl}
		if odd.what != "" {
			row.finds = []expected{{odd.what + "ID", "", odd.how, ""}}
		}
		rows = append(rows, row)
	}
	return rows
}

// stepRows are the steps for a table of SQLite as a finding has them, and as a person takes them.
func stepRows() []checkRow {
	type Barn struct{ ID types.Snowflake }
	const steps = "PRAGMA foreign_keys = OFF; BEGIN IMMEDIATE; stop here if SELECT * FROM `PRE_barns` WHERE " +
		"CAST(CAST(`id` AS integer) AS text) <> `id` OR `id` LIKE '-%' OR `id` IS NULL finds a row: its value is no key; " +
		"CREATE TABLE `PRE_barns_new` as in the sql of sqlite_master, with the column `id` as INTEGER PRIMARY KEY; " +
		"INSERT INTO `PRE_barns_new` every column FROM `PRE_barns`; DROP TABLE `PRE_barns`; ALTER TABLE `PRE_barns_new` RENAME TO `PRE_barns`; " +
		"create again by their sql: index `PRE_barns_n`, trigger `PRE_barns_t`; " +
		"PRAGMA legacy_alter_table = ON before the RENAME and OFF after it, for the views that read the table: `PRE_view`; " +
		"PRAGMA foreign_key_check has to find nothing; COMMIT, or ROLLBACK after any error; PRAGMA foreign_keys = ON"
	return []checkRow{{
		claim: "StepsForSQLiteNameWhatIsToBeMadeAnew", on: "sqlite", models: []any{&Barn{}}, all: true,
		tables: `barns (id text PRIMARY KEY, n int);
			CREATE INDEX PRE_barns_n ON PRE_barns (n);
			CREATE TRIGGER PRE_barns_t AFTER INSERT ON PRE_barns BEGIN SELECT 1; END;
			CREATE VIEW PRE_view AS SELECT n FROM PRE_barns;
			cows (barn_id bigint REFERENCES PRE_barns (id));
			INSERT INTO PRE_barns VALUES ('7', 1);
			INSERT INTO PRE_cows VALUES (7)`,
		finds: []expected{{wrong + "ID", steps, words, ""}},
		obstacle: `PRAGMA foreign_keys = OFF;
			BEGIN IMMEDIATE;
			CREATE TABLE PRE_barns_new (id INTEGER PRIMARY KEY, n int);
			INSERT INTO PRE_barns_new SELECT * FROM PRE_barns;
			DROP TABLE PRE_barns;
			PRAGMA legacy_alter_table = ON;
			ALTER TABLE PRE_barns_new RENAME TO PRE_barns;
			CREATE INDEX PRE_barns_n ON PRE_barns (n);
			PRAGMA legacy_alter_table = OFF;
			COMMIT;
			PRAGMA foreign_keys = ON`,
		never: "DELETE FROM PRE_barns", // on which a cow depends
	}}
}

// modeRows are connections to MySQL that cut values, and some that do not.
func modeRows() (rows []checkRow) {
	for mode, cuts := range map[string]bool{"": true, "NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO": true, "ANSI": true, "STRICT_TRANS_TABLES": false, "ANSI,STRICT_ALL_TABLES": false} {
		row := checkRow{claim: "mode " + mode, on: "mysql", models: []any{&Key{}}, tables: "keys (id bigint NOT NULL PRIMARY KEY);\nSET SESSION sql_mode = '" + mode + "'"}
		if cuts {
			says := strings.TrimPrefix(mode+",STRICT_TRANS_TABLES' in the parameters", ",")
			row.finds = []expected{{string(schemacheck.NotStrict), says, words, ""}}
			row.obstacle = "SET SESSION sql_mode = CONCAT(@@sql_mode, ',STRICT_TRANS_TABLES')"
		}
		rows = append(rows, row)
	}
	return rows
}

var checkCases = []testCase{
	rowsCase("CheckTellsTheTypesOfColumnsApart", typeRows()),
	rowsCase("CheckReadsOddTablesOfSQLite", oddRows()),
	rowsCase("CheckFindsAConnectionThatCutsValues", modeRows()),
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
		if !e.sqlite() { // which alone has rowids
			e.ok("UseRowIDs", gormplugin.UseRowIDs(e.db, append(slices.Clone(models), "nothing")...))
			equal(e, "statements of UseRowIDs", len(e.log.statements("")), 0)
		}
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
	{"CheckAndUseRowIDsMakeTheKeyTheRowid", func(e *env) {
		e.only(e.sqlite(), "others have no rowid")
		models := append(slices.Clone(orderModels), &Pair{}, &Node{})
		e.migrate(models...)
		e.byDesign = true
		pointers := []string{pointer + "CustomerID", pointer + "ParentID"}
		findings := e.finds(models, slices.Concat(pointers, slices.Repeat([]string{noRowID + "ID"}, len(models)-1))...) // not the composite key
		e.has(findings[len(findings)-1], expected{says: "UseRowIDs", how: words})
		fresh := e.with(e.src) // has learnt nothing of the models
		e.ok("UseRowIDs and AutoMigrate", errors.Join(fresh.Migrator().DropTable(append(slices.Clone(models), "order_labels")...), gormplugin.UseRowIDs(fresh, models...), fresh.AutoMigrate(models...)))
		e.finds(models, pointers...)
		o := Order{Number: "B", Items: []Item{{SKU: "1"}}}
		e.must(fresh.Create(&o))
		equal(e, "the key is the rowid", e.keys("orders", "rowid", "number", "B")[0], o.ID.Int64())
		e.log.reset()
		e.ok("second AutoMigrate", fresh.AutoMigrate(models...))
		ddl := slices.Concat(e.log.statements("CREATE"), e.log.statements("ALTER"), e.log.statements("DROP"))
		equal(e, "DDL of the second AutoMigrate", strings.Join(ddl, "; "), "")
		if err := gormplugin.UseRowIDs(fresh, "nothing"); err == nil {
			e.Error(`UseRowIDs("nothing") = nil; want an error`)
		}
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

// A Key has nothing else.
type Key struct{ ID types.Snowflake }

// A Bookmark refers to a key of the database.
type Bookmark struct {
	ID        types.Snowflake
	GormOldID types.Snowflake
	GormOld   *gormOld
	Public    string `gorm:"size:20;snowflake"`
}

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
