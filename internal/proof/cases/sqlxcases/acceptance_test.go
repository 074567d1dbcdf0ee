package sqlxcases

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// These are the ways in which sqlx, the drivers and the servers lose, change or
// refuse the rows of a program. Beside each are the cases and tests that show what
// this package does instead. A name after "func " is a test outside of the shared
// cases.
var acceptance = map[string][]string{
	"1 rows after the first are dropped without an error": {
		"func TestRowsAffectedMustBeTheRowsGiven", "func TestRowsThatATriggerSuppressesAreAnErrorOnPostgres", "RandomRowsAreStoredTogetherAsOneByOne",
	},
	"2 a parenthesis in a literal ends the values":            {"func TestTextAndNamesAreNotParsed"},
	"3 a colon in a literal is a name":                        {"func TestTextAndNamesAreNotParsed"},
	"4 a question mark is a placeholder":                      {"RandomRowsAreStoredTogetherAsOneByOne"},
	"5 the update of an upsert is not expanded":               {"RandomUpsertsGiveEachRowTheKeyOfTheStoredOne"},
	"6 pointers, nil elements and nil embedded structs panic": {"func TestArgumentsOfAnotherFormAreAnError", "func TestRowsThatCannotBeWrittenAreARowErrorAndStayAsTheyAre", "CallThatFailsLeavesNothingAndTheTransactionUsable", "RandomRowsAreStoredTogetherAsOneByOne"},
	"7 the mapper of the handle is not used":                  {"func TestMapperIsThatOfTheHandle"},
	"8 columns are invented from structs":                     {"func TestColumnsAreThoseOfSqlx", "func TestTypesThatCannotBeWrittenAreAPlanError"},
	"9 fields are dropped for their tags or for their twins":  {"func TestTypesThatCannotBeWrittenAreAPlanError"},
	"10 bytes become a parameter each":                        {"RandomRowsAreStoredTogetherAsOneByOne"},
	"11 a driver name is taken for another database":          {"func TestUnknownDriverNamesAreAnErrorWithTheWayOut", "func TestKnownDriverNamesHaveTheirDialect"},
	"12 a connection is no handle":                            {"func TestConnectionBeginsItsTransactionOnItself"},
	"13 the first chunk stays when the second fails":          {"CallThatFailsLeavesNothingAndTheTransactionUsable"},
	"14 each row count is a prepared statement in the server": {"func TestManyRowCountsLeaveFewPreparedStatementsOnPgx", "func TestPostgresHasFewStatementTexts"},
	"15 unnest pads, truncates and flattens":                  {"func TestValuesAreStoredAlikeByAllWaysToPostgres"},
	"16 a connection taken inside of a transaction deadlocks": {"func TestPanicWhileCopyingIsAnError", "func TestPoolWithOneConnectionSuffices", "func TestCopyGoesThroughADriverAroundPgx"},
	"17 a source of COPY that panics ends the process":        {"func TestPanicWhileCopyingIsAnError", "func TestErrorOfTheRowsIsReportedAndNotThatOfTheServer", "CallThatFailsLeavesNothingAndTheTransactionUsable"},
	"18 a load swallows duplicates and truncates":             {"func TestNothingIsSwallowedOnMariaDBAndMySQL"},
	"19 numbers of the database replace keys, and high bits":  {"func TestZeroKeyNeverReachesAColumnThatCounts", "CallThatFailsLeavesNothingAndTheTransactionUsable"},
}

func TestEveryTrapHasItsCase(t *testing.T) {
	list, err := os.ReadFile("rows.go")
	must(t, err)
	var tests strings.Builder
	for _, dir := range []string{"sqlxhelper", "sqlxhelper/pgxcopy", "internal/proof/servers/suites"} {
		files, err := filepath.Glob(filepath.Join("..", "..", "..", "..", dir, "*_test.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("Glob(%s) = %v, %v; want test files", dir, files, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			must(t, err)
			tests.Write(text)
		}
	}
	if len(acceptance) != 19 {
		t.Errorf("%d traps; want 19", len(acceptance))
	}
	for trap, names := range acceptance {
		for _, name := range names {
			there := strings.Contains(string(list), `run(t, "`+name+`"`) || strings.Contains(string(list), `t.Run("`+name+`"`)
			if strings.HasPrefix(name, "func ") {
				there = strings.Contains(tests.String(), "\n"+name+"(t *testing.T)")
			}
			if !there {
				t.Errorf("%s: no test %s", trap, name)
			}
		}
	}
}
