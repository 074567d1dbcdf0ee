package servers

import (
	"database/sql"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	"gorm.io/plugin/dbresolver"

	"github.com/snowkey/snowkey/gormplugin/schemacheck"
	"github.com/snowkey/snowkey/internal/proof/cases/gormcases"
	"github.com/snowkey/snowkey/types"
)

// checkTargets are the databases whose catalogs differ.
var checkTargets = append(gormTargets[:3:3], mySQLTarget)

func TestGormCheckCases(t *testing.T) {
	t.Parallel()
	for _, target := range checkTargets {
		t.Run(target.name, func(t *testing.T) {
			t.Parallel()
			gormcases.RunChecks(t, target.cases(t))
		})
	}
}

// mendedBy fails the test unless the statements of a finding leave nothing to find.
func mendedBy(t *testing.T, db *gorm.DB, f schemacheck.Finding, models ...any) {
	t.Helper()
	if _, one := db.Statement.ConnPool.(*sql.Conn); !one {
		must(t, db.Connection(func(tx *gorm.DB) error {
			mendedBy(t, tx.Session(&gorm.Session{}), f, models...)
			return nil
		}))
		return
	}
	for _, text := range f.SQL {
		must(t, db.Exec(text).Error)
	}
	if findings, err := schemacheck.Check(t.Context(), db, models...); err != nil || len(findings) != 0 {
		t.Errorf("Check after the repair = %v, %v; want nothing", findings, err)
	}
}

// secondSpace makes a schema, or a database, beside that of the test.
func secondSpace(t *testing.T, db *gorm.DB) (name string) {
	t.Helper()
	name = spaceName()
	create, drop := "CREATE DATABASE "+name, "DROP DATABASE "+name
	switch db.Name() {
	case "sqlite":
		pool, err := db.DB()
		must(t, err)
		pool.SetMaxOpenConns(1) // a schema is of one connection
		create, drop = "ATTACH ':memory:' AS "+name, "DETACH "+name
	case "postgres":
		create, drop = "CREATE SCHEMA "+name, "DROP SCHEMA "+name+" CASCADE"
	}
	must(t, db.Exec(create).Error)
	t.Cleanup(func() { must(t, db.Exec(drop).Error) })
	return name
}

// shopSpace is the schema or database of [shopOrder].
var shopSpace string

// A shopOrder is of a table in another schema, whose names have to be quoted. A plainOrder is of the
// table of one name in the default schema. A shopLine refers to an order of the other schema.
type (
	shopOrder struct {
		ID types.Snowflake `gorm:"column:Id"`
	}
	plainOrder struct {
		ID types.Snowflake `gorm:"column:Id"`
	}
	shopLine struct {
		ID          types.Snowflake
		ShopOrderID types.NullSnowflake
		ShopOrder   *shopOrder
	}
)

func (shopOrder) TableName() string { return shopSpace + ".Odd Orders" }

func (plainOrder) TableName() string { return "Odd Orders" }

func (shopLine) TableName() string { return "lines" }

func TestGormCheckFindsAndMendsTablesOfOtherSchemas(t *testing.T) {
	for _, target := range checkTargets {
		t.Run(target.name, func(t *testing.T) {
			db := withPlugin(t, opener(t, target.dialector(t))(&gorm.Config{Logger: logger.Discard}))
			shopSpace = secondSpace(t, db)
			models, tables := []any{&plainOrder{}, &shopOrder{}, &shopLine{}}, []string{
				`CREATE TABLE "Odd Orders" ("Id" bigint PRIMARY KEY, number varchar(40))`,
				`CREATE TABLE ` + shopSpace + `."Odd Orders" ("Id" varchar(40) NOT NULL PRIMARY KEY, number varchar(40))`,
				`CREATE TABLE "lines" (id bigint NOT NULL PRIMARY KEY, shop_order_id varchar(40), CONSTRAINT fk_shop FOREIGN KEY (shop_order_id) REFERENCES ` + shopSpace + `."Odd Orders" ("Id") ON DELETE SET NULL)`,
				`INSERT INTO ` + shopSpace + `."Odd Orders" VALUES ('7', 'A')`, `INSERT INTO "lines" VALUES (1, '7')`,
			}
			if db.Name() == "sqlite" { // which has no such foreign keys
				models, tables = models[:2], []string{
					strings.Replace(tables[0], "bigint", "integer", 1), tables[1],
					"CREATE UNIQUE INDEX " + shopSpace + `.shop_numbers ON "Odd Orders" (number)`,
					"CREATE TRIGGER " + shopSpace + `.shop_trigger AFTER INSERT ON "Odd Orders" BEGIN SELECT 1; END`,
				}
			}
			for _, text := range tables {
				if db.Name() == "mysql" {
					text = strings.ReplaceAll(text, `"`, "`")
				}
				must(t, db.Exec(text).Error)
			}
			t.Cleanup(func() { must(t, db.Migrator().DropTable("lines")) })
			findings, err := schemacheck.Check(t.Context(), db, models...)
			if err != nil || len(findings) != len(models)-1 || findings[0].Problem != schemacheck.WrongType || findings[0].Table != shopSpace+".Odd Orders" {
				t.Fatalf("Check = %v, %v; want WrongType of %s.Odd Orders, and of the line that refers to it", findings, err, shopSpace)
			}
			if db.Name() == "sqlite" { // words
				for _, want := range []string{"`" + shopSpace + "`.`Odd Orders_new`", "RENAME TO `Odd Orders`", "index `shop_numbers`, trigger `shop_trigger`"} {
					if !strings.Contains(findings[0].Fix, want) {
						t.Errorf("Fix = %q; want %q in it", findings[0].Fix, want)
					}
				}
				return
			}
			mendedBy(t, db, findings[0], models...) // the line as well
			must(t, db.Delete(&shopOrder{ID: 7}).Error)
			var line shopLine
			if err := db.Take(&line).Error; err != nil || line.ShopOrderID.Valid {
				t.Errorf("line of a deleted order = %+v, %v; want NULL, by ON DELETE", line, err)
			}
		})
	}
}

