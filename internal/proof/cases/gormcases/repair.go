package gormcases

import (
	"strings"

	"github.com/snowkey/snowkey/types"
)

// repairRows are columns that other things hang on.
func repairRows() []checkRow {
	boxes := []any{&Box{}, &Part{}}
	return []checkRow{
		{
			claim: "RepairNamesTheFindingsThatItMendsToo", on: "mysql", models: boxes, // elsewhere a number refers to one of another width
			tables: `boxes (id int unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY);
				parts (id bigint NOT NULL PRIMARY KEY, box_id int unsigned NOT NULL, CONSTRAINT PRE_a FOREIGN KEY (box_id) REFERENCES PRE_boxes (id))`,
			finds: []expected{{what: narrow + "ID"}, {what: counts + "ID", says: "PRE_boxes.id", how: mended}, {what: narrow + "BoxID", says: "PRE_boxes.id", how: mended}},
		},
		{
			claim: "CheckNamesWhatReadsAColumn", on: "postgres", models: []any{&Box{}, &Part{}}, // others change a column below a view
			tables: `boxes (id integer PRIMARY KEY, n int);
				parts (id bigint PRIMARY KEY, box_id bigint);
				CREATE VIEW "PRE_Seen" AS SELECT id FROM PRE_boxes;
				CREATE VIEW PRE_other AS SELECT n FROM PRE_boxes;
				CREATE MATERIALIZED VIEW PRE_kept AS SELECT max(id) FROM PRE_boxes;
				CREATE FUNCTION PRE_f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
				CREATE TRIGGER PRE_t BEFORE UPDATE OF id ON PRE_boxes FOR EACH ROW EXECUTE FUNCTION PRE_f()`,
			finds: []expected{{narrow + "ID", `: materialized view PRE_kept, trigger PRE_t on table PRE_boxes, view "PRE_Seen"; then `, words, ""}},
			obstacle: `DROP VIEW "PRE_Seen";
				DROP MATERIALIZED VIEW PRE_kept;
				DROP TRIGGER PRE_t ON PRE_boxes`,
		},
		{
			claim: "CheckGivesNoStatementForTextWithADefault", on: "!sqlite", models: boxes,
			tables: `boxes (id bigint NOT NULL PRIMARY KEY);
				parts (id bigint NOT NULL PRIMARY KEY, box_id varchar(40) NOT NULL DEFAULT '')`,
			finds:    []expected{{wrong + "BoxID", "default", words, ""}},
			obstacle: `ALTER TABLE PRE_parts ALTER COLUMN box_id DROP DEFAULT`,
		},
	}
}

// held returns tables that foreign keys bind, with keys of a type. PRE_notes are of no model,
// and have to follow.
func held(key, ref string) string {
	return strings.NewReplacer("$key", key, "$ref", ref).Replace(`customers (id $key PRIMARY KEY);
	orders (id $key PRIMARY KEY, customer_id $ref NULL, parent_id $ref NULL,
		CONSTRAINT PRE_a FOREIGN KEY (customer_id) REFERENCES PRE_customers (id) ON DELETE SET NULL ON UPDATE CASCADE,
		CONSTRAINT PRE_b FOREIGN KEY (parent_id) REFERENCES PRE_orders (id) ON DELETE CASCADE);
	items (id $key PRIMARY KEY, order_id $ref NOT NULL, CONSTRAINT PRE_c FOREIGN KEY (order_id) REFERENCES PRE_orders (id) ON DELETE CASCADE ON UPDATE RESTRICT);
	notes (id $ref NOT NULL PRIMARY KEY, item_id $ref NOT NULL $note, CONSTRAINT PRE_d FOREIGN KEY (item_id) REFERENCES PRE_items (id));
	INSERT INTO PRE_customers (id) VALUES ('1');
	INSERT INTO PRE_orders VALUES ('2', '1', NULL), ('3', NULL, '2');
	INSERT INTO PRE_items VALUES ('4', '3');
	INSERT INTO PRE_notes VALUES ('5', '4')`)
}

