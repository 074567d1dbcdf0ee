package gormcases

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"gorm.io/gorm"

	"github.com/snowkey/snowkey/gormplugin/schemacheck"
	"github.com/snowkey/snowkey/types"
)

var repairCases = []testCase{
	{"RepairKeepsForeignKeysAsTheyWere", func(e *env) {
		e.only(!e.sqlite(), "it has no statements")
		type Item struct {
			ID      types.Snowflake
			OrderID types.Snowflake
		}
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
		kinds := map[string]bool{"varchar(40)": false, "varchar(19)": false, "integer": false}
		if e.mysql() {
			kinds = map[string]bool{"int unsigned": true, "bigint unsigned": true, "int": true, "varchar(40)": false}
		}
		for key, counted := range kinds {
			e.table("customers", key, "", counted)
			e.table("orders", key, ", `customer_id` "+key+" NULL, `parent_id` "+key+" NULL"+
				", CONSTRAINT PRE_a FOREIGN KEY (`customer_id`) REFERENCES `PRE_customers` (`id`) ON DELETE SET NULL ON UPDATE CASCADE"+
				", CONSTRAINT PRE_b FOREIGN KEY (`parent_id`) REFERENCES `PRE_orders` (`id`) ON DELETE CASCADE", counted)
			e.table("items", key, ", `order_id` "+key+" NOT NULL, CONSTRAINT PRE_c FOREIGN KEY (`order_id`) REFERENCES `PRE_orders` (`id`) ON DELETE CASCADE ON UPDATE RESTRICT", counted)
			// Of no model, and it has to follow.
			e.table("notes", key, ", `item_id` "+key+" NOT NULL, CONSTRAINT PRE_d FOREIGN KEY (`item_id`) REFERENCES `PRE_items` (`id`)", false)
			if e.mysql() {
				e.ddl("ALTER TABLE `PRE_notes` MODIFY `item_id` " + key + " NOT NULL COMMENT 'it''s AUTO_INCREMENT, no'")
			} else {
				e.ddl("COMMENT ON COLUMN PRE_notes.item_id IS 'a note'")
			}
			e.ddl("INSERT INTO `PRE_customers` (`id`) VALUES ('1')")
			e.ddl("INSERT INTO `PRE_orders` VALUES ('2', '1', NULL), ('3', NULL, '2')")
			e.ddl("INSERT INTO `PRE_items` VALUES ('4', '3')")
			e.ddl("INSERT INTO `PRE_notes` VALUES ('5', '4')")
			models := []any{&Customer{}, &Order{}, &Item{}}
			e.mends(models...)
			equal(e, "customer of order 2", e.keys("orders", "customer_id", "id", 2)[0], 1)
			equal(e, "parent of order 3", e.keys("orders", "parent_id", "id", 3)[0], 2)
			equal(e, "order of item 4", e.keys("items", "order_id", "id", 4)[0], 3)
			e.must(e.db.Create(&Customer{Orders: []Order{{Items: []Item{{}}}}}))
			if e.db.Create(&Item{OrderID: 99}).Error == nil {
				e.Error("Create of an item of no order = nil; want the error of the foreign key")
			}
			if e.mysql() {
				e.countsNoMore("customers () VALUES ()")
			}
			e.ddl("DELETE FROM `PRE_notes`")
			e.ddl("DELETE FROM `PRE_orders` WHERE `id` = '2'") // and order 3 with it, and its item
			e.must(e.db.Exec("DELETE FROM " + e.prefix + "customers WHERE id = 1"))
			equal(e, "items of order 3", len(e.keys("items", "id", "order_id", 3)), 0)
			for _, table := range []string{"notes", "items", "orders", "customers"} {
				e.ddl("DROP TABLE `PRE_" + table + "`")
			}
		}
	}},
	{"RepairKeepsForeignKeysOfSeveralColumns", func(e *env) {
		e.only(!e.sqlite(), "it has no statements")
		type Item struct {
			ID       types.Snowflake
			TenantID types.Snowflake
			OrderID  types.Snowflake
		}
		type Order struct {
			TenantID types.Snowflake `gorm:"primaryKey"`
			ID       types.Snowflake `gorm:"primaryKey"`
			Items    []Item          `gorm:"foreignKey:TenantID,OrderID;references:TenantID,ID"`
		}
		key := "varchar(40)"
		if e.mysql() {
			key = "int unsigned"
		}
		e.ddl("CREATE TABLE `PRE_orders` (`tenant_id` " + key + " NOT NULL, `id` " + key + " NOT NULL, PRIMARY KEY (`tenant_id`, `id`))")
		e.table("items", key, ", `tenant_id` "+key+" NOT NULL, `order_id` "+key+" NOT NULL"+
			", CONSTRAINT PRE_a FOREIGN KEY (`tenant_id`, `order_id`) REFERENCES `PRE_orders` (`tenant_id`, `id`) ON DELETE CASCADE", false)
		e.ddl("INSERT INTO `PRE_orders` VALUES ('1', '2')")
		e.ddl("INSERT INTO `PRE_items` VALUES ('3', '1', '2')")
		e.mends(&Order{}, &Item{})
		equal(e, "order of item 3", e.keys("items", "order_id", "id", 3)[0], 2)
	}},
	{"RepairKeepsTheCommentAndTheTriggersOfAForeignKey", func(e *env) {
		e.only(e.postgres(), "elsewhere a foreign key has neither")
		e.ddl("CREATE TABLE `PRE_boxes` (`id` varchar(40) PRIMARY KEY, CONSTRAINT `PRE_it's` FOREIGN KEY (`id`) REFERENCES `PRE_boxes` (`id`))")
		e.table("parts", "varchar(40)", ", `box_id` varchar(40), CONSTRAINT PRE_a FOREIGN KEY (`box_id`) REFERENCES `PRE_boxes` (`id`) ON DELETE CASCADE DEFERRABLE", false)
		e.ddl(`COMMENT ON CONSTRAINT PRE_a ON PRE_parts IS 'it''s a \ "comment"'`)
		e.ddl("COMMENT ON CONSTRAINT `PRE_it's` ON PRE_boxes IS 'itself'")
		e.ddl("ALTER TABLE PRE_parts DISABLE TRIGGER ALL")
		for function, change := range map[string]string{"RI_FKey_cascade_del": "ENABLE ALWAYS", "RI_FKey_noaction_upd": "ENABLE REPLICA"} {
			var names []string
			e.must(e.db.Raw("SELECT quote_ident(tgname) FROM pg_trigger WHERE tgrelid = to_regclass(?) AND tgfoid = to_regproc(?) ORDER BY 1", e.prefix+"boxes", `"`+function+`"`).Scan(&names))
			e.ddl("ALTER TABLE PRE_boxes " + change + " TRIGGER " + strings.Trim(names[0], "`"))
		}
		e.mends(&Box{}, &Part{})
		e.must(e.db.Create(&Part{BoxID: 99})) // as its trigger is disabled
	}},
	{"RepairWidensTextThatAForeignKeyBinds", func(e *env) {
		e.only(!e.sqlite(), "it has no lengths")
		e.table("texts", "varchar(10)", "", false)
		e.table("text_parts", "bigint", ", `text_id` varchar(12) NOT NULL, CONSTRAINT PRE_a FOREIGN KEY (`text_id`) REFERENCES `PRE_texts` (`id`) ON DELETE CASCADE", false)
		e.table("text_notes", "bigint", ", `text_id` varchar(40), CONSTRAINT PRE_b FOREIGN KEY (`text_id`) REFERENCES `PRE_texts` (`id`)", false)
		e.ddl("INSERT INTO `PRE_texts` VALUES ('007'), ('x')") // of another making, and not touched
		e.ddl("INSERT INTO `PRE_text_parts` VALUES (1, '007')")
		e.mends(&Text{}, &TextPart{}, &TextNote{})
		var left string
		e.must(e.db.Table(e.prefix + "text_parts").Select("text_id").Scan(&left))
		equal(e, "text_id after the repair", left, "007")
		e.must(e.db.Create(&Text{Parts: []TextPart{{}}}))
	}},
	{"RepairNamesTheFindingsThatItMendsToo", func(e *env) {
		e.only(e.mysql(), "elsewhere a number refers to one of another width")
		e.table("boxes", "int unsigned", "", true)
		e.table("parts", "bigint", ", `box_id` int unsigned NOT NULL, CONSTRAINT PRE_a FOREIGN KEY (`box_id`) REFERENCES `PRE_boxes` (`id`)", false)
		const narrow = "column is too narrow "
		findings := e.finds([]any{&Box{}, &Part{}}, narrow+"ID", "database counts as well ID", narrow+"BoxID")
		for _, f := range findings[1:] {
			e.inWords(f, e.prefix+"boxes.id")
		}
		e.repair(findings[0])
		e.finds([]any{&Box{}, &Part{}})
	}},
	{"RepairRefusesBeforeAForeignKeyIsDropped", func(e *env) {
		e.only(!e.sqlite(), "it has no statements")
		tests := []struct{ key, no string }{{"varchar(40)", "1e3"}, {"varchar(40)", "1.5"}, {"varchar(40)", "007"}, {"varchar(40)", "-5"}, {"varchar(40)", " 5"}, {"varchar(40)", "9223372036854775808"}}
		if e.mysql() {
			tests = append(tests, struct{ key, no string }{"bigint unsigned", "9223372036854775808"})
		}
		for _, test := range tests {
			e.table("boxes", test.key, "", false)
			e.table("parts", "bigint", ", `box_id` "+test.key+" NOT NULL, CONSTRAINT PRE_a FOREIGN KEY (`box_id`) REFERENCES `PRE_boxes` (`id`)", false)
			e.ddl("INSERT INTO `PRE_boxes` VALUES ('1'), ('" + test.no + "')")
			e.ddl("INSERT INTO `PRE_parts` VALUES (1, '" + test.no + "')")
			constraints := e.constraints()
			f := e.check(e.db, &Box{}, &Part{})[0]
			err := e.tryRepair(f)
			if err == nil || !strings.Contains(err.Error(), "out of range") || !strings.Contains(err.Error(), "COUNT(*)") {
				e.Errorf("way out with the key %q = %v; want the check to be out of range", test.no, err)
			}
			if got := e.constraints(); !slices.Equal(got, constraints) {
				e.Errorf("foreign keys after the refusal = %q; want %q", got, constraints)
			}
			var left string
			e.must(e.db.Table(e.prefix + "parts").Select("box_id").Scan(&left))
			equal(e, "box_id after the refusal", left, test.no)
			e.ddl("DROP TABLE `PRE_parts`")
			e.ddl("DROP TABLE `PRE_boxes`")
		}
	}},
	{"RepairKeepsTheRestOfAColumn", func(e *env) {
		e.only(e.mysql(), "elsewhere a type is changed alone")
		type Part struct {
			ID    types.Snowflake
			BoxID types.Snowflake
			Code  string `gorm:"snowflake"`
		}
		pool, err := e.db.DB()
		if err != nil {
			e.Fatalf("DB = %v; want no error", err)
		}
		pool.SetMaxOpenConns(1) // the modes are those of a connection
		const ordinary = "SET SESSION sql_mode = DEFAULT, sql_quote_show_create = DEFAULT"
		const ansi = "SET SESSION sql_mode = 'ANSI,NO_BACKSLASH_ESCAPES,STRICT_TRANS_TABLES'"
		for _, session := range []struct{ checks, repairs string }{{ordinary, ordinary}, {ansi, ansi}, {ansi, ordinary}, {ordinary, ansi}, {"SET SESSION sql_quote_show_create = 0", ordinary}} {
			e.ddl("CREATE TABLE `PRE_boxes` (`id` int unsigned NOT NULL PRIMARY KEY)")
			e.ddl("CREATE TABLE `PRE_parts` (`id` bigint NOT NULL PRIMARY KEY, `box_id` int unsigned NOT NULL DEFAULT '0' COMMENT 'a, b) `c` \"d\" it''s \\\\'," +
				" `code` varchar(10) CHARACTER SET latin1 COLLATE latin1_bin NOT NULL DEFAULT 'x' COMMENT 'AUTO_INCREMENT' CHECK (`code` <> '\"''`')," +
				" CONSTRAINT `PRE_\"a``\"` FOREIGN KEY (`box_id`) REFERENCES `PRE_boxes` (`id`) ON DELETE CASCADE)")
			e.ddl("INSERT INTO `PRE_boxes` VALUES (2)")
			e.ddl("INSERT INTO `PRE_parts` VALUES (1, 2, '\u00e9')")
			constraints, rest := e.constraints(), e.rest()
			e.ddl(session.checks)
			findings := e.finds([]any{&Part{}}, "column is too narrow BoxID", "column is too narrow Code")
			e.ddl(session.repairs)
			for _, f := range findings {
				e.repair(f)
			}
			e.ddl(ordinary)
			e.finds([]any{&Part{}})
			equal(e, "foreign keys after the repair", fmt.Sprint(e.constraints()), fmt.Sprint(constraints))
			equal(e, "columns after the repair", fmt.Sprint(e.rest()), fmt.Sprint(rest))
			var code, collation string
			e.must(e.db.Table(e.prefix + "parts").Select("code").Scan(&code))
			equal(e, "code after the repair", code, "\u00e9")
			e.must(e.db.Raw("SELECT collation_name FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = ? AND column_name = 'code'", e.prefix+"parts").Scan(&collation))
			equal(e, "collation after the repair", collation, "latin1_bin")
			if !e.tidb() && e.db.Exec("INSERT INTO "+e.prefix+"parts VALUES (3, 2, '\"''`')").Error == nil {
				e.Error("INSERT against the CHECK after the repair = nil; want an error")
			}
			e.ddl("DROP TABLE `PRE_parts`")
			e.ddl("DROP TABLE `PRE_boxes`")
		}
	}},
	{"CheckNamesTheViewsThatReadAColumn", func(e *env) {
		e.only(e.postgres(), "others change a column below a view")
		type Box struct{ ID types.Snowflake }
		e.ddl("CREATE TABLE `PRE_boxes` (`id` integer PRIMARY KEY, `n` int)")
		e.ddl("CREATE VIEW `PRE_Seen` AS SELECT `id` FROM `PRE_boxes`")
		e.ddl("CREATE VIEW `PRE_other` AS SELECT `n` FROM `PRE_boxes`")
		e.ddl("CREATE MATERIALIZED VIEW `PRE_kept` AS SELECT max(`id`) FROM `PRE_boxes`")
		e.ddl("CREATE FUNCTION PRE_f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'")
		e.ddl("CREATE TRIGGER PRE_t BEFORE UPDATE OF `id` ON `PRE_boxes` FOR EACH ROW EXECUTE FUNCTION PRE_f()")
		f := e.finds([]any{&Box{}}, "column is too narrow ID")[0]
		e.inWords(f, `materialized view `+e.prefix+`kept, trigger `+e.prefix+`t on table `+e.prefix+`boxes, view "`+e.prefix+`Seen"`)
		if strings.Contains(f.Fix, "other") {
			e.Errorf("Fix = %q; want no view that does not read the column", f.Fix)
		}
		e.ddl("DROP VIEW `PRE_Seen`")
		e.ddl("DROP MATERIALIZED VIEW `PRE_kept`")
		e.ddl("DROP TRIGGER PRE_t ON `PRE_boxes`")
		e.repairs(&Box{})
		e.must(e.db.Create(&Box{}))
	}},
	{"CheckGivesNoStatementForTextWithADefault", func(e *env) {
		e.only(!e.sqlite(), "it has no statements")
		type Part struct {
			ID    types.Snowflake
			BoxID types.Snowflake
		}
		e.ddl("CREATE TABLE `PRE_parts` (`id` bigint NOT NULL PRIMARY KEY, `box_id` varchar(40) NOT NULL DEFAULT '')")
		f := e.finds([]any{&Part{}}, "column is of the wrong type BoxID")[0]
		e.inWords(f, "default")
		e.ddl("ALTER TABLE `PRE_parts` ALTER COLUMN `box_id` DROP DEFAULT")
		e.mends(&Part{})
	}},
	{"CheckFindsAConnectionThatCutsValues", func(e *env) {
		e.only(e.mysql(), "MySQL's modes")
		e.migrate(&Event{})
		err := e.db.Connection(func(tx *gorm.DB) error {
			tx = tx.Session(&gorm.Session{})
			for mode, strict := range map[string]bool{"": false, "NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO": false, "ANSI": false, "STRICT_TRANS_TABLES": true, "ANSI,STRICT_ALL_TABLES": true} {
				e.must(tx.Exec("SET SESSION sql_mode = ?", mode))
				findings := e.check(tx, &Event{})
				found := slices.ContainsFunc(findings, func(f schemacheck.Finding) bool { return f.Problem == schemacheck.NotStrict })
				if found == strict || len(findings) > 1 {
					e.Errorf("Check with sql_mode %q = %v; want NotStrict to be %v", mode, findings, !strict)
				}
				if found {
					var before, after string
					e.must(tx.Raw("SELECT @@sql_mode").Scan(&before))
					e.must(tx.Exec("SET SESSION " + regexp.MustCompile(`sql_mode='[^']*'|$`).FindString(findings[0].Fix)))
					e.must(tx.Raw("SELECT @@sql_mode").Scan(&after))
					modes := func(text string) []string { return slices.Sorted(strings.SplitSeq(text, ",")) }
					equal(e, "sql_mode of the way out", fmt.Sprint(modes(after)), fmt.Sprint(modes(strings.TrimPrefix(before+",STRICT_TRANS_TABLES", ","))))
				}
			}
			return tx.Exec("SET SESSION sql_mode = DEFAULT").Error
		})
		if err != nil {
			e.Fatalf("Connection = %v; want no error", err)
		}
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
		}
		e.migrate(&Tree{}, &Leaf{})
		var got []string
		for _, f := range e.allFindings(&Tree{}, &Leaf{}) {
			if f.Problem == schemacheck.PointerReference {
				got = append(got, f.Table+"."+f.Column)
				if !strings.Contains(f.Want, "types.NullSnowflake") {
					e.Errorf("Want = %q; want types.NullSnowflake", f.Want)
				}
			}
		}
		if want := []string{e.prefix + "trees.parent_id", e.prefix + "leafs.tree_id"}; !slices.Equal(got, want) {
			e.Errorf("pointers found: %q; want %q", got, want)
		}
	}},
	{"CheckFindsUniqueIndexesOnExpressions", func(e *env) {
		e.only(!e.mariadb(), "MariaDB has none")
		type User struct {
			ID    types.Snowflake
			Email string `gorm:"size:40"`
		}
		e.migrate(&User{})
		e.ddl("CREATE UNIQUE INDEX PRE_plain ON `PRE_users` (`email`)")
		e.ddl("CREATE INDEX PRE_slow ON `PRE_users` ((lower(`email`)))")
		e.finds([]any{&User{}})
		e.ddl("CREATE UNIQUE INDEX PRE_folded ON `PRE_users` (" + map[bool]string{true: "lower(`email`)", false: "(lower(`email`))"}[e.sqlite()] + ", `id`)")
		f := e.finds([]any{&User{}}, "unique index on an expression")[0]
		equal(e, "Is", f.Is, fmt.Sprintf("unique index %sfolded", e.prefix))
		equal(e, "Table", f.Table, e.prefix+"users")
	}},
}
