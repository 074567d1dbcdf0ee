package gormcases

import (
	"fmt"
	"strings"

	"gorm.io/gorm/clause"

	"github.com/snowkey/snowkey/gormplugin"
)

// sceneCases are upserts whose stored rows the oracle knows.
var sceneCases = []testCase{
	{"EachRowGetsTheKeyOfTheStoredRow", func(e *env) {
		for _, counted := range []bool{false, true} {
			s := e.scene("", "(s0)")
			if s.many = numbered("s0"); counted { // by GORM too, which reads the key by RETURNING
				s = e.sceneOf(s.countedKey()+" PRIMARY KEY", "", "", "(s0)")
				s.models, s.structs = oracleModels[3:4], true
			}
			s.store(row{"s0": "old0"}, row{"s0": "old1"}, row{"s0": "old2"})
			never := doUpdate("note", "s0")
			never.Where.Exprs = []clause.Expression{clause.Expr{SQL: "1 = 0"}}
			filter := clause.Neq{Column: clause.Column{Table: s.name, Name: "note"}, Value: "stored 2"}
			for _, kind := range append(e.upserts("note", "s0", filter), upsertKind{"DO UPDATE never", never}) {
				if kind.name == "UpdateAll" && !e.mysql() {
					continue // the key is its target
				}
				s.upsert(kind.clause, row{"s0": "new1"}, row{"s0": "old1"}, row{"s0": "new2"}, row{"s0": "old2"}, row{"s0": "OLD0"})
				s.upsert(kind.clause, row{"s0": "old1"})
			}
		}
	}},
	{"RowWhoseTargetTheUpsertChangesGetsNoOtherRowsKey", func(e *env) {
		e.only(e.postgres(), "SQLite compares the key first, and MySQL goes by all keys")
		s := e.scene("", "(s0)")
		s.maps = true // into a struct the database returns the key
		s.store(row{"s0": "old0"}, row{"s0": "old1"})
		on := clause.OnConflict{Columns: columns([]string{"s0"}), DoUpdates: clause.Assignments(map[string]any{"s0": "new1"})}
		s.upsert(on, row{"id": 1, "s0": "old1", why: anyReason})
	}},
	{"IgnoredRowDoesNotKeepAKeyThatAnotherBrings", func(e *env) {
		s := e.scene("", "(s0)")
		s.store(row{"s0": "a"})
		s.upsert(doNothing(), row{"id": 77, "s0": "a", why: anyReason}, row{"id": 77, "s0": "b"}, row{"id": 78, "s0": "c"}, row{"id": 78, "s0": "d"})
		s.uniqueLower("oracle_rows", "s0")
		s.upsert(doNothing(), row{"id": 79, "s0": "A", why: anyReason}, row{"id": 79, "s0": "e", why: anyReason}, row{"id": 80, "s0": "f"})
	}},

	{"RowsLikeEachOtherInAPrefixAreFound", func(e *env) {
		e.only(e.mysql(), "only MySQL has indexes on the beginning of a text")
		s := e.scene("s0 varchar(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci", "(s0(5))", "(s1)")
		s.store(row{"s0": "a%c|_more", "s1": "1"}, row{"s0": "axc|_more", "s1": "2"}, row{"s0": "b", "s1": "3"}, row{"s0": "bb", "s1": "4"})
		s.upsert(doNothing(), row{"s0": "a%c|_less"}, row{"s0": "A%C|_"}, row{"s0": "axc|_"}, row{"s0": "b"}, row{"s0": "bb"})
		s.upsert(doNothing(), row{"s0": "a%c|_less", "s1": "2", why: gormplugin.ReasonTwoRows})
	}},
	{"RowsAreFoundByTwoColumns", func(e *env) {
		s := e.scene("", "(s0, n0)")
		s.many = func(n int) row { return row{"s0": fmt.Sprintf("%d \"a\"", n%5), "n0": n / 5} }
		s.store(row{"s0": "A", "n0": 1}, row{"s0": "A", "n0": 2})
		for _, on := range []clause.OnConflict{doNothing(), doNothing("s0", "n0")} {
			s.upsert(on, row{"s0": "A", "n0": 2}, row{"s0": "B", "n0": 2}, row{"s0": "A", "n0": 1}, row{"s0": "A"}, row{"n0": 1}, row{"s0": "A", "n0": 1001})
		}
	}},
	{"TextsOfAllSignsAreFoundAmongMany", func(e *env) {
		texts := []string{`"`, `'`, `\`, `\\`, `\"`, "a\tb", "a\nb", "a\r\nb", "\x01", "\x1f", "\x7f", "<&>", "[", "]", "{}", ",", `","`, "null", "?", "$1", "%_", "\u2028", "漢字", "🙂", "größer"}
		s := e.scene("", "(s0)")
		s.many = func(n int) row { return row{"s0": fmt.Sprint(n, texts[n%len(texts)])} } // MySQL ignores some signs
		s.upsert(doNothing(), row{"s0": "new"})
	}},
	{"NumbersInColumnsOfTextAreFoundAmongMany", func(e *env) {
		e.only(!e.postgres(), "the driver refuses them")
		s := e.scene("n0 varchar(40)", "(s0)", "(n0)")
		s.many = numbered("n0")
		s.unlisted = e.mysql()
		s.store(row{"s0": "a", "n0": 100}, row{"s0": "b", "n0": 101})
		s.upsert(doNothing(), row{"s0": "x", "n0": 100}, row{"s0": "a", "n0": 101, why: gormplugin.ReasonTwoRows})
	}},
	{"ArraysOfTextAreFoundAmongMany", func(e *env) {
		e.only(e.postgres(), "there are no arrays")
		s := e.scene("s0 varchar(8)[]", "(s0)")
		s.many, s.unlisted = func(n int) row { return row{"s0": fmt.Sprintf("{a,%d}", n)} }, true
		s.store(row{"s0": "{a,b}"})
		s.upsert(doNothing(), row{"s0": "{a,b}"}, row{"s0": "{b,a}"})
	}},
	{"IndexOfAnotherCollationThanItsColumnIsUsed", func(e *env) {
		e.only(!e.mysql(), "its indexes have the collations of their columns")
		s := e.scene("", map[bool]string{true: "(s0 COLLATE NOCASE)", false: `(s0 COLLATE "C")`}[e.sqlite()])
		s.many = numbered("s0")
		s.store(row{"s0": "Ann"})
		s.upsert(doNothing(), row{"s0": "Ann"}, row{"s0": "b"})
		s.upsert(doNothing(), row{"s0": "ANN"})
	}},

	{"NullsThatAreNotDistinctAreEqual", func(e *env) {
		s := e.withoutDistinctNulls("bigint NOT NULL PRIMARY KEY", "", "(s0, n0)")
		s.store(row{}, row{"s0": "a"}, row{"n0": 1}, row{"s0": "a", "n0": 1})
		for _, on := range []clause.OnConflict{doNothing(), doNothing("s0", "n0"), doUpdate("note", "s0", "n0")} {
			s.upsert(on, row{"s0": "a", "n0": 1}, row{"n0": 1}, row{"s0": "a"}, row{})
			s.upsert(on, row{})
		}
	}},
	{"NamedConstraintIsTheTarget", func(e *env) {
		e.only(e.postgres(), "only PostgreSQL has ON CONFLICT ON CONSTRAINT")
		s := e.scene("", "(s0)", "(s1)")
		s.ddl("ALTER TABLE PRE_oracle_rows ADD CONSTRAINT PRE_named UNIQUE USING INDEX PRE_oracle_0")
		s.store(row{"s0": "A", "s1": "1"}, row{"id": 43, "s0": "B", "s1": "4"})
		for _, names := range [][]string{nil, {"id"}} { // GORM leaves the columns out
			on := clause.OnConflict{OnConstraint: e.prefix + "named", Columns: columns(names), DoNothing: true}
			s.upsert(on, row{"s0": "A", "s1": "2"}, row{"id": 42, "s0": "A", "s1": "3"}, row{"id": 43, "s0": "A", "s1": "5"}, row{"s0": "C"})
		}
	}},
	{"AUniqueColumnThatDiffersFromAFieldByCaseIsNotTheField", func(e *env) {
		e.only(e.postgres(), "case makes no other column")
		s := e.scene("", "(s1)")
		s.ddl("ALTER TABLE PRE_oracle_rows ADD COLUMN `S0` bigint")
		s.ddl("CREATE UNIQUE INDEX PRE_cased ON PRE_oracle_rows (`S0`)")
		s.store(row{"s1": "a", "S0": 0}, row{"s1": "0", "S0": 1}, row{"s1": "1", "S0": 2})
		s.upsert(doNothing(), row{"s1": "a"}, row{"s1": "b"})
	}},

	{"TargetWithAnExpressionIsNotTakenForItsColumns", func(e *env) {
		e.only(!e.mysql(), "it ignores the target")
		s := e.scene("", "(s0, lower(s1))")
		s.store(row{"s0": "A", "s1": "x"})
		on := doNothing("s0")
		on.Columns = append(on.Columns, clause.Column{Name: "lower(s1)", Raw: true})
		s.upsert(on, row{"id": 42, "s0": "A", "s1": "y"}, row{"s0": "A", "s1": "X", why: gormplugin.ReasonExpression})
	}},
	{"RowThatAnExpressionMayHaveMetIsUnresolved", func(e *env) {
		s := e.scene("", "(s1)")
		s.uniqueLower("oracle_rows", "s0")
		s.store(row{"s0": "a@x", "s1": "A"}, row{"s0": "b@x", "s1": "B"}, row{"id": 43, "s0": "c@x", "s1": "C"})
		lower := clause.OnConflict{Columns: []clause.Column{{Name: "lower(s0)", Raw: true}}, DoNothing: true}
		for _, on := range []clause.OnConflict{doNothing(), lower} {
			s.upsert(on, row{"s0": "A@x", "s1": "B", why: gormplugin.ReasonExpression})
			s.upsert(on, row{"id": 5, "s0": "A@x", why: gormplugin.ReasonExpression}, row{"id": 6, "s0": "new"})
			// What was inserted is known by its key, also by one of the caller.
			s.upsert(on, row{"s0": "A@x", "s1": "D", why: gormplugin.ReasonExpression}, row{"s0": "e@x", "s1": "E"}, row{"id": 42, "s0": "f@x", "s1": "F"})
		}
		if !e.mysql() { // which does not go by the target
			s.upsert(lower, row{"id": 43, "s0": "A@x", "s1": "H", why: gormplugin.ReasonExpression}) // the key of one row, and another one
			s.upsert(doNothing("s1"), row{"s0": "h@x", "s1": "B"})
		}
	}},
	{"UnresolvedRowNamesWhatIsUnknown", func(e *env) {
		e.only(!e.sqlite() && !e.tidb(), "SQLite has neither, and TiDB makes no such index")
		if e.mysql() {
			s := e.scene("s0 set('x','y')", "(s0)")
			s.store(row{"s0": "x"})
			s.upsert(doNothing(), row{"s0": "x", why: gormplugin.ReasonType})
			if u := s.last; u == nil || u.Column != "s0" || u.Type != "set('x','y')" || !strings.Contains(u.Error(), `column "s0"`) || !strings.Contains(u.Error(), u.Type) {
				e.Errorf("error = %v; want the column and its type", u)
			}
			return
		}
		s := e.scene("", "(s1)")
		s.ddl("ALTER TABLE PRE_oracle_rows ADD CONSTRAINT PRE_excludes EXCLUDE USING btree (s0 WITH =)")
		s.store(row{"s0": "a", "s1": "1"})
		s.upsert(doNothing(), row{"s0": "a", "s1": "3", why: gormplugin.ReasonExpression})
		if u := s.last; u == nil || u.Key == "" || !strings.HasSuffix(u.Model, "oracleRow") && !strings.Contains(u.Model, "oracleRow") {
			e.Errorf("error = %v; want it to name the constraint and the model", u)
		}
	}},

	{"RowThatAPartialUniqueKeyDoesNotCoverMeetsNothingThere", func(e *env) {
		e.only(!e.mysql(), "it has no indexes that are partial")
		const open = "n0 = 0 AND s2 IS NULL"
		s, target := e.scene("n0 int DEFAULT 0", "(s0) WHERE "+open, "(s1)"), where(doNothing("s0"), open)
		s.store(row{"s0": "x", "s1": "live", "n0": 0}, row{"s0": "y", "s1": "other", "n0": 0}, row{"s0": "x", "s1": "shut", "n0": 1})
		// A key of the caller is no proof.
		s.upsert(target, row{"id": 77, "s0": "x", "s1": "closed", "n0": 1}, row{"id": 78, "s0": "x", "s1": "gone", "n0": 0, "s2": "t"}, row{"id": 79, "s0": "x", "s1": "again", "n0": 0})
		s.upsert(doNothing(), row{"s0": "x", "s1": "other", "n0": 1})
		s.upsert(doNothing(), row{"s0": "x", "n0": 0})
		s.maps = true
		s.upsert(target, row{"s0": "x", "s1": "map"}) // the database says that it is open
		s = e.scene("", "(s0) WHERE score = 7")       // which the database fills
		s.models, s.structs = oracleModels[2:3], true
		s.store(row{"s0": "x"})
		s.upsert(doNothing(), row{"s0": "x"})
		s.upsert(doNothing(), row{"s0": "x", "score": 2})
	}},
	{"RowsMetInOneOfSeveralPartialUniqueKeysAreFound", func(e *env) {
		e.only(!e.mysql(), "it has no indexes that are partial")
		s := e.scene("", "(s0) WHERE n0 IS NULL", "(s0) WHERE s1 = 'x'")
		s.many, s.unlisted = func(n int) row { return row{"s0": fmt.Sprint(n), "s1": "y"} }, true
		s.store(row{"s0": "e", "s1": "y"}, row{"s0": "e", "s1": "x", "n0": 7}, row{"s0": "f", "s1": "y"})
		s.upsert(where(doNothing("s0"), "n0 IS NULL"), row{"s0": "e", "s1": "x"}, row{"s0": "f", "s1": "x"})
		s.upsert(where(doNothing("s0"), "n0 IS NULL"), row{"s0": "e", "s1": "x"})
		if e.postgres() { // where the condition of a target may be narrower than that of an index
			s.upsert(where(doNothing("s0"), "n0 IS NULL AND s1 = 'x'"), row{"id": 3, "s0": "e", "s1": "y"}, row{"s0": "new", "s1": "x"})
		}
	}},
	{"ARowWhoseConditionTheDatabaseFillsHasNoKeyOfAnother", func(e *env) {
		e.only(!e.mysql(), "it has no indexes that are partial")
		const covered = "s1 = 'x' OR n0 = 1"
		s := e.scene("s1 varchar(40) DEFAULT 'y'", "(s0) WHERE "+covered)
		s.maps, s.unlisted, s.many = true, true, func(n int) row { return row{"s0": fmt.Sprint(n), "n0": 1} }
		s.store(row{"s0": "e0", "s1": "x", "n0": 0}, row{"s0": "e1", "s1": "x", "n0": 0})
		s.upsert(where(doNothing("s0"), covered), row{"id": 5, "s0": "e0", "n0": 0, why: anyReason}, row{"s0": "e1", "n0": 1})
	}},

	{"KeyOfARowThatMetAnotherByADefaultIsNotThatOfAThird", func(e *env) {
		e.only(!e.mysql(), "its upserts have no target")
		s := e.scene("s1 varchar(40) DEFAULT 'x'", "(s0, s1)")
		s.maps = true
		s.store(row{"s0": "a"}, row{"id": 5, "s0": "b"})
		s.upsert(doNothing("s0", "s1"), row{"id": 5, "s0": "a", why: anyReason})
	}},
	{"RowThatATriggerDropsHasNoKey", func(e *env) {
		e.only(e.sqlite(), "written for SQLite")
		s := e.scene("", "(s0)")
		s.ddl("CREATE TRIGGER PRE_drops BEFORE INSERT ON PRE_oracle_rows WHEN NEW.s0 = 'drop' BEGIN SELECT RAISE(IGNORE); END")
		s.store(row{"s0": "old"})
		s.upsert(doUpdate("note", "s0"), row{"s0": "drop", why: anyReason}, row{"s0": "new"}, row{"s0": "old"})
	}},
	{"RowsOfTablesThatInheritAreNotMet", func(e *env) {
		e.only(e.postgres(), "only PostgreSQL has tables that inherit")
		s := e.scene("", "(s0)", "(s1)")
		s.store(row{"s0": "a", "s1": "1"}, row{"s0": "d"})
		s.ddl("CREATE TABLE PRE_heir () INHERITS (PRE_oracle_rows)")
		s.ddl("INSERT INTO PRE_heir (id, s0, s1) VALUES (77, 'b', '1'), (78, 'c', '2')")
		s.ddl("INSERT INTO PRE_heir (id, s0) SELECT 100 + g, 'many ' || g FROM generate_series(0, 29) g")
		s.many = numbered("s0")
		s.upsert(doNothing(), row{"s0": "c", "s1": "1"}, row{"id": 78, "s0": "a"}, row{"s0": "e"}, row{"s0": "b", "s1": "1"})
		// A trigger that stores rows elsewhere leaves them out of RowsAffected.
		s.ddl("CREATE FUNCTION PRE_move() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO PRE_heir VALUES (NEW.*); RETURN NULL; END'")
		s.ddl("CREATE TRIGGER moves BEFORE INSERT ON PRE_oracle_rows FOR EACH ROW WHEN (NEW.s0 LIKE 'm_') EXECUTE FUNCTION PRE_move()")
		s.upsert(doNothing(), row{"s0": "m1"}, row{"s0": "d"}, row{"id": 79, "s0": "e"})
	}},
	{"RowsOfPartitionsAreMet", func(e *env) {
		e.only(e.postgres(), "elsewhere partitions are no tables")
		s := e.sceneOf("bigint, PRIMARY KEY (id, n0)", "", " PARTITION BY LIST (n0)", "(n0, s0)")
		s.ddl("CREATE TABLE PRE_part PARTITION OF PRE_oracle_rows DEFAULT")
		s.store(row{"s0": "a", "n0": 1})
		s.upsert(doNothing(), row{"s0": "a", "n0": 1}, row{"s0": "a", "n0": 2})
	}},
	{"AColumnThatATriggerOfAPartitionFillsIsNotNULL", func(e *env) {
		s := e.withoutDistinctNulls("bigint", " PARTITION BY LIST (n0)", "(n0, s0, s1)")
		s.ddl("CREATE TABLE PRE_part PARTITION OF PRE_oracle_rows FOR VALUES IN (1)")
		s.store(row{"n0": 1, "s0": "a", "s1": "auto"}, row{"n0": 1, "s0": "a"})
		s.ddl("CREATE FUNCTION PRE_fill() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.s1 := COALESCE(NEW.s1, 'auto'); RETURN NEW; END $$")
		s.ddl("CREATE TRIGGER fill BEFORE INSERT ON PRE_part FOR EACH ROW EXECUTE FUNCTION PRE_fill()")
		s.maps = true
		s.upsert(doNothing("n0", "s0", "s1"), row{"n0": 1, "s0": "a", why: anyReason})
	}},
}

// withoutDistinctNulls makes a scene whose unique key takes NULL for equal to NULL.
func (e *env) withoutDistinctNulls(key, options, unique string) *scene {
	e.Helper()
	e.only(e.postgres(), "only PostgreSQL has such indexes")
	s := e.sceneOf(key, "", options)
	if err := e.db.Exec("CREATE UNIQUE INDEX " + e.prefix + "nulls ON " + s.name + " " + unique + " NULLS NOT DISTINCT").Error; err != nil {
		e.Skip(err) // before PostgreSQL 15
	}
	return s
}