// keepRows are tables where the statements keep all but types and counters.
func keepRows() []checkRow {
	type Item struct{ ID, OrderID types.Snowflake }
	type Order struct {
		ID         types.Snowflake
		CustomerID types.NullSnowflake
		ParentID   types.NullSnowflake
		Parent     *Order
		Items      []Item
	}
	type Customer struct {
		ID     types.Snowflake
		Orders []Order
	}
	type Line struct{ ID, TenantID, DealID types.Snowflake }
	type Deal struct {
		TenantID types.Snowflake `gorm:"primaryKey"`
		ID       types.Snowflake `gorm:"primaryKey"`
		Lines    []Line          `gorm:"foreignKey:TenantID,DealID;references:TenantID,ID"`
	}
	tree := []any{&Customer{}, &Order{}, &Item{}}
	return []checkRow{
		{claim: "RepairKeepsForeignKeysBetweenTexts", on: "!sqlite", tables: held("varchar(40) NOT NULL", "varchar(40)"), models: tree, mends: true},
		{claim: "RepairKeepsForeignKeysBetweenShortTexts", on: "!sqlite", tables: held("varchar(19) NOT NULL", "varchar(19)"), models: tree, mends: true},
		{claim: "RepairKeepsForeignKeysBetweenIntegers", on: "postgres", tables: held("integer NOT NULL", "integer"), models: tree, mends: true},
		{claim: "RepairKeepsForeignKeysBetweenCountedIntegers", on: "mysql", tables: held("int NOT NULL AUTO_INCREMENT", "int"), models: tree, mends: true},
		{claim: "RepairKeepsForeignKeysBetweenCountedIntegersWithoutASign", on: "mysql", tables: held("int unsigned NOT NULL AUTO_INCREMENT", "int unsigned"), models: tree, mends: true},
		{claim: "RepairKeepsForeignKeysBetweenCountedKeysWithoutASign", on: "mysql", tables: held("bigint unsigned NOT NULL AUTO_INCREMENT", "bigint unsigned"), models: tree, mends: true},
		{
			claim: "RepairKeepsForeignKeysOfSeveralColumns", on: "!sqlite", models: []any{&Deal{}, &Line{}}, mends: true,
			tables: `deals (tenant_id varchar(40) NOT NULL, id varchar(40) NOT NULL, PRIMARY KEY (tenant_id, id));
			lines (id varchar(40) NOT NULL PRIMARY KEY, tenant_id varchar(40) NOT NULL, deal_id varchar(40) NOT NULL,
				CONSTRAINT PRE_a FOREIGN KEY (tenant_id, deal_id) REFERENCES PRE_deals (tenant_id, id) ON DELETE CASCADE);
			INSERT INTO PRE_deals VALUES ('1', '2');
			INSERT INTO PRE_lines VALUES ('3', '1', '2')`,
		},
		// Keys of another making are not touched.
		{
			claim: "RepairWidensTextThatAForeignKeyBinds", on: "!sqlite", models: []any{&Text{}, &TextPart{}, &TextNote{}}, mends: true,
			tables: `texts (id varchar(10) NOT NULL PRIMARY KEY);
			text_parts (id bigint NOT NULL PRIMARY KEY, text_id varchar(12) NOT NULL, CONSTRAINT PRE_a FOREIGN KEY (text_id) REFERENCES PRE_texts (id) ON DELETE CASCADE);
			text_notes (id bigint NOT NULL PRIMARY KEY, text_id varchar(40), CONSTRAINT PRE_b FOREIGN KEY (text_id) REFERENCES PRE_texts (id));
			INSERT INTO PRE_texts VALUES ('007'), ('x');
			INSERT INTO PRE_text_parts VALUES (1, '007')`,
		},
		// Elsewhere a foreign key has neither.
		{
			claim: "RepairKeepsTheCommentAndTheTriggersOfAForeignKey", on: "postgres", models: []any{&Box{}, &Part{}}, mends: true,
			tables: `boxes (id varchar(40) PRIMARY KEY, CONSTRAINT "PRE_it's" FOREIGN KEY (id) REFERENCES PRE_boxes (id));
			parts (id varchar(40) PRIMARY KEY, box_id varchar(40), CONSTRAINT PRE_a FOREIGN KEY (box_id) REFERENCES PRE_boxes (id) ON DELETE CASCADE DEFERRABLE);
			COMMENT ON CONSTRAINT PRE_a ON PRE_parts IS 'it''s a \ "comment"';
			COMMENT ON CONSTRAINT "PRE_it's" ON PRE_boxes IS 'itself';
			ALTER TABLE PRE_parts DISABLE TRIGGER ALL;
			DO $$DECLARE change text; BEGIN FOR change IN
				SELECT format('ALTER TABLE PRE_boxes ENABLE %s TRIGGER %I', CASE proname WHEN 'RI_FKey_cascade_del' THEN 'ALWAYS' ELSE 'REPLICA' END, tgname)
				FROM pg_trigger JOIN pg_proc p ON p.oid = tgfoid WHERE tgrelid = 'PRE_boxes'::regclass AND proname IN ('RI_FKey_cascade_del', 'RI_FKey_noaction_upd')
			LOOP EXECUTE change; END LOOP; END$$`,
		},
	}
}

