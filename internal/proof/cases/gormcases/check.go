package gormcases

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/gormplugin/schemacheck"
	"github.com/snowkey/snowkey/types"
)

var checkCases = []testCase{
	{"CheckFindsNothingInFreshTables", func(e *env) {
		type Hub struct{ ID types.Snowflake }
		type Spoke struct {
			ID    types.Snowflake
			AID   types.Snowflake
			A     *Hub
			BID   *types.Snowflake
			B     *Hub
			CID   types.NullSnowflake
			C     *Hub
			DID   int64
			D     *Hub
			OldID types.Snowflake
			Old   *gormOld
			Loose types.NullSnowflake
		}
		type Profile struct { // its key is its parent's
			HubID types.Snowflake `gorm:"primaryKey"`
			Hub   *Hub
		}
		type Tenant struct {
			TenantID types.Snowflake `gorm:"primaryKey"`
			ID       types.Snowflake `gorm:"primaryKey"`
		}
		type Tagged struct {
			ID     uint64           `gorm:"primaryKey;autoIncrement:false;snowflake"`
			Public *types.Snowflake `gorm:"snowflake"`
		}
		type OptOut struct {
			ID types.Snowflake `gorm:"snowflake:-"`
		}
		models := append(slices.Clone(orderModels), &Shipment{}, &Parcel{}, &Node{}, &Cat{}, &Dog{}, &Toy{}, &Hooked{}, &HookedPart{}, &Event{},
			&Hub{}, &gormOld{}, &Spoke{}, &Profile{}, &Text{}, &TextPart{}, &TextNote{}, &Tenant{}, &Tagged{}, &OptOut{})
		e.migrate(&gormOld{})
		e.migrate(models...)
		models = slices.DeleteFunc(models, func(m any) bool { _, old := m.(*gormOld); return old })
		e.finds(models)
	}},
	{"CheckFindsWhatIsMissing", func(e *env) {
		e.finds([]any{&Order{}},
			"table is missing", "table is missing", "table is missing", "table is missing")
		e.migrate(orderModels...)
		e.finds([]any{&Order{}})
		type Order struct {
			ID    types.Snowflake
			Other *types.Snowflake
		}
		f := e.finds([]any{&Order{}}, "column is missing Other")[0]
		equal(e, "Table", f.Table, e.prefix+"orders")
		equal(e, "Column", f.Column, "other")
		e.repairs(&Order{})
	}},
	{"CheckFindsThatThePluginIsMissing", func(e *env) {
		e.migrate(&Item{})
		findings := e.check(e.open(&gorm.Config{}), &Item{})
		if len(findings) != 1 || findings[0].Problem != schemacheck.NotInstalled {
			e.Errorf("Check = %v; want NotInstalled", findings)
		}
	}},
	{"CheckFindsModelsWithoutAKey", func(e *env) {
		type Counting struct{ ID uint }
		type Typed struct{ ID int64 }
		type Keyless struct{ Name string }
		type Several struct {
			A types.Snowflake `gorm:"primaryKey"`
			B types.Snowflake `gorm:"primaryKey"`
		}
		type Meant struct {
			ID int64 `gorm:"primaryKey;autoIncrement"`
		}
		type Out struct {
			ID int64 `gorm:"snowflake:-"`
		}
		models := []any{&Counting{}, &Typed{}, &Keyless{}, &Several{}, &Meant{}, &Out{}}
		e.migrate(models...)
		const none = "no key that the plugin fills"
		e.finds(models, none+" ID", none+" ID", none)
	}},
	{"CheckListsKeysThatOnlyTheProgramSets", func(e *env) {
		type Setting struct {
			Key   string `gorm:"primaryKey;size:50"`
			Value string
		}
		type Tagged struct {
			ID string `gorm:"primaryKey;size:20;snowflake"`
		}
		type Meant struct {
			Code string `gorm:"primaryKey;size:50;snowflake:-"`
		}
		models := []any{&Setting{}, &Tagged{}, &Meant{}}
		e.migrate(models...)
		if err := e.db.Plugins["snowkey"].(*gormplugin.Plugin).Verify(e.db, models...); err != nil {
			e.Errorf("Verify = %v; want no error", err)
		}
		f := e.finds(models, "key that only the program sets Key")[0]
		equal(e, "Table", f.Table, e.prefix+"settings")
		equal(e, "Column", f.Column, "key")
		e.must(e.db.Create(&Setting{Key: "theme", Value: "dark"}))
	}},
	{"CheckFindsAModelThatCannotWork", func(e *env) {
		type Wrong struct {
			ID types.Snowflake `gorm:"snowflake:sometimes"`
		}
		type Counted struct {
			ID types.Snowflake `gorm:"primaryKey;autoIncrement"`
		}
		findings := e.finds([]any{&Wrong{}, &Wrong{}, &Counted{}}, "model cannot work ID", "model cannot work ID")
		for i, tag := range []string{"sometimes", "autoIncrement"} {
			if !strings.Contains(findings[i].Is, tag) {
				e.Errorf("Is = %q; want it to name the tag, %s", findings[i].Is, tag)
			}
		}
	}},
	{"CheckFindsModelsOfOneTableThatDiffer", func(e *env) {
		e.migrate(&Item{})
		type Items struct {
			ID  int64
			SKU string
		}
		f := e.finds([]any{&Item{}, &Items{}}, "no key that the plugin fills ID", "models of one table differ in their keys")[1]
		if !strings.HasSuffix(f.Model, ".Items") || !strings.Contains(f.Is, ".Item") {
			e.Errorf("finding = %v; want it to name both models", f)
		}
	}},
	{"CheckFindsForAnyModelOfATableThatTheDatabaseCounts", func(e *env) {
		key := map[string]string{"sqlite": "integer PRIMARY KEY AUTOINCREMENT", "postgres": "bigserial PRIMARY KEY", "mysql": "bigint AUTO_INCREMENT PRIMARY KEY"}
		e.ddl("CREATE TABLE `PRE_shareds` (`id` " + key[e.db.Name()] + ")")
		type Shared struct{ ID types.Snowflake }
		type Shareds struct {
			ID types.Snowflake `gorm:"snowflake:-"` // whose rows come from elsewhere
		}
		e.finds([]any{&Shared{}, &Shareds{}}, "models of one table differ in their keys", "database counts as well ID")
		e.finds([]any{&Shareds{}, &Shared{}}, "models of one table differ in their keys", "database counts as well ID")
	}},
	{"CheckFindsColumnsThatAreTooNarrow", func(e *env) {
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
		narrow := "int"
		if e.sqlite() {
			narrow = "real" // any integer is wide there
		}
		e.ddl("CREATE TABLE `PRE_boxes` (`id` " + narrow + " NOT NULL, PRIMARY KEY (`id`))")
		e.ddl("CREATE TABLE `PRE_parts` (`id` bigint NOT NULL, `box_id` " + narrow + ", `lid_id` " + narrow + ", `amount` decimal(10,0), PRIMARY KEY (`id`))")
		e.ddl("INSERT INTO `PRE_parts` (`id`, `box_id`) VALUES (1, 2)")
		want := []string{"column is too narrow ID", "column is too narrow LidID", "column is too narrow BoxID"}
		if !e.sqlite() {
			want = append(want, "column is too narrow Amount")
		}
		findings := e.finds([]any{&Box{}, &Part{}}, want...)
		f := findings[2]
		equal(e, "Table", f.Table, e.prefix+"parts")
		equal(e, "Column", f.Column, "box_id")
		equal(e, "Want", f.Want, "bigint")
		e.repairs(&Box{}, &Part{})
		if e.sqlite() {
			return
		}
		equal(e, "box_id after the repair", e.keys("parts", "box_id", "id", 1)[0], 2)
		e.must(e.db.Create(&Box{Parts: []Part{{}}}))
	}},
	{"CheckFindsColumnsOfText", func(e *env) {
		type Page struct {
			ID     types.Snowflake
			BookID types.Snowflake
		}
		type Label struct {
			ID      string `gorm:"primaryKey;snowflake"`
			Exact   string `gorm:"snowflake"`
			Endless string `gorm:"snowflake"`
		}
		e.ddl("CREATE TABLE `PRE_pages` (`id` varchar(10) NOT NULL, `book_id` varchar(40) NOT NULL, PRIMARY KEY (`id`))")
		e.ddl("CREATE TABLE `PRE_labels` (`id` varchar(10) NOT NULL, `exact` varchar(19), `endless` text, PRIMARY KEY (`id`))")
		e.ddl("INSERT INTO `PRE_pages` VALUES ('9', '10')")
		want := []string{"column is of the wrong type ID", "column is of the wrong type BookID"}
		if !e.sqlite() { // which does not look at lengths
			want = append(want, "column is too narrow ID")
		}
		e.finds([]any{&Page{}, &Label{}}, want...)
		e.repairs(&Page{}, &Label{})
		if e.sqlite() {
			return
		}
		equal(e, "id after the repair", e.keys("pages", "id", "book_id", 10)[0], 9)
		if e.db.Exec("INSERT INTO "+e.prefix+"pages (id) VALUES (11)").Error == nil {
			e.Error("INSERT without book_id = nil; want NOT NULL kept")
		}
		e.must(e.db.Create(&Label{}))
	}},
	{"CheckFindsThatTheDatabaseCountsAsWell", func(e *env) {
		e.migrateOld()
		e.must(e.db.Exec("INSERT INTO " + e.prefix + "counters (name) VALUES ('old')"))
		type Counter struct {
			ID   types.Snowflake
			Name string `gorm:"size:40;index"`
		}
		type Counters struct {
			ID   types.Snowflake `gorm:"primaryKey;autoIncrement;snowflake:-"`
			Name string          `gorm:"size:40"`
		}
		e.finds([]any{&Counters{}}) // it wants that
		e.migrate(&Counter{})       // and makes an index, which a repair must keep
		findings := e.check(e.db, &Counter{})
		if !slices.ContainsFunc(findings, func(f schemacheck.Finding) bool {
			return f.Problem == schemacheck.Counted && f.Field == "ID" && f.Is != ""
		}) {
			e.Errorf("Check = %v; want Counted", findings)
		}
		e.repairs(&Counter{})
		equal(e, "index after the repair", e.db.Migrator().HasIndex(&Counter{}, "Name"), true)
		equal(e, "id after the repair", e.keys("counters", "id", "name", "old")[0], 1)
		e.countsNoMore("counters (name) VALUES ('keyless')")
		e.must(e.db.Create(&Counter{Name: "new"}))
		if e.postgres() {
			var left bool
			e.must(e.db.Raw("SELECT to_regclass(?) IS NOT NULL", e.prefix+"counters_id_seq").Scan(&left))
			equal(e, "sequence left over", left, false)
		}
	}},
	{"CheckKeepsTheCountingThatAModelWants", func(e *env) {
		e.only(e.mysql(), "MySQL's statement says all of a column")
		type Part struct {
			ID    types.Snowflake
			BoxID types.Snowflake
		}
		type Box struct {
			ID    types.Snowflake `gorm:"primaryKey;autoIncrement;snowflake:-"`
			Parts []Part
		}
		e.ddl("CREATE TABLE `PRE_boxes` (`id` int NOT NULL AUTO_INCREMENT, PRIMARY KEY (`id`))")
		e.ddl("CREATE TABLE `PRE_parts` (`id` bigint NOT NULL, `box_id` bigint, PRIMARY KEY (`id`))")
		e.repair(e.finds([]any{&Box{}, &Part{}}, "column is too narrow ID")[0])
		e.ddl("INSERT INTO `PRE_boxes` () VALUES ()")
		e.finds([]any{&Box{}, &Part{}})
	}},
	{"CheckReadsWithAnyNamingStrategy", func(e *env) {
		e.ddl("CREATE TABLE `PRE_widgets` (`COL_ID` " + map[bool]string{true: "integer", false: "bigint"}[e.sqlite()] + " NOT NULL, PRIMARY KEY (`COL_ID`))")
		type Widget struct {
			ID      types.Snowflake
			Virtual types.Snowflake `gorm:"->;-:migration"`
		}
		e.finds([]any{&Widget{}}, "column is missing ID")
		db := e.use(e.database(&gorm.Config{NamingStrategy: prefixedColumns{schema.NamingStrategy{TablePrefix: e.prefix}}, Logger: &e.log}))
		if findings := e.check(db, &Widget{}); len(findings) != 0 {
			e.Errorf("Check = %v; want nothing", findings)
		}
	}},
	{"CheckFindsAnIdentity", func(e *env) {
		e.only(e.postgres(), "only PostgreSQL has identities")
		type Row struct{ ID types.Snowflake }
		for _, kind := range []string{"ALWAYS", "BY DEFAULT"} {
			e.ddl("CREATE TABLE `PRE_rows` (`id` bigint GENERATED " + kind + " AS IDENTITY PRIMARY KEY)")
			f := e.finds([]any{&Row{}}, "database counts as well ID")[0]
			equal(e, "Is", f.Is, "GENERATED "+kind+" AS IDENTITY")
			e.repairs(&Row{})
			e.must(e.db.Create(&Row{}))
			e.ddl("DROP TABLE `PRE_rows`")
		}
	}},
	{"CheckFindsATaggedKeyThatGORMMakesCount", func(e *env) {
		type Half struct {
			ID int64 `gorm:"primaryKey;snowflake"`
		}
		e.migrate(&Half{})
		f := e.finds([]any{&Half{}}, "database counts as well ID")[0]
		if !strings.Contains(f.Fix, "autoIncrement:false") {
			e.Errorf("Fix = %q; want it to say autoIncrement:false", f.Fix)
		}
	}},
	{"CheckFindsSignsThatDoNotMatch", func(e *env) {
		e.only(e.mysql(), "only MySQL has unsigned columns")
		e.ddl("CREATE TABLE `PRE_boxes` (`id` bigint unsigned NOT NULL, PRIMARY KEY (`id`))")
		e.ddl("CREATE TABLE `PRE_parts` (`id` bigint NOT NULL, `box_id` bigint, PRIMARY KEY (`id`))")
		const differ = "signed and unsigned columns do not match"
		e.finds([]any{&Box{}, &Part{}}, differ+" ID")
		e.repairs(&Box{}, &Part{})
		e.ddl("ALTER TABLE `PRE_parts` MODIFY `box_id` bigint unsigned")
		e.finds([]any{&Box{}, &Part{}}, differ+" BoxID")
		e.repairs(&Box{}, &Part{})
		e.ddl("ALTER TABLE `PRE_parts` ADD FOREIGN KEY (`box_id`) REFERENCES `PRE_boxes` (`id`)")
		type Crate struct {
			ID uint64 `gorm:"primaryKey;autoIncrement:false;snowflake"`
		}
		e.ddl("CREATE TABLE `PRE_crates` (`id` bigint NOT NULL PRIMARY KEY)")
		equal(e, "Want", e.finds([]any{&Crate{}}, differ+" ID")[0].Want, "bigint unsigned")
		e.repairs(&Crate{})
	}},
	{"CheckComparesAReferenceWithTheColumnOfAnotherKey", func(e *env) {
		e.only(e.mysql(), "only MySQL has unsigned columns")
		type Leaf struct {
			ID        types.Snowflake
			GormOldID types.Snowflake
			GormOld   *gormOld
		}
		e.ddl("CREATE TABLE `PRE_gorm_olds` (`id` bigint unsigned NOT NULL AUTO_INCREMENT, PRIMARY KEY (`id`))")
		e.ddl("CREATE TABLE `PRE_leafs` (`id` bigint NOT NULL, `gorm_old_id` bigint, PRIMARY KEY (`id`))")
		f := e.finds([]any{&Leaf{}}, "signed and unsigned columns do not match GormOldID")[0]
		equal(e, "Want", f.Want, "bigint unsigned")
		e.repairs(&Leaf{})
		e.ddl("ALTER TABLE `PRE_leafs` ADD FOREIGN KEY (`gorm_old_id`) REFERENCES `PRE_gorm_olds` (`id`)")
	}},
	{"CheckAndUseRowIDsMakeTheKeyTheRowid", func(e *env) {
		if !e.sqlite() {
			before := len(e.log.statements(""))
			if err := gormplugin.UseRowIDs(e.db, &Order{}, "nothing"); err != nil {
				e.Errorf("UseRowIDs = %v; want no error, and nothing done", err)
			}
			equal(e, "statements", len(e.log.statements("")), before)
			e.migrate(orderModels...)
			for _, text := range e.log.statements("CREATE TABLE") {
				if strings.Contains(text, "integer") {
					e.Errorf("%s; want bigint", text)
				}
			}
			return
		}
		type Tenant struct {
			TenantID types.Snowflake `gorm:"primaryKey"`
			ID       types.Snowflake `gorm:"primaryKey"`
		}
		models := append(slices.Clone(orderModels), &Tenant{}, &Node{})
		e.migrate(models...)
		all := func() []schemacheck.Finding {
			return slices.DeleteFunc(e.allFindings(models...), func(f schemacheck.Finding) bool { return f.Problem == schemacheck.PointerReference })
		}
		findings := all()
		equal(e, "findings of fresh tables", len(findings), len(models)-1) // not the composite key
		for _, f := range findings {
			if f.Problem != schemacheck.NoRowID || !strings.Contains(f.Error(), "UseRowIDs") {
				e.Errorf("finding = %v; want NoRowID, which says UseRowIDs", f)
			}
			e.repair(f)
		}
		fresh := e.withPlugin(&gorm.Config{}) // has learnt nothing of the models
		if err := errors.Join(fresh.Migrator().DropTable(append(slices.Clone(models), "order_labels")...), gormplugin.UseRowIDs(fresh, models...), fresh.AutoMigrate(models...)); err != nil {
			e.Fatalf("UseRowIDs and AutoMigrate = %v; want no error", err)
		}
		if findings = all(); len(findings) != 0 {
			e.Errorf("Check after UseRowIDs = %v; want nothing", findings)
		}
		again := Order{Number: "B", Items: []Item{{SKU: "1"}}}
		e.must(fresh.Create(&again))
		equal(e, "the key is the rowid", e.keys("orders", "rowid", "number", "B")[0], again.ID.Int64())
		e.log.reset()
		if err := fresh.AutoMigrate(models...); err != nil {
			e.Errorf("second AutoMigrate = %v; want no error", err)
		}
		equal(e, "DDL of the second AutoMigrate", len(slices.Concat(e.log.statements("CREATE"), e.log.statements("ALTER"), e.log.statements("DROP"))), 0)
		if err := gormplugin.UseRowIDs(fresh, "nothing"); err == nil {
			e.Error(`UseRowIDs("nothing") = nil; want an error`)
		}
	}},
	{"CheckReadsOddTablesOfSQLite", func(e *env) {
		e.only(e.sqlite(), "SQLite's own ways")
		type Odd struct{ ID types.Snowflake }
		check := func(ddl string, want ...schemacheck.Problem) {
			e.Helper()
			e.ddl(ddl)
			defer e.ddl("DROP TABLE `PRE_odds`")
			findings, err := schemacheck.Check(e.Context(), e.db, &Odd{})
			var got []schemacheck.Problem
			for _, f := range findings {
				got = append(got, f.Problem)
			}
			if err != nil || !slices.Equal(got, want) {
				e.Errorf("Check of %s = %v, %v; want %v", ddl, findings, err, want)
			}
			for _, f := range findings {
				e.repair(f)
			}
		}
		check("CREATE TABLE PRE_odds (id INTEGER PRIMARY KEY)")
		check("CREATE TABLE PRE_odds (id bigint PRIMARY KEY) WITHOUT ROWID")
		check("CREATE TABLE PRE_odds (id INTEGER PRIMARY KEY, note text DEFAULT 'AUTOINCREMENT' /* AUTOINCREMENT */)")
		check("CREATE TABLE PRE_odds (Id integer primary key autoincrement, `a(b` text, x TEXT DEFAULT ')''')", schemacheck.Counted)
		check("CREATE TABLE PRE_odds (n int, id INTEGER PRIMARY\n KEY ASC ON CONFLICT FAIL AUTOINCREMENT)", schemacheck.Counted)
		check("CREATE TABLE PRE_odds (note text, [id] BIGINT ( 20 ) -- ,id\n NOT NULL, PRIMARY KEY ([id]))", schemacheck.NoRowID)
		check("CREATE TABLE `PRE_odds` (`id` unsigned big int PRIMARY KEY)", schemacheck.NoRowID)
		check("CREATE TABLE PRE_odds(id int primary key, n int)", schemacheck.NoRowID)
		check("CREATE TABLE PRE_odds (id bigint PRIMARY KEY, a int, twice int GENERATED ALWAYS AS (a * 2) STORED, b int)", schemacheck.NoRowID)
		e.ddl("CREATE VIEW PRE_seen AS SELECT id FROM PRE_odds") // of a table that a repair drops
		check("CREATE TABLE PRE_odds (id bigint PRIMARY KEY)", schemacheck.NoRowID)
		e.ddl("DROP VIEW PRE_seen")
		check("CREATE TABLE PRE_odds (id int PRIMARY KEY) STRICT", schemacheck.NoRowID)
		check("CREATE TABLE PRE_odds (id TEXT PRIMARY KEY) STRICT", schemacheck.WrongType)
		check("CREATE TABLE PRE_odds (id bigint PRIMARY KEY, strict int, without int)", schemacheck.NoRowID)
		check("CREATE TABLE PRE_odds (id INTEGER PRIMARY KEY /* not */ DESC, n int)", schemacheck.NoRowID)
		check("CREATE TABLE PRE_odds (id INTEGER NOT NULL, PRIMARY KEY (id DESC))")
		check("CREATE TABLE PRE_odds (n int, id INTEGER PRIMARY KEY DESC) WITHOUT ROWID")
		check("CREATE TABLE PRE_odds (id INTEGER, n int, PRIMARY KEY (n, id))")
		for _, ddl := range []string{"TABLE PRE_odds (id PRIMARY KEY)", "TABLE PRE_odds (id bigint AS (n + 1), n int)", "VIEW PRE_odds AS SELECT CAST('1' AS text) AS id", "VIRTUAL TABLE PRE_odds USING rtree(n, low, high)"} {
			e.ddl("CREATE " + ddl)
			findings, err := schemacheck.Check(e.Context(), e.db, &Odd{})
			if err != nil || len(findings) != 1 || len(findings[0].SQL) != 0 || findings[0].Fix == "" {
				e.Errorf("Check of %s = %v, %v; want one finding without SQL, and words", ddl, findings, err)
			}
			e.ddl("DROP " + strings.Fields(strings.TrimPrefix(ddl, "VIRTUAL "))[0] + " PRE_odds")
		}
		check("CREATE VIEW PRE_odd_view AS SELECT 1 AS id; CREATE TABLE PRE_odds (id text primary key)", schemacheck.WrongType)
	}},
	{"StepsForSQLiteNameWhatIsToBeMadeAnew", func(e *env) {
		e.only(e.sqlite(), "others alter a table")
		type Barn struct{ ID types.Snowflake }
		e.ddl("CREATE TABLE PRE_barns (id text PRIMARY KEY, n int)")
		e.ddl("CREATE INDEX PRE_barns_n ON PRE_barns (n)")
		e.ddl("CREATE TRIGGER PRE_barns_t AFTER INSERT ON PRE_barns BEGIN SELECT 1; END")
		e.ddl("CREATE VIEW PRE_view AS SELECT n FROM PRE_barns")
		e.ddl("CREATE TABLE PRE_cows (barn_id bigint REFERENCES PRE_barns (id) ON DELETE CASCADE)")
		e.ddl("INSERT INTO PRE_barns VALUES ('7', 1)")
		e.ddl("INSERT INTO PRE_cows VALUES (7)")
		f := e.finds([]any{&Barn{}}, "column is of the wrong type ID")[0]
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
		if err != nil {
			e.Fatalf("Connection = %v; want no error", err)
		}
		e.count("cows", 1)
		if findings, err := schemacheck.Check(e.Context(), e.db, &Barn{}); err != nil || len(findings) != 0 {
			e.Errorf("Check after the steps = %v, %v; want nothing", findings, err)
		}
	}},
	{"StepsForSQLiteFindTheRowsThatHaveNoKey", func(e *env) {
		e.only(e.sqlite(), "others refuse such a row")
		type Loose struct{ ID types.Snowflake }
		type Looses struct { // of the same table
			ID string `gorm:"primaryKey;snowflake"`
		}
		for _, test := range []struct {
			model    any
			typ      string
			good, no string // values
		}{
			{&Loose{}, "bigint PRIMARY KEY", "7", "NULL"},
			{&Loose{}, "INTEGER PRIMARY KEY DESC", "7", "NULL"},
			{&Loose{}, "text PRIMARY KEY", "'0', '7', '9223372036854775807'", "'12a', '', 'x', '1e3', '1.5', '007', '-', '-5', '9223372036854775808', '99999999999999999999', NULL"},
			{&Looses{}, "real PRIMARY KEY", "5.0, 9007199254740992", "1.5, 4611686018427387905, 1e19"},
		} {
			e.ddl("CREATE TABLE PRE_looses (id " + test.typ + ", n int)")
			findings, err := schemacheck.Check(e.Context(), e.db, test.model)
			if err != nil || len(findings) != 1 {
				e.Fatalf("Check of id %s = %v, %v; want one finding", test.typ, findings, err)
			}
			_, rest, _ := strings.Cut(findings[0].Fix, "stop here if ")
			query, _, ok := strings.Cut(rest, " finds a row")
			if !ok {
				e.Fatalf("Fix = %q; want a query for bad rows", findings[0].Fix)
			}
			count := func(values string) (n int) {
				for value := range strings.SplitSeq(values, ", ") {
					e.ddl("INSERT INTO PRE_looses (id) VALUES (" + value + ")")
				}
				var rows []map[string]any
				e.must(e.db.Raw(query).Scan(&rows))
				e.ddl("DELETE FROM PRE_looses")
				return len(rows)
			}
			equal(e, query+" of keys", count(test.good), 0)
			equal(e, query+" of no keys", count(test.no), strings.Count(test.no, ",")+1)
			e.ddl("DROP TABLE PRE_looses")
		}
	}},
	{"RepairRefusesTextThatIsNoNumber", func(e *env) {
		e.only(!e.sqlite(), "it has no statements")
		type Memo struct {
			ID     types.Snowflake
			PostID *types.Snowflake
		}
		for _, bad := range []string{"12a", "", "x", "1e3", "1.5", "9223372036854775808", "99999999999999999999"} {
			for _, column := range []string{"id", "post_id"} {
				typ := map[string]string{"id": "bigint", "post_id": "bigint", column: "varchar(40)"}
				e.ddl("CREATE TABLE `PRE_memos` (`id` " + typ["id"] + " NOT NULL PRIMARY KEY, `post_id` " + typ["post_id"] + ")")
				e.ddl("INSERT INTO `PRE_memos` (`id`, `post_id`) VALUES (1, NULL)")
				if column == "id" {
					e.ddl("INSERT INTO `PRE_memos` (`id`) VALUES ('" + bad + "')")
				} else {
					e.ddl("INSERT INTO `PRE_memos` (`id`, `post_id`) VALUES (2, '" + bad + "')")
				}
				findings := e.check(e.db, &Memo{})
				if len(findings) != 1 || findings[0].Problem != schemacheck.WrongType || findings[0].Column != column {
					e.Fatalf("Check with %s as text = %v; want WrongType of it", column, findings)
				}
				e.refuses(findings[0], &Memo{}, "id", "post_id")
				e.ddl("DELETE FROM `PRE_memos` WHERE `" + column + "` = '" + bad + "'")
				e.ddl("INSERT INTO `PRE_memos` (`id`, `post_id`) VALUES ('9223372036854775807', '9223372036854775807')")
				e.repair(findings[0])
				equal(e, "the largest key after the repair", e.keys("memos", column, column, int64(math.MaxInt64))[0], math.MaxInt64)
				e.count("memos", 2)
				var without int64
				e.must(e.db.Table(e.prefix + "memos").Where("post_id IS NULL").Count(&without))
				equal(e, "rows without a post", without, 1)
				e.ddl("DROP TABLE `PRE_memos`")
			}
		}
	}},
	{"RepairNeedsNoStrictSessionAndLeavesItAsItWas", func(e *env) {
		e.only(e.mysql(), "MySQL's modes")
		type Page struct{ ID types.Snowflake }
		type Mark struct {
			ID        types.Snowflake
			GormOldID types.Snowflake
			GormOld   *gormOld
		}
		e.migrate(&gormOld{})
		for _, test := range []struct {
			model              any
			ddl, value, column string
		}{
			{&Page{}, "`PRE_pages` (`id` varchar(20) NOT NULL, PRIMARY KEY (`id`))", "12a", "id"},
			{&Page{}, "`PRE_pages` (`id` bigint unsigned NOT NULL, PRIMARY KEY (`id`))", "9223372036854775808", "id"},
			{&Page{}, "`PRE_pages` (`id` bigint unsigned NOT NULL AUTO_INCREMENT, PRIMARY KEY (`id`))", "9223372036854775808", "id"},
			{&Mark{}, "`PRE_marks` (`gorm_old_id` bigint NOT NULL, `id` bigint DEFAULT 0)", "-1", "gorm_old_id"},
			{&Mark{}, "`PRE_marks` (`gorm_old_id` int NOT NULL, `id` bigint DEFAULT 0)", "-1", "gorm_old_id"},
		} {
			e.ddl("CREATE TABLE " + test.ddl)
			findings := e.check(e.db, test.model, &Text{})
			findings = slices.DeleteFunc(findings, func(f schemacheck.Finding) bool { return f.Column != test.column || len(f.SQL) == 0 })
			err := e.db.Connection(func(tx *gorm.DB) error {
				tx = tx.Session(&gorm.Session{})
				for _, f := range findings {
					// A server that lets everything pass, in the words of MySQL.
					e.must(tx.Exec("SET SESSION sql_mode = ''"))
					e.must(tx.Exec("INSERT INTO "+f.Table+" ("+f.Column+") VALUES (?)", test.value))
					failed := false
					for _, text := range f.SQL {
						if failed = tx.Exec(text).Error != nil; failed {
							break
						}
					}
					var left string
					e.must(tx.Raw("SELECT " + f.Column + " FROM " + f.Table).Scan(&left))
					if !failed || left != test.value {
						e.Errorf("%v with the value %s: failed %v, and left %s; want an error and the value", f, test.value, failed, left)
					}
					e.must(tx.Exec("SET SESSION sql_mode = ''"))
					e.must(tx.Exec("DELETE FROM " + f.Table))
				}
				if len(findings) == 0 {
					e.Errorf("Check of %s found nothing", test.ddl)
					return nil
				}
				for _, text := range findings[0].SQL {
					e.must(tx.Exec(text))
				}
				var mode string
				e.must(tx.Raw("SELECT @@sql_mode").Scan(&mode))
				equal(e, "sql_mode after the statements", mode, "")
				return nil
			})
			if err != nil {
				e.Fatalf("Connection = %v; want no error", err)
			}
			if left := e.check(e.db, test.model); slices.ContainsFunc(left, func(f schemacheck.Finding) bool { return f.Column == test.column }) {
				e.Errorf("Check after the repair of %s = %v; want nothing on %s", test.ddl, left, test.column)
			}
			table, _, _ := strings.Cut(test.ddl, " ")
			e.ddl("DROP TABLE " + table)
		}
	}},
	{"CheckGivesNoStatementForAFloat", func(e *env) {
		e.only(!e.sqlite(), "a REAL that is whole is converted as it is")
		type Gauge struct{ ID types.Snowflake }
		e.ddl("CREATE TABLE `PRE_gauges` (`id` " + map[bool]string{true: "double", false: "double precision"}[e.mysql()] + " PRIMARY KEY)")
		f := e.finds([]any{&Gauge{}}, "column is too narrow ID")[0]
		e.inWords(f, "rounds")
	}},
	{"CheckFindsTextKeysInColumnsOfOtherTypes", func(e *env) {
		list := []string{"uuid", "bytea", "json", "jsonb", "date", "boolean"}
		good := []string{"text", "varchar(20)", "varchar", "bpchar", "name", "bigint", "numeric(20)"}
		switch {
		case e.sqlite():
			e.Skip("SQLite stores text in a column of any type")
		case e.mysql():
			list = []string{"varbinary(20)", "binary(16)", "enum('1','2')", "date", "decimal(22,2)"}
			good = []string{"varchar(20)", "char(20)", "bigint", "decimal(20)"}
		}
		if e.mariadb() {
			list = append(list, "uuid")
		}
		type Ticket struct {
			ID    string `gorm:"primaryKey;snowflake"`
			Stubs []Stub
		}
		for _, typ := range list {
			e.ddl("CREATE TABLE `PRE_tickets` (`id` " + typ + " NOT NULL)")
			e.ddl("CREATE TABLE `PRE_stubs` (`id` bigint NOT NULL, `ticket_id` " + typ + ")")
			for _, f := range e.finds([]any{&Ticket{}}, "column is of the wrong type ID", "column is of the wrong type TicketID") {
				if !strings.HasPrefix(f.Want, "text") && !strings.HasPrefix(f.Want, "varchar") || len(f.SQL) != 0 || f.Fix == "" {
					e.Errorf("finding = %v, SQL %q; want text and words, since nothing converts the values", f, f.SQL)
				}
			}
			e.ddl("DROP TABLE `PRE_tickets`")
			e.ddl("DROP TABLE `PRE_stubs`")
		}
		for _, typ := range good {
			e.ddl("CREATE TABLE `PRE_tickets` (`id` " + typ + " NOT NULL)")
			e.ddl("CREATE TABLE `PRE_stubs` (`id` bigint NOT NULL, `ticket_id` " + typ + ")")
			e.finds([]any{&Ticket{}})
			e.ddl("DROP TABLE `PRE_tickets`")
			e.ddl("DROP TABLE `PRE_stubs`")
		}
	}},
	{"CheckFindsNumbersInColumnsThatNothingConverts", func(e *env) {
		list := []string{"uuid", "bytea", "json", "numeric(20,2)", "bigint[]"}
		switch {
		case e.sqlite():
			e.Skip("SQLite stores a number in a column of any type")
		case e.mysql(): // MODIFY would take the place in the list for the value
			list = []string{"binary(16)", "enum('7','9')", "decimal(22,2)"}
		}
		if e.mariadb() {
			list = append(list, "uuid")
		}
		type Badge struct{ ID types.Snowflake }
		for _, typ := range list {
			e.ddl("CREATE TABLE `PRE_badges` (`id` " + typ + " NOT NULL)")
			f := e.finds([]any{&Badge{}}, "column is of the wrong type ID")[0]
			e.inWords(f, "")
			e.ddl("DROP TABLE `PRE_badges`")
		}
	}},
	{"CheckFindsAParentThatIsMissingAfterItsChild", func(e *env) {
		type Leaf struct {
			ID     types.Snowflake
			StemID types.Snowflake
		}
		type Stem struct {
			ID    uint `gorm:"primaryKey;autoIncrement"`
			Other types.Snowflake
			Leafs []Leaf
		}
		e.migrate(&Leaf{})
		e.finds([]any{&Leaf{}, &Stem{}}, "table is missing")
		e.finds([]any{&Stem{}, &Leaf{}}, "table is missing")
	}},
	{"CheckReadsTheTypeBelowDomains", func(e *env) {
		e.only(e.postgres(), "only PostgreSQL has domains")
		for _, ddl := range []string{"key AS bigint", "order_key AS PRE_key NOT NULL", "paid_key AS PRE_order_key CHECK (VALUE > 0)",
			"short AS numeric(10)", "shorter AS PRE_short", "name AS varchar(30)", "title AS PRE_name"} {
			e.ddl("CREATE DOMAIN PRE_" + ddl)
		}
		type Deep struct {
			ID     types.Snowflake
			Number types.NullSnowflake
			Text   string `gorm:"snowflake"`
		}
		e.ddl("CREATE TABLE `PRE_deeps` (`id` PRE_paid_key PRIMARY KEY, `number` PRE_shorter, `text` PRE_title)")
		f := e.finds([]any{&Deep{}}, "column is too narrow Number")[0]
		equal(e, "Is", f.Is, "numeric(10,0)")
		e.repairs(&Deep{})
	}},
	{"CheckLeavesTheSignOfACountedKeyToItsColumn", func(e *env) {
		e.only(e.mysql(), "only MySQL has unsigned columns")
		type Leaf struct {
			ID      types.Snowflake
			RootID  types.Snowflake
			TrunkID types.Snowflake
		}
		type Root struct {
			ID    types.Snowflake `gorm:"primaryKey;autoIncrement;snowflake:-"`
			Leafs []Leaf
		}
		type Trunk struct {
			ID    types.Snowflake `gorm:"snowflake:-"`
			Leafs []Leaf
		}
		for _, sign := range []string{" unsigned", ""} {
			e.ddl("CREATE TABLE `PRE_roots` (`id` bigint" + sign + " NOT NULL AUTO_INCREMENT, PRIMARY KEY (`id`))")
			e.ddl("CREATE TABLE `PRE_trunks` (`id` bigint" + sign + " NOT NULL AUTO_INCREMENT, PRIMARY KEY (`id`))")
			e.ddl("CREATE TABLE `PRE_leafs` (`id` bigint NOT NULL PRIMARY KEY, `root_id` bigint" + sign + ", `trunk_id` bigint" + sign + "," +
				" FOREIGN KEY (`root_id`) REFERENCES `PRE_roots` (`id`), FOREIGN KEY (`trunk_id`) REFERENCES `PRE_trunks` (`id`))")
			e.finds([]any{&Leaf{}, &Root{}, &Trunk{}})
			for _, table := range []string{"leafs", "trunks", "roots"} {
				e.ddl("DROP TABLE `PRE_" + table + "`")
			}
		}
		e.ddl("CREATE TABLE `PRE_roots` (`id` bigint unsigned NOT NULL AUTO_INCREMENT, PRIMARY KEY (`id`))")
		e.ddl("CREATE TABLE `PRE_trunks` (`id` bigint NOT NULL AUTO_INCREMENT, PRIMARY KEY (`id`))")
		e.ddl("CREATE TABLE `PRE_leafs` (`id` bigint NOT NULL PRIMARY KEY, `root_id` bigint, `trunk_id` bigint unsigned)")
		const differ = "signed and unsigned columns do not match "
		models := []any{&Leaf{}, &Root{}, &Trunk{}}
		e.finds(models, differ+"RootID", differ+"TrunkID")
		e.repairs(models...)
		e.ddl("ALTER TABLE `PRE_leafs` ADD FOREIGN KEY (`root_id`) REFERENCES `PRE_roots` (`id`), ADD FOREIGN KEY (`trunk_id`) REFERENCES `PRE_trunks` (`id`)")
	}},
	{"CheckLeavesTheSignWhereNoForeignKeyIs", func(e *env) {
		type Remark struct {
			ID        types.Snowflake
			OwnerID   types.Snowflake
			OwnerType string `gorm:"size:40"`
		}
		type Counting struct {
			ID      uint     `gorm:"primaryKey;autoIncrement"`
			Remarks []Remark `gorm:"polymorphic:Owner"`
		}
		type Keyed struct {
			ID      types.Snowflake
			Remarks []Remark `gorm:"polymorphic:Owner"`
		}
		type Loose struct {
			ID         types.Snowflake
			CountingID int64
			Counting   *Counting `gorm:"constraint:-"`
			KeyedID    uint64
			Keyed      *Keyed `gorm:"constraint:-"`
			GhostID    types.Snowflake
			Ghost      *Keyed `gorm:"-:migration"`
		}
		for _, models := range [][]any{{&Counting{}, &Keyed{}, &Remark{}, &Loose{}}, {&Keyed{}, &Counting{}, &Remark{}, &Loose{}}} {
			e.migrate(models...)
			e.finds(models)
			if e.mysql() {
				e.ddl("ALTER TABLE PRE_looses MODIFY counting_id bigint, MODIFY keyed_id bigint unsigned, MODIFY ghost_id bigint unsigned")
				e.finds(models)
			}
			e.must(e.db.Create(&Keyed{Remarks: []Remark{{}}}))
			for _, table := range []string{"countings", "remarks", "keyeds", "looses"} {
				e.ddl("DROP TABLE `PRE_" + table + "`")
			}
		}
	}},
	{"CheckAddsAReferenceOfTheRightSignAndNoKey", func(e *env) {
		type Leaf struct {
			ID        types.Snowflake
			GormOldID types.Snowflake
			GormOld   *gormOld
			Public    string `gorm:"snowflake"`
		}
		sign := ""
		if e.mysql() {
			sign = " unsigned"
		}
		e.ddl("CREATE TABLE `PRE_gorm_olds` (`id` bigint" + sign + " NOT NULL PRIMARY KEY)")
		e.ddl("CREATE TABLE `PRE_leafs` (`n` int)")
		findings := e.finds([]any{&Leaf{}}, "column is missing ID", "column is missing GormOldID", "column is missing Public")
		for _, f := range []schemacheck.Finding{findings[0], findings[2]} { // the rows would have none, and nothing would keep them apart
			if len(f.SQL) != 0 {
				e.Errorf("SQL for %s, a missing key, = %q; want none", f.Field, f.SQL)
			}
		}
		e.repair(findings[1])
		e.finds([]any{&Leaf{}}, "column is missing ID", "column is missing Public")
	}},
	{"CheckFindsSequencesOfMariaDB", func(e *env) {
		e.only(e.mariadb(), "MariaDB's sequences")
		type Row struct{ ID types.Snowflake }
		e.ddl("CREATE SEQUENCE PRE_numbers")
		e.ddl("CREATE TABLE `PRE_rows` (`id` bigint NOT NULL DEFAULT nextval(`PRE_numbers`), PRIMARY KEY (`id`))")
		f := e.finds([]any{&Row{}}, "database counts as well ID")[0]
		if !strings.Contains(f.Is, "nextval") {
			e.Errorf("Is = %q; want the default", f.Is)
		}
		e.repairs(&Row{})
		e.countsNoMore("rows () VALUES ()")
	}},
	{"CheckGivesNoStatementForAView", func(e *env) {
		type Seen struct {
			ID    types.Snowflake
			Other types.NullSnowflake
		}
		e.ddl("CREATE TABLE `PRE_bases` (`id` varchar(40))")
		for _, view := range []string{"VIEW", "MATERIALIZED VIEW"} {
			if view != "VIEW" && !e.postgres() {
				continue
			}
			e.ddl("CREATE " + view + " `PRE_seens` AS SELECT `id` FROM `PRE_bases`")
			for _, f := range e.finds([]any{&Seen{}}, "column is of the wrong type ID", "column is missing Other") {
				e.inWords(f, "view")
			}
			e.ddl("DROP " + view + " `PRE_seens`")
		}
	}},
	{"CheckReadsPartitionedTables", func(e *env) {
		e.only(e.postgres(), "others change all partitions with the table")
		type Reading struct {
			ID     types.Snowflake
			UnitID types.Snowflake
		}
		e.ddl("CREATE TABLE `PRE_readings` (`id` serial PRIMARY KEY, `unit_id` int) PARTITION BY RANGE (`id`)")
		e.ddl("CREATE TABLE `PRE_readings_1` PARTITION OF `PRE_readings` FOR VALUES FROM (0) TO (1000)")
		const narrow, counts = "column is too narrow ", "database counts as well ID"
		findings := e.finds([]any{&Reading{}}, narrow+"ID", counts, narrow+"UnitID")
		e.inWords(findings[0], "partitioned")
		for _, f := range e.check(e.db, &partition{}) {
			if f.Problem == schemacheck.NarrowColumn {
				e.inWords(f, "parent")
			}
		}
		e.repair(findings[1])
		e.repair(findings[2])
		e.finds([]any{&Reading{}}, narrow+"ID")
		e.countsNoMore("readings (unit_id) VALUES (1)")
	}},
	{"CheckTellsTheTypesOfMySQLApart", func(e *env) {
		e.only(e.mysql(), "MySQL's types")
		type Typed struct {
			ID    types.Snowflake
			Value types.NullSnowflake
		}
		const narrow, wrong = "column is too narrow Value", "column is of the wrong type Value"
		for problem, list := range map[string][]string{
			"":     {"bigint", "decimal(19)", "numeric(20,0)"},
			narrow: {"tinyint", "smallint", "mediumint", "integer", "year", "bit(60)", "float", "double", "decimal(18)"},
			wrong:  {"decimal(22,2)", "char(20)", "varchar(20)", "tinytext", "text", "mediumtext", "longtext", "date", "blob"},
		} {
			for _, typ := range list {
				e.ddl("CREATE TABLE `PRE_typeds` (`id` bigint PRIMARY KEY, `value` " + typ + ")")
				if findings := e.check(e.db, &Typed{}); len(findings) != min(len(problem), 1) || len(findings) > 0 && string(findings[0].Problem)+" Value" != problem {
					e.Errorf("Check of a column of %s = %v; want %q", typ, findings, problem)
				}
				if strings.HasSuffix(typ, "text") {
					e.repairs(&Typed{})
				}
				e.ddl("DROP TABLE `PRE_typeds`")
			}
		}
	}},
	{"CheckFindsAKeyThatIsGenerated", func(e *env) {
		type Made struct {
			ID    types.Snowflake
			Copy  types.NullSnowflake `gorm:"->"`
			Short types.NullSnowflake `gorm:"->"`
			Late  types.NullSnowflake `gorm:"snowflake"`
		}
		short, late := "int", "VIRTUAL"
		if e.sqlite() {
			short = "real"
		}
		if e.postgres() { // older than 18
			late = "STORED"
		}
		e.ddl("CREATE TABLE `PRE_mades` (`n` int, `id` bigint GENERATED ALWAYS AS (`n` + 1) STORED," +
			" `copy` bigint GENERATED ALWAYS AS (`n` + 2) STORED, `short` " + short + " GENERATED ALWAYS AS (`n` + 3) STORED, `late` bigint GENERATED ALWAYS AS (`n` + 4) " + late + ")")
		for _, f := range e.finds([]any{&Made{}}, "column is of the wrong type ID", "column is too narrow Short", "column is of the wrong type Late") {
			e.inWords(f, "")
		}
	}},
	{"CheckTellsNamesApartByCase", func(e *env) {
		type Shelf struct {
			ID     types.Snowflake `gorm:"column:Id"`
			BookID types.Snowflake `gorm:"column:Book Id"`
		}
		e.ddl("CREATE TABLE `PRE_shelves` (`Id` varchar(20) PRIMARY KEY, `Book Id` varchar(20))")
		findings := e.finds([]any{&Shelf{}}, "column is of the wrong type ID", "column is of the wrong type BookID")
		equal(e, "Column", findings[1].Column, "Book Id")
		e.repairs(&Shelf{})
		type Mixed struct{ ID types.Snowflake }
		e.ddl("CREATE TABLE `PRE_Mixeds` (`ID` " + map[bool]string{true: "integer", false: "bigint"}[e.sqlite()] + " PRIMARY KEY)")
		switch {
		case e.sqlite():
			e.finds([]any{&Mixed{}})
		default:
			e.finds([]any{&Mixed{}}, "table is missing")
		}
	}},
	{"CheckSaysWhatItCannotDo", func(e *env) {
		if _, err := schemacheck.Check(e.Context(), nil, &Item{}); !errors.Is(err, gorm.ErrInvalidDB) {
			e.Errorf("Check(nil) = %v; want gorm.ErrInvalidDB", err)
		}
		if _, err := schemacheck.Check(e.Context(), &gorm.DB{}, &Item{}); !errors.Is(err, gorm.ErrInvalidDB) {
			e.Errorf("Check(&DB{}) = %v; want gorm.ErrInvalidDB", err)
		}
		for _, db := range []*gorm.DB{nil, {}} {
			if err := gormplugin.UseRowIDs(db, &Item{}); !errors.Is(err, gorm.ErrInvalidDB) {
				e.Errorf("UseRowIDs(%v) = %v; want gorm.ErrInvalidDB", db, err)
			}
		}
		if _, err := schemacheck.Check(e.Context(), e.db.Session(&gorm.Session{DryRun: true}), &Item{}); !errors.Is(err, gorm.ErrDryRunModeUnsupported) {
			e.Errorf("Check with DryRun = %v; want gorm.ErrDryRunModeUnsupported", err)
		}
		if _, err := schemacheck.Check(e.Context(), e.db, "item"); err == nil {
			e.Error(`Check("item") = nil; want an error`)
		}
		ctx, cancel := context.WithCancel(e.Context())
		cancel()
		if _, err := schemacheck.Check(ctx, e.db, &Item{}); !errors.Is(err, context.Canceled) {
			e.Errorf("Check with a context that has ended = %v; want context.Canceled", err)
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
type Part struct {
	ID    types.Snowflake
	BoxID types.Snowflake
}

// A Stub refers to a key of text.
type Stub struct {
	ID       types.Snowflake
	TicketID string `gorm:"size:20"`
}

// partition is a model of one partition.
type partition struct {
	ID     types.Snowflake
	UnitID types.Snowflake
}

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