func TestGormCheckGoesByTheSearchPath(t *testing.T) {
	db := withPlugin(t, opener(t, gormTargets[1].dialector(t))(&gorm.Config{Logger: logger.Discard}))
	first, second := "First "+spaceName(), spaceName()
	for _, space := range []string{first, second} {
		must(t, db.Exec(`CREATE SCHEMA "`+space+`"`).Error)
		t.Cleanup(func() { must(t, db.Exec(`DROP SCHEMA "`+space+`" CASCADE`).Error) })
	}
	must(t, db.Exec(`CREATE TABLE `+second+`."Odd Orders" ("Id" serial PRIMARY KEY)`).Error)
	must(t, db.Connection(func(tx *gorm.DB) error {
		tx = tx.Session(&gorm.Session{})
		must(t, tx.Exec(`SET search_path = "`+first+`", `+second).Error)
		findings, err := schemacheck.Check(t.Context(), tx, &plainOrder{})
		if err != nil || len(findings) != 2 || findings[0].Problem != schemacheck.NarrowColumn || findings[1].Problem != schemacheck.Counted {
			t.Errorf("Check = %v, %v; want what is wrong with the table of the second schema", findings, err)
		}
		must(t, tx.Exec(`CREATE TABLE "`+first+`"."Odd Orders" ("Id" bigserial PRIMARY KEY)`).Error)
		findings, err = schemacheck.Check(t.Context(), tx, &plainOrder{})
		if err != nil || len(findings) != 1 || findings[0].Problem != schemacheck.Counted {
			t.Fatalf("Check = %v, %v; want what is wrong with the table of the first schema", findings, err)
		}
		mendedBy(t, tx, findings[0], &plainOrder{})
		return nil
	}))
}

// A replica without tables stands for one that lags.
func TestGormCheckAsksTheSourceNotTheReplica(t *testing.T) {
	source, replica := gormTargets[0].dialector(t), gormTargets[0].dialector(t)
	db := withPlugin(t, opener(t, source)(&gorm.Config{Logger: logger.Discard}))
	resolver := dbresolver.Register(dbresolver.Config{Replicas: []gorm.Dialector{replica()}})
	must(t, db.Use(resolver))
	if err := db.Take(&box{}).Error; err == nil || !strings.Contains(err.Error(), "no such table") {
		t.Fatalf("Take = %v; want the replica's error, that it has no table", err)
	}
	findings, err := schemacheck.Check(t.Context(), db, &box{}, &thing{})
	must(t, err)
	for _, f := range findings {
		if f.Problem != schemacheck.NoRowID && f.Problem != schemacheck.PointerReference {
			t.Errorf("Check found %v; want nothing of the tables but NoRowID", f)
		}
	}
	closeReplicas(t, db, resolver)
}

// MariaDB's catalog is not a table, as MySQL's is since version 8. For a look-up without a
// name, MariaDB reads all tables of the server. It waits for those that somebody is
// changing.
func TestGormCheckLooksAtNoOtherTablesOnMariaDB(t *testing.T) {
	log := &statementLog{Interface: logger.Discard}
	db := withPlugin(t, opener(t, gormTargets[2].dialector(t))(&gorm.Config{Logger: log}))
	log.texts = nil
	_, err := schemacheck.Check(t.Context(), db, &box{})
	must(t, err)
	var asked []string
	for _, text := range log.texts {
		if strings.Contains(text, "information_schema") {
			asked = append(asked, text)
		}
	}
	if len(asked) == 0 {
		t.Fatalf("Check sent %q; want a look at information_schema", log.texts)
	}
	for _, text := range asked {
		var plan []map[string]any
		must(t, db.Raw("EXPLAIN "+text).Scan(&plan).Error)
		for _, step := range plan {
			if extra, _ := step["Extra"].(string); strings.Contains(extra, "Scanned") && !strings.Contains(extra, "Scanned 0 databases") {
				t.Errorf("Check scans all tables: %v, for %s", step, text)
			}
		}
	}
}