// noKeyRows are columns with values that are keys, and a value that is none. The statements refuse
// it before anything has changed, and without it they keep the rest.
func noKeyRows() (rows []checkRow) {
	type Memo struct {
		ID     types.Snowflake
		PostID *types.Snowflake
	}
	type Memos struct { // of the same table
		ID string `gorm:"primaryKey;snowflake"`
	}
	const key = `memos (id $type, post_id bigint);
		INSERT INTO PRE_memos VALUES ('1', NULL), ('9007199254740992', 2)`
	const addKey, dropKey = "INSERT INTO PRE_memos VALUES ($value, 3)", "DELETE FROM PRE_memos WHERE post_id = 3"
	const reference = `memos (id bigint NOT NULL PRIMARY KEY, post_id $type);
		INSERT INTO PRE_memos VALUES (1, NULL), (2, '0'), (4, '9223372036854775807')`
	const addReference, dropReference = "INSERT INTO PRE_memos VALUES (3, $value)", "DELETE FROM PRE_memos WHERE id = 3"
	const bound = `boxes (id $type);
		parts (id bigint NOT NULL PRIMARY KEY, box_id $ref NOT NULL, CONSTRAINT PRE_a FOREIGN KEY (box_id) REFERENCES PRE_boxes (id));
		INSERT INTO PRE_boxes VALUES ('1'), ('9223372036854775807')`
	const addBound, dropBound = "INSERT INTO PRE_boxes VALUES ($value);\nINSERT INTO PRE_parts VALUES (1, $value)", "DELETE FROM PRE_parts;\nDELETE FROM PRE_boxes WHERE id = $value"
	const unsigned = `gorm_olds (id bigint unsigned NOT NULL PRIMARY KEY);
		bookmarks (id bigint NOT NULL PRIMARY KEY, gorm_old_id $type NOT NULL, public varchar(20))`
	const addBookmark, dropBookmark = "INSERT INTO PRE_bookmarks VALUES (1, $value, NULL)", "DELETE FROM PRE_bookmarks"
	const text, texts = "varchar(40) NOT NULL PRIMARY KEY", "'12a'|''|'x'|'1e3'|'1.5'|'007'|'-'|'-5'|' 5'|'9223372036854775808'|'99999999999999999999'"
	memos := []any{&Memo{}}
	for _, test := range []struct {
		on, tables, add, remove, typ, values string
		models                               []any
	}{
		{"", key, addKey, dropKey, text, texts, memos},
		{"", reference, addReference, dropReference, "varchar(40)", texts, memos},
		{"", bound, addBound, dropBound, text, texts, []any{&Box{}, &Part{}}},
		{"mysql", bound, addBound, dropBound, "bigint unsigned NOT NULL PRIMARY KEY", "9223372036854775808", []any{&Box{}, &Part{}}},
		{"mysql", key, addKey, dropKey, "bigint unsigned NOT NULL PRIMARY KEY", "9223372036854775808", memos},
		{"mysql", key, addKey, dropKey, "bigint unsigned NOT NULL PRIMARY KEY AUTO_INCREMENT", "9223372036854775808", memos},
		{"mysql", unsigned, addBookmark, dropBookmark, "bigint", "-1", []any{&Bookmark{}}},
		{"mysql", unsigned, addBookmark, dropBookmark, "int", "-1", []any{&Bookmark{}}},
		{"sqlite", key, addKey, dropKey, "text PRIMARY KEY", "NULL", memos},
		{"sqlite", key, addKey, dropKey, "bigint PRIMARY KEY", "NULL", memos},
		{"sqlite", key, addKey, dropKey, "INTEGER PRIMARY KEY DESC", "NULL", memos},
		{"sqlite", key, addKey, dropKey, "real PRIMARY KEY", "1.5|4611686018427387905|1e19", []any{&Memos{}}},
	} {
		for value := range strings.SplitSeq(test.values, "|") {
			ref, _, _ := strings.Cut(test.typ, " NOT NULL")
			set := strings.NewReplacer("$type", test.typ, "$ref", ref, "$value", value)
			rows = append(rows, checkRow{
				claim: test.typ + " " + value, on: test.on, models: test.models, all: test.on == "sqlite", mends: true,
				tables: set.Replace(test.tables), noKeys: set.Replace(test.add), obstacle: set.Replace(test.remove),
			})
		}
	}
	return rows
}

// columnRows are a column of MySQL that has much beside its type, which MODIFY has to repeat, by the
// modes of the sessions that check and that repair.
func columnRows() (rows []checkRow) {
	type Part struct {
		ID    types.Snowflake
		BoxID types.Snowflake
		Code  string `gorm:"snowflake"`
	}
	const tables = "CREATE TABLE `PRE_boxes` (`id` int unsigned NOT NULL PRIMARY KEY);\n" +
		"CREATE TABLE `PRE_parts` (`id` bigint NOT NULL PRIMARY KEY, `box_id` int unsigned NOT NULL DEFAULT '0' COMMENT 'a, b) `c` \"d\" it''s \\\\'," +
		" `code` varchar(10) CHARACTER SET latin1 COLLATE latin1_bin NOT NULL DEFAULT 'x' COMMENT 'AUTO_INCREMENT' CHECK (`code` <> '\"''`')," +
		" CONSTRAINT `PRE_\"a``\"` FOREIGN KEY (`box_id`) REFERENCES `PRE_boxes` (`id`) ON DELETE CASCADE);\n" +
		"INSERT INTO PRE_boxes VALUES (2);\nINSERT INTO PRE_parts VALUES (1, 2, '\u00e9');\n"
	const ordinary, strict = "sql_mode = DEFAULT", "STRICT_TRANS_TABLES"
	const ansi, quoted = "sql_mode = 'ANSI,NO_BACKSLASH_ESCAPES,STRICT_TRANS_TABLES'", "ANSI,NO_BACKSLASH_ESCAPES,STRICT_TRANS_TABLES"
	for _, session := range []struct{ checks, repairs string }{{ordinary, strict}, {ansi, quoted}, {ansi, strict}, {ordinary, quoted}, {"sql_quote_show_create = 0", strict}} {
		rows = append(rows, checkRow{
			claim: session.checks + ", then " + session.repairs, on: "mysql", models: []any{&Part{}}, finds: []expected{{what: narrow + "BoxID"}, {what: narrow + "Code"}},
			tables: tables + "SET SESSION " + session.checks, sqlMode: session.repairs, never: "INSERT INTO PRE_parts VALUES (3, 2, '\"''`')",
		})
	}
	return rows
}

var repairCases = []testCase{
	rowsCase("RepairRefusesValuesThatAreNoKeysBeforeAnythingHasChanged", noKeyRows()),
	rowsCase("RepairKeepsTheRestOfAColumn", columnRows()),
}
